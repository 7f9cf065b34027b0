"""Drag at the hubs, flapping blades and translational lift: closed forms, RotorPy's form in matrices, twin and kernel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_euler
from airworthy.dynamics import equations as eq
from airworthy.dynamics.state import Effects
from airworthy.simulation.config import Imu, Randomization, SimulatorConfig, Wind
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.twin import Twin
from airworthy.vehicles import check, hover_speed, linear_drag, read_vehicle, vehicle, vehicle_names, write_vehicle
from airworthy.vehicles.record import Disturbance, Drag, Vehicle, WrenchNoise

AIR: dict[str, Any] = {"hub_drag": (5.09e-6, 1.19e-5), "flapping": 4e-7, "translational_lift": 1.11e-3}
"""Of the size of RotorPy's brushless Crazyflie; a flapping moment like that of its drag 8 cm above the hubs."""


def airy(name: str = "cf2x_L250", **values: Any) -> Vehicle:
    """A quiet vehicle with coefficients at its hubs."""
    item = replace(vehicle(name), wrench_noise=WrenchNoise(), disturbance=Disturbance())
    return replace(item, rotors=tuple(replace(rotor, **(values or AIR)) for rotor in item.rotors))


def record(rng: np.random.Generator, n: int, axis: np.ndarray | None = None) -> SimpleNamespace:
    axes = np.tile([0.0, 0.0, 1.0], (n, 1)) if axis is None else axis
    return SimpleNamespace(
        rotor_position=rng.normal(size=(n, 3)) * 0.2,
        rotor_axis=axes,
        rotor_hub_drag=rng.uniform(0.0, 1e-4, (n, 2)),
        rotor_flapping=rng.uniform(-1e-5, 1e-5, n),
        rotor_translational_lift=rng.uniform(0.0, 1e-2, n),
    )


@given(st.integers(0, 2**31), st.sampled_from([4, 6, 8]))
def test_rotorpys_form(seed: int, n: int) -> None:
    """RotorPy 3.0's hub forces in skew matrices, all rotors alike and along z: H = -W K u, T = k_h |u_xy|^2 z,
    M = sum of hat(r) (T + H) - k_flap W hat(u) z, with k_flap = -flapping."""
    rng = np.random.default_rng(seed)
    p = record(rng, n)
    p.rotor_hub_drag[:], p.rotor_flapping[:], p.rotor_translational_lift[:] = p.rotor_hub_drag[0], p.rotor_flapping[0], 3e-3
    v: Any = rng.normal(size=3) * 5.0
    w: Any = rng.normal(size=3) * 5.0
    speed: Any = rng.uniform(0.0, 2000.0, n)

    def hat(x: np.ndarray) -> np.ndarray:
        return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])

    across, along = p.rotor_hub_drag[0]
    matrix, up = np.diag([across, across, along]), np.array([0.0, 0.0, 1.0])
    force, moment = np.zeros(3), np.zeros(3)
    for place, turning in zip(p.rotor_position, speed, strict=True):
        local = v + hat(w) @ place
        hub = -turning * matrix @ local + 3e-3 * (local[0] ** 2 + local[1] ** 2) * up
        force += hub
        moment += hat(place) @ hub - (-p.rotor_flapping[0]) * turning * hat(local) @ up
    for planar in (True, False):
        found = eq.hub_wrench(v, w, speed, p, planar)
        assert np.array(found[0]) == pytest.approx(force, rel=1e-9, abs=1e-12)
        assert np.array(found[1]) == pytest.approx(moment, rel=1e-9, abs=1e-12)


@given(st.integers(0, 2**31))
def test_turning_everything_turns_the_wrench(seed: int) -> None:
    """The air knows no body axes: rotors, velocity and rate turned together give the turned wrench."""
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=(4, 3))
    p = record(rng, 4, axis / np.linalg.norm(axis, axis=1, keepdims=True))
    v: Any = rng.normal(size=3) * 5.0
    w: Any = rng.normal(size=3) * 5.0
    speed: Any = rng.uniform(-2000.0, 2000.0, 4)
    r = Rotation.from_quat(rng.normal(size=4)).as_matrix()
    turned = SimpleNamespace(**vars(p))
    turned.rotor_position, turned.rotor_axis = p.rotor_position @ r.T, p.rotor_axis @ r.T
    before, after = eq.hub_wrench(v, w, speed, p, False), eq.hub_wrench(r @ v, r @ w, speed, turned, False)
    for a, b in zip(before, after, strict=True):
        assert r @ np.array(a) == pytest.approx(np.array(b), rel=1e-8, abs=1e-10)


@given(st.integers(0, 2**31))
def test_hub_drag_brakes(seed: int) -> None:
    """Without lift and flapping the air takes power out of any motion: F v + M w <= 0."""
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=(4, 3))
    p = record(rng, 4, axis / np.linalg.norm(axis, axis=1, keepdims=True))
    p.rotor_flapping[:] = p.rotor_translational_lift[:] = 0.0
    v: Any = rng.normal(size=3)
    w: Any = rng.normal(size=3)
    speed: Any = rng.uniform(-2000.0, 2000.0, 4)
    force, moment = eq.hub_wrench(v, w, speed, p, False)
    assert np.dot(force, v) + np.dot(moment, w) < 0.0


# ---- in flight ---------------------------------------------------------------------------------------------------------------


def one_step(item: Vehicle, **start: Any) -> tuple[np.ndarray, np.ndarray]:
    """Specific force and angular acceleration of the first step, against those of the vehicle without its air."""
    out = []
    none = tuple(replace(r, hub_drag=(0.0, 0.0), flapping=0.0, translational_lift=0.0) for r in item.rotors)
    for each in (item, replace(item, rotors=none)):
        simulator = Simulator(each, SimulatorConfig(physics_rate=1000.0, integrator="euler"))
        simulator.reset(**start)
        before = np.array(simulator.rate, float)
        simulator.advance(1)
        out.append(
            (np.array(simulator.field("acceleration"), float)[0], (np.array(simulator.rate, float) - before)[0] * 1000.0)
        )
    return out[0][0] - out[1][0], out[0][1] - out[1][1]


def test_signs_and_sizes_by_hand() -> None:
    """Forward flight at 2 m/s in hover: drag back, lift up, nose up (a negative moment about y)."""
    item = airy(**AIR)
    total = float(hover_speed(item).sum())
    start = {"velocity": (2.0, 0.0, 0.0)}
    force, turn = one_step(item, **start)
    assert force[0] == pytest.approx(-5.09e-6 * total * 2.0 / item.mass, rel=1e-3)
    assert force[2] == pytest.approx(4 * 1.11e-3 * 4.0 / item.mass, rel=1e-3)
    assert turn[1] == pytest.approx(-4e-7 * total * 2.0 / item.inertia[1], rel=2e-3)
    assert abs(turn[0]) < 0.01 * abs(turn[1])
    # Rolling at 3 rad/s moves the hubs along their axes: a moment -c_a W y^2 p.
    _, turn = one_step(airy(hub_drag=(0.0, 1.19e-5)), rate=(3.0, 0.0, 0.0))
    damping = 1.19e-5 * sum(w * r.position[1] ** 2 for w, r in zip(hover_speed(item), item.rotors, strict=True)) * 3.0
    assert turn[0] == pytest.approx(-damping / item.inertia[0], rel=2e-3)


def test_moving_with_the_wind_feels_nothing() -> None:
    config = SimulatorConfig(wind=Wind(mean=(3.0, 1.0, -0.5)), integrator="euler")
    simulator = Simulator(airy(), config)
    simulator.reset(velocity=(3.0, 1.0, -0.5))
    simulator.advance(1)
    still = Simulator(airy(), SimulatorConfig(integrator="euler"))
    still.advance(1)
    assert simulator.field("acceleration")[0] == pytest.approx(still.field("acceleration")[0], abs=1e-4)


@pytest.mark.parametrize("name", ["cf2x_L250", "base_random", "flightgoggles"])
@pytest.mark.parametrize("integrator", ["rk4", "euler", "semi_implicit"])
def test_kernel_is_its_twin(name: str, integrator: Any) -> None:
    """Tilted and upright rotors, tumbling in wind, 50 steps: float32 of the twin."""
    scale = {"cf2x_L250": 1.0, "base_random": 5.0, "flightgoggles": 20.0}[name]
    air = {"hub_drag": (5e-6 * scale, 1e-5 * scale), "flapping": 4e-7 * scale, "translational_lift": 1e-3 * scale}
    config = SimulatorConfig(wind=Wind(mean=(2.0, -1.0, 0.5)), integrator=integrator)
    simulator = Simulator(airy(name, **air), config)
    assert Effects.HUB_AIR in simulator.effects
    attitude = from_euler(0.4, -0.3, 1.0)
    simulator.reset(velocity=(2.0, 1.0, -1.0), rate=(1.0, -2.0, 0.5), attitude=attitude)
    twin = Twin(simulator)
    command = 0.9 * np.array(simulator.rotor_speed)
    simulator.advance(50, command)
    twin.advance(50, command)
    for field, size in (("position", 1.0), ("velocity", 3.0), ("attitude", 1.0), ("rate", 5.0)):
        assert np.abs(simulator.field(field) - twin.field(field)).max() < 2e-5 * size, field


def test_neighbours_keep_their_bits() -> None:
    """Beside a vehicle with air at its hubs every kind of vehicle flies as alone, and the airy one too."""
    fleet = [airy(), *(vehicle(name) for name in ("flightgoggles", "rotorpy_crazyflie", "tinyprop", "base_random", "real_05"))]
    imu = Imu((0.01,) * 3, (0.002,) * 3)

    def fly(items: list[Vehicle], ids: list[int]) -> Simulator:
        simulator = Simulator(items, SimulatorConfig(level="position", imu=imu), seed=2, flight_ids=ids)
        simulator.reset(velocity=(0.3, -0.2, 0.1), rate=(0.2, 0.1, -0.3))
        simulator.set_command([0.5, 0.2, 0.1, 0.0])
        for _ in range(10):
            simulator.step()
        return simulator

    together = fly(fleet, list(range(len(fleet))))
    for k, item in enumerate(fleet):
        alone = fly([item], [k])
        for field in ("position", "velocity", "attitude", "rate", "imu", "acceleration"):
            assert alone.field(field)[0].tobytes() == together.field(field)[k].tobytes(), (item.name, field)


def test_off_unless_a_source_gives_it() -> None:
    for name in vehicle_names():
        simulator = Simulator(vehicle(name), SimulatorConfig())
        assert (Effects.HUB_AIR in simulator.effects) == (name == "rotorpy_crazyflie"), name


def test_spread_and_set_parameter() -> None:
    """The spread of drag is that of all coefficients; setting one turns the effect on."""
    simulator = Simulator(airy(), SimulatorConfig(randomization=Randomization(drag=0.5)), env_count=256, seed=1)
    rows = [simulator.parameter(name) for name in ("rotor_flapping", "rotor_translational_lift")]
    factor = rows[0][:, 0] / 4e-7
    assert (factor.min(), factor.max()) == pytest.approx((0.5, 1.5), abs=0.03)
    assert rows[1] == pytest.approx(factor[:, None] * np.full(4, 1.11e-3))
    plain = Simulator(vehicle("cf2x_L250"), SimulatorConfig())
    assert Effects.HUB_AIR not in plain.effects
    plain.set_parameter("rotor_flapping", np.full(4, 4e-7))
    assert Effects.HUB_AIR in plain.effects


def test_tracking_makes_up_for_hub_drag() -> None:
    """The believed drag of a tracking law holds the hubs' drag at hover, along each axis."""
    item = replace(airy(hub_drag=(5e-6, 1e-5)), drag=Drag())
    total = float(hover_speed(item).sum())
    assert linear_drag(item, hover_speed(item)) == pytest.approx([5e-6 * total, 5e-6 * total, 1e-5 * total])
    simulator = Simulator(item, SimulatorConfig(level="tracking"))
    assert simulator.parameter("control_drag_linear")[0] == pytest.approx([5e-6 * total, 5e-6 * total, 1e-5 * total])


def test_files_keep_it(tmp_path: Path) -> None:
    write_vehicle(airy(), tmp_path / "airy.toml")
    assert read_vehicle(tmp_path / "airy.toml") == airy()
    with pytest.raises(AirworthyError, match="hub_drag is negative"):
        check(airy(hub_drag=(-1e-6, 0.0)))
    with pytest.raises(AirworthyError, match="translational_lift is negative"):
        check(airy(translational_lift=-1e-6))
