"""The student's depth images turned level: what lies in each direction around the nose, whatever the vehicle leans.

The publication gives the image as the leaning camera took it, and the network has to find out what leaning does. Here it is
undone in closed form by the attitude, which is one of the inputs: trunks stand upright in every image, a mirrored one is what a
mirrored place would show, and thousands of instants are enough to learn from.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from airworthy.core.arrays import Array, ArrayInt, ArrayU8
from airworthy.planners.mapping.boxes import mapping_camera

__all__ = [
    "BEYOND",
    "COLUMNS",
    "MIRROR",
    "ROWS",
    "STATE_SIGNS",
    "UNSEEN",
    "VIEW_STEPS",
    "blank_views",
    "level_axes",
    "level_views",
]

# Ours: a degree and three quarters; a trunk of 0.6 m has seven columns where the benchmark's camera sees it first.
ROWS, COLUMNS = 48, 96
"""Of a view; every direction once."""
_SIDE, _TOP, _BOTTOM = 48.0, 38.0, -46.0
"""Azimuth to either side, elevation of the uppermost and of the lowest edge [deg]."""
VIEW_STEPS = 250
"""Of nearness, from nothing to contact."""
UNSEEN = 255
"""In a view: a direction outside of the image."""
BEYOND = 1.25
"""Times the reach lies what is nearness zero: the last metre that is seen stands out from what is not seen."""
_POOLED = 2
"""Pixels along each edge of which the nearest counts, so that nothing thin is missed and a gap of the sensor tells nothing."""
# What a mirror across the plane of nose and height leaves, and what it turns round, of a vector and of the state. It turns a
# rate about an axis that lies in the plane, and leaves one about the axis across it.
MIRROR = np.array([1.0, -1.0, 1.0])
STATE_SIGNS = np.concatenate([np.outer(MIRROR, MIRROR).reshape(-1), MIRROR, -MIRROR, MIRROR])
_AHEAD = 0.1
"""Directions less far ahead of the image's plane than this share are outside of it."""


@cache
def _directions() -> Array:
    """Return unit vectors (rows * columns, 3) of a view's cells, level frame: x along the nose, z up."""
    azimuth = np.radians(_SIDE * (1.0 - 2.0 * (np.arange(COLUMNS) + 0.5) / COLUMNS))
    elevation = np.radians(_TOP + (_BOTTOM - _TOP) * (np.arange(ROWS) + 0.5) / ROWS)
    level = np.cos(elevation)[:, None]
    up = np.broadcast_to(np.sin(elevation)[:, None], (ROWS, COLUMNS))
    return np.stack([level * np.cos(azimuth), level * np.sin(azimuth), up], axis=-1).reshape(-1, 3)


def level_axes(state: Array) -> Array:
    """Return rotations (n, 3, 3) from the body frame to the level one, which turns about the vertical with the nose.

    Args:
        state: (n, 18), see the contract's inputs.
    """
    turn = np.asarray(state)[:, :9].reshape(-1, 3, 3)
    nose = turn[:, :2, 0]
    c, s = (nose / np.maximum(np.linalg.norm(nose, axis=1, keepdims=True), 1e-9)).T
    zero = np.zeros_like(c)
    back = np.stack([c, s, zero, -s, c, zero, zero, zero, zero + 1.0], axis=1).reshape(-1, 3, 3)
    return np.asarray(np.einsum("nij,njk->nik", back, turn))


def level_views(images: ArrayU8, state: Array, steps: int) -> ArrayU8:
    """Return views (n, 48, 96): nearness by level distance, 250 at contact, 0 from 1.25 times the reach on; 255 is unseen.

    Args:
        images: (n, h, w) of the benchmark's camera, 0 at contact and `steps` at the reach and beyond.
        state: (n, 18), see the contract's inputs.
        steps: Of depth.
    """
    return np.stack([_view(image, axes, steps) for image, axes in zip(images, level_axes(state), strict=True)])


def blank_views(views: ArrayU8) -> ArrayU8:
    """Return views in which nothing stands where the camera looks."""
    return np.where(views == UNSEEN, UNSEEN, 0).astype(np.uint8)


def _view(image: ArrayU8, axes: Array, steps: int) -> ArrayU8:
    height, width = (size // _POOLED for size in image.shape)
    near = image.reshape(height, _POOLED, width, _POOLED).min(axis=(1, 3))
    rays = _directions() @ axes
    ahead = np.maximum(rays[:, 0], _AHEAD)
    camera = mapping_camera("full")
    across = (camera.cx - camera.fx * rays[:, 1] / ahead + 0.5) / camera.width
    down = (camera.cy - camera.fy * rays[:, 2] / ahead + 0.5) / camera.height
    seen = (rays[:, 0] > _AHEAD) & (across >= 0.0) & (across < 1.0) & (down >= 0.0) & (down < 1.0)
    row, column = (_pixel(share, size) for share, size in ((down, height), (across, width)))
    depth = near[row, column]
    level = np.hypot(_directions()[:, 0], _directions()[:, 1]) / ahead
    share = 1.0 - depth * level / (BEYOND * steps)
    found = np.where(depth < steps, np.rint(VIEW_STEPS * np.clip(share, 0.0, 1.0)), 0.0)
    return np.where(seen, found, UNSEEN).astype(np.uint8).reshape(ROWS, COLUMNS)


def _pixel(share: Array, size: int) -> ArrayInt:
    return np.clip((share * size).astype(np.int64), 0, size - 1)
