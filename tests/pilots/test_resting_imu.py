"""What a pilot is told of its inertial sensor at rest: mount and biases of the very flight, and none of its noise."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.pilots.pilot import check_observes, observe
from airworthy.simulation import Imu, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle


class Resting:
    name, level, observes = "resting", "rotor_speed", ("imu_resting",)


def made(imu: Imu | None) -> Simulator:
    simulator = Simulator(
        vehicle("x500"), SimulatorConfig(physics_rate=1000.0, control_rate=250.0, imu=imu), env_count=2, seed=3
    )
    half = np.sqrt(0.5)
    simulator.reset(position=(0.0, 0.0, 2.0), attitude=(half, 0.0, 0.0, half))  # right wing straight down
    return simulator


def test_a_perfect_sensor_feels_gravity_alone() -> None:
    found = observe(made(Imu()), ("imu_resting",))["imu_resting"]
    np.testing.assert_allclose(found, np.tile([0.0, 9.81, 0, 0, 0, 0], (2, 1)), atol=1e-5)


def test_a_turned_mount_and_biases() -> None:
    half = np.sqrt(0.5)
    simulator = made(Imu(orientation=(half, 0.0, 0.0, half), bias_initial=(0.5, 0.01, 0.0)))  # its y is the body's z
    biases = np.concatenate([simulator.field("accelerometer_bias"), simulator.field("gyroscope_bias")], axis=1)
    found = observe(simulator, ("imu_resting",))["imu_resting"]
    np.testing.assert_allclose(found - biases, np.tile([0.0, 0, -9.81, 0, 0, 0], (2, 1)), atol=1e-5)
    assert np.abs(biases).min() > 0.0


def test_it_is_the_mean_of_what_a_noisy_sensor_measures_in_hover() -> None:
    """And not its first sample, whose noise an estimator would take for a bias that is gone in flight."""
    simulator = Simulator(
        vehicle("x500"), SimulatorConfig(physics_rate=1000.0, control_rate=1000.0, imu=Imu.named("bmi088")), seed=3
    )
    simulator.reset(position=(0.0, 0.0, 2.0))
    resting = observe(simulator, ("imu_resting",))["imu_resting"][0]
    density = np.array([*Imu.named("bmi088").accelerometer_noise, *Imu.named("bmi088").gyroscope_noise])
    first = observe(simulator, ("imu",))["imu"][0]
    hover = simulator.rotor_speed
    samples = []
    for _ in range(400):  # short: it begins to fall over slowly
        simulator.step(hover)
        samples.append(simulator.field("imu")[0].copy())
    noise = density * np.sqrt(1000.0)
    assert np.all(np.abs(np.mean(samples, axis=0) - resting) < 4.0 * noise / np.sqrt(400) + 0.002)
    assert np.any(np.abs(first - resting) > 0.5 * noise)


def test_without_a_sensor_it_is_refused() -> None:
    with pytest.raises(AirworthyError, match="observes 'imu_resting', but no inertial sensor is simulated"):
        check_observes(made(None), Resting())  # type: ignore[arg-type]
