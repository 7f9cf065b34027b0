"""Parts of the prediction of inertial sensors against closed forms: air, damping, and an accelerometer that is late."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from airworthy.vehicles import Drag, RotorResponse, Vehicle
from airworthy.vehicles.identification.known import frame_vehicle
from airworthy.vehicles.identification.prediction.held_command import followed
from airworthy.vehicles.identification.prediction.plant import Plant, distinct, picked, plant_of, stacked
from airworthy.vehicles.identification.prediction.predict import Windows, cut_windows, predict, predicted_means, rotor_states
from airworthy.vehicles.identification.prediction.signals import FlightSignals, HeldCommand, Readings
from airworthy.vehicles.identification.prediction.twin import followed_states, integrated, predicted

MASS, HEIGHT, RATE = 0.027, 0.015, 500
INERTIA = (1.5e-5, 1.8e-5, 2.9e-5)


def craft(**changes: object) -> Vehicle:
    base = frame_vehicle("quad_x:0.028", MASS)
    rotors = tuple(replace(r, response=RotorResponse.first_order(0.05)) for r in base.rotors)
    return replace(base, inertia=(*INERTIA, 0.0, 0.0, 0.0), rotors=rotors, **changes)  # type: ignore[arg-type]


def signals(
    command: np.ndarray, rate: tuple[float, ...] = (0.0, 0.0, 0.0), aside: tuple[float, ...] = (0.0, 0.0)
) -> FlightSignals:
    """Two seconds of commands, of a constant rate and of a constant force across the rotors' axes, as sensors read them."""
    time = np.arange(len(command)) / RATE
    still = np.ones((len(time), 1))
    held = HeldCommand(0.0, 1.0 / RATE, command)
    force = Readings(time, still * np.array([*aside, 9.81]))
    return FlightSignals(
        "by hand", held, Readings(time, still * np.array(rate)), force, Readings(time, command), ((0.0, time[-1]),)
    )


def window(flight: FlightSignals) -> Windows:
    return cut_windows(flight, 1, length=0.2)


HOVER = np.full((1000, 4), math.sqrt(0.5))


@pytest.mark.parametrize("aside", [(0.4, 0.0), (0.0, 0.4), (0.0, -0.3)])
def test_air_above_the_centre_of_mass_turns_as_a_force_at_a_height_does(aside: tuple[float, float]) -> None:
    """(0, 0, h) x m (fx, fy, 0) is m h (-fy, fx, 0)."""
    flight = window(signals(HOVER, aside=aside))
    blown = predict(plant_of(craft(drag=Drag(center=(0.0, 0.0, HEIGHT)))), flight).rate[0, 0]
    still = predict(plant_of(craft()), flight).rate[0, 0]
    along = flight.step * np.arange(len(blown))[:, None]
    wanted = MASS * HEIGHT * np.array([-aside[1] / INERTIA[0], aside[0] / INERTIA[1], 0.0]) * along
    # What turns so slowly has next to no moment of its own turning.
    np.testing.assert_allclose(blown - still, wanted, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_damping_takes_a_share_of_the_rate_about_its_axis(axis: int) -> None:
    damping = [0.0, 0.0, 0.0]
    damping[axis] = 3.0 * INERTIA[axis]
    rate = np.zeros(3)
    rate[axis] = 2.0
    flight = window(signals(HOVER, rate=tuple(rate)))
    plant = plant_of(craft(drag=Drag(angular_linear=(damping[0], damping[1], damping[2]))))
    found = predict(plant, flight).rate[0, 0]
    along = flight.step * np.arange(len(found))
    np.testing.assert_allclose(found[:, axis], 2.0 * np.exp(-3.0 * along), rtol=1e-6)
    np.testing.assert_allclose(np.delete(found, axis, axis=1), 0.0, atol=1e-9)


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_an_accelerometer_that_is_late_reads_what_was_before(share: float) -> None:
    command = HOVER.copy()
    command[480:] *= 1.1  # the force rises within the window
    flight = window(signals(command))
    plant = plant_of(craft())
    plain = predict(plant, flight).force[0, 0, :, 2]
    late = predict(replace(plant, force_delay=np.array([share * flight.step])), flight).force[0, 0, :, 2]
    along = flight.step * np.arange(len(plain))
    assert np.ptp(plain) > 0.5
    np.testing.assert_allclose(late[1:], np.interp(along[1:] - share * flight.step, along, plain), rtol=1e-9)
    # It rises later, and is below where the force rises.
    assert np.all(late[1:] <= plain[1:] + 1e-12)


def test_a_dead_time_is_after_the_command() -> None:
    command = HOVER.copy()
    command[480:] *= 1.1
    flight = window(signals(command))
    prompt, late = (predict(plant_of(craft(command_delay=delay)), flight).force[0, 0, :, 2] for delay in (0.0, 0.02))
    steps = round(0.02 / flight.step)
    np.testing.assert_allclose(late[steps:], prompt[:-steps], rtol=1e-6)
    assert late.sum() < prompt.sum()


@pytest.mark.parametrize(
    "response", [(20.0, 0.0, 20.0, 0.0), (0.0, 12.0, 0.0, 12.0), (3.0, 9.0, 2.0, 5.0), (25.0, 0.0, 15.0, 0.0)]
)
def test_states_of_many_commands_are_those_of_one_after_the_other(response: tuple[float, ...]) -> None:
    """The kernel ends where one walk through all of them does; reversed commands, too."""
    rng = np.random.default_rng(1)
    for low in (0.0, -0.4):
        command = HeldCommand(0.0, 0.004, np.repeat(rng.uniform(low, 1.0, (60, 3)), 10, axis=0))
        state, walked = command.values[0], []
        for held in command.values:
            state = followed(state, held, 0.004, np.array(response))
            walked.append(state)
        found = command.states(np.array([response, (30.0, 1.0, 20.0, 2.0)]))[0, 1:]
        # Where a command turns its rotor round, the divisor falls to its least, a thousandth, and rounding grows by as much.
        np.testing.assert_allclose(found, walked, rtol=1e-10, atol=1e-14)


def test_a_torque_about_a_principal_axis_turns_about_it() -> None:
    """By Newton, in the twin that everything else is compared with."""
    steps, inertia = 30, 1e-5 * np.diag([1.0, 2.0, 3.0])[None]
    driven = np.tile([2.0, 0.0, 0.0], (1, 1, 2 * steps + 1, 1))
    rate, slope = integrated(np.zeros((1, 1, 3)), driven, inertia, np.linalg.inv(inertia), np.zeros((1, 3)), 0.004)
    np.testing.assert_allclose(rate[0, 0, :, 0], 2.0 * 0.004 * np.arange(steps + 1), rtol=1e-12)
    assert (slope[0, 0] == [2.0, 0.0, 0.0]).all()


def lively(rotors: int = 4) -> FlightSignals:
    """Two seconds in which nothing is even: reversed rotors, too, a battery that falls, and an accelerometer that shakes."""
    rng, time = np.random.default_rng(5), np.arange(1000) / RATE
    command = np.repeat(rng.uniform(-0.1, 1.0, (250, rotors)), 4, axis=0)
    gyro, force = (np.cumsum(rng.normal(size=(1000, 3)), axis=0) * size for size in (0.1, 0.03))
    return FlightSignals(
        "lively",
        HeldCommand(0.0, 1.0 / RATE, command),
        Readings(time, gyro),
        Readings(time, force + np.array([0.0, 0.0, 9.81])),
        Readings(time, command),
        ((0.0, float(time[-1])),),
        supply=Readings(time[::20], 4.2 - 0.4 * time[::20, None]),
    )


def any_plant(sets: int, rotors: int = 4) -> Plant:
    """Sets of which every number plays a part; some share their rotors' response, one has no air and no lever."""
    rng = np.random.default_rng(6)
    root = rng.normal(size=(sets, 3, 3))
    one = plant_of(frame_vehicle("quad_x:0.028" if rotors == 4 else "hexa_x:0.03", MASS))
    many = picked(one, np.zeros(sets, np.int64))
    some = np.arange(sets) % 3
    aside = {name: size * rng.normal(size=(sets, 3)) for name, size in ANY.items()}
    aside["lever"][0] = 0.0
    return replace(
        many,
        **aside,
        response=np.array([[20.0, 0.0, 20.0, 0.0], [0.0, 12.0, 0.0, 12.0], [3.0, 9.0, 2.0, 5.0]])[some],
        delay=np.array([0.0, 0.0083, 0.004])[some],
        thrust=many.thrust + rng.uniform(0.0, 0.02, many.thrust.shape),
        inertia=1.5e-5 * (np.eye(3) + 0.1 * root @ np.swapaxes(root, 1, 2)),
        damping=rng.uniform(0.0, 1e-5, (sets, 3)),
        turn_since=rng.uniform(0.0, 2.0, sets),
        force_delay=rng.uniform(0.0, 0.006, sets),
        speed_delay=np.array([0.0, 0.003, 0.0])[some],
        drag_arm=MASS * np.linspace(0.0, 0.02, sets),
        supply=np.stack([0.4 * some, np.full(sets, 3.7)], axis=1),
    )


ANY = {"lever": 0.01, "tilt": 0.02, "turn_offset": 3.0, "turn_drift": 0.5, "force_offset": 0.1}


@pytest.mark.parametrize("fading", [None, 0.3])
def test_what_is_sensed_is_what_the_twin_says(fading: float | None) -> None:
    """Windows that do not fill the last lanes, sets that differ in everything, a push: to what rounding grows to."""
    flight = lively()
    windows = cut_windows(flight, 11, length=0.2, fading=fading)
    plant = any_plant(5)
    np.testing.assert_allclose(rotor_states(plant, windows), followed_states(plant, windows), rtol=1e-10, atol=1e-13)
    push = np.random.default_rng(7).normal(size=(1, 11, windows.steps + 1, 3))
    for pushed in (None, push):
        mine, twin = predict(plant, windows, pushed), predicted(plant, windows, pushed)
        # Rates of some 10 rad/s and forces of some 10 m/s^2, by a thousand additions each.
        np.testing.assert_allclose(mine.rate, twin.rate, rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(mine.force, twin.force, rtol=1e-10, atol=1e-11)
        means = predicted_means(plant, windows, 5, pushed)
        whole = np.concatenate([twin.rate, twin.force], axis=-1)[:, :, 1:].reshape(5, 11, 8, 5, 6).mean(axis=3)
        np.testing.assert_allclose(means, whole, rtol=1e-10, atol=1e-11)
        # A block that is not whole is left out.
        assert predicted_means(plant, windows, 7, pushed).shape == (5, 11, 5, 6)


def test_measured_speeds_and_six_rotors_are_sensed_as_the_twin_says() -> None:
    flight = lively(6)
    speeds = Readings(flight.commanded.time, 900.0 + 800.0 * np.abs(flight.commanded.values))
    plant = any_plant(4, 6)
    for driven in (flight, replace(flight, speeds=speeds)):
        windows = cut_windows(driven, 3, length=0.1)
        mine, twin = predict(plant, windows), predicted(plant, windows)
        np.testing.assert_allclose(mine.rate, twin.rate, rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(mine.force, twin.force, rtol=1e-10, atol=1e-11)


def test_a_set_that_diverges_is_not_finite_and_leaves_others_alone() -> None:
    windows = cut_windows(lively(), 3, length=0.2)
    plant = any_plant(2)
    wild = replace(plant, damping=plant.damping * np.array([[1.0], [-1e9]]))
    found, alone = predict(wild, windows).rate, predict(plant, windows).rate
    assert not np.all(np.isfinite(found[1]))
    np.testing.assert_array_equal(found[0], alone[0])


def test_measured_means_are_taken_once() -> None:
    windows = cut_windows(lively(), 3, length=0.2)
    both = np.concatenate([windows.rate, windows.force], axis=-1)
    found = windows.measured_means(5)
    np.testing.assert_allclose(found, both[:, 1:].reshape(3, 8, 5, 6).mean(axis=2), rtol=1e-12)
    assert windows.measured_means(5) is found
    assert windows.select(np.array([1])).measured_means(5).shape == (1, 8, 6)


def test_sets_that_share_parts_are_predicted_as_alone() -> None:
    """What sets have in common is computed once; each still reads what it would read by itself, to the bit."""
    flight = signals(
        HOVER * (1.0 + 0.1 * np.sin(np.arange(1000) / 20.0))[:, None] + np.array([0.0, 0.01, 0.0, -0.01]), (0.3, -0.2, 0.1)
    )
    windows = cut_windows(flight, 3, length=0.2)
    base = craft(drag=Drag(center=(0.0, 0.0, HEIGHT)))
    crafts = [base, craft(command_delay=0.01), replace(base, center_of_mass=(0.001, 0.0, 0.0)), replace(base, mass=0.03)]
    levers = [(0.0, 0.0, 0.0), (0.002, 0.0, 0.001)]
    plants = [plant_of(one, lever) for one in crafts for lever in levers]
    together = predict(stacked(plants), windows)
    for k, plant in enumerate(plants):
        # Arms that are zero for one are not for all: alone, the air is left out, which is the same.
        alone = predict(stacked([plant, plants[0]]), windows)
        np.testing.assert_array_equal(together.rate[k], alone.rate[0])
        np.testing.assert_array_equal(together.force[k], alone.force[0])


def test_principal_axes_turn_as_any_axes_do() -> None:
    """A product of inertia of nothing takes the general equations; both are Euler's."""
    flight = signals(HOVER + np.array([0.0, 0.02, 0.01, -0.03]), (2.0, -1.0, 3.0))
    plain = plant_of(craft(drag=Drag(angular_linear=(1e-5, 2e-5, 3e-5))))
    general = replace(plain, inertia=plain.inertia + 1e-18 * (1.0 - np.eye(3)))
    found = [predict(plant, window(flight)).rate for plant in (plain, general)]
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-9)


def test_distinct_sets() -> None:
    rows = np.array([[1.0, 2.0], [0.0, 2.0], [1.0, 2.0], [1.0, 3.0]])
    first, kind = distinct(rows[:, :1], rows[:, 1:])
    np.testing.assert_array_equal(rows[first][kind], rows)
    assert len(first) == 3
    assert kind[0] == kind[2]
    two = stacked([plant_of(craft()), plant_of(craft(command_delay=0.01))])
    assert picked(two, np.array([1, 1, 0])).delay.tolist() == [0.01, 0.01, 0.0]
