"""What may move beside the Gaussians: colours of single images and their poses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.capture.record import CaptureImages
from airworthy.core import frames
from airworthy.sensors.splats.gradients import PoseGradients

__all__ = ["CameraMotion", "ExposureMaps"]

_DECAYS = (0.9, 0.999)
_EXPOSURE_RATE = 1e-3


class _Moments:
    """Adam (Kingma, Ba, 2015, algorithm 1) on the rows of one array, each by its own count."""

    def __init__(self, shape: tuple[int, ...]):
        self.mean, self.square, self.times = np.zeros(shape), np.zeros(shape), np.zeros(shape[0])

    def step(self, k: int, slope: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """What to subtract from row k at a rate of 1."""
        a, b = _DECAYS
        self.times[k] += 1.0
        self.mean[k] = a * self.mean[k] + (1.0 - a) * slope
        self.square[k] = b * self.square[k] + (1.0 - b) * slope**2
        bias = (1.0 - a ** self.times[k], 1.0 - b ** self.times[k])
        return np.asarray(self.mean[k] / bias[0] / (np.sqrt(self.square[k] / bias[1]) + 1e-15))

    def save(self, name: str) -> dict[str, NDArray[Any]]:
        return {f"{name}_mean": self.mean, f"{name}_square": self.square, f"{name}_times": self.times}

    def restore(self, name: str, saved: dict[str, NDArray[Any]]) -> None:
        self.mean, self.square, self.times = (saved[f"{name}_{part}"].copy() for part in ("mean", "square", "times"))


class ExposureMaps:
    """Per image a map of colours, c -> A c + b, the identity at first.

    Args:
        count: Images.
    """

    def __init__(self, count: int):
        self._maps = np.tile(np.eye(3, 4), (count, 1, 1))
        self._moments = _Moments((count, 3, 4))

    def applied(self, k: int, image: NDArray[np.float32]) -> NDArray[np.float32]:
        """Colours as image k has them."""
        part = self._maps[k].astype(np.float32)
        return np.asarray(image @ part[:, :3].T + part[:, 3])

    def learned(self, k: int, image: NDArray[np.float32], slope: NDArray[np.float32]) -> NDArray[np.float32]:
        """Move the map by a step; the loss' derivative with respect to the image before it."""
        part = self._maps[k].astype(np.float32)
        flat, seen = slope.reshape(-1, 3).astype(np.float64), image.reshape(-1, 3)
        found = np.concatenate([flat.T @ seen, flat.sum(axis=0)[:, None]], axis=1)
        self._maps[k] -= _EXPOSURE_RATE * self._moments.step(k, found)
        return np.asarray(slope @ part[:, :3], np.float32)

    def save(self) -> dict[str, NDArray[Any]]:
        """Everything."""
        return {"exposure": self._maps, **self._moments.save("exposure")}

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
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

    def pose(self, k: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Position (1, 3) and attitude (1, 4) of image k."""
        return self._position[k : k + 1], self._attitude[k : k + 1]

    def move(self, k: int, found: PoseGradients) -> None:
        """By one step."""
        slope = np.concatenate([found.position[0], found.rotation[0]])
        step = -self._rate * self._moments.step(k, slope)
        self._position[k] += step[:3]
        self._attitude[k] = frames.normalize(frames.multiply(self._attitude[k], np.append(0.5 * step[3:], 1.0)))

    def save(self) -> dict[str, NDArray[Any]]:
        """Everything."""
        return {"camera_position": self._position, "camera_attitude": self._attitude, **self._moments.save("camera")}

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
        """Go on from what `save` gave."""
        self._position, self._attitude = saved["camera_position"].copy(), saved["camera_attitude"].copy()
        self._moments.restore("camera", saved)
