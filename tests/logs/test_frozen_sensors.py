"""Gyros and accelerometers that show one number in flight, and what only looks so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.logs import Log, LogSource, LogStream, flight_segments, log_checks
from airworthy.logs.frozen_sensors import FrozenSensor, frozen_sensors

RATE = 250.0
TIME = np.arange(0.0, 20.0, 1.0 / RATE)
FLYING = TIME > 3.0
DRAW = np.random.default_rng(2)
GYRO = FLYING[:, None] * 0.5 * np.sin(3.0 * TIME)[:, None] * [1.0, -1.0, 0.3] + DRAW.normal(0.0, 0.01, (len(TIME), 3))
FORCE = np.array([0.0, 0.0, 9.81]) + FLYING[:, None] * DRAW.normal(0.0, 0.2, (len(TIME), 3))
COMMAND = FLYING[:, None] * (0.5 + 0.05 * np.sin(3.0 * TIME[:, None] + np.arange(4.0)))
GAP = (TIME > 10.2) & (TIME < 10.8)
PART = (TIME > 10.0) & (TIME < 11.0)
FLIGHT = [(3.0, 20.0)]


def flown(gyro: Array = GYRO, force: Array = FORCE, command: Array | None = COMMAND) -> Log:
    streams = [LogStream("gyro", TIME, gyro), LogStream("accelerometer", TIME, force)]
    if command is not None:
        streams.append(LogStream("motor_command", TIME, command, stamp="held"))
    return Log("made", tuple(streams), LogSource("made", "", "test"))


def held(values: Array, axes: tuple[int, ...] = (0, 1, 2), to: float | None = None, rows: Array = PART) -> Array:
    out = values.copy()
    for axis in axes:
        out[rows, axis] = values[np.argmax(rows), axis] if to is None else to
    return out


@pytest.mark.parametrize(
    ("log", "kind", "axes"),
    [
        (flown(held(GYRO)), "gyro", "x, y and z"),
        (flown(held(GYRO, (1,))), "gyro", "y"),
        (flown(held(GYRO, to=0.0)), "gyro", "x, y and z"),
        (flown(held(GYRO), command=None), "gyro", "x, y and z"),
        (flown(force=held(FORCE)), "accelerometer", "x, y and z"),
        (flown(force=held(FORCE, (0, 2))), "accelerometer", "x and z"),
    ],
)
def test_what_stands_still_is_named(log: Log, kind: str, axes: str) -> None:
    (found,) = frozen_sensors(log, FLIGHT)
    assert (found.kind, found.axes) == (kind, axes)
    assert (found.start, found.stop) == pytest.approx((10.0, 11.0), abs=0.01)


@pytest.mark.parametrize(("seconds", "told"), [(0.4, True), (0.2, False)])
def test_a_third_of_a_second_is_a_freeze(seconds: float, told: bool) -> None:
    rows = (TIME > 10.0) & (10.0 + seconds > TIME)
    for log in (flown(held(GYRO, rows=rows)), flown(force=held(FORCE, rows=rows))):
        assert bool(frozen_sensors(log, FLIGHT)) is told


def test_both_sensors_may_freeze_at_once_and_before_take_off() -> None:
    both = frozen_sensors(flown(held(GYRO), held(FORCE)), FLIGHT)
    assert [part.kind for part in both] == ["gyro", "accelerometer"]
    (found,) = frozen_sensors(flown(held(GYRO, rows=(TIME > 2.0) & (TIME < 5.0))), FLIGHT)
    assert (found.start, found.stop) == pytest.approx((3.0, 5.0), abs=0.01)


def test_it_is_left_out_and_told() -> None:
    log = flown(held(GYRO))
    segments = flight_segments(log)
    (part,) = [s for s in segments.rejected if s.reason == "frozen gyro"]
    assert (part.start, part.stop) == pytest.approx((10.0, 11.0), abs=0.01)
    assert not any(s.start < 10.9 and s.stop > 10.1 for s in segments.usable)
    (check,) = [c for c in log_checks(log) if c.name == "gyro"]
    assert check.passed is False
    assert check.said.startswith("It shows one number in flight (x, y and z from 10.0 to 11.0 s), while the rest goes on")
    assert not any(c.name == "gyro" for c in log_checks(flown()))


def test_what_only_looks_so_is_none() -> None:
    """Samples that come again and again, one for a tenth of a second; zeros of a simulation without noise, in a straight climb
    and on the ground; a hover in which nothing changes; a part of the ground; a sensor at its end."""
    often = GYRO[np.arange(len(TIME)) // 100 * 100]
    tenth = held(GYRO, rows=(TIME > 10.0) & (TIME < 10.2))
    climb = np.zeros_like(FORCE)
    climb[:, 2] = 9.81 + FLYING * np.sin(3.0 * TIME)
    hover = np.where(PART[:, None], COMMAND[np.argmax(PART)], COMMAND)
    ends = held(held(GYRO, to=3.0), to=3.0, rows=(TIME > 14.0) & (TIME < 15.0))
    for log in (
        flown(),
        flown(often),
        flown(tenth),
        flown(held(GYRO, to=0.0), climb),
        flown(held(GYRO), held(FORCE), hover),
        flown(held(GYRO, rows=(TIME > 1.0) & (TIME < 2.0))),
        flown(ends),
    ):
        assert frozen_sensors(log, FLIGHT) == ()


def test_little_tells_nothing() -> None:
    log = flown(held(GYRO))
    assert frozen_sensors(log, []) == ()
    assert frozen_sensors(replace(log, streams=log.streams[1:]), FLIGHT) == ()
    # A gap is no number that is kept.
    gyro = log.stream("gyro")
    lacking = replace(gyro, time=gyro.time[~GAP], values=gyro.values[~GAP])
    assert frozen_sensors(replace(log, streams=(lacking, *log.streams[1:])), FLIGHT) == ()
    assert FrozenSensor("gyro", "x", 1.0, 2.0) != FrozenSensor("gyro", "y", 1.0, 2.0)
