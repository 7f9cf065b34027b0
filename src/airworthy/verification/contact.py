"""Contact of vehicles with scene geometry: nothing is passed through, no impact adds energy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from airworthy.core.arrays import Array
from airworthy.geometry import Box, Cylinder, GeometryBatch, Mesh, Placement, Shape, Sphere
from airworthy.simulation import Contact, Ground, Simulator, SimulatorConfig
from airworthy.vehicles import Drag, Vehicle, vehicle, vehicle_names
from airworthy.vehicles.record import CollisionBody, Disturbance, WrenchNoise
from airworthy.verification.published import Figure, below, zero

RATE = 960.0
SPEED = 30.0
"""[m/s]: 31 mm per step."""
_OFF = np.zeros(4)
_WALL = (0.025, 4.0, 4.0)


def contact_figures(trials: int = 10_000) -> Iterator[Figure]:
    """Run the checks one after the other."""
    yield zero(f"Contact: {trials:,} shots at 30 m/s at 5 cm that came through or did not meet it", _tunnels(trials))
    gain, impacts = _energy_gain()
    yield below(f"Contact: largest relative gain of energy in {impacts} steps with contact", gain, 1e-3)
    ground, mesh = (landings(on_mesh) for on_mesh in (False, True))
    apart = float(np.abs(ground.height - mesh.height).max())
    yield below(f"Contact: {len(ground.names)} vehicles, height on the ground against that on a mesh", 1e3 * apart, 1.0, "mm")
    slowest = float(max(ground.settled.max(), mesh.settled.max()))
    yield below("Contact: the same set down at 0.5 m/s both ways, until all stand", slowest, 1.5, "s")
    most = float(max(ground.gain.max(), mesh.gain.max()))
    yield below("Contact: the same dropped at 2 m/s with 20 rad/s and e = 1, largest relative gain of a step", most, 1e-3)


@dataclass(frozen=True)
class Landings:
    """How every vehicle of the catalogue lands, rotors off, at 480 Hz."""

    names: tuple[str, ...]
    height: Array
    """Of the centre of mass at rest [m], (n,)."""
    settled: Array
    """Time from 2 cm above, at 0.5 m/s down and sideways, until it stays below 1 cm/s [s], (n,)."""
    gain: Array
    """Largest gain of energy in a step with contact, of the energy at the start, (n,)."""


def landings(on_mesh: bool) -> Landings:
    """Set down and drop every vehicle of the catalogue on the ground plane or on a box of twelve triangles."""
    items, rng = [_bare(name) for name in vehicle_names()], np.random.default_rng(2)
    rest = np.array([item.body.size[2] - item.body.center[2] + item.center_of_mass[2] for item in items])
    simulator = _floored(items, on_mesh, 0.2)
    n, off = len(items), np.zeros(simulator.rotor_count)
    start = np.c_[np.zeros((n, 2)), rest + 0.02]
    simulator.reset(position=start, velocity=(0.4, 0.3, -0.5), rotor_speed=off)
    settled = np.zeros(n)
    for k in range(200):
        simulator.advance(5, off)
        settled = np.where(np.linalg.norm(simulator.velocity, axis=1) > 0.01, (k + 1) / 96.0, settled)
    height = simulator.position[:, 2].astype(float)
    simulator = _floored(items, on_mesh, 1.0)
    velocity = np.c_[rng.uniform(-2.0, 2.0, (n, 2)), np.full(n, -2.0)]
    attitude, rate = rng.normal(size=(n, 4)), rng.uniform(-20.0, 20.0, (n, 3))
    simulator.reset(position=(0.0, 0.0, 0.9), velocity=velocity, attitude=attitude, rate=rate, rotor_speed=off)
    first = before = _energy(items, simulator)
    gain = np.full(n, -1.0)
    for _ in range(480):
        simulator.advance(1, off)
        now, met = _energy(items, simulator), simulator.field("contact") > 0
        gain, before = np.where(met, np.maximum(gain, (now - before) / first), gain), now
    return Landings(tuple(vehicle_names()), height, settled, gain)


def _bare(name: str) -> Vehicle:
    """Of the catalogue, without noise and air, with rotors that can stand still."""
    item = vehicle(name)
    rotors = tuple(replace(rotor, speed_min=0.0) for rotor in item.rotors)
    return replace(
        item, wrench_noise=WrenchNoise(), disturbance=Disturbance(), drag=Drag(), rotors=rotors, gravity=9.81, sensors=()
    )


def _floored(items: list[Vehicle], on_mesh: bool, restitution: float) -> Simulator:
    if not on_mesh:
        return Simulator(items, SimulatorConfig(physics_rate=480.0, ground=Ground(restitution=restitution)))
    config = SimulatorConfig(physics_rate=480.0, contact=Contact("respond", restitution))
    floor = _geometry_of((box_mesh((5.0, 5.0, 1.0)), (0.0, 0.0, -1.0)))
    return Simulator(items, config, geometry=floor, geometry_env=np.zeros(len(items), int))


def box_mesh(half: tuple[float, float, float]) -> Mesh:
    """Return a box of twelve triangles."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float) * half
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return Mesh(corners, np.array([triangle for a, b, c, d in quads for triangle in ((a, b, c), (a, c, d))]))


def _vehicle_of_shape(shape: Literal["box", "sphere", "cylinder"], size: tuple[float, float, float]) -> Vehicle:
    inertia = (0.006, 0.007, 0.011, 0.0, 0.0, 0.0)
    body = CollisionBody(shape, size)
    return replace(vehicle("flightgoggles"), wrench_noise=WrenchNoise(), drag=Drag(), mass=1.2, inertia=inertia, body=body)


def _geometry_of(*things: tuple[Shape, tuple[float, float, float]]) -> GeometryBatch:
    placement = Placement.of(np.arange(len(things)), np.array([at for _, at in things], float))
    return GeometryBatch([shape for shape, _ in things], [placement])


def _simulator(items: Vehicle | Sequence[Vehicle], count: int, geometry: GeometryBatch, contact: Contact) -> Simulator:
    config = SimulatorConfig(physics_rate=RATE, contact=contact)
    envs = count if isinstance(items, Vehicle) else None
    return Simulator(items, config, env_count=envs, geometry=geometry, geometry_env=np.zeros(count, int))


def _tunnels(trials: int) -> int:
    """Return a quarter each against a box and against a mesh, with vehicles that stop and that rebound, spinning."""
    rng, count, failures = np.random.default_rng(11), trials // 4, 0
    for shape in (Box(_WALL), box_mesh(_WALL)):
        for contact in (Contact("freeze"), Contact("respond", 0.5)):
            simulator = _simulator(
                _vehicle_of_shape("sphere", (0.05, 0.05, 0.05)), count, _geometry_of((shape, (0.0, 0.0, 0.0))), contact
            )
            start = np.c_[-rng.uniform(0.3, 1.5, count), rng.uniform(-1.0, 1.0, (count, 2))]
            offset = np.c_[np.zeros(count), rng.uniform(-1.0, 1.0, (count, 2))] - start
            velocity = SPEED * offset / np.linalg.norm(offset, axis=1, keepdims=True)
            simulator.reset(
                position=start, velocity=velocity, attitude=rng.normal(size=(count, 4)), rate=rng.normal(0, 5, (count, 3))
            )
            through = np.zeros(count, bool)
            for _ in range(12):
                simulator.step(_OFF)
                through |= ~(simulator.position[:, 0] < -_WALL[0] - 0.05 + 1e-5)
            failures += int(np.sum(through | (simulator.contacts.count < 1)))
    return failures


def _energy_gain() -> tuple[float, int]:
    """Tumbling bodies among a floor, pillars, walls, a ball and a mesh: largest relative gain of a step with contact, steps."""
    geometry = _geometry_of(
        (Box((50.0, 50.0, 1.0)), (0.0, 0.0, -1.0)),
        (Cylinder(0.2, 2.0), (1.0, 0.3, 1.0)),
        (Box((0.025, 3.0, 3.0)), (-1.6, 0.0, 1.0)),
        (box_mesh((3.0, 0.025, 3.0)), (0.0, 1.7, 1.0)),
        (Sphere(0.4), (0.1, -1.0, 0.3)),
    )
    bodies = (
        _vehicle_of_shape("sphere", (0.15,) * 3),
        _vehicle_of_shape("box", (0.2, 0.15, 0.05)),
        _vehicle_of_shape("cylinder", (0.15, 0.15, 0.06)),
    )
    items, rng = [body for body in bodies for _ in range(8)], np.random.default_rng(4)
    gain, impacts, n = -1.0, 0, len(items)
    for contact in (Contact("respond", 0.0, 0.6), Contact("respond", 0.9, 0.3), Contact("respond", 1.0, 0.0)):
        simulator = _simulator(items, n, geometry, contact)
        simulator.reset(
            position=(0.0, 0.0, 0.9), velocity=rng.uniform(-5.0, 5.0, (n, 3)) - [0.0, 0.0, 2.0],
            attitude=rng.normal(size=(n, 4)), rate=rng.uniform(-10, 10, (n, 3)), rotor_speed=_OFF,
        )  # fmt: skip
        start = before = _energy(items, simulator)
        for _ in range(240):
            simulator.advance(1, _OFF)
            now, met = _energy(items, simulator), simulator.field("contact") > 0
            gain = max(gain, float(((now - before) / start)[met].max(initial=-1.0)))
            before, impacts = now, impacts + int(np.count_nonzero(met))
    return gain, impacts


def _energy(items: Sequence[Vehicle], simulator: Simulator) -> Array:
    """Kinetic and potential, (env,) [J]."""
    mass, (xx, yy, zz, xy, xz, yz) = np.array([item.mass for item in items]), np.array([item.inertia for item in items]).T
    velocity, (x, y, z) = simulator.velocity.astype(float), simulator.rate.astype(float).T
    turning = 0.5 * (xx * x * x + yy * y * y + zz * z * z) + xy * x * y + xz * x * z + yz * y * z
    moving = 0.5 * mass * (velocity**2).sum(1) + turning
    height = simulator.position[:, 2].astype(float) + simulator.field("position_residual")[:, 2]
    return np.asarray(moving + mass * 9.81 * height)
