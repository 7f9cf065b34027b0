"""Where flights came from, to go back along: from farther away a camera shows what it cannot show from near.

A trail never crosses itself: who comes near an earlier point of it is taken to be there again.
"""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array
from airworthy.planners.known_free.path import resampled

__all__ = ["Trails"]

_STEP, _AGAIN = 0.25, 0.2
"""Between points of a trail, and so near an earlier one is it again [m], ours."""
_SHORTEST = 0.4
"""A way back that is shorter is none [m], ours."""


class Trails:
    """Trails of n flights.

    Args:
        start: Where each begins, (n, 3) [m].
    """

    def __init__(self, start: Array):
        self._points = [np.asarray(point, np.float64)[None] for point in start]

    def note(self, flight: int, position: Array) -> None:
        """Let a flight be at a point (3,) [m]."""
        trail = self._points[flight]
        away = np.linalg.norm(trail - position, axis=1)
        near = np.flatnonzero(away < _AGAIN)
        if len(near):
            self._points[flight] = trail[: near[0] + 1]
        elif away[-1] >= _STEP:
            self._points[flight] = np.concatenate([trail, position[None]])

    def back(self, flight: int, here: Array, length: float) -> Array:
        """Return the way back from a point, `path.SPACING` apart, (m, 3) [m]; none, (0, 3), where there is hardly any.

        Args:
            flight: Whose.
            here: Where it begins, (3,) [m].
            length: Of the way at most [m].
        """
        points = np.concatenate([here[None], self._points[flight][::-1]])
        if np.linalg.norm(np.diff(points, axis=0), axis=1).sum() < _SHORTEST:
            return np.zeros((0, 3))
        return resampled(points, length)
