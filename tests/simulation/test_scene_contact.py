"""Contact with scene geometry: nothing is passed through, no impact adds energy, and each mode does what it says."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import rotate, to_matrix
from airworthy.dynamics.scene_contact import BodyMotion, ContactBodies, collide
from airworthy.dynamics.scene_native import body_points
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.placement import Box, Cylinder, Mesh, Placement, Sphere
from airworthy.scenes import SceneBatch, scene
from airworthy.simulation import rebound
from airworthy.simulation.config import ROLLING, Contact, Ground, Imu, Randomization, SimulatorConfig
from airworthy.simulation.obstacles import GAP, LEAVING, Obstacles
from airworthy.simulation.simulator import Simulator
from airworthy.vehicles import hover_speed, vehicle, vehicle_names
from airworthy.vehicles.record import CollisionBody, Disturbance, Drag, Vehicle, WrenchNoise

G, RATE = 9.81, 960
OFF = np.zeros(4)


def airframe(shape: Any, size: Any, inertia: Any = (0.006, 0.007, 0.011), center: Any = (0.0, 0.0, 0.0)) -> Vehicle:
    base = vehicle("flightgoggles")
    body = CollisionBody(shape, size, center)
    return replace(base, wrench_noise=WrenchNoise(), drag=Drag(), mass=1.2, inertia=(*inertia, 0.0, 0.0, 0.0), body=body)


BALL = airframe("sphere", (0.15, 0.15, 0.15))
BODIES = {
    "sphere": BALL,
    "box": airframe("box", (0.2, 0.15, 0.05)),
    "cylinder": airframe("cylinder", (0.15, 0.15, 0.06)),
    "box off centre": airframe("box", (0.2, 0.15, 0.05), center=(0.05, 0.02, 0.03)),
}


def box_mesh(half: tuple[float, float, float]) -> Mesh:
    """Twelve triangles."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float) * half
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = [triangle for a, b, c, d in quads for triangle in ((a, b, c), (a, c, d))]
    return Mesh(corners, np.array(faces))


def place(*instances: tuple[Any, Any], attitude: Any = (0.0, 0.0, 0.0, 1.0)) -> GeometryBatch:
    """One environment with shapes at positions."""
    placement = Placement.of(np.arange(len(instances)), np.array([at for _, at in instances], float), attitude)
    return GeometryBatch([shape for shape, _ in instances], [placement])


def build(
    item: Vehicle | list[Vehicle], geometry: GeometryBatch, mode: Any, env_count: int | None = None, **more: Any
) -> Simulator:
    contact = Contact(mode, more.pop("restitution", 0.2), more.pop("friction", 0.6), more.pop("rolling", ROLLING))
    count = env_count if isinstance(item, Vehicle) else len(item)
    config = SimulatorConfig(**{"physics_rate": RATE, "contact": contact, **more})
    return Simulator(item, config, env_count=env_count, geometry=geometry, geometry_env=np.zeros(count or 1, int))


FLOOR = (Box((50.0, 50.0, 1.0)), (0.0, 0.0, -1.0))


def random_shots(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Starts on one side of a wall in the plane x = 0, and velocities of 30 m/s that meet it within 2 x 2 m."""
    start = np.c_[-rng.uniform(0.3, 1.5, count), rng.uniform(-1.0, 1.0, (count, 2))]
    aim = np.c_[np.zeros(count), rng.uniform(-1.0, 1.0, (count, 2))]
    displacement = aim - start
    return start, 30.0 * displacement / np.linalg.norm(displacement, axis=1, keepdims=True)


@pytest.mark.parametrize("mode", ["freeze", "respond"])
@pytest.mark.parametrize("kind", ["box", "mesh"])
def test_nothing_tunnels(kind: str, mode: str) -> None:
    """2,500 shots each at 30 m/s (31 mm per step) against 5 cm, spinning: every one meets the wall, none gets through."""
    half = (0.025, 4.0, 4.0)
    wall = place((Box(half) if kind == "box" else box_mesh(half), (0.0, 0.0, 0.0)))
    rng, count = np.random.default_rng(11), 2500
    simulator = build(airframe("sphere", (0.05, 0.05, 0.05)), wall, mode, count, restitution=0.5)
    start, velocity = random_shots(rng, count)
    simulator.reset(
        position=start, velocity=velocity, attitude=rng.normal(size=(count, 4)), rate=rng.normal(size=(count, 3)) * 5
    )
    for _ in range(12):
        simulator.step(OFF)
        assert simulator.position[:, 0].max() < -0.025 - 0.05 + 1e-5
    assert (simulator.contacts.count >= 1).all()
    assert not simulator.diverged.any()


@pytest.mark.parametrize("kind", ["box", "mesh", "sphere", "cylinder"])
def test_stops_where_the_closed_form_says(kind: str) -> None:
    """Frozen within 1e-4 m of the analytic contact: the gap kept is 2e-5, a step's arc deviates 1e-6 from its chord."""
    radius, half = 0.15, (0.3, 0.4, 0.5)
    shape = {"box": Box(half), "mesh": box_mesh(half), "sphere": Sphere(0.3), "cylinder": Cylinder(0.3, 2.0)}[kind]
    rng, count = np.random.default_rng(5), 64
    simulator = build(BALL, place((shape, (0.0, 0.0, 0.0))), "freeze", count)
    simulator.set_parameter("gravity", 0.0)
    start = np.c_[np.full(count, -2.0), rng.uniform(-0.2, 0.2, count), rng.uniform(-0.2, 0.2, count)]
    speed = rng.uniform(3.0, 30.0, count)
    simulator.reset(position=start, velocity=np.c_[speed, np.zeros((count, 2))], rotor_speed=OFF)
    simulator.advance(RATE, OFF)
    across = start[:, 1] ** 2 + (start[:, 2] ** 2 if kind == "sphere" else 0.0)
    expected = -0.3 - radius if kind in ("box", "mesh") else -np.sqrt((0.3 + radius) ** 2 - across)
    assert simulator.position[:, 0] == pytest.approx(np.broadcast_to(expected, count), abs=1e-4)
    assert (simulator.field("status") == 2.0).all()
    record = simulator.contacts
    assert (record.count == 1).all()
    assert (record.instance == 0).all()
    assert record.time == pytest.approx((simulator.position[:, 0] + 2.0) / speed, abs=5e-6)  # 470 float32 sums
    assert np.abs(record.point - simulator.position + record.normal * radius).max() < 1e-4
    assert record.speed == pytest.approx(-speed * record.normal[:, 0], rel=1e-5)
    before = simulator.position.copy()
    simulator.advance(100, OFF)
    assert np.array_equal(before, simulator.position)  # and there it stays


def test_the_race_hall_says_which_part_was_hit() -> None:
    """Thrown from 1.5 m at the left post of Gate13, at its left side, and at a decoy that hangs."""
    hall = scene("alphapilot")
    parts = ["Gate13, left post", "Gate13, left side", "Gate4, bottom side"]
    aims = np.array([next(item.position for item in hall.instances if item.name == part) for part in parts])
    # Along the axes of flight: north to south, and into the decoy's plane from the east.
    toward = np.array([[0.0, -1.0, 0.0], [0.0, -1.0, 0.0], [0.0, 1.0, 0.0]])
    batch = SceneBatch(hall, 3)
    config = SimulatorConfig(physics_rate=RATE, contact=Contact("freeze"))
    simulator = Simulator(BALL, config, env_count=3, geometry=batch.geometry)
    simulator.set_parameter("gravity", 0.0)
    simulator.reset(position=aims - 1.5 * toward, velocity=10.0 * toward, rotor_speed=OFF)
    simulator.advance(RATE, OFF)
    assert (simulator.field("status") == 2.0).all()
    assert [batch.instance_name(env, int(simulator.contacts.instance[env])) for env in range(3)] == parts
    assert batch.instance_name(0, -1) == ""


def test_reset_returns_to_the_start() -> None:
    """As published (FlightGoggles): start pose, rotors at hover, biases drawn anew, and the collision is counted."""
    imu = Imu(bias_initial=(0.1, 0.02, 0.0))
    simulator = build(BALL, place(FLOOR), "reset", 2, imu=imu, randomization=Randomization(mass=0.05))
    simulator.reset(position=[[0, 0, 1.0], [0, 0, 50.0]], rotor_speed=OFF)
    bias, mass = simulator.field("accelerometer_bias").copy(), simulator.parameter("mass").copy()
    others = {name: simulator.field(name)[1].copy() for name in ("accelerometer_bias", "gyroscope_bias")}
    fall = int(np.ceil(np.sqrt(2 * 0.85 / G) * RATE))
    simulator.advance(fall + 10, OFF)
    assert simulator.contacts.count.tolist() == [1, 0]
    assert simulator.contacts.time[0] == pytest.approx(np.sqrt(2 * (0.85 - GAP) / G), abs=1e-3)
    assert simulator.contacts.speed[0] == pytest.approx(np.sqrt(2 * G * 0.85), rel=1e-3)
    assert simulator.flight_step[0] < 12
    assert simulator.episode.tolist() == [2, 1]
    assert simulator.position[0] == pytest.approx([0.0, 0.0, 1.0], abs=1e-3)
    assert simulator.rotor_speed[0] == pytest.approx(hover_speed(BALL), rel=1e-3)
    assert not np.array_equal(simulator.field("accelerometer_bias")[0], bias[0])
    assert simulator.parameter("mass")[0] != mass[0]
    assert simulator.parameter("mass")[1] == mass[1]
    assert all(np.array_equal(simulator.field(name)[1], value) for name, value in others.items())
    simulator.reset(env_ids=[0])
    assert simulator.contacts.count.tolist() == [0, 0]


@pytest.mark.parametrize("restitution", [0.0, 0.3, 0.8, 1.0])
def test_bounces_as_told(restitution: float) -> None:
    """v' = -e v: from 0.5 m above the floor back to e^2 of it. The instant within the step is known, so within 1e-3."""
    simulator = build(BALL, place(FLOOR), "respond", 1, restitution=restitution, imu=Imu())
    simulator.reset(position=(0.3, 0.2, 0.15 + 0.5), rotor_speed=OFF)
    apex, down = 0.0, False
    for _ in range(620):
        simulator.advance(1, OFF)
        down |= bool(simulator.contacts.count[0])
        if down and simulator.contacts.count[0] == 1:
            apex = max(apex, float(simulator.position[0, 2]) - 0.15)
    assert down
    assert apex == pytest.approx(restitution**2 * 0.5, abs=5e-4)


def energy(items: list[Vehicle], simulator: Simulator) -> np.ndarray:
    mass = np.array([item.mass for item in items])
    xx, yy, zz, xy, xz, yz = np.array([item.inertia for item in items]).T
    velocity, rate = simulator.velocity.astype(float), simulator.rate.astype(float)
    x, y, z = rate.T
    turning = 0.5 * (xx * x * x + yy * y * y + zz * z * z) + xy * x * y + xz * x * z + yz * y * z
    moving = 0.5 * mass * (velocity**2).sum(1) + turning
    return np.asarray(moving + mass * G * (simulator.position[:, 2].astype(float) + simulator.field("position_residual")[:, 2]))


@pytest.mark.parametrize(("restitution", "friction"), [(0.0, 0.6), (0.5, 0.0), (0.9, 0.3), (1.0, 0.0), (1.0, 1.0)])
def test_no_impact_adds_energy(restitution: float, friction: float) -> None:
    """Tumbling bodies among a floor, walls, pillars, a ball and a mesh: no step with contact gains more than 1e-3."""
    pillars = [(Cylinder(0.2, 2.0), (x, y, 1.0)) for x, y in ((1.0, 0.3), (-0.8, 0.9))]
    walls = [(Box((0.025, 3.0, 3.0)), (-1.6, 0.0, 1.0)), (box_mesh((3.0, 0.025, 3.0)), (0.0, 1.7, 1.0))]
    geometry = place(FLOOR, *pillars, *walls, (Sphere(0.4), (0.1, -1.0, 0.3)))
    items = [BODIES[name] for name in BODIES for _ in range(8)]
    rng, n = np.random.default_rng(4), len(items)
    simulator = build(items, geometry, "respond", restitution=restitution, friction=friction)
    velocity = rng.uniform(-5.0, 5.0, (n, 3)) - [0.0, 0.0, 2.0]
    simulator.reset(
        position=(0.0, 0.0, 0.9), velocity=velocity, attitude=rng.normal(size=(n, 4)), rate=rng.uniform(-10, 10, (n, 3)),
        rotor_speed=OFF,
    )  # fmt: skip
    start = before = energy(items, simulator)
    impacts, gain = 0, -1.0
    for _ in range(240):
        simulator.advance(1, OFF)
        now, met = energy(items, simulator), simulator.field("contact") > 0
        gain = max(gain, float(((now - before) / start)[met].max(initial=-1.0)))
        before = now
        impacts += int(np.count_nonzero(met))
    assert impacts > 30
    assert gain < 1e-3
    assert not simulator.diverged.any()
    assert simulator.position[:, 2].min() > 0.0


@pytest.mark.parametrize("restitution", [0.5, 1.0])
@pytest.mark.parametrize("rate", [240, 480])
def test_vehicles_never_gain(rate: int, restitution: float) -> None:
    """Vehicles of the catalogue on a mesh, spins to 100 rad/s: steps with contact gain nothing, one by one and together."""
    names = ["cf2x_gym_pybullet_drones", "x500", "real_01", "tinyprop"]
    bare: dict[str, Any] = {"wrench_noise": WrenchNoise(), "disturbance": Disturbance(), "drag": Drag(), "gravity": G}
    items, rng = [replace(vehicle(name), **bare) for name in names for _ in range(16)], np.random.default_rng(3)
    items = [replace(i, rotors=tuple(replace(r, speed_min=0.0) for r in i.rotors)) for i in items]
    simulator = build(items, place((box_mesh((5, 5, 1)), (0, 0, -1))), "respond", physics_rate=rate, restitution=restitution)
    n = len(items)
    velocity, spin = rng.uniform(-1.5, 1.5, (n, 3)), rng.choice([0.0, 10.0, 100.0], (n, 1))
    velocity[:, 2] = -np.abs(velocity[:, 2]) - 1.0
    start = {"attitude": rng.normal(size=(n, 4)), "rate": spin * rng.uniform(-1.0, 1.0, (n, 3)) / np.sqrt(3.0)}
    simulator.reset(position=(0.0, 0.0, 0.6), velocity=velocity, **start, rotor_speed=OFF)
    first = before = energy(items, simulator)
    given, most, gain, impacts = np.zeros(n), 0.0, -1.0, 0
    for _ in range(rate // 2):
        simulator.advance(1, OFF)
        now, met = energy(items, simulator), simulator.field("contact") > 0
        gain = max(gain, float(((now - before) / first)[met].max(initial=-1.0)))
        given += np.where(met, (now - before) / first, 0.0)
        before, most, impacts = now, max(most, float(given.max())), impacts + int(met.sum())
    assert impacts > n
    assert gain < 2e-5  # what lifts a body that has next to no motion, by micrometres, is not paid for
    assert most < 2e-5


def test_smooth_wall_keeps_what_is_along_it() -> None:
    """Without friction a wall takes only what is normal to it; a sphere that cannot be turned keeps its spin to the bit."""
    tilt = np.array([0.0, np.sin(0.3), 0.0, np.cos(0.3)])
    simulator = build(
        BALL,
        place((Box((0.05, 4.0, 4.0)), (1.0, 0.0, 0.0)), attitude=tilt),
        "respond",
        1,
        friction=0.0,
        restitution=0.7,
        rolling=0.0,
    )
    simulator.set_parameter("gravity", 0.0)
    simulator.reset(velocity=(8.0, 1.0, -0.5), rate=(0.0, 0.0, 3.0), rotor_speed=OFF)
    simulator.advance(200, OFF)
    n = -rotate(tilt, np.array([1.0, 0.0, 0.0]))
    v = np.array([8.0, 1.0, -0.5])
    assert simulator.contacts.normal[0] == pytest.approx(n, abs=1e-6)
    assert simulator.velocity[0] == pytest.approx(v - 1.7 * (v @ n) * n, abs=1e-4)
    assert simulator.rate[0] == pytest.approx([0.0, 0.0, 3.0], abs=1e-6)


def test_rough_wall_turns_a_ball() -> None:
    """Sticking impact of a solid ball: the contact point ends at rest, so 2/7 of the tangential speed goes into spin."""
    radius = 0.15
    item = airframe("sphere", (radius,) * 3, (0.4 * 1.2 * radius**2,) * 3)
    simulator = build(
        item, place((Box((0.05, 4.0, 4.0)), (1.0, 0.0, 0.0))), "respond", 1, friction=5.0, restitution=0.5, rolling=0.0
    )
    simulator.set_parameter("gravity", 0.0)
    simulator.reset(velocity=(8.0, 1.4, 0.0), rotor_speed=OFF)
    simulator.advance(200, OFF)
    assert simulator.velocity[0] == pytest.approx([-4.0, 1.0, 0.0], abs=1e-4)
    assert simulator.rate[0] == pytest.approx([0.0, 0.0, -1.0 / radius], rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("rate", [100, 960])
def test_rests_on_a_table(rate: int) -> None:
    """Rotors off on a table top, box and ball: within 1 mm, and the accelerometer reads +g."""
    table = place((box_mesh((0.6, 0.4, 0.4)), (0.0, 0.0, 0.4)))
    items = [BALL, BODIES["box"], BODIES["cylinder"]]
    spheres = [body_points(item.body, item.center_of_mass) for item in items]
    rest = np.array([0.8 + (radius - center[:, 2]).max() + GAP for center, radius in spheres])
    simulator = build(items, table, "respond", physics_rate=rate, imu=Imu())
    simulator.reset(position=np.c_[np.zeros((3, 2)), rest], rotor_speed=OFF)
    simulator.advance(rate if rate == 100 else 200, OFF)
    assert np.abs(simulator.position - np.c_[np.zeros((3, 2)), rest]).max() < 1e-3
    assert np.abs(simulator.velocity).max() < 1e-3
    assert simulator.imu[:, :3] == pytest.approx(np.tile([0.0, 0.0, G], (3, 1)), abs=0.05)
    assert (simulator.field("contact") > 0).all()
    assert (simulator.contacts.count == 0).all()  # a rest is no impact


def test_rests_for_ten_seconds() -> None:
    """10 s on a table with rotors off: within 1 mm and 1 mrad."""
    items = [BALL, BODIES["box"], BODIES["cylinder"]]
    spheres = [body_points(item.body, item.center_of_mass) for item in items]
    start = np.array([[0.0, 0.0, 0.8 + (radius - center[:, 2]).max() + GAP] for center, radius in spheres])
    simulator = build(items, place((box_mesh((0.6, 0.4, 0.4)), (0.0, 0.0, 0.4))), "respond")
    simulator.reset(position=start, rotor_speed=OFF)
    simulator.advance(10 * RATE, OFF)
    assert np.abs(simulator.position - start).max() < 1e-3
    assert np.abs(simulator.attitude - [0, 0, 0, 1]).max() < 1e-3


def test_slides_and_stops() -> None:
    """A box on a floor with friction 0.5 slides v^2 / (2 mu g), within 3 %."""
    item = BODIES["box"]
    center, radius = body_points(item.body, item.center_of_mass)
    rest = float((radius - center[:, 2]).max()) + GAP
    simulator = build(item, place(FLOOR), "respond", 1, friction=0.5)
    simulator.reset(position=(0, 0, rest), velocity=(1.0, 0.0, 0.0), rotor_speed=OFF)
    simulator.advance(210, OFF)
    assert simulator.position[0, 0] == pytest.approx(1.0 / (2 * 0.5 * G), rel=0.03)
    assert np.abs(simulator.velocity[0]).max() < 5e-3


def test_same_height_on_the_ground_and_on_a_mesh() -> None:
    """Every vehicle of the catalogue, dropped from 2 cm: after 1 s it stands, within 1 mm of where it stands on `Ground`."""
    items = [replace(vehicle(n), wrench_noise=WrenchNoise(), disturbance=Disturbance()) for n in vehicle_names()]
    items = [replace(i, rotors=tuple(replace(r, speed_min=0.0) for r in i.rotors)) for i in items]
    rest = np.array([i.body.size[2] - i.body.center[2] + i.center_of_mass[2] for i in items])
    still = {"position": np.c_[np.zeros((len(rest), 2)), rest + 0.02], "rotor_speed": np.zeros(8)}
    scene = build(items, place((box_mesh((5.0, 5.0, 1.0)), (0.0, 0.0, -1.0))), "respond", physics_rate=480)
    ground = Simulator(items, SimulatorConfig(physics_rate=480, ground=Ground()))
    for simulator in (scene, ground):
        simulator.reset(**still)
        simulator.advance(480, np.zeros(8))
        assert np.abs(simulator.velocity).max() < 2e-3
    assert np.abs(scene.position[:, 2] - ground.position[:, 2]).max() < 1e-3
    level = [k for k, i in enumerate(items) if max(np.abs(i.center_of_mass)) == 0.0]
    assert len(level) > 45
    assert np.abs(scene.position[:, 2] - rest)[level].max() < 1e-4


def test_boxes_are_not_inflated() -> None:
    """A box 0.5 m wide stops where its face meets a pole, a wall or an edge, and passes 1 mm beside it."""
    x500 = replace(vehicle("x500"), wrench_noise=WrenchNoise(), disturbance=Disturbance())
    half = x500.body.size[0]
    poles = [(Cylinder(0.05, 3.0), (2.0, y, 0.0)) for y in (0.0, 0.1, half + 0.05 + 1e-3)]
    for geometry, stops in [(place(pole), k < 2) for k, pole in enumerate(poles)]:
        simulator = build(x500, geometry, "freeze", 1)
        simulator.set_parameter("gravity", 0.0)
        simulator.reset(velocity=(10.0, 0.0, 0.0), rotor_speed=OFF)
        simulator.advance(480, OFF)
        assert (simulator.field("status")[0] == 2.0) == stops
        if stops:
            assert simulator.position[0, 0] == pytest.approx(2.0 - 0.05 - half, abs=GAP + 1e-5)


@pytest.mark.parametrize("name", ["x500", "cf2x_gym_pybullet_drones"])
def test_stands_on_what_is_smaller_than_itself(name: str) -> None:
    """On a pillar of half its width, a little off its middle: 2 s later within 1 mm and 2 mrad of where it was put."""
    item = replace(vehicle(name), wrench_noise=WrenchNoise(), disturbance=Disturbance())
    width = 0.5 * item.body.size[0]
    rest = item.body.size[2] + GAP
    for pillar in (Box((width, width, 1.0)), box_mesh((width, width, 1.0)), Cylinder(width, 1.0)):
        simulator = build(item, place((pillar, (0.2 * width, 0.1 * width, -1.0))), "respond", 1, physics_rate=480)
        simulator.reset(position=(0, 0, rest), rotor_speed=OFF)
        simulator.advance(960, OFF)
        assert np.abs(simulator.position[0] - [0, 0, rest]).max() < 1e-3
        assert np.abs(simulator.attitude[0, :3]).max() < 1e-3


def test_corners_and_gaps() -> None:
    """Into a corner of three walls, and along a corridor hardly wider than the ball: held in, and through."""
    corner = place(FLOOR, (Box((0.05, 4, 4)), (1.0, 0, 0)), (Box((4, 0.05, 4)), (0, 1.0, 0)))
    rng = np.random.default_rng(2)
    simulator = build(BALL, corner, "respond", 16, restitution=0.4)
    simulator.reset(position=(0.5, 0.5, 0.5), velocity=rng.uniform([2, 2, -9], [12, 12, -2], (16, 3)), rotor_speed=OFF)
    for _ in range(8):
        simulator.step(OFF)
        assert simulator.position[:, :2].max() < 0.95 - 0.15 + 1e-5
        assert simulator.position[:, 2].min() > 0.15 - 1e-5
    corridor = place((Box((4, 0.05, 4)), (0, 0.21, 0)), (Box((4, 0.05, 4)), (0, -0.21, 0)))
    simulator = build(BALL, corridor, "freeze", 1)
    simulator.set_parameter("gravity", 0.0)
    simulator.reset(position=(-5.0, 0.0, 0.0), velocity=(20.0, 0.0, 0.0), rotor_speed=OFF)
    simulator.advance(RATE // 2, OFF)
    assert simulator.position[0, 0] == pytest.approx(5.0, abs=1e-3)


def test_take_off_from_a_table_and_land() -> None:
    """Standing on the scene's own floor is no crash for those that rebound; the position controller takes off and lands."""
    simulator = build(BALL, place(FLOOR), "respond", 1, level="position", control_rate=96.0)
    simulator.reset(position=(0, 0, 0.15 + GAP), rotor_speed=OFF)
    for _ in range(96 * 2):
        simulator.step([0, 0, 1.0, 0])
    assert simulator.position[0] == pytest.approx([0, 0, 1.0], abs=0.02)
    assert simulator.field("contact")[0] == 0
    for k in range(96 * 3):
        simulator.step([0, 0, max(1.0 - 0.4 * k / 96, 0.0), 0])
    assert simulator.position[0, 2] == pytest.approx(0.15, abs=1e-3)
    assert simulator.field("contact")[0] > 0


def test_touching_is_no_crash_for_what_leaves() -> None:
    """A vehicle that stands on the floor at the start and takes off is not stopped; one that sinks is."""
    simulator = build(BALL, place(FLOOR), "freeze", 2)
    simulator.reset(position=(0, 0, 0.15 + GAP / 2))
    hover = hover_speed(BALL)
    simulator.advance(480, [1.02 * hover, 0.98 * hover])
    assert simulator.field("status").tolist() == [0.0, 2.0]
    assert simulator.position[0, 2] > 0.18


def test_ground_plane_beside_scene() -> None:
    """A plane of the configuration and a wall of the scene act on the same flight."""
    simulator = build(
        BALL, place((Box((0.05, 4, 4)), (1.0, 0, 0))), "respond", 1, ground=Ground(restitution=0.5), restitution=0.5
    )
    simulator.reset(position=(0, 0, 0.4), velocity=(4.0, 0.0, 0.0), rotor_speed=OFF)
    simulator.advance(400, OFF)
    assert simulator.contacts.count[0] == 1
    assert simulator.velocity[0, 0] < -0.5
    assert simulator.position[0, 2] > 0.14


def test_dynamic_instances_count_where_they_are() -> None:
    """A block that comes nearer each launch pushes a hovering ball ahead of it, at its own speed or faster."""
    geometry = GeometryBatch([Box((0.1, 1.0, 1.0))], [Placement.empty()], [0], [Placement.of([0], [(-1.0, 0.0, 0.0)])])
    simulator = build(BALL, geometry, "respond", 1, restitution=1.0, friction=0.0, physics_rate=1000.0)
    simulator.set_parameter("gravity", 0.0)
    simulator.reset(rotor_speed=OFF)
    simulator.set_dynamic_velocity([[[2.0, 0.0, 0.0]]])
    for k in range(60):
        geometry.set_dynamic_instances([[[-1.0 + 0.02 * k, 0.0, 0.0]]], [[[0.0, 0.0, 0.0, 1.0]]])
        simulator.step(OFF)
    assert simulator.contacts.count[0] == 1
    # Elastic, and the block has no end of mass: twice its speed. It comes in steps of 2 cm, so in part by being moved out.
    assert simulator.velocity[0, 0] == pytest.approx(4.0, rel=1e-3)
    assert simulator.contacts.instance[0] == geometry.dynamic_start


def test_attitude_of_a_spinning_box_matters() -> None:
    """A plate flies edge-on through a slit that stops it when it is turned: bodies turn with their attitude."""
    plate = airframe("box", (0.25, 0.25, 0.02))
    slit = place((Box((0.05, 4, 1.0)), (2.0, 0, 1.2)), (Box((0.05, 4, 1.0)), (2.0, 0, -1.2)))
    simulator = build(plate, slit, "freeze", 2)
    simulator.set_parameter("gravity", 0.0)
    simulator.reset(velocity=(10.0, 0, 0), attitude=[[0, 0, 0, 1], [0, np.sin(0.6), 0, np.cos(0.6)]], rotor_speed=OFF)
    simulator.advance(480, OFF)
    assert simulator.field("status").tolist() == [0.0, 2.0]
    assert to_matrix(simulator.attitude[1].astype(float))[0, 0] < 0.5


def test_mistakes_are_told() -> None:
    with pytest.raises(AirworthyError, match="give Simulator"):
        Simulator(BALL, SimulatorConfig(contact=Contact()))
    with pytest.raises(AirworthyError, match=r"Unknown Contact.mode"):
        Simulator(BALL, SimulatorConfig(contact=Contact("bounce")))  # type: ignore[arg-type]
    with pytest.raises(AirworthyError, match="0 to 1"):
        Simulator(BALL, SimulatorConfig(contact=Contact("respond", restitution=1.5)), geometry=place(FLOOR))
    with pytest.raises(AirworthyError, match="geometry_env"):
        Simulator(BALL, SimulatorConfig(contact=Contact()), 2, geometry=place(FLOOR), geometry_env=[0, 1])
    with pytest.raises(AirworthyError, match="no contact with geometry"):
        _ = Simulator(BALL).contacts


@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_sphere_that_touches_a_wall_meets_it_only_on_the_way_in(axis: int, side: float) -> None:
    """A micrometre from the wall, within the gap: along it and away from it nothing is met, into it the wall at once."""
    half = np.ones(3)
    normal = side * np.eye(3)[axis]
    obstacles = Obstacles(GeometryBatch([Box(tuple(half))], [Placement.of(0)]), np.zeros(1, np.intp))
    radius = 0.1
    begin = (1.0 + radius + 1e-6) * normal
    others = [v for k, v in enumerate(np.eye(3)) if k != axis]
    slides = [0.2 * s * v for v in (*others, others[0] + others[1]) for s in (-1.0, 1.0)]
    displacements = np.array(
        [*slides, 0.2 * normal, 0.2 * normal + slides[0], -0.2 * normal, slides[1] - 0.2 * normal, -0.3 * LEAVING * normal]
    )
    count = len(displacements)
    found = obstacles._sweep(
        np.tile(begin, (count, 1)), begin + displacements, np.full(count, radius + GAP), np.zeros(count, np.intp)
    )
    into = displacements @ normal < -LEAVING
    assert into.sum() == 2
    np.testing.assert_array_equal(found.instance, np.where(into, 0, -1))
    np.testing.assert_array_equal(found.fraction, np.where(into, 0.0, 1.0))
    np.testing.assert_allclose(found.normal[into], np.tile(normal, (2, 1)), atol=1e-9)


def test_out_of_a_deep_overlap_a_body_glides_by_eight_millimetres_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two spheres the deeper one counts; up to a millimetre no body is called deep."""
    monkeypatch.setattr(rebound, "lifted", lambda bodies, motion, lift: (motion.velocity, motion.rate))
    depth = np.array([[-1e-3, 5e-4], [2e-3, 1e-3], [0.0, 0.05], [np.inf, 0.05], [0.0, -1.0]])
    touch = np.array([[True, True], [True, True], [True, True], [False, True], [True, True]])
    normal = np.zeros((5, 2, 3))
    normal[..., 2] = 1.0
    motion = SimpleNamespace(position=np.zeros((5, 3)), velocity=np.zeros((5, 3)), rate=np.zeros((5, 3)))
    deep = rebound._step_out(None, motion, touch, normal, depth)  # type: ignore[arg-type]
    np.testing.assert_allclose(motion.position[:, 2], [5e-4, 2e-3, 8e-3, 8e-3, 0.0], rtol=1e-12)
    assert deep.tolist() == [False, True, True, True, False]


def test_a_body_that_another_ones_impact_leaves_alone_has_no_negative_zero() -> None:
    """A sphere of 1 kg that falls on a floor, and one beside it at rest whose zeros are negative: the bytes of one alone."""
    inertia = np.tile([0.01, 0.01, 0.01, 0.0, 0.0, 0.0], (2, 1))
    inverse = np.tile([100.0, 100.0, 100.0, 0.0, 0.0, 0.0], (2, 1))
    radius, core = np.full((2, 1), 0.1), np.zeros((2, 9))
    bodies = ContactBodies(np.zeros((2, 1, 3)), radius, core, np.ones(2), inertia, inverse, np.full(2, 9.81))
    velocity = np.array([[0.0, 0.0, -2.0], [-0.0, -0.0, -0.0]])
    motion = BodyMotion(np.zeros((2, 3)), velocity, np.tile([0.0, 0.0, 0.0, 1.0], (2, 1)), np.full((2, 3), -0.0))
    normal = np.tile([0.0, 0.0, 1.0], (2, 1, 1))
    touch = np.array([[True], [False]])
    new_velocity, new_rate = collide(bodies, motion, touch, normal, 0.5, 0.0, 0.0, 1e-3)
    np.testing.assert_allclose(new_velocity, [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]], atol=1e-12)
    assert not np.signbit(new_velocity).any()
    assert not np.signbit(new_rate).any()
