"""The clock of a link: as fast as both sides answer, at wall-clock time, or at a stated multiple of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import numpy as np

__all__ = ["ClockMode", "Lateness", "LinkClock", "Thinned"]

ClockMode = Literal["lockstep", "real", "scaled"]


Item = TypeVar("Item")


class Thinned(Generic[Item]):
    """Of a row without end some that stand evenly in it: every one at first, every second once they are too many, and so on.

    Args:
        most: That are kept.
    """

    def __init__(self, most: int = 100_000):
        self._most, self._every = most, 1
        self.count = 0
        """That were added."""
        self.kept: list[Item] = []

    def add(self, item: Item) -> None:
        """Add the next one."""
        if self.count % self._every == 0:
            self.kept.append(item)
            if len(self.kept) > self._most:
                del self.kept[1::2]
                self._every *= 2
        self.count += 1


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
        # A day at 960 Hz has 83 million steps.
        self._late: Thinned[float] = Thinned()
        self._most, self._over = 0.0, 0

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
        late = max(self._now() - due, 0.0)
        self._late.add(late)
        self._most, self._over = max(self._most, late), self._over + (late > self._period / self._factor)

    def lateness(self) -> Lateness:
        """Return how late steps have been so far; percentiles of more than 100,000 are those of an even part of them."""
        if not self._late.count:
            return Lateness(0, 0.0, 0.0, 0.0, 0)
        median, p99 = np.percentile(self._late.kept, (50.0, 99.0))
        return Lateness(self._late.count, float(median), float(p99), self._most, self._over)
