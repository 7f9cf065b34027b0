"""Optical flow, exact: where what a pixel sees now will be in the camera's next image.

Flow is in pixels, (u, v) as in `projections`: next place minus place now. A point on something that moves is carried along with
it. What a ray does not meet (the sky) is at no distance: its flow is that of the camera's rotation alone, or NaN where asked.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.sensors.projections import Pinhole, Projection, pixel_centres

__all__ = ["MoverPoses", "optical_flow"]

Floats = NDArray[np.float64]
MoverPoses = tuple[ArrayLike, ArrayLike]
"""Positions (env, movers, 3) and attitudes (env, movers, 4)."""


def optical_flow(
    projection: Projection,
    point_world: ArrayLike,
    next_position: ArrayLike,
    next_attitude: ArrayLike,
    attitude: ArrayLike,
    *,
    instance: ArrayLike | None = None,
    mover_start: int = 0,
    env: ArrayLike | None = None,
    movers: MoverPoses | None = None,
    next_movers: MoverPoses | None = None,
    sky: Literal["rotation", "nan"] = "rotation",
) -> NDArray[np.float32]:
    """Flow of c cameras.

    Args:
        projection: Of the cameras.
        point_world: What pixels see now, world [m], (c, H, W, 3); NaN for the sky.
        next_position: Of the cameras in the next image, world [m], (c, 3).
        next_attitude: Camera to world in the next image, (c, 4).
        attitude: Camera to world now, (c, 4).
        instance: Instance numbers (c, H, W), where things move.
        mover_start: Number of the first mover (`GeometryBatch.mover_start`).
        env: Environment of each camera, (c,); None: camera k is in environment k.
        movers: Poses of the movers now.
        next_movers: Poses of the movers in the next image.
        sky: Flow of pixels that meet nothing.

    Returns:
        (c, H, W, 2); NaN where the next place is behind the camera, or cannot be projected.
    """
    points = np.asarray(point_world, np.float64)
    if points.ndim != 4 or points.shape[-1] != 3 or points.shape[1:3] != (projection.height, projection.width):
        raise AirworthyError(
            f"Flow got points of shape {points.shape}; expected one per pixel, (c, {projection.height}, {projection.width}, 3)."
        )
    if movers is not None and next_movers is not None and instance is not None:
        count = len(points)
        envs = np.arange(count) if env is None else np.asarray(env, np.int64)
        points = carried(points, np.asarray(instance) - mover_start, envs, movers, next_movers)
    position, turned = np.asarray(next_position, np.float64), np.asarray(next_attitude, np.float64)[:, None, None]
    local = frames.rotate_inverse(turned, points - position[:, None, None])
    centres = pixel_centres(projection.height, projection.width)
    missed = np.isnan(points[..., 0])
    if sky == "rotation" and missed.any():
        rays = frames.rotate(np.asarray(attitude, np.float64)[:, None, None], projection.unproject(centres)[None])
        local = np.where(missed[..., None], frames.rotate_inverse(turned, rays), local)
    pixel, _ = projection.project(local)
    flow = pixel - centres
    if isinstance(projection, Pinhole):
        flow = np.where(local[..., 2:3] > 0.0, flow, np.nan)
    return np.asarray(np.where(np.isfinite(flow), flow, np.nan), np.float32)


def carried(points: Floats, mover: NDArray[np.int64], env: NDArray[np.int64], before: MoverPoses, after: MoverPoses) -> Floats:
    """World points (c, H, W, 3), those on movers (number >= 0, (c, H, W)) where the movers will have taken them."""
    out = points.copy()
    camera, row, column = np.nonzero(mover >= 0)
    if not len(camera):
        return out
    which = (env[camera], mover[camera, row, column])
    (p0, q0), (p1, q1) = ((np.asarray(p, np.float64)[which], np.asarray(q, np.float64)[which]) for p, q in (before, after))
    local = frames.rotate_inverse(q0, points[camera, row, column] - p0)
    out[camera, row, column] = frames.rotate(q1, local) + p1
    return out
