"""What is measured of flights that are judged a piece at a time: nothing of what came after a race's end counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt

__all__ = ["FlightMeasures", "Measure"]


@dataclass(frozen=True)
class Measure:
    """What is measured of all flights at a command."""

    step: int
    """Samples since arming."""
    speed: Array
    """[m/s], (flights,)."""
    error: Array | float = 0.0
    """Distance from the plan in force [m], (flights,); 0: there is none that is known here."""


class FlightMeasures:
    """The largest of what was measured of each flight, and the length of its path, up to the end of its race."""

    def __init__(self, flights: int) -> None:
        self.error, self.speed, self.length = np.zeros(flights), np.zeros(flights), np.zeros(flights)

    def add(self, racing: ArrayBool, last: ArrayInt, measures: Sequence[Measure], path: Array, begun: int) -> None:
        """Take in a piece of flight.

        Args:
            racing: Whose race had not ended before, (flights,).
            last: Sample with which each race ends, or the last one, (flights,).
            measures: Of the piece.
            path: Positions at its samples, the first of which is the last before it [m], (samples, flights, 3).
            begun: Number of that sample.
        """
        for measure in measures:
            counts = racing & (measure.step <= last)
            self.error = np.where(counts, np.maximum(self.error, measure.error), self.error)
            self.speed = np.where(counts, np.fmax(self.speed, measure.speed), self.speed)
        steps = np.linalg.norm(np.diff(path, axis=0), axis=2)
        ends = begun + 1 + np.arange(len(steps))[:, None]
        # One after the other: a sum's order depends on how many flights there are, and its bits with it.
        self.length += np.cumsum(np.where(racing & (ends <= last), steps, 0.0), axis=0)[-1]
