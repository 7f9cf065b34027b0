"""Contact of vehicles with scene geometry: nothing is passed through, no impact adds energy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from airworthy.evaluation.verification.figure import Figure, below, zero
from airworthy.geometry import Box, Cylinder, GeometryBatch, Mesh, Placement, Shape, Sphere
from airworthy.simulation import Contact, Simulator, SimulatorConfig
from airworthy.vehicles import Drag, Vehicle, vehicle
from airworthy.vehicles.record import CollisionBody, WrenchNoise

RATE = 960.0
SPEED = 30.0
"""[m/s]: 31 mm per step."""
_OFF = np.zeros(4)
_WALL = (0.025, 4.0, 4.0)


def contact_figures(shots: int = 10_000) -> Iterator[Figure]:
    """Run the checks one after the other."""
    yield zero(f"Contact: {shots:,} shots at 30 m/s at 5 cm that came through or did not meet it", _tunnels(shots))
    gain, impacts = _energy_gain()
    yield below(f"Contact: largest relative gain of energy in {impacts} steps with contact", gain, 1e-3)


def box_mesh(half: tuple[float, float, float]) -> Mesh:
    """A box of twelve triangles."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float) * half
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return Mesh(corners, np.array([triangle for a, b, c, d in quads for triangle in ((a, b, c), (a, c, d))]))


def _craft(shape: Literal["box", "sphere", "cylinder"], size: tuple[float, float, float]) -> Vehicle:
    inertia = (0.006, 0.007, 0.011, 0.0, 0.0, 0.0)
    body = CollisionBody(shape, size)
    return replace(vehicle("flightgoggles"), wrench_noise=WrenchNoise(), drag=Drag(), mass=1.2, inertia=inertia, body=body)


def _place(*things: tuple[Shape, tuple[float, float, float]]) -> GeometryBatch:
    placement = Placement.of(np.arange(len(things)), np.array([at for _, at in things], float))
    return GeometryBatch([shape for shape, _ in things], [placement])


def _simulator(items: Vehicle | Sequence[Vehicle], count: int, geometry: GeometryBatch, contact: Contact) -> Simulator:
    config = SimulatorConfig(physics_rate=RATE, contact=contact)
    envs = count if isinstance(items, Vehicle) else None
    return Simulator(items, config, env_count=envs, geometry=geometry, geometry_env=np.zeros(count, int))


def _tunnels(shots: int) -> int:
    """A quarter each against a box and against a mesh, with vehicles that stop and that rebound, spinning."""
    rng, count, failures = np.random.default_rng(11), shots // 4, 0
    for shape in (Box(_WALL), box_mesh(_WALL)):
        for contact in (Contact("freeze"), Contact("respond", 0.5)):
            simulator = _simulator(_craft("sphere", (0.05, 0.05, 0.05)), count, _place((shape, (0.0, 0.0, 0.0))), contact)
            start = np.c_[-rng.uniform(0.3, 1.5, count), rng.uniform(-1.0, 1.0, (count, 2))]
            way = np.c_[np.zeros(count), rng.uniform(-1.0, 1.0, (count, 2))] - start
            velocity = SPEED * way / np.linalg.norm(way, axis=1, keepdims=True)
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
    geometry = _place(
        (Box((50.0, 50.0, 1.0)), (0.0, 0.0, -1.0)),
        (Cylinder(0.2, 2.0), (1.0, 0.3, 1.0)),
        (Box((0.025, 3.0, 3.0)), (-1.6, 0.0, 1.0)),
        (box_mesh((3.0, 0.025, 3.0)), (0.0, 1.7, 1.0)),
        (Sphere(0.4), (0.1, -1.0, 0.3)),
    )
    bodies = (_craft("sphere", (0.15,) * 3), _craft("box", (0.2, 0.15, 0.05)), _craft("cylinder", (0.15, 0.15, 0.06)))
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


def _energy(items: Sequence[Vehicle], simulator: Simulator) -> NDArray[np.float64]:
    """Kinetic and potential, (env,) [J]."""
    mass, inertia = np.array([item.mass for item in items]), np.array([item.inertia[:3] for item in items])
    velocity, rate = simulator.velocity.astype(float), simulator.rate.astype(float)
    moving = 0.5 * mass * (velocity**2).sum(1) + 0.5 * (inertia * rate**2).sum(1)
    height = simulator.position[:, 2].astype(float) + simulator.field("position_residual")[:, 2]
    return np.asarray(moving + mass * 9.81 * height)
