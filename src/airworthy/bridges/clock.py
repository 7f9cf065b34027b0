"""The clock of a link: as fast as both sides answer, at wall-clock time, or at a stated multiple of it."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import numpy as np

__all__ = ["FACTORS", "AutomaticFactor", "ClockMode", "Lateness", "LinkClock", "Thinned", "punctual"]

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


FACTORS = (0.01, 1000.0)
"""Smallest and largest factor of a clock."""
WINDOW = 1.0
"""Over which frames are counted [s] (FlightGoggles; spec/flightgoggles 7)."""
_KEPT_UP = 55.0 / 60.0
"""Of a camera's rate, the frames per second at which simulated time runs at wall-clock time: of FlightGoggles' 60 Hz its 55."""


class AutomaticFactor:
    """The factor at which frames come at their rate in simulated time, as FlightGoggles sets it: fps / 55 of 60 Hz cameras.

    Frames are counted over windows of wall-clock time; a window without any says nothing, and the factor stays. It begins at 1.

    Args:
        rate: Of the camera, in simulated time [Hz].
        now: Wall-clock time [s], monotonic.
    """

    def __init__(self, rate: float, now: Callable[[], float] = time.monotonic):
        self._rate, self._now = rate, now
        self._begin: float | None = None
        self._frames = 0
        self.value = 1.0
        self.set: list[float] = []
        """Every factor that was set, in order; the last 100,000."""

    def update(self, frames: int) -> bool:
        """Take how many frames there have been so far; whether a window has ended, and a factor was set."""
        now = self._now()
        if self._begin is None:
            self._begin, self._frames = now, frames
            return False
        spent, made = now - self._begin, frames - self._frames
        if spent < WINDOW:
            return False
        self._begin, self._frames = now, frames
        if not made:
            return False
        self.value = min(max(made / spent / (self._rate * _KEPT_UP), FACTORS[0]), FACTORS[1])
        self.set.append(self.value)
        del self.set[:-100_000]
        return True

    def sentence(self) -> str:
        """Return what was set, in words."""
        if not self.set:
            return "clock factor: 1, since no window of a second with frames has passed"
        return (
            f"clock factor: set {len(self.set):,} times by frames per second, {min(self.set):.3g} to {max(self.set):.3g},"
            f" at last {self.value:.3g}"
        )


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
        self.behind = 0.0
        """By how much the newest step began after it was due [s]."""

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
        late = self.behind = max(self._now() - due, 0.0)
        self._late.add(late)
        self._most, self._over = max(self._most, late), self._over + (late > self._period / self._factor)

    @property
    def factor(self) -> float:
        """Simulated over wall-clock time; in lockstep 1, and of no meaning."""
        return self._factor

    def scale(self, factor: float, simulated: float) -> None:
        """Go on at another factor, from a simulated time [s] on, which is due now: what is late is not made up for."""
        self._factor, self._start = factor, (self._now(), simulated)

    def lateness(self) -> Lateness:
        """Return how late steps have been so far; percentiles of more than 100,000 are those of an even part of them."""
        if not self._late.count:
            return Lateness(0, 0.0, 0.0, 0.0, 0)
        median, p99 = np.percentile(self._late.kept, (50.0, 99.0))
        return Lateness(self._late.count, float(median), float(p99), self._most, self._over)


_SWITCH = 1e-4
"""After which a thread of Python lets another one go on that waits [s]: of its default, 5 ms, five control periods long, steps
would be late where pictures are read beside them."""


@contextmanager
def punctual() -> Iterator[None]:
    """Keep the interpreter from making steps late: garbage is not looked for in what is loaded by now, which takes 30 ms, and
    threads let each other go on at once."""
    switch, frozen = sys.getswitchinterval(), gc.get_freeze_count()
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(_SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(switch)
        if not frozen:  # else a program has frozen something itself, which cannot be told apart
            gc.unfreeze()
