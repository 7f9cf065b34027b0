"""Checks, segments and findings on logs whose truth is known, and their words on the shared ones."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import conjugate, flu_frd_vector, from_rotation_vector, multiply, rotate
from airworthy.logs import Log, LogSource, LogStream, flight_segments, integrate_gyro, log_checks, log_findings, read_log
from airworthy.logs.checks import off_at_rest, refuse_wrong_units, rest_noise
from airworthy.logs.excitation import voltage_means
from airworthy.logs.log_check import LogCheck
from airworthy.vehicles.identification.prediction.signals import flight_signals
from airworthy.vehicles.identification.supply import supply_range

RATE = 250.0


def flight(seconds: float = 40.0, factor: float = 1.0, unit: float = 1.0) -> Log:
    """Five seconds of rest, then a hover that rocks about x and y: specific force is g along the world's vertical.

    Args:
        seconds: Of the whole log.
        factor: Error of the accelerometer's z in flight and at rest.
        unit: Factor on all of the accelerometer: a wrong unit.
    """
    time = np.arange(0.0, seconds, 1.0 / RATE)
    flying = time > 5.0
    angle = np.where(flying, 0.3 * np.sin(2.0 * (time - 5.0)), 0.0)
    rate = np.where(flying, 0.6 * np.cos(2.0 * (time - 5.0)), 0.0)
    zero = np.zeros_like(time)
    attitude = from_rotation_vector(np.stack([angle, zero, zero], axis=1))
    force = rotate(conjugate(attitude), np.tile([0.0, 0.0, 9.81], (len(time), 1))) * [unit, unit, unit * factor]
    command = np.where(flying, 0.5, 0.0)[:, None] * np.ones(4)
    streams = (
        LogStream("gyro", time, np.stack([rate, zero, zero], axis=1)),
        LogStream("accelerometer", time, force),
        LogStream("motor_command", time, command, stamp="held"),
        LogStream("attitude", time[::5] + 0.010, attitude[::5]),
    )
    return Log("made", streams, LogSource("made", "", "test"))


def check(log: Log, name: str):  # type: ignore[no-untyped-def]
    return next(c for c in log_checks(log) if c.name.startswith(name))


def test_gyro_integrates_a_steady_turn() -> None:
    time = np.linspace(0.0, 2.0, 501)
    turned = integrate_gyro(time, np.tile([0.3, -0.5, 1.2], (501, 1)))
    expected = from_rotation_vector(time[:, None] * [0.3, -0.5, 1.2])
    assert np.abs(np.abs(np.sum(turned * expected, axis=1)) - 1.0).max() < 1e-12


def test_a_right_log_passes() -> None:
    log = flight()
    assert check(log, "gravity at rest").value == pytest.approx(9.81)
    assert check(log, "gravity at rest").passed
    # Trapezoids of a sine at 250 Hz: (w dt)^2/12 of it, far below 1e-4.
    assert check(log, "gravity in flight").value == pytest.approx(9.81, rel=1e-4)
    late = check(log, "gyro against attitude")
    assert late.passed
    assert late.value == pytest.approx(1.0, abs=2e-3)
    match = re.search(r"come \+([\d.]+) ms late", late.said)
    assert match is not None
    # The rate jumps as the flight begins, which a trapezoid spreads over half a sample of the gyro: 2 ms.
    assert float(match[1]) == pytest.approx(10.0, abs=2.0)


def test_the_bias_of_a_gyro_does_not_tilt_gravity() -> None:
    """0.03 rad/s over 35 s would turn the vertical by a radian: mean vertical force would fall under 8 m/s^2."""
    log = flight()
    gyro = log.stream("gyro")
    biased = replace(log, streams=(replace(gyro, values=gyro.values + np.array([0.03, -0.02, 0.0])), *log.streams[1:]))
    assert check(biased, "gravity in flight").value == pytest.approx(9.81, rel=1e-4)
    assert check(biased, "gravity in flight").passed


@pytest.mark.parametrize(
    ("force", "crashed"),
    [
        ([0.0, 0.0, -25.0], True),  # against the thrust, over 2.5 g
        ([0.0, 0.0, -24.0], False),
        ([0.0, 25.0, 0.0], True),  # across it
        ([24.0, 0.0, 9.8], False),
        ([0.0, 0.0, 58.0], False),  # along it a strong vehicle has up to 6 g
        ([0.0, 0.0, 59.0], True),
    ],
)
def test_forces_of_a_crash(force: list[float], crashed: bool) -> None:
    log = flight()
    stream = log.stream("accelerometer")
    values = stream.values.copy()
    values[int(30.0 * RATE)] = force
    hit = replace(log, streams=(log.streams[0], replace(stream, values=values), *log.streams[2:]))
    assert flight_segments(hit).crash == (pytest.approx(30.0) if crashed else None)


def test_parts_that_are_left_out_are_half_open() -> None:
    """From START on, up to but without STOP; both are stamps of the log."""
    first, second = flight_segments(flight(), skip=[(25.0, 26.0)]).usable
    assert first.stop == pytest.approx(25.0 - 1 / RATE)
    assert second.start == pytest.approx(26.0)
    (used,) = flight_segments(flight(), use=[(25.0, 28.0)]).usable
    assert (used.start, used.stop) == (pytest.approx(25.0), pytest.approx(28.0 - 1 / RATE))


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        (1 / 9.81, "look in g"),
        (1 / 0.3048, "look in ft/s^2"),
        (2048 / 9.81, "2048 for one g"),
        (4096 / 9.81, "4096 for one g"),
        (1.3, "12.75"),
    ],
)
def test_wrong_units_are_named(unit: float, said: str) -> None:
    found = check(flight(unit=unit), "gravity at rest")
    assert found.passed is False
    assert said in found.said


@pytest.mark.parametrize(
    ("volts", "passed", "said"),
    [
        (15.2, True, "above 15.200 V."),
        (15_200.0, False, "above 15,200 V, expected 1 to 100 V of a supply: the file's numbers look in mV."),
        (0.4, False, "above 0.400 V, expected 1 to 100 V of a supply."),
        (0.0, None, "not measured"),
        (-12.0, False, "The voltage is negative, -12 V in its middle: the sign or the unit is wrong."),
    ],
)
def test_a_supply_has_the_volts_of_one(volts: float, passed: bool | None, said: str) -> None:
    time = np.arange(0.0, 5.0, 0.1)
    log = Log("made", (LogStream("voltage", time, np.full((50, 1), volts)),), LogSource("made", "", "test"))
    found = check(log, "volts of voltage")
    assert found.passed is passed
    assert said in found.said
    if passed is False:
        with pytest.raises(
            AirworthyError, match=r"Log 'made': (Half of the voltage is above|The voltage is) .* Nothing is told\."
        ):
            refuse_wrong_units(log, "Nothing is told.")
    else:
        refuse_wrong_units(log, "Nothing is told.")


def test_an_axis_with_a_wrong_factor_is_found() -> None:
    """Accelerometer z scaled by 0.936 (9.18 for 9.81)."""
    log = flight(factor=0.936)
    assert check(log, "gravity at rest").passed is False
    assert check(log, "gravity in flight").passed is False


def with_gap(log: Log, start: float, stop: float, missing: bool) -> Log:
    """Without the gyro's samples of a time, or with NaN in their place."""
    gyro = log.stream("gyro")
    lost = (gyro.time > start) & (gyro.time < stop)
    cut = replace(gyro, values=np.where(lost[:, None], np.nan, gyro.values))
    cut = cut if missing else replace(gyro, time=gyro.time[~lost], values=gyro.values[~lost])
    return replace(log, streams=(cut, *log.streams[1:]))


@pytest.mark.parametrize("missing", [False, True])
def test_gravity_in_flight_ends_where_the_gyro_lacks(missing: bool) -> None:
    """It turns by 0.6 rad/s there: integrated across the attitude would be a third of a radian off."""
    log = flight()
    log = replace(log, streams=log.streams[:3])
    late = check(with_gap(log, 30.0, 30.6, missing), "gravity in flight")
    assert late.passed
    assert "over 25 s of flight" in late.said
    early = check(with_gap(log, 12.0, 12.6, missing), "gravity in flight")
    assert early.passed is None
    assert early.said.startswith("The gyro lacks 0.6 s at 12.00 s:")
    # A few samples turn nothing far.
    short = check(with_gap(log, 12.0, 12.08, missing), "gravity in flight")
    assert short.passed
    assert "over 35 s of flight" in short.said


def test_rates_in_degrees_are_found() -> None:
    log = flight()
    gyro = log.stream("gyro")
    wrong = replace(log, streams=(replace(gyro, values=np.rad2deg(gyro.values)), *log.streams[1:]))
    found = check(wrong, "gyro against attitude")
    assert found.passed is False
    assert "deg/s" in found.said


def turning(seconds: float = 12.0, noise: float = 0.0) -> Log:
    """A hover without rest that rocks about all axes, as poses of a hundredth of a degree at the gyro's rate see it."""
    time = np.arange(0.0, seconds, 1.0 / RATE)
    # Roll, pitch and yaw by themselves, never far from level.
    rate = np.stack([0.5 * np.cos(2.0 * time), 0.4 * np.cos(3.1 * time), 0.3 * np.cos(1.3 * time)], axis=1)
    attitude = integrate_gyro(time, rate)
    force = np.tile([0.0, 0.0, 9.81], (len(time), 1))
    grain = np.random.default_rng(3).normal(size=(len(time), 3)) * noise
    streams = (
        LogStream("gyro", time, rate),
        LogStream("accelerometer", time, force),
        LogStream("motor_command", time, np.full((len(time), 4), 0.5), stamp="held"),
        LogStream("attitude", time, multiply(attitude, from_rotation_vector(grain))),
    )
    return Log("made", streams, LogSource("made", "", "test"))


def named(log: Log, **values: object) -> Log:
    """Return the log with other values of some kinds."""
    return replace(log, streams=tuple(replace(s, values=values.get(s.kind, s.values)) for s in log.streams))


def test_a_gyro_whose_z_is_down_is_named_and_refused() -> None:
    """The accelerometer is FLU, and no rest is there: attitudes alone tell."""
    log = turning()
    assert check(log, "gyro against attitude").passed
    refuse_wrong_units(log, "Nothing is told.")
    gyro, attitude = log.stream("gyro").values, log.stream("attitude").values
    wrong = named(log, gyro=flu_frd_vector(gyro))
    found = check(wrong, "gyro against attitude")
    assert found.passed is False
    assert found.said.startswith("The gyro's body z is down by attitude: FRD named FLU.")
    with pytest.raises(AirworthyError, match=r"Log 'made': The gyro's body z is down .* Nothing is told\."):
        refuse_wrong_units(wrong, "Nothing is told.")
    # Other attitudes that agree with the gyro clear it.
    right = replace(log.stream("attitude"), label="capture", values=multiply(attitude, [1.0, 0.0, 0.0, 0.0]))
    refuse_wrong_units(replace(log, streams=(*log.streams, right)), "Nothing is told.")
    # A capture system's body may be turned about z: that is no other frame.
    for angle in (90.0, 180.0):
        turned = multiply(attitude, from_rotation_vector([0.0, 0.0, np.deg2rad(angle)]))
        assert check(named(log, attitude=turned), "gyro against attitude").passed
    # Turns about the diagonal of x and y alone leave that open.
    diagonal = np.zeros_like(gyro)
    diagonal[:, :2] = gyro[:, :1]
    turned = multiply(integrate_gyro(log.stream("gyro").time, diagonal), from_rotation_vector([0.0, 0.0, np.pi / 2]))
    assert check(named(log, gyro=diagonal, attitude=turned), "gyro against attitude").passed


def test_attitudes_whose_z_is_down_are_told_from_a_gyros() -> None:
    """They turn the force that holds the vehicle up down; the gyro is not blamed."""
    log = turning()
    attitude = log.stream("attitude").values
    down = check(named(log, attitude=multiply(attitude, [1.0, 0.0, 0.0, 0.0])), "gyro against attitude")
    assert down.passed is False
    assert "attitude's body z is down where those of gyro and accelerometer are up" in down.said
    world = named(log, attitude=multiply([1.0, 0.0, 0.0, 0.0], attitude))
    assert "the world's z is down (NED named ENU)" in check(world, "gyro against attitude").said
    refuse_wrong_units(world, "Nothing is told.")


def test_a_force_along_minus_z_in_flight_is_refused_without_a_rest() -> None:
    log = turning()
    assert check(log, "gravity in flight").passed is None
    wrong = named(log, accelerometer=flu_frd_vector(log.stream("accelerometer").values))
    assert check(wrong, "gravity in flight").passed is False
    with pytest.raises(AirworthyError, match=r"In flight the specific force points along -z: .*FRD named FLU"):
        refuse_wrong_units(wrong, "Nothing is told.")


@pytest.mark.parametrize(("factor", "said"), [(180.0 / np.pi, "fast"), (np.pi / 180.0, "slowly")])
def test_a_factor_of_57_is_found_where_speeds_of_turning_drown(factor: float, said: str) -> None:
    """Poses whose noise is 1.4 times the turn of a sample: over half a second rotations are 60 times larger."""
    log = turning(noise=0.002)
    wrong = named(log, gyro=factor * log.stream("gyro").values)
    found = check(wrong, "gyro against attitude")
    assert found.passed is False
    assert found.value == pytest.approx(factor, rel=0.01)
    units = ("deg/s", "rad/s") if factor > 1.0 else ("rad/s", "deg/s")
    told = f"as {said} as attitudes: the file's rates are in {units[0]} and were taken for {units[1]}."
    assert re.sub(r"57\.\d", "57", found.said) == f"The gyro turns 57 times {told}"
    with pytest.raises(AirworthyError, match=r"57\.\d times as"):
        refuse_wrong_units(wrong, "Nothing is told.")


@pytest.mark.parametrize("noise", [0.01, 0.03, 0.1])
def test_a_log_that_hardly_turns_is_not_called_wrong(noise: float) -> None:
    """Noise of the gyro lengthens its turns: that is no wrong unit."""
    log = flight()
    gyro, attitude = log.stream("gyro"), log.stream("attitude")
    rng = np.random.default_rng(7)
    rocking = 0.02 * np.cumsum(rng.normal(size=gyro.values.shape), axis=0) / np.sqrt(len(gyro.time))
    held = from_rotation_vector(np.stack([np.interp(attitude.time, gyro.time, column) for column in rocking.T], axis=1))
    rate = np.gradient(rocking, gyro.time, axis=0) + rng.normal(size=gyro.values.shape) * noise
    streams = (replace(gyro, values=rate), *log.streams[1:-1], replace(attitude, values=held))
    found = check(replace(log, streams=streams), "gyro against attitude")
    assert found.passed is not False, found.said
    # The same in degrees, where turning is told well, stays wrong.
    steady = replace(gyro, values=np.rad2deg(gyro.values) + rng.normal(size=gyro.values.shape) * noise)
    assert check(replace(log, streams=(steady, *log.streams[1:])), "gyro against attitude").passed is False


def test_a_sensor_at_its_end_is_named_where_gravity_is_off() -> None:
    log = flight()
    force, gyro = log.stream("accelerometer"), log.stream("gyro")
    waves = force.values.copy()
    waves[:, 2] += np.where((force.time > 6.0) & (force.time < 39.0), 5.0 * np.sin(7.0 * force.time), 0.0)
    assert check(replace(log, streams=(gyro, replace(force, values=waves), *log.streams[2:])), "gravity in flight").passed
    clipped = np.minimum(waves, 12.0)
    found = check(replace(log, streams=(gyro, replace(force, values=clipped), *log.streams[2:])), "gravity in flight")
    assert found.passed is False
    assert "the accelerometer is saturated, at its end (12 m/s^2) for" in found.said
    assert "log it with a wider range" in found.said
    turned = gyro.values.copy()
    turned[:, 0] += np.where((gyro.time > 6.0) & (gyro.time < 39.0), 3.0 * np.sin(2.0 * gyro.time), 0.0)
    found = check(replace(log, streams=(replace(gyro, values=np.minimum(turned, 1.5)), *log.streams[1:])), "gravity in flight")
    assert found.passed is False
    assert "the gyro is saturated, at its end (1.5 rad/s) for" in found.said
    # Without an end it is a wrong factor.
    found = check(replace(log, streams=(gyro, replace(force, values=waves * 0.9), *log.streams[2:])), "gravity in flight")
    assert "an axis has a wrong factor" in found.said


def test_logs_without_rest_say_so() -> None:
    log = flight()
    late = replace(log, streams=tuple(s.between(6.0, 40.0) for s in log.streams))
    assert check(late, "gravity at rest").passed is None
    assert check(late, "gravity in flight").passed is None


def test_a_missing_sample_does_not_end_a_rest() -> None:
    log = flight()
    values = log.stream("gyro").values.copy()
    values[50:600:100] = np.nan
    holed = replace(log, streams=(replace(log.streams[0], values=values), *log.streams[1:]))
    found, whole = rest_noise(holed), rest_noise(log)
    assert found is not None
    assert whole is not None
    assert (found.start, found.stop) == (whole.start, whole.stop)
    assert check(holed, "gravity at rest").passed


def test_segments_of_a_plain_flight() -> None:
    found = flight_segments(flight())
    assert len(found.flown) == 1
    assert found.flown[0].start == pytest.approx(5.0, abs=2 / RATE)
    (usable,) = found.usable
    assert usable.start == pytest.approx(5.5, abs=3 / RATE)
    assert usable.stop == pytest.approx(40.0 - 0.3, abs=3 / RATE)
    assert {s.reason for s in found.rejected} == {"take-off or landing"}
    assert found.crash is None


def test_crash_gap_saturation_and_wishes() -> None:
    log = flight()
    force = log.stream("accelerometer")
    values = force.values.copy()
    values[int(35.0 * RATE)] = [0.0, 0.0, 80.0]
    command = log.stream("motor_command")
    pressed = command.values.copy()
    pressed[int(10 * RATE) : int(10.2 * RATE), 0] = 1.0
    keep = (log.stream("gyro").time < 20.0) | (log.stream("gyro").time > 20.1)
    gyro = log.stream("gyro")
    streams = (
        replace(gyro, time=gyro.time[keep], values=gyro.values[keep]),
        replace(force, values=values),
        replace(command, values=pressed),
    )
    found = flight_segments(replace(log, streams=streams), skip=[(25.0, 26.0)])
    assert found.crash == pytest.approx(35.0)
    reasons = [s.reason for s in found.rejected]
    assert "saturated command" in reasons
    assert "--skip" in reasons
    assert any(r.startswith("gap of 1") for r in reasons)
    assert all(s.stop <= 35.0 for s in found.usable)
    for bad in (10.1, 20.05, 25.5):
        assert not any(s.start < bad < s.stop for s in found.usable)
    with pytest.raises(AirworthyError, match="ends before it begins"):
        flight_segments(log, use=[(3.0, 2.0)])


def test_findings_of_a_hover() -> None:
    """No vertical motion, no yaw, no speed, no voltage: each is said, with what would help."""
    log = flight()
    found = {f.parameter: f for f in log_findings(log, flight_segments(log))}
    assert found["thrust over command / mass"].verdict == "partly"
    assert found["torque / inertia zz"].verdict == "cannot tell"
    assert "yaw steps" in found["torque / inertia zz"].helps
    assert found["drag"].verdict == "cannot tell"
    assert found["mass"].helps == "weigh the vehicle"


def test_findings_by_rate_and_voltage() -> None:
    log = flight()
    time = log.stream("gyro").time
    slow = log.stream("motor_command")
    slow = replace(slow, time=slow.time[::13], values=slow.values[::13])
    flat = LogStream("voltage", time, np.full((len(time), 1), 3.7))
    changed = replace(log, streams=(*log.streams[:2], slow, flat))
    found = {f.parameter: f for f in log_findings(changed, flight_segments(changed))}
    assert found["lag and dead time"].verdict == "cannot tell"
    assert "19 Hz" in found["lag and dead time"].reason
    assert "constant" in found["battery"].reason


def test_a_battery_falls_by_what_lasts_over_the_usable_flight() -> None:
    """Before take-off it has 16.8 V, two samples drop out and one jumps up: the flight's 15 to 14 V are left."""
    log = flight()
    time = np.arange(0.0, 40.0, 0.02)
    share = np.clip((time - 5.5) / (39.7 - 5.5), 0.0, 1.0)
    volts = np.where(time < 5.0, 16.8, 15.0 - share)
    volts[[700, 701, 1200]] = 0.0, 3.0, 40.0
    with_battery = replace(log, streams=(*log.streams, LogStream("voltage", time, volts[:, None])))
    segments = flight_segments(with_battery)
    found = next(f for f in log_findings(with_battery, segments) if f.parameter == "battery")
    assert found.verdict == "can tell"
    match = re.fullmatch(r"voltage falls by ([\d.]+) % over the usable flight", found.reason)
    assert match is not None
    # 1 % off each end: 0.98 of 1 V, of 14.99 V.
    assert float(match[1]) == pytest.approx(6.54, abs=0.1)
    # What is fitted is measured by the same rule.
    ends = supply_range([flight_signals(with_battery, segments)])
    assert ends is not None
    assert 100.0 * (ends[2] - ends[0]) / ends[2] == pytest.approx(float(match[1]), abs=0.05)


@pytest.mark.parametrize("step", [0.01, 0.0937, 0.61])
def test_a_fall_of_the_voltage_is_one_number(step: float) -> None:
    """However often it is measured, what `logs show` says of it is what `vehicles identify` fits with."""
    log = flight()
    time = np.arange(5.03, 33.0, step)
    volts = 16.0 - 0.05 * (time - 5.0)
    volts[len(volts) // 2] = 0.0
    with_battery = replace(log, streams=(*log.streams, LogStream("voltage", time, volts[:, None])))
    segments = flight_segments(with_battery)
    found = next(f for f in log_findings(with_battery, segments) if f.parameter == "battery")
    ends = supply_range([flight_signals(with_battery, segments)])
    assert ends is not None
    assert f"voltage falls by {100.0 * (ends[2] - ends[0]) / ends[2]:.1f} % over" in found.reason


def test_means_of_the_voltage_are_those_of_tenths_within_spans() -> None:
    time = np.array([0.0, 0.04, 0.09, 0.11, 0.52, 0.95, 2.01, 2.09])
    volts = np.array([3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 11.0])
    assert voltage_means(time, volts, [(0.0, 0.9), (2.0, 3.0)]).tolist() == [4.0, 6.0, 7.0, 10.0]
    assert voltage_means(time, volts, [(1.0, 2.0)]).tolist() == []


@pytest.mark.parametrize("kind", ["gyro", "accelerometer"])
def test_gravity_in_flight_ends_where_a_sensor_freezes(kind: str) -> None:
    """Attitudes are lost behind a gyro that froze: what that makes of gravity is no wrong unit."""
    log = flight(60.0)
    stream = log.stream(kind)
    noise = np.random.default_rng(2).normal(0.0, 0.002, stream.values.shape)
    values = stream.values + noise

    def held(start: float) -> Log:
        inside = (stream.time >= start) & (stream.time <= start + 1.0)
        shown = np.where(inside[:, None], values[np.argmax(inside)], values)
        return replace(log, streams=tuple(replace(s, values=shown) if s.kind == kind else s for s in log.streams))

    late = {check.name: check for check in log_checks(held(40.0))}
    assert late["gravity in flight"].passed
    assert "over 3" in late["gravity in flight"].said
    assert late[kind].passed is False
    early = {check.name: check for check in log_checks(held(15.0))}
    assert early["gravity in flight"].passed is None
    assert early["gravity in flight"].said.startswith(f"The {kind} is frozen at 15.00 s: no attitude is known behind")


def test_an_offset_as_common_sensors_have_is_told_and_no_wrong_unit() -> None:
    def rest(factor: float) -> LogCheck:
        return next(check for check in log_checks(flight(factor=factor)) if check.name == "gravity at rest")

    assert off_at_rest([rest(1.0)]) == []
    told = rest(1.012)
    assert told.passed
    assert "an offset of 12 mg, as common sensors have, or a scale off by +1.2 %" in told.said
    assert off_at_rest([told]) == [told]
    assert rest(1.03).passed is False
    assert rest(0.985).passed


def test_logs_without_commands_tell_no_vehicle(data_dir: Path) -> None:
    log = read_log(data_dir / "flights/euroc_v101")
    (only,) = log_findings(log, flight_segments(log))
    assert only.reason == "there are no motor commands"


@pytest.mark.parametrize(("name", "rest", "crashed"), [("log10", 9.812, True), ("log15", 9.815, False)])
def test_shared_crazyflie_logs(data_dir: Path, name: str, rest: float, crashed: bool) -> None:
    """Gravity at rest as the specification has it, in flight within 2 %, one crash."""
    log = read_log(data_dir / "flights/crazyflie_sysid" / name)
    assert check(log, "gravity at rest").value == pytest.approx(rest, abs=6e-4)
    assert check(log, "gravity in flight").passed
    segments = flight_segments(log)
    assert (segments.crash is not None) is crashed
    found = {f.parameter: f.verdict for f in log_findings(log, segments)}
    assert found["thrust over command / mass"] == "can tell"
    assert found["torque / inertia zz"] == "cannot tell"
    assert found["drag"] == "cannot tell"
