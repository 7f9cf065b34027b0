"""Motor commands on an even lattice, and the states of rotors that follow them: exact for held commands.

A state between two stamps, or at a dead time before now, follows in closed form, so that it is continuous in the dead time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array
from airworthy.vehicles.identification.prediction.kernels import SLOWEST, follow_commands

__all__ = ["HeldCommand", "followed"]


@dataclass(frozen=True, eq=False)
class HeldCommand:
    """Motor commands, each held for a period of an even lattice."""

    start: float
    """Of the first period [s]."""
    period: float
    """[s]"""
    values: Array
    """Command that is held over each period, fraction of full, (n, rotors)."""
    offset: float = 0.0
    """Of values that are steady rotor states: what of one is there just above a command of 0, whatever the supply."""

    def states(self, responses: Array) -> Array:
        """Return rotor states that follow the commands, at the lattice's edges, exact for held commands.

        Args:
            responses: a, b of rise and a, b of fall, as of `RotorResponse`, states as fractions of full command, (r, 4).

        Returns:
            (r, n + 1, rotors).
        """
        return follow_commands(self.values, responses, self.period)

    def at(self, states: Array, response: Array, time: Array) -> Array:
        """Return rotor states at any times: exact between stamps, and continuous in the time, (..., rotors).

        Args:
            states: Of `states`, of one response, (n + 1, rotors).
            response: That response, (4,).
            time: Less the dead time [s]; before the first command its own is held, (...).
        """
        step = np.clip((time - self.start) / self.period, 0.0, len(self.values) - 1e-9)
        index = step.astype(np.int64)
        elapsed = ((step - index) * self.period)[..., None]
        return followed(states[index], self.values[index], elapsed, response)

    def between(self, start: float, stop: float) -> HeldCommand:
        """Return what is held from a time to another [s], or as much of it as there is."""
        first = int(np.clip((start - self.start) // self.period, 0, len(self.values) - 1))
        last = int(np.clip((stop - self.start) // self.period + 2, first + 1, len(self.values)))
        return replace(self, start=self.start + first * self.period, values=self.values[first:last])

    def mapped(self, offset: float) -> HeldCommand:
        """Return steady rotor states of commands, as `FlightSignals.mapped`."""
        steady = np.sign(self.values) * offset + (1.0 - offset) * self.values
        return replace(self, values=np.where(self.values == 0.0, 0.0, steady), offset=offset)

    def supplied(self, factor: Array) -> HeldCommand:
        """Return steady rotor states under another supply.

        Args:
            factor: On the command of each period, (n, 1).
        """
        still = np.sign(self.values) * self.offset
        return replace(self, values=np.where(self.values == 0.0, 0.0, still + (self.values - still) * factor))

    @property
    def middles(self) -> Array:
        """Middle of each period [s], (n,)."""
        return np.asarray(self.start + self.period * (np.arange(len(self.values)) + 0.5), np.float64)

    def ordered(self, order: tuple[int, ...]) -> HeldCommand:
        """Return the same with other columns: rotor i is commanded by column order[i]."""
        return replace(self, values=self.values[:, list(order)])


def followed(state: Array, command: Array, elapsed: Array | float, response: Array) -> Array:
    """Return rotor states some time after a command took over: the solution of dw/dt = a (c - w) + b (c|c| - w|w|), one sign.

    With e = w - c and k = a + 2 b |c| it is de/dt = -e (k + b e), so e(t) = e E / (1 + b e (1 - E) / k), E = exp(-k t).

    Args:
        state: At first.
        command: That is held.
        elapsed: [s]
        response: a, b of rise and a, b of fall, along the first axis.
    """
    error = state - command
    rise = np.abs(command) >= np.abs(state)
    a, b = np.where(rise, response[0], response[2]), np.where(rise, response[1], response[3])
    if not np.any(b):
        return np.asarray(command + error * np.exp(-a * elapsed))
    k = np.maximum(a + 2.0 * b * np.abs(command), SLOWEST)
    # At standstill a square response has hardly a rate: one less its exponential would be rounding.
    lost = np.expm1(-k * elapsed)
    # Of reversed rotors, magnitudes follow; where the sign changes within the step the linear part rules.
    signed = np.where(command < 0.0, -error, error)
    return np.asarray(command + error * (1.0 + lost) / np.maximum(1.0 - b * signed * lost / k, 1e-3))
