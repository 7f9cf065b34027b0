"""Gyros and accelerometers that stand still in flight: a bus that hung, a log that repeats the last sample.

A sensor has noise and never shows the same number for long; one that is read more slowly than it is logged repeats a sample for
some milliseconds. A simulation without noise shows zeros where nothing turns, and so is not taken for a sensor that froze.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.logs.quality import GAP_PERIODS, saturated_rows
from airworthy.logs.record import Log, LogStream

__all__ = ["FrozenSensor", "frozen_sensors"]

HELD, TIMES = 0.3, 20.0
"""Ours: a number that a sensor shows for so long [s], and for so many times as long as 95 of 100 others, is frozen."""
USUAL = 95.0
RANGE = 1e-3
"""Share of full by which a motor's command changes meanwhile, as in `motors.frozen`."""
OTHER = {"gyro": "accelerometer", "accelerometer": "gyro"}


@dataclass(frozen=True)
class FrozenSensor:
    """A part in which a sensor shows one number."""

    kind: str
    axes: str
    """"x", "x, y and z"."""
    start: float
    """[s]"""
    stop: float
    """[s]"""


def frozen_sensors(log: Log, parts: Sequence[tuple[float, float]]) -> tuple[FrozenSensor, ...]:
    """Return where a gyro or an accelerometer stands still in flight while commands or the other sensor go on.

    Args:
        log: Any.
        parts: Its flights [s].
    """
    found = []
    for kind in OTHER:
        if log.has(kind) and parts:
            found += _of(log, log.stream(kind), parts)
    return tuple(sorted(found, key=lambda part: part.start))


def _of(log: Log, stream: LogStream, parts: Sequence[tuple[float, float]]) -> list[FrozenSensor]:
    held: dict[tuple[float, float], list[int]] = {}
    zero: dict[tuple[float, float], int] = {}
    for axis, column in enumerate(stream.values.T):
        for (start, stop), value in _runs(stream, column, parts):
            if value:
                held.setdefault((start, stop), []).append(axis)
            else:
                zero[start, stop] = zero.get((start, stop), 0) + 1
    # Zeros of all axes are no flight without noise where all of the other sensor goes on.
    whole = {part: [0, 1, 2] for part, count in zero.items() if count == 3 and _goes_on(log, OTHER[stream.kind], part).all()}
    return [
        FrozenSensor(stream.kind, _said(axes), *part)
        for part, axes in (held | whole).items()
        if _commands_change(log, part) or _goes_on(log, OTHER[stream.kind], part).any()
    ]


def _runs(stream: LogStream, column: Array, parts: Sequence[tuple[float, float]]) -> list[tuple[tuple[float, float], float]]:
    """Return where a column keeps one number for long in flight, from and to [s], and the number."""
    time, gap = stream.time, GAP_PERIODS / stream.quality.rate if stream.quality.rate else np.inf
    inside = np.zeros(len(time), bool)
    for start, stop in parts:
        inside |= (time >= start) & (time <= stop)
    same = (np.diff(column) == 0.0) & inside[1:] & inside[:-1] & (np.diff(time) >= 0.0) & (np.diff(time) <= gap)
    begins = np.flatnonzero(np.concatenate([[True], ~same]))
    ends = np.concatenate([begins[1:] - 1, [len(column) - 1]])
    flown = inside[begins] & inside[ends]
    begins, ends = begins[flown], ends[flown]
    if not begins.size:
        return []
    lasts = time[ends] - time[begins]
    usual = float(np.percentile(lasts, USUAL))
    long = np.flatnonzero((lasts >= HELD) & (lasts >= TIMES * usual))
    if not long.size:
        return []
    full: ArrayAny = saturated_rows(column)
    return [
        ((float(time[begins[k]]), float(time[ends[k]])), float(column[begins[k]]))
        for k in long
        if not full[begins[k] : ends[k] + 1].all()
    ]


def _goes_on(log: Log, kind: str, part: tuple[float, float]) -> ArrayAny:
    """Whether each column of another stream changes within a part, (k,)."""
    if not log.has(kind):
        return np.zeros(1, bool)
    values = log.stream(kind).between(*part).values
    values = values[np.isfinite(values).all(axis=1)]
    return np.asarray(np.ptp(values, axis=0) > 0.0) if len(values) else np.zeros(1, bool)


def _commands_change(log: Log, part: tuple[float, float]) -> bool:
    if not log.has("motor_command"):
        return False
    values = np.nan_to_num(log.stream("motor_command").between(*part).values)
    return len(values) > 0 and float(np.ptp(values, axis=0).max()) > RANGE


def _said(axes: Sequence[int]) -> str:
    names = ["xyz"[k] for k in axes]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
