"""Mounted sensors: exact steps and poses, latency, partial resets, dynamic instances, order of environments, snapshots."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import ArrayAny
from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.core.frames import rotate
from airworthy.geometry import Box, Sphere
from airworthy.optics.projections import Pinhole, Spherical
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Actor, Instance, Scene
from airworthy.sensors.devices import device
from airworthy.sensors.lidar import Lidar, ranger
from airworthy.sensors.mounting import Mount
from airworthy.sensors.noise import RangeLimits, RangeNoise
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.simulation.mounted import Capture, DynamicVehicles, MountedSensor, MountedSensors
from airworthy.vehicles import vehicle

CARL = replace(vehicle("carl"), center_of_mass=(0.02, -0.01, 0.015))
"""Its reference point is not its centre of mass, so that the two cannot be mixed up unseen."""
ROOM = Scene(
    "room",
    {"floor": Box((50.0, 50.0, 0.5)), "wall": Box((0.5, 50.0, 50.0)), "ball": Sphere(0.5)},
    instances=(Instance("floor", (0.0, 0.0, -30.5)), Instance("wall", (8.5, 0.0, 0.0)), Instance("ball", (4.0, 0.3, 0.2))),
)
CAMERA = device("oak_d").variant(
    projection=Pinhole.from_fov(16, 12, horizontal=1.2),
    limits=RangeLimits(),
    channels=("depth",),
    mount=Mount((0.1, 0.0, 0.02)),
)
SONAR = ranger(noise_enabled=False)


def _simulator(env_count: int = 2, physics: float = 960.0, control: float = 100.0, **fields: Any) -> Simulator:
    return Simulator(CARL, SimulatorConfig(physics_rate=physics, control_rate=control), env_count, **fields)


def _mounted(simulator: Simulator, sensors: dict[str, Any], scene: Scene = ROOM, **fields: Any) -> MountedSensors:
    return MountedSensors(simulator, SceneBatch(scene, simulator.env_count), sensors, **fields)


class Heard:
    """Keeps every capture."""

    def __init__(self, mounted: MountedSensors):
        self.all: list[Capture] = []
        mounted.listen(self.all.append)

    def steps(self, name: str, env: int) -> list[int]:
        return [int(s) for c in self.all if c.name == name for e, s in zip(c.envs, c.step, strict=True) if e == env]


@pytest.mark.parametrize(("rate", "physics", "control"), [(60, 960, 100), (30, 1200, 100), (24, 500, 100), (24, 500, 60)])
def test_samples_fall_on_their_steps(rate: float, physics: float, control: float) -> None:
    """Sample k on step ceil(k f_physics / f), none missed, none twice, whatever the control rate."""
    simulator = _simulator(2, physics, control)
    mounted = _mounted(simulator, {"down": SONAR.variant(rate=float(rate))})
    heard = Heard(mounted)
    for _ in range(int(control)):
        simulator.step()
    ratio = Fraction(int(physics), int(rate))
    expected = [int(-(-(k * ratio).numerator // (k * ratio).denominator)) for k in range(rate)]
    end = int(simulator.flight_step[0])
    assert heard.steps("down", 0) == [s for s in [*expected, *(s + int(physics) for s in expected)] if s <= end]
    assert heard.steps("down", 1) == heard.steps("down", 0)


def test_the_pose_is_that_of_the_step() -> None:
    """A falling vehicle over a floor: the true range at stamp t is the height at t, between commands too."""
    simulator = _simulator(1, 960.0, 10.0)
    heard = Heard(_mounted(simulator, {"down": ranger(noise_enabled=False, limits=RangeLimits(0.0, 100.0)).variant(rate=60.0)}))
    twin = _simulator(1, 960.0, 10.0)
    for each in (simulator, twin):
        each.set_command(np.zeros(4))
    for _ in range(5):
        simulator.step()
    for capture in heard.all:
        ahead = int(capture.step[0]) - int(twin.flight_step[0])
        if ahead:
            twin.advance(ahead)
        # The ranger sits at the reference point; the simulated position is the centre of mass.
        reference = np.asarray(twin.position[0], float) - rotate(twin.attitude[0], CARL.center_of_mass)
        np.testing.assert_allclose(capture.position[0], reference, rtol=0, atol=1e-6)  # launches cut elsewhere round elsewhere
        ray = rotate(twin.attitude[0], (0.0, 0.0, -1.0))
        # float32 of 30 m rounds to 2e-6; hits are good to 1e-4 (quality.md 8).
        assert capture.data["range"][0, 0] == pytest.approx((reference[2] + 30.0) / -ray[2], abs=1e-4)


def test_sampling_does_not_change_the_flight() -> None:
    """Launches cut by events give the bits of uncut ones."""
    flown, plain = _simulator(3), _simulator(3)
    _mounted(flown, {"front": CAMERA, "down": SONAR})
    for simulator in (flown, plain):
        for _ in range(20):
            simulator.step(np.full(4, 900.0))
    for name in ("position", "velocity", "attitude", "rate"):
        np.testing.assert_array_equal(flown.field(name), plain.field(name))


def test_equal_rates_see_the_same_pose() -> None:
    simulator = _simulator(2)
    mounted = _mounted(simulator, {"left": CAMERA, "right": CAMERA.variant(mount=Mount((0.1, -0.32, 0.02)))})
    for _ in range(30):
        simulator.step(np.full(4, 700.0))
    left, right = mounted.latest("left"), mounted.latest("right")
    np.testing.assert_array_equal(left.step, right.step)
    np.testing.assert_allclose(
        left.position - right.position, rotate(left.attitude, np.tile([0.0, 0.32, 0.0], (2, 1))), atol=1e-12
    )


def test_latency_delivers_later_and_keeps_the_stamp() -> None:
    """30 Hz at 960 Hz physics: every 32 steps; 45 ms are 44 steps, so two samples wait at times."""
    simulator = _simulator(1, 960.0, 960.0)
    mounted = _mounted(simulator, {"down": MountedSensor(SONAR, rate=30.0, latency=0.045)})
    for now in range(1, 200):
        simulator.step()
        sample = mounted.latest("down")
        arrived = [s for s in range(0, now + 1, 32) if s + 44 <= now]
        assert bool(sample.valid[0]) == bool(arrived)
        if arrived:
            assert sample.step[0] == arrived[-1]
            assert sample.time[0] == arrived[-1] / 960.0
            assert sample.number[0] == arrived[-1] // 32
        else:
            assert np.isnan(sample.time[0])


def test_frame_delay_of_flightgoggles() -> None:
    """Each trigger delivers the frame of the trigger before; at 24 Hz and 500 Hz triggers are 20 or 21 steps apart."""
    simulator = _simulator(1, 500.0, 500.0)
    mounted = _mounted(simulator, {"down": MountedSensor(SONAR, rate=24.0, frame_delay=True)})
    triggers = [int(mounted.clock("down").step_of(k)) for k in range(20)]
    for now in range(1, 300):
        simulator.step()
        passed = [s for s in triggers if s <= now]
        assert mounted.latest("down").step[0] == (passed[-2] if len(passed) > 1 else -1)


def test_partial_resets_start_new_flights() -> None:
    simulator = _simulator(3, 960.0, 100.0)
    mounted = _mounted(simulator, {"down": MountedSensor(SONAR, rate=60.0, latency=0.02)})
    heard = Heard(mounted)
    for _ in range(7):
        simulator.step()
    simulator.reset([1], position=(0.0, 0.0, 2.0))
    assert mounted.latest("down").valid.tolist() == [True, False, True]
    heard.all.clear()
    for _ in range(50):
        simulator.step()
    assert heard.steps("down", 1) == list(range(16, 481, 16))
    assert heard.steps("down", 0) == list(range(80, 548, 16))
    assert mounted.latest("down").valid.all()


def test_the_sample_of_step_0_is_taken_at_the_reset() -> None:
    simulator = _simulator(2)
    mounted = _mounted(simulator, {"front": CAMERA})
    simulator.reset([0], position=(1.0, 0.0, 0.0))
    sample = mounted.latest("front")
    assert sample.step.tolist() == [0, 0]
    assert sample["depth"][0].max() == pytest.approx(8.0 - 1.1 + CARL.center_of_mass[0], abs=1e-4)
    assert sample["depth"][1].max() == pytest.approx(8.0 - 0.1 + CARL.center_of_mass[0], abs=1e-4)


def test_environments_permuted_give_permuted_samples() -> None:
    """Bit for bit, with noise, random mounts and different flights; and alone as in the batch."""
    noisy = device("realsense_d455").variant(
        projection=CAMERA.projection, noise_enabled=True, channels=("depth", "semantic_id")
    )
    scan = device("ouster_os0_64_datasheet").variant(projection=Spherical(16, 4), rate=20.0, channels=("range",))
    sensors = {"front": noisy, "top": scan, "down": ranger()}
    flights = np.array([4, 9, 2, 7])
    commands = np.array([[900.0], [950.0], [700.0], [1000.0]]) * np.ones(4)

    def fly(order: list[int]) -> dict[str, dict[str, ArrayAny]]:
        simulator = _simulator(len(order), flight_ids=flights[order], seed=11)
        mounted = _mounted(simulator, sensors)
        for step in range(25):
            simulator.step(commands[order])
            if step == 9 and 2 in order:
                simulator.reset([order.index(2)])
        return {name: {"step": mounted.latest(name).step, **mounted.latest(name).data} for name in sensors}

    base = fly([0, 1, 2, 3])
    for order in ([2, 0, 3, 1], [1]):
        other = fly(order)
        for name, values in base.items():
            for key, array in values.items():
                np.testing.assert_array_equal(other[name][key], array[order], err_msg=f"{name} {key}")


def test_mounts_are_drawn_again_at_each_reset() -> None:
    simulator = _simulator(2)
    mounted = _mounted(simulator, {"front": MountedSensor("realsense_d455", channels=("semantic_id",), rate=10.0)})
    first = mounted.latest("front").position.copy()
    simulator.reset([0])
    second = mounted.latest("front").position.copy()
    assert (second[0] != first[0]).any()
    np.testing.assert_array_equal(second[1], first[1])
    body = first + CARL.center_of_mass
    assert ((body >= (0.07 - 1e-6, -0.06 - 1e-6, 0.01 - 1e-6)) & (body <= (0.12 + 1e-6, 0.03 + 1e-6, 0.04 + 1e-6))).all()


def test_a_moved_obstacle_shows_in_the_next_frame() -> None:
    door = Actor("door", (Instance("slab"),), position=(6.0, 0.0, 0.0))
    scene = replace(ROOM, shapes={**ROOM.shapes, "slab": Box((0.1, 40.0, 40.0))}, instances=(), actors=(door,))
    simulator = _simulator(2)
    batch = SceneBatch(scene, 2)
    mounted = MountedSensors(simulator, batch, {"front": CAMERA.variant(mount=Mount(), rate=30.0)})
    gap = 5.9 + CARL.center_of_mass[0]
    np.testing.assert_allclose(mounted.latest("front")["depth"], gap, atol=1e-4)
    batch.pose_actor("door", (3.0, 0.0, 0.0), env_ids=[1])
    for _ in range(4):
        simulator.step()
    sample = mounted.latest("front")
    assert sample.step.tolist() == [32, 32]
    np.testing.assert_allclose(sample["depth"][0].min(), gap, atol=2e-2)
    np.testing.assert_allclose(sample["depth"][1].min(), gap - 3.0, atol=2e-2)


def test_scripted_actors_are_where_they_are_at_the_stamp() -> None:
    """A slab that approaches at 2 m/s, seen by a vehicle that another environment's reset must not disturb."""
    slab = Actor("slab", (Instance("slab"),), "velocity", position=(9.0, 0.0, 0.0), velocity=(-2.0, 0.0, 0.0))
    scene = Scene("approach", {"slab": Box((0.1, 40.0, 40.0))}, actors=(slab,))
    front = MountedSensor(ranger([[1.0, 0.0, 0.0]], noise_enabled=False), mount=Mount(), rate=50.0, attached="")
    simulator = _simulator(2, 1000.0, 100.0)
    mounted = _mounted(simulator, {"front": front}, scene)
    for step in range(40):
        simulator.step()
        if step == 20:
            simulator.reset([0])
    sample = mounted.latest("front")
    assert sample.step.tolist() == [180, 400]
    # Vehicles fall freely and do not turn, so the range is along world x.
    expected = 8.9 - 2.0 * sample.time - sample.position[:, 0]
    np.testing.assert_allclose(sample["range"][:, 0], expected, atol=2e-3)


def test_sensors_on_an_actor() -> None:
    carrier = Actor("carrier", (Instance("ball", (0.0, 0.0, 40.0)),), "velocity", velocity=(1.0, 0.0, 0.0))
    simulator = _simulator(1, 1000.0, 100.0)
    mounted = _mounted(
        simulator,
        {
            "watch": MountedSensor(
                ranger([[1.0, 0, 0]], noise_enabled=False), mount=Mount((0.0, 2.0, 0.0)), rate=50.0, attached="carrier"
            )
        },
        replace(ROOM, actors=(carrier,)),
    )
    for _ in range(10):
        simulator.step()
    sample = mounted.latest("watch")
    np.testing.assert_allclose(sample.position[0], (0.1, 2.0, 0.0), atol=1e-9)
    assert sample["range"][0, 0] == pytest.approx(8.0 - 0.1, abs=1e-4)


def test_other_vehicles_are_seen_and_the_own_body_is_not() -> None:
    """Two of a group face each other's path; a third flies alone elsewhere. Bodies are spheres of the record's radius."""
    position = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    simulator = _simulator(3)
    simulator.reset(position=position)
    others = DynamicVehicles(simulator.vehicles, [5, 5, 6], simulator.flight_ids)
    scene = SceneBatch(
        Scene("empty", bounds=ROOM.bounds), 3, extra_dynamic_instances=others.placement, extra_shapes=others.shapes
    )
    front = MountedSensor(
        ranger([[1.0, 0, 0]], noise_enabled=False, channels=("range", "semantic_id", "instance_id")), mount=Mount(), rate=50.0
    )
    mounted = MountedSensors(simulator, scene, {"front": front}, others)
    sample = mounted.latest("front")
    assert sample["valid"][:, 0].tolist() == [True, False, False]
    assert sample["semantic_id"][0, 0] == 8
    assert sample["instance_id"][0, 0] == 60001
    # The first looks from its reference point; the other's body is a sphere around its own.
    assert CARL.body.shape == "sphere"
    assert sample["range"][0, 0] == pytest.approx(3.0 - CARL.body.size[0] + CARL.body.center[0], abs=1e-4)


def test_save_and_restore_continue_bit_for_bit() -> None:
    sensors = {
        "front": MountedSensor(CAMERA.variant(noise=RangeNoise(c=0.01), noise_enabled=True), rate=30.0, latency=0.05),
        "top": device("ouster_os0_64_datasheet").variant(projection=Spherical(16, 4), rate=20.0, channels=("range",)),
    }
    simulator = _simulator(2)
    mounted = _mounted(simulator, sensors)
    for _ in range(13):
        simulator.step(np.full(4, 800.0))
    flight, samples = simulator.save(), mounted.save()

    def on() -> dict[str, Any]:
        for _ in range(11):
            simulator.step(np.full(4, 800.0))
        return {name: mounted.latest(name) for name in sensors}

    first = {name: (s.step.copy(), s.data[next(iter(s.data))].copy()) for name, s in on().items()}
    heard = Heard(mounted)
    simulator.restore(flight)
    mounted.restore(samples)
    assert not heard.all
    for name, sample in on().items():
        np.testing.assert_array_equal(sample.step, first[name][0])
        np.testing.assert_array_equal(next(iter(sample.data.values())), first[name][1])


@pytest.mark.parametrize("rate", [10.0, 7.3, 12.7, 19.9])
def test_a_rolling_scan_uses_the_poses_of_its_columns(rate: float) -> None:
    """A falling LiDAR in a sphere that is centred on its start: each column's range is that of its own instant.

    Also of the oldest columns, at rates whose revolutions are no whole number of steps.
    """
    scene = Scene("sphere", {"ball": Sphere(20.0)}, instances=(Instance("ball"),))
    lens = Spherical(512, 1, elevation=(-1.5, -1.5))
    scan = device("ouster_os0_64_datasheet").variant(
        projection=lens, rate=rate, noise_enabled=False, channels=("range",), mount=Mount()
    )
    simulator, twin = _simulator(1, 960.0, 96.0), _simulator(1, 960.0, 96.0)
    for each in (simulator, twin):
        each.set_command(np.zeros(4))
    mounted = _mounted(simulator, {"top": scan}, scene)
    heard = Heard(mounted)
    for _ in range(96):
        simulator.step()
    poses = []
    for _ in range(961):
        attitude = np.asarray(twin.attitude[0], float)
        poses.append(np.concatenate([twin.position[0] - rotate(attitude, CARL.center_of_mass), attitude]))
        twin.advance(1)
    sensor = mounted.sensor("top")
    assert isinstance(sensor, Lidar)
    samples = heard.all[2:]  # whole revolutions
    assert len(samples) >= 6
    for sample in samples:
        when = sample.step[0] - sensor.column_age() * 960.0
        at = np.stack([np.interp(when, np.arange(961), column) for column in np.transpose(poses)], axis=-1)
        ray = rotate(at[:, 3:] / np.linalg.norm(at[:, 3:], axis=1, keepdims=True), lens.rays().directions[0])
        along = (at[:, :3] * ray).sum(-1)
        expected = -along + np.sqrt(along**2 - (at[:, :3] ** 2).sum(-1) + 400.0)
        # Known poses are at most 9 steps apart: 9.81 / 8 (9 / 960)^2 is 1.1e-4 m; hits are good to 1e-4 m at 10 m, so 2e-4.
        np.testing.assert_allclose(sample.data["range"][0, 0], expected, atol=3e-4)
    assert np.ptp(expected) > 0.4


def test_a_rolling_scan_meets_actors_where_they_were() -> None:
    """A slab comes at 8 m/s: each column meets it where it was at the column's instant, 0.2 m apart over a scan's quarter."""
    speed = 8.0
    slab = Actor("slab", (Instance("slab"),), "velocity", position=(9.0, 0.0, 0.0), velocity=(-speed, 0.0, 0.0))
    scene = Scene("approach", {"slab": Box((0.1, 400.0, 400.0))}, actors=(slab,))
    lens = Spherical(256, 1, elevation=(0.0, 0.0))
    scan = device("ouster_os0_64_datasheet").variant(
        projection=lens, rate=10.0, noise_enabled=False, channels=("range",), mount=Mount(), limits=RangeLimits()
    )
    simulator = _simulator(1, 1000.0, 100.0)
    mounted = _mounted(simulator, {"top": scan}, scene)
    for _ in range(50):
        simulator.step()
    sample, sensor = mounted.latest("top"), mounted.sensor("top")
    assert isinstance(sensor, Lidar)
    ahead = lens.rays().directions[0, :, 0]  # vehicles fall freely and do not turn
    front = ahead > 0.5
    when = sample.time[0] - sensor.column_age()
    met = sample["range"][0, 0, front] * ahead[front]
    # Within a strip (4 of the 256 columns) the slab stands still where it was in the strip's middle.
    assert np.abs(met - (8.9 - speed * when - sample.position[0, 0])[front]).max() < speed * 0.1 / 64 / 2 + 1e-3
    assert np.ptp(met) > 0.2
    assert mounted.scene.time[0] == pytest.approx(simulator.time[0])


def test_flow_is_the_motion_since_the_image_before() -> None:
    """Falling before a wall, which goes up in the image; a slab before it comes from the right. None before the first image."""
    slab = Actor("slab", (Instance("ball", (0.0, 0.0, 0.0)),), "velocity", position=(4.0, -1.0, 0.0), velocity=(0.0, 2.0, 0.0))
    scene = replace(ROOM, instances=ROOM.instances[:2], actors=(slab,))
    lens = Pinhole.from_fov(64, 48, horizontal=1.2)
    camera = CAMERA.variant(projection=lens, channels=("flow", "instance_id", "depth"), kind="camera", baseline=0.0, rate=20.0)
    simulator = _simulator(2, 1000.0, 100.0)
    mounted = _mounted(simulator, {"front": camera}, scene)
    np.testing.assert_allclose(mounted.latest("front")["flow"], 0.0, atol=1e-5)
    before = np.zeros(2)
    for step in range(20):
        if step == 12:
            simulator.reset([1])
            np.testing.assert_allclose(mounted.latest("front")["flow"][1], 0.0, atol=1e-5)
        was = mounted.latest("front")
        before, stamp = was.position[:, 2].copy(), was.step.copy()
        simulator.step()
        sample = mounted.latest("front")
        for env in np.flatnonzero(sample.step > stamp):
            fallen = before[env] - sample.position[env, 2]
            wall = sample["depth"][env] > 6.0
            expected = np.zeros((48, 64, 2))
            expected[..., 1] = -lens.fy * fallen / sample["depth"][env]
            expected[~wall, 0] = -lens.fx * 2.0 * 0.05 / sample["depth"][env][~wall]  # to the left, which is +y
            assert wall.any()
            assert (~wall).any()
            np.testing.assert_allclose(sample["flow"][env], expected, atol=2e-3)
    assert sample.step.tolist() == [200, 50]


def test_mistakes_get_one_sentence() -> None:
    simulator = _simulator(2)
    with pytest.raises(AirworthyError, match="the simulator has 2"):
        MountedSensors(simulator, SceneBatch(ROOM, 3), {"down": SONAR})
    with pytest.raises(UnknownNameError, match="Unknown sensor 'ouster'"):
        _mounted(simulator, {"top": "ouster"})
    with pytest.raises(AirworthyError, match="at most the physics' 960"):
        _mounted(simulator, {"down": MountedSensor(SONAR, rate=2000.0)})
    mounted = _mounted(simulator, {"down": SONAR})
    with pytest.raises(UnknownNameError, match="Unknown mounted sensor 'up'"):
        mounted.latest("up")
    with pytest.raises(AirworthyError, match="has no channel 'depth'"):
        mounted.latest("down")["depth"]
