"""Vehicles with joints meet scenes: the ground's impulses at whatever surfaces links meet, and no energy from them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.dynamics.articulated_cases import small, with_joints

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.dynamics.articulated.composite import momentum_and_energy
from airworthy.dynamics.articulated.impacts import Surfaces, meet
from airworthy.dynamics.articulated.spheres import contact_spheres
from airworthy.dynamics.articulated.tree import tree_of
from airworthy.dynamics.contact import ground_frame
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.placement import Box, Cylinder, Mesh, Placement, Sphere
from airworthy.simulation import Contact, Ground, Imu, Simulator, SimulatorConfig
from airworthy.simulation.jointed.twin import JointedTwin
from airworthy.vehicles import Vehicle, vehicle
from airworthy.vehicles.record import LinkShape

FLOOR = GeometryBatch([Box((9.0, 9.0, 1.0))], [Placement.of([0], np.array([(0.0, 0.0, -1.0)]))])
PYRAMID = Mesh(
    np.array([[1, 1, 0], [-1, 1, 0], [-1, -1, 0], [1, -1, 0], [0, 0, 0.8]], float) * 0.5,
    np.array([[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]]),
)


def loose() -> Vehicle:
    """A bar with a sphere on an arm that hangs loosely."""
    craft = with_joints(small(), kp=0.0, kd=1e-4)
    arm = replace(craft.links[1], shapes=(LinkShape("sphere", (0.03, 0.03, 0.03), (0.06, 0.01, -0.02)),))
    return replace(craft, links=(replace(craft.links[0], shapes=(LinkShape("box", (0.12, 0.03, 0.03)),)), arm))


def rooms(count: int, device: str = "cpu") -> GeometryBatch:
    """A floor, a wall, a pillar, a ball and a pyramid, which differ."""
    layouts = []
    for k in range(count):
        turn = np.random.default_rng(k).uniform(0.0, 2.0, 3) + np.array([0.0, 2.0, 4.0])
        at = 0.9 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
        position = [(0, 0, -1.0), (1.6, 0, 0), (*at[0], 1.0), (*at[1], 0.3), (*at[2], 0.0)]
        layouts.append(Placement.of([0, 1, 2, 3, 4], np.array(position)))
    shapes = [Box((9.0, 9.0, 1.0)), Box((0.4, 9.0, 9.0)), Cylinder(0.2, 2.0), Sphere(0.3), PYRAMID]
    return GeometryBatch(shapes, layouts, device=device)


ROOMS = rooms(4)


def config(contact: Contact | None, **changes: Any) -> SimulatorConfig:
    base: dict[str, Any] = {"physics_rate": 1000.0, "integrator": "midpoint", "disturbance": False}
    return SimulatorConfig(dynamics="articulated", contact=contact, **{**base, **changes})


def thrown(
    contact: Contact | None,
    ids: Array,
    geometry: GeometryBatch = ROOMS,
    speed: float = 3.0,
    height: float = 0.45,
    device: str = "cpu",
    **changes: Any,
) -> Simulator:
    """Loose bars that tumble through rooms."""
    given = {} if contact is None else {"geometry": geometry, "geometry_env": ids % geometry.env_count}
    simulator = Simulator(loose(), config(contact, **changes), len(ids), flight_ids=ids, device=device, **given)
    draw = np.array([np.random.default_rng(int(k)).normal(size=11) for k in ids])
    simulator.reset(
        position=draw[:, :3] * 0.05 + [0.0, 0.0, height], velocity=draw[:, 3:6] * speed, attitude=draw[:, 6:10],
        rate=draw[:, 8:11] * 3.0, rotor_speed=[0.0],
    )  # fmt: skip
    return simulator


def energy_of(simulator: Simulator) -> Array:
    craft = simulator.vehicles[0]
    tree = tree_of(craft)
    names = ("velocity", "attitude", "joint", "joint_rate", "rate")
    velocity, attitude, *fields = (tuple(simulator.field(name).astype(float).T) for name in names)
    body = ground_frame(velocity, attitude)[1]
    moving = momentum_and_energy(tree.structure, tree.model, fields[0], fields[1], body, fields[2])[2]
    return np.asarray(moving) + craft.mass * craft.gravity * simulator.center[:, 2].astype(float)


@pytest.mark.parametrize("name", ["morphy", "snakey"])
@pytest.mark.parametrize("restitution", [0.0, 1.0])
def test_surfaces_of_any_direction_add_no_energy(name: str, restitution: float) -> None:
    """Each sphere in a surface of its own: kinetic energy and the height that is gained on the way out do not grow."""
    craft, count = vehicle(name), 100
    tree, rng = tree_of(craft), np.random.default_rng(3)
    structure, n = tree.structure, tree.structure.joint_count
    found = contact_spheres(craft, tree)
    turn, normal = rng.normal(size=(4, count)), rng.normal(size=(len(found), 3, count))
    turn /= np.linalg.norm(turn, axis=0)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    motion = (
        tuple(rng.normal(size=(3, count)) * 2.0), tuple(turn), tuple(rng.normal(size=(3, count)) * 3.0),
        tuple(rng.uniform(-0.5, 0.5, (n, count))), tuple(rng.normal(size=(n, count)) * 3.0),
    )  # fmt: skip
    surfaces = Surfaces(rng.uniform(-0.01, 0.004, (len(found), count)), normal, np.zeros_like(normal))
    p = SimpleNamespace(sphere=tuple(sphere for _, sphere in found), friction=0.6, restitution=restitution)
    impact = meet(structure, tree.model, p, tuple(body for body, _ in found), motion, surfaces, 0.002, 0.5)
    start = ground_frame(motion[0], motion[1])[1]
    before = np.stack([*start, *motion[2], *motion[4]])

    def energy(u: Array) -> Array:
        parts = momentum_and_energy(structure, tree.model, motion[3], tuple(u[6:]), tuple(u[:3]), tuple(u[3:6]))
        return np.asarray(parts[2])

    assert impact.met.sum() > 30
    climbed = craft.mass * craft.gravity * np.maximum(impact.moved[2], 0.0)
    assert np.all(energy(before + impact.change) + climbed <= energy(before) * (1.0 + 1e-9))
    assert np.linalg.norm(impact.moved, axis=0).max() > 1e-4
    assert impact.moved[2].min() < 0.0  # out of a ceiling it goes down


def test_a_flat_floor_is_the_ground() -> None:
    """To rounding, which tumbling on several spheres lets grow: a third of a second in which all bounce."""
    ids = np.arange(8)
    ground = thrown(None, ids, speed=1.0, height=0.2, ground=Ground(restitution=0.4, friction=0.5))
    scene = thrown(Contact("respond", 0.4, 0.5), ids, FLOOR, 1.0, 0.2)
    touched = np.zeros(8)
    for _ in range(30):
        ground.advance(10, [0.0])
        scene.advance(10, [0.0])
        for name, bound in {"position": 2e-6, "joint": 1e-4, "rate": 5e-3}.items():
            np.testing.assert_allclose(scene.field(name), ground.field(name), atol=bound, err_msg=name)
        assert np.array_equal(scene.field("contact"), ground.field("contact"))
        touched += scene.field("contact")
    assert touched.min() >= 1
    hit = scene.contacts.count > 0
    assert hit.sum() >= 6
    assert np.all(scene.contacts.normal[hit, 2] == 1.0)


def test_energy_never_grows_in_a_room() -> None:
    simulator = thrown(Contact("respond", 0.4, 0.5), np.arange(16))
    energies, hit = [energy_of(simulator)], set()
    for _ in range(60):
        simulator.advance(25, [0.0])
        energies.append(energy_of(simulator))
        hit |= set(simulator.contacts.instance) - {-1}
    # Without contact, a tumbling arm gains up to 2e-5 of its energy in as many steps by the integrator's error.
    assert (np.diff(energies, axis=0) / energies[0]).max() < 4e-5
    assert simulator.contacts.count.min() >= 2
    assert len(hit) >= 3
    assert not simulator.diverged.any()


@pytest.mark.parametrize("speed", [3.0, 12.0, 60.0])
def test_nothing_passes_a_thin_wall(speed: float) -> None:
    """Centimetres in a step of a millisecond: a sphere of 3 cm would be through a wall of one in half of one."""
    wall = GeometryBatch([Box((0.005, 9.0, 9.0))], [Placement.of([0], np.array([(1.0, 0.0, 0.0)]))])
    simulator = Simulator(loose(), config(Contact("respond", 0.2, 0.4)), 6, geometry=wall)
    turn = np.random.default_rng(0).normal(size=(6, 4))
    simulator.reset(attitude=turn, velocity=(speed, 0.0, 0.0), rotor_speed=[0.0])
    before = energy_of(simulator)
    for _ in range(16):
        simulator.advance(25, [0.0])
        assert simulator.position[:, 0].max() < 1.0
    assert simulator.contacts.count.min() >= 1
    np.testing.assert_allclose(simulator.contacts.point[:, 0], 0.995, atol=1e-6)
    assert energy_of(simulator).max() < before.min()


def test_a_step_in_a_scene_is_the_twins() -> None:
    made = config(Contact("respond", 0.3, 0.6), imu=Imu(link="arm"))
    simulator = Simulator(loose(), made, 6, geometry=ROOMS, geometry_env=np.arange(6) % 4)
    rng = np.random.default_rng(5)
    simulator.reset(
        position=[1.0, 0.0, 0.25], velocity=[3.0, 0.0, -3.0], attitude=rng.normal(size=(6, 4)), rotor_speed=[0.0],
        joint_rate=[1.0],
    )  # fmt: skip
    twin = JointedTwin(simulator)
    impacts = np.zeros(6)
    bounds = {"position": 2e-6, "velocity": 2e-4, "rate": 5e-3, "joint": 2e-5, "joint_rate": 5e-3, "imu": 0.3, "center": 2e-6}
    for _ in range(60):
        simulator.advance(1, [0.0])
        twin.advance(1, [0.0])
        impacts += simulator.field("contact")
        for name, bound in bounds.items():
            np.testing.assert_allclose(simulator.field(name), twin.field(name), atol=bound, err_msg=name)
    assert impacts.min() >= 1


def test_an_impact_freezes_a_flight_where_it_is() -> None:
    ids = np.arange(12)
    simulator = thrown(Contact("freeze"), ids, height=0.2)
    twin = JointedTwin(simulator)
    simulator.advance(110, [0.0])
    twin.advance(110, [0.0])
    stopped = simulator.field("status") == 2.0
    assert 6 <= stopped.sum() < 12
    assert np.array_equal(twin.field("status"), simulator.field("status"))
    np.testing.assert_allclose(simulator.position, twin.field("position"), atol=2e-5)
    assert np.array_equal(simulator.contacts.count, stopped.astype(int))
    kept = simulator.position.copy()
    simulator.advance(50, [0.0])
    assert np.array_equal(simulator.position[stopped], kept[stopped])
    assert np.all(simulator.contacts.speed[stopped] > 0.0)


def test_an_impact_begins_a_new_flight() -> None:
    simulator = thrown(Contact("reset"), np.arange(8), speed=1.0)
    simulator.advance(700, [0.0])
    assert simulator.contacts.count.min() >= 1
    assert np.all(simulator.episode >= 2)
    with pytest.raises(AirworthyError, match="cannot begin new flights"):
        JointedTwin(simulator).advance(1, [0.0])


@pytest.mark.parametrize("mode", ["freeze", "reset", "respond"])
def test_a_flight_has_the_same_bits_in_any_company(mode: Any) -> None:
    def flown(ids: Array) -> dict[str, Array]:
        simulator = thrown(Contact(mode, 0.5, 0.4), ids)
        for _ in range(6):
            simulator.advance(60, [0.0])
        fields = {name: np.array(simulator.field(name)) for name in simulator.layout.fields}
        return fields | {f"contact {k}": np.array(getattr(simulator.contacts, k)) for k in ("count", "time", "point", "speed")}

    whole, moved, alone = flown(np.arange(20)), flown(np.arange(19, -1, -1)), flown(np.array([13]))
    assert np.count_nonzero(whole["contact count"]) > 10
    for name, value in whole.items():
        assert value.tobytes() == moved[name][::-1].tobytes(), name
        assert value[13].tobytes() == alone[name][0].tobytes(), name


def test_what_meets_nothing_keeps_its_bits() -> None:
    ids = np.arange(20)
    met, plain = thrown(Contact("respond"), ids), thrown(None, ids)
    met.advance(250, [0.0])
    plain.advance(250, [0.0])
    free = met.contacts.count == 0
    assert 2 < free.sum() < 18
    for name in set(plain.layout.fields) - {"contact", "impact_speed", "held"}:
        assert plain.field(name)[free].tobytes() == met.field(name)[free].tobytes(), name


def test_a_moving_wall_takes_a_vehicle_along() -> None:
    wall = Placement.of([0], np.array([(-0.6, 0.0, 0.0)]))
    far = Placement.of([0], np.array([(0.0, 0.0, -90.0)]))
    geometry = GeometryBatch([Box((0.2, 2.0, 2.0))], [far], dynamic_instances=[wall])
    simulator = Simulator(loose(), config(Contact("respond", 0.0, 0.4)), 2, geometry=geometry)
    simulator.reset(rotor_speed=[0.0])
    simulator.set_dynamic_velocity(np.full((1, 1, 3), (2.0, 0.0, 0.0)))
    for k in range(300):
        geometry.set_dynamic_instances([[(-0.6 + 0.002 * k, 0.0, 0.0)]], [[(0.0, 0.0, 0.0, 1.0)]])
        simulator.advance(1, [0.0])
    assert simulator.contacts.count.min() >= 1
    assert np.all(simulator.center_velocity[:, 0] > 1.0)


def test_resistance_to_rolling_is_refused() -> None:
    with pytest.raises(AirworthyError, match="Resistance to rolling"):
        Simulator(loose(), config(Contact("respond", rolling=0.5)), 1, geometry=FLOOR)
