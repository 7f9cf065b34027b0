"""Motors by measured rotor speeds, and lags of rise and fall that differ, told by speeds or by gyro and accelerometer alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.vehicles.flown_logs import Craft, changed, fly, quad

from airworthy.core.errors import AirworthyError
from airworthy.logs import Log, flight_segments, read_log
from airworthy.vehicles import Identified, Known, Vehicle, check, identify, read_vehicle, write_vehicle
from airworthy.vehicles.identification.motors.measured_speeds import fit_motors
from airworthy.vehicles.identification.prediction.signals import FlightSignals, Readings, flight_signals, measured_speeds
from airworthy.vehicles.record import RotorResponse

PLAIN = quad(inertia=(1.5e-5, 1.5e-5, 2.8e-5), center=(0.0005, -0.0003, 0.0))
GEARED = replace(PLAIN, full=2500.0, offset=0.1, fall=0.09, speed_late=2)
"""Rise 58 ms, fall 90 ms, dead time 12 ms, speeds of 250 + 2250 u rad/s that are 4 ms late."""


def known(craft: Craft, vehicle: Vehicle | None = None) -> Known:
    return Known(mass=(craft.mass, 0.002 * craft.mass), vehicle=vehicle or craft.known())


def signals(log: Log) -> FlightSignals:
    segments = flight_segments(log)
    speeds = measured_speeds(log, segments, 4)
    assert isinstance(speeds, Readings)
    return replace(flight_signals(log, segments), speeds=speeds)


@pytest.fixture(scope="module")
def geared() -> Log:
    return fly(GEARED, 14.0)


@pytest.fixture(scope="module")
def short() -> Log:
    return fly(GEARED, 6.0)


@pytest.fixture(scope="module")
def found(geared: Log) -> Identified:
    return identify([geared], known(GEARED), quick=True)


# ---- By measured speeds ------------------------------------------------------------------------------------------------------


def test_speeds_tell_the_motors(found: Identified) -> None:
    motors = found.motors
    assert motors is not None
    assert found.structure == "first power, rise and fall apart"
    assert motors.command_map == pytest.approx((250.0, 2250.0), rel=0.01)
    assert found.value("lag").value == pytest.approx(0.058, rel=0.01)
    assert found.value("fall_ratio").value == pytest.approx(0.09 / 0.058, rel=0.01)
    # What the speed is late is no dead time of the rotor.
    assert motors.delay == pytest.approx(0.016, abs=0.0005)
    assert found.value("speed_delay").value == pytest.approx(0.004, abs=0.0005)
    assert found.value("command_delay").value == pytest.approx(0.012, abs=0.0005)
    assert {found.value(name).word for name in ("lag", "command_delay", "fall_ratio", "speed_delay")} == {"identified"}
    for name, truth in (("lag", 0.058), ("command_delay", 0.012)):
        assert abs(found.value(name).value - truth) < 3.0 * found.value(name).sd


def test_thrust_is_told_over_real_speeds(found: Identified) -> None:
    rotor = found.vehicle.rotors[0]
    assert rotor.speed_max == pytest.approx(2500.0, rel=0.005)
    for share in (0.6, 0.7, 0.8):
        w = 2500.0 * share
        assert rotor.thrust[1] * w + rotor.thrust[2] * w**2 == pytest.approx(0.02 * share + 0.12 * share**2, rel=0.005)
    assert found.hover == pytest.approx((GEARED.hover - 0.1) / 0.9, rel=0.005)
    assert found.value("inertia_xx").value == pytest.approx(1.5e-5, rel=0.01)
    assert found.table is not None
    assert found.table.verdict == "flyable"


def test_the_record_of_measured_speeds(found: Identified, tmp_path: Path) -> None:
    write_vehicle(found.vehicle, tmp_path / "mine.toml")
    back = read_vehicle(tmp_path / "mine.toml")
    assert back == found.vehicle
    assert back.command_map == found.vehicle.command_map
    assert back.sources["rotors.speed_max"].startswith("identified: flown[01234567]")
    assert back.sources["command_map"].startswith("identified")
    assert "falls 1.55 times as slowly" in back.sources["rotors.response"]
    assert "gauge" not in back.extra
    low, high = back.rotor_range or (0.0, 0.0)
    assert 1000.0 < low < 2500.0 * GEARED.hover < high < 2500.0


@pytest.mark.slow
def test_the_record_explains_commands_without_speeds(found: Identified, geared: Log) -> None:
    """Watching, judging and fitting again map commands as the record says, where a log has no speeds."""
    from airworthy.benchmarks import ValidateOptions, validate_logs

    bare = replace(fly(GEARED, 10.0, seed=3), name="bare")
    bare = replace(bare, streams=tuple(s for s in bare.streams if s.kind != "motor_speed"))
    judged = validate_logs([bare], found.vehicle, ValidateOptions(windows=20))
    assert judged.word == "flyable"
    assert float(np.median(judged.errors["rate"]["vehicle"])) < 0.05
    again = identify([bare], known(GEARED, found.vehicle), quick=True)
    assert again.vehicle.command_map == found.vehicle.command_map
    assert again.value("lag").value == pytest.approx(0.058, rel=0.02)
    assert again.hover == pytest.approx(found.hover, rel=0.01)


def test_a_battery_that_sags_is_no_lag(geared: Log) -> None:
    """Speeds that fall by a tenth over the flight, at like commands."""
    time = geared.stream("motor_speed").time
    sagged = geared.stream("motor_speed").values * (1.0 - 0.1 * time / time[-1])[:, None]
    motors = fit_motors([signals(changed(geared, "motor_speed", values=sagged))], 0.64)
    assert motors.lag == pytest.approx(0.058, rel=0.02)
    assert motors.ratio == pytest.approx(0.09 / 0.058, rel=0.02)
    assert motors.offset == pytest.approx(0.1, abs=0.01)


@pytest.mark.slow
def test_one_lag_is_told_as_one() -> None:
    log = fly(replace(PLAIN, full=2500.0), 8.0)
    motors = fit_motors([signals(log)], 0.66)
    assert not motors.apart
    assert not motors.square
    assert motors.ratio == 1.0
    assert motors.lag == pytest.approx(0.058, rel=0.01)
    square = fit_motors([signals(fly(replace(PLAIN, full=2500.0, square=True), 8.0))], 0.66)
    assert square.square
    assert square.lag == pytest.approx(0.058, rel=0.03)


@pytest.mark.slow
def test_speeds_that_are_wrong_are_not_followed(short: Log) -> None:
    values = short.stream("motor_speed").values.copy()
    values[:, 1] *= 0.65
    told = identify([changed(short, "motor_speed", values=values)], known(GEARED), quick=True)
    assert told.motors is None
    assert any("speed over command of motor 2 is 0.65 of the others'" in note for note in told.notes)
    assert told.value("lag").value == pytest.approx(0.058, rel=0.02)
    dead = values.copy()
    dead[:, 2] = 0.0
    log = changed(short, "motor_speed", values=dead)
    with pytest.raises(AirworthyError, match="cannot feed rotor speeds: speed of motor 3 is always 0"):
        identify([log], known(GEARED), quick=True, feed="speeds")


def test_speeds_that_are_slow_are_not_followed(geared: Log) -> None:
    stream = geared.stream("motor_speed")
    slow = changed(geared, "motor_speed", stream.time[::10], stream.values[::10])
    with pytest.raises(AirworthyError, match="cannot feed rotor speeds: speeds come at 50 Hz, and 100 Hz are needed"):
        identify([slow], known(GEARED), quick=True, feed="speeds")


# ---- By gyro and accelerometer -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_rise_and_fall_are_told_without_speeds() -> None:
    craft = replace(GEARED, offset=0.0)
    told = identify([fly(craft, 14.0)], known(craft), quick=True, feed="commands")
    assert told.motors is None
    assert told.structure == "first power, rise and fall apart"
    assert told.value("lag").value == pytest.approx(0.058, rel=0.02)
    assert told.value("fall_ratio").value == pytest.approx(0.09 / 0.058, rel=0.02)
    assert told.value("fall_ratio").word == "identified"
    assert told.value("inertia_xx").value == pytest.approx(1.5e-5, rel=0.01)
    assert any("less is better" in note and "rise and fall apart" in note for note in told.notes)


@pytest.mark.slow
@pytest.mark.parametrize("fall", [None, 0.116])
def test_what_it_is_like_does_not_say_how_rotors_fall(fall: float | None) -> None:
    """A record whose rotors fall twice as slowly is a start, and no more, where the flight tells both."""
    craft = replace(PLAIN, fall=fall)
    like = craft.known()
    rotors = tuple(replace(r, response=RotorResponse.first_order(0.05, 0.1)) for r in like.rotors)
    like = replace(like, extra={}, rotors=rotors)
    told = identify([fly(craft, 12.0)], known(craft, like), quick=True)
    assert told.value("lag").value == pytest.approx(0.058, rel=0.01)
    assert told.structure == ("first power" if fall is None else "first power, rise and fall apart")
    made = told.vehicle.rotors[0].response
    assert made.rise[0] / made.fall[0] == pytest.approx((fall or 0.058) / 0.058, rel=0.01)


@pytest.mark.slow
def test_what_no_flight_tells_of_the_fall_stays_as_believed() -> None:
    like = PLAIN.known()
    rotors = tuple(replace(r, response=RotorResponse.first_order(0.05, 0.1)) for r in like.rotors)
    from tests.vehicles.flown_logs import Excitation

    calm = fly(PLAIN, 12.0, excitation=Excitation(0.0, 0.0, 0.0))
    told = identify([calm], known(PLAIN, replace(like, extra={}, rotors=rotors)), quick=True)
    assert told.value("fall_ratio").word == "assumed"
    made = told.vehicle.rotors[0].response
    assert made.rise[0] / made.fall[0] == pytest.approx(2.0)


# ---- The record --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [((100.0, 0.0), "command_map"), ((-1e9, 1.0), "command_map"), ((float("nan"), 1.0), "command_map")],
)
def test_maps_of_commands_that_cannot_be(given: tuple[float, float], said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        check(replace(PLAIN.known(), command_map=given))


# ---- The order of motors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "said"),
    [((0, 1, 2), "names 3 columns, and the vehicle has 4 rotors"), ((1, 0, 2, 3), "its turns ask for 1 2 3 4")],
)
def test_orders_that_are_not_the_logs(geared: Log, order: Sequence[int], said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        identify([geared], replace(known(GEARED), order=order), quick=True)


@pytest.mark.slow
def test_brushless_crazyflies(data_dir: Path) -> None:
    """Three flights with speeds, of which a figure of eight excites one alone: what no turns tell, speeds do."""
    logs = [read_log(data_dir / "flights/crazyflie_imrc" / f"brushless_eckart{n}.npz") for n in ("00", "17", "27")]
    from airworthy.vehicles import frame_vehicle

    given = Known(mass=(0.037, 0.0002), vehicle=frame_vehicle("quad_x:0.025", 0.037), order=(0, 1, 2, 3))
    told = identify(logs, given, quick=True)
    assert told.motors is not None
    # Specification identify, 6.2: brushless 35 to 40 ms, dead time 4 to 6 ms; by the gyro, which comes late, 8 ms.
    assert 0.035 <= told.value("lag").value <= 0.042
    assert told.motors.delay < 0.006
    assert told.value("command_delay").value == pytest.approx(told.motors.delay - told.value("speed_delay").value)
