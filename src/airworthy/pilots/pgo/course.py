"""The way to the goal of each flight: a polynomial from start to goal, of which a part is replaced by what was planned last.

Where a plan takes longer than the part that it replaces, all that comes after is later by as much. Source: spec/planners
section 5, step 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.fast.descent import Fit
from airworthy.pilots.planning.bspline import evaluate_uniform
from airworthy.pilots.planning.reference import References

__all__ = ["Course", "Segment"]

Array = NDArray[np.float64]

_STEP = 0.2
"""Between points at which a segment's length is measured [s]."""
_LEAST_PIECES, _MOST_PIECES = 6, 240


@dataclass(frozen=True, eq=False)
class Segment:
    """A part of a course."""

    begin: float
    """On the course's clock [s]."""
    duration: float
    """[s]"""


class Course:
    """One flight's.

    Args:
        references: Polynomials of all flights.
        place: Which is its own.

    Attributes:
        duration: Of all of it, by now [s].
    """

    def __init__(self, references: References, place: int):
        self._references, self._place = references, place
        self.duration = float(references.duration[place])
        self._control: Array | None = None
        self._interval, self._from, self._to = 1.0, 0.0, 0.0
        self._later = self._last_later = 0.0

    @property
    def reaches_goal(self) -> bool:
        """The part planned last ends at the goal."""
        return self._control is not None and abs(self._to - self.duration) < 1e-3

    def sample(self, time: Array, order: int = 0) -> Array:
        """Positions, or a derivative, at times (m,) of its clock [s]; (m, 3)."""
        before = time <= self._from
        shifted = np.where(before, time - self._later + self._last_later, time - self._later)
        found = self._references.sample([self._place], shifted[None], order)[0]
        if self._control is None:
            return found
        planned = evaluate_uniform(self._control[None], np.array([self._interval]), (time - self._from)[None], order)[0]
        return np.where((~before & (time < self._to))[:, None], planned, found)

    def replace(self, control: Array, interval: float, begin: float, later: float) -> None:
        """Let control points (N, 3) hold from `begin` on [s]; all that follows is later by `later` [s] than it was."""
        self._control, self._interval = control, interval
        self._from, self._to = begin, begin + (len(control) - 3) * interval
        self.duration += later
        self._later += later
        self._last_later = later

    def segment(self, begin: float, reach: float, spacing: float) -> tuple[Segment, Fit]:
        """The part from `begin` on [s] up to `reach` away [m], and points on it about `spacing` apart [m]."""
        left = max(self.duration - begin, 1e-2)
        times = np.append(np.arange(0.0, left, _STEP), left)
        points = self.sample(begin + times)
        away = np.sqrt(((points - points[0]) ** 2).sum(1)) >= reach
        last = int(np.argmax(away)) if away.any() else len(times) - 1
        length = float(np.sqrt((np.diff(points[: last + 1], axis=0) ** 2).sum(1)).sum())
        part = Segment(begin, float(times[last]))
        return part, self.points(part, int(length / spacing))

    def points(self, part: Segment, pieces: int) -> Fit:
        """Points on a part, evenly in time, with the derivatives at its ends."""
        count = min(max(pieces, _LEAST_PIECES), _MOST_PIECES)
        interval = part.duration / count
        ends = part.begin + np.array([0.0, part.duration])
        boundary = np.stack([self.sample(ends, 1), self.sample(ends, 2)])
        at: Array = part.begin + np.arange(count + 1, dtype=np.float64) * interval
        return Fit(self.sample(at), boundary, interval)
