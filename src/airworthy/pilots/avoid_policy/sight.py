"""What an avoiding policy sees and says, in numbers: its camera, its inputs, and what its outputs mean.

Training and flight share it, so that both mean the same. Specification learning_by_reward 7.2, after arXiv 2407.10648.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayLike
from airworthy.core.frames import from_euler
from airworthy.optics.projections import Pinhole
from airworthy.sensors.devices import Device
from airworthy.sensors.mounting import Mount
from airworthy.sensors.noise import QUIET, RangeNoise

__all__ = [
    "CAMERA",
    "HALF_TANGENT",
    "IMAGE",
    "POOL",
    "RATE",
    "REACH",
    "TILT_DEG",
    "avoid_camera",
    "image_input",
    "pooled",
    "rays",
    "turned",
]

CAMERA = "policy_depth"
"""Under which the camera is mounted."""
IMAGE = (12, 16)
"""Rows and columns that the network sees."""
POOL = 4
"""Pixels of the camera per pixel of the network, each way; of a block the nearest return counts."""
HALF_TANGENT = 0.82
"""Of the horizontal field of view: 79 degrees. The specification's shipped configurations."""
TILT_DEG = 20.0
"""By which the camera looks up when the vehicle is level, which in fast flight it is not; specification: 10 or 20."""
RATE = 15.0
"""Images, and decisions, per second."""
REACH = 16.0
"""What is farther looks as if it were here [m]; ours, half the edge of a place of training."""
_NEAREST, _SCALE, _SHIFT = 0.3, 3.0, 0.6
"""Inputs are 3 / depth - 0.6, depth at least 0.3 m (specification)."""


def rays() -> ArrayF32:
    """Return left and up, per metre of depth, of the rays through the middles of the network's pixels, row by row, (2, 192)."""
    rows, columns = IMAGE
    pitch = 2.0 * HALF_TANGENT / columns
    left = -(np.arange(columns) + 0.5 - columns / 2) * pitch
    up = -(np.arange(rows) + 0.5 - rows / 2) * pitch
    high, wide = np.meshgrid(up, left, indexing="ij")
    return np.stack([wide.ravel(), high.ravel()]).astype(np.float32)


def avoid_camera(noise: float = 0.0) -> Device:
    """Return the depth camera, 64 x 48 pixels, looking up by `TILT_DEG`.

    Args:
        noise: Standard deviation of depth per metre.
    """
    height, width = (POOL * side for side in IMAGE)
    focal = 0.5 * width / HALF_TANGENT
    x, y, z, w = (float(v) for v in from_euler(0.0, -math.radians(TILT_DEG), 0.0))
    model = RangeNoise(multiplier=noise) if noise else QUIET
    return Device(
        CAMERA,
        "depth_camera",
        Pinhole(width, height, focal, focal, width / 2, height / 2),
        noise=model,
        noise_enabled=model.any,
        mount=Mount(attitude=(x, y, z, w)),
        rate=RATE,
        channels=("depth",),
        summary="the depth camera of an avoiding policy",
        source="specification learning_by_reward, 7.2",
    )


def pooled(depth: ArrayLike) -> ArrayF32:
    """Return the nearest depth of each block of 4 x 4 pixels, (env, 192).

    Args:
        depth: Along the optical axis [m]; what is not positive or not finite returned nothing, (env, 48, 64).
    """
    d = np.asarray(depth, np.float32)
    d = np.where(np.isfinite(d) & (d > 0.0), d, np.float32(REACH))
    rows, columns = IMAGE
    blocks = d.reshape(len(d), rows, POOL, columns, POOL)
    return np.ascontiguousarray(blocks.min((2, 4)).reshape(len(d), rows * columns))


def image_input(depth: Any, clip: Any) -> Any:
    """Return the network's image of depths [m], any shape.

    Args:
        depth: Array or tensor.
        clip: Of its module: `numpy.clip` or `torch.clip`.
    """
    return _SCALE / clip(depth, _NEAREST, REACH) - _SHIFT


def turned(vectors: Array, heading: Array, back: bool = False) -> Array:
    """Return vectors (env, 3) of the world in the frame of headings (env, 2), z up; `back`: the other way.

    Args:
        vectors: (env, 3).
        heading: Unit vectors, world x and y, (env, 2).
        back: From the frame of the heading to the world.
    """
    c, s = heading[:, 0], -heading[:, 1] if back else heading[:, 1]
    x, y, z = vectors.T
    return np.stack([c * x + s * y, c * y - s * x, z], axis=1)
