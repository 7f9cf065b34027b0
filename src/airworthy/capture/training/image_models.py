"""What is learnt beside the Gaussians: colours and poses of single images, and the sky behind everything."""

from __future__ import annotations

import numpy as np

from airworthy.capture.record import CaptureImages
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayFloat
from airworthy.scenes.splats.record import C0, COEFFICIENTS, Splats
from airworthy.splats.renderer import PoseGradients
from airworthy.splats.twin import harmonics_basis

__all__ = ["CameraMotion", "ExposureMaps", "SkyMap", "fitted_exposure"]

_FIT_PIXELS = 100
"""Fewer say nothing of an exposure."""
_FIT_PULL = 1e-4
"""Weight of the colours as they are against a pixel's."""
_SHELL = 4000
"""Gaussians of a sky, 3.2 degrees apart."""
_SHELL_WIDTH = 0.8
"""Their standard deviation over their spacing: between any three of them less than a hundredth of the light passes."""

_DECAYS = (0.9, 0.999)
_EXPOSURE_RATE = 1e-3
_SKY_RATE = 5e-3
"""Motion of a coefficient of the sky in a step."""


class _Moments:
    """Adam (Kingma, Ba, 2015, algorithm 1) on the rows of one array, each by its own count."""

    def __init__(self, shape: tuple[int, ...]):
        self.mean, self.square, self.times = np.zeros(shape), np.zeros(shape), np.zeros(shape[0])

    def step(self, k: int, slope: ArrayFloat) -> Array:
        """Return what to subtract from row k at a rate of 1."""
        a, b = _DECAYS
        self.times[k] += 1.0
        self.mean[k] = a * self.mean[k] + (1.0 - a) * slope
        self.square[k] = b * self.square[k] + (1.0 - b) * slope**2
        bias = (1.0 - a ** self.times[k], 1.0 - b ** self.times[k])
        return np.asarray(self.mean[k] / bias[0] / (np.sqrt(self.square[k] / bias[1]) + 1e-15))

    def save(self, name: str) -> dict[str, ArrayAny]:
        return {f"{name}_mean": self.mean, f"{name}_square": self.square, f"{name}_times": self.times}

    def restore(self, name: str, saved: dict[str, ArrayAny]) -> None:
        self.mean, self.square, self.times = (saved[f"{name}_{part}"].copy() for part in ("mean", "square", "times"))


class ExposureMaps:
    """Per image a map of colours, c -> A c + b, the identity at first.

    Args:
        count: Images.
    """

    def __init__(self, count: int):
        self._maps = np.tile(np.eye(3, 4), (count, 1, 1))
        self._moments = _Moments((count, 3, 4))

    def applied(self, k: int, image: ArrayF32) -> ArrayF32:
        """Return colours as image k has them."""
        part = self._maps[k].astype(np.float32)
        return np.asarray(image @ part[:, :3].T + part[:, 3])

    def learned(self, k: int, image: ArrayF32, slope: ArrayF32) -> ArrayF32:
        """Move the map by a step; the loss' derivative with respect to the image before it.

        Args:
            k: Number of the image.
            image: As rendered, before the map, linear RGB, (height, width, 3).
            slope: Derivative of the loss with respect to the mapped image, the same shape.
        """
        part = self._maps[k].astype(np.float32)
        # float64: a sum over all pixels of an image.
        flat, colors = slope.reshape(-1, 3).astype(np.float64), image.reshape(-1, 3)
        found = np.concatenate([flat.T @ colors, flat.sum(axis=0)[:, None]], axis=1)
        # By its own Adam and not with the splats: a map is moved in the one step of many in which its image is chosen.
        self._maps[k] -= _EXPOSURE_RATE * self._moments.step(k, found)
        return np.asarray(slope @ part[:, :3], np.float32)

    def save(self) -> dict[str, ArrayAny]:
        """Return everything."""
        return {"exposure": self._maps, **self._moments.save("exposure")}

    def restore(self, saved: dict[str, ArrayAny]) -> None:
        """Go on from what `save` gave."""
        self._maps = saved["exposure"].copy()
        self._moments.restore("exposure", saved)


class CameraMotion:
    """Poses that move: a place, and a turn about the camera's own axes.

    Args:
        images: Where they begin.
        rate: Per step [rad, share of the reach].
        reach: [m]
    """

    def __init__(self, images: CaptureImages, rate: float, reach: float):
        self._position = np.array(images.position, np.float64)
        self._attitude = frames.normalize(np.array(images.attitude, np.float64))
        self._rate = np.array([rate * reach] * 3 + [rate] * 3)
        self._moments = _Moments((len(images), 6))

    def pose(self, k: int) -> tuple[Array, Array]:
        """Return the position (1, 3) and attitude (1, 4) of image k."""
        return self._position[k : k + 1], self._attitude[k : k + 1]

    def move(self, k: int, found: PoseGradients) -> None:
        """Advance by one step."""
        slope = np.concatenate([found.position[0], found.rotation[0]])
        step = -self._rate * self._moments.step(k, slope)
        self._position[k] += step[:3]
        # The quaternion of a small turn to first order, about the camera's own axes: from the right.
        self._attitude[k] = frames.normalize(frames.multiply(self._attitude[k], np.append(0.5 * step[3:], 1.0)))

    def save(self) -> dict[str, ArrayAny]:
        """Return everything."""
        return {"camera_position": self._position, "camera_attitude": self._attitude, **self._moments.save("camera")}

    def restore(self, saved: dict[str, ArrayAny]) -> None:
        """Go on from what `save` gave."""
        self._position, self._attitude = saved["camera_position"].copy(), saved["camera_attitude"].copy()
        self._moments.restore("camera", saved)


def fitted_exposure(image: ArrayF32, truth: ArrayF32, mask: ArrayBool | None = None) -> ArrayF32:
    """Return an image in the colours of its photograph, by the affine map of colours that fits its left half best.

    Of a photograph that was held out nobody learnt the exposure. It is found on one half, so that the other can be judged on:
    fitted where it is judged, a map of 12 numbers would also take up errors of the splats.

    Args:
        image: (H, W, 3) as rendered.
        truth: The photograph, in [0, 1].
        mask: (H, W) where it shows the scene; None: everywhere.
    """
    left = np.zeros(truth.shape[:2], bool)
    left[:, : truth.shape[1] // 2] = True
    left = left if mask is None else left & mask
    colors = image[left].astype(np.float64)
    if len(colors) < _FIT_PIXELS:
        return image
    known = np.concatenate([colors, np.ones((len(colors), 1))], axis=1)
    # A little towards the colours as they are: half of an image may be of one colour, and says nothing of the others.
    pull = _FIT_PULL * len(colors)
    found = np.linalg.solve(known.T @ known + pull * np.eye(4), known.T @ truth[left] + pull * np.eye(4, 3))
    return np.asarray(image @ found[:3].astype(np.float32) + found[3].astype(np.float32), np.float32)


class SkyMap:
    """The colour of what is infinitely far, by its direction: a field of low-order harmonics.

    Args:
        degree: Of the harmonics.
    """

    def __init__(self, degree: int = 3):
        self._factors = np.zeros((COEFFICIENTS[degree], 3))
        self._moments = _Moments((1, *self._factors.shape))

    def colors(self, directions: ArrayAny) -> ArrayAny:
        """Return colours (..., 3) along directions (..., 3) of any length, world frame."""
        return self._shown(self._basis(directions))

    def _basis(self, directions: ArrayAny) -> ArrayAny:
        flat = harmonics_basis(directions.reshape(-1, 3), len(self._factors))
        return flat.reshape(*directions.shape[:-1], len(self._factors))

    def _shown(self, basis: ArrayAny) -> ArrayAny:
        return np.maximum(0.5 + basis @ self._factors, 0.0)

    def behind(self, image: ArrayF32, alpha: ArrayF32, directions: ArrayAny) -> ArrayF32:
        """Return an image (H, W, 3) over black, covered by `alpha` (H, W), with the sky behind it."""
        return np.asarray(image + (1.0 - alpha)[..., None] * self.colors(directions), np.float32)

    def learned(self, slope: ArrayF32, alpha: ArrayF32, directions: ArrayAny) -> ArrayF32:
        """Move the sky by a step; the loss' derivative with respect to the alpha.

        Args:
            slope: Derivative of the loss with respect to the image before its sky, (H, W, 3).
            alpha: (H, W).
            directions: Of the pixels, world frame (H, W, 3).
        """
        basis = self._basis(directions)
        shown = self._shown(basis)
        lit = slope.astype(np.float64) * (shown > 0.0) * (1.0 - alpha)[..., None]
        found = np.einsum("hwk,hwc->kc", basis, lit)
        self._factors -= _SKY_RATE * self._moments.step(0, found)
        return np.asarray(-np.sum(slope * shown, axis=-1), np.float32)

    def shell(self, centre: ArrayFloat, radius: float) -> Splats:
        """Return the sky as a shell of flat, opaque Gaussians about a centre (3,), for renderers that know no sky.

        Args:
            centre: Of the views [m].
            radius: Far beyond everything else [m].
        """
        k = np.arange(_SHELL) + 0.5
        # A spiral of equal areas (Gonzalez, Measurement of areas on a sphere using Fibonacci and latitude-longitude lattices,
        # 2010).
        z, turn = 1.0 - 2.0 * k / _SHELL, np.pi * (1.0 + np.sqrt(5.0)) * k
        outward = np.column_stack([np.sqrt(1.0 - z * z) * np.cos(turn), np.sqrt(1.0 - z * z) * np.sin(turn), z])
        spacing = radius * np.sqrt(4.0 * np.pi / _SHELL)
        scale = np.tile([_SHELL_WIDTH * spacing, _SHELL_WIDTH * spacing, 0.01 * spacing], (_SHELL, 1))
        harmonics = ((self.colors(outward) - 0.5) / C0)[:, None, :]
        return Splats(np.asarray(centre) + radius * outward, _facing(outward), scale, np.full(_SHELL, 0.99), harmonics)

    def save(self) -> dict[str, ArrayAny]:
        """Return everything."""
        return {"sky": self._factors, **self._moments.save("sky")}

    def restore(self, saved: dict[str, ArrayAny]) -> None:
        """Go on from what `save` gave."""
        self._factors = saved["sky"].copy()
        self._moments.restore("sky", saved)


def _facing(outward: Array) -> Array:
    """Return quaternions (n, 4) of turns that lead z to unit directions (n, 3)."""
    half = np.column_stack([-outward[:, 1], outward[:, 0], np.zeros(len(outward)), 1.0 + outward[:, 2]])
    half[outward[:, 2] < -0.999999] = (1.0, 0.0, 0.0, 0.0)
    return np.asarray(frames.normalize(half))
