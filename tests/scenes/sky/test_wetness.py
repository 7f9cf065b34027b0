"""Rain: what it takes of the sight, and what it makes of the ground."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.scenes import (
    Haze,
    Rain,
    Scene,
    Sky,
    SkyVariation,
    read_scene,
    scene_digest,
    under_sky,
    weather_named,
    write_scene,
)
from airworthy.scenes.sky import visibility
from airworthy.scenes.sky.weather import drawn_weather
from airworthy.scenes.sky.wetness import drop_slope, in_rain, rain_extinction, soaked


def test_the_drops_bring_as_much_water_as_the_rate_says() -> None:
    # Marshall and Palmer fitted measured drops; with their speeds they carry the rate to within a fifth.
    for rate in (2.0, 10.0, 30.0):
        diameter = np.linspace(0.01, 8.0, 4000)
        speed = 9.65 - 10.3 * np.exp(-0.6 * diameter)
        number = 8000.0 * np.exp(-drop_slope(rate) * diameter)
        carried = np.sum(np.pi / 6.0 * diameter**3 * np.maximum(speed, 0.0) * number) * (diameter[1] - diameter[0])
        assert carried * 1e-6 * 3600.0 == pytest.approx(rate, rel=0.25)


def test_rain_takes_sight_as_the_sum_of_its_drops() -> None:
    diameter = np.linspace(0.0, 20.0, 20001)
    area = np.pi / 4.0 * diameter**2 * 8000.0 * np.exp(-drop_slope(10.0) * diameter)
    # Twice the cross-section, for large drops; mm2 per m3.
    assert rain_extinction(10.0) == pytest.approx(2.0 * 1e-6 * np.sum(area) * (diameter[1] - diameter[0]), rel=1e-3)
    assert 2000.0 < visibility(in_rain(Haze(), Rain(rate=10.0))) < 3000.0
    assert in_rain(Haze(), Rain(wetness=1.0)) == Haze()


def test_wet_ground_is_darker_and_neither_black_nor_white_change() -> None:
    albedo = np.linspace(0.0, 1.0, 11)
    assert (soaked(albedo)[1:-1] < albedo[1:-1]).all()
    np.testing.assert_allclose(soaked([0.0, 1.0]), [0.0, 1.0])


def test_rain_is_in_scene_files_and_a_dry_place_keeps_its_digest(tmp_path: Path) -> None:
    dry = Scene("s")
    wet = under_sky(dry, Sky(model="daylight"), Haze(), Rain(5.0, 0.75, 0.25))
    write_scene(wet, tmp_path / "place")
    assert read_scene(tmp_path / "place").rain == wet.rain
    assert scene_digest(under_sky(dry, wet.sky)) == scene_digest(under_sky(dry, wet.sky, Haze(), Rain()))
    assert scene_digest(wet) != scene_digest(under_sky(dry, wet.sky))
    assert weather_named("rain").rain.rate > 0.0
    with pytest.raises(AirworthyError, match="rate"):
        Rain(rate=-1.0)


def test_rain_is_drawn_for_a_share_of_environments() -> None:
    drawn = [drawn_weather(number, 3, SkyVariation(rainy=0.4, rate=(2.0, 20.0))).rain for number in range(300)]
    assert np.mean([one.wetness == 1.0 for one in drawn]) == pytest.approx(0.4, abs=0.1)
    falling = [one.rate for one in drawn if one.rate > 0.0]
    assert len(falling) == pytest.approx(60, abs=25)
    assert min(falling) >= 2.0
    assert max(falling) <= 20.0
    with pytest.raises(AirworthyError, match="rate begins at 0"):
        SkyVariation(rate=(0.0, 1.0))
