"""Commands that act some time after what they answer was seen."""

from __future__ import annotations

from collections import deque
from math import isfinite
from typing import Any

from airworthy.core.errors import AirworthyError
from airworthy.simulation.simulator import Simulator

__all__ = ["LATENCY_MAX", "CommandDelay"]

LATENCY_MAX = 2.0
"""[s]"""


class CommandDelay:
    """Steps a simulator with commands that act later: of a tick at t, at t + latency.

    Whole control periods of the latency wait in a queue, the rest is the simulator's own delay. A flight begins with its first
    command at once: before it, the vehicle is taken to have been commanded the same.

    Args:
        simulator: Stepped from now on through `step`.
        latency: [s]; taken in whole physics steps.

    Raises:
        AirworthyError: It is negative or longer than `LATENCY_MAX`, or longer than a control period that is no whole number of
            physics steps.
    """

    def __init__(self, simulator: Simulator, latency: float = 0.0):
        if not (isfinite(latency) and 0.0 <= latency <= LATENCY_MAX):
            raise AirworthyError(f"A command's latency is {latency} s; expected 0 to {LATENCY_MAX:g}.")
        config = simulator.config
        steps, period = round(latency * config.physics_rate), config.physics_rate / config.control_rate
        if steps >= int(period) and period != int(period):
            raise AirworthyError(
                f"A command's latency of {latency:g} s is longer than a control period, which is {period:g} physics steps:"
                " choose a physics_rate that is a multiple of the control_rate."
            )
        self._simulator, self._rest = simulator, steps % int(period)
        self._waiting: deque[Any] = deque(maxlen=steps // int(period) + 1)

    def step(self, command: Any) -> None:
        """Advance by a control period; `command` is that of now."""
        first = not self._waiting
        self._waiting.append(command)
        acting = self._waiting[0]
        self._simulator.set_command(acting, None if first or not self._rest else self._rest)
        self._simulator.step()
