"""Making splats look like given images, by the derivatives of their own; and how alike they are.

The number of Gaussians stays. Adam moves colour, opacity, size, turn and place (Kingma and Ba, 2015, algorithm 1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.core.progress import progress
from airworthy.geometry import RayTable
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.splats.harmonics import C0
from airworthy.scenes.splats.record import Splats
from airworthy.scenes.viewing import look_at
from airworthy.sensors.capture import render
from airworthy.sensors.shading import ShadingOptions
from airworthy.sensors.splats.converting import seen_color
from airworthy.sensors.splats.renderer import SplatRenderer
from airworthy.sensors.splats.surfaces import sequence, viewpoints

__all__ = ["PosedImages", "RefineOptions", "image_psnr", "refined", "scene_views", "splat_psnr"]

Floats = NDArray[np.floating[Any]]
HELD_OUT = 1000
"""First number of the places of `scene_views` that are kept for judging."""


@dataclass(frozen=True, eq=False)
class PosedImages:
    """Images and where they were taken."""

    rgb: NDArray[np.float32]
    """(n, H, W, 3) as splats' colours are: sRGB-encoded, [0, 1]."""
    intrinsics: Floats
    """(n, 4) fx, fy, cx, cy [px]."""
    position: Floats
    """(n, 3) world [m]."""
    attitude: Floats
    """(n, 4) camera to world."""

    def __len__(self) -> int:
        return len(self.rgb)

    def camera(self, which: ArrayLike) -> tuple[int, int, Floats, Floats, Floats]:
        """Width, height, intrinsics, positions and attitudes of some, as `SplatRenderer.render` takes them."""
        some = np.atleast_1d(np.asarray(which))
        return self.rgb.shape[2], self.rgb.shape[1], self.intrinsics[some], self.position[some], self.attitude[some]


@dataclass(frozen=True)
class RefineOptions:
    """How splats are refined.

    Raises:
        AirworthyError: If a number is out of range.
    """

    steps: int = 400
    """Images looked at, one per step."""
    color_rate: float = 0.012
    """Of the colour, per step, at first; all rates fall to a tenth."""
    opacity_rate: float = 0.02
    """Of its logit."""
    scale_rate: float = 0.012
    """Of its logarithm."""
    rotation_rate: float = 0.003
    place_rate: float = 0.03
    """In standard deviations along the surface."""
    seed: int = 0

    def __post_init__(self) -> None:
        rates = (self.color_rate, self.opacity_rate, self.scale_rate, self.rotation_rate, self.place_rate)
        if self.steps < 0 or min(rates) < 0:
            raise AirworthyError(f"Splats cannot be refined with {self}; expected counts and rates of 0 or more.")


@dataclass(eq=False)
class _Adam:
    """First and second moments of one array; where the derivative is zero (not in the image), nothing moves."""

    shape: tuple[int, ...]
    mean: NDArray[np.float32] = field(init=False)
    square: NDArray[np.float32] = field(init=False)
    times: NDArray[np.float32] = field(init=False)

    def __post_init__(self) -> None:
        self.mean, self.square = np.zeros(self.shape, np.float32), np.zeros(self.shape, np.float32)
        self.times = np.zeros((self.shape[0], *(1 for _ in self.shape[1:])), np.float32)

    def step(self, slope: NDArray[np.float32], seen: NDArray[np.intp], rate: float) -> NDArray[np.float32]:
        """What to subtract from the rows `seen`."""
        part = slope[seen]
        self.times[seen] += 1.0
        self.mean[seen] = mean = 0.9 * self.mean[seen] + 0.1 * part
        self.square[seen] = square = 0.99 * self.square[seen] + 0.01 * part * part
        times = self.times[seen]
        step = rate * (mean / (1.0 - 0.9**times)) / (np.sqrt(square / (1.0 - 0.99**times)) + 1e-12)
        return np.asarray(step, np.float32)


def scene_views(
    batch: SceneBatch,
    count: int,
    width: int = 320,
    height: int = 180,
    fov: float = 1.4,
    first: int = 0,
    exposure: float = 1.0,
    samples: int = 4,
) -> PosedImages:
    """Images of a batch's first scene from free places evenly in its bounds, looking all around, up to 0.35 rad up or down.

    Args:
        batch: The scene (`lit_batch`).
        count: How many.
        width: [px]
        height: [px]
        fov: Across the width [rad].
        first: Other views for other numbers; `HELD_OUT` for judging.
        exposure: As of the conversion.
        samples: Rays per pixel: 1, 2, 4 or 8.
    """
    position = viewpoints(batch, count, first=first)
    turn = sequence(count, first + 17)
    yaw, pitch = 2.0 * np.pi * turn[:, 0], 0.7 * (turn[:, 1] - 0.5)
    way = np.stack((np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)), axis=-1)
    attitude = np.stack([look_at(np.zeros(3), one) for one in way])
    focal = 0.5 * width / np.tan(0.5 * fov)
    u, v = np.meshgrid(np.arange(width) + 0.5 - 0.5 * width, np.arange(height) + 0.5 - 0.5 * height)
    table = RayTable(np.stack((u / focal, v / focal, np.ones_like(u)), axis=-1))
    options = ShadingOptions(samples=samples)
    images = np.empty((count, height, width, 3), np.float32)
    for k in range(count):
        found = render(batch, table, position[k : k + 1], attitude[k : k + 1], np.zeros(1, np.int32), ("rgb",), options)
        images[k] = seen_color(found["rgb"][0], exposure)
    return PosedImages(images, np.tile((focal, focal, 0.5 * width, 0.5 * height), (count, 1)), position, attitude)


def image_psnr(image: Floats, truth: Floats) -> float:
    """Peak signal to noise [dB] of values in [0, 1]: 10 log10(1 / mean squared error)."""
    error = float(np.square(np.clip(image, 0.0, 1.0).astype(np.float64) - truth).mean())
    return float(-10.0 * np.log10(max(error, 1e-12)))


def splat_psnr(splats: Splats | SplatRenderer, views: PosedImages) -> list[float]:
    """PSNR of each view [dB]."""
    renderer = splats if isinstance(splats, SplatRenderer) else SplatRenderer(splats)
    values = []
    for k in range(len(views)):
        image = renderer.render(*views.camera(k), channels=("rgb",))["rgb"][0]
        values.append(image_psnr(image, views.rgb[k]))
    return values


def refined(splats: Splats, views: PosedImages, options: RefineOptions | None = None, quiet: bool = True) -> Splats:
    """Splats that look more like the views; the same number, degree and order. The same input gives the same bytes.

    The loss is the mean absolute difference plus the mean squared difference of colours.

    Args:
        splats: To begin with.
        views: What they should look like.
        options: How.
        quiet: Show no progress.

    Raises:
        AirworthyError: There are no views.
    """
    options = options or RefineOptions()
    if not len(views):
        raise AirworthyError("Splats cannot be refined without views.")
    order = _order(len(views), options)
    renderer = SplatRenderer(splats)
    moments = {name: _Adam(getattr(splats, name).shape) for name in ("position", "rotation", "scale", "opacity", "harmonics")}
    work: Iterable[int] = progress(range(options.steps), "Refining", options.steps, quiet=quiet)
    for step in work:
        truth = views.rgb[order[step]]

        def slopes(images: dict[str, Any], some: slice, truth: Any = truth) -> dict[str, Any]:
            off = images["rgb"] - truth
            return {"rgb": ((np.sign(off) + 2.0 * off) / truth.size).astype(np.float32)}

        found = renderer.gradients(slopes, *views.camera(order[step]))[0][0]
        splats = _moved(splats, found, moments, options, 0.1 ** (step / max(options.steps - 1, 1)))
        renderer.replace(splats)
    return splats


def _order(count: int, options: RefineOptions) -> NDArray[np.int64]:
    """Which view each step looks at: all of them once, shuffled, and again."""
    rng = np.random.default_rng(options.seed)
    rounds = -(-options.steps // count)
    shuffled = [rng.permutation(count) for _ in range(rounds)]
    return np.concatenate(shuffled) if shuffled else np.zeros(0, np.int64)


def _moved(splats: Splats, found: Any, moments: dict[str, _Adam], options: RefineOptions, fall: float) -> Splats:
    """One step, of those that were in the image."""
    seen = np.flatnonzero(found.seen > 0)
    new = {name: getattr(splats, name).copy() for name in moments}
    scale, opacity = new["scale"][seen], np.clip(new["opacity"][seen], 1e-3, 0.999)
    extent = scale.max(axis=1, keepdims=True)
    chain = {
        "harmonics": (found.harmonics, options.color_rate / C0),
        "opacity": (found.opacity * splats.opacity * (1.0 - splats.opacity), options.opacity_rate),
        "scale": (found.scale * splats.scale, options.scale_rate),
        "rotation": (found.rotation, options.rotation_rate),
        "position": (found.position * splats.scale.max(axis=1, keepdims=True), options.place_rate),
    }
    move = {name: moments[name].step(slope, seen, rate * fall) for name, (slope, rate) in chain.items()}
    logit = np.log(opacity / (1.0 - opacity)) - move["opacity"]
    new["opacity"][seen] = 1.0 / (1.0 + np.exp(-logit))
    new["scale"][seen] = np.clip(scale * np.exp(-move["scale"]), 1e-4, None)
    new["rotation"][seen] = frames.normalize(new["rotation"][seen] - move["rotation"])
    new["position"][seen] -= move["position"] * extent
    new["harmonics"][seen] -= move["harmonics"]
    return replace(splats, **new)
