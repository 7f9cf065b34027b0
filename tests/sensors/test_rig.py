"""Rigs, mounts in the world, and images for files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.core.frames import angle_between, camera_attitude, from_euler, rotate
from airworthy.optics.projections import Pinhole
from airworthy.sensors.build import projection_matrix, rig, rig_names
from airworthy.sensors.carried import carried_sensors
from airworthy.sensors.mounting import mounted_pose
from airworthy.simulation import sensor_recording as products
from airworthy.vehicles import vehicle
from airworthy.vehicles.record import SensorMount


def test_flightgoggles_stereo() -> None:
    """Left at the body's origin, right 0.32 m to its right; P[0, 3] = -fx baseline (spec/flightgoggles 2.4)."""
    members = rig("flightgoggles_stereo")
    assert list(members) == ["left", "right"]
    assert members["left"].mount.position == (0.0, 0.0, 0.0)
    assert members["right"].mount.position == (0.0, -0.32, 0.0)
    camera = members["right"].projection
    assert isinstance(camera, Pinhole)
    assert projection_matrix(camera, 0.32)[0, 3] == pytest.approx(-548.4088 * 0.32, abs=1e-3)
    np.testing.assert_allclose(rotate(camera_attitude(members["left"].mount.attitude), (0, 0, 1)), (1, 0, 0), atol=1e-12)


def test_release_3_has_a_camera_that_looks_down() -> None:
    members = rig("flightgoggles_v3")
    assert [members[n].mount.position[1] for n in ("left", "right")] == [0.05, -0.05]
    optical = camera_attitude(members["down"].mount.attitude)
    np.testing.assert_allclose(rotate(optical, (0, 0, 1)), (0, 0, -1), atol=1e-12)
    # The image's upper edge is forward.
    np.testing.assert_allclose(rotate(optical, (0, -1, 0)), (1, 0, 0), atol=1e-12)


def test_members_of_a_rig_sample_together() -> None:
    for name in rig_names():
        assert len({member.rate for member in rig(name).values()}) == 1
    with pytest.raises(UnknownNameError, match="flightgoggles_mono"):
        rig("flightgoggles_momo")


def test_mounts_turn_with_the_body() -> None:
    position, attitude = mounted_pose((1.0, 2.0, 3.0), from_euler(0, 0, np.pi / 2), (0.1, 0.0, 0.03), from_euler(0, 0.3, 0))
    np.testing.assert_allclose(position, (1.0, 2.1, 3.03), atol=1e-12)
    np.testing.assert_allclose(rotate(attitude, (1, 0, 0)), (0, np.cos(0.3), -np.sin(0.3)), atol=1e-12)


def test_depth_images() -> None:
    metres = np.array([[0.0005, 1.2344, 65.535, 65.6, np.inf, np.nan, -1.0, 0.0]])
    image = products.depth_16bit(metres)
    assert image.dtype == np.uint16
    np.testing.assert_array_equal(image, [[0, 1234, 65535, 0, 0, 0, 0, 0]])
    np.testing.assert_allclose(products.metres_of(image)[0, 1:3], [1.234, 65.535])
    assert np.isinf(products.metres_of(image)[0, 4])
    np.testing.assert_array_equal(products.depth_8bit([0.31, 51.0, 60.0]), [2, 255, 0])


def test_other_images() -> None:
    np.testing.assert_array_equal(products.ids_16bit([-2, -1, 3, 60000]), [0, 0, 3, 60000])
    with pytest.raises(AirworthyError, match="16 bits"):
        products.ids_16bit([70000])
    np.testing.assert_array_equal(products.normals_8bit([[0.0, 1.0, -1.0], [np.nan] * 3]), [[128, 255, 0], [0, 0, 0]])
    np.testing.assert_array_equal(products.grey(np.array([[255, 255, 255], [255, 0, 0]])), [255, 76])


def test_sensors_of_a_vehicles_record() -> None:
    """CARL's camera: its record turns the optical frame into the body, so the mount looks straight ahead."""
    members = carried_sensors(vehicle("carl"))
    assert list(members) == ["camera", "camera_calibrated"]
    camera = members["camera"]
    assert isinstance(camera.projection, Pinhole)
    assert (camera.projection.fx, camera.projection.cy) == (462.956, 181.184)
    np.testing.assert_allclose(camera.mount.attitude, (0, 0, 0, 1), atol=1e-12)
    # The calibrated one differs by some degrees.
    assert angle_between(members["camera_calibrated"].mount.attitude, camera.mount.attitude) < 0.15
    assert carried_sensors(vehicle("flightgoggles")) == {}


def test_a_record_may_name_devices() -> None:
    top = SensorMount("top", "lidar", "ouster_os0_64", (0.0, 0.0, 0.1), parameters=(("rate_hz", 20.0),))
    lidar = carried_sensors(replace(vehicle("carl"), sensors=(top,)))["top"]
    assert (lidar.name, lidar.rate, lidar.mount.position) == ("ouster_os0_64", 20.0, (0.0, 0.0, 0.1))
    with pytest.raises(AirworthyError, match="names no device"):
        carried_sensors(replace(vehicle("carl"), sensors=(replace(top, device=""),)))
    with pytest.raises(AirworthyError, match=r"Sensor 'top' of vehicle 'carl': Unknown sensor 'ouster_os0_63'"):
        carried_sensors(replace(vehicle("carl"), sensors=(replace(top, device="ouster_os0_63"),)))
    with pytest.raises(AirworthyError, match=r"mount it when flying, --sensors top=my\.toml:mine, with the pose in that file"):
        carried_sensors(replace(vehicle("carl"), sensors=(replace(top, device="my.toml:mine"),)))
