"""The camera of a policy: one source, so that data, policies and pictures see through the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.core.files import json_text, sha256
from airworthy.learning.datasets import DatasetConfig
from airworthy.learning.datasets.config import described_camera
from airworthy.learning.synthesis import flight_camera
from airworthy.pilots.svnet.contract import PolicyContract, PolicyImage
from airworthy.pilots.svnet.pilot import policy_camera
from airworthy.sensors.carried import policy_cut, vehicle_camera
from airworthy.sensors.devices import Device
from airworthy.vehicles import vehicle

CARL = vehicle("carl")
PUBLISHED = np.array([185.182, 329.246, 113.230, 112.842])
"""fx, fy, cx, cy of the 224 x 224 view [px]. Source: SOUS VIDE's configuration of camera and network, resized and cut."""


def intrinsics(camera: Device) -> Array:
    lens = camera.projection
    return np.array([lens.fx, lens.fy, lens.cx, lens.cy])  # type: ignore[attr-defined]


@pytest.mark.parametrize("side", [224, 112, 64])
@pytest.mark.parametrize("camera", ["camera", "camera_calibrated"])
def test_all_three_see_the_published_view(camera: str, side: int) -> None:
    source = vehicle_camera(CARL, camera, side)
    wanted = PUBLISHED * side / 224
    for found in (
        source,
        flight_camera(CARL, camera, str(side)),
        policy_camera(CARL, PolicyContract(view=PolicyImage.of_side(side)), camera),
    ):
        assert (found.width, found.height, found.channels, found.randomize_mount) == (side, side, ("rgb",), False)
        assert found.mount == source.mount
        np.testing.assert_allclose(intrinsics(found), wanted, atol=1e-3)  # printed to three digits
    assert flight_camera(CARL, camera, str(side)) == source


def test_whole_and_first() -> None:
    whole = vehicle_camera(CARL, "camera")
    assert (whole.width, whole.height) == (640, 360)
    assert whole == flight_camera(CARL, "camera", "full") == vehicle_camera(CARL)
    assert vehicle_camera(CARL, "camera_calibrated") != whole


@pytest.mark.parametrize(
    ("view", "digest"),
    [
        ("224", "ae0993e7889223eac217c1f18ceba5825c0decac359752352c5a1410927a25c5"),
        ("112", "48ace8a4dc4c9c6f9079f134243d79ec78e776b64efabf01568da0835a3cdf8e"),
        ("full", "272eebb781f695375a4183924fec58d5ccf11eda363425c39f95654a930bafc2"),
    ],
)
def test_data_sets_made_before_keep_their_digests(view: str, digest: str) -> None:
    """The camera as a data set's identity holds it, to the last bit of every number."""
    assert sha256(json_text(described_camera(DatasetConfig(view=view)))) == digest


def test_the_numbers_are_the_ones_of_before() -> None:
    for side, wanted in (
        (224, [185.18240000000003, 329.2458666666667, 113.2304, 112.84195555555556]),
        (112, [92.59120000000001, 164.62293333333335, 56.6152, 56.42097777777778]),
    ):
        assert intrinsics(vehicle_camera(CARL, "camera", side)).tolist() == wanted


def test_records_without_such_a_camera() -> None:
    with pytest.raises(AirworthyError, match="carries no camera, which a policy needs"):
        vehicle_camera(vehicle("x500"))
    with pytest.raises(UnknownNameError, match="Unknown camera 'eye'"):
        vehicle_camera(CARL, "eye", 224)
    sensor = CARL.sensors[0]
    bent = replace(CARL, sensors=(replace(sensor, parameters=(*sensor.parameters, ("k1", 0.01))),))
    with pytest.raises(AirworthyError, match="cut from a pinhole's image without distortion; camera 'camera' is no such"):
        vehicle_camera(bent, side=224)
    assert vehicle_camera(bent).projection.distortion.k1 == 0.01  # type: ignore[attr-defined]


@pytest.mark.parametrize(("side", "resized"), [(224, 256), (112, 128), (56, 64), (7, 8), (100, None)])
def test_whole_images_are_cut_as_published(side: int, resized: int | None) -> None:
    found = policy_cut(side, side)
    assert (None if found is None else found.resized[0]) == resized
    if found is not None:
        # Of an odd number of pixels left out there is no middle: the image begins half a pixel further left and up.
        off = 0.5 * ((found.resized[0] - side) % 2) * np.array([0.0, 0.0, 1.0, 1.0])
        np.testing.assert_allclose(found.intrinsics(), PUBLISHED * side / 224 + off, atol=1e-3)


def test_a_cut_of_two_sides() -> None:
    found = policy_cut(224, 56)
    assert found is not None
    assert (found.resized, found.size) == ((256, 64), (224, 56))
    assert policy_cut(224, 50) is None


def test_a_vehicle_without_a_camera_is_told_so() -> None:
    for ask in (
        lambda: flight_camera(vehicle("flightgoggles")),
        lambda: policy_camera(vehicle("flightgoggles"), PolicyContract()),
    ):
        with pytest.raises(AirworthyError, match="'flightgoggles' carries no camera"):
            ask()
