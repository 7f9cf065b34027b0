"""The linearised loop against the simulator that it stands for: its derivatives, its motion, and where it becomes unstable."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy

from airworthy.control.gain_parameters import gain_rows
from airworthy.control.levels import ControlConfig
from airworthy.control.linear import CHANNELS, FREQUENCIES, LinearLoop, linear_loop, margins_of
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle, vehicle
from airworthy.vehicles.record import WrenchNoise

NAMES = ("flightgoggles", "cf2x_L250", "lmf2", "base_octarotor")


def still(name: str) -> Vehicle:
    """Without noise, and with rotors that fall as they rise: else there is no derivative at hover."""
    item = vehicle(name)
    rotors = tuple(replace(r, response=replace(r.response, fall=r.response.rise)) for r in item.rotors)
    return replace(item, wrench_noise=WrenchNoise(), rotors=rotors)


def gains(item: Vehicle) -> dict[str, np.ndarray]:
    rows = gain_rows(item, ControlConfig(), "tracking", 1.0 / 960.0, item.rotor_count)
    return {name: np.asarray(rows[name], float) for name in ("position_gain", "velocity_gain", "attitude_gain", "rate_gain")}


def test_rotors_count_with_the_slower_of_rise_and_fall() -> None:
    item = still("lmf2")
    slow = item.rotors[0].response.rise
    quick = (slow[0] * 3.0, slow[1])
    for rise, fall in ((quick, slow), (slow, quick)):
        rotors = tuple(replace(r, response=replace(r.response, rise=rise, fall=fall)) for r in item.rotors)
        np.testing.assert_allclose(linear_loop(replace(item, rotors=rotors)).a, linear_loop(item).a)


def flown(item: Vehicle, rows: dict[str, np.ndarray], rate: tuple[float, float, float], seconds: float) -> np.ndarray:
    """Positions, velocities and rates (step, 9) at 100 Hz of a vehicle that hovers and is given a body rate."""
    simulator = Simulator(item, SimulatorConfig(level="tracking", disturbance=False))
    for name, value in rows.items():
        simulator.set_parameter(f"control_{name}", value)
    simulator.reset(rate=rate)
    simulator.set_command(np.zeros(14))
    out = []
    for _ in range(round(100 * seconds)):
        simulator.step()
        out.append(np.concatenate([simulator.position[0], simulator.velocity[0], simulator.rate[0]]))
    return np.array(out)


@pytest.mark.parametrize("name", NAMES)
def test_small_motions_are_those_of_the_simulator(name: str) -> None:
    """After a small kick in rate the linear system moves as the simulator does, to the second order of the kick."""
    item, kick = still(name), (0.02, -0.015, 0.01)
    loop = linear_loop(item)
    found = flown(item, {}, kick, 2.0)
    x0 = np.zeros(len(loop.a))
    x0[9:12] = kick
    closed = loop.a + loop.b @ loop.k
    times = np.arange(1, len(found) + 1) / 100.0
    expected = np.array([(scipy.linalg.expm(closed * t) @ x0)[[0, 1, 2, 3, 4, 5, 9, 10, 11]] for t in times])
    for columns in (slice(0, 3), slice(3, 6), slice(6, 9)):
        size = np.abs(expected[:, columns]).max()
        # Terms of second order are a hundredth of the motion; the law runs at 960 Hz and holds its wrench for half a step.
        assert np.abs(found[:, columns] - expected[:, columns]).max() < 0.03 * size


@pytest.mark.parametrize("name", ["flightgoggles", "lmf2"])
def test_the_roll_loop_is_unstable_where_its_margin_ends(name: str) -> None:
    """Scaled in K_R and K_W alike, the roll loop falls below its gain margin: 10 % above it settles, 10 % below it grows."""
    item = still(name)
    margin = linear_loop(item).margins("roll").gain_reduction
    assert 0.1 < margin < 0.9
    size = []
    for factor in (1.1 * margin, 0.9 * margin):
        rows = gains(item)
        for gain in ("attitude_gain", "rate_gain"):
            rows[gain] = rows[gain] * (factor, 1.0, 1.0)
        path = np.abs(flown(item, rows, (0.002, 0.0, 0.0), 12.0)[:, 1])
        size.append(path[-300:].max() / path[:300].max())
        stable = linear_loop(item, gains=rows).poles[-1].real < 0.0
        assert stable == (factor > margin)
    assert size[0] < 0.9
    assert size[1] > 1.2


def test_a_delay_beyond_the_margin_is_unstable() -> None:
    """Poles of the delayed loop by Pade's approximation: stable 10 % below the delay margin, unstable 10 % above."""
    loop = linear_loop(still("lmf2"))
    margin = loop.margins("pitch").delay
    for factor, sign in ((0.9, -1.0), (1.1, 1.0)):
        total = loop.delay + factor * margin
        assert np.sign(_delayed(loop, 4, total).real.max()) == sign


def _delayed(loop: LinearLoop, row: int, delay: float, order: int = 5) -> np.ndarray:
    """Poles with one wrench row delayed by Pade's approximation, the others by nothing."""
    from scipy.signal import tf2ss

    f = math.factorial
    c = [f(2 * order - k) * f(order) / (f(2 * order) * f(k) * f(order - k)) for k in range(order + 1)]
    numerator = [ck * (-delay) ** k for k, ck in enumerate(c)][::-1]
    denominator = [ck * delay**k for k, ck in enumerate(c)][::-1]
    pa, pb, pc, pd = tf2ss(numerator, denominator)
    others = [i for i in range(6) if i != row]
    a = loop.a + loop.b[:, others] @ loop.k[others]
    b, k = loop.b[:, [row]], loop.k[[row]]
    return np.asarray(np.linalg.eigvals(np.block([[a + b @ pd @ k, b @ pc], [pb @ k, pa]])))


def test_margins_of_a_loop_in_closed_form() -> None:
    """L = 4 / (s + 1)^3: |L| = 1/2 at sqrt(3) where the phase is -180 degrees; |L| = 1 at sqrt(4^(2/3) - 1)."""
    margins = margins_of(FREQUENCIES, 4.0 / (1j * FREQUENCIES + 1.0) ** 3)
    crossover = math.sqrt(4.0 ** (2.0 / 3.0) - 1.0)
    assert margins.gain == pytest.approx(2.0, rel=1e-4)
    assert margins.gain_reduction == 0.0
    assert margins.crossover == pytest.approx(crossover, rel=1e-4)
    assert margins.phase == pytest.approx(math.pi - 3.0 * math.atan(crossover), rel=1e-3)
    assert margins.delay == pytest.approx(margins.phase / crossover, rel=1e-3)
    w = np.geomspace(0.01, 100.0, 200_001)
    assert margins.sensitivity == pytest.approx((1.0 / np.abs(1.0 + 4.0 / (1j * w + 1.0) ** 3)).max(), rel=1e-4)
    assert margins.gain_db == pytest.approx(6.0206, abs=1e-3)


def test_a_loop_that_needs_its_gain_has_a_lower_margin() -> None:
    """L = 10 (s + 1)^2 / s^3 is stable for gains above 1/2 of 1, that is down to 1 / 20."""
    s = 1j * FREQUENCIES
    margins = margins_of(FREQUENCIES, 10.0 * (s + 1.0) ** 2 / s**3)
    assert margins.gain == math.inf
    assert margins.gain_reduction == pytest.approx(1.0 / 20.0, rel=1e-3)


@pytest.mark.parametrize("channel", CHANNELS)
def test_breaking_one_loop_leaves_the_others_closed(channel: str) -> None:
    """det(s - A - B K) = det(s - A - B_o K_o) (1 + L): at a point that is no pole."""
    loop = linear_loop(still("flightgoggles"))
    row = {"thrust": 2, "roll": 3, "pitch": 4, "yaw": 5}[channel]
    others = [i for i in range(6) if i != row]
    w = np.array([0.7, 5.0, 31.0])
    for frequency, gain in zip(w, loop.gain(channel, w) * np.exp(1j * w * loop.delay), strict=True):
        s = 1j * frequency * np.eye(len(loop.a))
        opened = np.linalg.det(s - loop.a - loop.b[:, others] @ loop.k[others])
        closed = np.linalg.det(s - loop.a - loop.b @ loop.k)
        assert closed / opened == pytest.approx(1.0 + gain, rel=1e-6)


def test_a_vehicle_that_leans_in_hover_is_linearised_there() -> None:
    """All rotors tilted alike by 5 degrees: small motions are the simulator's, whose law steers the frame that is level."""
    item = still("flightgoggles")
    axis = (math.sin(math.radians(5.0)), 0.0, math.cos(math.radians(5.0)))
    item = replace(item, rotors=tuple(replace(r, axis=axis) for r in item.rotors))
    loop, kick = linear_loop(item), (0.02, -0.015, 0.01)
    assert loop.poles[-1].real < -0.5
    rates = flown(item, {}, kick, 1.0)[:, 6:9]
    x0 = np.zeros(len(loop.a))
    x0[9:12] = kick
    times = np.arange(1, len(rates) + 1) / 100.0
    expected = np.array([(scipy.linalg.expm((loop.a + loop.b @ loop.k) * t) @ x0)[9:12] for t in times])
    assert np.abs(rates - expected).max() < 0.05 * np.abs(expected).max()
