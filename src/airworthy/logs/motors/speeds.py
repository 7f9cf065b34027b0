"""Channels of measured motor speeds that do not measure: dead, frozen, halved, in other units, or of a motor that failed."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.logs.record import Log
from airworthy.logs.segments import LogSegments

SPEED_MAX = 8000.0
"""Ours: no rotor of a multirotor turns faster [rad/s], 76,000 rpm; numbers above are rpm."""
_HALF = (0.42, 0.58)
"""Ours: share of the other motors' speed over command that a sensor has which counts every other pulse."""
_ALIKE = 0.15
"""Ours: spread of the mean commands within which speeds of motors can be compared."""
_STOPPED, _DRIVEN, _STOPPED_TIME = 0.05, 0.1, 0.2
"""Ours: a motor has stopped below this share of its usual speed, at a command above this, for so long [s]."""


def speed_faults(log: Log, segments: LogSegments) -> list[str]:
    """Return what is wrong with measured speeds of motors, the rest of a sentence each.

    Args:
        log: With motor speeds.
        segments: Its parts; speeds are judged in the air.
    """
    stream = log.stream("motor_speed")
    flying = np.zeros(len(stream.time), bool)
    for span in segments.flown:
        flying |= (stream.time >= span.start) & (stream.time <= span.stop)
    speed = np.abs(stream.values[flying]) if flying.any() else np.abs(stream.values)
    time = stream.time[flying] if flying.any() else stream.time
    dead = [k for k, column in enumerate(speed.T) if not np.any(np.nan_to_num(column))]
    frozen = [k for k, column in enumerate(speed.T) if k not in dead and len(column) > 9 and np.nanstd(column) == 0.0]
    command = _commands(log, time, speed.shape[1])
    found = []
    if dead:
        found.append(f"speed of motor {_listed(dead)} is always 0")
    if frozen:
        found.append(f"speed of motor {_listed(frozen)} never changes")
    rest = [k for k in range(speed.shape[1]) if k not in dead and k not in frozen]
    if half := _halved(speed, command, rest):
        found.append(f"speed of motor {_listed(half)} is half of the others' at like commands")
    found += [f"motor {k + 1} stops at {at:.2f} s" for k in rest if (at := _failure(time, speed[:, k], command, k)) is not None]
    if rest and float(np.nanmax(speed[:, rest], initial=0.0)) > SPEED_MAX:
        found.append(f"speeds reach {float(np.nanmax(speed[:, rest])):,.0f} rad/s, which are rpm")
    return found


def _listed(motors: list[int]) -> str:
    return ", ".join(str(k + 1) for k in motors)


def _commands(log: Log, time: Array, count: int) -> Array | None:
    """Commands held at times, (n, motors); None where they are not of these motors."""
    if not log.has("motor_command"):
        return None
    stream = log.stream("motor_command")
    if stream.values.shape[1] != count or len(stream.time) < 2 or np.any(np.diff(stream.time) < 0.0):
        return None
    index = np.clip(np.searchsorted(stream.time, time, side="right") - 1, 0, len(stream.time) - 1)
    return np.nan_to_num(np.abs(stream.values[index]))


def _halved(speed: Array, command: Array | None, rest: list[int]) -> list[int]:
    if len(rest) < 3 or command is None:
        return []
    mean, driven = np.nanmean(speed[:, rest], axis=0), command[:, rest].mean(axis=0)
    if not driven.min() > (1.0 - _ALIKE) * driven.max() or driven.max() <= 0.0:
        return []
    share = mean / np.median(mean)
    return [rest[k] for k in np.flatnonzero((share > _HALF[0]) & (share < _HALF[1]))]


def _failure(time: Array, speed: Array, command: Array | None, motor: int) -> float | None:
    """First time at which a driven motor stands, and keeps standing for a while [s]."""
    if command is None or len(time) < 2:
        return None
    usual = float(np.nanmedian(speed))
    stands: ArrayAny = (speed < _STOPPED * usual) & (command[:, motor] > _DRIVEN)
    edges = np.diff(np.concatenate([[0], stands.astype(np.int8), [0]]))
    starts, stops = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    long = time[stops] - time[starts] > _STOPPED_TIME
    return float(time[starts[long][0]]) if long.any() else None
