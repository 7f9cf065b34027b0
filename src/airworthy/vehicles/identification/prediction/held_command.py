"""Motor commands on an even lattice, and the states of rotors that follow them: exact for held commands.

A state between two stamps, or at a dead time before now, follows in closed form, so that it is continuous in the dead time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array

__all__ = ["HeldCommand"]

SLOWEST = 1e-6
"""Least rate at which a state follows [1/s]; a square response has none at standstill."""
CHUNK = 0.5
"""Stretches of a log that are followed side by side [s]: five time constants of slow motors and more."""
PASSES, PASS_END = 8, 3e-5
"""How often, at most, and the largest move of a state that ends it."""


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
        first = np.broadcast_to(self.values[0], (len(responses), 1, self.values.shape[1]))
        plain = (responses[:, 0] == responses[:, 2]) & ~responses[:, 1].any() & ~responses[:, 3].any()
        linear = np.stack([self._linear(0.5 * float(a + c) + float(b + d)) for a, b, c, d in responses])
        return np.concatenate([first, linear if plain.all() else self._followed(linear, responses)], axis=1)

    def _linear(self, rate: float) -> Array:
        """States after each period of a first-order lag, (n, rotors)."""
        from scipy.signal import lfilter

        keep = float(np.exp(-self.period * rate))
        return np.asarray(lfilter([1.0 - keep], [1.0, -keep], self.values, axis=0, zi=keep * self.values[:1])[0])

    def _followed(self, near: Array, responses: Array) -> Array:
        """States after each period of any response, (responses, n, rotors).

        Chunks are followed side by side, from states near the true ones, and again from where the chunk before them ended,
        until these no longer move: errors decay within a chunk.
        """
        count, rotors = self.values.shape
        length = min(max(round(CHUNK / self.period), 1), count)
        chunks = -(-count // length)
        padded = np.concatenate([self.values, np.repeat(self.values[-1:], chunks * length - count, axis=0)])
        command = padded.reshape(chunks, length, rotors).swapaxes(0, 1)
        begin = np.empty((len(responses), chunks, rotors))
        begin[:, 0] = self.values[0]
        begin[:, 1:] = near[:, length - 1 : count - 1 : length][:, : chunks - 1]
        found = np.empty((length, len(responses), chunks, rotors))
        onward = _stepper(command, self.period, responses)
        for _ in range(PASSES):
            state = begin
            for k in range(length):
                state = onward(state, k, found[k])
            moved = float(np.abs(found[-1, :, :-1] - begin[:, 1:]).max(initial=0.0))
            begin = np.concatenate([begin[:, :1], found[-1, :, :-1]], axis=1)
            if moved < PASS_END:
                break
        return np.moveaxis(found, 0, 2).reshape(len(responses), chunks * length, rotors)[:, :count]

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
    gone = np.exp(-k * elapsed)
    # Of reversed rotors, magnitudes follow; where the sign changes within the step the linear part rules.
    signed = np.where(command < 0.0, -error, error)
    return np.asarray(command + error * gone / np.maximum(1.0 + b * signed * (1.0 - gone) / k, 1e-3))


def _stepper(command: Array, period: float, responses: Array) -> Callable[[Array, int, Array], Array]:
    """Return what takes states over one period into a third array: `followed`, with what does not change computed before.

    Args:
        command: (periods, chunks, rotors).
        period: [s]
        responses: (responses, 4).
    """
    rows = responses.T[:, :, None, None]
    if command.min(initial=0.0) < 0.0 or not np.any(rows[1::2]):

        def plain(state: Array, k: int, out: Array) -> Array:
            out[...] = followed(state, command[k], period, rows)
            return out

        return plain
    rates = [np.maximum(a + 2.0 * b * command[:, None], SLOWEST) for a, b in (rows[:2], rows[2:])]
    gone = [np.exp(-rate * period) for rate in rates]
    error, below = np.empty((2, len(responses), *command.shape[1:]))
    if np.array_equal(rows[:2], rows[2:]):
        bent = rows[1] * (1.0 - gone[0]) / rates[0]

        def onward(state: Array, k: int, out: Array) -> Array:
            np.subtract(state, command[k], out=error)
            np.multiply(error, bent[k], out=below)
            np.add(1.0, below, out=below)
            np.multiply(error, gone[0][k], out=error)
            return np.add(command[k], np.divide(error, below, out=error), out=out)

        return onward
    left = [1.0 - part for part in gone]

    def apart(state: Array, k: int, out: Array) -> Array:
        rise = command[k] >= state
        np.subtract(state, command[k], out=error)
        np.multiply(np.where(rise, rows[1], rows[3]), error, out=below)
        np.multiply(below, np.where(rise, left[0][k], left[1][k]), out=below)
        np.divide(below, np.where(rise, rates[0][k], rates[1][k]), out=below)
        np.maximum(np.add(1.0, below, out=below), 1e-3, out=below)
        np.multiply(error, np.where(rise, gone[0][k], gone[1][k]), out=error)
        return np.add(command[k], np.divide(error, below, out=error), out=out)

    return apart
