"""Who stands before what its camera cannot show from there goes back where it came from, and looks again."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array
from airworthy.planners.known_free.trails import Trails

__all__ = ["Retreats"]

_WAY, _MOST, _TIME = 2.0, 12.0, 8.0
"""How far it goes back, the second time at a place twice as far and so on, and at most [m]; for so long at most [s]."""


class Retreats:
    """Ways back of n flights.

    Args:
        start: Where each begins, (n, 3) [m].
    """

    def __init__(self, start: Array):
        n = len(start)
        self._trails, self._until, self._faced = Trails(start), np.full(n, -np.inf), np.zeros((n, 3))
        self.count = np.zeros(n, np.int64)
        """How often each went back, (n,)."""

    def note(self, flight: int, position: Array) -> None:
        """Let a flight be at a point (3,) [m]."""
        self._trails.note(flight, position)

    def goes_back(self, flight: int) -> bool:
        """Return whether a flight goes back."""
        return bool(np.isfinite(self._until[flight]))

    def is_late(self, flight: int, time: float) -> bool:
        """Return whether a flight has gone back for so long [s] that it gives up."""
        return bool(time >= self._until[flight])

    def heading(self, flight: int, here: Array) -> float:
        """Return where a flight at a point (3,) looks to: what it could not see [rad]."""
        away = self._faced[flight] - here
        return float(np.arctan2(away[1], away[0]))

    def begin(self, flight: int, time: float, here: Array, where: Array, tries: int) -> Array:
        """Let a flight go back; its way (m, 3) [m], none where it came from nowhere.

        Args:
            flight: Whose.
            time: [s]
            here: Where it is, (3,) [m].
            where: What it could not see, (3,) [m].
            tries: How often it has gone back from here before.
        """
        way = self._trails.back(flight, here, min(_WAY * 2.0**tries, _MOST))
        if len(way):
            self._until[flight], self._faced[flight] = time + _TIME, where
            self.count[flight] += 1
        return way

    def end(self, flight: int) -> None:
        """Let a flight go on."""
        self._until[flight] = -np.inf
