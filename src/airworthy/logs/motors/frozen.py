"""Motor commands that stand still while the vehicle moves: of all motors, a log that froze; of one, a motor that did not run.

An autopilot holds a command for some tens of milliseconds, never for a second in moving air. A simulation without noise does in
an exact hover, and hardly moves its commands in slow flight: a part is frozen where they hardly change even from sample to
sample, and only where the gyro still turns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.logs.quality import REST_RATE
from airworthy.logs.record import Log, LogStream

__all__ = ["frozen_parts", "overlap", "stuck_motors"]

BLOCK, BLOCKS = 0.1, 10
"""Commands are looked at in blocks of so many seconds, so many of which, without a gap, are frozen together [s]."""
RANGE, CHANGES = 1e-3, 2
"""Ours: commands that keep within this share of full, and change so often at most, within a second, are frozen."""
FULL = 0.999
"""Commands from here on are at their end, as in `logs.segments`: saturated, not frozen."""
RATE_MIN = 10.0
"""Slower commands do not tell a freeze within a second [Hz]."""
MOVING = 3.0
"""So many times its deviation at rest must a gyro have for a vehicle to move."""
UNKNOWN = 0.5
"""Behind a freeze rotors are as commands make them that nobody knows; ours: five lags of slow rotors [s]."""
MOST = 0.5
"""Share of the usable flight that a motor's commands stand still from which on it did not run, or the column is another."""

Part = tuple[float, float]


def frozen_parts(log: Log) -> tuple[Part, ...]:
    """Return where the commands of all motors stand still while the gyro turns, and what lies just behind [s].

    Args:
        log: Any; without commands or gyro nothing is told.
    """
    if not (log.has("motor_command") and log.has("gyro")):
        return ()
    start, still = _still(log.stream("motor_command"), FULL)
    gyro, found = log.stream("gyro"), []
    needed = max(REST_RATE, MOVING * _rest_deviation(log))
    for part in _runs(start, np.asarray(still.all(axis=1))):
        turns = gyro.values[(gyro.time >= part[0]) & (gyro.time <= part[1])]
        turns = turns[np.isfinite(turns).all(axis=1)]
        if len(turns) > 1 and float(turns.std(axis=0).max()) > needed:
            found.append((part[0] - BLOCK, part[1] + UNKNOWN))
    return tuple(found)


def stuck_motors(log: Log, parts: Sequence[Part]) -> list[str]:
    """Return which motors' commands stand still for most of the flight while others move, a clause each.

    Args:
        log: With motor commands.
        parts: Its usable flight [s].
    """
    stream = log.stream("motor_command")
    start, still = _still(stream)
    inside, rows = _within(start + 0.5 * BLOCK, parts), _within(stream.time, parts)
    if not inside.any() or not rows.any():
        return []
    share = still[inside].mean(axis=0)
    if not np.any(share < MOST):
        return []
    return [f"motor {k + 1}'s commands {_said(stream.values[rows, k])}" for k in np.flatnonzero(share > MOST)]


def overlap(first: Sequence[Part], second: Sequence[Part]) -> float:
    """Return for how long both hold [s].

    Args:
        first: Parts [s].
        second: Parts [s].
    """
    return sum(max(min(b, d) - max(a, c), 0.0) for a, b in first for c, d in second)


def _said(values: Array) -> str:
    if not np.isfinite(values).any():
        return "are missing throughout"
    middle = float(np.median(np.nan_to_num(values)))
    known = values[np.isfinite(values)]
    often = "throughout" if float(np.ptp(known)) < RANGE else "for most of the flight"
    return f"are {100.0 * middle:.3g} % {often}" if middle else f"are 0 {often}"


def _still(stream: LogStream, most: float = np.inf) -> tuple[Array, ArrayAny]:
    """Return when blocks begin [s], (blocks,), and which motors' commands stand still in each, (blocks, motors).

    Args:
        stream: Of commands.
        most: Commands at and above stand still since they are at their end, which is another matter.
    """
    known = np.isfinite(stream.time)
    order = np.argsort(stream.time[known], kind="stable")
    time, values = stream.time[known][order], np.nan_to_num(stream.values[known][order])
    if len(time) < BLOCKS or stream.quality.rate < RATE_MIN:
        return np.zeros(0), np.zeros((0, values.shape[1]), bool)
    number = np.floor((time - time[0]) / BLOCK)
    places = np.flatnonzero(np.diff(number, prepend=-1.0))
    blocks = number[places]
    still = np.zeros((len(blocks), values.shape[1]), bool)
    if len(blocks) < BLOCKS:
        return time[0] + BLOCK * blocks, still
    changed = np.diff(values, axis=0, prepend=values[:1]) != 0.0
    high = _windows(np.maximum.reduceat(values, places)).max(axis=-1)
    low = _windows(np.minimum.reduceat(values, places)).min(axis=-1)
    often = _windows(np.add.reduceat(changed.astype(np.int64), places)).sum(axis=-1)
    whole = blocks[BLOCKS - 1 :] - blocks[: len(blocks) - BLOCKS + 1] == BLOCKS - 1
    held = (high - low < RANGE) & (often <= CHANGES) & (low < most) & whole[:, None]
    for k in range(BLOCKS):
        still[k : k + len(held)] |= held
    return time[0] + BLOCK * blocks, still


def _windows(values: ArrayAny) -> ArrayAny:
    return np.lib.stride_tricks.sliding_window_view(values, BLOCKS, axis=0)


def _runs(start: Array, inside: ArrayAny) -> list[Part]:
    """Return runs of blocks without a gap as parts [s]."""
    chosen = start[inside]
    if not chosen.size:
        return []
    runs = np.split(chosen, np.flatnonzero(np.diff(chosen) > 1.5 * BLOCK) + 1)
    return [(float(run[0]), float(run[-1]) + BLOCK) for run in runs]


def _within(time: Array, parts: Sequence[Part]) -> ArrayAny:
    inside = np.zeros(len(time), bool)
    for a, b in parts:
        inside |= (time >= a) & (time <= b)
    return inside


def _rest_deviation(log: Log) -> float:
    """Return the gyro's deviation before the first command [rad/s]; 0 where there is no rest."""
    stream, gyro = log.stream("motor_command"), log.stream("gyro")
    driven = np.nan_to_num(stream.values).max(axis=1, initial=0.0) > 0.01
    if not driven.any():
        return 0.0
    rest = gyro.values[gyro.time < stream.time[int(np.argmax(driven))]]
    rest = rest[np.isfinite(rest).all(axis=1)]
    # The differences' deviation: somebody may have carried it.
    return float(np.diff(rest, axis=0).std(axis=0).max()) / np.sqrt(2.0) if len(rest) > 2 else 0.0
