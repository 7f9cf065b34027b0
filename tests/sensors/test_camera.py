"""Depth cameras: what they measure of a wall, and what they leave out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_euler
from airworthy.geometry import Box, Sphere
from airworthy.optics.projections import Fisheye, Pinhole, UserRays
from airworthy.sensors.build import make_sensor
from airworthy.sensors.devices import device
from airworthy.sensors.noise import RangeLimits

SMALL = Pinhole.from_fov(32, 24, horizontal=1.2)
WALL = Box((0.5, 50.0, 50.0))


def test_a_wall_has_one_depth_and_many_ranges(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    """Depth is along the axis; range is depth over the cosine of the ray."""
    camera = make_sensor(device("oak_d").variant(projection=SMALL, limits=RangeLimits(), channels=("depth", "range", "points")))
    out = camera.capture(place((WALL, (5.5, 0, 0))), view())
    # Hits are good to 1e-4 m at 10 m (quality.md 8); this wall is nearer and axis-aligned.
    np.testing.assert_allclose(out["depth"], 5.0, atol=1e-5)
    cosine = SMALL.rays().directions[..., 2]
    np.testing.assert_allclose(out["range"][0], 5.0 / cosine, atol=1e-5)
    np.testing.assert_allclose(out["points"][0], 5.0 / cosine[..., None] * SMALL.rays().directions, atol=2e-5)


def test_the_camera_frame_is_x_right_y_down(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    """A sphere to the left of the body (world y > 0) and above appears left of and above the middle."""
    camera = make_sensor(device("oak_d").variant(projection=SMALL, channels=("instance",)))
    out = camera.capture(place((Sphere(0.4), (5.0, 1.0, 0.7))), view())["instance"][0]
    row, column = np.argwhere(out == 0).mean(0) + 0.5
    expected, _ = SMALL.project((-1.0, -0.7, 5.0))
    # The mean of a disc of some 40 pixels, against its centre: a tenth of a pixel would be chance, one is not.
    np.testing.assert_allclose((column, row), expected, atol=0.5)


def test_normalised_depth_of_the_published_camera(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    camera = make_sensor(device("base_depth_camera").variant(projection=SMALL))
    near, middle, far = (
        camera.capture(place((WALL, (d + 0.5, 0, 0))), view(), ("depth", "semantic_id")) for d in (0.1, 4.0, 20.0)
    )
    np.testing.assert_array_equal(near["depth"], -1.0)
    np.testing.assert_allclose(middle["depth"], 0.4, atol=1e-6)
    np.testing.assert_array_equal(far["depth"], 1.0)
    assert (middle["semantic_id"] == 3).all()
    assert (far["semantic_id"] == -2).all()


def test_true_values_stay_beside_noisy_ones(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    item = device("realsense_d455").variant(projection=SMALL, noise_enabled=True)
    out = make_sensor(item).capture(place((WALL, (4.5, 0, 0))), view(), ("depth", "true_depth", "valid"))
    np.testing.assert_allclose(out["true_depth"], 4.0, atol=1e-5)
    assert out["depth"].std() > 0.001
    np.testing.assert_array_equal(out["valid"], out["depth"] > 0)


def test_without_draws_there_is_no_noise(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    item = device("realsense_d455").variant(projection=SMALL, noise_enabled=True)
    out = make_sensor(item).capture(place((WALL, (4.5, 0, 0))), view(draw=None), ("depth",))
    np.testing.assert_allclose(out["depth"] * 15.0, 4.0, atol=1e-5)


def test_points_in_the_world(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    item = device("oak_d").variant(projection=SMALL, limits=RangeLimits(), points_in_world=True, channels=("points",))
    attitude = from_euler(0.3, -0.2, 0.4)[None]
    points = make_sensor(item).capture(place((WALL, (5.5, 0, 0))), view((1.0, 2.0, 3.0), attitude=attitude))["points"]
    np.testing.assert_allclose(points[..., 0], 5.0, atol=1e-5)


def test_a_fisheye_sees_behind_itself_and_nothing_outside_its_circle(
    place: Callable[..., Any], view: Callable[..., Any]
) -> None:
    lens = Fisheye(64, 64, 12.0, 12.0, 32.0, 32.0, angle_max=2.2)
    item = device("oak_d").variant(projection=lens, limits=RangeLimits(), channels=("range", "instance"))
    out = make_sensor(item).capture(place((Sphere(10.0), (0, 0, 0))), view())
    mask = lens.mask()
    assert mask is not None
    np.testing.assert_allclose(out["range"][0][mask], 10.0, atol=1e-5)
    assert np.isinf(out["range"][0][~mask]).all()
    assert (out["instance"][0][~mask] == -1).all()


def test_a_users_rays(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    rays = UserRays(np.array([[[1.0, 0, 0], [1.0, 1.0, 0]]]))
    item = device("base_lidar").variant(projection=rays, limits=RangeLimits(), noise_enabled=False, channels=("range",))
    out = make_sensor(item).capture(place((WALL, (5.5, 0, 0))), view())["range"]
    np.testing.assert_allclose(out, [[[5.0, 5.0 * np.sqrt(2)]]], atol=1e-5)


def test_a_mono_camera_has_no_disparity(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    with pytest.raises(AirworthyError, match="has no disparity"):
        make_sensor(device("oak_d")).capture(place((WALL, (5.5, 0, 0))), view(), ("disparity",))
