"""Goals that turn out to be inside something, or next to it, are moved. Source: spec/planners section 4.6."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.fast.windows import View

__all__ = ["clearer_goal"]

Array = NDArray[np.float64]


def candidates(goal: Array) -> Array:
    """Points around a goal (3,): radii 0.5 to 2.5 m, every 30 degrees, three heights; (180, 3)."""
    angles = np.radians(np.arange(-90.0, 270.0, 30.0))
    offsets = [
        (r * np.cos(a), r * np.sin(a), z) for r in (0.5, 1.0, 1.5, 2.0, 2.5) for a in angles.tolist() for z in (0.3, 0.0, -0.3)
    ]
    return goal + np.array(offsets)


def clearer_goal(goal: Array, view: View, least: float) -> Array | None:
    """The candidate in the box that is farthest from everything, if that is farther than `least` [m]; the first of equals."""
    points = candidates(goal)
    points = points[((points >= view.lower) & (points <= view.upper)).all(1)]
    if not len(points):
        return None
    distance = view.coarse(points)
    best = int(np.argmax(distance))
    return points[best] if distance[best] > least else None
