"""Rows of a stand put together: levels at which a command was held, the scale's zero and its drift, noise, ways up and down."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.vehicles.bench.curves import BenchSag
from airworthy.vehicles.bench.table import RUNNING, BenchTable

__all__ = ["BenchTare", "Levels", "levels_of"]

LEVELS_MOST = 80
"""Of a ramp, which holds no command: it is cut into so many parts, in which rows share their noise."""
SETTLING = 0.25
"""First part of a level that is left out: rotors and the scale settle in it."""
ROWS_TO_SETTLE = 6
"""Rows of a level from which on that is done."""
GROUPS = (4, 14)
"""Least and most groups of neighbouring levels; levels of a group share what is wrong with the curve there."""
STILL = 0.02
"""Command under which a motor stands, where no speed tells it."""
LEVELS_MIN = 5
SPAN_MIN = 1.5
"""Largest state over the least, under which no curve is told."""


@dataclass(frozen=True)
class BenchTare:
    """What the scale reads with motors off."""

    start: float
    """In the first row [N]."""
    drift: float
    """From the first row to the last [N]."""
    told: bool
    """Whether motors were off in any row; else 0 is taken."""
    drift_told: bool
    """Whether they were off at distant times; else no drift is taken."""


@dataclass(frozen=True, eq=False)
class Levels:
    """Means of rows at which motors ran at one command."""

    command: Array | None
    """(n,)"""
    speed: Array | None
    """[rad/s], (n,)"""
    thrust: Array | None
    """Of one motor, less the tare [N], (n,)."""
    torque: Array | None
    """Of one motor [N m], (n,)."""
    voltage: Array | None
    """[V], (n,)"""
    rising: Array
    """1 where the state rises from level to level, -1 where it falls, (n,)."""
    group: ArrayInt
    """Of neighbouring levels, from 0, (n,)."""
    tare: BenchTare | None
    noise: float
    """Deviation of a row's thrust within a level, one motor [N]; NaN where levels have too few rows."""

    @property
    def state(self) -> Array:
        """Speed [rad/s], or command where no speed was measured, (n,)."""
        found = self.speed if self.speed is not None else self.command
        assert found is not None
        return found

    def at_voltage(self, sag: BenchSag) -> Levels:
        """Return levels whose commands are those that would do the same at one voltage."""
        assert self.command is not None
        assert self.voltage is not None
        return replace(self, command=self.command * (self.voltage / sag.voltage) ** sag.power)


def levels_of(table: BenchTable) -> Levels:
    """Return the levels of a table.

    Raises:
        AirworthyError: It covers too little, or the scale's zero drifts by more than what motors lift.
    """
    state = table.speed if table.speed is not None else table.command
    assert state is not None
    running = np.isfinite(state) & (state > 0.0)
    if table.command is not None:
        running &= np.nan_to_num(table.command) > (0.0 if table.speed is not None else STILL)
    for other in (table.thrust, table.torque, table.voltage):
        running &= True if other is None else np.isfinite(other)
    thrust, tare = _tared(table, state)
    run = _runs(table, running)
    rows = [_settled(np.flatnonzero(run == k)) for k in range(int(run.max(initial=-1)) + 1)]
    rows = [row for row in rows if len(row)]
    middle = np.array([float(np.mean(state[row])) for row in rows])
    if len(rows) < LEVELS_MIN or not middle.max() >= SPAN_MIN * middle.min():
        said = "speeds" if table.speed is not None else "commands"
        reach = f" from {middle.min():.3g} to {middle.max():.3g}" if rows else ""
        raise AirworthyError(
            f"Bench {table.name!r} holds {len(rows)} levels with motors on, {said}{reach}; expected at least {LEVELS_MIN}, the"
            f" fastest {SPAN_MIN:g} times the slowest: measure from idle to full in ten steps."
        )

    def mean(values: Array | None) -> Array | None:
        return None if values is None else np.array([float(np.mean(values[row])) for row in rows])

    single = None if thrust is None else thrust / table.motors
    return Levels(
        mean(table.command),
        None if table.speed is None else middle,
        mean(single),
        mean(table.torque),
        mean(table.voltage),
        _ways(middle),
        np.arange(len(rows)) * _groups(len(rows)) // len(rows),
        tare,
        _noise(single, rows),
    )


def _tared(table: BenchTable, state: Array) -> tuple[Array | None, BenchTare | None]:
    """Thrust less what the scale reads at rest."""
    if table.thrust is None:
        return None, None
    rest = np.nan_to_num(state, nan=1.0) == 0.0 if table.speed is not None else np.full(len(state), True)
    if table.command is not None:
        rest &= np.nan_to_num(table.command, nan=1.0) <= STILL
    at = np.flatnonzero(rest & np.isfinite(table.thrust))
    if not len(at):
        return table.thrust, BenchTare(0.0, 0.0, False, False)
    place = np.linspace(0.0, 1.0, len(table.thrust)) if table.time is None else _share(table.time)
    apart = float(np.ptp(place[at])) > 0.3
    if apart:
        slope, start = np.polyfit(place[at], table.thrust[at], 1)
        start, drift = float(start), float(slope)
    else:
        start, drift = float(np.median(table.thrust[at])), 0.0
    left = table.thrust - start - drift * place
    lifted = float(np.nanmax(left))
    if abs(drift) >= lifted:
        raise AirworthyError(
            f"Bench {table.name!r}: the scale's zero drifts by {abs(drift):.3g} N while motors lift {lifted:.3g} N at most;"
            " let it warm up, set it to zero and measure again."
        )
    return left, BenchTare(start, drift, True, apart)


def _share(time: Array) -> Array:
    span = float(np.ptp(time))
    return (time - time[0]) / span if span > 0.0 else np.linspace(0.0, 1.0, len(time))


def _runs(table: BenchTable, running: np.ndarray) -> ArrayInt:
    """Return the number of the level of each row, -1 where motors are off or nothing is known."""
    count = int(running.sum())
    if table.command is not None:
        changed = np.concatenate([[True], np.diff(np.nan_to_num(table.command)) != 0.0])
        number = np.cumsum(changed) - 1
        present = np.unique(number[running])
        if len(present) <= max(LEVELS_MOST, count // 10):
            found = np.searchsorted(present, number)
            return np.where(running, np.minimum(found, len(present) - 1), -1)
    parts = min(LEVELS_MOST, count)
    run = np.full(len(running), -1)
    run[running] = np.arange(count) * parts // max(count, 1)
    return run


def _settled(rows: ArrayInt) -> ArrayInt:
    return rows[int(SETTLING * len(rows)) :] if len(rows) >= ROWS_TO_SETTLE else rows


def _ways(state: Array) -> Array:
    """1 on ways up, -1 on ways down, by what lies two levels before and behind."""
    smooth = np.convolve(np.pad(state, 2, mode="edge"), np.full(5, 0.2), "valid")
    return np.where(np.gradient(smooth) >= 0.0, 1.0, -1.0)


def _groups(count: int) -> int:
    return int(np.clip(count // 3, *GROUPS))


def _noise(thrust: Array | None, rows: list[ArrayInt]) -> float:
    """Deviation within levels; neighbours' differences leave slow drifts out."""
    if thrust is None:
        return float("nan")
    found = [np.std(np.diff(thrust[row])) / np.sqrt(2.0) for row in rows if len(row) >= 4]
    return float(np.median(found)) if found else float("nan")


assert STILL < RUNNING
