"""Beacons: analytic pixels, walls, the own body, options, and what the scene carries."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import camera_attitude, from_euler, rotate_inverse
from airworthy.geometry import Box, GeometryBatch, Placement, Sphere
from airworthy.sensors.build import BeaconCamera, BeaconOptions, make_sensor, markers
from airworthy.sensors.devices import device
from airworthy.sensors.noise import Draw

DEVICE = device("flightgoggles_beacons")
FAR_AWAY = (Sphere(0.1), (0.0, 0.0, -500.0))


def _camera(positions: Any, **options: Any) -> BeaconCamera:
    return BeaconCamera(DEVICE, "left", BeaconOptions(**options), positions)


def test_pixels_are_the_analytic_projection(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    """Spec/flightgoggles 10, check 10: to 1e-3 px, for any pose; u = fx X/Z + cx with fx = (h/2)/tan(fov/2)."""
    rng = np.random.default_rng(0)
    beacons = rng.uniform((2, -8, -6), (20, 8, 6), (200, 3))
    position, attitude = np.array([0.3, -0.2, 0.5]), from_euler(0.2, -0.1, 0.15)
    out = _camera(beacons).capture(place(FAR_AWAY), view(position, attitude=attitude[None]))
    x, y, z = rotate_inverse(camera_attitude(attitude), beacons - position).T
    focal = 384.0 / math.tan(math.radians(35.0))
    u, v = focal * x / z + 512.0, focal * y / z + 384.0
    inside = (z > 0) & (u > 0) & (u < 1024) & (v > 0) & (v < 768)
    assert 20 < inside.sum() < 180
    np.testing.assert_array_equal(out["beacon"][0] >= 0, inside)
    np.testing.assert_array_equal(out["beacon"][0][inside], np.flatnonzero(inside))
    np.testing.assert_allclose(out["pixel"][0][inside], np.stack([u, v], -1)[inside], atol=1e-3)
    assert np.isnan(out["pixel"][0][~inside]).all()


def test_behind_the_camera_and_on_the_border_nothing_is_seen(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    focal = 384.0 / math.tan(math.radians(35.0))
    border = 10.0 * 512.0 / focal
    out = _camera([[-5.0, 0, 0], [10.0, border * (1 + 1e-9), 0], [10.0, border * (1 - 1e-6), 0]]).capture(
        place(FAR_AWAY), view()
    )
    assert out["beacon"][0].tolist() == [-1, -1, 2]


def test_a_wall_hides_and_what_stands_behind_does_not(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    wall = (Box((0.1, 1.0, 3.0)), (4.0, 1.0, 0.0))
    beacons = [[8.0, 1.0, 0.0], [8.0, -1.5, 0.0], [3.0, 1.0, 0.0]]
    out = _camera(beacons).capture(place(wall), view())
    assert out["beacon"][0].tolist() == [-1, 1, 2]


def test_a_beacon_on_its_frame_is_seen_from_the_front(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    """It lies exactly on the surface that carries it; from behind, the frame hides it."""
    frame = (Box((0.1, 0.5, 0.5)), (4.1, 0.0, 0.0))
    beacon = _camera([[4.0, 0.0, 0.0]])
    assert beacon.capture(place(frame), view())["beacon"][0, 0] == 0
    behind = view((8.0, 0.0, 0.0), attitude=from_euler(0.0, 0.0, math.pi)[None])
    assert beacon.capture(place(frame), behind)["beacon"][0, 0] == -1


def test_the_own_body_does_not_hide(view: Callable[..., Any]) -> None:
    """Check 10: a beacon behind the vehicle's own collider is present; for another camera the body is in the way."""
    empty = Placement.of(shape=[0], position=[[0.0, 0.0, -500.0]])
    batch = GeometryBatch([Sphere(0.3)], [empty], [0], [Placement.of(shape=[0])])
    batch.set_dynamic_instances(np.zeros((1, 1, 3)), np.array([[[0.0, 0.0, 0.0, 1.0]]]))
    beacons = _camera([[5.0, 0.0, 0.0]])
    own = np.array([batch.dynamic_start], np.int32)
    assert beacons.capture(batch, view(ignore=own))["beacon"][0, 0] == 0
    assert beacons.capture(batch, view())["beacon"][0, 0] == -1


def test_reach_of_the_options(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    beacons = [[5.0, 0.0, 0.0], [30.0, 0.0, 0.0], [5.0, 2.5, 0.0]]
    far = _camera(beacons, range_max=10.0).capture(place(FAR_AWAY), view())
    assert far["beacon"][0].tolist() == [0, -1, 2]
    narrow = _camera(beacons, angle_max=0.4).capture(place(FAR_AWAY), view())
    assert narrow["beacon"][0].tolist() == [0, 1, -1]


def test_pixel_noise_and_dropout(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    count = 5000
    beacons = [[10.0, 0.5, 0.2], [10.0, -1.0, 0.4]]
    exact = _camera(beacons).capture(place(FAR_AWAY), view())["pixel"][0]
    out = _camera(beacons, pixel_noise=0.7, dropout=0.2).capture(place(FAR_AWAY), view(count=count, draw=Draw.of(count)))
    detected = out["beacon"] >= 0
    # 10,000 draws each; 5 standard errors.
    assert abs(detected.mean() - 0.8) < 5 * math.sqrt(0.16 / (2 * count))
    error = (out["pixel"] - exact)[detected]
    assert abs(error.std() - 0.7) < 5 * 0.7 / math.sqrt(2 * error.size)
    assert abs(error.mean()) < 5 * 0.7 / math.sqrt(error.size)
    assert abs(np.corrcoef(error.T)[0, 1]) < 5 / math.sqrt(len(error))


def test_shuffling_loses_association_and_nothing_else(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    count = 400
    beacons = np.array([[10.0, 0.5, 0.2], [10.0, -1.0, 0.4], [-10.0, 0, 0], [10.0, 2.0, -1.0]])
    exact = _camera(beacons).capture(place(FAR_AWAY), view())["pixel"][0][[0, 1, 3]]
    out = _camera(beacons, shuffle=True).capture(place(FAR_AWAY), view(count=count, draw=Draw.of(count)))
    assert (np.sort(out["beacon"], axis=1) == [-1, 0, 1, 3]).all()
    pixels = out["pixel"][out["beacon"] >= 0].reshape(count, 3, 2)
    np.testing.assert_allclose(np.sort(pixels[..., 0], axis=1), np.tile(np.sort(exact[:, 0]), (count, 1)), atol=1e-3)
    truth = np.argmin(np.abs(pixels[:, :, None, 0] - exact[None, None, :, 0]), axis=-1)
    decoded = np.searchsorted([0, 1, 3], out["beacon"][out["beacon"] >= 0].reshape(count, 3))
    # Right by chance in a third of the cases.
    assert abs((truth == decoded).mean() - 1 / 3) < 5 * math.sqrt(2 / 9 / (3 * count))


def test_beacons_of_a_scene_ride_on_actors(view: Callable[..., Any]) -> None:
    from airworthy.scenes.batch import SceneBatch
    from airworthy.scenes.record import Actor, Beacon, Instance, Scene

    gate = Actor("gate", (Instance("bar", (0.0, 0.0, 2.0)),), "velocity", velocity=(0.0, 1.0, 0.0))
    marks = (Beacon("Gate10", "3", (6.0, 0.0, 0.0)), Beacon("Gate7", "1", (8.0, 0.0, 0.0), attached="gate"))
    scene = SceneBatch(Scene("gates", {"bar": Box((0.1, 1.0, 0.1))}, actors=(gate,), beacons=marks))
    sensor = make_sensor(DEVICE, "left")
    scene.advance(0.0)
    before = sensor.capture(scene, view())
    scene.advance(1.0)
    after = sensor.capture(scene, view())
    assert markers(scene, before, 0) == [("Gate10", "3", 512.0, 384.0, 0.0), ("Gate7", "1", 512.0, 384.0, 0.0)]
    moved = 512.0 - 1.0 / 8.0 * 384.0 / math.tan(math.radians(35.0))
    assert after["pixel"][0, 1, 0] == pytest.approx(moved, abs=1e-3)
    np.testing.assert_array_equal(after["pixel"][0, 0], before["pixel"][0, 0])


def test_mistakes_get_one_sentence(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    with pytest.raises(AirworthyError, match="is no camera"):
        BeaconCamera(device("ouster_os0_64"))
    with pytest.raises(AirworthyError, match="needs a SceneBatch"):
        BeaconCamera(DEVICE).capture(place(FAR_AWAY), view())
