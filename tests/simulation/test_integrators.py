"""Integrators: order of convergence, and agreement with equations of motion written independently and solved by SciPy.

The reference below shares no code with the package: rotation matrices instead of quaternions, summed rotor by rotor from the
vehicle record, integrated by DOP853 at 1e-12.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy

from airworthy.core.frames import to_matrix
from airworthy.simulation.config import SimulatorConfig, Wind
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.twin import Twin
from airworthy.vehicles import vehicle
from airworthy.vehicles.record import Disturbance, Vehicle, WrenchNoise

GRAVITY = np.array([0.0, 0.0, -1.0])


def quiet(name: str) -> Vehicle:
    return replace(vehicle(name), wrench_noise=WrenchNoise(), disturbance=Disturbance())


# ---- the independent reference --------------------------------------------------------------------------------------------


def cross_matrix(w: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def reference_derivative(item: Vehicle, y: np.ndarray, command: np.ndarray, wind: np.ndarray) -> np.ndarray:
    """Newton and Euler for position, velocity, rotation matrix (by rows), body rate and rotor states."""
    v, r, w, s = y[3:6], y[6:15].reshape(3, 3), y[15:18], y[18:]
    xx, yy, zz, xy, xz, yz = item.inertia
    j = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    force, moment, stored = np.zeros(3), np.zeros(3), np.zeros(3)
    air, drag = r.T @ (v - wind), item.drag
    s_dot = np.zeros_like(s)
    for k, rotor in enumerate(item.rotors):
        a, b = rotor.response.rise if abs(command[k]) >= abs(s[k]) else rotor.response.fall
        s_dot[k] = a * (command[k] - s[k]) + b * (command[k] * abs(command[k]) - s[k] * abs(s[k]))
        powers = np.array([1.0, s[k], s[k] * abs(s[k])])
        axis, arm = np.array(rotor.axis), np.array(rotor.position) - np.array(item.center_of_mass)
        thrust = axis * (np.array(rotor.thrust) @ powers)
        force += thrust
        moment += np.cross(arm, thrust) + axis * rotor.spin * (np.array(rotor.torque) @ powers + rotor.inertia * s_dot[k])
        stored -= axis * rotor.spin * rotor.inertia * s[k]
        # Air at the hub, where it moves as the body turns: lift, drag and flapping of the blades.
        at_hub, along_axis = air + np.cross(w, arm), np.outer(axis, axis)
        sideways = (np.eye(3) - along_axis) @ at_hub
        brake = rotor.hub_drag[0] * sideways + rotor.hub_drag[1] * along_axis @ at_hub
        pull = axis * rotor.translational_lift * (sideways @ sideways) - abs(s[k]) * brake
        force += pull
        moment += np.cross(arm, pull) + rotor.flapping * abs(s[k]) * np.cross(sideways, axis)
    rotors = np.abs(s[: item.rotor_count]).sum()
    along = (
        np.array(drag.linear)
        + np.array(drag.quadratic_norm) * np.linalg.norm(air)
        + np.array(drag.quadratic_axis) * np.abs(air)
        + np.array(drag.rotor_speed) * rotors
    )
    about = (
        np.array(drag.angular_linear)
        + np.array(drag.angular_norm) * np.linalg.norm(w)
        + np.array(drag.angular_axis) * np.abs(w)
    )
    force, moment = force - along * air, moment - about * w - np.cross(drag.center, along * air)
    w_dot = np.linalg.solve(j, moment - np.cross(w, j @ w + stored))
    v_dot = GRAVITY * item.gravity + r @ force / item.mass
    return np.concatenate([v, v_dot, (r @ cross_matrix(w)).ravel(), w_dot, s_dot])


def reference(
    item: Vehicle, start: dict[str, np.ndarray], command: np.ndarray, seconds: float, wind: np.ndarray, tolerance: float = 1e-10
) -> np.ndarray:
    """Final position, velocity, rotation matrix, rate, rotor states."""
    y0 = np.concatenate(
        [start["position"], start["velocity"], to_matrix(start["attitude"]).ravel(), start["rate"], start["rotor_speed"]]
    )
    out = scipy.integrate.solve_ivp(
        lambda _, y: reference_derivative(item, y, command, wind), (0.0, seconds), y0, "DOP853", rtol=tolerance, atol=tolerance
    )
    assert out.success
    return np.asarray(out.y[:, -1])


def packed(state: Any, k: int, rotors: int) -> np.ndarray:
    """A simulated state in the reference's order."""
    get = {n: np.array(state.field(n), float)[k] for n in ("position", "velocity", "attitude", "rate", "rotor_speed")}
    return np.concatenate(
        [get["position"], get["velocity"], to_matrix(get["attitude"]).ravel(), get["rate"], get["rotor_speed"][:rotors]]
    )


def random_start(rng: np.random.Generator, item: Vehicle, speed: float = 4.0, turn: float = 3.0) -> dict[str, np.ndarray]:
    attitude = rng.normal(size=4)
    low = np.array([r.speed_min for r in item.rotors])
    high = np.array([r.speed_max for r in item.rotors])
    return {
        "position": rng.uniform(-5, 5, 3),
        "velocity": rng.uniform(-speed, speed, 3),
        "attitude": attitude / np.linalg.norm(attitude),
        "rate": rng.uniform(-turn, turn, 3),
        "rotor_speed": low + (high - low) * rng.uniform(0.1, 0.7, item.rotor_count),
    }


def padded(values: list[np.ndarray], width: int) -> np.ndarray:
    return np.array([np.pad(v, (0, width - len(v))) for v in values])


def same_start(twin: Twin) -> dict[str, np.ndarray]:
    """What a twin starts from, its quaternions brought from float32 to unit length, so that only integration is compared."""
    twin.state["attitude"] /= np.linalg.norm(twin.state["attitude"], axis=0)
    return {name: twin.field(name).copy() for name in ("position", "velocity", "attitude", "rate", "rotor_speed")}


# ---- from outside ------------------------------------------------------------------------------------------------------------

OUTSIDE = [
    "flightgoggles",
    "cf2x_L250",
    "cf2x_P250",
    "rotorpy_crazyflie",
    "base_octarotor",
    "base_random",
    "tinyprop",
    "lmf2",
    "carl",
    "real_07",
    "virt_02",
]


@pytest.mark.slow
def test_independent_equations() -> None:
    """A quarter second from random states under wind, over the kinds of vehicle that the catalogue holds.

    RK4 at 1,920 Hz against the exact solution: the fastest mode is a 12.5 ms rotor lag, (dt/tau)^4 / 120 = 2.5e-8 of the change
    of rotor speed; the kernel adds float32 over 480 steps. Errors are relative to each quantity's largest component.
    """
    rng = np.random.default_rng(11)
    vehicles = [quiet(name) for name in OUTSIDE]
    wind, seconds, rate = np.array([2.0, -1.0, 0.5]), 0.25, 1920
    starts = [random_start(rng, item) for item in vehicles]
    commands = [s["rotor_speed"] * rng.uniform(0.7, 1.3, len(s["rotor_speed"])) for s in starts]
    simulator = Simulator(vehicles, SimulatorConfig(physics_rate=rate, wind=Wind(mean=tuple(wind))))
    start = {name: np.array([s[name] for s in starts]) for name in ("position", "velocity", "attitude", "rate")}
    simulator.reset(**start, rotor_speed=padded([s["rotor_speed"] for s in starts], 8))
    twin = Twin(simulator)
    steps, command = int(seconds * rate), padded(commands, 8)
    starts = [{name: same_start(twin)[name][k][: len(s[name])] for name in s} for k, s in enumerate(starts)]
    twin.advance(steps, command)
    simulator.advance(steps, command)
    for k, item in enumerate(vehicles):
        expected = reference(item, starts[k], commands[k], seconds, wind)
        for state, tolerance in ((twin, 1e-7), (simulator, 1e-4)):
            actual = packed(state, k, item.rotor_count)
            for part in (slice(0, 3), slice(3, 6), slice(6, 15), slice(15, 18), slice(18, None)):
                error = np.abs(actual[part] - expected[part]).max() / np.abs(expected[part]).max()
                assert error < tolerance, (item.name, part, error, type(state).__name__)


# ---- order -------------------------------------------------------------------------------------------------------------------


def errors_by_step(integrator: Any, rates: list[float], seconds: float) -> np.ndarray:
    """Error of the final state after `seconds` of thrust, drag and turning, per physics rate."""
    item = quiet("flightgoggles")
    rng = np.random.default_rng(2)
    start = random_start(rng, item, turn=2.0)
    command = start["rotor_speed"] * np.array([1.02, 0.97, 1.03, 0.98])
    out = []
    for rate in rates:
        simulator = Simulator(item, SimulatorConfig(physics_rate=rate, control_rate=rate, integrator=integrator))
        simulator.reset(**start)
        twin = Twin(simulator)
        begin = {name: value[0] for name, value in same_start(twin).items()}
        twin.advance(round(seconds * rate), command)
        if not out:
            expected = reference(item, begin, command, seconds, np.zeros(3), 1e-12)
        out.append(np.abs(packed(twin, 0, 4) - expected) / np.maximum(np.abs(expected), 1.0))
    return np.array(out)


@pytest.mark.parametrize(
    ("integrator", "order", "rates"),
    [("euler", 1, [200, 400, 800, 1600]), ("semi_implicit", 1, [200, 400, 800, 1600]), ("rk4", 4, [100, 200, 400, 800])],
)
def test_order_of_convergence(integrator: str, order: int, rates: list[float]) -> None:
    """Halving the step divides the error by 2^order: slope within 0.2 over three halvings."""
    errors = np.linalg.norm(errors_by_step(integrator, rates, 0.25), axis=1)
    slopes = np.log2(errors[:-1] / errors[1:])
    assert slopes == pytest.approx(np.full(3, float(order)), abs=0.2)


def test_rk4_against_ten_times_finer() -> None:
    """A tumbling rigid body at 480 Hz stays within 1e-6 m of RK4 at ten times the rate (the aim of spec/sousvide section 2)."""
    item = quiet("flightgoggles")
    start = random_start(np.random.default_rng(5), item, turn=1.0)
    ends = []
    for rate in (480, 4800):
        simulator = Simulator(item, SimulatorConfig(physics_rate=rate))
        simulator.reset(**start)
        twin = Twin(simulator)
        same_start(twin)
        twin.advance(rate // 4, start["rotor_speed"])
        ends.append(twin.field("position")[0])
    assert np.abs(ends[0] - ends[1]).max() < 1e-6
