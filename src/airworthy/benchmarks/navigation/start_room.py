"""How much room there is where flights begin, and how near the nearest of it is that no camera looks at."""

from __future__ import annotations

from functools import cache

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.geometry.distance import clearance
from airworthy.optics.lenses import Pinhole
from airworthy.planners.common.interface import MapSettings, StartRoom
from airworthy.planners.mapping.boxes import CAMERA_OFFSET, mapping_camera
from airworthy.scenes import SceneBatch

__all__ = ["start_room"]

REACH = 3.0
"""What is farther is no matter [m]: three radii of a body of one metre."""
_AT_ONCE = 64
"""Starts that are looked around at once: bounds the memory."""
FINEST = 0.01
"""Edge of the smallest part of space that is asked whether a surface passes it [m]. However thin a thing is, its surface is
found; of one that is seen but for its edge, less than this may stay unnoticed."""
AT_BOX = np.array([0.05, 0.05, 0.12])
"""What lies so near to an end of the box in which flights stay is that end, which planners are told of [m]: with their bodies
they keep this from its sides, and from floor and ceiling where there is room for it."""
_BORDER = 2.0
"""Pixels at each side of an image that maps may not read: their border and what their thinning leaves out."""
_CORNERS = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3, indexing="ij"), -1).reshape(8, 3)


def start_room(
    batch: SceneBatch,
    start: Array,
    heading: Array,
    env: ArrayInt,
    lower: Array | None = None,
    upper: Array | None = None,
) -> StartRoom:
    """Return how near things are to starts, and how near those that the camera of a vehicle at rest there does not see.

    What is in the picture counts as seen, also where something nearer hides it.

    Args:
        batch: Scenes.
        start: (n, 3) [m], world.
        heading: Where cameras look at first, about +z from +x, (n,) [rad].
        env: Environment of each, (n,).
        lower: Corner of the box in which each flight stays [m], (n, 3); None: there is no box.
        upper: Opposite corner [m], (n, 3).
    """
    low = np.full_like(start, -np.inf) if lower is None else lower + AT_BOX
    high = np.full_like(start, np.inf) if upper is None else upper - AT_BOX
    # Many flights of a run begin at one place.
    rows, which = np.unique(np.column_stack([start, heading, env, low, high]), axis=0, return_inverse=True)
    at, environment = np.ascontiguousarray(rows[:, :3]), rows[:, 4].astype(np.int64)
    nearest = clearance(batch.geometry, at, env=environment, max_distance=REACH).distance
    unseen = np.full(len(at), np.inf)
    for first in range(0, len(at), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        box = rows[part, 5:8], rows[part, 8:]
        unseen[part] = _nearest_unseen(batch, at[part], rows[part, 3], environment[part], box)
    return StartRoom(nearest[which.ravel()], unseen[which.ravel()])


def _nearest_unseen(batch: SceneBatch, start: Array, heading: Array, env: ArrayInt, box: tuple[Array, Array]) -> Array:
    """Return distances to the nearest surface in the box that is not in the picture [m], (n,).

    Space around the starts is halved along each axis again and again; only parts that a surface passes, and in which something
    unseen may be nearer than what was found so far, are looked at any further. So nothing is too thin to be met.
    """
    best, who, middle, half = np.full(len(start), np.inf), np.arange(len(start)), start, REACH
    while len(who):
        # Only what is in the box counts: most places have a floor just below it, all of which would be looked at else.
        ends = np.maximum(middle - half, box[0][who]), np.minimum(middle + half, box[1][who])
        around = 0.5 * np.linalg.norm(ends[1] - ends[0], axis=1)
        found = clearance(batch.geometry, 0.5 * (ends[0] + ends[1]), env=env[who], max_distance=around)
        # Deep inside of something closed there is no surface either.
        passed = (found.instance >= 0) & (np.abs(found.distance) <= around)
        who, middle, point = who[passed], middle[passed], found.point[passed]
        counts = ~_in_picture(point, start[who], heading[who]) & ((point > box[0][who]) & (point < box[1][who])).all(1)
        np.minimum.at(best, who[counts], np.linalg.norm(point - start[who], axis=1)[counts])
        if half < FINEST:
            break
        # What a camera sees is convex: a part whose corners are seen is seen.
        eight = np.repeat(who, 8)
        seen = _in_picture((middle[:, None] + half * _CORNERS).reshape(-1, 3), start[eight], heading[eight])
        hidden = ~seen.reshape(-1, 8).all(1)
        half *= 0.5
        who = np.repeat(who[hidden], 8)
        middle = (middle[hidden][:, None] + half * _CORNERS).reshape(-1, 3)
        least = np.linalg.norm(np.maximum(np.abs(middle - start[who]) - half, 0.0), axis=1)
        matters = least < np.minimum(best[who], REACH) - 0.5 * FINEST
        matters &= ((middle + half > box[0][who]) & (middle - half < box[1][who])).all(1)
        who, middle = who[matters], middle[matters]
    return np.where(best < REACH, best, np.inf)


@cache
def _camera() -> Pinhole:
    return mapping_camera()


def _in_picture(points: Array, start: Array, heading: Array) -> ArrayBool:
    """Return which points (m, 3) [m] are in the picture of the camera of a vehicle that is level at starts (m, 3) [m], with
    headings (m,) [rad]."""
    x, y, z = (points - start).T
    ahead, left = np.cos(heading) * x + np.sin(heading) * y, np.cos(heading) * y - np.sin(heading) * x
    camera = _camera()
    pixel, inside = camera.project(np.stack([-left, CAMERA_OFFSET[2] - z, ahead], -1))
    last = np.array([camera.width, camera.height]) - 1.0 - _BORDER
    with np.errstate(invalid="ignore"):
        return np.asarray(inside & ((pixel >= _BORDER) & (pixel <= last)).all(-1) & (ahead >= MapSettings().depth_min))
