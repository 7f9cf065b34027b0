"""Parts of the fit of drag by inputs made by hand: each equation, each flight's own wind, and what is not believed."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_rotation_vector, rotate
from airworthy.logs import Log, LogCheck, LogFinding, LogSource, LogStream
from airworthy.vehicles import Known, frame_vehicle
from airworthy.vehicles.identification.air_speed import drag
from airworthy.vehicles.identification.air_speed.drag import (
    AirDrag,
    AirStretch,
    contradiction,
    fit_drag,
    useless,
    velocity_errors,
    without_drag,
)
from airworthy.vehicles.identification.air_speed.motion import FlightMotion, flight_motion
from airworthy.vehicles.identification.air_speed.problem import (
    SQUARE,
    AirProblem,
    air_parameters,
    air_windows,
    flown_air,
)
from airworthy.vehicles.identification.air_speed.told import drag_source, drag_uncertainty, drag_values
from airworthy.vehicles.identification.air_speed.turns import _stretches, flight_motions
from airworthy.vehicles.identification.fitting.refine import Fit
from airworthy.vehicles.identification.identify import _posed
from airworthy.vehicles.identification.prediction.held_command import HeldCommand
from airworthy.vehicles.identification.prediction.plant import plant_of
from airworthy.vehicles.identification.prediction.signals import FlightSignals, Readings
from airworthy.vehicles.identification.supply import refuse_supply, with_supply
from airworthy.vehicles.record import Uncertainty

BASE = frame_vehicle("quad_x:0.1", 1.0)
"""It lifts twice its weight at full command, square in the command."""
HOVER = math.sqrt(0.5)
TIME = np.arange(0.0, 4.0, 0.002)
STILL = np.zeros((len(TIME), 3))
LEVEL = np.tile([0.0, 0.0, 0.0, 1.0], (len(TIME), 1))
WINDS = ((2.0, -1.0), (-3.0, 0.5))
DRAG = 0.4


def signals(name: str, gyro: np.ndarray = STILL, force: np.ndarray | None = None) -> FlightSignals:
    """A flight at the command that carries the weight."""
    force = np.tile([0.0, 0.0, 9.81], (len(TIME), 1)) if force is None else force
    values = np.full((len(TIME), 4), HOVER)
    held = HeldCommand(0.0, 0.002, values)
    return FlightSignals(name, held, Readings(TIME, gyro), Readings(TIME, force), Readings(TIME, values), ((0.0, 4.0),))


def motion(velocity: np.ndarray, attitude: np.ndarray = LEVEL) -> FlightMotion:
    """Poses without a fault."""
    return FlightMotion(Readings(TIME, attitude), Readings(TIME, LEVEL), Readings(TIME, velocity), "velocity:capture")


def drifting(wind: tuple[float, float]) -> np.ndarray:
    """Velocity of a level vehicle that the air takes along: v' = -d (v - w), in closed form, (n, 3)."""
    going = np.array([*wind, 0.0])
    return np.asarray(going + (np.array([3.0, 4.0, 0.0]) - going) * np.exp(-DRAG * TIME)[:, None])


def fitted(square: bool = False, winds: tuple[tuple[float, float], ...] = WINDS, **changes: Any) -> AirDrag:
    """What a fit to flights in these winds finds, all of it told."""
    parameters = air_parameters(BASE, len(winds), square)
    theta = np.zeros(len(parameters.items))
    for k, item in enumerate(parameters.items):
        if item.flight is None:
            theta[k] = math.log(0.05 if item.name == SQUARE else DRAG)
        elif item.name in ("wind_x", "wind_y"):
            theta[k] = winds[item.flight]["xy".index(item.name[-1])]
    sd = np.full(len(theta), 0.1)
    fit = Fit(AirProblem(parameters, (), (True,) * 6), theta, 0.0, sd, sd, np.diag(sd**2), 1)
    names = tuple(f"flight {k}" for k in range(len(winds)))
    return replace(AirDrag(fit, square, names, "velocity:capture", -9.0, 1.0, {}), **changes)


# ---- What is known of a flight -----------------------------------------------------------------------------------------------


def test_a_sensor_off_its_place_and_late_shows_the_force_at_the_centre() -> None:
    """Rates that grow evenly about x, at a lever of centimetres: a x l + w x (w x l) is taken off, in closed form."""
    late, lever, turning = 0.02, np.array([0.03, -0.02, 0.01]), np.array([20.0, 0.0, 0.0])

    def rate(time: np.ndarray) -> np.ndarray:
        return np.stack([20.0 * (time - 2.0), 0.0 * time + 3.0, 0.0 * time - 2.0], axis=-1)

    def force(time: np.ndarray) -> np.ndarray:
        return np.stack([1.0 + 0.5 * np.sin(6.0 * time), 0.0 * time, 0.0 * time + 9.81], axis=-1)

    w = rate(TIME - late)
    read = force(TIME - late) + np.cross(turning, lever) + np.cross(w, np.cross(w, lever))
    plant = replace(plant_of(BASE), lever=lever[None], force_delay=np.array([late]))
    moved = motion(STILL)
    windows = air_windows(signals("flown", rate(TIME), read), moved, 4)
    flown = flown_air(windows, moved, plant, 9.81)
    at = windows.start[:, None] + windows.step * np.arange(windows.steps + 1)
    # Means over 5 ms of what curves by 18 m/s^4 and turns by 20 rad/s^2: a hundredth of these.
    np.testing.assert_allclose(flown.felt, force(at), atol=5e-4)
    np.testing.assert_allclose(flown.push, np.broadcast_to([0.0, 0.0, 9.81], flown.push.shape), atol=1e-9)


def test_attitude_and_velocity_are_of_one_source() -> None:
    time = TIME[::5]
    level, still = LEVEL[::5], STILL[::5]
    pose = [LogStream("velocity", time, still, label="gnss"), LogStream("velocity", time, still + 1.0, label="estimator")]
    log = Log("two", (LogStream("attitude", time, level, label="estimator"), *pose), LogSource("two", "", "test"))
    found = flight_motion(log, signals("two"))
    assert isinstance(found, FlightMotion)
    assert found.source == "velocity:estimator"
    assert found.velocity.values[0].tolist() == [1.0, 1.0, 1.0]
    # A capture system's positions go before an estimator's velocities, where attitudes are the capture system's.
    seen = (LogStream("attitude", time, level, label="capture"), LogStream("position", time, still, label="capture"))
    found = flight_motion(replace(log, streams=(*pose, *log.streams, *seen)), signals("two"))
    assert isinstance(found, FlightMotion)
    assert found.source == "position:capture and accelerometer"


def test_velocities_that_none_has_are_left_out_and_counted() -> None:
    time = TIME[::5]
    values = np.tile([3.0, 0.0, 0.0], (len(time), 1))
    values[100:140, 0] = 1e7
    values[200:220, 1] = np.nan
    values[300:303, 2] = 60.0
    streams = (LogStream("attitude", time, LEVEL[::5]), LogStream("velocity", time, values))
    found = flight_motion(Log("slips", streams, LogSource("slips", "", "test")), signals("slips"))
    assert isinstance(found, FlightMotion)
    assert len(found.velocity.time) == len(time) - 63
    assert found.velocity.values.tolist() == [[3.0, 0.0, 0.0]] * (len(time) - 63)
    (said,) = found.notes
    assert said.startswith("Of 400 samples of velocity 20 are no numbers and 43 are faster than 200 m/s, or 50 m/s off those")


# ---- Each flight's own -------------------------------------------------------------------------------------------------------


def test_each_flight_is_judged_in_its_own_wind() -> None:
    """Winds of 4.5 m/s apart: with another flight's wind velocities are off by 0.4 * 5.2 * 0.5 s."""
    found = fitted()
    for k, wind in enumerate(WINDS):
        held = AirStretch(signals(f"flight {k}"), motion(drifting(wind)), plant_of(BASE))
        errors = velocity_errors(found, [held], BASE)
        assert errors["fitted"][-1] < 1e-3
        assert errors["without"][-1] > 0.2
    # Of a flight that was not fitted the wind is not known: none is taken.
    other = AirStretch(signals("another"), motion(drifting((0.0, 0.0))), plant_of(BASE))
    assert velocity_errors(found, [other], BASE)["fitted"][-1] < 1e-3


def test_each_flight_is_freed_of_drag_in_its_own_wind() -> None:
    found = fitted()
    for k, wind in enumerate(WINDS):
        velocity = drifting(wind)
        felt = np.array([0.0, 0.0, 9.81]) - DRAG * (velocity - [*wind, 0.0])
        freed = without_drag(signals(f"flight {k}", force=felt), motion(velocity), found)
        # But for the ends, where a mean over 50 ms is one-sided.
        np.testing.assert_allclose(freed.force.values[50:-50], np.broadcast_to([0.0, 0.0, 9.81], (1900, 3)), atol=1e-4)


def test_flights_without_poses_shift_nobody_s_parameters() -> None:
    parameters = SimpleNamespace(plant=lambda theta, flight: flight)
    fit: Any = SimpleNamespace(problem=SimpleNamespace(parameters=parameters), theta=np.zeros(1))
    flights = [signals("blind"), signals("posed")]
    (only,) = _stretches(fit, flights, {"posed": motion(STILL)})
    assert (only.flight.name, only.plant) == ("posed", 1)


# ---- What is told ------------------------------------------------------------------------------------------------------------


def test_values_have_deviations_of_their_own() -> None:
    shared, own = drag_values(fitted(square=True), BASE)
    of = {value.name: value for value in (*shared, *own)}
    # 10 % of a drag, 0.1 m/s of a wind.
    assert of["drag_x"].sd == pytest.approx(0.1 * DRAG)
    assert of[SQUARE].sd == pytest.approx(0.1 * 0.05)
    assert (of["wind_x[flight 1]"].value, of["wind_x[flight 1]"].sd) == (-3.0, pytest.approx(0.1))


def test_the_record_s_correlations_keep_their_names() -> None:
    """Drag comes behind sag in the fit, and before it in the record."""
    names = ("mass", "damping", "sag")
    rows = ((1.0, 0.1, 0.2), (0.1, 1.0, 0.3), (0.2, 0.3, 1.0))
    told = Uncertainty(names, ("log", "log", "linear"), (0.0, 1.0, 2.0), (0.1, 0.2, 0.3), rows, (0.0, 0.5, 1.0), 1.0)
    air = fitted()
    air.fit.covariance[0, 1] = air.fit.covariance[1, 0] = 0.4 * 0.1**2
    made = drag_uncertainty(told, air)
    assert made.names == ("mass", "damping", "drag_x", "drag_y", "drag_z", "sag")
    at = made.names.index
    related = np.array(made.correlation)
    assert related[at("mass"), at("sag")] == related[at("sag"), at("mass")] == 0.2
    assert related[at("damping"), at("sag")] == 0.3
    assert related[at("drag_x"), at("drag_y")] == pytest.approx(0.4)
    assert not related[at("sag"), 2:5].any()
    assert (made.sd[at("sag")], made.mean[at("sag")]) == (0.3, 2.0)


def test_square_drag_that_is_not_in_the_record_is_in_no_table() -> None:
    air = fitted(square=True)
    known = replace(air.fit, covariance=np.diag(air.fit.problem.parameters.sd**2))
    shared, _ = drag_values(replace(air, fit=known), BASE)
    assert [value.name for value in shared] == ["drag_x", "drag_y", "drag_z"]


def test_the_source_of_drag_names_the_logs_that_told_it() -> None:
    logs = [Log(name, (), LogSource(name, "", "test")) for name in ("blind", "flight 0")]
    flights = [signals(log.name) for log in logs]
    assert _posed(logs, flights, fitted()) == (logs[1:], flights[1:])
    assert _posed(logs, flights, "too slow") == (logs, flights)


def test_the_record_says_how_large_square_drag_is() -> None:
    said = drag_source(fitted(square=True), "log10 2-15 s", "joint multi-step")
    assert said.endswith("; x identified +-10 %, y identified +-10 %, z identified +-10 %, square 0.05 1/m")


# ---- What is not believed ----------------------------------------------------------------------------------------------------


def swinging(linear: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Force, velocity and attitude of a vehicle that leans to and fro about two axes at constant thrust, by Euler's method."""
    lean = 0.35 * np.stack([np.sin(2.1 * TIME), np.sin(1.7 * TIME + 1.0), 0.0 * TIME], axis=-1)
    attitude, velocity = from_rotation_vector(lean), np.zeros((len(TIME), 3))
    pushed = rotate(attitude, np.tile([0.0, 0.0, 9.81], (len(TIME), 1))) - [0.0, 0.0, 9.81]
    velocity[0] = [3.0, -1.0, 0.0]
    for k in range(len(TIME) - 1):
        velocity[k + 1] = velocity[k] + 0.002 * (pushed[k] - linear * velocity[k])
    air = rotate(attitude * [-1.0, -1.0, -1.0, 1.0], velocity)
    return np.array([0.0, 0.0, 9.81]) - linear * air, velocity, attitude


def test_a_fit_that_asks_for_another_thrust_tells_no_drag(monkeypatch: pytest.MonkeyPatch) -> None:
    force, velocity, attitude = swinging(0.3)
    stretch = AirStretch(signals("swung", force=force), motion(velocity, attitude), plant_of(BASE))
    monkeypatch.setattr(drag, "runaway", lambda found: "it lifts too much.")
    assert fit_drag([stretch], [], BASE, quick=True).against == "it lifts too much."


def test_velocities_of_another_frame_tell_neither_drag_nor_wind() -> None:
    force, velocity, attitude = swinging(0.3)
    noise = np.random.default_rng(0).normal(0.0, 0.02, velocity.shape)
    flight = signals("swung", force=force + 5.0 * noise)

    def found(shown: np.ndarray) -> AirDrag:
        return fit_drag([AirStretch(flight, motion(shown + noise, attitude), plant_of(BASE))], [], BASE, quick=True)

    right = found(velocity)
    assert not right.against
    assert right.value("drag_x") == pytest.approx(0.3, rel=0.1)
    # North, east, down that are called east, north, up; centimetres that are called metres.
    for wrong in (velocity[:, [1, 0, 2]] * [1.0, 1.0, -1.0], 100.0 * velocity):
        assert "neither drag nor wind is told" in found(wrong).against


def test_worse_than_holding_is_a_contradiction() -> None:
    said = contradiction({"hold": (0.3, 0.8, 1.7), "without": (0.4, 1.2, 2.4), "fitted": (0.4, 1.2, 2.4)}, "velocity")
    assert said.startswith("velocity does not go with thrust and attitude: 0.5 s ahead they miss it by 2.4 m/s, hardly better")
    assert not contradiction({"hold": (0.3, 0.8, 1.7), "without": (0.1, 0.3, 0.5), "fitted": (0.1, 0.1, 0.2)}, "velocity")
    assert not contradiction({}, "velocity")


def test_attitudes_that_a_check_calls_wrong_are_not_used() -> None:
    time = TIME[::5]
    streams = (LogStream("attitude", time, LEVEL[::5]), LogStream("velocity", time, STILL[::5]))
    log = Log("wrong", streams, LogSource("wrong", "", "test"))
    check = LogCheck("gyro against attitude", False, "The gyro turns 0.790 times as fast.", 0.79)
    rows = [(LogFinding("drag", "can tell", ""),)]
    found = flight_motions([log], [signals("wrong")], rows, [(check,)])
    assert found.of == {}
    assert "attitude contradicts the gyro (the gyro turns 0.790 times as fast), so neither drag" in found.reason
    assert found.notes == (f"wrong: {found.reason}.",)
    other = replace(streams[0], label="capture")
    both = replace(log, streams=(*log.streams, other))
    assert flight_motions([both], [signals("wrong")], rows, [(check,)]).of.keys() == {"wrong"}
    assert flight_motions([log], [signals("wrong")], rows, [(replace(check, passed=True),)]).notes == ()


# ---- Supply ------------------------------------------------------------------------------------------------------------------


def on_supply(first: float, last: float) -> FlightSignals:
    return replace(signals("flown"), supply=Readings(TIME, np.linspace(first, last, len(TIME))[:, None]))


def test_measured_speeds_tell_no_sag() -> None:
    known = Known(mass=(1.0, 0.01), vehicle=BASE)
    told = {"sag": True}
    assert with_supply(BASE, [on_supply(4.2, 3.4)], known, told, speeds=True) == (BASE, [])
    assert told == {"sag": False}
    base, _ = with_supply(BASE, [on_supply(4.2, 3.4)], known, told, speeds=False)
    assert told == {"sag": True}
    assert base.command_sag == (0.5, pytest.approx(3.8, abs=0.05))


@pytest.mark.parametrize(("last", "tells"), [(3.82, True), (3.86, False)])
def test_a_voltage_tells_its_exponent_from_four_per_cent_on(last: float, tells: bool) -> None:
    told = {"sag": True}
    base, said = with_supply(BASE, [on_supply(4.0, last)], Known(mass=(1.0, 0.01), vehicle=BASE), told, speeds=False)
    assert told == {"sag": tells}
    assert (base.command_sag is not None) == tells
    assert len(said) == (0 if tells else 1)


@pytest.mark.parametrize(("volts", "refused"), [(0.59, True), (0.61, False), (1.58, False), (1.63, True)])
def test_a_cell_more_or_less_is_another_battery(volts: float, refused: bool) -> None:
    sagging = replace(BASE, command_sag=(0.9, 4.0))
    flight = on_supply(4.0 * volts, 4.0 * volts + 1e-3)
    if refused:
        with pytest.raises(AirworthyError, match="the battery is another"):
            refuse_supply(flight, sagging)
    else:
        refuse_supply(flight, sagging)


def test_a_flight_on_another_battery_is_refused() -> None:
    sagging = replace(BASE, command_sag=(0.9, 3.885))
    refuse_supply(on_supply(4.2, 3.2), sagging)
    refuse_supply(on_supply(4200.0, 3200.0), BASE)
    refuse_supply(signals("flown"), sagging)
    with pytest.raises(
        AirworthyError, match=r"'flown' was flown at 3,700 V, and commands of quad_x act as they are at 3\.885 V"
    ):
        refuse_supply(on_supply(4200.0, 3200.0), sagging)


def test_drag_that_foretells_nothing_is_not_told() -> None:
    errors = {"hold": (0.2, 0.5), "without": (0.1, 0.41), "fitted": (0.05, 0.42)}
    assert "no better than none does (0.42 m/s off, and 0.41 without)" in useless(errors, "position:capture")
    assert useless(errors | {"fitted": (0.05, 0.40)}, "position:capture") == ""
    assert useless({}, "position:capture") == ""
