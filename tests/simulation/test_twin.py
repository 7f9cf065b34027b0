"""The kernel against the float64 twin: random states, vehicles, levels, integrators and effects.

Both compute the same equations in the same order, so that a step differs by float32 rounding alone: a few 1e-7 of the terms
that meet in it. 1e-5 per step is the limit, relative to each field's own size or to the size at which it matters (1 m, 1 m/s,
1 rad/s, full rotor speed, g). Rotor commands are compared as shares of full thrust where that is kinder: the root of a small
thrust magnifies rounding.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from airworthy.control import PRIORITIES
from airworthy.control.kernel import LEVELS
from airworthy.control.levels import ControlConfig
from airworthy.control.spare_rotors import LEAST as SPARE_ROTORS
from airworthy.dynamics.state import Effects
from airworthy.simulation.config import Ground, Imu, Randomization, SimulatorConfig, Wind
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.twin import Twin
from airworthy.vehicles import vehicle, vehicle_names
from airworthy.vehicles.record import Battery, Disturbance, Vehicle

BATCH = 16
KINDS = 4
"""Different vehicles in a batch: gains are worked out for each, which takes longer than the step."""
TOLERANCE = 1e-5


@cache
def catalogue() -> tuple[Vehicle, ...]:
    """The catalogue, a tilted hexarotor, one that leans in hover, one with a rotor out; each with battery and disturbance."""
    items = [vehicle(name) for name in vehicle_names()]
    base = vehicle("flightgoggles")
    axes = [(0.2 * np.sin(k), 0.2 * np.cos(2 * k), 0.9) for k in range(6)]
    rotors = tuple(
        replace(
            base.rotors[0],
            position=(0.2 * np.cos(k * np.pi / 3), 0.2 * np.sin(k * np.pi / 3), 0.01 * k),
            axis=tuple(np.array(axes[k]) / np.linalg.norm(axes[k])),
            spin=1 if k % 2 else -1,
            radius=0.1,
        )
        for k in range(6)
    )
    items.append(replace(base, name="hexa", rotors=rotors))
    sides = [(0.06, -0.08 * k) for k in range(4)]
    leaning = tuple(
        replace(r, axis=(x, y, float(np.sqrt(1.0 - x * x - y * y)))) for r, (x, y) in zip(base.rotors, sides, strict=True)
    )
    items.append(replace(base, name="leaning", rotors=leaning))
    dead = replace(base.rotors[1], thrust=(0.0, 0.0, 0.0))
    items.append(replace(base, name="rotor_out", rotors=(base.rotors[0], dead, *base.rotors[2:])))
    # Full charge near the nominal voltage, so that sag matters at once.
    battery = Battery(12.6, 10.5, 12.0, 3600.0, 0.05)
    shove = Disturbance(0.3, (1.0, 1.0, 1.0), (0.01, 0.02, 0.03))
    return tuple(replace(item, battery=battery, disturbance=shove) for item in items)


def pick(rng: np.random.Generator, rotors: int, first_order: bool = False, crazyflies: bool = False) -> list[Vehicle]:
    """Random vehicles, `KINDS` of them in turn, the first with this many rotors."""

    def fits(item: Vehicle) -> bool:
        bent = any(r.response.rise[1] or r.response.fall[1] for r in item.rotors)
        return item.rotor_count <= rotors and not (first_order and bent) and not (crazyflies and "cf2x" not in item.name)

    fitting = [item for item in catalogue() if fits(item)]
    widest = [item for item in fitting if item.rotor_count == rotors]
    kinds = [widest[rng.integers(len(widest))], *(fitting[k] for k in rng.integers(len(fitting), size=KINDS - 1))]
    return kinds * (BATCH // KINDS)


def effects(rng: np.random.Generator) -> dict[str, Any]:
    """A random half of the effects."""

    def maybe(value: Any, other: Any) -> Any:
        return value if rng.random() < 0.5 else other

    mount: dict[str, Any] = {"position": (0.03, -0.02, 0.01), "orientation": (0.1, 0.2, -0.1, 0.96)}
    imu = Imu((0.01,) * 3, (0.01,) * 3, (0.01,) * 3, (0.01,) * 3, **mount)
    gust = {"gust": (3.0, -2.0, 1.0), "gust_start": 0.0, "gust_duration": 0.02}
    turbulence = {"turbulence": (1.0, 1.2, 0.8)}
    return {
        "wind": Wind(mean=maybe((2.0, -1.0, 0.5), (0, 0, 0)), **maybe(gust, {}), **maybe(turbulence, {})),
        "imu": maybe(imu, maybe(Imu(accelerometer_limit=5.0, gyroscope_limit=1.0), None)),
        "ground": maybe(Ground(restitution=0.4), None),
        "ground_effect": maybe(11.36859, 0.0),
        "battery": maybe(True, False),
        "exact_rotors": maybe(True, False),
        "wrench_noise": maybe(True, False),
        "disturbance": maybe(True, False),
        "randomization": maybe(Randomization(0.1, 0.1, 0.1, 0.05, 0.3, 0.2, 1.0, 0.5, 1.0), Randomization()),
        "gyro_feedback": maybe(True, False),
    }


def command_for(rng: np.random.Generator, level: str, width: int, items: list[Vehicle], simulator: Simulator) -> np.ndarray:
    n = len(items)
    weight = np.array([item.mass * item.gravity for item in items])
    if level == "rotor_speed":
        limits = np.zeros((n, width))
        for k, item in enumerate(items):
            limits[k, : item.rotor_count] = [r.speed_max for r in item.rotors]
        return limits * rng.uniform(-0.1, 1.1, (n, width))
    if level == "rotor_thrust":
        return weight[:, None] / 4 * rng.uniform(-0.2, 2.0, (n, width))
    if level == "wrench":
        sideways, moment = rng.uniform(-0.1, 0.1, (n, 2)), 0.02 * rng.normal(size=(n, 3))
        return weight[:, None] * np.c_[sideways, rng.uniform(0.5, 1.5, n), moment]
    if level.startswith(("rate_thrust", "attitude_thrust")):
        return np.c_[weight * rng.uniform(0.5, 1.5, n), rng.uniform(-0.5, 0.5, (n, 3))]
    command = rng.uniform(-1.0, 1.0, (n, width))
    if level.startswith(("position", "pose", "tracking")):
        command[:, :3] += simulator.position
    if level == "pose":
        command[:, 3:] /= np.linalg.norm(command[:, 3:], axis=1, keepdims=True)
    return command


def scatter(rng: np.random.Generator, simulator: Simulator, items: list[Vehicle]) -> None:
    """Random start, part of it close to the ground, with rotors anywhere in their range."""
    n, width = len(items), simulator.rotor_count
    speed = np.zeros((n, width))
    for k, item in enumerate(items):
        low, high = ([getattr(r, f) for r in item.rotors] for f in ("speed_min", "speed_max"))
        speed[k, : item.rotor_count] = rng.uniform(low, high)
    position = rng.uniform(-3.0, 3.0, (n, 3))
    position[:, 2] = rng.choice([0.0, 0.1, 5.0], n) + rng.uniform(-0.05, 0.1, n)
    tilt = np.c_[rng.uniform(-0.4, 0.4, (n, 2)), rng.uniform(-1, 1, n), np.ones(n)]
    attitude = np.where(rng.random((n, 1)) < 0.5, tilt, rng.normal(size=(n, 4)))
    simulator.reset(
        position=position,
        velocity=rng.uniform(-4.0, 4.0, (n, 3)),
        attitude=attitude,
        rate=rng.uniform(-4.0, 4.0, (n, 3)),
        rotor_speed=speed,
    )


SIZES = {"position": 1.0, "velocity": 1.0, "attitude": 1.0, "rate": 1.0, "acceleration": 9.81, "imu": 9.81, "wind": 1.0}
SIZES |= {"turbulence": 1.0, "accelerometer_bias": 0.01, "gyroscope_bias": 0.01, "battery_ratio": 1.0, "battery_charge": 1e-3}
SIZES |= {"rate_filtered": 1.0, "rate_slope": 100.0, "rate_integral": 0.01, "position_integral": 0.01, "moment_integral": 0.01}
SIZES |= {"rate_error": 1.0}
CREEP = 1e-3
"""What is left of the speed before a contact that all but stops a body, at most."""


def met_at(twin: Twin) -> np.ndarray:
    """No less than the speed before a contact [m/s], (env,): an impulse is a difference of velocities, which are rounded."""
    return np.linalg.norm(twin.field("velocity"), axis=1) + np.linalg.norm(twin.field("acceleration"), axis=1) * twin.dt


def turned_by_contact(twin: Twin, items: list[Vehicle]) -> np.ndarray:
    """Rates that a contact can give [rad/s], (env,): its impulse, of rounded velocities, times lever over inertia."""
    impulse = np.linalg.norm(twin.field("acceleration"), axis=1) * twin.dt
    return impulse * np.array([item.mass * item.body.size[0] / min(item.inertia[:3]) for item in items])


def stops_in_one(simulator: Simulator, twin: Twin) -> np.ndarray:
    """Where a contact stopped all motion in one of the two and not in the other, (env,).

    A contact that can stop everything does (`contact_holds`); where what it takes is as large as what it may take, rounding
    decides, and one that may not leaves a creep: friction and rolling, one after the other, each give back a part of what the
    other took.
    """
    still = []
    for side in (simulator, twin):
        moves = [np.broadcast_to(side.field(name), (BATCH, 3)) for name in ("velocity", "rate")]
        still.append(np.abs(np.concatenate(moves, axis=1)).max(axis=1) < 1e-12)
    return still[0] != still[1]


def turned_by_rotors(simulator: Simulator, twin: Twin, items: list[Vehicle]) -> np.ndarray:
    """Rates by which the rotors' own spin sets the two apart [rad/s], (env,).

    A command is the root of a thrust, and where a limit makes that zero the root of its rounding: a speed of 0.7 instead of 0
    rad/s. Speeds are compared as thrusts; what their difference turns the body by is a consequence, not another error.
    """
    spins = np.abs(simulator.field("rotor_speed") - twin.field("rotor_speed"))
    shares = [max(r.inertia for r in item.rotors) / min(item.inertia[:3]) for item in items]
    return spins.sum(axis=1) * np.array(shares)


def drawn_by_rotors(simulator: Simulator, twin: Twin) -> np.ndarray:
    """Share by which the charges of a step differ for the same reason, (env,).

    Power goes with the cube of speed, and current by a little more as the voltage sags. A rotor that hardly turns draws
    nothing, so it excuses nothing beside others that do.
    """
    cubes, expected = (np.abs(speeds) ** 3 for speeds in (simulator.field("rotor_speed"), twin.field("rotor_speed")))
    return 4.0 / 3.0 * np.abs(cubes - expected).sum(axis=1) / np.maximum(expected.sum(axis=1), 1.0)


def most_followed(item: Vehicle, full: float, dt: float) -> float:
    """The share of its way to the command that a rotor goes in a step, at most: what of a command's difference it takes on."""
    fastest = max(a + 2.0 * b * full for r in item.rotors for a, b in (r.response.rise, r.response.fall))
    return min(1.0, fastest * dt)


def of_commands(item: Vehicle, tolerance: float) -> float:
    """Tolerance for a vehicle's commanded thrusts.

    Spare rotors stand where bounds meet that are quotients of small differences: of 12,288 saturated wrenches of
    `base_octarotor` float32 is at most 1.1e-3 of full thrust off, 1.4e-4 in 999 of 1,000, 3e-7 in the median.
    """
    return max(tolerance, 1e-3) if item.rotor_count >= SPARE_ROTORS else tolerance


def compare(simulator: Simulator, twin: Twin, items: list[Vehicle], tolerance: float) -> None:
    assert not simulator.diverged.any()
    # Forces of impact are impulses over a step: compare them as such.
    struck = simulator.field("contact") > 0
    creep = np.where(struck & stops_in_one(simulator, twin), CREEP, 0.0)
    for name, least in SIZES.items():
        actual = np.array(simulator.field(name), float)
        expected = np.broadcast_to(twin.field(name), actual.shape)
        error = np.abs(actual - expected).reshape(len(items), -1).max(axis=1)
        size = np.maximum(np.abs(expected).reshape(len(items), -1).max(axis=1), least)
        if name in ("acceleration", "imu"):
            error = np.maximum(error - creep * met_at(twin) / twin.dt, 0.0)
            size = np.where(struck, np.maximum(size, np.maximum(1.0, met_at(twin)) / twin.dt), size)
        if name == "velocity":
            error = np.maximum(error - creep * met_at(twin), 0.0)
        if name == "rate":
            size = np.where(struck, np.maximum(size, turned_by_contact(twin, items)), size)
            error = np.maximum(error - creep * turned_by_contact(twin, items), 0.0)
            error = np.maximum(error - turned_by_rotors(simulator, twin, items), 0.0)
        if name == "battery_charge":
            error = np.maximum(error - drawn_by_rotors(simulator, twin) * size, 0.0)
        if name == "imu" and simulator.config.imu is not None:
            lever = float(np.linalg.norm(simulator.config.imu.position))
            error = np.maximum(error - lever * turned_by_rotors(simulator, twin, items) / twin.dt, 0.0)
        if name in ("position_integral", "moment_integral", "rate_error", "rate_filtered", "rate_slope", "rate_integral"):
            size = np.maximum(size, 1.0)
        worst = int(np.argmax(error / size))
        assert error[worst] <= tolerance * size[worst], (name, items[worst].name, error[worst] / size[worst])
    for k, item in enumerate(items):
        full = max(abs(r.speed_max) for r in item.rotors) * max(1.0, float(twin.field("battery_ratio")[k]))
        followed: float | np.ndarray = 0.0
        for name in ("rotor_command", "rotor_speed"):
            a, b = np.array(simulator.field(name)[k], float) / full, twin.field(name)[k] / full
            error = np.minimum(np.abs(a - b) - followed, np.abs(a * np.abs(a) - b * np.abs(b)))
            assert error.max() <= of_commands(item, tolerance), (name, item.name, error.max())
            followed = np.abs(a - b) * most_followed(item, full, twin.dt)


# No shrinking: a smaller seed is no simpler flight, and looking for one takes minutes.
@settings(max_examples=66, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    seed=st.integers(0, 2**31),
    rotors=st.sampled_from([4, 4, 6, 8]),
    integrator=st.sampled_from(["euler", "semi_implicit", "rk4"]),
    level=st.sampled_from(sorted(LEVELS)),
)
@example(seed=4000, rotors=4, integrator="euler", level="position")
def test_one_step(seed: int, rotors: int, integrator: Any, level: str) -> None:
    """66 batches of 16: 1,056 cases."""
    rng = np.random.default_rng(seed)
    chosen = effects(rng)
    chosen["gyro_feedback"] &= level == "rate_thrust:flightgoggles"  # no other law reads it, and none may be asked to
    crazyflies = level == "tracking:crazyflie"  # its mixer is for quadrotors in X
    rotors = 4 if crazyflies else rotors
    items = pick(rng, rotors, chosen["exact_rotors"], crazyflies)
    # The firmware's gains are unstable, and refused, on some Crazyflies at 960 Hz with the integrators of first order.
    config = SimulatorConfig(physics_rate=2400 if crazyflies else 960, level=level, integrator=integrator, **chosen)
    simulator = Simulator(items, config, seed=seed)
    scatter(rng, simulator, items)
    if rng.random() < 0.5:
        force, moment = rng.normal(size=(BATCH, 3)), 0.01 * rng.normal(size=(BATCH, 3))
        simulator.set_external(force, moment)
    else:
        force = moment = np.zeros((BATCH, 3))
    command = command_for(rng, level, LEVELS[level].width(rotors), items, simulator)
    twin = Twin(simulator)
    twin.force, twin.moment = force.T, moment.T
    simulator.advance(1, command)
    twin.advance(1, simulator._arrays.inputs()[: command.shape[1], :BATCH].T)  # as rounded to float32
    compare(simulator, twin, items, TOLERANCE)


def test_effects_have_bits_of_their_own() -> None:
    """Two names of one bit would be one effect, and the second would have no name in the kernel."""
    assert len(Effects) == len(Effects.__members__)


@pytest.mark.parametrize("priority", PRIORITIES)
def test_saturated_thrusts_of_every_priority(priority: Any) -> None:
    """Wrenches beyond the rotors, as thrusts: the root of a thrust that a limit makes zero magnifies rounding."""
    rng = np.random.default_rng(3)
    items = list(catalogue())
    simulator = Simulator(items, SimulatorConfig(level="wrench", control=ControlConfig(priority=priority)), seed=1)
    weight = np.array([item.mass * item.gravity for item in items])[:, None]
    full = np.array([max(r.speed_max for r in item.rotors) for item in items])
    for _ in range(10):
        scatter(rng, simulator, items)
        command = weight * rng.normal(size=(len(items), 6)) * [0.5, 0.5, 2.0, 0.1, 0.1, 0.02]
        twin = Twin(simulator)
        simulator.advance(1, command)
        twin.advance(1, command.astype(np.float32))
        ours, theirs = simulator.field("rotor_command") / full[:, None], twin.field("rotor_command") / full[:, None]
        for item, a, b in zip(items, ours, theirs, strict=True):
            power = 1 if item.motor_state == "thrust" else 2
            error = np.abs(np.sign(a) * np.abs(a) ** power - np.sign(b) * np.abs(b) ** power)
            assert error.max() < of_commands(item, TOLERANCE), item.name


@pytest.mark.parametrize("rotors", [4, 8])
@pytest.mark.parametrize("level", ["rotor_speed", "position", "rate_thrust:flightgoggles"])
def test_several_substeps(level: str, rotors: int) -> None:
    """Ten steps in one launch: errors add up, no faster than 1e-5 a step."""
    rng = np.random.default_rng(12)
    items = pick(rng, rotors)
    imu, wind = Imu((0.01,) * 3, (0.01,) * 3), Wind(turbulence=(1.0, 1.0, 1.0))
    simulator = Simulator(items, SimulatorConfig(level=level, imu=imu, wind=wind, battery=True), seed=4)
    scatter(rng, simulator, items)
    command = command_for(rng, level, LEVELS[level].width(rotors), items, simulator)
    twin = Twin(simulator)
    simulator.advance(10, command)
    twin.advance(10, command.astype(np.float32))
    compare(simulator, twin, items, 10 * TOLERANCE)


def test_twin_continues_a_flight() -> None:
    """A twin taken in mid-flight starts from the simulator's present, clock and memory included."""
    items = [vehicle("flightgoggles")] * BATCH
    simulator = Simulator(items, SimulatorConfig(level="rate_thrust:flightgoggles", imu=Imu((0.01,) * 3)), seed=4)
    command = np.array([9.81, 1.0, -0.5, 0.2])
    simulator.advance(100, command)
    twin = Twin(simulator)
    simulator.advance(1)
    twin.advance(1, command.astype(np.float32))
    compare(simulator, twin, items, TOLERANCE)
