"""Ground plane: standing, dropping, sliding, tumbling, and never any energy from nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.core.frames import rotate, to_matrix
from airworthy.simulation.config import Ground, Imu, SimulatorConfig
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.twin import Twin
from airworthy.vehicles import hover_speed, vehicle, vehicle_names
from airworthy.vehicles.record import CollisionBody, Disturbance, Drag, Vehicle, WrenchNoise

G, RATE = 9.81, 960
OFF = np.zeros(4)


def airframe(shape: Any, size: Any, inertia: Any = (0.006, 0.007, 0.011), center: Any = (0.0, 0.0, 0.0)) -> Vehicle:
    base = vehicle("flightgoggles")
    body = CollisionBody(shape, size, center)
    return replace(base, wrench_noise=WrenchNoise(), drag=Drag(), mass=1.2, inertia=(*inertia, 0.0, 0.0, 0.0), body=body)


BODIES = {
    "sphere": airframe("sphere", (0.15, 0.15, 0.15)),
    "box": airframe("box", (0.2, 0.15, 0.05)),
    "cylinder": airframe("cylinder", (0.15, 0.15, 0.06)),
    "plate": airframe("box", (0.25, 0.25, 0.02)),
    "slender box": airframe("box", (0.4, 0.02, 0.02), (2e-4, 0.03, 0.03)),
    "box off centre": airframe("box", (0.2, 0.15, 0.05), center=(0.05, 0.02, 0.03)),
}
STANDING = {name: item.body.size[2] - item.body.center[2] for name, item in BODIES.items()}


def grounded(item: Vehicle | list[Vehicle], env_count: int | None = None, rate: float = RATE, **ground: float) -> Simulator:
    return Simulator(item, SimulatorConfig(physics_rate=rate, ground=Ground(**ground)), env_count=env_count)


@pytest.mark.parametrize("integrator", ["euler", "semi_implicit", "rk4"])
@pytest.mark.parametrize("rate", [100, 960])
def test_stands_still(rate: int, integrator: Any) -> None:
    """10 s with rotors off: within 1 mm and 1 mrad, whatever the body, the step and the integrator."""
    config = SimulatorConfig(physics_rate=rate, ground=Ground(), integrator=integrator)
    simulator = Simulator(list(BODIES.values()), config)
    start = np.array([[0.3, -0.2, h] for h in STANDING.values()])
    simulator.reset(position=start, rotor_speed=OFF)
    simulator.advance(10 * rate, OFF)
    assert np.abs(simulator.position - start).max() < 1e-3
    assert np.abs(simulator.attitude - [0, 0, 0, 1]).max() < 1e-3
    assert np.abs(simulator.velocity).max() < 1e-3
    assert not simulator.diverged.any()


@pytest.mark.parametrize("restitution", [0.0, 0.2, 0.5, 0.8])
def test_drop_rebounds_as_told(restitution: float) -> None:
    """From 0.5 m: the rebound reaches e^2 of the height. The impact falls within a step: v dt = 3 mm of 0.5 m at most."""
    simulator = grounded(list(BODIES.values()), restitution=restitution)
    rest = np.array(list(STANDING.values()))
    simulator.reset(position=np.c_[np.zeros((len(rest), 2)), rest + 0.5], rotor_speed=OFF)
    landed, apex = np.zeros(len(rest), bool), np.zeros(len(rest))
    for _ in range(900):
        simulator.advance(1, OFF)
        landed |= simulator.field("contact") > 0
        apex = np.where(landed, np.maximum(apex, simulator.position[:, 2] - rest), apex)
    flat = [k for k, name in enumerate(BODIES) if name != "box off centre"]  # that one turns, and spends the energy so
    assert landed.all()
    assert apex[flat] == pytest.approx(np.full(len(flat), restitution**2 * 0.5), abs=4e-3)
    assert apex.max() < 0.5


def test_impact_speed_is_reported() -> None:
    simulator = grounded(BODIES["box"])
    simulator.reset(position=(0, 0, STANDING["box"] + 0.5), rotor_speed=OFF)
    simulator.advance(400, OFF)
    assert simulator.field("impact_speed")[0] == pytest.approx(np.sqrt(2 * G * 0.5), rel=0.01)
    assert simulator.field("contact")[0] > 0


def energy(item: Vehicle, simulator: Simulator) -> np.ndarray:
    velocity, rate = simulator.velocity.astype(float), simulator.rate.astype(float)
    xx, yy, zz, xy, xz, yz = item.inertia
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    moving = 0.5 * item.mass * (velocity**2).sum(1) + 0.5 * np.einsum("ei,ij,ej->e", rate, tensor, rate)
    return np.asarray(moving + item.mass * G * simulator.position[:, 2].astype(float))


@pytest.mark.parametrize("name", BODIES)
def test_no_impact_adds_energy(name: str) -> None:
    """1,024 tumbling bodies for 0.8 s each, restitution 0 to 1, friction 0 to 1: no contact gains more than 1e-3."""
    item, rng, n = BODIES[name], np.random.default_rng(4), 1024
    simulator = grounded(item, n)
    simulator.set_parameter("restitution", rng.choice([0.0, 0.2, 0.5, 0.9, 1.0], n))
    simulator.set_parameter("friction", rng.uniform(0.0, 1.0, n))
    velocity = rng.uniform(-4.0, 4.0, (n, 3))
    velocity[:, 2] = -np.abs(velocity[:, 2]) - 0.5
    simulator.reset(
        position=(0.0, 0.0, 0.55),
        velocity=velocity,
        attitude=rng.normal(size=(n, 4)),
        rate=rng.uniform(-10.0, 10.0, (n, 3)),
        rotor_speed=OFF,
    )
    start = before = energy(item, simulator)
    impacts, gain = 0, 0.0
    for _ in range(768):
        simulator.advance(1, OFF)
        now, free = energy(item, simulator), simulator.field("contact") == 0
        gain = max(gain, float(((now - before) / start).max()))
        before = np.where(free, now, before)
        impacts += int(np.count_nonzero(~free))
    assert impacts > 1000
    assert gain < 1e-3
    assert not simulator.diverged.any()


def test_smooth_ground_keeps_horizontal_momentum() -> None:
    """Without friction an impact pushes straight up: horizontal velocity and world spin about the vertical stay.

    Up to what it costs to be lifted out of the ground: g times one step's depth, 4 mm, out of v^2 / 2.
    """
    item, rng, n = BODIES["box"], np.random.default_rng(6), 64
    simulator = grounded(item, n, friction=0.0, restitution=0.4)
    velocity = rng.uniform(-3.0, 3.0, (n, 3)) - [0, 0, 3.5]
    rate = rng.uniform(-5, 5, (n, 3))
    simulator.reset(position=(0, 0, 0.5), velocity=velocity, attitude=rng.normal(size=(n, 4)), rate=rate, rotor_speed=OFF)

    def spin() -> np.ndarray:
        turned = to_matrix(simulator.attitude.astype(float))
        return np.asarray(np.einsum("eij,j,ej->ei", turned, np.array(item.inertia[:3]), simulator.rate)[:, 2])

    before = spin()
    simulator.advance(400, OFF)
    assert (simulator.field("contact") > 0).all()
    assert simulator.velocity[:, :2] == pytest.approx(velocity[:, :2], abs=0.01 * 3.0)
    assert spin() == pytest.approx(before, abs=0.01 * np.abs(before).max())


@pytest.mark.parametrize("friction", [0.2, 0.6])
@pytest.mark.parametrize("name", ["box", "plate", "cylinder"])
def test_slides_and_stops(name: str, friction: float) -> None:
    """v^2 / (2 mu g) within 3 %: the load moves to the front edge, but its sum stays the weight. Low bodies do not tip."""
    simulator = grounded(BODIES[name], friction=friction)
    simulator.reset(position=(0, 0, STANDING[name]), velocity=(2.0, 0, 0), rotor_speed=OFF)
    simulator.advance(2 * RATE, OFF)
    assert simulator.position[0, 0] == pytest.approx(4.0 / (2 * friction * G), rel=0.03)
    assert np.abs(simulator.velocity[0]).max() < 1e-3
    assert abs(simulator.position[0, 1]) < 0.02


def test_ball_slides_until_it_rolls() -> None:
    """A solid ball keeps 5/7 of its speed and then rolls."""
    radius = 0.15
    item = airframe("sphere", (radius,) * 3, (0.4 * 1.2 * radius**2,) * 3)
    simulator = grounded(item, friction=0.5, rolling=0.0)
    simulator.reset(position=(0, 0, radius), velocity=(3.0, 0, 0), rotor_speed=OFF)
    simulator.advance(2 * RATE, OFF)
    assert simulator.velocity[0, 0] == pytest.approx(3.0 * 5 / 7, rel=1e-2)
    assert np.linalg.norm(simulator.rate[0]) == pytest.approx(simulator.velocity[0, 0] / radius, rel=1e-2)


def test_ball_that_rolls_stops() -> None:
    """At v^2 / (2 a) with a = rolling g / (1 + I / (m r^2)), from rolling without slip; then it stands, and does not spin."""
    radius, rolling = 0.15, 0.05
    item = airframe("sphere", (radius,) * 3, (0.4 * 1.2 * radius**2,) * 3)
    simulator = grounded(item, 2, rolling=rolling)
    rate = [[0, 1.0 / radius, 0], [0, 0, 9.0]]
    simulator.reset(position=(0, 0, radius), velocity=[[1.0, 0, 0], [0, 0, 0]], rate=rate, rotor_speed=OFF)
    simulator.advance(4 * RATE, OFF)
    assert simulator.position[0, 0] == pytest.approx(0.5 * 1.4 / (rolling * G), rel=0.01)
    assert np.abs(simulator.velocity).max() < 1e-4
    assert np.abs(simulator.rate).max() < 1e-3
    assert np.abs(simulator.position[1]).max() == pytest.approx(radius, abs=1e-3)


def still(name: str) -> Vehicle:
    """A vehicle of the catalogue without noise and air, whose rotors can stand still."""
    item = vehicle(name)
    rotors = tuple(replace(rotor, speed_min=0.0) for rotor in item.rotors)
    return replace(item, wrench_noise=WrenchNoise(), disturbance=Disturbance(), drag=Drag(), sensors=(), rotors=rotors)


def test_every_vehicle_comes_to_rest() -> None:
    """Set down at 0.5 m/s sideways and 0.5 m/s down with rotors off: 3 s later all of the catalogue stand where they landed."""
    for names in (quads := [n for n in vehicle_names() if vehicle(n).rotor_count == 4], sorted({*vehicle_names()} - {*quads})):
        items = [still(name) for name in names]
        simulator = grounded(items, rate=480)
        rest = np.array([i.body.size[2] - i.body.center[2] + i.center_of_mass[2] for i in items])
        start = np.c_[np.zeros((len(items), 2)), rest + 0.02]
        simulator.reset(position=start, velocity=(0.4, 0.3, -0.5), rotor_speed=np.zeros(simulator.rotor_count))
        simulator.advance(3 * 480, np.zeros(simulator.rotor_count))
        speed = np.linalg.norm(simulator.velocity, axis=1)
        assert speed.max() < 1e-3, names[int(speed.argmax())]
        assert np.abs(simulator.rate).max() < 5e-3
        middle = np.array([np.subtract(i.body.center, i.center_of_mass) for i in items])
        lowest = (
            simulator.position[:, 2] + rotate(simulator.attitude.astype(float), middle)[:, 2] - [i.body.size[2] for i in items]
        )
        assert np.abs(lowest).max() < 1e-3
        assert np.linalg.norm(simulator.position[:, :2], axis=1).max() < 0.15


@pytest.mark.parametrize("rate", [240, 480, 960])
@pytest.mark.parametrize("name", ["cf2x_gym_pybullet_drones", "x500", "real_01", "tinyprop"])
def test_bounces_never_gain(name: str, rate: int) -> None:
    """Restitution 0 to 1, spins to 100 rad/s: neither one step with contact nor all of them together gain."""
    item, rng, n = replace(still(name), gravity=G), np.random.default_rng(3), 320
    simulator = grounded(item, n, rate)
    simulator.set_parameter("restitution", rng.choice([0.0, 0.3, 0.5, 0.8, 1.0], n))
    simulator.set_parameter("friction", rng.uniform(0.0, 1.0, n))
    velocity, spin = rng.uniform(-2.0, 2.0, (n, 3)), rng.choice([0.0, 10.0, 50.0, 100.0], (n, 1))
    velocity[:, 2] = -np.abs(velocity[:, 2]) - 0.3
    start = {"attitude": rng.normal(size=(n, 4)), "rate": spin * rng.uniform(-1.0, 1.0, (n, 3)) / np.sqrt(3.0)}
    simulator.reset(position=(0.0, 0.0, 0.6), velocity=velocity, **start, rotor_speed=OFF)
    first = before = energy(item, simulator)
    gain, impacts, given, most = -1.0, 0, np.zeros(n), 0.0
    for _ in range(rate):
        simulator.advance(1, OFF)
        now, met = energy(item, simulator), simulator.field("contact") > 0
        gain = max(gain, float(((now - before) / first)[met].max(initial=-1.0)))
        given += np.where(met, (now - before) / first, 0.0)
        before, impacts, most = now, impacts + int(met.sum()), max(most, float(given.max()))
    assert impacts > 2 * n
    assert gain < 2e-4
    assert most < 2e-4


def test_tumbling_bodies_come_to_rest() -> None:
    """Thrown and tumbling, every body but the ball ends at rest on one of its faces, near the surface."""
    names = [n for n in BODIES if n != "sphere"]
    items = [BODIES[n] for n in names for _ in range(16)]
    rng = np.random.default_rng(8)
    simulator = grounded(items)
    n = len(items)
    simulator.reset(
        position=(0, 0, 1.0),
        velocity=rng.uniform(-3, 3, (n, 3)),
        attitude=rng.normal(size=(n, 4)),
        rate=rng.uniform(-8, 8, (n, 3)),
        rotor_speed=OFF,
    )
    simulator.advance(10 * RATE, OFF)
    assert np.abs(simulator.velocity).max() < 0.02
    assert np.abs(simulator.rate).max() < 0.1
    assert (simulator.field("contact") > 0).all()
    assert simulator.position[:, 2].min() > 0.015


def test_no_tunnelling() -> None:
    """Down at 30 m/s: never deeper than one step's way, and back on the surface."""
    items = list(BODIES.values())
    simulator = grounded(items)
    rest = np.array(list(STANDING.values()))
    simulator.reset(position=(0, 0, 2.0), velocity=(0, 0, -30.0), rotor_speed=OFF)
    lowest = np.full(len(items), np.inf)
    for _ in range(960):
        simulator.advance(1, OFF)
        lowest = np.minimum(lowest, simulator.position[:, 2])
    reach = np.array([0.15, 0.05, 0.06, 0.02, 0.02, 0.02])
    assert (lowest > reach - 31.0 / RATE - 0.005).all()
    assert (simulator.position[:, 2] > rest - 2e-3).all()
    assert not simulator.diverged.any()


@pytest.mark.parametrize("name", ["lmf2", "flightgoggles", "cf2x_L250"])
def test_take_off_and_land(name: str) -> None:
    """From standing with rotors off to 1 m and back, under the position controller; then it stands level."""
    item = replace(vehicle(name), wrench_noise=WrenchNoise(), disturbance=Disturbance())
    rest = item.body.size[2] - item.body.center[2] + item.center_of_mass[2]
    simulator = Simulator(item, SimulatorConfig(level="position", ground=Ground(), control_rate=96))
    simulator.reset(position=(0, 0, rest), rotor_speed=np.zeros(4))
    for _ in range(96 * 5):
        simulator.step([0, 0, 1.0, 0])
    assert simulator.position[0] == pytest.approx([0, 0, 1.0], abs=0.02)
    assert simulator.field("contact")[0] == 0
    fastest = 0.0
    for k in range(96 * 8):
        simulator.step([0, 0, max(1.0 - 0.25 * k / 96, -0.3), 0])
        fastest = max(fastest, float(simulator.field("impact_speed")[0]))
    assert simulator.field("contact")[0] > 0
    assert simulator.position[0, 2] == pytest.approx(rest, abs=5e-3)
    assert np.linalg.norm(simulator.position[0, :2]) < 0.02
    assert np.abs(simulator.attitude[0, :2]).max() < 0.01
    assert np.abs(simulator.velocity[0]).max() < 0.01
    assert 0.0 < fastest < 1.0


def test_accelerometer_feels_the_support() -> None:
    """At rest on the ground the IMU reads +g up; half the weight on the rotors changes nothing; in the air it reads thrust."""
    for name, tolerance in (("box", 1e-6), ("box off centre", 1e-2)):
        simulator = Simulator(BODIES[name], SimulatorConfig(ground=Ground(), imu=Imu()), env_count=2)
        simulator.reset(position=(0, 0, STANDING[name]), rotor_speed=OFF)
        half = np.full(4, hover_speed(BODIES[name])[0] / np.sqrt(2))
        simulator.advance(RATE, [OFF, half])
        assert simulator.imu[:, :3] == pytest.approx(np.array([[0, 0, G]] * 2), abs=tolerance * G)
        assert simulator.field("acceleration") == pytest.approx(np.array([[0, 0, G]] * 2), abs=tolerance * G)
        twin = Twin(simulator)
        twin.advance(2, [OFF, half])
        assert twin.field("imu")[:, :3] == pytest.approx(np.array([[0, 0, G]] * 2), abs=tolerance * G)


def test_neighbours_on_the_ground_change_nothing() -> None:
    """A flight in the air has the same bytes beside 15 that roll about on the ground (lanes share the branch)."""
    item, rng = BODIES["box"], np.random.default_rng(9)
    config = SimulatorConfig(ground=Ground(), imu=Imu(position=(0.1, 0, 0)))
    ends = []
    for count in (1, 16):
        simulator = Simulator(item, config, env_count=count)
        position = np.r_[[[0.0, 0.0, 0.2601]], np.c_[np.zeros((15, 2)), rng.uniform(0.03, 0.3, 15)]][:count]
        rate = np.zeros((count, 3))
        rate[1:] = rng.uniform(-3, 3, (count - 1, 3))
        simulator.reset(position=position, rate=rate)
        simulator.advance(480, np.full(4, hover_speed(item)[0]))
        assert simulator.field("contact")[0] == 0
        ends.append({name: simulator.field(name)[0].tobytes() for name in simulator.layout.fields})
    assert ends[0] == ends[1]
