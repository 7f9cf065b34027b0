"""The soft rate loop, inverted: it asks for what is wanted, and the simulated vehicle gives it after the rotors' lag."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from airworthy.control.gains_for import rate_loop_parameters
from airworthy.control.levels import ControlConfig
from airworthy.control.rate_loop import (
    RateLoopState,
    backward_euler_coefficients,
    exact_coefficients,
    low_pass_constants,
    rate_loop,
)
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.race.pilots.rate_inversion import RateLoopInverse
from airworthy.simulation import Imu, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

RACER = vehicle("flightgoggles_2019")
RATE = 960.0
HOLD = 4
"""Physics steps per command: 240 Hz (spec/race 5.2)."""
LAG = 0.02
"""Of the rotors [s] (spec/flightgoggles 4.1)."""
ZERO = (0.0, 0.0, 0.0)


@pytest.mark.parametrize("published", [False, True])
def test_the_loop_itself_asks_for_what_is_wanted(published: bool) -> None:
    """Held against `rate_loop`, whose moment is J a, with samples and wishes that jump.

    The loop filters one more sample than the pilot has seen when it commands; given that sample, the inverse is exact.
    """
    rng = np.random.default_rng(3)
    inverse = RateLoopInverse(RACER, 1, RATE, ControlConfig(published_filter=published))
    gains = rate_loop_parameters(RACER)
    p, q = low_pass_constants(30.0)
    coefficients = (backward_euler_coefficients if published else exact_coefficients)(p, q, 1.0 / RATE)
    state = RateLoopState(ZERO, ZERO, ZERO)
    for _ in range(200):
        gyro, wanted = rng.normal(0.0, 5.0, 3), rng.uniform(-80.0, 80.0, 3)
        ahead = RateLoopInverse(RACER, 1, RATE, ControlConfig(published_filter=published))
        ahead.filtered, ahead.slope, ahead.integral = (x.copy() for x in (inverse.filtered, inverse.slope, inverse.integral))
        before = ahead.integral.copy()
        ahead.advance(gyro[None], np.zeros((1, 3)))  # filter states of the loop's next step; the integral is that of before
        ahead.integral = before
        command = ahead.command(wanted)
        assert ahead.asked(command)[0] == pytest.approx(wanted, abs=1e-9)
        moment, state = rate_loop(tuple(gyro), tuple(command[0]), state, coefficients, 1.0 / RATE, gains)
        assert np.asarray(moment) == pytest.approx(np.asarray(RACER.inertia[:3]) * wanted, abs=1e-9)
        inverse.advance(gyro[None], command)
        assert inverse.filtered[0] == pytest.approx(state.filtered, abs=1e-12)
        assert inverse.slope[0] == pytest.approx(state.slope, abs=1e-9)
        assert inverse.integral[0] == pytest.approx(np.asarray(state.integral), abs=1e-12)


def flown(law: Callable[[float, Array], Array], seconds: float, inverted: bool = True) -> Array:
    """Body rates at each physics step [rad/s], (steps, 3), without noise, from hover.

    Args:
        law: From time [s] and body rate to the angular acceleration wanted [rad/s^2], or to the command itself.
        seconds: Of flight.
        inverted: Whether the law's answer goes through the inverse.
    """
    config = SimulatorConfig.published(RACER, control_rate=RATE / HOLD, wrench_noise=False, imu=Imu())
    simulator = Simulator(RACER, config, 1)
    inverse = RateLoopInverse.of(RACER, 1, config)
    rates = []
    for step in range(round(seconds * RATE)):
        if step % HOLD == 0:
            answer = law(step / RATE, np.asarray(simulator.rate, float)[0])
            command = inverse.command(answer) if inverted else answer[None]
        samples = simulator.advance(1, np.c_[[RACER.mass * RACER.gravity], command], imu_log=True)
        assert samples is not None
        inverse.advance(samples[..., 3:6], command)
        rates.append(np.asarray(simulator.rate, float)[0])
    return np.array(rates)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("size", [-60.0, 10.0, 60.0])
def test_angular_acceleration_is_obtained_behind_the_lag(axis: int, size: float) -> None:
    """Acceptance 5 of spec/race: within 5 % up to 60 rad/s^2. Measured: 2.3 % too little, for commands are held for 4 ms."""
    wanted = np.where(np.arange(3) == axis, size, 0.0)
    rates = flown(lambda time, rate: wanted, 0.25)
    obtained = np.diff(rates, axis=0)[round(5 * LAG * RATE) :] * RATE
    assert np.max(np.abs(obtained - wanted)) < 0.05 * abs(size)


def test_a_changing_angular_acceleration_is_obtained_too() -> None:
    """Each sample of a sine of 60 rad/s^2 and 2 Hz, against the same sine behind a lag of 20 ms and half a held command."""
    turn = 2.0 * np.pi * 2.0
    rates = flown(lambda time, rate: np.array([60.0 * np.sin(turn * time), 0.0, 0.0]), 1.0)
    obtained = np.diff(rates[:, 0]) * RATE
    time = np.arange(1, len(rates)) / RATE - 0.5 * HOLD / RATE
    # A first-order lag turns sin(w t) into sin(w t - atan(w lag)) / sqrt(1 + (w lag)^2) once its start has faded.
    expected = 60.0 * np.sin(turn * time - np.arctan(turn * LAG)) / np.sqrt(1.0 + (turn * LAG) ** 2)
    late = slice(round(0.25 * RATE), None)
    assert np.max(np.abs(obtained - expected)[late]) < 0.05 * 60.0


def test_a_step_of_three_radians_per_second() -> None:
    """Acceptance 5 of spec/race: 95 % within 0.12 s, against half a second of the bare loop (2.65 to 3.07 rad/s at 0.5 s)."""
    step = np.array([3.0, 0.0, 0.0])
    # The tracker's rate gain: 26 1/s with a lag of 20 ms has a damping of 0.69, so it overshoots by some percent.
    rolled = flown(lambda time, rate: 26.0 * (step - rate), 0.5)[:, 0]
    bare = flown(lambda time, rate: step, 0.6, inverted=False)[:, 0]
    reached = [int(np.argmax(rate >= 0.95 * 3.0)) / RATE for rate in (rolled, bare)]
    assert 0.0 < reached[0] < 0.12
    assert reached[1] > 0.3
    assert np.max(rolled) < 1.1 * 3.0


def test_a_batch_flies_as_its_members_do() -> None:
    rng = np.random.default_rng(1)
    gyro, commands, wanted = rng.normal(size=(20, 3, 3)), rng.normal(size=(5, 3, 3)), rng.normal(size=(3, 3))
    batch = RateLoopInverse(RACER, 3, RATE)
    singles = [RateLoopInverse(RACER, 1, RATE) for _ in range(3)]
    for k, command in enumerate(commands):
        batch.advance(gyro[4 * k : 4 * k + 4], command)
        for n, single in enumerate(singles):
            single.advance(gyro[4 * k : 4 * k + 4, n : n + 1], command[n : n + 1])
    assert np.array_equal(batch.command(wanted), np.vstack([s.command(wanted[n]) for n, s in enumerate(singles)]))
    batch.reset()
    assert np.array_equal(batch.command(np.zeros(3)), np.zeros((3, 3)))


def test_other_loops_are_refused() -> None:
    with pytest.raises(AirworthyError, match="'rate_thrust', whose law has no inverse here"):
        RateLoopInverse.of(RACER, 1, SimulatorConfig(level="rate_thrust"))
    with pytest.raises(AirworthyError, match=r"0 and 960 Hz arrived"):
        RateLoopInverse(RACER, 0, RATE)
