"""Motor commands that stand still: all of them for a part of a flight, those of one motor throughout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.logs import Log, LogSource, LogStream, flight_segments, log_checks
from airworthy.logs.motors.frozen import frozen_parts, stuck_motors, stuck_parts
from airworthy.logs.motors.scale import no_flight, wrong_scale
from airworthy.logs.segments import FROZEN, STUCK

RATE = 250.0
TIME = np.arange(0.0, 30.0, 1.0 / RATE)
FLYING = TIME > 3.0
GYRO = FLYING[:, None] * 0.5 * np.sin(3.0 * TIME)[:, None] * [1.0, -1.0, 0.3]
COMMAND = FLYING[:, None] * (0.5 + 0.05 * np.sin(3.0 * TIME[:, None] + np.arange(4.0)))
"""New every 4 ms."""
HELD = (TIME > 12.0) & (TIME < 15.0)


def flown(command: Array, gyro: Array = GYRO) -> Log:
    force = np.tile([0.0, 0.0, 9.81], (len(TIME), 1))
    streams = (
        LogStream("gyro", TIME, gyro),
        LogStream("accelerometer", TIME, force),
        LogStream("motor_command", TIME, command, stamp="held"),
    )
    return Log("made", streams, LogSource("made", "", "test"))


def frozen(command: Array = COMMAND) -> Array:
    return np.where(HELD[:, None], command[np.argmax(HELD)], command)


def test_a_freeze_is_no_usable_flight() -> None:
    command = frozen()
    command[np.searchsorted(TIME, 13.5)] += 1e-4  # a step back and forth is none
    log = flown(command)
    (part,) = frozen_parts(log)
    # Blocks of a tenth of a second, one before, half a second of rotors that nobody knows behind.
    assert part[0] == pytest.approx(12.0, abs=0.2)
    assert part[1] == pytest.approx(15.5, abs=0.2)
    segments = flight_segments(log)
    assert [s.reason for s in segments.rejected if 11.0 < s.start < 16.0] == [FROZEN]
    assert not any(s.start < 14.9 and s.stop > 12.2 for s in segments.usable)
    (check,) = [c for c in log_checks(log) if c.name == "motor commands"]
    assert check.passed is False
    assert check.value == pytest.approx(3.5, abs=0.3)
    assert "Those of all motors stand still for" in check.said


def test_what_is_held_otherwise_is_no_freeze() -> None:
    """Commands held for 20 ms as slow autopilots do; for half a second; a vehicle that stands still in the air."""
    slow = COMMAND[np.arange(len(TIME)) // 5 * 5]
    half = np.where(((TIME > 12.0) & (TIME < 12.5))[:, None], COMMAND[3000], COMMAND)
    hover = np.where(FLYING[:, None], 0.5, 0.0) * np.ones(4)
    still = np.random.default_rng(0).normal(0.0, 0.005, GYRO.shape)
    # Slow and without noise: 1e-5 within a second, but new each time.
    smooth = FLYING[:, None] * (0.5 + 1e-5 * np.sin(TIME))[:, None] * np.ones(4)
    for log in (flown(COMMAND), flown(slow), flown(half), flown(hover, still), flown(smooth)):
        assert frozen_parts(log) == ()
        assert not any(c.name == "motor commands" for c in log_checks(log))
    # A noisy gyro tells no motion.
    assert frozen_parts(flown(hover, 20.0 * still)) == ()


def test_commands_that_never_change_are_named_and_kept() -> None:
    """Nothing usable would be left to say it of: what fits a vehicle refuses them."""
    log = flown(np.where(FLYING[:, None], 0.5, 0.0) * np.ones(4))
    assert flight_segments(log).usable_time == pytest.approx(26.2, abs=0.1)
    assert any(c.name == "motor commands" and c.passed is False for c in log_checks(log))


@pytest.mark.parametrize(
    ("rows", "value", "said"),
    [
        (TIME >= 0.0, 0.0, "motor 3's commands are 0 throughout"),
        (TIME >= 0.0, np.nan, "motor 3's commands are missing throughout"),
        (TIME > 3.0, 0.5, "motor 3's commands are 50 % throughout"),
        (TIME > 8.0, 0.5, "motor 3's commands are 50 % for most of the flight"),
    ],
)
def test_a_motor_that_stands_still_is_named(rows: Array, value: float, said: str) -> None:
    command = COMMAND.copy()
    command[rows, 2] = value
    log = flown(command)
    parts = [(s.start, s.stop) for s in flight_segments(log).usable]
    assert stuck_motors(log, parts) == [said]
    assert any(c.name == "motor commands" and said[1:] in c.said for c in log_checks(log))
    assert stuck_motors(flown(COMMAND), parts) == []


@pytest.mark.parametrize(("value", "said"), [(0.0, "0"), (np.nan, "0"), (0.5, "50 %")])
def test_a_motor_that_stands_still_for_a_part_is_named_and_left_out(value: float, said: str) -> None:
    command = COMMAND.copy()
    command[(TIME > 12.0) & (TIME < 17.0), 2] = value
    command[(TIME > 20.0) & (TIME < 23.0), 0] = 0.3
    log = flown(command)
    segments = flight_segments(log)
    first, second = [s for s in segments.rejected if s.reason.startswith(STUCK)]
    assert (first.reason, second.reason) == ("frozen commands of motor 3", "frozen commands of motor 1")
    # A block of a tenth of a second before, half a second of a rotor that nobody knows behind.
    assert (first.start, first.stop) == pytest.approx((12.0, 17.5), abs=0.2)
    assert not any(s.start < 16.9 and s.stop > 12.1 for s in segments.usable)
    assert segments.usable_time == pytest.approx(26.2 - 5.6 - 3.6, abs=0.3)
    (check,) = [c for c in log_checks(log) if c.name == "motor commands"]
    assert check.passed is False
    # To a block.
    assert check.said.startswith(
        f"Commands stand still: motor 3's are {said} from 12.1 to 17.0 s, motor 1's are 30 % from 20.1 to 23.0 s"
    )
    assert frozen_parts(log) == ()
    assert stuck_parts(log, [(3.0, 11.0)]) == ()
    assert stuck_motors(log, [(s.start, s.stop) for s in segments.usable]) == []


def test_a_motor_that_stands_still_otherwise_is_not_stuck() -> None:
    """At its idle in a hard manoeuvre, at full, at full backwards; in a hover; where nothing turns; in coarse steps."""
    part = (TIME > 12.0) & (TIME < 17.0)

    def held(value: float, rows: Array = part, command: Array = COMMAND) -> Array:
        out = command.copy()
        out[rows, 2] = value
        return out

    hover = np.where(part[:, None], 0.5 + 1e-3 * np.sin(9.0 * TIME[:, None] + np.arange(4.0)), COMMAND)
    quiet = np.where(part[:, None], 0.0, GYRO)
    coarse = FLYING[:, None] * np.round(0.5 + 0.004 * np.sin(0.7 * TIME[:, None] + np.arange(4.0)), 2)
    for log in (
        flown(held(0.05, (TIME > 12.0) & (TIME < 13.8))),
        flown(held(1.0)),
        flown(held(-1.0)),
        flown(held(0.5, command=hover)),
        flown(held(0.5), quiet),
        flown(coarse),
    ):
        whole = [(s.start, s.stop) for s in flight_segments(log).flown]
        assert stuck_parts(log, whole) == ()
        assert not any(s.reason.startswith(STUCK) for s in flight_segments(log).rejected)


@pytest.mark.parametrize("value", [0.0, np.nan])
@pytest.mark.parametrize("seconds", [0.6, 1.5])
def test_a_command_that_is_lost_for_half_a_second_is_named_and_left_out(value: float, seconds: float) -> None:
    command = COMMAND.copy()
    command[(TIME > 12.0) & (12.0 + seconds > TIME), 1] = value
    command[(TIME > 20.0) & (TIME < 20.7), 3] = value
    log = flown(command)
    first, second = [s for s in flight_segments(log).rejected if s.reason.startswith(STUCK)]
    assert (first.reason, second.reason) == ("frozen commands of motor 2", "frozen commands of motor 4")
    assert (first.start, first.stop) == pytest.approx((12.0, 12.5 + seconds), abs=0.2)
    (check,) = [c for c in log_checks(log) if c.name == "motor commands"]
    assert check.said.startswith("Commands stand still: motor 2's are 0 from 12.1 to 1")


def test_a_motor_at_an_idle_of_nothing_is_not_lost() -> None:
    """Where idle is called 0 hard manoeuvres come to it step by step, or touch it elsewhere; a landing shuts all off."""
    held = np.abs(TIME - 12.5) < 0.4
    ramp, touched, landed = COMMAND.copy(), COMMAND.copy(), COMMAND.copy()
    slope = np.clip((np.abs(TIME - 12.5) - 0.4) / 0.1, 0.0, 1.0)
    ramp[:, 1] *= slope
    touched[held | (np.abs(TIME - 20.0) < 0.05), 1] = 0.0
    landed[TIME > 25.0] = 0.0
    # Of another motor: both have one idle.
    other = COMMAND.copy()
    other[held, 1] = 0.0
    other[np.abs(TIME - 20.0) < 0.05, 2] = 0.0
    for command in (ramp, touched, landed, other):
        assert not any(s.reason.startswith(STUCK) for s in flight_segments(flown(command)).rejected)


@pytest.mark.parametrize(("low", "high"), [(0.0, 748.0), (1000.0, 2000.0), (0.0, 100.0)])
def test_commands_without_their_scale_are_named(low: float, high: float) -> None:
    log = flown(low + (high - low) * COMMAND)
    most = low + (high - low) * COMMAND.max()
    said = f"otor commands go to {most:.4g}, expected 0 to 1: give their scale, or their unit, in the log's map"
    assert any(c.name == "motor commands" and c.passed is False and said in c.said for c in log_checks(log))
    assert no_flight(log) == f"no second of it is usable flight: m{said}"
    # A little beyond full is no other scale.
    assert wrong_scale(flown(1.2 * COMMAND / COMMAND.max())) == ""


def test_a_second_is_one_without_a_gap() -> None:
    """Half a second of held commands on either side of a gap is none, however alike both are."""
    command = COMMAND.copy()
    rows = (TIME > 12.0) & (TIME < 15.0)
    command[rows] = command[np.argmax(rows)]
    log = flown(command)
    stream = log.stream("motor_command")
    kept = (TIME < 12.5) | (TIME > 14.5)
    short = replace(log, streams=(*log.streams[:2], replace(stream, time=TIME[kept], values=command[kept])))
    assert frozen_parts(short) == ()
    assert len(frozen_parts(log)) == 1


def test_the_ground_is_no_freeze_where_one_column_hangs() -> None:
    """There the others are off; somebody carries the vehicle to its place."""
    command = COMMAND.copy()
    command[:, 1] = 0.5
    turns = np.where(FLYING[:, None], GYRO, 0.2 * np.sin(5.0 * TIME)[:, None])
    log = flown(command, turns)
    assert frozen_parts(log) == ()
    said = [c.said for c in log_checks(log) if c.name == "motor commands"]
    assert said == ["Motor 2's commands are 50 % throughout, while others change: it did not run, or its column is another."]
    # In flight it is one, beside a motor that is off, too.
    failed = np.where(HELD[:, None], command[np.argmax(HELD)], command) * [1.0, 0.0, 1.0, 1.0]
    assert len([part for part in frozen_parts(flown(failed, turns)) if part[0] > 3.0]) == 1


def test_slow_commands_tell_no_freeze() -> None:
    log = flown(COMMAND)
    slow = log.stream("motor_command")
    slow = replace(slow, time=slow.time[::50], values=frozen()[::50])
    assert frozen_parts(replace(log, streams=(*log.streams[:2], slow))) == ()
