"""The model that identification fits is the simulator's: what a gyro and an accelerometer read, by both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import Drag, RotorResponse, Vehicle, frame_vehicle
from airworthy.vehicles.identification.prediction.held_command import HeldCommand
from airworthy.vehicles.identification.prediction.plant import plant_of
from airworthy.vehicles.identification.prediction.predict import cut_windows, predict
from airworthy.vehicles.identification.prediction.signals import FlightSignals, Readings

RATE = 500


def craft(response: RotorResponse) -> Vehicle:
    made = frame_vehicle("hexa_x:0.15", 0.6)
    rotors = tuple(
        replace(
            r,
            axis=(0.0, 0.1 * r.spin, np.sqrt(0.99)),
            thrust=(0.0, 6e-4, 1.2e-6),
            torque=(0.0, 6e-6, 1.2e-8),
            response=response,
        )
        for r in made.rotors
    )
    return replace(
        made,
        rotors=rotors,
        inertia=(3.1e-3, 4.2e-3, 6.0e-3, 1e-4, -2e-4, 5e-5),
        center_of_mass=(0.004, -0.003, 0.002),
        drag=Drag(angular_linear=(2e-3, 3e-3, 1e-3)),
    )


@pytest.mark.parametrize(
    "response",
    [RotorResponse.first_order(0.06), RotorResponse((0.0, 0.012), (0.0, 0.012)), RotorResponse((8.0, 0.006), (4.0, 0.008))],
)
@pytest.mark.parametrize("delay", [0.0, 0.0078])
def test_predictions_are_those_of_the_simulator(response: RotorResponse, delay: float) -> None:
    vehicle = replace(craft(response), command_delay=delay)
    seconds, draw = 1.6, np.random.default_rng(0)
    count = int(seconds * RATE)
    exact = response.rise[1] == 0.0
    config = SimulatorConfig(
        physics_rate=4 * RATE, control_rate=RATE, level="rotor_speed", exact_rotors=exact, wrench_noise=False, disturbance=False
    )
    simulator = Simulator(vehicle, config, env_count=1, threads=1)
    command = np.repeat(draw.uniform(0.35, 0.8, (count // 25 + 1, 6)), 25, axis=0)[:count]
    rate, force = np.empty((count, 3)), np.empty((count, 3))
    simulator.reset(position=[0.0, 0.0, 50.0], rotor_speed=1000.0 * command[:1])
    axes = np.array([r.axis for r in vehicle.rotors])
    for k in range(count):
        rate[k] = simulator.rate[0]
        state = simulator.rotor_speed[0].astype(float)
        # What an accelerometer at the centre of mass reads; the vehicle has no drag against the air.
        force[k] = axes.T @ (0.0006 * state + 1.2e-6 * state**2) / vehicle.mass
        simulator.step(1000.0 * command[k : k + 1])
    time = np.arange(count) / RATE
    flight = FlightSignals(
        "a",
        HeldCommand(0.0, 1.0 / RATE, command),
        Readings(time, rate),
        Readings(time, force),
        Readings(time, command),
        ((0.05, seconds - 0.05),),
    )
    windows = cut_windows(flight, 12, 0.25, 0.002)
    found = predict(plant_of(vehicle, vehicle.center_of_mass), windows)
    # Means of sensors over 5 ms, and starts of them: curvature is what differs.
    assert np.abs(found.rate[0] - windows.rate).max() < 0.02
    assert np.abs(found.force[0] - windows.force).max() < 0.01 * 9.81
    assert np.abs(windows.rate - windows.rate[:, :1]).max() > 1.5
