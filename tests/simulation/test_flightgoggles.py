"""The checks of the FlightGoggles specification, section 10, on both published vehicles, with the tolerances given there.

5 (the Butterworth filter) is tested with the rate loop in tests/control, 10 to 13 and 15 with sensors, the race and rendering.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.control.levels import ControlConfig
from airworthy.core.frames import to_matrix
from airworthy.simulation.config import Imu, SimulatorConfig
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.twin import Twin
from airworthy.vehicles import hover_speed, vehicle
from airworthy.vehicles.record import Drag, Vehicle, WrenchNoise

BOTH = ["flightgoggles", "flightgoggles_2019"]
RATE = 960
HOVER = 1133.1511
IMU = Imu(
    accelerometer_noise=(np.sqrt(0.005 / RATE),) * 3,
    gyroscope_noise=(np.sqrt(0.003 / RATE),) * 3,
    accelerometer_walk=(np.sqrt(1e-7),) * 3,
    gyroscope_walk=(np.sqrt(1e-7),) * 3,
)


def quiet(name: str) -> Vehicle:
    return replace(vehicle(name), wrench_noise=WrenchNoise())


@pytest.mark.parametrize("name", BOTH)
def test_1_hover(name: str) -> None:
    item = quiet(name)
    assert hover_speed(item) == pytest.approx([HOVER] * 4, abs=5e-5)
    simulator = Simulator(item)
    start = np.array([18.5, 6.5, 1.0])
    simulator.reset(position=start, rotor_speed=np.full(4, HOVER))
    simulator.advance(10 * RATE, np.full(4, HOVER))
    assert np.linalg.norm(simulator.position[0] - start) < 1e-3


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
@pytest.mark.parametrize("name", BOTH)
def test_2_terminal_speed(name: str, integrator: Any) -> None:
    simulator = Simulator(quiet(name), SimulatorConfig(integrator=integrator))
    simulator.reset(rotor_speed=np.zeros(4))
    simulator.advance(8 * RATE, np.zeros(4))
    assert simulator.velocity[0] == pytest.approx([0, 0, -9.905], abs=0.005 * 9.905)


@pytest.mark.parametrize("name", BOTH)
def test_3_top_level_speed(name: str) -> None:
    """Full throttle, tilted so that lift balances weight: the speed where drag takes the rest."""
    item = quiet(name)
    thrust = sum(r.thrust[2] * r.speed_max**2 for r in item.rotors)
    tilt = np.arccos(item.mass * item.gravity / thrust)
    simulator = Simulator(item)
    simulator.reset(attitude=(0, np.sin(tilt / 2), 0, np.cos(tilt / 2)), rotor_speed=np.full(4, 2200.0))
    simulator.advance(6 * RATE, np.full(4, 2200.0))
    assert simulator.velocity[0] == pytest.approx([18.88, 0.0, 0.0], abs=0.01 * 18.88)


# 4, the motor step, is test_rotors.test_published_time_constant.


@pytest.mark.parametrize("name", BOTH)
def test_6_stochastic_wrench(name: str) -> None:
    """Deviation per step scales with 1/sqrt(dt), so that its effect does not depend on the step.

    Estimates: 3 x 1,024 x 60 draws (0.2 %) and 3 x 4,096 velocities (1.3 % of the variance).
    """
    item = vehicle(name)
    spread, variance, turn = {}, {}, {}
    for rate in (480, 960):
        simulator = Simulator(item, SimulatorConfig(physics_rate=rate), env_count=4096, seed=rate)
        command = np.full(4, hover_speed(item)[0])
        # Force alone: the moment's tilt would lend gravity's help.
        simulator.set_parameter("moment_noise", 0.0)
        simulator.advance(rate, command)
        variance[rate] = simulator.velocity.var()
        samples = []
        for _ in range(60):
            simulator.advance(1)
            samples.append(simulator.field("acceleration")[:1024] * item.mass)
        spread[rate] = np.std(np.array(samples) - [0, 0, item.mass * item.gravity])
        simulator = Simulator(item, SimulatorConfig(physics_rate=rate), env_count=4096, seed=rate)
        simulator.set_parameter("force_noise", 0.0)
        simulator.advance(rate // 4, command)
        turn[rate] = simulator.rate.var(axis=0)
    assert spread[960] == pytest.approx(0.693, rel=0.01)
    assert spread[480] == pytest.approx(0.490, rel=0.01)
    assert variance[480] == pytest.approx(variance[960], rel=0.05)
    # A Wiener process: W_F t / m^2; drag at 0.03 m/s takes nothing.
    assert variance[960] == pytest.approx(5e-4, rel=0.05)
    # Likewise for the rate, W_M t / J^2 per axis (the drag moment at 0.04 rad/s takes 1 %).
    expected = np.array(item.wrench_noise.moment) * 0.25 / np.array(item.inertia[:3]) ** 2
    for values in turn.values():
        assert values == pytest.approx(expected, rel=0.07)


def test_7_imu_at_rest() -> None:
    """2e6 samples of each axis with the stochastic wrench off; the bias variance grows by 1e-7 per second."""
    item, count = vehicle("flightgoggles"), 1024
    simulator = Simulator(item, SimulatorConfig(imu=IMU, wrench_noise=False), env_count=count)
    command = np.full(4, hover_speed(item)[0])
    log = simulator.advance(2 * RATE, command, imu_log=True)
    assert log is not None
    assert log.shape == (2 * RATE, count, 6)
    assert log.reshape(-1, 6).mean(axis=0, dtype=float) == pytest.approx([0, 0, 9.81, 0, 0, 0], abs=5e-4)
    assert log.reshape(-1, 6).var(axis=0, dtype=float) == pytest.approx([0.005] * 3 + [0.003] * 3, rel=0.01)
    simulator.advance(8 * RATE)
    for name in ("accelerometer_bias", "gyroscope_bias"):
        assert simulator.field(name).var() == pytest.approx(1e-6, rel=0.06)  # 3 x 1,024 samples: 2.6 %


def test_7_imu_in_flight_feels_the_force_that_acts() -> None:
    """Hovering with the wrench on: the accelerometer's variance is 0.005 + 0.48, and it is the force the dynamics used."""
    item = vehicle("flightgoggles")
    simulator = Simulator(item, SimulatorConfig(imu=IMU), env_count=1024)
    simulator.set_parameter("moment_noise", 0.0)
    log = simulator.advance(480, np.full(4, hover_speed(item)[0]), imu_log=True)
    assert log is not None
    assert log[:, :, :3].reshape(-1, 3).var(axis=0, dtype=float) == pytest.approx([0.005 + 0.48] * 3, rel=0.01)
    silent = Simulator(item, SimulatorConfig(imu=Imu()), env_count=64)
    silent.set_parameter("moment_noise", 0.0)
    before = silent.velocity.copy()
    silent.set_command(np.full(4, hover_speed(item)[0]))
    reading = silent.imu
    silent.advance(1)
    change = (silent.velocity - before) * RATE + [0, 0, item.gravity]
    assert reading[:, :3] == pytest.approx(change, abs=2e-3)


@pytest.mark.slow
def test_8_conservation() -> None:
    """Without forces, RK4 at 960 Hz, 2 s: energy and angular momentum to 1e-6 (longer and tighter in test_physics)."""
    item = replace(quiet("flightgoggles"), drag=Drag(), gravity=0.0)
    simulator = Simulator(item)
    rate, velocity = np.array([3.0, 1.0, 5.0]), np.array([1.0, 2.0, -3.0])
    simulator.reset(rate=rate, velocity=velocity, rotor_speed=np.zeros(4))
    twin = Twin(simulator)
    twin.advance(2 * RATE, np.zeros(4))
    j = np.array(item.inertia[:3])
    assert twin.field("velocity")[0] == pytest.approx(velocity, rel=1e-12)
    assert (j * twin.field("rate")[0] ** 2).sum() == pytest.approx((j * rate**2).sum(), rel=1e-6)
    assert to_matrix(twin.field("attitude")[0]) @ (j * twin.field("rate")[0]) == pytest.approx(j * rate, rel=1e-6)


STEP_TIMES = [0.1, 0.2, 0.5, 1.0, 3.0]
WITH_MOMENT, WITHOUT = [1.49, 2.24, 2.65, 2.71, 2.82], [1.53, 2.41, 3.07, 3.12, 3.06]


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize(("name", "expected"), [("flightgoggles", WITH_MOMENT), ("flightgoggles_2019", WITHOUT)])
def test_9_roll_rate_step(name: str, expected: list[float], published: bool) -> None:
    """3 rad/s of roll from hover, published gains, Euler, 960 Hz, within 2 %, with either form of the filter."""
    item = replace(quiet(name), rotors=vehicle("flightgoggles").rotors, inertia=vehicle("flightgoggles").inertia)
    config = SimulatorConfig(
        level="rate_thrust:flightgoggles", integrator="euler", control=ControlConfig(published_filter=published)
    )
    simulator = Simulator(item, config)
    rates, peak = {}, 0.0
    command = [item.mass * item.gravity, 3.0, 0.0, 0.0]
    for step in range(1, 3 * RATE + 1):
        simulator.advance(1, command if step == 1 else None)
        rates[step] = float(simulator.rate[0, 0])
        peak = max(peak, rates[step])
    assert [rates[round(t * RATE)] for t in STEP_TIMES] == pytest.approx(expected, rel=0.02)
    if expected is WITH_MOMENT:
        assert peak < 3.0
    else:
        assert peak == pytest.approx(3.12, rel=0.02)


# 14, a lockstep run twice, is test_determinism.test_two_processes.
