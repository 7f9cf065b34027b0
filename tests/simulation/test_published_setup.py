"""How FlightGoggles flies its own vehicles: loop, sensor, steps; and what a pilot made for that loop loses above another."""

from __future__ import annotations

import math

import numpy as np
import pytest

from airworthy.control.levels import rate_level
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.simulation import Imu, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle, vehicle_names

RACER = vehicle("flightgoggles_2019")
COMMANDED = 28.0
"""[N], three quarters of what the rotors give."""
# Spec/flightgoggles 4.3: low-pass p, q and gains of the loop; spec/race 5.1: its inverse.
P, Q = (2.0 * math.pi * 30.0) ** 2, math.sqrt(2.0) * 2.0 * math.pi * 30.0
KP, KI, KD = 9.0, 3.0, 0.3


def test_the_family_has_its_loop_and_all_others_the_plain_one() -> None:
    own = {name for name in vehicle_names() if rate_level(vehicle(name)) != "rate_thrust"}
    assert own == {"flightgoggles", "flightgoggles_2019"}
    assert rate_level(RACER) == "rate_thrust:flightgoggles"


def test_the_published_configuration() -> None:
    found = SimulatorConfig.published(RACER, control_rate=240.0)
    assert (found.level, found.integrator, found.physics_rate) == ("rate_thrust:flightgoggles", "euler", 960.0)
    assert found.gyro_feedback
    assert found.wrench_noise
    assert found.control_rate == 240.0
    assert found.imu is not None
    # Samples of variance 0.005 (m/s^2)^2 and 0.003 (rad/s)^2 at 960 Hz (spec/flightgoggles 4.2), no walk in 2019.
    assert np.square(found.imu.accelerometer_noise) * 960.0 == pytest.approx(0.005)
    assert np.square(found.imu.gyroscope_noise) * 960.0 == pytest.approx(0.003)
    assert found.imu.gyroscope_walk == (0.0, 0.0, 0.0)
    newer = SimulatorConfig.published(vehicle("flightgoggles")).imu
    assert newer is not None
    device = Imu.named("flightgoggles")
    for name in ("accelerometer_noise", "gyroscope_noise", "accelerometer_walk", "gyroscope_walk"):
        assert getattr(newer, name) == pytest.approx(getattr(device, name))
    assert SimulatorConfig.published(RACER, imu=None, gyro_feedback=False).imu is None


def test_mistakes_get_one_sentence() -> None:
    with pytest.raises(AirworthyError, match="'carl' has no published configuration"):
        SimulatorConfig.published(vehicle("carl"))
    with pytest.raises(AirworthyError, match=r"nothing at level 'rate_thrust', .* level 'rate_thrust:flightgoggles'"):
        SimulatorConfig(level="rate_thrust", gyro_feedback=True)
    with pytest.raises(AirworthyError, match="gyro_feedback changes nothing"):
        SimulatorConfig.published(RACER, level="rate_thrust")
    with pytest.raises(AirworthyError, match="'carl' states no inertial sensor"):
        Imu.recorded(vehicle("carl"))


def rolled(level: str) -> tuple[float, float]:
    """Mean thrust [N] and mean deviation of the rotors' speeds [rad/s] of a pilot that inverts the published loop.

    It rolls from side to side by 80 degrees every half second, at 240 Hz, on the noisy gyroscope through a first-order filter
    of 3.5 samples: the attitude part of the tracker of spec/race 5.2, its commands by 5.1.
    """
    count, dt = 8, 1.0 / 960.0
    reads = level == "rate_thrust:flightgoggles"
    config = SimulatorConfig.published(RACER, control_rate=240.0, level=level, gyro_feedback=reads)
    simulator = Simulator(RACER, config, count, seed=1)
    low, slope, integral, rate, command = (np.zeros((count, 3)) for _ in range(5))
    thrusts: list[Array] = []
    speeds: list[Array] = []
    for tick in range(480):
        samples = simulator.advance(4, np.c_[np.full(count, COMMANDED), command], imu_log=True)
        assert samples is not None
        for gyro in np.asarray(samples, float)[..., 3:6]:
            slope = (slope + P * dt * (gyro - low)) / (1.0 + Q * dt + P * dt * dt)
            low = low + dt * slope
            integral = integral + (command - low) * dt
            rate = rate + (gyro - rate) / 3.5
        attitude = np.asarray(simulator.attitude, float)
        error = -2.0 * attitude[:, :3] * np.sign(attitude[:, 3:])
        error[:, 0] += 0.7 * (1 if tick // 120 % 2 == 0 else -1)
        wanted = np.clip(220.0 * error - 26.0 * rate, -80.0, 80.0)
        command = low + (wanted + KD * slope - KI * integral) / KP
        speed = np.asarray(simulator.field("rotor_speed"), float)
        thrusts.append(1.91e-6 * np.square(speed).sum(axis=1))
        speeds.append(speed)
    return float(np.mean(thrusts[60:])), float(np.std(speeds[60:], axis=0).mean())


def test_plain_rate_thrust_costs_a_racer_its_thrust() -> None:
    """The published loop gives what is commanded; plain `rate_thrust`, which is stiffer, answers with rotors at their limits.

    Measured: 27.99 N and 91 rad/s against 20.9 N and 569 rad/s, 25 % of the thrust; a whole race lost 40 % (spec/race 4.2).
    """
    thrust, spread = rolled("rate_thrust:flightgoggles")
    plain, chatter = rolled("rate_thrust")
    assert thrust == pytest.approx(COMMANDED, rel=0.01)
    assert plain < 0.8 * COMMANDED
    assert chatter > 4.0 * spread
