"""Whether a vehicle was in the air, where a log has neither commands nor events: by what its sensors and poses show."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.logs.quality import REST_RATE
from airworthy.logs.record import Log, LogStream

BLOCK_TIME = 1.0
"""Motion is judged over blocks of this length [s]."""
REST_FORCE = 0.2
"""Largest deviation of a specific force at rest [m/s^2]; ours: ten times the noise of a small accelerometer at 100 Hz."""
REST_REACH = 0.1
"""Largest way within a block at rest, and height above the lowest rest that is no rest any more [m]; ours: ten times what
motion capture and filters of poses wander."""


def in_motion(log: Log, clock: Array) -> ArrayAny:
    """Return where a vehicle with known positions moves, or is above where it rested, (n,).

    A block is in motion if a gyro deviates by over 0.02 rad/s, a specific force by over 0.2 m/s^2, or a position by over 0.1 m.
    Quiet blocks between two others are flight, too, where their height is over 0.1 m above the lowest of all quiet ones.

    Args:
        log: The log.
        clock: Ascending times [s], (n,).
    """
    if not log.has("position") or not len(clock):
        return np.zeros(len(clock), bool)
    first = float(clock[0])
    block = np.floor((clock - first) / BLOCK_TIME).astype(np.int64)
    place = log.stream("position")
    moving = _spread(place, first, block, np.ptp) > REST_REACH
    for kind, most in (("gyro", REST_RATE), ("accelerometer", REST_FORCE)):
        if log.has(kind):
            moving |= _spread(log.stream(kind), first, block, np.std) > most
    if not moving.any():
        return moving
    at = np.flatnonzero(moving)
    between = ~moving
    between[: at[0]] = between[at[-1] :] = False
    height = _height(place, first, block)
    lowest = np.nanmin(np.where(moving, np.nan, height)) if np.isfinite(height[~moving]).any() else np.nan
    return moving | (between & (height > lowest + REST_REACH))


def _spread(stream: LogStream, first: float, block: ArrayAny, measure: object) -> Array:
    """Return the largest spread of any axis within the block of each time, 0 where there is none, (n,)."""
    return _by_block(stream, first, block, lambda rows: float(np.max(measure(rows, axis=0))), 0.0)  # type: ignore[operator]


def _height(stream: LogStream, first: float, block: ArrayAny) -> Array:
    return _by_block(stream, first, block, lambda rows: float(np.median(rows[:, 2])), np.nan)


def _by_block(stream: LogStream, first: float, block: ArrayAny, measure: object, without: float) -> Array:
    """Return a measure of the rows of a stream in the block of each time, (n,)."""
    good = np.isfinite(stream.values).all(axis=1) & (stream.time >= first)
    if not good.any():
        return np.full(len(block), without)
    number = np.floor((stream.time[good] - first) / BLOCK_TIME).astype(np.int64)
    order = np.argsort(number, kind="stable")
    numbers, starts = np.unique(number[order], return_index=True)
    found = {
        int(n): measure(rows)  # type: ignore[operator]
        for n, rows in zip(numbers, np.split(stream.values[good][order], starts[1:]), strict=True)
        if len(rows)
    }
    wanted, back = np.unique(block, return_inverse=True)
    return np.array([found.get(int(n), without) for n in wanted])[back]
