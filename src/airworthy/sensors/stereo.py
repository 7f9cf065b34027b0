"""Stereo: which pixels the second eye cannot see, and disparity (spec/aerial_gym 7.4)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.frames import rotate
from airworthy.geometry import GeometryBatch, RayTable, occluded

START = 0.999
"""Share of a hit's range from which the second eye is looked for: just before the surface."""


def stereo_shadow(
    batch: GeometryBatch,
    table: RayTable,
    position: ArrayLike,
    attitude: ArrayLike,
    ranges: NDArray[Any],
    baseline: float,
    far: float,
    env: ArrayLike | None = None,
    ignore: ArrayLike | None = None,
) -> NDArray[np.bool_]:
    """Pixels that the second eye does not see.

    From 0.999 of the range a ray goes to the second eye; whatever it meets on the way hides the point. Where nothing is hit
    within `far`, the same is asked of the point at `far` along the ray.

    Args:
        batch: Geometry.
        table: Rays of the first eye, optical frame.
        position: Of the first eye, world [m], (camera, 3).
        attitude: Optical frame to world, (camera, 4).
        ranges: Along the rays [m], (camera, height, width), +inf on a miss.
        baseline: The second eye is this far along the first one's x axis [m] (Aerial Gym writes -0.095 for 0.095).
        far: Range of the far plane [m].
        env: Environment of each camera, (camera,); default 0, 1, 2, ...
        ignore: Instance that is not seen, (camera,).

    Returns:
        Shape (camera, height, width).
    """
    position, attitude = np.asarray(position, np.float64), np.asarray(attitude, np.float64)
    cameras = len(position)
    with np.errstate(invalid="ignore"):
        length = np.where(ranges <= far, START * ranges, far)
    rays = rotate(attitude[:, None, None], np.asarray(table.directions, np.float64))
    start = position[:, None, None] + rays * length[..., None]
    eye = position + rotate(attitude, (baseline, 0.0, 0.0))
    end = np.broadcast_to(eye[:, None, None], start.shape)
    envs = np.arange(cameras) if env is None else np.asarray(env)
    pixels = ranges[0].size
    own = np.full(cameras, -1) if ignore is None else np.broadcast_to(np.asarray(ignore), (cameras,))
    hidden = occluded(batch, start.reshape(-1, 3), end.reshape(-1, 3), np.repeat(envs, pixels), np.repeat(own, pixels))
    return np.asarray(hidden).reshape(ranges.shape)


def disparity(depth: ArrayLike, focal_length: float, baseline: float) -> NDArray[np.float64]:
    """Disparity [px] = focal length [px] x baseline / depth; 0 where there is no depth (infinite)."""
    return focal_length * baseline / np.asarray(depth, np.float64)


def depth_of(disparity_px: ArrayLike, focal_length: float, baseline: float) -> NDArray[np.float64]:
    """Depth [m] of a disparity [px]; infinite where it is 0."""
    with np.errstate(divide="ignore"):
        return focal_length * baseline / np.asarray(disparity_px, np.float64)
