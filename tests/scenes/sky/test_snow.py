"""Snow: where it lies by slope, cover and chance, and how it is drawn and written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Mesh
from airworthy.scenes import Scene, Sky, SkyVariation, Snow, read_scene, scene_digest, under_sky, weather_named, write_scene
from airworthy.scenes.dressing import dressed
from airworthy.scenes.sky.snow import in_snow, snow_lean, snow_share
from airworthy.scenes.sky.weather import drawn_weather
from airworthy.scenes.vegetation.planting import Planting
from airworthy.scenes.vegetation.tree import LEAVES, TreeForm

PLACES = np.random.default_rng(0).uniform(-40.0, 40.0, (4000, 3))


def lying(cover: float, degrees: float) -> float:
    """Return the mean share of slopes that snow hides."""
    slope = np.radians(degrees)
    return float(snow_share(Snow(cover), np.tile([np.sin(slope), 0.0, np.cos(slope)], (len(PLACES), 1)), PLACES).mean())


def test_more_snow_covers_more_and_steeper_slopes_less() -> None:
    level = [lying(cover, 0.0) for cover in (0.0, 0.1, 0.3, 0.6, 1.0)]
    assert level[0] == pytest.approx(0.0, abs=1e-9)
    assert level == sorted(level)
    assert 0.2 < level[2] < 0.95
    assert level[4] == pytest.approx(1.0, abs=1e-6)
    slopes = [lying(0.6, angle) for angle in (0.0, 35.0, 50.0, 60.0, 66.0, 90.0, 180.0)]
    assert slopes == sorted(slopes, reverse=True)
    assert slopes[0] == slopes[1]
    assert slopes[4:] == [0.0, 0.0, 0.0]


def test_ways_to_the_sky_lean_to_all_sides_alike_and_no_farther_than_told() -> None:
    """30 m up, 6 m aside at most, and in the mean straight up."""
    way = snow_lean(10.0 * PLACES)
    np.testing.assert_array_equal(way[:, 2], 30.0)
    assert np.abs(way[:, :2]).max() <= 6.0
    for aside in way[:, :2].T:
        assert aside.min() < -5.5
        assert aside.max() > 5.5
        # An even lean of 6 m at most deviates by 3.4 m, its mean of 4,000 by 0.055 m: under four of these.
        assert abs(aside.mean()) < 0.2


def test_snow_on_the_ground_lies_in_places_of_some_metres() -> None:
    """The broad side of the tile is 9 m: so far apart, and only so far, the same broad drifts come again."""
    level, line = np.tile([0.0, 0.0, 1.0], (400, 1)), np.zeros((400, 3))
    line[:, 0] = np.linspace(0.0, 9.0, 400, endpoint=False)
    # 17 sides of the small tile are 28.9 m; 153 m are whole numbers of both.
    again = line + np.array([153.0, 0.0, 0.0])
    np.testing.assert_allclose(snow_share(Snow(0.3), level, line), snow_share(Snow(0.3), level, again), atol=1e-9)


def test_ground_below_the_horizon_whitens_by_the_cover() -> None:
    place = Scene("s", sky=Sky(ground=(0.1, 0.2, 0.3)))
    for cover in (0.0, 0.5, 1.0):
        wanted = [c + 0.8 * cover * (w - c) for c, w in zip((0.1, 0.2, 0.3), (0.86, 0.88, 0.90), strict=True)]
        np.testing.assert_allclose(in_snow(place, cover).sky.ground, wanted, rtol=1e-12)


def test_snow_is_in_scene_files_and_a_place_without_keeps_its_digest(tmp_path: Path) -> None:
    bare = under_sky(Scene("s"), Sky(model="daylight"))
    white = in_snow(bare, 0.5)
    write_scene(white, tmp_path / "place")
    assert read_scene(tmp_path / "place").snow == Snow(0.5)
    assert scene_digest(white) != scene_digest(bare)
    assert scene_digest(under_sky(bare, bare.sky, bare.haze, bare.rain)) == scene_digest(bare)
    # What the ground sends back from below the horizon is snow's.
    assert min(white.sky.ground) > max(bare.sky.ground)
    assert weather_named("snow").snow.cover > 0.5
    with pytest.raises(AirworthyError, match="cover"):
        Snow(1.5)


def test_broadleaf_trees_are_seen_bare_under_snow_and_hit_with_their_leaves() -> None:
    planting = Planting()
    for place, kind in enumerate(("birch", "spruce")):
        planting.tree(TreeForm(kind, age=0.2, detail=0), (6.0 * place, 0.0, 0.0))
    hit = planting.solid()
    leaved = planting.joined(Scene("s", sky=Sky(model="daylight"), instances=hit))
    bare = in_snow(leaved, 0.6)
    assert in_snow(leaved, 0.0).instances == leaved.instances
    # Any snow is winter: the least of it bares as many as the most.
    assert in_snow(leaved, 0.01).instances == bare.instances
    for before, after in zip(leaved.instances, bare.instances, strict=True):
        birch = before.shape.startswith("crown/birch")
        assert (after.shape, after.collide, after.covered, after.visible) == (before.shape, True, birch, not birch)
    (look,) = bare.looks
    wood, crown = bare.shapes[look.shape], leaved.shapes[hit[1].shape]
    assert isinstance(wood, Mesh)
    assert isinstance(crown, Mesh)
    assert wood.face_material is not None
    assert (wood.face_material != LEAVES).all()
    assert 0 < len(wood.faces) < len(crown.faces)
    np.testing.assert_array_equal(
        wood.vertices[wood.faces], crown.vertices[crown.faces[np.asarray(crown.face_material) != LEAVES]]
    )
    # What was a look already stays the only one.
    dressed_up = replace(leaved, instances=(), looks=hit)
    assert [item.shape for item in in_snow(dressed_up, 0.5).looks] == [hit[0].shape, look.shape, hit[2].shape, hit[3].shape]


def test_snow_is_drawn_for_a_share_of_environments_and_changes_nothing_else() -> None:
    without = [drawn_weather(number, 3, SkyVariation(rainy=0.4)) for number in range(200)]
    drawn = [drawn_weather(number, 3, SkyVariation(rainy=0.4, snowy=0.3, snow=(0.4, 0.6))) for number in range(200)]
    covers = [one.snow.cover for one in drawn if one.snow.cover > 0.0]
    assert len(covers) == pytest.approx(60, abs=25)
    assert 0.4 <= min(covers) < max(covers) <= 0.6
    for before, after in zip(without, drawn, strict=True):
        assert after.sky == before.sky
        assert after.haze == before.haze
        assert after.rain == before.rain or after.snow.cover > 0.0 == after.rain.wetness
    with pytest.raises(AirworthyError, match="snow reaches"):
        SkyVariation(snow=(0.6, 0.4))


def test_only_forests_and_districts_are_dressed_for_winter() -> None:
    with pytest.raises(AirworthyError, match="no dress"):
        dressed(Scene("s"), sky="snow")
