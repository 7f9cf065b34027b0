"""Motion against closed forms and conservation laws, in float64 (twin) and float32 (kernel).

Tolerances: the twin at 960 Hz is limited by RK4's truncation, (dt/tau)^5 per step, far below 1e-9 for these time constants; the
kernel by float32, whose 1e-7 per step adds up over about 1,000 steps to at most 1e-4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.core.frames import to_matrix
from airworthy.dynamics.state import invert_inertia
from airworthy.simulation.config import SimulatorConfig
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.twin import Twin
from airworthy.vehicles import vehicle
from airworthy.vehicles.record import Disturbance, Drag, Rotor, RotorResponse, Vehicle, WrenchNoise

G, SECONDS, RATE = 9.81, 1.0, 960
M, J = 1.3, (0.005, 0.006, 0.009)
HELD = 800.0  # rotor speed of the case with spinning rotors
THRUST = 4 * 1.91e-6 * HELD**2

Motion = tuple[Any, Any]


def body(drag: Drag) -> Vehicle:
    base = vehicle("flightgoggles")
    rotors = tuple(replace(r, inertia=0.0, torque=(0.0, 0.0, 0.0)) for r in base.rotors)
    return replace(base, mass=M, inertia=(*J, 0.0, 0.0, 0.0), rotors=rotors, drag=drag, wrench_noise=WrenchNoise())


def ballistic(v0: np.ndarray, t: float) -> Motion:
    g = np.array([0.0, 0.0, -G])
    return v0 * t + 0.5 * g * t * t, v0 + g * t


def linear(k: float, gravity: float = G) -> Callable[[np.ndarray, float], Motion]:
    def motion(v0: np.ndarray, t: float) -> Motion:
        end, lag = np.array([0.0, 0.0, -gravity * M / k]), M / k
        fade = 1.0 - np.exp(-t / lag)
        return end * t + (v0 - end) * lag * fade, v0 + (end - v0) * fade

    return motion


def quadratic(c: float) -> Callable[[np.ndarray, float], Motion]:
    """Each axis by itself: coasting sideways, falling from rest."""

    def motion(v0: np.ndarray, t: float) -> Motion:
        grown = 1.0 + c * np.abs(v0) * t / M
        x, v = np.sign(v0) * (M / c) * np.log(grown), v0 / grown
        fastest = np.sqrt(M * G / c)
        x[2], v[2] = -(fastest**2 / G) * np.log(np.cosh(G * t / fastest)), -fastest * np.tanh(G * t / fastest)
        return x, v

    return motion


def turning_linear(c: float, axis: int) -> Callable[[float, float], Motion]:
    return lambda w0, t: (w0 * J[axis] / c * (1 - np.exp(-c * t / J[axis])), w0 * np.exp(-c * t / J[axis]))


def turning_quadratic(c: float, axis: int) -> Callable[[float, float], Motion]:
    return lambda w0, t: (J[axis] / c * np.log(1 + c * w0 * t / J[axis]), w0 / (1 + c * w0 * t / J[axis]))


# name: drag, start velocity, motion, (axis, start rate, turn) or None
CASES: dict[str, tuple[Drag, tuple[float, float, float], Any, Any]] = {
    "free fall": (Drag(), (0, 0, 0), ballistic, None),
    "arc": (Drag(), (3, -2, 8), ballistic, None),
    "linear drag": (Drag(linear=(0.4,) * 3), (3, -2, 8), linear(0.4), None),
    "linear drag, fall to terminal velocity": (Drag(linear=(13.0,) * 3), (0, 0, 0), linear(13.0), None),
    "drag by norm, fall": (Drag(quadratic_norm=(0.3,) * 3), (0, 0, 0), quadratic(0.3), None),
    "drag by norm, fall to terminal velocity": (Drag(quadratic_norm=(8.0,) * 3), (0, 0, 0), quadratic(8.0), None),
    "drag by axis": (Drag(quadratic_axis=(0.3,) * 3), (6, -4, 0), quadratic(0.3), None),
    "drag by rotor speed": (Drag(rotor_speed=(2e-4,) * 3), (3, -2, 1), linear(8e-4 * HELD, G - THRUST / M), None),
    "moment, linear": (Drag(angular_linear=(0.004,) * 3), (0, 0, 0), ballistic, (0, 7.0, turning_linear(0.004, 0))),
    "moment by norm": (Drag(angular_norm=(0.003,) * 3), (0, 0, 0), ballistic, (2, 7.0, turning_quadratic(0.003, 2))),
    "moment by axis": (Drag(angular_axis=(0.003,) * 3), (0, 0, 0), ballistic, (1, 7.0, turning_quadratic(0.003, 1))),
}


@pytest.fixture(scope="module")
def flown() -> dict[str, Any]:
    """All cases as one batch for one second: state by source ("twin", "kernel")."""
    vehicles = [body(case[0]) for case in CASES.values()]
    rate, speed = np.zeros((len(CASES), 3)), np.zeros((len(CASES), 4))
    for k, (name, case) in enumerate(CASES.items()):
        if case[3] is not None:
            rate[k, case[3][0]] = case[3][1]
        speed[k] = HELD if "rotor" in name else 0.0
    simulator = Simulator(vehicles, SimulatorConfig(physics_rate=RATE))
    simulator.reset(velocity=np.array([case[1] for case in CASES.values()], float), rate=rate, rotor_speed=speed)
    twin = Twin(simulator)
    twin.advance(int(SECONDS * RATE), speed)
    simulator.advance(int(SECONDS * RATE), speed)
    return {"twin": twin, "kernel": simulator}


@pytest.mark.parametrize(("source", "tolerance"), [("twin", 1e-9), ("kernel", 1e-4)])
@pytest.mark.parametrize("name", CASES)
def test_closed_form(flown: dict[str, Any], name: str, source: str, tolerance: float) -> None:
    state, k = flown[source], list(CASES).index(name)
    _, v0, motion, turn = CASES[name]
    position, velocity = motion(np.array(v0, float), SECONDS)
    assert state.field("position")[k] == pytest.approx(position, abs=tolerance * np.abs(position).max())
    assert state.field("velocity")[k] == pytest.approx(velocity, abs=tolerance * np.abs(velocity).max())
    if turn is not None:
        axis, w0, law = turn
        angle, w = law(w0, SECONDS)
        assert state.field("rate")[k, axis] == pytest.approx(w, rel=tolerance)
        expected = np.zeros(4)
        expected[axis], expected[3] = np.sin(angle / 2), np.cos(angle / 2)
        attitude = state.field("attitude")[k]
        assert attitude * np.sign(attitude @ expected) == pytest.approx(expected, abs=tolerance * max(angle, 1.0))


# ---- torque-free rotation ----------------------------------------------------------------------------------------------------

PRINCIPAL = (2.5e-3, 2.1e-3, 4.3e-3, 0.0, 0.0, 0.0)
PRODUCTS = (2.5e-3, 2.1e-3, 4.3e-3, 2e-4, -3e-4, 4e-4)
SYMMETRIC = (2.5e-3, 2.5e-3, 4.3e-3, 0.0, 0.0, 0.0)


def inertia_matrix(j: tuple[float, ...]) -> np.ndarray:
    xx, yy, zz, xy, xz, yz = j
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def test_inverse_of_inertia() -> None:
    inverse = inertia_matrix(tuple(invert_inertia(PRODUCTS)))
    assert inverse @ inertia_matrix(PRODUCTS) == pytest.approx(np.eye(3), abs=1e-13)


def spinning(inertia: tuple[float, ...]) -> Vehicle:
    return replace(body(Drag()), inertia=inertia, gravity=0.0)


def energy(rate: np.ndarray, j: np.ndarray) -> np.ndarray:
    return 0.5 * np.einsum("ei,eij,ej->e", rate, j, rate)


def momentum(attitude: np.ndarray, rate: np.ndarray, j: np.ndarray) -> np.ndarray:
    return np.einsum("eij,ejk,ek->ei", to_matrix(attitude), j, rate)


@pytest.mark.parametrize(
    ("source", "rate_hz", "tolerance"), [pytest.param("twin", 500, 1e-10, marks=pytest.mark.slow), ("kernel", 1000, 1e-4)]
)
def test_precession_conserves(source: str, rate_hz: int, tolerance: float) -> None:
    """10 s of torque-free rotation. The twin runs at 500 Hz, where RK4 loses 32 times more than at 1 kHz, and holds 1e-10."""
    inertias = [PRINCIPAL, PRODUCTS, SYMMETRIC]
    start = np.array([3.0, 1.0, 5.0])
    simulator = Simulator([spinning(j) for j in inertias], SimulatorConfig(physics_rate=rate_hz, control_rate=100))
    simulator.reset(rate=start, rotor_speed=np.zeros(4))
    j = np.array([inertia_matrix(i) for i in inertias])
    first = np.tile(start, (3, 1)), np.tile([0.0, 0.0, 0.0, 1.0], (3, 1))
    state: Any = Twin(simulator) if source == "twin" else simulator
    state.advance(10 * rate_hz, np.zeros(4))
    rate, attitude = np.array(state.field("rate"), float), np.array(state.field("attitude"), float)
    assert np.abs(energy(rate, j) / energy(first[0], j) - 1).max() < tolerance
    before = momentum(first[1], first[0], j)
    error = np.linalg.norm(momentum(attitude, rate, j) - before, axis=1) / np.linalg.norm(before, axis=1)
    assert error.max() < tolerance
    assert np.abs(np.linalg.norm(attitude, axis=1) - 1).max() < 1e-6
    # The symmetric top: its rate precesses about the axis at (J3 - J1) / J1 w3.
    turn = (SYMMETRIC[2] - SYMMETRIC[0]) / SYMMETRIC[0] * start[2] * 10.0
    expected = [3 * np.cos(turn) - np.sin(turn), 3 * np.sin(turn) + np.cos(turn), 5.0]
    # The phase of 34 rad gathers RK4's (w dt)^4 / 120 relative error, or float32's.
    assert rate[2] == pytest.approx(expected, abs=1e-7 if source == "twin" else 2e-3)


# ---- rotors exchange momentum with the body ---------------------------------------------------------------------------------

ROTOR_INERTIA = 3e-5


def momentum_rotor(k: int, spin: int, axis: tuple[float, float, float] = (0.0, 0.0, 1.0)) -> Rotor:
    """A rotor in a near vacuum: it has inertia; its thrust, at most 1e-14 N, only keeps control allocation defined."""
    return Rotor(
        position=(0.1 * np.cos(k), 0.1 * np.sin(k), 0.02 * k),
        thrust=(0.0, 0.0, 1e-20),
        torque=(0.0, 0.0, 0.0),
        spin=1 if spin > 0 else -1,
        response=RotorResponse.first_order(0.05, 0.03),
        speed_max=2000.0,
        axis=axis,
        inertia=ROTOR_INERTIA,
    )


def in_vacuum(rotors: tuple[Rotor, ...], inertia: tuple[float, ...]) -> Vehicle:
    return Vehicle(name="vacuum", mass=1.0, inertia=inertia, rotors=rotors, gravity=0.0)  # type: ignore[arg-type]


def total_momentum(item: Vehicle, attitude: np.ndarray, rate: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """World angular momentum of body and rotors; a rotor of spin +1 turns against its axis."""
    h = inertia_matrix(item.inertia) @ rate
    for r, w in zip(item.rotors, speed, strict=False):
        h = h - r.spin * r.inertia * w * np.array(r.axis)
    return np.asarray(to_matrix(attitude) @ h)


@pytest.mark.parametrize("integrator", ["euler", "semi_implicit", "rk4"])
def test_body_turns_against_rotors_that_spin_up(integrator: Any) -> None:
    """About one axis the exchange is linear, and every integrator keeps linear invariants to rounding."""
    item = in_vacuum(tuple(momentum_rotor(k, +1) for k in range(4)), PRINCIPAL)
    simulator = Simulator(item, SimulatorConfig(physics_rate=960, integrator=integrator))
    simulator.reset(rotor_speed=np.zeros(4))
    twin = Twin(simulator)
    command = [500.0, 800.0, 300.0, 1000.0]
    twin.advance(240, command)
    simulator.advance(240, command)
    for state, tolerance in ((twin, 1e-12), (simulator, 1e-4)):
        speed = np.array(state.field("rotor_speed"))[0]
        turned = ROTOR_INERTIA * speed.sum() / PRINCIPAL[2]
        assert speed.sum() > 0.9 * sum(command)
        assert state.field("rate")[0] == pytest.approx([0.0, 0.0, turned], abs=tolerance * float(turned))


def test_total_momentum_with_tilted_rotors() -> None:
    """Rotors of any axis spin up while the body tumbles: the sum, in the world, stays. float32 as above."""
    rng = np.random.default_rng(3)
    axes = rng.normal(size=(4, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    rotors = tuple(momentum_rotor(k, (-1) ** k, tuple(a)) for k, a in enumerate(axes))
    item = in_vacuum(rotors, PRODUCTS)
    simulator = Simulator(item, SimulatorConfig(physics_rate=960))
    start, rate = np.array([100.0, 900.0, 0.0, 1500.0]), np.array([2.0, -1.0, 3.0])
    simulator.reset(rate=rate, rotor_speed=start)
    before = total_momentum(item, np.array([0.0, 0.0, 0.0, 1.0]), rate, start)
    twin = Twin(simulator)
    command = [1200.0, 200.0, 1000.0, 1500.0]
    twin.advance(960, command)
    simulator.advance(960, command)
    scale = sum(ROTOR_INERTIA * max(a, b) for a, b in zip(start, command, strict=True))
    # RK4 at dt / tau = 0.035 while spinning at up to 20 rad/s: (w dt)^5 / 120 per step.
    for state, tolerance in ((twin, 1e-8), (simulator, 1e-4)):
        values = [np.array(state.field(name), float)[0] for name in ("attitude", "rate", "rotor_speed")]
        assert np.linalg.norm(total_momentum(item, *values) - before) < tolerance * scale


def test_gyroscopic_term_does_no_work() -> None:
    """With rotors at a steady speed the gyroscopic moment turns the rate without changing the body's energy."""
    item = in_vacuum(tuple(momentum_rotor(k, +1) for k in range(4)), PRODUCTS)
    simulator = Simulator(item, SimulatorConfig(physics_rate=960))
    # Nutation at h / J = 29 rad/s, 0.03 rad per step: RK4 loses (0.03)^6 / 72 = 1e-11 of the energy per step.
    speed, rate = np.full(4, 500.0), np.array([[2.0, -1.0, 0.5]])
    simulator.reset(rate=rate, rotor_speed=speed)
    twin = Twin(simulator)
    twin.advance(960, speed)
    j = inertia_matrix(PRODUCTS)[None]
    assert energy(twin.field("rate"), j) == pytest.approx(energy(rate, j), rel=1e-7)
    assert np.abs(twin.field("rate") - rate).max() > 0.5


def test_disturbed_and_noisy_vehicles_are_quiet_when_asked() -> None:
    """wrench_noise=False and disturbance=False leave exact free fall."""
    noise, shove = WrenchNoise((1.0,) * 3, (1.0,) * 3), Disturbance(1.0, (5.0,) * 3, (1.0,) * 3)
    item = replace(body(Drag()), wrench_noise=noise, disturbance=shove)
    simulator = Simulator(item, SimulatorConfig(wrench_noise=False, disturbance=False))
    simulator.reset(rotor_speed=np.zeros(4))
    simulator.advance(960, np.zeros(4))
    assert simulator.velocity[0] == pytest.approx([0.0, 0.0, -G], rel=1e-4)
