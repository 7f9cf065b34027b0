"""Clocks, command delay, what acts from outside (wrench, disturbance, battery, ground effect), the spread between flights."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core.frames import conjugate, from_euler, multiply, to_matrix
from airworthy.simulation.config import Imu, Randomization, SimulatorConfig, Wind
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.start_state import scatter
from airworthy.simulation.twin import Twin
from airworthy.vehicles import hover_speed, vehicle
from airworthy.vehicles.record import Battery, Disturbance, Drag, Vehicle, WrenchNoise

G = 9.81


def quiet(name: str = "flightgoggles", **changes: object) -> Vehicle:
    return replace(vehicle(name), wrench_noise=WrenchNoise(), disturbance=Disturbance(), **changes)  # type: ignore[arg-type]


# ---- clock -------------------------------------------------------------------------------------------------------------------


def schedule(physics: float, control: float, count: int) -> list[int]:
    simulator = Simulator(quiet(), SimulatorConfig(physics_rate=physics, control_rate=control))
    return [simulator.substeps(k) for k in range(count)]


RATES = [(960, 100), (960, 60), (1000, 30), (500, 500), (1200, 7), (100, 20), (960, 959)]


@pytest.mark.parametrize(("physics", "control"), RATES)
def test_command_k_falls_on_its_step(physics: int, control: int) -> None:
    """Command k takes over on step ceil(k f_physics / f_control): sums of whole numbers, no drift, over 3,000 commands."""
    exact = [ceil(Fraction(k * physics, control)) for k in range(3001)]
    assert np.array_equal(np.cumsum([0, *schedule(physics, control, 3000)]), exact)


@given(st.integers(10, 4000), st.integers(1, 4000), st.integers(0, 10**9))
def test_no_drift_late_in_a_flight(physics: int, control: int, k: int) -> None:
    """The schedule of any whole rates, however far from the start: floats would lose the step after some hours."""
    control = min(control, physics)
    simulator = Simulator(quiet(drag=Drag()), SimulatorConfig(physics_rate=physics, control_rate=control))
    start, end = (ceil(Fraction(i * physics, control)) for i in (k, k + 1))
    assert simulator.substeps(k) == end - start


def test_rates_that_are_whole_in_decimals_only() -> None:
    """99.9 Hz over 33.3 Hz is 3, though no float is exactly either."""
    assert schedule(99.9, 33.3, 1000) == [3] * 1000


def test_step_follows_the_schedule() -> None:
    simulator = Simulator(quiet(), SimulatorConfig(physics_rate=960, control_rate=100), env_count=2)
    flight_steps = []
    for _ in range(10):
        simulator.step(np.full(4, 1100.0))
        flight_steps.append(int(simulator.flight_step[0]))
    assert flight_steps == [ceil(9.6 * k) for k in range(1, 11)]
    assert simulator.time == pytest.approx([0.1, 0.1])
    assert simulator.step_count == 10
    simulator.reset()
    assert simulator.step_count == 0
    assert list(simulator.flight_step) == [0, 0]


def test_one_launch_or_many() -> None:
    """10 steps in one launch are 10 launches of one step, to the bit: the residual carries what float32 drops."""
    ends = []
    for cuts in ([40], [1] * 40, [7, 13, 20]):
        config = SimulatorConfig(imu=Imu((0.01,) * 3), wind=Wind(turbulence=(1, 1, 1)))
        simulator = Simulator(vehicle("flightgoggles"), config, env_count=3)
        simulator.reset(position=(50.0, -20.0, 30.0))
        for steps in cuts:
            simulator.advance(steps, np.full(4, 1140.0))
        fields = [n for n in simulator.layout.fields if n not in ("position", "position_residual", "saturated")]
        ends.append([simulator.field(name).tobytes() for name in fields])
        total = simulator.position.astype(float) + simulator.field("position_residual").astype(float)
        ends[-1].append(total)
    for other in ends[1:]:
        assert other[:-1] == ends[0][:-1]
        # The sum of position and residual differs by the rounding of the residual alone.
        assert other[-1] == pytest.approx(ends[0][-1], abs=1e-8)


def test_slow_motion_is_not_lost() -> None:
    """2 mm/s at 30 m altitude and 960 Hz moves 2 um a step, the spacing of float32 there; the residual keeps it."""
    simulator = Simulator(quiet(drag=Drag(), gravity=1e-12), SimulatorConfig())
    simulator.reset(position=(30.0, 30.0, 30.0), velocity=(2e-3, -2e-3, 0.0), rotor_speed=np.zeros(4))
    for _ in range(960):
        simulator.advance(1, np.zeros(4))
    assert simulator.position[0] - 30.0 == pytest.approx([2e-3, -2e-3, 0.0], abs=4e-6)


# ---- delay -------------------------------------------------------------------------------------------------------------------


def test_delay_per_environment() -> None:
    """The previous command holds for the first steps; afterwards everything is as if the new one had come then."""
    item = quiet()
    simulator = Simulator(item, SimulatorConfig(), env_count=4)
    old, new = np.full(4, 1000.0), np.full(4, 1300.0)
    simulator.reset(rotor_speed=old)
    simulator.advance(5, old)
    simulator.set_command(new, delay_steps=[0, 3, 10, 25])
    simulator.advance(10)
    tau = 0.02
    for k, delay in enumerate([0, 3, 10, 10]):
        expected = 1300.0 - 300.0 * np.exp(-(10 - delay) / 960 / tau)
        assert simulator.rotor_speed[k, 0] == pytest.approx(expected, rel=1e-5)
    # 15 steps of the longest delay are left, then it is over for good.
    simulator.advance(20)
    assert simulator.rotor_speed[3, 0] == pytest.approx(1300.0 - 300.0 * np.exp(-5 / 960 / tau), rel=1e-5)
    before = simulator.rotor_speed[0, 0]
    simulator.step()
    assert simulator.rotor_speed[0, 0] >= before


def test_delay_acts_once() -> None:
    """A repeated command is not delayed again, and a command without delay takes over at once."""
    simulator = Simulator(quiet(), SimulatorConfig())
    old, new = np.full(4, 1000.0), np.full(4, 1300.0)
    simulator.reset(rotor_speed=old)
    simulator.set_command(old)
    simulator.set_command(new, delay_steps=5)
    simulator.advance(10)
    reached = float(simulator.rotor_speed[0, 0])
    simulator.advance(1)
    assert simulator.rotor_speed[0, 0] > reached
    assert simulator.field("rotor_command")[0, 0] == 1300.0
    simulator.set_command(old, delay_steps=5)
    simulator.set_command(old)
    simulator.advance(1)
    assert simulator.field("rotor_command")[0, 0] == 1000.0


def test_a_new_flight_forgets_commands() -> None:
    """After a reset the delayed part of the first command follows the flight's own start, not the last flight."""
    simulator = Simulator(quiet(), SimulatorConfig(), env_count=2)
    simulator.advance(10, np.full(4, 300.0))
    simulator.reset(env_ids=[1])
    assert simulator._arrays.inputs()[0, :2] == pytest.approx([300.0, 1133.15], abs=0.01)
    simulator.set_command(np.full(4, 1500.0), delay_steps=5)
    simulator.advance(5)
    assert simulator.rotor_speed[1, 0] == pytest.approx(1133.15, abs=0.01)


# ---- from outside ------------------------------------------------------------------------------------------------------------


def test_external_wrench() -> None:
    """A world force accelerates by F / m, a body moment by M / J, whatever the attitude."""
    item = quiet(drag=Drag(), gravity=1e-12)
    simulator = Simulator(item, SimulatorConfig(imu=Imu()), env_count=2)
    simulator.reset(attitude=[(0, 0, 0, 1), (np.sin(0.5), 0, 0, np.cos(0.5))], rotor_speed=np.zeros(4))
    force, moment = np.array([1.0, -2.0, 3.0]), np.array([0.0, 0.0, 1e-3])
    simulator.set_external(force, moment)
    simulator.advance(96, np.zeros(4))
    assert simulator.velocity == pytest.approx(np.tile(force * 0.1 / item.mass, (2, 1)), rel=1e-4)
    assert simulator.rate[:, 2] == pytest.approx([1e-3 * 0.1 / item.inertia[2]] * 2, rel=1e-3)
    assert np.linalg.norm(simulator.imu[0, :3]) == pytest.approx(np.linalg.norm(force) / item.mass, rel=1e-4)
    simulator.set_external([force, -force])
    before = simulator.velocity.copy()
    simulator.advance(96)
    change = simulator.velocity - before
    assert change[0] == pytest.approx(-change[1], rel=1e-3)


def test_disturbance_probability_and_bounds() -> None:
    """Hits come with the given probability per step, uniform within their bounds, and are felt by the accelerometer."""
    shove = Disturbance(0.05, (4.75, 2.0, 1.0), (0.03, 0.02, 0.01), rate=960.0)
    item = replace(quiet(drag=Drag(), gravity=1e-12), disturbance=shove)
    simulator = Simulator(item, SimulatorConfig(), env_count=2048)
    simulator.reset(rotor_speed=np.zeros(4))
    force = []
    for _ in range(50):
        simulator.advance(1, np.zeros(4))
        force.append(simulator.field("acceleration") * item.mass)
    hit = np.abs(np.array(force)).max(axis=2) > 1e-6
    assert hit.mean() == pytest.approx(0.05, rel=0.05)  # 5,000 hits: 1.4 %
    assert np.abs(hit.mean(axis=1) - 0.05).max() < 0.025
    simulator.reset(rotor_speed=np.zeros(4))
    before = simulator.rate.copy()
    simulator.advance(1, np.zeros(4))
    moment = (simulator.rate - before) * 960 * np.array(item.inertia[:3])
    force_now = simulator.field("acceleration") * item.mass
    struck = np.abs(force_now).max(axis=1) > 1e-6
    for values, bound in ((force_now[struck], shove.force_max), (moment[struck], shove.torque_max)):
        assert (np.abs(values) <= np.array(bound) * 1.001).all()
        assert (np.abs(values).max(axis=0) > 0.85 * np.array(bound)).all()
        assert (np.abs(values.mean(axis=0)) < 0.3 * np.array(bound)).all()
    assert np.abs(moment[~struck]).max() == 0.0


def test_battery_sags() -> None:
    """Charge is power over voltage and efficiency; the voltage, and with it the top speed, falls by line and by resistance."""
    battery = Battery(voltage_full=16.8, voltage_empty=14.0, voltage_nominal=16.8, capacity=1300.0, resistance=0.005)
    item = quiet(battery=battery, drag=Drag())
    simulator = Simulator(item, SimulatorConfig(battery=True, physics_rate=480), env_count=2)
    twin = Twin(simulator)
    full = np.array([[2200.0] * 4, [1133.0] * 4])
    simulator.advance(480, full)
    twin.advance(480, full)
    assert simulator.field("battery_charge") == pytest.approx(twin.field("battery_charge"), rel=1e-4)
    # By hand at hover: P = 4 k_Q w^3 / efficiency, I from P = (V - R I) I, charge I t; the voltage hardly moves in a second.
    power = 4 * 2.6e-7 * 1133.0**3 / 0.7
    current = (16.8 - np.sqrt(16.8**2 - 4 * 0.005 * power)) / (2 * 0.005)
    charge = simulator.field("battery_charge")[1]
    assert charge == pytest.approx(current, rel=0.02)  # the open voltage falls by 2 % meanwhile
    ratio = simulator.field("battery_ratio")
    assert ratio[1] == pytest.approx((16.8 - 2.8 / 1300.0 * charge - 0.005 * current) / 16.8, rel=0.002)
    assert ratio[0] < ratio[1] < 1.0
    assert simulator.rotor_speed[0] == pytest.approx(np.full(4, 2200.0 * ratio[0]), rel=0.02)
    assert simulator.field("saturated")[0] == 1.0
    without = Simulator(item, SimulatorConfig(), env_count=1)
    without.advance(480, full[0])
    assert without.rotor_speed[0] == pytest.approx(np.full(4, 2200.0), rel=1e-5)


def test_ground_effect() -> None:
    """Thrust grows by 1 + c (radius / 4 h)^2, h at least half a radius, and not upside down."""
    coefficient, radius = 11.36859, 0.0231348
    base = quiet(drag=Drag())
    item = replace(base, rotors=tuple(replace(r, radius=radius) for r in base.rotors))
    heights = np.array([0.05, 0.1, 1.0, 0.001, 0.1])
    simulator = Simulator(item, SimulatorConfig(ground_effect=coefficient), env_count=5)
    attitude = np.tile([0.0, 0, 0, 1], (5, 1))
    attitude[4] = [1.0, 0, 0, 0]
    simulator.reset(position=np.c_[np.zeros((5, 2)), heights], attitude=attitude)
    simulator.advance(1, hover_speed(item))
    factor = simulator.field("acceleration")[:, 2] / G
    hub = np.maximum(heights, radius / 2 + 1e-6)
    expected = 1 + coefficient * (radius / (4 * hub)) ** 2
    expected[4] = 1.0
    assert factor == pytest.approx(expected, rel=1e-5)


# ---- spread between flights --------------------------------------------------------------------------------------------------

SPREAD = Randomization(mass=0.1, inertia=0.2, thrust=0.05, rotor=0.03, drag=0.5, lag=0.3, wind=2.0, position=0.5, yaw=1.0)


def spread_simulator(count: int, **changes: object) -> Simulator:
    config = SimulatorConfig(randomization=SPREAD)
    return Simulator(quiet(), config, env_count=count, seed=5, **changes)  # type: ignore[arg-type]


def test_a_start_that_leans_is_turned_about_the_vertical() -> None:
    """Leaning by 40 degrees or so, it leans as much after the turn: the vertical's direction in the body stays."""
    count = 64
    leaning = np.tile(from_euler(0.6, -0.4, 0.3), (count, 1))
    start = {"position": np.zeros((count, 3)), "attitude": leaning.copy()}
    scatter(start, Randomization(yaw=1.0), np.arange(4 * count, dtype=np.uint32).reshape(count, 4))
    np.testing.assert_allclose(to_matrix(start["attitude"])[:, 2], to_matrix(leaning)[:, 2], atol=1e-12)
    turn = to_matrix(multiply(start["attitude"], conjugate(leaning)))
    yaw = np.arctan2(turn[:, 1, 0], turn[:, 0, 0])
    assert np.abs(yaw).max() <= 1.0
    assert yaw.min() < -0.8
    assert yaw.max() > 0.8
    assert not start["position"].any()


def test_randomisation_ranges() -> None:
    """Every parameter stays within its share, fills it evenly, and by itself."""
    item, count = quiet(), 4096
    simulator = spread_simulator(count)
    mass = simulator.parameter("mass") / item.mass
    inertia = simulator.parameter("inertia")[:, :3] / (np.array(item.inertia[:3]) * mass[:, None])
    thrust = simulator.parameter("rotor_thrust").reshape(count, 4, 3)[:, :, 2] / item.rotors[0].thrust[2]
    torque = np.abs(simulator.parameter("rotor_torque").reshape(count, 4, 3)[:, :, 2]) / item.rotors[0].torque[2]
    drag = simulator.parameter("drag_norm")[:, 0] / 0.1
    lag = item.rotors[0].response.rise[0] / simulator.parameter("rotor_rise")[:, 0]
    wind = simulator.parameter("wind")
    start = simulator.position.copy()
    yaw = 2 * np.arctan2(simulator.attitude[:, 2], simulator.attitude[:, 3])
    even = {
        "mass": (mass - 1, 0.1),
        "inertia": (inertia[:, 1] - 1, 0.2),
        "drag": (drag - 1, 0.5),
        "lag": (lag - 1, 0.3),
        "wind": (wind[:, 0], 2.0),
        "x": (start[:, 0], 0.5),
        "z": (start[:, 2], 0.5),
        "yaw": (yaw, 1.0),
    }
    for name, (values, half) in even.items():
        assert np.abs(values).max() <= half * 1.0001, name
        assert values.std() == pytest.approx(half / np.sqrt(3), rel=0.04), name
        assert abs(values.mean()) < 0.05 * half, name
    assert np.abs(thrust / torque - 1).max() < 1e-9  # torque follows thrust
    assert np.abs(thrust - 1).max() <= 1.05 * 1.03 - 1 + 1e-9
    assert (thrust.max(axis=1) / thrust.min(axis=1)).max() <= 1.03 / 0.97
    # Single rotors vary on top of all together, by draws of their own.
    single = np.log(thrust[:, [0, 1, 2]] / thrust[:, [1, 2, 3]])
    assert np.abs(np.corrcoef(np.c_[single, thrust.mean(axis=1)].T)[3, :3]).max() < 0.07
    assert (wind[:, 2] == 0.0).all()
    assert np.abs(np.corrcoef(np.array([v for v, _ in even.values()])) - np.eye(len(even))).max() < 0.07
    # What is derived follows, and the controller's belief does not.
    assert simulator.parameter("mass") * simulator.parameter("mass_inverse") == pytest.approx(np.ones(count))
    assert simulator.parameter("inertia")[:, 0] * simulator.parameter("inertia_inverse")[:, 0] == pytest.approx(np.ones(count))
    assert (simulator.parameter("control_mass") == item.mass).all()


def test_randomisation_belongs_to_the_flight() -> None:
    """The same flight draws the same vehicle in any batch; its next episode draws another."""
    many, one = spread_simulator(64), spread_simulator(1, flight_ids=[37])
    assert np.array_equal(many.rows[:, 37], one.rows[:, 0])
    assert many.field("position")[37].tobytes() == one.field("position")[0].tobytes()
    before = many.rows.copy()
    many.reset(env_ids=[37])
    assert not np.array_equal(many.rows[:, 37], before[:, 37])
    assert np.array_equal(np.delete(many.rows, 37, axis=1), np.delete(before, 37, axis=1))
    one.reset()
    assert np.array_equal(many.rows[:, 37], one.rows[:, 0])
    other = Simulator(quiet(), SimulatorConfig(randomization=SPREAD), env_count=64, seed=6)
    assert not np.array_equal(other.rows[:, 0], before[:, 0])


def test_set_parameter_brings_what_follows() -> None:
    item = quiet(drag=Drag())
    simulator = Simulator(item, SimulatorConfig(exact_rotors=True), env_count=3)
    simulator.set_parameter("mass", [1.0, 2.0, 4.0])
    simulator.advance(1, hover_speed(item))
    assert simulator.field("acceleration")[:, 2] == pytest.approx(G / np.array([1.0, 2.0, 4.0]), rel=1e-5)
    tilted = (0.005, 0.006, 0.007, 1e-3, -5e-4, 2e-4)
    simulator.set_parameter("inertia", tilted)
    xx, yy, zz, xy, xz, yz = tilted
    j = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    simulator.reset(rate=(1.0, 2.0, 3.0), rotor_speed=np.zeros(4))
    twin = Twin(simulator)
    simulator.advance(96, np.zeros(4))
    twin.advance(96, np.zeros(4))
    assert simulator.rate == pytest.approx(twin.field("rate"), rel=1e-4)
    kinetic = 0.5 * np.einsum("ei,ij,ej->e", simulator.rate, j, simulator.rate)
    assert kinetic == pytest.approx(np.full(3, 0.5 * np.array([1, 2, 3]) @ j @ [1, 2, 3]), rel=1e-4)
    # Drag and wind start to count when they are no longer zero.
    simulator.set_parameter("drag_linear", 0.5)
    simulator.set_parameter("wind", (4.0, 0.0, 0.0))
    simulator.reset(rotor_speed=np.zeros(4))
    simulator.advance(96, np.zeros(4))
    expected = 4.0 * (1 - np.exp(-0.5 * 0.1 / np.array([1.0, 2.0, 4.0])))
    assert simulator.velocity[:, 0] == pytest.approx(expected, rel=1e-3)
    simulator.set_parameter("rotor_rise", np.tile([50.0, 0.0], 4))
    assert simulator.parameter("rotor_rise_keep")[0, 0] == pytest.approx(np.exp(-50.0 / 960))
    assert simulator.parameter("rotor_rise_keep_half").shape == (3, 4)
