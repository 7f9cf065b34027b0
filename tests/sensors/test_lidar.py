"""LiDARs and time-of-flight sensors: rolling scans, zones, points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_euler, rotate
from airworthy.geometry import Box, Sphere
from airworthy.optics.projections import Pinhole, Spherical
from airworthy.sensors.build import make_sensor
from airworthy.sensors.devices import device
from airworthy.sensors.lidar import Lidar, column_poses, packed_points

SMALL = Spherical(32, 8, elevation=(-0.5, 0.5))
ROOM = Sphere(6.0)


def _small(**changes: Any) -> Lidar:
    item = device("ouster_os0_64_datasheet").variant(projection=SMALL, noise_enabled=False, **changes)
    sensor = make_sensor(item)
    assert isinstance(sensor, Lidar)
    return sensor


def test_columns_fire_one_after_the_other() -> None:
    age = _small().column_age()
    assert age[-1] == 0.0
    np.testing.assert_allclose(np.diff(age), -0.1 / 32)


def test_poses_between_known_ones() -> None:
    """A steady flight and turn: linear position, even turn, exact at the known instants, held before the first."""
    past = np.array([[0.08, 0.04, 0.0]])
    turn = from_euler(np.zeros(3), np.zeros(3), np.array([-0.8, -0.4, 0.0]))[None]
    position = np.array([[[-8.0, 0, 0], [-4.0, 0, 0], [0.0, 0, 0]]])
    at, attitude = column_poses(np.array([0.09, 0.08, 0.06, 0.04, 0.01, 0.0]), past, position, turn)
    np.testing.assert_allclose(at[0, :, 0], [-8.0, -8.0, -6.0, -4.0, -1.0, 0.0], atol=1e-12)
    yaw = 2 * np.arctan2(attitude[0, :, 2], attitude[0, :, 3])
    np.testing.assert_allclose(yaw, [-0.8, -0.8, -0.6, -0.4, -0.1, 0.0], atol=1e-12)


def test_one_known_pose_holds() -> None:
    at, _ = column_poses(np.linspace(0.1, 0.0, 5), np.zeros((2, 1)), np.ones((2, 1, 3)), np.tile([0.0, 0, 0, 1], (2, 1, 1)))
    np.testing.assert_array_equal(at, 1.0)


def test_a_rolling_scan_in_flight_sees_the_room_where_it_is(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    """Each column's points, put into the world with its own pose, lie on the room's wall; with one pose they do not."""
    sensor = _small(points_in_world=True, channels=("points",))
    age = sensor.column_age()
    columns = -np.outer(age, (10.0, 0.0, 0.0))[None]
    turned = from_euler(np.zeros(32), np.zeros(32), -3.0 * age)[None]
    where = view(column_position=columns, column_attitude=turned)
    points = sensor.capture(place((ROOM, (0, 0, 0))), where)["points"]
    np.testing.assert_allclose(np.linalg.norm(points, axis=-1), 6.0, atol=1e-4)
    still = sensor.capture(place((ROOM, (0, 0, 0))), view())["points"]
    assert np.abs(points - still).max() > 0.1


def test_points_leave_out_what_did_not_return(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    sensor = _small(channels=("range", "points"))
    out = sensor.capture(place((Box((0.5, 50.0, 50.0)), (5.5, 0, 0))), view(count=2))
    clouds = packed_points(out["points"])
    returned = np.isfinite(out["range"])
    assert [len(cloud) for cloud in clouds] == returned.sum((1, 2)).tolist()
    np.testing.assert_allclose(clouds[0][:, 0], 5.0, atol=1e-5)


def test_a_zone_gives_its_nearest_return(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    sheet = device("st_vl53l5cx_datasheet").variant(noise_enabled=False, channels=("range", "instance", "points"))
    sensor = make_sensor(sheet)
    batch = place((Box((0.5, 50.0, 50.0)), (3.5, 0, 0)), (Sphere(0.05), (1.5, 0.1, 0.1)))
    out = sensor.capture(batch, view())
    assert out["range"].shape == (1, 8, 8)
    rays = make_sensor(sheet.variant(sub_rays=1, channels=("range", "instance"))).capture(batch, view())
    blocks = rays["range"].reshape(8, 3, 8, 3).transpose(0, 2, 1, 3).reshape(8, 8, 9)
    np.testing.assert_array_equal(out["range"][0], blocks.min(-1))
    ids = rays["instance"].reshape(8, 3, 8, 3).transpose(0, 2, 1, 3).reshape(8, 8, 9)
    np.testing.assert_array_equal(out["instance"][0] == 1, (ids == 1).any(-1))
    assert (out["instance"] == 1).any()


def test_noise_is_of_the_stated_spread_in_a_scan(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    item = device("ouster_os0_128").variant(projection=Spherical(256, 64), noise_enabled=True, channels=("range", "true_range"))
    out = make_sensor(item).capture(place((ROOM, (0, 0, 0))), view())
    error = out["range"].astype(float) * 35.0 - out["true_range"]
    sigma = float(item.noise.sigma(6.0))
    # 16,384 draws: 5 standard errors.
    assert abs(error.mean() - 0.05) < 5 * sigma / 128
    assert abs(error.std() - sigma) < 5 * sigma / 181


def test_mistakes_get_one_sentence() -> None:
    with pytest.raises(AirworthyError, match="scans column by column"):
        make_sensor(device("ouster_os0_64_datasheet").variant(projection=Pinhole.from_fov(8, 8, horizontal=1.0)))
    with pytest.raises(AirworthyError, match="whole number of zones"):
        make_sensor(device("st_vl53l5cx_datasheet").variant(sub_rays=5))


def test_the_dome_of_the_airy_looks_backwards_and_up() -> None:
    """Its published mount turns it by pitch -90 degrees: sensor x points up, the dome's axis (z) backwards."""
    position, attitude = device("robosense_airy").effective_mount.drawn(np.zeros((1, 4), np.uint32), 1)
    np.testing.assert_allclose(position, [[-0.05, 0.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(rotate(attitude[0], (0.0, 0.0, 1.0)), (-1.0, 0.0, 0.0), atol=1e-12)
