"""Weather by name, by time, in scene files, and drawn for every environment."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.scenes import (
    Haze,
    PointLight,
    Scene,
    Sky,
    SkyVariation,
    Sun,
    check_scene,
    read_scene,
    scene,
    scene_digest,
    sky_sun,
    under_sky,
    varied,
    weather_named,
    write_scene,
)
from airworthy.scenes.sky import SKIES, visibility
from airworthy.scenes.sky.stars import moonlight
from airworthy.scenes.sky.weather import drawn_weather

DAY = Sky(model="daylight", elevation=0.3, azimuth=-1.0, turbidity=4.0, cover=0.25, night=0.01)
FOG = Haze(0.05, 12.5, -1.0, (0.9, 0.8, 0.7), 0.5)


def written(folder: Path, text: str) -> Path:
    (folder / "scene.toml").write_text(f'version = 1\nname = "place"\n{text}')
    return folder


# ---- By name and by time ----------------------------------------------------------------------------------------------------


def test_every_name_is_weather_and_the_sun_comes_with_the_sky() -> None:
    lamp = PointLight((1.0, 2.0, 3.0))
    for name, given in SKIES.items():
        place = under_sky(Scene("s", lights=(Sun((0.0, 0.0, -1.0)), lamp)), given.sky, given.haze)
        sun = sky_sun(given.sky) or moonlight(given.sky)
        assert place.lights == ((lamp,) if sun is None else (sun, lamp)), name
        assert weather_named(name) == given
        assert not [line for line in check_scene(place) if "sun" in line], name


def test_a_time_is_the_clear_sky_of_that_time() -> None:
    noon, far = weather_named("2026-06-21T13:26+02:00").sky, weather_named("2026-06-21T13:26+02:00@-33.9,151.2").sky
    # At the solstice the sun is 23.44 degrees north of the equator.
    assert math.degrees(noon.elevation) == pytest.approx(90.0 - 47.40 + 23.44, abs=0.1)
    assert far.elevation < 0.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nooon", "Unknown sky 'nooon'. Closest: 'noon'"),
        ("2026-06-21T12:00", "names no time zone"),
        ("2026-06-21T25:00Z", "neither a name nor a time"),
        ("2026-06-21T12:00Z@north", "neither a name nor a time"),
        ("2026-06-21T12:00Z@99,0", "no place at 99.0"),
    ],
)
def test_other_texts_are_refused_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(AirworthyError) as found:
        weather_named(text)
    assert said in str(found.value)
    assert "\n" not in str(found.value)


def test_visibility_is_where_two_percent_of_a_contrast_are_left() -> None:
    assert visibility(Haze()) == math.inf
    haze = Haze(0.02)
    assert math.exp(-haze.density * visibility(haze)) == pytest.approx(0.02, rel=1e-3)


# ---- Scene files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sky", [DAY, replace(DAY, elevation=-0.5), replace(DAY, cover=1.0), Sky()])
@pytest.mark.parametrize("lights", ["sky's", "none", "own", "lamp"])
def test_skies_and_haze_come_back_to_the_bit(sky: Sky, lights: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {"none": (), "own": (Sun((0.0, 0.6, -0.8)),), "lamp": (PointLight((0.0, 0.0, 2.0)),)}
    place = Scene("s", sky=sky, haze=FOG, lights=given.get(lights, ()))
    if lights == "sky's" and sky.model == "daylight":
        place = under_sky(place, sky)
    write_scene(place, tmp_path)
    back = read_scene(tmp_path)
    assert back == place
    assert scene_digest(back) == scene_digest(place)


@pytest.mark.parametrize(
    ("sky", "idle"),
    [
        ("elevation = 0.3\nstars = 1.0", 'elevation, stars changes nothing without model = "daylight"'),
        ('model = "daylight"\nzenith = [0.1, 0.2, 0.3]', 'zenith changes nothing without model = "gradient"'),
        ('model = "daylight"\nelevation = 0.3\nground = [0.1, 0.1, 0.1]', ""),
        ("zenith = [0.1, 0.2, 0.3]\nintensity = 0.5", ""),
    ],
)
def test_numbers_that_a_files_sky_does_not_read_are_told(sky: str, idle: str, tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AssetWarning)
        read_scene(written(tmp_path, f"[sky]\n{sky}\n"))
    said = [str(item.message) for item in caught]
    assert len(said) == bool(idle)
    assert all(idle in line for line in said)


def test_a_file_with_a_sky_by_daylight_has_its_sun(tmp_path: Path) -> None:
    text = '[sky]\nmodel = "daylight"\nelevation = 0.3\nturbidity = 3.0\n[haze]\ndensity = 0.01\n'
    place = read_scene(written(tmp_path, text))
    assert place.lights == (sky_sun(place.sky),)
    assert place.haze == Haze(0.01)
    lamp = read_scene(written(tmp_path, text + '[[lights]]\nkind = "point"\nposition = [0.0, 0.0, 3.0]\n'))
    assert [type(light) for light in lamp.lights] == [Sun, PointLight]
    own = read_scene(written(tmp_path, text + '[[lights]]\nkind = "sun"\ndirection = [0.0, 0.0, -1.0]\n'))
    assert own.lights == (Sun((0.0, 0.0, -1.0)),)
    assert any("degrees from where its sky by daylight has it" in line for line in check_scene(own))
    assert read_scene(written(tmp_path, text.replace("[haze]", "sun = false\n[haze]"))).lights != place.lights


def test_a_file_names_a_time_and_a_place(tmp_path: Path) -> None:
    moment = "[sky]\ntime = 2026-06-21T12:00:00Z\nlatitude = 47.4\nlongitude = 8.5\nturbidity = 2.0\n"
    place = read_scene(written(tmp_path, moment))
    wanted = weather_named("2026-06-21T12:00Z@47.4,8.5").sky
    assert place.sky == replace(wanted, turbidity=2.0)
    assert read_scene(written(tmp_path, moment.replace("2026-06-21T12:00:00Z", '"2026-06-21T14:00:00+02:00"'))).sky == place.sky
    base = read_scene(written(tmp_path, 'base = "forest:3"\n' + moment))
    assert base.lights == (sky_sun(place.sky),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[sky]\nmodel = "dayligth"', "sky.model"),
        ("[sky]\nturbidity = 11.0", "sky.turbidity must be a number, 1 to 10, but is 11.0"),
        ("[sky]\nelevation = 80.0", "sky.elevation must be a number"),
        ("[sky]\nelevatoin = 0.8", "unknown key 'elevatoin' (closest: 'elevation')"),
        ("[sky]\ntime = 2026-06-21T12:00:00Z", "all of one, and none of the other"),
        ("[sky]\ntime = 2026-06-21T12:00:00\nlatitude = 1.0\nlongitude = 1.0", "names no time zone"),
        ('[sky]\ntime = "noon"\nlatitude = 1.0\nlongitude = 1.0', "sky.time must be a date and time with its zone"),
        ("[sky]\ntime = 2026-06-21T12:00:00Z\nlatitude = 100.0\nlongitude = 1.0", "no place at 100.0"),
        ("[haze]\ndensity = -0.1", "haze.density must be a number, 0 to 1000 1/m, but is -0.1"),
        ("[haze]\ncolor = [1.0, 1.0, 2.0]", "haze.color[2] must be a number, 0 to 1, but is 2.0"),
        ("[haze]\nasymmetry = 1.0", "haze.asymmetry"),
        ("[haze]\nvisibility = 100.0", "unknown key 'visibility'"),
    ],
)
def test_mistakes_in_files_are_one_sentence(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(AirworthyError) as found:
        read_scene(written(tmp_path, text + "\n"))
    assert said in str(found.value)
    assert "\n" not in str(found.value)


# ---- Drawn ------------------------------------------------------------------------------------------------------------------


def test_drawn_weather_is_a_function_of_seed_and_number_within_its_ranges() -> None:
    variation = SkyVariation((-0.1, 0.9), (-1.0, 2.0), (2.0, 5.0), 0.4, 0.5, (30.0, 900.0), (0.5, 2.0))
    drawn = [drawn_weather(number, 3, variation) for number in range(300)]
    assert drawn[17] == drawn_weather(17, 3, variation)
    assert drawn[17] != drawn_weather(17, 4, variation)
    skies = [one.sky for one in drawn]
    for name in ("elevation", "azimuth", "turbidity", "intensity"):
        values, (low, high) = np.array([getattr(sky, name) for sky in skies]), getattr(variation, name)
        assert values.min() >= low
        assert values.max() <= high
        # Of 300 draws the extremes come near both ends.
        assert values.max() - values.min() > 0.9 * (high - low)
    assert len({sky.turbidity for sky in skies}) <= 13
    assert np.mean([sky.cover for sky in skies]) == pytest.approx(0.4, abs=0.1)
    seen = np.array([visibility(one.haze) for one in drawn])
    assert np.isfinite(seen).mean() == pytest.approx(0.5, abs=0.1)
    assert seen.min() >= 30.0
    assert seen[np.isfinite(seen)].max() <= 900.0


def test_a_varied_place_shares_what_is_large() -> None:
    place = scene("forest:1")
    one, two = varied(place, 0), varied(place, 1)
    assert one.shapes is place.shapes
    assert one.instances is place.instances
    assert one.sky != two.sky
    assert scene_digest(varied(place, 0)) == scene_digest(one)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({"elevation": (1.0, 0.5)}, "reaches from 1 down to 0.5"),
        ({"turbidity": (0.0, 3.0)}, "SkyVariation.turbidity"),
        ({"visibility": (0.0, 3.0)}, "SkyVariation.visibility"),
        ({"intensity": (0.0, 3.0)}, "begins at 0"),
        ({"hazy": 2.0}, "SkyVariation.hazy is 2; expected 0 to 1"),
    ],
)
def test_ranges_that_no_sky_has_are_refused(numbers: dict[str, Any], said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        SkyVariation(**numbers)


def test_moonlight_comes_from_the_moon_and_only_after_dusk() -> None:
    night = Sky(model="daylight", elevation=-0.5, azimuth=2.5, moon_elevation=0.6, moon_azimuth=-0.7)
    light = moonlight(night)
    assert light is not None
    towards = (math.cos(0.6) * math.cos(-0.7), math.cos(0.6) * math.sin(-0.7), math.sin(0.6))
    np.testing.assert_allclose(light.direction, [-component for component in towards], atol=1e-12)
    # Told from 0.1 rad below the horizon on, about the end of civil twilight.
    for elevation, lit in ((0.05, False), (0.0, False), (-0.09, False), (-0.11, True)):
        assert (moonlight(replace(night, elevation=elevation)) is not None) == lit
    assert moonlight(replace(night, moon_elevation=-0.1)) is None
