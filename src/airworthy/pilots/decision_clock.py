"""When a pilot that decides at a rate of its own decides, flight by flight."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import ArrayBool, ArrayFloat

__all__ = ["DecisionClock"]

# Ours: the clock is a sum of physics steps, and rounds; a tick missed by rounding would come a whole period late.
_EARLY = 1e-3
"""Of a period: by as much the clock of a tick may be early."""


class DecisionClock:
    """Tells which flights have begun and which are to decide now.

    Args:
        rate: Decisions per second [Hz].
        env_count: Flights.
    """

    def __init__(self, rate: float, env_count: int):
        self._rate = rate
        self._tick = np.full(env_count, -1, np.int64)
        # Any time is earlier: the first call begins a flight everywhere.
        self._time = np.full(env_count, np.inf)

    def at(self, time: ArrayFloat) -> tuple[ArrayBool, ArrayBool]:
        """Return which flights have begun since the call before, and which are to decide, (env,) each.

        Args:
            time: Since the start of each flight [s], (env,).
        """
        begun = time < self._time
        tick = np.floor(time * self._rate + _EARLY).astype(np.int64)
        due = begun | (tick != self._tick)
        self._time, self._tick = np.array(time), tick
        return begun, due
