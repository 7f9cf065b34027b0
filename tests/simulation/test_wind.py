"""Wind: constant, gust pulse, Dryden turbulence against the MIL-F-8785C forms."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy

from airworthy.simulation.config import Ground, SimulatorConfig, Wind
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.twin import Twin
from airworthy.vehicles import vehicle
from airworthy.vehicles.record import Drag, WrenchNoise

K, M = 0.8, 1.0
KITE = replace(vehicle("flightgoggles"), mass=M, gravity=1e-9, drag=Drag(linear=(K,) * 3), wrench_noise=WrenchNoise())
"""Without weight and with linear drag it follows the air with the time constant m / k."""


def drifting(wind: Wind, env_count: int = 1, **config: object) -> Simulator:
    simulator = Simulator(KITE, SimulatorConfig(wind=wind, **config), env_count=env_count)  # type: ignore[arg-type]
    simulator.reset(rotor_speed=np.zeros(4))
    return simulator


def test_constant_wind_carries_along() -> None:
    wind = np.array([3.0, -2.0, 1.0])
    simulator = drifting(Wind(mean=tuple(wind)))
    simulator.advance(960, np.zeros(4))
    assert simulator.field("wind")[0] == pytest.approx(wind)
    assert simulator.velocity[0] == pytest.approx(wind * (1 - np.exp(-K / M)), rel=1e-5)


def test_still_air_relative_velocity_counts() -> None:
    """Moving with the wind feels no drag."""
    simulator = drifting(Wind(mean=(3.0, -2.0, 1.0)))
    simulator.reset(velocity=(3.0, -2.0, 1.0), rotor_speed=np.zeros(4))
    simulator.advance(960, np.zeros(4))
    assert simulator.velocity[0] == pytest.approx([3.0, -2.0, 1.0], rel=1e-6)


def test_gust_is_one_cosine_pulse() -> None:
    """(1 - cos) / 2 between start and end, on top of the mean; nothing before and after."""
    peak, mean = np.array([4.0, -1.0, 2.0]), np.array([1.0, 0.0, 0.0])
    simulator = drifting(Wind(mean=tuple(mean), gust=tuple(peak), gust_start=0.1, gust_duration=0.3))
    twin = Twin(simulator)
    for step in range(480):
        simulator.advance(1, np.zeros(4))
        t = step / 960
        inside = 0.1 < t < 0.4
        share = 0.5 * (1 - np.cos(2 * np.pi * (t - 0.1) / 0.3)) if inside else 0.0
        assert simulator.field("wind")[0] == pytest.approx(mean + peak * share, abs=1e-5)
    twin.advance(480, np.zeros(4))
    assert simulator.velocity[0] == pytest.approx(twin.field("velocity")[0], abs=1e-5)


def test_gust_follows_the_flights_own_clock() -> None:
    simulator = drifting(Wind(gust=(4.0, 0, 0), gust_start=0.1, gust_duration=0.2), 2)
    simulator.advance(192, np.zeros(4))
    simulator.reset(env_ids=[1], rotor_speed=np.zeros(4))
    simulator.advance(192 + 1)
    assert simulator.field("wind")[:, 0] == pytest.approx([0.0, 4.0], abs=1e-4)


SIGMA, LENGTH, AIRSPEED, RATE = np.array([1.5, 1.0, 0.7]), np.array([10.0, 8.0, 5.0]), 5.0, 200.0


def turbulence(env_count: int, steps: int, every: int) -> np.ndarray:
    """Air velocity (samples, env, 3) after ten correlation times."""
    wind = Wind(turbulence=tuple(SIGMA), turbulence_length=tuple(LENGTH), airspeed=AIRSPEED)
    simulator = drifting(wind, env_count, physics_rate=RATE, ground=Ground(-1e4))
    simulator.advance(4000, np.zeros(4))
    out = np.empty((steps // every, env_count, 3), np.float32)
    for k in range(len(out)):
        simulator.advance(every)
        out[k] = simulator.field("wind")
    assert not simulator.diverged.any()
    return out


def test_dryden_deviation() -> None:
    """Standard deviation within 3 % on every axis, over 1,024 flights and 20 s (some 10^4 correlation times), mean zero."""
    air = turbulence(1024, 4000, 100)
    assert air.std(axis=(0, 1), dtype=float) == pytest.approx(SIGMA, rel=0.03)
    assert np.abs(air.mean(axis=(0, 1), dtype=float)).max() < 0.08  # 4 standard errors along the wind
    # Axes and flights are independent.
    flat = air.reshape(-1, 3)
    assert np.abs(np.corrcoef(flat.T) - np.eye(3)).max() < 0.03
    assert np.abs(np.corrcoef(air[:, :20, 0].T) - np.eye(20)).max() < 0.95


def dryden_form(axis: int, frequency: np.ndarray) -> np.ndarray:
    """One-sided density per hertz of MIL-F-8785C, frozen turbulence crossed at V: Phi(Omega) with Omega = 2 pi f / V."""
    lag = 2 * np.pi * frequency * LENGTH[axis] / AIRSPEED
    form = 1 / (1 + lag**2) if axis == 0 else 0.5 * (1 + 3 * lag**2) / (1 + lag**2) ** 2
    return np.asarray(4 * SIGMA[axis] ** 2 * LENGTH[axis] / AIRSPEED * form)


def test_dryden_spectrum() -> None:
    """Welch's estimate, averaged in bands of a third of a decade, within 15 %; the forms integrate to sigma^2."""
    air = turbulence(64, 24000, 5)  # 40 Hz over 120 s
    frequency, density = scipy.signal.welch(air, fs=RATE / 5, nperseg=2048, axis=0)
    density = density.mean(axis=1)
    edges = np.geomspace(0.03, 10.0, 8)
    for axis in range(3):
        grid = np.geomspace(1e-5, 1e4, 20001)
        assert np.trapezoid(dryden_form(axis, grid), grid) == pytest.approx(SIGMA[axis] ** 2, rel=2e-3)
        for low, high in pairwise(edges):
            band = (frequency >= low) & (frequency < high)
            ratio = np.log(density[band, axis] / dryden_form(axis, frequency[band])).mean()
            assert abs(ratio) < np.log(1.15), (axis, low, high, np.exp(ratio))


def test_turbulence_is_there_from_the_start() -> None:
    """The first step of a flight has the full deviation, and the filters their stationary mutual dependence."""
    wind = Wind(turbulence=tuple(SIGMA), turbulence_length=tuple(LENGTH), airspeed=AIRSPEED)
    simulator = drifting(wind, 8192, physics_rate=RATE)
    early = np.cov(simulator.field("turbulence").T)
    simulator.advance(1, np.zeros(4))
    assert simulator.field("wind").std(axis=0) == pytest.approx(SIGMA, rel=0.03)
    simulator.advance(int(12 * RATE))
    late = np.cov(simulator.field("turbulence").T)
    size = np.sqrt(np.outer(np.diag(late), np.diag(late)))
    assert np.abs(early - late).max() < 0.05 * size.max()
    assert np.abs((early - late) / size).max() < 0.06


def test_turbulence_does_not_depend_on_the_step() -> None:
    """Twice the rate, the same deviation and correlation time."""
    correlation = {}
    for rate in (100.0, 400.0):
        wind = Wind(turbulence=tuple(SIGMA), turbulence_length=tuple(LENGTH), airspeed=AIRSPEED)
        simulator = drifting(wind, 2048, physics_rate=rate)
        simulator.advance(int(15 * rate), np.zeros(4))
        first = simulator.field("wind")[:, 0].copy()
        simulator.advance(int(2 * rate))
        second = simulator.field("wind")[:, 0]
        correlation[rate] = np.corrcoef(first, second)[0, 1]
        assert second.std() == pytest.approx(SIGMA[0], rel=0.05)
    # exp(-2 s V / L) = 0.37
    for value in correlation.values():
        assert value == pytest.approx(np.exp(-1.0), abs=0.05)
