"""The catalogue against the published tables, and its checks."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.core.frames import from_euler
from airworthy.optics.projections import Fisheye, Pinhole, Spherical
from airworthy.sensors.build import make_sensor
from airworthy.sensors.devices import device, device_from, device_names
from airworthy.sensors.mounting import Mount
from airworthy.sensors.noise import Draw

RENAMED = {"robosense_airy": "rslidar_airy", "generic_radar": "fake_radar"}
NAMED = [
    "ouster_os0_128",
    "ouster_os0_64",
    "ouster_os1_64",
    "ouster_os2_64",
    "ouster_osdome_64",
    "realsense_d455",
    "oak_d",
    "oak_d_pro_w",
    "st_vl53l5cx",
    "pmd_flexx2",
    "robosense_airy",
]
"""spec/aerial_gym 7.7, those that are hardware."""


@pytest.fixture
def published(data_dir: Path) -> dict[str, Any]:
    data = json.loads((data_dir / "aerial_gym" / "sensors.json").read_text())
    return {**data["cameras"], **data["range_sensors"]}


def test_every_published_sensor_is_there_with_every_number(published: dict[str, Any]) -> None:
    ours = {RENAMED.get(name, name): name for name in device_names()}
    assert set(published) <= set(ours)
    for name, source in published.items():
        item = device(ours[name])
        limits = item.limits
        assert (limits.minimum, limits.maximum) == (source["min_range"], source["max_range"]), name
        assert (limits.near, limits.far) == (source["near_out_of_range_value"], source["far_out_of_range_value"]), name
        assert limits.normalize == source["normalize_range"]
        assert (item.width, item.height) == (source["width"], source["height"])
        assert item.randomize_mount == source["randomize_placement"]
        assert item.points_in_world == source["pointcloud_in_world_frame"]
        assert ("points" in item.channels) == source["return_pointcloud"]
        assert ("semantic_id" in item.channels) == source["segmentation_camera"]
        assert ("normal_world" in item.channels) == source.get("normal_in_world_frame", False)
        assert item.baseline == -source.get("baseline", 0.0)
        _check_noise(item, source["sensor_noise"])
        _check_mount(item, source)
        _check_field(item, source)
        assert "ntnu-arl/aerial_gym_simulator" in item.source


def _check_noise(item: Any, source: dict[str, Any]) -> None:
    noise = item.noise
    assert item.noise_enabled == source["enable_sensor_noise"]
    ours = (noise.a, noise.b, noise.c, noise.offset, noise.multiplier, noise.dropout)
    keys = ("std_a", "std_b", "std_c", "mean_offset", "pixel_std_dev_multiplier", "pixel_dropout_prob")
    assert ours == tuple(source.get(key, 0.0) for key in keys), item.name


def _check_mount(item: Any, source: dict[str, Any]) -> None:
    nominal = source["nominal_position"]
    assert item.mount.position == tuple(nominal)
    np.testing.assert_allclose(item.mount.attitude, from_euler(*np.radians(source["nominal_orientation_euler_deg"])))
    spread = item.mount.spread
    for ours, theirs in ((spread.translation_low, "min_translation"), (spread.translation_high, "max_translation")):
        np.testing.assert_allclose(np.add(ours, nominal), source[theirs], atol=1e-12)
    for ours, theirs in ((spread.euler_low, "min_euler_rotation_deg"), (spread.euler_high, "max_euler_rotation_deg")):
        np.testing.assert_allclose(np.degrees(ours), source[theirs], atol=1e-12)


def _check_field(item: Any, source: dict[str, Any]) -> None:
    if "derived_focal_px" in source:
        assert item.projection.fx == pytest.approx(source["derived_focal_px"], abs=1e-4)
        assert math.degrees(item.projection.vertical_fov) == pytest.approx(source["derived_vertical_fov_deg"], abs=1e-4)
        return
    for ours, theirs in ((item.projection.azimuth, "horizontal"), (item.projection.elevation, "vertical")):
        np.testing.assert_allclose(np.degrees(ours), [source[f"{theirs}_fov_deg_{end}"] for end in ("min", "max")])


def test_flightgoggles_camera(data_dir: Path) -> None:
    source = json.loads((data_dir / "flightgoggles" / "sensors.json").read_text())
    camera, item = device("flightgoggles_camera").projection, source["camera"]
    assert isinstance(camera, Pinhole)
    assert (camera.width, camera.height, camera.cx, camera.cy) == tuple(
        item[k] for k in ("width_px", "height_px", "cx_px", "cy_px")
    )
    assert camera.fx == camera.fy == pytest.approx(item["fx_px"], abs=1e-4)
    laser = source["rangefinder"]
    ranger = device("lightware_sf11b")
    assert ranger.limits.maximum == laser["max_range_m"]
    assert ranger.no_return == laser["no_return_value_m"]
    assert ranger.noise.c**2 == pytest.approx(laser["noise_variance_m2"], rel=1e-12)
    np.testing.assert_array_equal(ranger.projection.rays().directions[0, 0], laser["direction_body"])


@pytest.mark.parametrize("name", NAMED)
def test_hardware_has_a_data_sheet_variant(name: str) -> None:
    sheet = device(f"{name}_datasheet")
    assert sheet.noise_enabled
    assert not sheet.limits.normalize
    assert math.isinf(sheet.limits.far)
    assert "data sheet" in sheet.source or "docs." in sheet.source or "page" in sheet.source


def test_data_sheets_differ_where_the_hardware_does() -> None:
    zones = device("st_vl53l5cx_datasheet")
    assert (zones.height, zones.width, zones.sub_rays) == (8, 8, 3)
    assert isinstance(zones.projection, Spherical)
    np.testing.assert_allclose(np.degrees(zones.projection.azimuth), (-22.5, 22.5))
    assert device("realsense_d455_datasheet").limits.minimum == 0.52
    os1 = device("ouster_os1_64_datasheet").projection
    assert isinstance(os1, Spherical)
    assert math.degrees(os1.elevation[1] - os1.elevation[0]) == pytest.approx(42.4)
    wide = device("oak_d_pro_w_datasheet").projection
    assert isinstance(wide, Fisheye)
    # 127 degrees across 1280 pixels of an equidistant lens are 79.4 across 800: the sheet's 79.5.
    rays = wide.unproject([[640.0, 0.0], [640.0, 800.0]])
    assert math.degrees(math.acos(rays[0] @ rays[1])) == pytest.approx(79.5, abs=0.2)


@pytest.mark.parametrize("name", device_names())
def test_every_device_makes_a_sensor(name: str) -> None:
    item = device(name)
    sensor = make_sensor(item)
    assert item.summary
    assert item.source
    assert item.rate > 0
    assert sensor.name == name
    assert hash(item.name)


def test_mistakes_get_one_sentence() -> None:
    with pytest.raises(UnknownNameError, match="Closest: 'ouster_os0_128'"):
        device("ouster_os0_12")
    entry: dict[str, Any] = {"kind": "lidar", "projection": {"model": "spherical", "width": 4, "height": 4}}
    with pytest.raises(AirworthyError, match="Unknown field of the limits of device 'mine' 'max'"):
        device_from("mine", {**entry, "limits": {"max": 3.0}})
    with pytest.raises(AirworthyError, match="Unknown kind of sensor 'sonar'"):
        device_from("mine", {**entry, "kind": "sonar"})
    with pytest.raises(AirworthyError, match="Unknown projection model 'flat'"):
        device_from("mine", {**entry, "projection": {"model": "flat"}})
    with pytest.raises(AirworthyError, match="The projection of device 'mine' cannot be used"):
        device_from("mine", {**entry, "projection": {"model": "spherical", "colour": 4}})
    with pytest.raises(AirworthyError, match="asks for channel 'depht'"):
        make_sensor(device("oak_d").variant(channels=("depht",)))
    with pytest.raises(AirworthyError, match="Unknown field of a device 'size'"):
        device("oak_d").variant(size=3)


def test_mounts_are_drawn_within_their_boxes_per_flight() -> None:
    mount = device("realsense_d455").mount
    keys = Draw.of(4000, seed=3).keys
    position, attitude = mount.drawn(keys, 7)
    low, high = np.array([0.07, -0.06, 0.01]), np.array([0.12, 0.03, 0.04])
    assert ((position >= low) & (position <= high)).all()
    # The mean of 4,000 uniform numbers lies within 5 standard errors of the middle.
    np.testing.assert_allclose(position.mean(0), (low + high) / 2, atol=5 * (high - low).max() / math.sqrt(12 * 4000))
    assert np.abs(2 * np.arccos(np.clip(np.abs(attitude[:, 3]), 0, 1))).max() <= math.radians(5) * math.sqrt(3) + 1e-6
    alone, _ = mount.drawn(keys[17:18], 7)
    np.testing.assert_array_equal(alone[0], position[17])
    other, _ = mount.drawn(keys, 8)
    assert not (other == position).any(axis=1).any()


def test_a_fixed_mount_draws_nothing() -> None:
    position, attitude = Mount((0.1, 0.2, 0.3)).drawn(Draw.of(3).keys, 0)
    np.testing.assert_array_equal(position, [[0.1, 0.2, 0.3]] * 3)
    np.testing.assert_array_equal(attitude, [[0, 0, 0, 1]] * 3)
