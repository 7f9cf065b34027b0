"""Clouds of a sky: their noise, how much sky they take, that they move with the wind and hide the sun."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.scenes import Sky, SkyVariation, sky_sun
from airworthy.scenes.lights import sky_radiance
from airworthy.scenes.sky.clouds import TILE_SIDE, cloud_tile, over_clouds
from airworthy.scenes.sky.tables import cloud_row, daylight_table, table_irradiance, table_radiance
from airworthy.scenes.sky.weather import drawn_weather

DAY = Sky(model="daylight", elevation=0.8, azimuth=1.0, cumulus=0.4, cirrus=0.3)


def upward(count: int) -> np.ndarray:
    k = np.arange(count) + 0.5
    z, a = 1.0 - 0.8 * k / count, k * np.pi * (3.0 - np.sqrt(5.0))
    return np.stack([np.sqrt(1.0 - z * z) * np.cos(a), np.sqrt(1.0 - z * z) * np.sin(a), z], -1)


def taken(sky: Sky) -> float:
    return float(1.0 - over_clouds(cloud_row(sky), upward(2000), np.zeros((2000, 3)))[1].mean())


def test_the_noise_is_even_and_has_no_seam() -> None:
    tile = cloud_tile()
    np.testing.assert_array_equal(np.sort(tile.reshape(-1)), (np.arange(TILE_SIDE**2) + 0.5) / TILE_SIDE**2)
    inside = np.abs(np.diff(tile, axis=0)).mean()
    assert np.abs(tile[0] - tile[-1]).mean() < 1.5 * inside
    assert np.abs(tile[:, 0] - tile[:, -1]).mean() < 1.5 * inside


def test_more_cumulus_takes_more_of_the_sky() -> None:
    shares = [taken(replace(DAY, cirrus=0.0, cumulus=cumulus)) for cumulus in (0.1, 0.3, 0.6, 1.0)]
    assert shares == sorted(shares)
    # What is seen from below includes the sides of heaps, so that it is more than their ground plan.
    assert shares[0] < 0.3
    assert shares[-1] > 0.9
    assert taken(replace(DAY, cumulus=0.0)) < 0.4


def test_below_the_horizon_there_are_none() -> None:
    down = upward(100) * [1.0, 1.0, -1.0]
    np.testing.assert_array_equal(sky_radiance(DAY, down), table_radiance(daylight_table(DAY), down))


def test_wind_moves_them_as_drift_does() -> None:
    moved = replace(DAY, drift=(60.0 * DAY.wind[0], 60.0 * DAY.wind[1]))
    np.testing.assert_allclose(sky_radiance(DAY, upward(200), 60.0), sky_radiance(moved, upward(200)), rtol=1e-9)


def test_a_cloud_before_the_sun_takes_its_light_and_the_sky_gives_more() -> None:
    bare = replace(DAY, cumulus=0.0, cirrus=0.0)
    whole = sky_sun(bare)
    assert whole is not None
    lights = [sky_sun(replace(DAY, drift=(1000.0 * k, 0.0))) for k in range(11)]
    strengths = [0.0 if sun is None else sun.irradiance for sun in lights]
    assert min(strengths) < 0.05 * whole.irradiance
    assert max(strengths) > 0.9 * whole.irradiance
    up = (0.0, 0.0, 1.0)
    assert table_irradiance(daylight_table(DAY), up)[0] > 1.1 * table_irradiance(daylight_table(bare), up)[0]


def test_clouds_are_drawn_for_a_share_of_environments_and_leave_the_rest_as_it_was() -> None:
    often = SkyVariation(cloudy=0.5)
    skies = [drawn_weather(number, 3, often).sky for number in range(12)]
    cloudy = [sky for sky in skies if sky.cumulus > 0.0]
    assert 2 < len(cloudy) < 10
    assert len({sky.drift for sky in cloudy}) == len(cloudy)
    for number, sky in enumerate(skies):
        alone = drawn_weather(number, 3).sky
        assert replace(sky, cumulus=0.0, cirrus=0.0, drift=(0.0, 0.0)) == alone


@pytest.mark.parametrize("numbers", [{"cumulus": 1.2}, {"cloud_base": 10.0}, {"wind": (200.0, 0.0)}])
def test_numbers_out_of_range_are_refused(numbers: dict[str, float]) -> None:
    with pytest.raises(Exception, match=next(iter(numbers))):
        Sky(model="daylight", **numbers)  # type: ignore[arg-type]
