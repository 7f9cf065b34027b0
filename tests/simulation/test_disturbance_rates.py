"""What disturbs a flight does not depend on the physics rate: each source of randomness at three rates or more.

Pushes are the same ones at every rate, so they are compared flight by flight. White and coloured noise is drawn per step: its
statistics are compared with the closed form that holds for any step. Estimates over n flights scatter by sqrt(2 / n) of a
variance (more for heavy tails, stated where it is so) and 1 / sqrt(n) of a correlation; five of these are allowed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.control.levels import ControlConfig
from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.simulation.config import Imu, Randomization, SimulatorConfig, Wind
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.twin import Twin
from airworthy.vehicles import vehicle
from airworthy.vehicles.record import Disturbance, Drag, WrenchNoise

RATES = (100.0, 240.0, 960.0)
ENVS = 4096
FIVE_SIGMA = 5.0 * np.sqrt(2.0 / ENVS)
BASE = replace(vehicle("flightgoggles"), gravity=1e-12, drag=Drag(), wrench_noise=WrenchNoise(), disturbance=Disturbance())
SHOVE = Disturbance(0.05, (4.75, 2.0, 1.0), (0.03, 0.02, 0.01))


def floating(rate: float, item: Any = BASE, env_count: int = ENVS, **config: Any) -> Simulator:
    """A body without weight, its rotors at rest."""
    simulator = Simulator(item, SimulatorConfig(physics_rate=rate, control_rate=20.0, **config), env_count=env_count, seed=7)
    simulator.reset(rotor_speed=np.zeros(4))
    return simulator


# ---- pushes ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [40.0, 50.0, 240.0, 333.0, 960.0, 1920.0])
def test_pushes_are_the_same_at_every_rate(rate: float) -> None:
    """Each flight's velocity after half a second is that at the published 100 Hz: no push lost, shortened or moved away."""
    item = replace(BASE, disturbance=replace(SHOVE, torque_max=(0.0, 0.0, 0.0)))
    ends = []
    for f in (100.0, rate):
        simulator = floating(f, item, 256)
        simulator.advance(round(0.5 * f), np.zeros(4))
        ends.append(np.array(simulator.velocity, float))
        # Steps of 333 Hz end a millisecond past the end of a span, in which a further push may have begun.
        if f == 333.0:
            simulator = floating(f, item, 256)
            simulator.advance(999, np.zeros(4))
            ends[-1] = np.array(simulator.velocity, float)
            published = floating(100.0, item, 256)
            published.advance(300, np.zeros(4))
            ends[0] = np.array(published.velocity, float)
    assert np.abs(ends[0]).max() > 0.05
    assert np.abs(ends[1] - ends[0]).max() < 1e-4 * np.abs(ends[0]).max()


def test_published_rate_has_the_published_pushes() -> None:
    """At the source's own rate a step has one draw of its own number: to the bit what is computed here from the draws."""
    item = replace(BASE, disturbance=replace(SHOVE, torque_max=(0.0, 0.0, 0.0)))
    simulator = floating(100.0, item, 64)
    key = flight_key(7, simulator.flight_ids, simulator.episode)
    bound = np.array(SHOVE.force_max, np.float32)
    hits = 0
    for step in range(60):
        simulator.advance(1, np.zeros(4))
        draw = uniforms(key, np.full(64, step), Stream.DISTURBANCE, 8).astype(np.float32)
        force = np.where(draw[:, :1] < 0.05, (draw[:, 1:4] * np.float32(2) - np.float32(1)) * bound, np.float32(0))
        felt = force * np.float32(1.0 / item.mass)
        assert np.array_equal(np.array(simulator.field("acceleration")), felt)
        hits += int((draw[:, 0] < 0.05).sum())
    assert hits > 100


@pytest.mark.parametrize("rate", [30.0, 100.0, 240.0, 960.0])
def test_twin_feels_the_same_pushes(rate: float) -> None:
    item = replace(BASE, disturbance=SHOVE)
    simulator = floating(rate, item, 64)
    twin = Twin(simulator)
    steps = round(0.4 * rate)
    simulator.advance(steps, np.zeros(4))
    twin.advance(steps, np.zeros(4))
    assert simulator.velocity == pytest.approx(twin.field("velocity"), abs=1e-5)
    assert simulator.rate == pytest.approx(twin.field("rate"), abs=1e-4)


def test_hover_spread_of_a_disturbed_vehicle() -> None:
    """lmf2 in hover strayed four times as far at 100 as at 960 Hz. Gains that do not look at the rate leave the law's own step
    of delay (3 %); pushes are the same ones, so that nothing is left to chance."""
    spread = []
    for rate in RATES:
        config = SimulatorConfig(level="position", physics_rate=rate, control=ControlConfig(gains="lmf2"))
        simulator = Simulator(vehicle("lmf2"), config, env_count=512, seed=3)
        simulator.set_command(np.zeros(4))
        squares = []
        for step in range(200):
            simulator.step()
            if step >= 100:
                squares.append(np.array(simulator.position, float) ** 2)
        spread.append(float(np.sqrt(np.mean(squares))))
    assert np.ptp(spread) < 0.05 * np.mean(spread), spread


# ---- noise on the body -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", RATES)
def test_stochastic_wrench(rate: float) -> None:
    """White noise of autocorrelation S moves the velocity by sqrt(S t) / m, and rates alike."""
    noise = WrenchNoise((1e-3, 2e-3, 5e-4), (1e-8, 2e-8, 1e-8))
    item = replace(BASE, wrench_noise=noise)
    simulator = floating(rate, item)
    seconds = 0.5
    simulator.advance(round(seconds * rate), np.zeros(4))
    velocity = np.array(simulator.velocity, float).var(axis=0)
    # Turning mixes the axes of what pushes in the world not at all: forces are drawn in the world, moments in the body.
    assert velocity == pytest.approx(np.array(noise.force) * seconds / item.mass**2, rel=FIVE_SIGMA)
    turning = np.array(simulator.rate, float).var(axis=0)
    assert turning == pytest.approx(np.array(noise.moment) * seconds / np.array(item.inertia[:3]) ** 2, rel=FIVE_SIGMA)


@pytest.mark.parametrize("rate", RATES)
def test_state_noise_of_the_semi_kinematic_family(rate: float) -> None:
    """Stated per step of 100 Hz: after t the velocity has walked by sigma sqrt(100 t)."""
    sigma = 0.02
    config = SimulatorConfig(
        dynamics="semi_kinematic",
        level="rate_thrust",
        physics_rate=rate,
        control_rate=20.0,
        state_noise=(0.0,) * 3 + (sigma,) * 3 + (0.0,) * 4,
    )
    simulator = Simulator(vehicle("carl"), config, env_count=ENVS, seed=7)
    simulator.advance(round(0.5 * rate), np.zeros(4))
    walked = np.array(simulator.velocity, float).var(axis=0)
    assert walked == pytest.approx(np.full(3, sigma**2 * 100.0 * 0.5), rel=FIVE_SIGMA)


# ---- air ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", RATES)
def test_turbulence(rate: float) -> None:
    """Variance, and correlation after 0.4 s: exp(-x) along the wind, (1 - x / 2) exp(-x) across, x = 0.4 s V / L.

    A discrete filter of the lateral form differs from it by less than V / (L rate), 1 % at 100 Hz.
    """
    sigma, length = np.array([1.5, 1.0, 0.7]), np.array([5.0, 5.0, 5.0])
    wind = Wind(turbulence=tuple(sigma), turbulence_length=tuple(length), airspeed=5.0)
    simulator = floating(rate, wind=wind)
    simulator.advance(round(0.3 * rate), np.zeros(4))
    first = np.array(simulator.field("wind"), float)
    simulator.advance(round(0.4 * rate))
    second = np.array(simulator.field("wind"), float)
    for air in (first, second):
        assert air.var(axis=0) == pytest.approx(sigma**2, rel=FIVE_SIGMA)
    x = 0.4 * 5.0 / length
    expected = np.exp(-x) * np.array([1.0, 1.0 - x[1] / 2.0, 1.0 - x[2] / 2.0])
    found = (first * second).mean(axis=0) / sigma**2
    assert found == pytest.approx(expected, abs=5.0 / np.sqrt(ENVS) + 5.0 / (length[0] * rate))


def test_gusts_blow_at_the_same_time() -> None:
    wind = Wind(mean=(1.0, 0.0, 0.0), gust=(4.0, -1.0, 2.0), gust_start=0.1, gust_duration=0.3)
    results = []
    for rate in (100.0, 200.0, 1000.0):
        simulator = floating(rate, env_count=1, wind=wind)
        simulator.advance(round(0.2 * rate) + 1, np.zeros(4))  # the wind of the last step is that at its start
        results.append(np.array(simulator.field("wind"))[0])
    assert results[0] == pytest.approx(results[1], abs=1e-5)
    assert results[0] == pytest.approx(results[2], abs=1e-5)


# ---- inertial sensor ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", RATES)
def test_inertial_sensor(rate: float) -> None:
    """A mean over 0.2 s has the variance density^2 / 0.2 s, a bias walks by its density times the root of time."""
    white = Imu(accelerometer_noise=(0.02, 0.01, 0.03), gyroscope_noise=(2e-3, 1e-3, 3e-3))
    simulator = floating(rate, imu=white)
    steps = round(0.2 * rate)
    samples = simulator.advance(steps, np.zeros(4), imu_log=True)
    assert samples is not None
    density = np.array([*white.accelerometer_noise, *white.gyroscope_noise])
    assert np.array(samples, float).mean(axis=0).var(axis=0) == pytest.approx(density**2 / 0.2, rel=FIVE_SIGMA)
    walking = Imu(accelerometer_walk=(0.02, 0.01, 0.03), gyroscope_walk=(2e-3, 1e-3, 3e-3))
    simulator = floating(rate, imu=walking)
    simulator.advance(steps, np.zeros(4))
    bias = np.concatenate([simulator.field("accelerometer_bias"), simulator.field("gyroscope_bias")], axis=1).astype(float)
    walk = np.array([*walking.accelerometer_walk, *walking.gyroscope_walk])
    assert bias.var(axis=0) == pytest.approx(walk**2 * 0.2, rel=FIVE_SIGMA)


# ---- what is drawn once ------------------------------------------------------------------------------------------------------


def test_draws_of_a_start_are_the_same_at_every_rate() -> None:
    """Mass, lag, wind, start pose, biases, mounting: functions of seed and flight."""
    spread = Randomization(0.1, 0.1, 0.1, 0.05, 0.3, 0.2, 1.0, 0.5, 1.0)
    imu = Imu(bias_initial=(0.1, 0.01, 0.02))
    results = []
    for rate in RATES:
        simulator = floating(rate, env_count=32, randomization=spread, imu=imu)
        names = ("mass", "inertia", "rotor_thrust", "rotor_rise", "wind", "imu_rotation")
        drawn = [simulator.parameter(name) for name in names]
        drawn += [np.array(simulator.field(name)) for name in ("position", "attitude", "accelerometer_bias", "gyroscope_bias")]
        results.append(np.concatenate([x.reshape(32, -1) for x in drawn], axis=1))
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])
