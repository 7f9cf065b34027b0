"""Where a racer believes it is in a race: which gate comes next, and which gates it has looked at for how long."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.race.planning.glances import Glance, nearness

__all__ = ["GateProgress", "GlanceLedger"]

_REACH = 6.0
"""A gate's plane counts as its gate up to here from the centre [m]: the widest opening and its bound."""
_CORNERS = 3
"""So many corners in a frame are a look at a gate: with two its distance and its turn are not told apart."""


class GateProgress:
    """The next passage of one flight.

    Args:
        passages: How many there are.
    """

    def __init__(self, passages: int) -> None:
        self.passages = passages
        self.next = 0
        """Number of the next passage; `passages` when all are done."""
        self._behind = False

    @property
    def over(self) -> bool:
        """Whether the last gate is passed."""
        return self.next >= self.passages

    def update(self, position: Array, centers: Array, normals: Array) -> bool:
        """Take a position, and return whether a gate was passed: from before its plane to behind it, near its centre.

        Args:
            position: Believed [m], (3,).
            centers: Of the gates, as believed [m], (passages, 3).
            normals: Along the flight, (passages, 3).
        """
        if self.over:
            return False
        away = position - centers[self.next]
        depth = float(away @ normals[self.next])
        passed = self._behind and depth >= 0.0 and float(np.linalg.norm(away)) < _REACH
        # Behind no plane where one was just passed: on which side of the next one it is, is seen at the next call.
        self._behind = depth < 0.0
        if passed:
            self.next += 1
        return passed

    def take_back(self) -> None:
        """Aim at the last gate again: it was passed by, and is returned for."""
        self.next = max(self.next - 1, 0)
        self._behind = False

    def give_up(self) -> None:
        """Leave the next gate out: it is missed."""
        self.next = min(self.next + 1, self.passages)
        self._behind = False


class GlanceLedger:
    """Seconds for which each gate was looked at on the legs that count, near looks for more.

    Args:
        glances: Of the race.
        frame_rate: Frames per second [Hz].
    """

    def __init__(self, glances: Sequence[Glance], frame_rate: float) -> None:
        self.glances, self._frame_s = tuple(glances), 1.0 / frame_rate
        self.seconds = np.zeros(len(self.glances))
        """(glances,)."""

    def update(self, seen: ArrayInt, distance: Array, leg: int) -> None:
        """Take a frame.

        Args:
            seen: Corners in it of each gate, (gates,).
            distance: To the gates [m], (gates,).
            leg: That is flown.
        """
        worth = self._frame_s * nearness(distance)
        for row, glance in enumerate(self.glances):
            if glance.first <= leg <= glance.last and seen[glance.gate] >= _CORNERS:
                self.seconds[row] += worth[glance.gate]

    def lacking(self, need: float) -> list[tuple[Glance, float]]:
        """Return glances of which some is still to be taken, and how much [s].

        Args:
            need: Of each [s].
        """
        return [(glance, need - done) for glance, done in zip(self.glances, self.seconds.tolist(), strict=True) if need > done]
