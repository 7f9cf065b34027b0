"""The stereo shadow of two planes against its closed form, and disparity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from airworthy.geometry import Box
from airworthy.optics.projections import Pinhole
from airworthy.sensors.build import make_sensor
from airworthy.sensors.camera import depth_of, disparity
from airworthy.sensors.devices import device

CAMERA = Pinhole.from_fov(240, 12, horizontal=np.radians(87.0))
BASELINE = 0.095
EDGE, NEAR, FAR = 0.2, 2.0, 6.0
"""A panel at depth 2 m that begins 0.2 m right of the axis, before a wall at 6 m."""


def _panel() -> tuple[Any, Any]:
    return (Box((0.005, 5.0, 50.0)), (NEAR + 0.005, -5.0 - EDGE, 0.0))


def _hidden_from_the_second_eye(x: np.ndarray) -> np.ndarray:
    """Whether the line from wall point (x, FAR) to the eye (BASELINE, 0) passes the panel, x to the right of the first eye."""
    crossing = BASELINE + (x - BASELINE) * NEAR / FAR
    return crossing > EDGE


def _expected(depth: float) -> np.ndarray:
    """Columns whose ray misses the panel and whose point at this depth the second eye cannot see."""
    x = (np.arange(240) + 0.5 - CAMERA.cx) / CAMERA.fx
    return (x * NEAR < EDGE) & _hidden_from_the_second_eye(x * depth)


def test_shadow_of_a_panel_on_a_wall(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    """The second eye is to the right and sees less of what lies left of the panel: a strip of the wall is lost."""
    item = device("stereo_camera").variant(projection=CAMERA, channels=("depth", "true_depth"))
    out = make_sensor(item).capture(place(_panel(), (Box((0.5, 50.0, 50.0)), (FAR + 0.5, 0, 0))), view())
    shadow = (out["depth"] == -1.0)[0]
    expected = _expected(FAR) | _beyond(FAR)
    # The strip's edge falls between columns; the start at 0.999 of the range moves it by 6 mm, less than a column's 47 mm.
    np.testing.assert_array_equal(shadow.all(axis=0), shadow.any(axis=0))
    assert np.abs(shadow.all(axis=0).astype(int) - expected).sum() <= 1
    width = FAR * BASELINE / NEAR - BASELINE
    assert shadow.all(axis=0).sum() == pytest.approx(width / FAR * CAMERA.fx + CAMERA.fx * BASELINE / FAR, abs=2.0)
    np.testing.assert_allclose(out["true_depth"][0][shadow], FAR, atol=1e-4)


def test_shadow_at_the_far_plane(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    """Where nothing is hit, the point at the far plane (10 m along the ray) is asked."""
    item = device("stereo_camera").variant(projection=CAMERA, channels=("depth",))
    depth = make_sensor(item).capture(place(_panel()), view())["depth"][0, 6]
    x = (np.arange(240) + 0.5 - CAMERA.cx) / CAMERA.fx
    y = 6.5 - CAMERA.cy
    along = 10.0 / np.sqrt(1.0 + x**2 + (y / CAMERA.fx) ** 2)
    crossing = BASELINE + (x * along - BASELINE) * NEAR / along
    expected = (x * NEAR < EDGE) & (crossing > EDGE) | (x - BASELINE / along < -CAMERA.cx / CAMERA.fx)
    assert expected.sum() >= 3
    assert np.abs((depth == -1.0).astype(int) - expected).sum() <= 1
    np.testing.assert_array_equal(depth[2:100], 1.0)  # two columns are beyond the second eye's image


def _beyond(depth: float) -> np.ndarray:
    """Columns whose point at this depth lies left of the second eye's image."""
    x = (np.arange(240) + 0.5 - CAMERA.cx) / CAMERA.fx
    return x - BASELINE / depth < -CAMERA.cx / CAMERA.fx


@pytest.mark.parametrize("depth", [0.5, 1.0, 4.0])
def test_an_open_wall_has_a_blind_band_and_no_shadow(place: Callable[..., Any], view: Callable[..., Any], depth: float) -> None:
    """Left of the first focal length x baseline / depth columns the second eye's image has ended; all else is measured."""
    item = device("stereo_camera").variant(projection=CAMERA, channels=("depth", "disparity"))
    out = make_sensor(item).capture(place((Box((0.5, 50.0, 50.0)), (depth + 0.5, 0, 0))), view())
    blind = (out["depth"] == -1.0)[0]
    np.testing.assert_array_equal(blind.all(axis=0), blind.any(axis=0))
    band = int(blind[0].sum())
    assert blind[0, :band].all()
    assert band == pytest.approx(CAMERA.fx * BASELINE / depth, abs=1.0)
    np.testing.assert_allclose(out["depth"][0][~blind], depth / 10.0, atol=1e-6)
    np.testing.assert_allclose(out["disparity"][0][~blind], CAMERA.fx * BASELINE / depth, rtol=1e-5)


def test_disparity_of_flightgoggles() -> None:
    """fx 548.41, baseline 0.32 m, 10 m: 17.55 px (spec/flightgoggles 10, check 12)."""
    camera = device("flightgoggles_camera").projection
    assert isinstance(camera, Pinhole)
    assert camera.fx == pytest.approx(548.41, abs=0.005)
    assert disparity(10.0, camera.fx, 0.32) == pytest.approx(17.55, abs=0.005)
    left, _ = camera.project((1.0, 0.5, 10.0))
    right, _ = camera.project((1.0 - 0.32, 0.5, 10.0))
    assert left[0] - right[0] == pytest.approx(17.55, abs=0.005)
    assert depth_of(disparity(10.0, camera.fx, 0.32), camera.fx, 0.32) == pytest.approx(10.0)
    assert disparity(np.inf, camera.fx, 0.32) == 0.0
