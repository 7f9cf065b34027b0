"""Streaks of rain and drops on the lens."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box
from airworthy.optics.projections import Pinhole
from airworthy.scenes import Instance, Material, Rain, Scene, SceneBatch
from airworthy.scenes.sky.wetness import DROPS, drop_slope
from airworthy.sensors.build import make_sensor
from airworthy.sensors.devices import device
from airworthy.sensors.realism import RainDrops, RainStreaks, Realism
from airworthy.sensors.realism.chain import develop
from airworthy.sensors.realism.rain import (
    FAR,
    NEAR,
    SMALLEST,
    DropView,
    fall_speed,
    lens_drops,
    rain_cover,
    with_streaks,
)
from airworthy.sensors.sampling import SensorView

DOWN = (0.0, 1.0, 0.0)
OPEN = np.full((120, 160), np.inf)


def cover(rate: float, exposure: float = 0.008, depth: np.ndarray = OPEN, frame: int = 0) -> np.ndarray:
    return rain_cover(rate, DropView(120.0, exposure), depth, np.zeros(3), DOWN, frame=frame)


def test_drops_take_as_much_of_an_image_as_their_cross_sections_over_the_way() -> None:
    diameter = np.linspace(SMALLEST, 12.0, 5000)
    area = np.pi / 4.0 * diameter**2 * DROPS * np.exp(-drop_slope(20.0) * diameter)
    expected = 1e-6 * float(np.sum(area)) * (diameter[1] - diameter[0]) * (FAR - NEAR)
    # A short exposure, in which no streak is too faint to be drawn; a handful of near drops make most of the variance.
    found = np.mean([rain_cover(20.0, DropView(500.0, 1e-4), OPEN, np.zeros(3), DOWN, frame=k).mean() for k in range(40)])
    assert found == pytest.approx(expected, rel=0.15)


def test_a_longer_exposure_draws_longer_and_fainter_streaks() -> None:
    short, long = cover(20.0, 5e-4), cover(20.0, 0.01)
    assert long.max() < 0.5 * short.max()
    runs = [np.mean((image[1:] > 0.002) & (image[:-1] > 0.002)) / np.mean(image > 0.002) for image in (short, long)]
    assert runs[1] > runs[0]


def test_what_stands_before_the_drops_hides_them_and_each_image_has_its_own() -> None:
    assert not cover(20.0, depth=np.full(OPEN.shape, 0.5 * NEAR)).any()
    np.testing.assert_array_equal(cover(20.0), cover(20.0))
    assert (cover(20.0) != cover(20.0, frame=1)).any()
    assert not cover(0.0).any()
    np.testing.assert_array_equal(with_streaks(np.ones((2, 2, 3), np.float32), np.zeros((2, 2), np.float32), np.ones(3)), 1.0)


def test_large_drops_fall_as_fast_as_measured() -> None:
    # Gunn and Kinzer (1949): 1, 2 and 5 mm fall at 4.03, 6.49 and 9.09 m/s.
    np.testing.assert_allclose(fall_speed([1.0, 2.0, 5.0]), [4.03, 6.49, 9.09], rtol=0.03)


def test_drops_on_the_lens_show_the_view_upside_down_and_leave_the_rest() -> None:
    image = np.zeros((2, 90, 120, 3), np.float32)
    image[:, :45] = 1.0
    seen = lens_drops(image, RainDrops(count=6, size=0.08))
    changed = np.abs(seen - image).max(-1) > 1e-6
    assert 0.02 < changed.mean() < 0.6
    np.testing.assert_array_equal(seen[0], seen[1])
    # Where the dark half is before a drop's middle, its lower part is bright.
    assert seen[0, 45:].max() > 0.5
    assert lens_drops(image, RainDrops(count=0)) is image
    np.testing.assert_array_equal(develop(image, Realism(rain_drops=RainDrops(6, 0.08)), None), seen)  # type: ignore[arg-type]


def test_numbers_out_of_range_are_refused() -> None:
    for wrong in (lambda: RainDrops(count=-1), lambda: RainStreaks(exposure=0.0), lambda: DropView(0.0)):
        with pytest.raises(AirworthyError, match="expected"):
            wrong()


def test_a_camera_in_the_rain_sees_streaks_and_another_place_stays_dry() -> None:
    camera = device("flightgoggles_camera").variant(
        projection=Pinhole.from_fov(64, 48, vertical=1.0), rate=50.0, channels=("rgb",)
    )
    dark, wall = {"dark": Material((0.0, 0.0, 0.0, 1.0))}, (Instance("wall", (9.0, 0.0, 0.0), materials=("dark",)),)
    scenes = [Scene("s", {"wall": Box((0.1, 30.0, 30.0))}, dark, instances=wall, rain=Rain(rate)) for rate in (40.0, 0.0)]
    batch = SceneBatch(scenes)

    def seen(realism: Realism | None) -> np.ndarray:
        sensor = make_sensor(camera if realism is None else camera.variant(realism=realism))
        view = SensorView(np.zeros((2, 3)), np.tile([0.0, 0.0, 0.0, 1.0], (2, 1)), np.arange(2))
        return np.asarray(sensor.capture(batch, view)["rgb"])

    plain, rained = seen(None), seen(Realism(rain_streaks=RainStreaks(0.002)))
    np.testing.assert_array_equal(plain[1], rained[1])
    # Drops are as bright as the sky, and show before a dark wall.
    assert (rained[0] - plain[0]).max() > 0.01
    assert (rained[0] - plain[0]).min() >= 0.0
    np.testing.assert_array_equal(seen(Realism(rain_streaks=RainStreaks(0.002))), rained)
