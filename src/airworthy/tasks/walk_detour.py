"""Ways round what a recorded walk has no room in: corners that no camera looked into, things that came too near.

Who films a room walks along its walls and looks across it, so that what lies beside and behind the camera may be seen by
nobody: in a captured place it is unknown, and solid. Pushing the walk off surfaces, point by point, ends in pockets there.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.geometry.grid_path import shortest_path
from airworthy.tasks.course_room import CourseRoom

__all__ = ["detoured"]

CELL, CELLS_MAX = 0.15, 400_000
"""Edge of the cells in which a way round is looked for [m]; larger ones where there would be more of them."""
LOOKED = 0.05
"""Between the places of a straight line at which the room is asked for [m]."""
ALONG = 20
"""Points of the walk, 5 cm apart, on either side of what is led round, that are drawn straight with it."""
ASTRAY = 0.75
"""A way round begins and ends at a cell no farther than this from the walk [m]."""


def detoured(way: Array, good: ArrayBool, room: CourseRoom, need: float, flat: bool) -> Array | None:
    """Return a walk whose parts without room are led round, with as many points; None where there is no way round.

    What lies before the first point with room, or behind the last, is drawn together into that.

    Args:
        way: Points of the walk [m], (n, 3).
        good: Which of them have the room, (n,).
        room: The place and who flies there.
        need: Distance of the vehicle's middle from everything [m].
        flat: Whether all is flown at the height of the first point.
    """
    rows = np.flatnonzero(good)
    if not len(rows):
        return None
    led = way.copy()
    led[: rows[0]], led[rows[-1] + 1 :] = way[rows[0]], way[rows[-1]]
    gaps = [(int(a), int(b)) for a, b in pairwise(rows) if b > a + 1]
    if not gaps:
        return led
    lower, size, shape = _grid_of(way, room, need, flat)
    centres = lower + size * (np.stack(np.meshgrid(*(np.arange(n) for n in shape), indexing="ij"), -1).reshape(-1, 3) + 0.5)
    # Half a cell's edge more, since the way leads along straight lines between the centres.
    taken = np.asarray(room.nearest(centres).distance < need + 0.5 * size) | ~room.holds(centres)
    free = centres[~taken]
    for before, after in gaps:
        ends = [_nearest(free, way[k]) for k in (before, after)]
        if ends[0] is None or ends[1] is None:
            return None
        found = shortest_path(taken.reshape(shape), size, ends[0], ends[1], lower=lower)
        if found is None:
            return None
        # The walk on either side goes along, or there would be a kink where it is left.
        first, last = _runs_from(good, before, -1), _runs_from(good, after, 1)
        whole = np.concatenate([led[first : before + 1], found.points, led[after : last + 1]])
        led[first : last + 1] = _spread(_straightened(whole, room, need), last + 1 - first)
    return led


def _runs_from(good: ArrayBool, k: int, step: int) -> int:
    """Return the last point with room that is reached from one, at most `ALONG` points away."""
    for _ in range(ALONG):
        if not (0 <= k + step < len(good) and good[k + step]):
            break
        k += step
    return k


def _straightened(points: Array, room: CourseRoom, need: float) -> Array:
    """Return some of the points of a way, (m, 3), between which straight lines keep the room as far as their ends do.

    From each a far one that can be reached is taken, found by bisection; the next one can be, as the way leads there.
    """
    kept, last = [0], len(points) - 1
    while kept[-1] < last:
        here = kept[-1]
        reached, missed = here + 1, last + 1
        tried = last
        while missed - reached > 1:
            if _open(points[here], points[tried], room, need):
                reached = tried
            else:
                missed = tried
            tried = (reached + missed) // 2
        kept.append(reached)
    return points[kept]


def _open(begin: Array, end: Array, room: CourseRoom, need: float) -> bool:
    count = max(2, int(np.ceil(float(np.linalg.norm(end - begin)) / LOOKED)) + 1)
    line = begin + np.linspace(0.0, 1.0, count)[:, None] * (end - begin)
    return bool((room.nearest(line).distance >= need).all()) and bool(room.holds(line).all())


def _grid_of(way: Array, room: CourseRoom, need: float, flat: bool) -> tuple[Array, float, tuple[int, int, int]]:
    """Return lower corner [m], edge [m] and shape of the grid: the place's bounds, at the walk's heights."""
    low, high = np.array(room.scene.bounds.lower, float), np.array(room.scene.bounds.upper, float)
    low[2], high[2] = max(low[2], way[:, 2].min() - need), min(high[2], way[:, 2].max() + need)
    size = max(CELL, float(np.cbrt(np.prod(np.maximum(high - low, CELL)) / CELLS_MAX)))
    if flat:
        low[2], high[2] = way[0, 2] - 0.5 * size, way[0, 2] + 0.5 * size
    nx, ny, nz = (max(1, round(float(span) / size)) for span in high - low)
    return low, size, (nx, ny, nz)


def _nearest(free: Array, point: Array) -> Array | None:
    if not len(free):
        return None
    away = np.linalg.norm(free - point, axis=1)
    k = int(np.argmin(away))
    return np.asarray(free[k]) if away[k] <= ASTRAY else None


def _spread(points: Array, count: int) -> Array:
    """Return `count` points, evenly along a polyline."""
    along = np.concatenate(([0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))))
    places = np.linspace(0.0, along[-1], count)
    return np.stack([np.interp(places, along, points[:, axis]) for axis in range(3)], axis=1)
