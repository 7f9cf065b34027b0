"""Reverse mode through whole steps of the simulator: every integrator, control level and form of the equations.

A step is written out once more as a function of scalars and held to the float64 twin; its adjoint is held to central
differences of fourth order, in float64: 1e-6 of the size of the whole slope.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.control import laws
from airworthy.control.gain_parameters import priority_of
from airworthy.control.kernel import LED_LEVELS, LEVELS, control_layout
from airworthy.core.arrays import Array
from airworthy.core.tracing import adjoint
from airworthy.core.vectors import add, scale
from airworthy.dynamics import equations as eq
from airworthy.dynamics import semi_kinematic as sk
from airworthy.dynamics.rigid import CPU_VARIANTS
from airworthy.dynamics.state import Effects, rigid_layout
from airworthy.simulation.config import SimulatorConfig, Wind
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.twin import SemiKinematicTwin, Twin
from airworthy.vehicles import hover_speed, vehicle
from airworthy.vehicles.record import Vehicle

ROTORS = 4
BODY = 13
MEMORY = {"rate_thrust:flightgoggles": ("rate_filtered", "rate_slope", "rate_integral")}
INTEGRALS = ("position_integral", "moment_integral", "rate_error")
STATES = 3


@cache
def formed(planar: bool, square: bool, drag: str) -> Vehicle:
    """A quadrotor that needs just this form of the equations."""
    base = vehicle("flightgoggles")
    rotors = []
    for k, r in enumerate(base.rotors):
        axis = np.array([0.0, 0.0, 1.0]) if planar else np.array([0.1 * (-1) ** k, 0.05, 1.0])
        hub: dict[str, Any] = {"hub_drag": (1e-5, 2e-5), "flapping": 1e-6} if drag == "hubs" else {}
        thrust = (0.0, 0.0, r.thrust[2]) if square else (0.0, 1e-5, r.thrust[2])
        rotors.append(replace(r, axis=tuple(axis / np.linalg.norm(axis)), thrust=thrust, **hub))
    return replace(base, name=f"{planar}_{square}_{drag}", rotors=tuple(rotors), drag=_drag(base, drag))


def _drag(base: Vehicle, kind: str) -> Any:
    nothing = type(base.drag)()
    if kind == "none":
        return nothing
    linear = (0.3, 0.25, 0.2)
    if kind == "simple":
        return replace(nothing, linear=linear)
    return replace(nothing, linear=linear, quadratic_norm=(0.02, 0.03, 0.04))


@dataclass
class Case:
    """One flight at one state, and its step as a function of scalars: body, rotors, memory and command, and parameters."""

    start: Array
    rows: Array
    step: Callable[..., Any]

    def after(self, x: Array) -> Array:
        return np.array(self.step(*x, *self.rows), float)


def records(rows: Any, layout: Any) -> tuple[SimpleNamespace, SimpleNamespace]:
    """Parameters of equations and of control, read from rows as kernels read them."""
    return layout.record(lambda row: rows[row]), control_layout(ROTORS).record(lambda row: rows[layout.size + row])


def begun(item: Vehicle, config: SimulatorConfig, seed: int) -> Simulator:
    """A flight near hover, so that no rotor is at its limit: there a slope has two values."""
    simulator, rng = Simulator(item, config, 1, seed=seed), np.random.default_rng(seed)
    tilt = np.array([*rng.uniform(-0.15, 0.15, 2), rng.uniform(-1, 1), 1.0])
    motion: dict[str, Any] = {}
    if config.dynamics == "rigid":
        motion = {"rate": rng.uniform(-0.3, 0.3, 3), "rotor_speed": hover_speed(item) * rng.uniform(0.9, 1.1, ROTORS)}
    simulator.reset(
        position=rng.uniform(-1, 1, 3) + np.array([0.0, 0.0, 5.0]),
        velocity=rng.uniform(-1, 1, 3),
        attitude=tilt / np.linalg.norm(tilt),
        **motion,
    )
    return simulator


def commanded(simulator: Simulator, item: Vehicle, level: str, rng: np.random.Generator) -> Array:
    weight, near = item.mass * item.gravity, rng.uniform(-0.2, 0.2, 16)
    if level == "rotor_speed":
        return np.asarray(hover_speed(item) * (1.0 + 0.4 * near[:ROTORS]))
    if level == "rotor_thrust":
        return np.asarray(weight / ROTORS * (1.0 + near[:ROTORS]))
    if level == "wrench":
        return np.array([0.0, 0.0, weight * (1 + near[0]), *(0.01 * near[1:4])])
    if level.startswith(("rate_thrust", "attitude_thrust")):
        return np.array([weight * (1 + near[0]), *near[1:4]])
    if level == "pose":
        turned = np.array([0.05, -0.05, 0.1, 1.0])
        return np.concatenate([simulator.position[0] + near[:3], turned / np.linalg.norm(turned)])
    if level.startswith(("position", "tracking")):
        return np.concatenate([simulator.position[0] + near[:3], near[3:]])[: 14 if level.startswith("tracking") else 4]
    return near[:4]


def flat(groups: Any) -> list[Any]:
    return [x for group in groups for x in (group if isinstance(group, tuple) else (group,))]


def control(level: str, body: Any, rotors: Any, memory: Any, wanted: Any, c: Any, priority: Any, dt: float) -> Any:
    """Return rotor states and what the law keeps, as the twin's own, on scalars."""
    seen = (body[:3], body[3:6], body[6:10], body[10:])
    if level == "rotor_speed":
        return wanted, memory
    if level == "rotor_thrust":
        return laws.rotor_states(wanted, c), memory
    kept = memory
    if level == "wrench":
        wrench = wanted
    elif level == "pose":
        force, torque = laws.pose_wrench(*seen, wanted, c)
        wrench = (*force, *torque)
    elif level == "rate_thrust:flightgoggles":
        wrench, groups = laws.rate_loop_wrench(seen[3], wanted, memory, dt, c)
        kept = flat(groups)
    elif level == "tracking:mellinger":
        wrench, groups = laws.mellinger_wrench(*seen, wanted, memory, 1.0, dt, c)
        kept = flat(groups)
    elif level == "tracking:crazyflie":
        states, groups = laws.crazyflie_states(*seen, wanted, memory, 1.0, dt, c)
        return states, flat(groups)
    else:
        *sideways, thrust, torque = laws.geometric_wrench(*seen, wanted, c, level)
        wrench = (*sideways, thrust, *torque)
    thrusts = laws.bounded_thrusts(wrench, c, priority, True)
    states = laws.rotor_states(thrusts, c)
    return (laws.led_states(rotors, states, c) if level in LED_LEVELS else states), kept


def integrated(kind: str, body: Any, rotors: Any, command: Any, p: Any, form: dict[str, Any], dt: float, wind: Any) -> Any:
    """Return body and rotors after a step, by an integrator."""
    y, none = (*body, *rotors), (0.0, 0.0, 0.0)
    exact, half, full, mean_rate = form.pop("exact"), None, None, None
    if exact:
        half = eq.rotor_exact(rotors, command, p.rotor_rise_keep_half, p.rotor_fall_keep_half)
        full = eq.rotor_exact(rotors, command, p.rotor_rise_keep, p.rotor_fall_keep)
        mean_rate = tuple((f - m) * (1.0 / dt) for f, m in zip(full, rotors, strict=True))

    def slopes(z: Any) -> Any:
        parts = (z[3:6], z[6:10], z[10:BODY], z[BODY:])
        out = eq.derivative(
            *parts, command, wind, none, none, None, p, exact=1.0 if exact else 0.0, mean_rate=mean_rate, **form
        )
        return (*z[3:6], *out[0], *out[1], *out[2], *out[3])

    def moved(by: Any, h: float, exactly: Any) -> Any:
        z = add(y, scale(tuple(by), h))
        return z if exactly is None else (*z[:BODY], *exactly)

    k1 = slopes(y)
    if kind == "rk4":
        k2 = slopes(moved(k1, 0.5 * dt, half))
        k3 = slopes(moved(k2, 0.5 * dt, half))
        k4 = slopes(moved(k3, dt, full))
        after = moved([a + 2.0 * b + 2.0 * c + d for a, b, c, d in zip(k1, k2, k3, k4, strict=True)], dt / 6.0, full)
    else:
        after = moved(k1, dt, full)
    if kind == "semi_implicit":
        place = add(y[:3], scale(after[3:6], dt))
        after = (*place, *after[3:6], *eq.quaternion_exponential(y[6:10], after[10:BODY], dt), *after[10:])
    ends = eq.clip_rotors(after[BODY:], p.rotor_min, p.rotor_max, 1.0)
    return (*after[:6], *eq.normalize(after[6:10]), *after[10:BODY], *ends)


def rigid_case(
    item: Vehicle, level: str, kind: str, seed: int, exact: bool = False, form: Any = (False, False, "full")
) -> Case:
    wind = (1.0, -0.5, 0.2)
    given = SimulatorConfig(
        level=level, integrator=kind, exact_rotors=exact, physics_rate=1000.0, wind=Wind(mean=wind), wrench_noise=False
    )
    simulator = begun(item, given, seed)
    assert (Effects.EXACT_ROTORS in simulator.effects) is exact
    command = commanded(simulator, item, level, np.random.default_rng(seed + 100))
    twin, dt, priority = Twin(simulator), 1.0 / given.physics_rate, priority_of(given.control)
    names = MEMORY.get(level, INTEGRALS if level in ("tracking:mellinger", "tracking:crazyflie") else ())
    rng = np.random.default_rng(seed + 200)
    for name in names:
        twin.state[name] = 1e-3 * rng.normal(size=(3, 1))
    twin.clock = twin.clock + 1  # laws with memory begin otherwise
    start = np.concatenate(
        [*(twin.state[n][:, 0] for n in ("position", "velocity", "attitude", "rate", "rotor_speed", *names)), command]
    )
    kept = BODY + ROTORS + 3 * len(names)

    def step(*x: Any) -> Any:
        p, c = records(x[len(start) :], rigid_layout(ROTORS))
        body, rotors, memory, wanted = x[:BODY], x[BODY : BODY + ROTORS], x[BODY + ROTORS : kept], x[kept : len(start)]
        states, after = control(level, body, rotors, memory, wanted, c, priority, dt)
        asked = eq.clip_rotors(states, p.rotor_min, p.rotor_max, 1.0)
        planar, square, drag = form
        shape = {"planar": planar, "square": square, "drag": drag, "exact": exact}
        blowing = (0.0, 0.0, 0.0) if drag == "none" else wind
        return (*integrated(kind, body, rotors, asked, p, shape, dt, blowing), *after)

    twin.advance(1, command)
    ended = [*(twin.state[n][:, 0] for n in ("position", "velocity", "attitude", "rate", "rotor_speed", *names))]
    case = Case(start, np.array(simulator.rows[:, 0], float), step)
    np.testing.assert_allclose(case.after(start), np.concatenate(ended), rtol=1e-9, atol=1e-10)
    return case


def semi_kinematic_case(level: str, seed: int) -> Case:
    item = vehicle("carl")
    given = SimulatorConfig(dynamics="semi_kinematic", level=level, physics_rate=200.0, wrench_noise=False)
    simulator = begun(item, given, seed)
    command = commanded(simulator, item, level, np.random.default_rng(seed + 100))
    twin = SemiKinematicTwin(simulator)
    dt, rate = twin.dt, tuple(float(x) for x in twin.state["rate"][:, 0])
    start = np.concatenate([*(twin.state[n][:, 0] for n in ("position", "velocity", "attitude")), command])

    def step(*x: Any) -> Any:
        p, c = records(x[len(start) :], sk.semi_kinematic_layout())
        body, wanted = x[:10], x[10 : len(start)]
        if level == "tracking":
            wanted = laws.tracking_rates(body[:3], body[3:6], body[6:], rate, wanted, c)
        thrust, *turn = sk.limited_input(wanted[0], wanted[1:4], p)

        def slopes(z: Any) -> Any:
            dv, dq = sk.derivative(z[3:6], z[6:], thrust, tuple(turn), (0.0, 0.0, 0.0), p)
            return (*z[3:6], *dv, *dq)

        k1 = slopes(body)
        k2 = slopes(add(body, scale(k1, 0.5 * dt)))
        k3 = slopes(add(body, scale(k2, 0.5 * dt)))
        k4 = slopes(add(body, scale(k3, dt)))
        mean = tuple(a + 2.0 * b + 2.0 * c_ + d for a, b, c_, d in zip(k1, k2, k3, k4, strict=True))
        after = add(body, scale(mean, dt / 6.0))
        return (*after[:6], *eq.normalize(after[6:]))

    twin.advance(1, command)
    ended = np.concatenate([twin.state[n][:, 0] for n in ("position", "velocity", "attitude")])
    case = Case(start, np.array(simulator.rows[:, 0], float), step)
    np.testing.assert_allclose(case.after(start), ended, rtol=1e-9, atol=1e-10)
    return case


def agrees(case: Case, seed: int = 0) -> None:
    """Hold the adjoint of a weighted sum of all results to differences, each result and input in units of its own size."""
    x, size = case.start, 1.0 + np.abs(case.start)
    values = case.after(x)
    seeds = np.random.default_rng(seed).normal(size=len(values)) / (1.0 + np.abs(values))
    _, slopes = adjoint(case.step, [*x, *case.rows], list(seeds))
    ours = np.array(slopes[: len(x)], float) * size

    def total(at: Array) -> float:
        return float(seeds @ case.after(at))

    h, found = 3e-6, np.zeros_like(ours)
    for k in range(len(x)):
        way = np.zeros_like(x)
        way[k] = h * size[k]
        found[k] = (8.0 * (total(x + way) - total(x - way)) - (total(x + 2 * way) - total(x - 2 * way))) / (12.0 * h)
    assert np.linalg.norm(ours - found) <= 1e-6 * np.linalg.norm(found)
    assert np.linalg.norm(found) > 0.1


@pytest.mark.parametrize("kind", ["rk4", "semi_implicit", "euler"])
@pytest.mark.parametrize("variant", CPU_VARIANTS, ids=lambda v: f"{v[0]:d}{v[1]:d}_{v[2]}")
def test_every_form_of_the_equations_by_every_integrator(kind: str, variant: Any) -> None:
    for seed in range(STATES):
        agrees(rigid_case(formed(*variant), "rotor_speed", kind, seed, form=variant), seed)


@pytest.mark.parametrize("kind", ["rk4", "semi_implicit", "euler"])
def test_rotors_that_are_advanced_exactly(kind: str) -> None:
    for seed in range(STATES):
        agrees(rigid_case(vehicle("flightgoggles"), "rotor_speed", kind, seed, exact=True), seed)


@pytest.mark.parametrize("level", sorted(LEVELS))
def test_every_control_level(level: str) -> None:
    item = vehicle("cf2x_L250" if level == "tracking:crazyflie" else "flightgoggles")
    for seed in range(STATES):
        agrees(rigid_case(item, level, "rk4", seed), seed)


@pytest.mark.parametrize("level", ["rate_thrust", "tracking"])
def test_the_semi_kinematic_step(level: str) -> None:
    for seed in range(STATES):
        agrees(semi_kinematic_case(level, seed), seed)
