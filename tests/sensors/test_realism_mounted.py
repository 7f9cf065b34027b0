"""A mounted camera with everything on: flights, snapshots, environments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from airworthy.geometry import Box
from airworthy.optics.projections import Pinhole
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Actor, Instance, Material, Scene
from airworthy.sensors.build import make_sensor
from airworthy.sensors.devices import device
from airworthy.sensors.mounting import Mount
from airworthy.sensors.noise import Draw
from airworthy.sensors.realism import REALISM, AutoExposure, DepthOfField, Realism, RollingShutter
from airworthy.sensors.sampling import SensorView
from airworthy.simulation import Simulator
from airworthy.simulation.mounted import MountedSensor, MountedSensors
from airworthy.vehicles import vehicle

FILM = REALISM["cinematic"].variant(rolling_shutter=RollingShutter(0.3), depth_of_field=DepthOfField(samples=8))
FRONT = device("flightgoggles_camera").variant(projection=Pinhole.from_fov(24, 16, vertical=1.0), rate=50.0, channels=("rgb",))


def place(envs: int) -> SceneBatch:
    lamp = Material((0.5, 0.2, 0.1, 1.0), emissive=(3.0, 2.0, 1.0))
    things = (Instance("box", (6.0, 1.0, 0.0), materials=("lamp",)), Instance("box", (4.0, -1.5, -0.5)))
    return SceneBatch(Scene("s", {"box": Box((0.5, 0.8, 0.8))}, {"lamp": lamp}, instances=things), envs)


def flown(envs: int, **options: Any) -> tuple[Simulator, MountedSensors]:
    simulator = Simulator(vehicle("carl"), env_count=envs, seed=4, **options)
    return simulator, MountedSensors(simulator, place(envs), {"front": MountedSensor(FRONT, realism=FILM)})


def pictures(simulator: Simulator, mounted: MountedSensors, count: int) -> list[np.ndarray]:
    out = []
    for _ in range(count):
        simulator.step()
        out.append(mounted.latest("front")["rgb"].copy())
    return out


def test_images_are_reproducible_and_eight_bit() -> None:
    first, second = pictures(*flown(2), 4), pictures(*flown(2), 4)
    assert first[0].dtype == np.uint8
    assert first[0].shape == (2, 16, 24, 3)
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, two)
    assert not np.array_equal(first[-1][0], first[-1][1])  # noise of two flights


def test_rolling_rows_meet_actors_where_they_were() -> None:
    """A board crosses at 12 m/s before a camera that stands still: its edge leans by speed x line time from row to row."""
    speed, readout, rate, height = 12.0, 0.8, 10.0, 48
    board = Actor("board", (Instance("board"),), "velocity", position=(5.0, 4.0, 0.0), velocity=(0.0, -speed, 0.0))
    scene = SceneBatch(Scene("passing", {"board": Box((0.01, 2.0, 20.0))}, actors=(board,)), 1)
    lens = Pinhole.from_fov(96, height, vertical=1.0)
    item = FRONT.variant(
        projection=lens, rate=rate, channels=("instance_id",), realism=Realism(rolling_shutter=RollingShutter(readout))
    )
    camera = make_sensor(item.variant(mount=Mount()))
    view = SensorView(np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]]), draw=Draw.of(1))
    for time in (0.2 - 1.0 / rate, 0.2):
        scene.advance(time)
        hit = camera.capture(scene, view)["instance_id"][0] >= 0
    # The board's right edge is at y = 2 - 12 t, in the row's own instant; a pixel is in where its middle is.
    when = 0.2 - readout / rate * (height - 1 - np.arange(height)) / height
    right = lens.cx - lens.fx * (2.0 - speed * when) / 4.99
    assert scene.time[0] == 0.2
    edge = hit.shape[1] - hit[:, ::-1].argmax(axis=1)  # the first column right of the board
    np.testing.assert_allclose(edge, np.ceil(right - 0.5), atol=1.0)
    slope = np.polyfit(np.arange(height), edge, 1)[0]
    assert slope == pytest.approx(lens.fx * speed / 4.99 * readout / rate / height, abs=0.01)  # 0.18 px a row


def test_an_environment_alone_sees_the_same() -> None:
    """Falling freely, so that there is motion blur, rolling rows and a changing exposure."""
    both = pictures(*flown(2), 4)
    simulator = Simulator(vehicle("carl"), env_count=1, seed=4, flight_ids=[1])
    mounted = MountedSensors(simulator, place(1), {"front": MountedSensor(FRONT, realism=FILM)})
    for one, two in zip(pictures(simulator, mounted, 4), both, strict=True):
        np.testing.assert_array_equal(one[0], two[1])


def test_a_restored_flight_goes_on_as_if_nothing_had_happened() -> None:
    simulator, mounted = flown(2)
    pictures(simulator, mounted, 3)
    snapshot, saved = simulator.save(), mounted.save()
    expected = pictures(simulator, mounted, 3)
    simulator.restore(snapshot)
    mounted.restore(saved)
    for one, two in zip(pictures(simulator, mounted, 3), expected, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_reset_forgets_exposure_and_past_poses() -> None:
    simulator, mounted = flown(2)
    pictures(simulator, mounted, 3)
    camera: Any = mounted.sensor("front")
    simulator.reset(np.array([1]))
    assert camera.real.state.frames.tolist()[1] == 1  # that of step 0
    assert camera.real.state.frames[0] == 2


def test_permuting_environments_permutes_images() -> None:
    rng = np.random.default_rng(2)
    scene = place(1)
    steps = rng.normal(0.0, 0.05, (3, 5, 3)).cumsum(0)
    order = np.array([4, 2, 0, 3, 1])

    def captured(which: np.ndarray) -> np.ndarray:
        camera: Any = make_sensor(FRONT.variant(realism=FILM), "front")
        camera.real.state.grow(np.arange(5))
        out = []
        for sample, position in enumerate(steps):
            views = SensorView(position[which], np.tile([0.0, 0.0, 0.0, 1.0], (len(which), 1)), np.zeros(len(which), int))
            # Five cameras of one scene: each has a memory of its own only where it is an environment of its own.
            draw = Draw.of(5, seed=1, sample=sample, sensor="front")
            views = SensorView(views.position, views.attitude, which, Draw(draw.keys[which], draw.sample[which], draw.sensor))
            out.append(camera.capture(many, views)["rgb"])
        return np.stack(out)

    many = SceneBatch(scene.scenes[0], 5)
    np.testing.assert_array_equal(captured(order), captured(np.arange(5))[:, order])


def test_without_realism_nothing_is_changed() -> None:
    scene = place(2)
    view = SensorView(np.zeros((2, 3)), np.tile([0.0, 0.0, 0.0, 1.0], (2, 1)), None, Draw.of(2))
    plain = make_sensor(FRONT).capture(scene, view)["rgb"]
    assert plain.dtype == np.float32
    for settings in ("ideal", Realism(), {}):
        np.testing.assert_array_equal(make_sensor(FRONT.variant(realism=settings)).capture(scene, view)["rgb"], plain)


def test_exposure_follows_the_cameras_rate() -> None:
    """One image after the other, at the device's rate: 0.2 s after ten of 50 Hz."""
    scene = place(1)
    camera: Any = make_sensor(FRONT.variant(realism=Realism(auto_exposure=AutoExposure(start=0.0))))
    view = SensorView(np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]]), np.zeros(1, int))
    raw = make_sensor(FRONT).capture(scene, view)["rgb"]
    wanted = np.log2(0.18 / (raw @ (0.2126, 0.7152, 0.0722)).mean())
    for _ in range(10):
        camera.capture(scene, view)
    np.testing.assert_allclose(camera.real.state.stops, wanted * (1.0 - np.exp(-0.2 / 0.5)), atol=1e-5)
