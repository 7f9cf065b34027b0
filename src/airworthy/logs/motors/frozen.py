"""Motor commands that stand still while the vehicle moves: of all motors, a log that froze; of one, a motor that did not run,
or a column that hung.

An autopilot holds a command for some tens of milliseconds, never for a second in moving air. A simulation without noise does in
an exact hover, and hardly moves its commands in slow flight: a part is frozen where they hardly change even from sample to
sample, and only where the gyro still turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.logs.quality import REST_RATE
from airworthy.logs.record import Log, LogStream

__all__ = ["StuckPart", "frozen_parts", "overlap", "stuck_motors", "stuck_parts"]

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
STUCK = 2.0
"""Ours: for so long must commands of one motor stand still, while others go on [s]. Hard manoeuvres hold a motor at its
idle for tenths of a second, a fast descent for one."""
LOST, LOST_BLOCKS = 0.01, 4
"""Ours: a motor's command under this share of full, held for so many blocks, is lost where nothing else in the flight comes
near it: firmware idles motors at 4 % and more, and where idle is called 0, hard manoeuvres reach it step by step, and often."""
NEAR = 0.05
"""Ours: share of full by which all other commands of a flight lie above a lost one."""
GOES_ON = 1e-2
"""Ours: share of full by which the commands of another motor change within a second, or it stands nearly still, too."""

Part = tuple[float, float]


@dataclass(frozen=True)
class StuckPart:
    """A part of a flight in which the commands of one motor stand still."""

    motor: int
    """From 0 on."""
    start: float
    """[s]"""
    stop: float
    """[s]"""
    value: float
    """Fraction of full."""

    @property
    def left_out(self) -> Part:
        """What tells nothing: a block before, and until rotors are known again [s]."""
        return self.start - BLOCK, self.stop + UNKNOWN

    @property
    def said(self) -> str:
        """A clause."""
        value = f"{100.0 * self.value:.3g} %" if self.value else "0"
        return f"motor {self.motor + 1}'s are {value} from {self.start:.1f} to {self.stop:.1f} s"


def frozen_parts(log: Log) -> tuple[Part, ...]:
    """Return where the commands of all motors stand still while the gyro turns, and what lies just behind [s].

    Where most motors are off that is the ground, however a column that hung goes on there.

    Args:
        log: Any; without commands or gyro nothing is told.
    """
    if not (log.has("motor_command") and log.has("gyro")):
        return ()
    stream = log.stream("motor_command")
    start, still, _ = _still(stream, FULL)
    needed = _turns_needed(log)
    runs = _runs(start, np.asarray(still.all(axis=1)))
    return tuple((a - BLOCK, b + UNKNOWN) for a, b in runs if _driven(stream, (a, b)) and _turns(log, (a, b), needed))


def stuck_parts(log: Log, parts: Sequence[Part]) -> tuple[StuckPart, ...]:
    """Return where the commands of one motor, or of some, stand still for seconds while others go on and the gyro turns.

    At 0, far below all else in the flight, half a second is enough. Motors that stand still for most of the flight are told by
    `stuck_motors`.

    Args:
        log: Any; without commands or gyro nothing is told.
        parts: Its usable flight [s].
    """
    if not (log.has("motor_command") and log.has("gyro")):
        return ()
    stream = log.stream("motor_command")
    needed, found = _turns_needed(log), []
    for part in _alone_still(stream, parts, BLOCKS, STUCK):
        if _turns(log, (part.start, part.stop), needed):
            found.append(part)
    short = _alone_still(stream, parts, LOST_BLOCKS, LOST_BLOCKS * BLOCK)
    for part in _lost(stream, parts, short):
        known = any(o.motor == part.motor and o.start < part.stop and part.start < o.stop for o in found)
        if not known and _turns(log, (part.start, part.stop), needed):
            found.append(part)
    return tuple(sorted(found, key=lambda part: part.start))


def _alone_still(stream: LogStream, parts: Sequence[Part], count: int, least: float) -> list[StuckPart]:
    """Return where commands of one motor stand still while others go on, of motors that do not for most of the flight.

    Args:
        stream: Of commands.
        parts: The usable flight [s].
        count: Blocks without a gap that stand still together.
        least: Shortest [s].
    """
    start, still, moving = _still(stream, FULL, count)
    found = []
    inside = _within(start + 0.5 * BLOCK, parts)
    most = still[inside].mean(axis=0) > MOST if inside.any() else np.ones(still.shape[1], bool)
    for motor in np.flatnonzero(~most):
        others = np.asarray(np.delete(moving, motor, axis=1).any(axis=1))
        for a, b in _runs(start, still[:, motor] & inside):
            blocks = (start >= a - 0.5 * BLOCK) & (start < b - 0.5 * BLOCK)
            if b - a >= least - 0.5 * BLOCK and others[blocks].mean() > MOST:
                rows = (stream.time >= a) & (stream.time <= b)
                value = float(np.median(np.nan_to_num(stream.values[rows, motor])))
                found.append(StuckPart(int(motor), a, b, value))
    return found


def _lost(stream: LogStream, parts: Sequence[Part], held: Sequence[StuckPart]) -> list[StuckPart]:
    """Return which of some parts hold a command that no motor comes near anywhere else in the flight.

    Args:
        stream: Of commands.
        parts: The usable flight [s].
        held: Where commands of one motor stand still.
    """
    low = [part for part in held if abs(part.value) < LOST]
    if not low:
        return []
    values = np.nan_to_num(stream.values)
    rest = np.repeat(_within(stream.time, parts)[:, None], values.shape[1], axis=1)
    for part in low:
        about = (stream.time >= part.start - BLOCK) & (stream.time <= part.stop + BLOCK)
        rest[:, part.motor] &= ~(about & (np.abs(values[:, part.motor] - part.value) < RANGE))
    lowest = float(np.min(values, where=rest, initial=np.inf))
    return [part for part in low if np.isfinite(lowest) and lowest > part.value + NEAR]


def stuck_motors(log: Log, parts: Sequence[Part]) -> list[str]:
    """Return which motors' commands stand still for most of the flight while others move, a clause each.

    Args:
        log: With motor commands.
        parts: Its usable flight [s].
    """
    stream = log.stream("motor_command")
    start, still, _ = _still(stream)
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


def _driven(stream: LogStream, part: Part) -> bool:
    """Whether over half of the motors are on within a part, or all are off: then something else tells flight."""
    rows = (stream.time >= part[0]) & (stream.time <= part[1])
    on = np.median(np.abs(np.nan_to_num(stream.values[rows])), axis=0) > LOST if rows.any() else np.ones(1, bool)
    return not on.any() or bool(on.mean() > 0.5)


def _turns_needed(log: Log) -> float:
    """Deviation of a gyro above which a vehicle moves [rad/s]."""
    return max(REST_RATE, MOVING * _rest_deviation(log))


def _turns(log: Log, part: Part, needed: float) -> bool:
    """Whether the gyro deviates by more within a part."""
    gyro = log.stream("gyro")
    turns = gyro.values[(gyro.time >= part[0]) & (gyro.time <= part[1])]
    turns = turns[np.isfinite(turns).all(axis=1)]
    return len(turns) > 1 and float(turns.std(axis=0).max()) > needed


def _still(stream: LogStream, most: float = np.inf, count: int = BLOCKS) -> tuple[Array, ArrayAny, ArrayAny]:
    """Return when blocks begin [s], (blocks,), and which motors' commands stand still in each, and which change in the blocks
    about it, (blocks, motors).

    Args:
        stream: Of commands.
        most: Commands at and above, and of rotors that turn both ways at and below its negative, stand still since they are at
            their end, which is another matter.
        count: Blocks that stand still together.
    """
    known = np.isfinite(stream.time)
    order = np.argsort(stream.time[known], kind="stable")
    time, values = stream.time[known][order], np.nan_to_num(stream.values[known][order])
    if len(time) < count or stream.quality.rate < RATE_MIN:
        return np.zeros(0), *np.zeros((2, 0, values.shape[1]), bool)
    number = np.floor((time - time[0]) / BLOCK)
    places = np.flatnonzero(np.diff(number, prepend=-1.0))
    blocks = number[places]
    still, moving = np.zeros((2, len(blocks), values.shape[1]), bool)
    if len(blocks) < count:
        return time[0] + BLOCK * blocks, still, moving
    changed = np.diff(values, axis=0, prepend=values[:1]) != 0.0
    high = _windows(np.maximum.reduceat(values, places), count).max(axis=-1)
    low = _windows(np.minimum.reduceat(values, places), count).min(axis=-1)
    often = _windows(np.add.reduceat(changed.astype(np.int64), places), count).sum(axis=-1)
    whole = blocks[count - 1 :] - blocks[: len(blocks) - count + 1] == count - 1
    held = (high - low < RANGE) & (often <= CHANGES) & (low < most) & (high > -most) & whole[:, None]
    for k in range(count):
        still[k : k + len(held)] |= held
    moving[count // 2 : count // 2 + len(held)] = high - low > GOES_ON
    return time[0] + BLOCK * blocks, still, moving


def _windows(values: ArrayAny, count: int) -> ArrayAny:
    return np.lib.stride_tricks.sliding_window_view(values, count, axis=0)


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
