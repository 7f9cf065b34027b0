"""Parts of the prediction of inertial sensors against closed forms: air, damping, and an accelerometer that is late."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from airworthy.vehicles import Drag, RotorResponse, Vehicle
from airworthy.vehicles.identification.known import frame_vehicle
from airworthy.vehicles.identification.plant import plant_of
from airworthy.vehicles.identification.predict import Windows, cut_windows, predict
from airworthy.vehicles.identification.signals import FlightSignals, HeldCommand, Readings

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
