"""Many vehicles as arrays are those that records say, one by one."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.vehicles import Known, RotorResponse, Vehicle, vehicle
from airworthy.vehicles.identification.fitting.parameters import AIR, FALL, Parameters, believed_parameters
from airworthy.vehicles.identification.fitting.plants import VehicleFamily
from airworthy.vehicles.identification.fitting.start import BLOCK, _score, start_values
from airworthy.vehicles.identification.known import frame_vehicle
from airworthy.vehicles.identification.prediction.plant import Plant, plant_of, stacked
from airworthy.vehicles.identification.prediction.signals import FlightSignals, HeldCommand, Readings
from airworthy.vehicles.record import UNCERTAIN
from airworthy.vehicles.uncertainty import DRAGS, uncertain_values, with_values

TOLD = dict.fromkeys(("turns", "lag", "thrust", "inertia_xx", "imu_lever", "imu_tilt", AIR, "sag"), True)


def assert_alike(mine: Plant, wanted: Plant) -> None:
    for field in fields(Plant):
        a, b = getattr(mine, field.name), getattr(wanted, field.name)
        # Sums of a few products: what is next to nothing beside the largest number is rounding.
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14 * np.abs(b).max(initial=0.0), err_msg=field.name)


def believed(base: Vehicle, square: bool, apart: bool) -> Parameters:
    known = Known(mass=(base.mass, 0.01 * base.mass), vehicle=base)
    return believed_parameters(base, known, [True, False], 0.6, TOLD, square=square, apart=apart, middles=(3.0, 9.0))


def bent() -> Vehicle:
    """A quadrotor of which nothing is even: products of inertia, a centre of mass aside, a battery that sags."""
    base = frame_vehicle("quad_x:0.028", 0.027)
    rotors = tuple(replace(r, thrust=(1e-4, *r.thrust[1:]), speed_min=0.1 * r.speed_max) for r in base.rotors)
    inertia = (1.5e-5, 1.8e-5, 2.9e-5, 1e-6, -5e-7, 3e-7)
    return replace(base, rotors=rotors, inertia=inertia, center_of_mass=(0.001, -0.002, 0.003), command_sag=(0.4, 3.7))


@pytest.mark.parametrize(("square", "apart"), [(False, False), (True, True)])
@pytest.mark.parametrize("base", ["bent", "cf2x_L250", "lmf2"])
def test_vectors_are_the_vehicles_that_are_written(base: str, square: bool, apart: bool) -> None:
    parameters = believed(bent() if base == "bent" else vehicle(base), square, apart)
    theta = parameters.mean + parameters.sd * np.random.default_rng(3).standard_normal((12, len(parameters.items)))
    # A lag of fall that is that of rise to the bit is a case of its own.
    theta[:4, parameters.place(FALL)] = 0.0
    mine = parameters.plant(theta, 1)
    places = {item.name: k for k, item in enumerate(parameters.items) if item.flight in (None, 1)}
    made = stacked([plant_of(parameters.vehicle(row)) for row in theta])
    lever = theta[:, [places[f"imu_{axis}"] for axis in "xyz"]]
    assert_alike(replace(mine, lever=mine.lever - lever), replace(made, **own(mine)))
    np.testing.assert_array_equal(mine.delay, theta[:, places["command_delay"]])
    assert np.ptp(mine.moment, axis=0).max() > 0.0


def own(plant: Plant) -> dict[str, np.ndarray]:
    """What a vector says of sensors and flights, which no record has."""
    names = ("delay", "tilt", "turn_offset", "turn_drift", "turn_since", "force_offset", "force_delay", "speed_delay")
    return {name: getattr(plant, name) for name in names}


@pytest.mark.parametrize("names", [(), ("torque_ratio",), ("thrust",), ("mass", "lag"), ("thrust_linear", "sag"), ("damping",)])
@pytest.mark.parametrize("base", ["bent", "cf2x_L250", "lmf2", "linear"])
def test_what_is_not_named_stays(base: str, names: tuple[str, ...]) -> None:
    item = bent() if base in ("bent", "linear") else vehicle(base)
    if base == "linear":
        # Rotors whose state is their thrust, at a mass that they cannot carry in one case of two.
        item = replace(item, rotors=tuple(replace(r, thrust=(0.0, 1e-6, 0.0), torque=(0.0, 1e-8, 0.0)) for r in item.rotors))
    state = 0.6 * item.rotors[0].speed_max
    now = uncertain_values(item, state)
    values = {name: now[name] * np.array([1.0, 1.1, 0.7]) for name in names if name in UNCERTAIN and name not in DRAGS}
    height, ratio = np.full(3, item.drag.center[2]), np.ones(3)
    mine = VehicleFamily(item, state).plants(values, height, ratio)
    each = [with_values(item, {name: float(value[k]) for name, value in values.items()}, state) for k in range(3)]
    assert_alike(mine, stacked([plant_of(one) for one in each]))


@pytest.mark.parametrize("turning", [True, False])
def test_cells_of_a_lag_are_those_of_each_dead_time(turning: bool) -> None:
    """A row of the grid holds what each of its cells finds alone, whichever spans the bins lie in."""
    rng, rate = np.random.default_rng(8), 500.0
    time = np.arange(3000) / rate
    command = np.repeat(rng.uniform(0.2, 0.9, (750, 4)), 4, axis=0)
    gyro, force = (Readings(time, np.cumsum(rng.normal(size=(3000, 3)), axis=0) * size) for size in (0.1, 0.02))
    held = HeldCommand(0.0, 1.0 / rate, command)
    # The second span is too short for an increment.
    spans = ((0.5, 2.6), (2.7, 2.76), (3.0, 5.8))
    flight = FlightSignals("by hand", held, gyro, force, Readings(time, command), spans)
    base = bent()
    begun = start_values([flight, flight], base, 0.6, turning=turning, quick=True)
    for lag, delay in (begun.cells[0], begun.cells[7], begun.cells[-1]):
        alone = start_values([flight, flight], base, 0.6, turning=turning, cell=(lag, delay))
        assert (alone.lag, alone.delay) == (lag, delay)
        assert alone.score >= begun.score * (1.0 + (1e-12 if begun.score < 0.0 else -1e-12))
        if (lag, delay) == begun.cells[0]:
            for name in ("score", "thrust", "inertia", "center", "force_rms", "yaw"):
                assert getattr(alone, name) == pytest.approx(getattr(begun, name), rel=1e-9), name


def test_scores_are_the_logs_of_the_variances_of_blocks() -> None:
    left = np.random.default_rng(9).normal(size=(3, 2 * BLOCK + 7))
    wanted = [sum(math.log(np.mean(part**2)) for part in np.array_split(row, 2)) for row in left]
    np.testing.assert_allclose(_score(left), wanted, rtol=1e-12)


def test_rotors_that_differ_in_their_lags_are_refused_as_a_record_is() -> None:
    item = bent()
    slow = replace(item.rotors[0], response=RotorResponse.first_order(0.5))
    with pytest.raises(AirworthyError, match="differ in their lags"):
        VehicleFamily(replace(item, rotors=(slow, *item.rotors[1:])), 100.0).plants({}, np.zeros(1), np.ones(1))


def test_a_rotor_that_gives_no_thrust_turns_nothing() -> None:
    item = bent()
    state = 0.6 * item.rotors[0].speed_max
    values = {"thrust": np.array([uncertain_values(item, state)["thrust"]]), "thrust_linear": np.array([-1e3])}
    mine = VehicleFamily(item, state).plants(values, np.zeros(1), np.ones(1))
    made = with_values(item, {name: float(value[0]) for name, value in values.items()}, state)
    assert_alike(mine, replace(plant_of(made), drag_arm=np.zeros(1)))
    assert math.isfinite(mine.moment.sum())
