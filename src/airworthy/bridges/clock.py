"""The clock of a link: as fast as both sides answer, at wall-clock time, or at a stated multiple of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

__all__ = ["ClockMode", "Lateness", "LinkClock"]

ClockMode = Literal["lockstep", "real", "scaled"]


@dataclass(frozen=True)
class Lateness:
    """By how much steps began after they were due [s]; all zero in lockstep, where nothing is ever due."""

    steps: int
    median: float
    p99: float
    most: float
    late: int
    """Steps that began more than a control period late."""

    def sentence(self) -> str:
        """Return it in words."""
        if not self.steps:
            return "lockstep: no step is ever late"
        figures = ", ".join(f"{name} {1e3 * value:.2f} ms" for name, value in
                            (("median", self.median), ("p99", self.p99), ("most", self.most)))  # fmt: skip
        return f"{self.steps:,} steps were late by: {figures}; {self.late:,} by more than a control period"


class LinkClock:
    """Says when a step may begin.

    Args:
        mode: "lockstep": at once; "real": when as much wall-clock time has passed; "scaled": when `factor` times less has.
        period: Of control [s].
        factor: Simulated over wall-clock time, of mode "scaled".
        now: Wall-clock time [s], monotonic.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        mode: ClockMode,
        period: float,
        factor: float = 1.0,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ):
        self.mode, self._period = mode, period
        self._factor = factor if mode == "scaled" else 1.0
        self._now, self._sleep = now, sleep
        self._start: tuple[float, float] | None = None
        self._late: list[float] = []

    def begin(self, simulated: float) -> None:
        """Wait until the step at a simulated time [s] is due, and measure how late it begins."""
        if self.mode == "lockstep":
            return
        now = self._now()
        if self._start is None:
            self._start = (now, simulated)
        due = self._start[0] + (simulated - self._start[1]) / self._factor
        if now < due:
            self._sleep(due - now)
        self._late.append(max(self._now() - due, 0.0))

    def lateness(self) -> Lateness:
        """Return how late steps have been so far."""
        late = np.array(self._late)
        if not late.size:
            return Lateness(0, 0.0, 0.0, 0.0, 0)
        median, p99 = np.percentile(late, (50.0, 99.0))
        over = int((late > self._period / self._factor).sum())
        return Lateness(late.size, float(median), float(p99), float(late.max()), over)
