"""The route near a flight as points 0.1 m apart, smoothed where there is room."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.planners.known_free.known_space import KnownSpace

__all__ = ["SPACING", "eased", "near_path", "resampled"]

SPACING = 0.1
"""Between points [m], ours."""
_WINDOWS = (9, 7, 5, 3, 3)
"""Points over which means are taken, one after the other, ours."""


def resampled(points: Array, length: float) -> Array:
    """Return points (m, 3) `SPACING` apart on a line through points (k, 3), to its end or so far [m]."""
    step = np.linalg.norm(np.diff(points, axis=0), axis=1)
    along = np.concatenate([[0.0], np.cumsum(step)])
    total = min(float(along[-1]), length)
    at = np.append(np.arange(0.0, total - 0.5 * SPACING, SPACING), total)
    return np.stack([np.interp(at, along, points[:, axis]) for axis in range(3)], 1)


EASE = 0.1
"""Steepness of what is flown at first where little is seen: a camera that looks up by 29 degrees sees the upper edge of a body
of 0.45 m only from 0.45 / (0.55 - steepness) metres before it, 1 m. Ours."""


def eased(points: Array, start: Array) -> Array:
    """Return a path (m, 3) that climbs and sinks no steeper than `EASE` from where the flight is, (3,) [m]."""
    step = np.linalg.norm(np.diff(points[:, :2], axis=0), axis=1)
    most = EASE * np.concatenate([[0.0], np.cumsum(step)])
    found = points.copy()
    found[:, 2] = np.clip(points[:, 2], start[2] - most, start[2] + most)
    return found


def near_path(
    space: KnownSpace, nodes: ArrayInt, start: Array, goal: Array, length: float, at_goal: bool
) -> tuple[Array, bool]:
    """Return the first metres of a route as points (m, 3), and whether they end at the route's end.

    Args:
        space: What the flight knows.
        nodes: Of the route, (k,).
        start: Where it begins, (3,) [m].
        goal: (3,) [m]
        length: Of what is wanted [m].
        at_goal: Whether the route ends at the goal itself.
    """
    # A node is at least a layer of 0.1 m further on.
    first = nodes[: int(length / SPACING) + 2]
    corners = space.room_of_nodes(first)
    corners[0] = start
    whole = len(first) == len(nodes)
    if whole and at_goal:
        corners[-1] = goal
    if len(corners) == 1:
        corners = np.stack([start, goal if at_goal else corners[0]])
    points = resampled(corners, length)
    for window in _WINDOWS:
        points = _smoothed(space, points, window)
    ends = whole and bool(np.linalg.norm(points[-1] - corners[-1]) < 1e-6)
    return points, ends


def _smoothed(space: KnownSpace, points: Array, window: int) -> Array:
    """Means over a window, where there is room for them and nothing comes nearer."""
    if len(points) < 3:
        return points
    half = window // 2
    sums = np.concatenate([np.zeros((1, 3)), np.cumsum(points, axis=0)])
    index = np.arange(len(points))
    # Towards the ends windows shrink, so that these stay where they are.
    reach = np.minimum(np.minimum(index, index[::-1]), half)
    mean = (sums[index + reach + 1] - sums[index - reach]) / (2 * reach + 1)[:, None]
    kept = space.has_room(mean) & (space.nearness(mean) <= space.nearness(points))
    return np.where(kept[:, None], mean, points)
