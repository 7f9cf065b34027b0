"""The native contact step against its readable twin in NumPy, and against itself in other company."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.dynamics.scene_contact import BodyMotion
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.placement import Box, Capsule, Cylinder, Mesh, Placement, Sphere
from airworthy.simulation.config import Contact, SimulatorConfig
from airworthy.simulation.simulator import Simulator
from airworthy.vehicles import vehicle
from airworthy.vehicles.record import CollisionBody, Drag, Vehicle, WrenchNoise

OFF = np.zeros(4)


def airframe(shape: Any, size: Any, center: Any = (0.0, 0.0, 0.0)) -> Vehicle:
    inertia = (0.006, 0.007, 0.011, 0.0005, -0.0003, 0.0002)
    body = CollisionBody(shape, size, center)
    return replace(vehicle("flightgoggles"), wrench_noise=WrenchNoise(), drag=Drag(), mass=1.2, inertia=inertia, body=body)


BODIES = [
    airframe("sphere", (0.15, 0.15, 0.15)),
    airframe("sphere", (0.1, 0.1, 0.1), (0.05, 0.0, 0.02)),
    airframe("box", (0.2, 0.15, 0.05)),
    airframe("box", (0.2, 0.15, 0.05), (0.05, 0.02, 0.03)),
    airframe("cylinder", (0.15, 0.15, 0.06)),
]


def closed_box(half: float) -> Mesh:
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float) * half
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return Mesh(corners, np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]))


def crowded(count: int, dynamic_instances: bool) -> GeometryBatch:
    """Each kind of shape, turned and scaled, open and closed meshes, and with `count` above 24 more than are kept at hand."""
    open_mesh = Mesh(np.array([[0, 0, 0], [1, 0, 0.2], [0, 1, 0.1], [1, 1, 0.4]], float), np.array([[0, 1, 2], [1, 3, 2]]))
    shapes = [
        Box((9.0, 9.0, 1.0)),
        Cylinder(0.2, 2.0),
        Sphere(0.3),
        Capsule(0.1, 0.4),
        closed_box(0.3),
        open_mesh,
        Box((0.1,) * 3),
    ]
    rng = np.random.default_rng(2)
    kind = np.r_[0, rng.integers(1, len(shapes), count)]
    position = np.c_[rng.uniform(-1.0, 1.0, (count + 1, 2)), rng.uniform(0.0, 1.2, count + 1)]
    position[0] = (0.0, 0.0, -1.0)
    attitude = rng.normal(size=(count + 1, 4))
    attitude[0] = (0.0, 0.0, 0.0, 1.0)
    scale = np.r_[1.0, rng.uniform(0.5, 1.2, count)]
    attitude /= np.linalg.norm(attitude, axis=1, keepdims=True)
    layout = Placement.of(kind, position, attitude, scale=scale)
    return GeometryBatch(shapes, [layout], [0], [Placement.of([6], [(0.3, 0.2, 0.5)])] if dynamic_instances else None)


def simulators(geometry: GeometryBatch, mode: Any, count: int, **contact: Any) -> tuple[Simulator, Simulator]:
    """With contact and without, in the same states, a third of them in or at something."""
    items = [BODIES[k % len(BODIES)] for k in range(count)]
    config = SimulatorConfig(contact=Contact(mode, **contact))
    hits = Simulator(items, config, geometry=geometry, geometry_env=np.zeros(count, int))
    free = Simulator(items, replace(config, contact=None))
    rng = np.random.default_rng(7)
    start = {
        "position": np.c_[rng.uniform(-1.2, 1.2, (count, 2)), rng.uniform(0.0, 1.5, count)],
        "velocity": rng.uniform(-6.0, 6.0, (count, 3)) * rng.choice([0.0, 0.01, 1.0], (count, 1)),
        "attitude": rng.normal(size=(count, 4)),
        "rate": rng.uniform(-8.0, 8.0, (count, 3)) * rng.choice([0.0, 1.0], (count, 1)),
        "rotor_speed": OFF,
    }
    for simulator in (hits, free):
        simulator.reset(**start)
    return hits, free


def motion(simulator: Simulator) -> BodyMotion:
    position = simulator.position.astype(float) + simulator.field("position_residual")
    parts = (np.array(simulator.field(name), float) for name in ("velocity", "attitude", "rate"))
    return BodyMotion(position, *parts)


@pytest.mark.parametrize("mode", ["freeze", "respond"])
@pytest.mark.parametrize(("count", "dynamic_instances"), [(6, True), (60, False)])
def test_steps_as_the_twin_says(mode: str, count: int, dynamic_instances: bool) -> None:
    """Twelve steps of 400 bodies, each from the same state: as the NumPy twin but for what storing in float32 rounds off.

    Positions keep their residual (1e-9 m; the twin's constants are double, the native ones single precision, which is 1e-7 of a
    step's way); velocities and rates are within two units in the last place of the largest component, or within what the last
    pass over the contact points leaves (1e-9 m/s, by levers of 10 cm against 6 g m^2: 1e-6 rad/s).
    """
    geometry = crowded(count, dynamic_instances)
    hits, free = simulators(geometry, mode, 400, restitution=0.6, friction=0.3)
    if dynamic_instances:
        hits.set_dynamic_velocity([[[1.0, -2.0, 0.5]]])
    scene, ids, total = hits.scene, np.arange(400), 0
    assert scene is not None
    for _ in range(12):
        before, flying = motion(hits), hits.field("status") == 0.0
        impacts = hits.contacts.count.copy()
        snapshot = hits.save()
        free.restore(replace(snapshot, contacts=np.zeros((400, 0))))
        hits.advance(1, OFF)
        free.advance(1, OFF)
        end, met, stops = scene.acted(ids, before, motion(free))
        now, met = motion(hits), met & flying
        assert np.array_equal(hits.field("contact")[flying] > 0, met[flying])
        assert np.array_equal(hits.field("status") == 2.0, (stops & flying) | ~flying)
        assert np.abs(now.position - end.position)[flying].max() < 1e-9
        assert np.abs(now.attitude - end.attitude)[flying].max() < 2e-7
        for name, floor in (("velocity", 1e-8), ("body_rate", 1e-6)):
            mine, its = getattr(now, name)[flying], getattr(end, name)[flying]
            assert np.abs(mine - its).max(initial=0.0) < 2.5e-7 * max(np.abs(its).max(initial=0.0), 1.0) + floor, name
        assert np.array_equal(now.velocity[~met & flying], motion(free).velocity[~met & flying])
        assert (hits.contacts.count >= impacts).all()
        total += int(np.count_nonzero(met))
    assert total > (100 if mode == "freeze" else 800)


@pytest.mark.slow
def test_company_and_threads_change_no_bit(monkeypatch: Any) -> None:
    """More threads, another order and fewer neighbours: the same bytes. However short, launches are split over the threads."""
    monkeypatch.setattr("airworthy.core.native_kernel.SPLIT_SECONDS", 0.0)
    geometry = crowded(40, True)
    ends = []
    order = np.random.default_rng(0).permutation(400)
    for threads, chosen in ((1, np.arange(400)), (3, np.arange(400)), (2, order), (1, order[:7])):
        items = [BODIES[k % len(BODIES)] for k in chosen]
        geometry.threads = threads
        simulator = Simulator(items, SimulatorConfig(contact=Contact("respond")), geometry=geometry, geometry_env=0 * chosen)
        full, _ = simulators(geometry, "respond", 400)
        fields = {"position": full.position, "velocity": full.velocity, "attitude": full.attitude, "rate": full.rate}
        simulator.reset(**{name: value[chosen] for name, value in fields.items()}, rotor_speed=OFF)
        for _ in range(3):
            simulator.advance(16, OFF)
        found = {name: np.array(simulator.field(name)) for name in simulator.layout.fields}
        ends.append((chosen, found | {"count": simulator.contacts.count, "point": simulator.contacts.point}))
    whole = ends[0][1]
    assert np.count_nonzero(whole["count"]) > 100
    for chosen, found in ends[1:]:
        for name, value in found.items():
            assert whole[name][chosen].tobytes() == value.tobytes(), name
