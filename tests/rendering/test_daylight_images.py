"""Images under skies by daylight and in haze: the kernel against its float64 twin, and the promises of its bits."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.rendering.test_shading import EVERYTHING, FLOOR, GREY, LAMBERT, ON_FLOOR, down, place, room, visible_from

from airworthy.geometry import Box, RayTable, Sphere
from airworthy.rendering import shading
from airworthy.rendering.baking import BakeSettings
from airworthy.rendering.light_baking import bake, relit, scene_hash
from airworthy.rendering.shading import Cameras, ShadingOptions, shade, shade_channels
from airworthy.scenes import (
    Haze,
    Instance,
    Material,
    Scene,
    SceneBatch,
    Sky,
    SkyVariation,
    Sun,
    scene,
    scene_digest,
    under_sky,
    varied,
)
from airworthy.scenes.lights import sky_radiance
from airworthy.scenes.sky.haze import airlight, haze_row, haze_transmittance, with_haze
from airworthy.scenes.sky.tables import daylight_table, table_irradiance

DAY = Sky(model="daylight", elevation=0.5, azimuth=1.0, turbidity=3.0)
DUSK = Sky(model="daylight", elevation=-0.05, azimuth=-2.0)
FOG = Haze(0.02, 30.0, 1.0, (1.0, 0.9, 0.8), 0.6)
# Single precision through square roots and a table: some parts in 1e5.
CLOSE = {"rtol": 1e-4, "atol": 1e-9}


def spiral(count: int) -> np.ndarray:
    k = np.arange(count) + 0.5
    z, a = 1.0 - 2.0 * k / count, k * np.pi * (3.0 - np.sqrt(5.0))
    return np.stack([np.sqrt(1.0 - z * z) * np.cos(a), np.sqrt(1.0 - z * z) * np.sin(a), z], -1)


def looking(batch: SceneBatch, directions: np.ndarray, height: float = 1.7, options: ShadingOptions = LAMBERT) -> np.ndarray:
    """Colours (n, 3) seen along unit directions (n, 3) from over the origin."""
    table = RayTable(directions[None])
    return shade(batch, table, [[0.0, 0.0, height]], [[0.0, 0.0, 0.0, 1.0]], options=options)[0, 0]


@pytest.mark.parametrize("sky", [DAY, DUSK, replace(DAY, cover=0.6), replace(DUSK, elevation=-0.6)])
def test_the_sky_of_an_image_is_that_of_the_twin(sky: Sky) -> None:
    directions = np.concatenate([spiral(500), [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]]])
    np.testing.assert_allclose(looking(place(sky=sky, instances=()), directions), sky_radiance(sky, directions), **CLOSE)


@pytest.mark.parametrize("time", [0.0, 40.0])
def test_clouds_of_an_image_are_those_of_the_twin(time: float) -> None:
    sky, directions = replace(DAY, cumulus=0.5, cirrus=0.5, drift=(3000.0, -2000.0)), spiral(800)
    batch = place(sky=sky, instances=(), lights=())
    batch.advance(time)
    found, expected = looking(batch, directions), sky_radiance(sky, directions, time)
    # A place in the noise of far clouds is known to 1/300 texel in single precision, and edges are steep.
    np.testing.assert_allclose(found, expected, rtol=0.02)
    assert np.abs(found / expected - 1.0).mean() < 1e-4
    assert np.abs(expected / sky_radiance(replace(sky, cumulus=0.0, cirrus=0.0), directions) - 1.0).max() > 0.5


def test_stars_and_moon_of_an_image_are_those_of_the_twin() -> None:
    sky = Sky(model="daylight", elevation=-0.5, azimuth=0.5, stars=1.0, moon_elevation=0.6, moon_azimuth=2.0)
    moon = np.array([np.cos(0.6) * np.cos(2.0), np.cos(0.6) * np.sin(2.0), np.sin(0.6)])
    disc = moon + 0.01 * (np.random.default_rng(1).random((300, 3)) - 0.5)
    directions = np.concatenate([spiral(20000), disc / np.linalg.norm(disc, axis=-1, keepdims=True)])
    bare = sky_radiance(replace(sky, stars=0.0, moon_elevation=-0.5), directions)
    found, expected = looking(place(sky=sky, instances=(), lights=()), directions), sky_radiance(sky, directions)
    # Dots are 1/800 of a radian wide, whose edges single precision moves by some parts in 1e4 of that.
    np.testing.assert_allclose(found, expected, rtol=0.01, atol=0.01 * float(bare.mean()))
    seen = (expected - bare)[:, 1] > 0.2 * bare[:, 1]
    # One dot in each of 9,600 cells, each 5.3e-6 sr.
    assert 0.3 < seen[:20000].sum() / (20000 * 4800 * 5.3e-6 / (4.0 * np.pi)) < 1.2
    assert 20 < seen[20000:].sum() < 300


@pytest.mark.parametrize("sky", [DAY, DUSK])
def test_a_ball_under_the_sky_is_lit_by_the_irradiance_of_its_normals(sky: Sky) -> None:
    batch = place(shapes={"ball": Sphere(0.5)}, instances=(Instance("ball", (0.0, 3.0, 1.7), materials=("m",)),), sky=sky)
    table = RayTable(np.stack([spiral(300)[:, 0] * 0.16, np.ones(300), spiral(300)[:, 2] * 0.16], -1)[None])
    cameras = Cameras.of(batch, table, [[0.0, 0.0, 1.7]], [[0.0, 0.0, 0.0, 1.0]])
    found = shade_channels(batch, table, cameras, ("rgb", "normal"), LAMBERT)
    hit = np.abs(found["normal"][0, 0]).sum(-1) > 0.5
    assert hit.sum() > 200
    expected = table_irradiance(daylight_table(sky), found["normal"][0, 0, hit]) / np.pi * GREY.base_color[:3]
    np.testing.assert_allclose(found["rgb"][0, 0, hit], expected, rtol=1e-3)


# ---- Haze -------------------------------------------------------------------------------------------------------------------


def test_a_contrast_fades_by_the_exponential_of_the_distance() -> None:
    glowing = {"m": Material((0.0, 0.0, 0.0, 1.0), emissive=(2.0, 2.0, 2.0)), "n": Material((0.0, 0.0, 0.0, 1.0))}
    for distance in (5.0, 40.0, 300.0):
        pair = tuple(
            Instance("wall", (distance + 0.5, side, 0.0), materials=(name,)) for side, name in ((-0.6, "m"), (0.6, "n"))
        )
        batch = place(shapes={"wall": Box((0.5, 0.5, 0.5))}, materials=glowing, instances=pair, haze=Haze(0.01, 0.0), sky=DAY)
        sides = np.array([[distance, -0.6, 0.0], [distance, 0.6, 0.0]])
        lengths = np.linalg.norm(sides, axis=1)
        bright, dark = looking(batch, sides / lengths[:, None], 0.0)
        fade = np.exp(-0.01 * lengths)
        # The airlight between is the same to both: what is left of 2.0 is the transmittance.
        np.testing.assert_allclose((bright - dark) / 2.0, fade[0], rtol=2e-4, atol=2e-7)


@pytest.mark.parametrize("haze", [FOG, Haze(0.003, 0.0), Haze(0.5, 2.0, -1.0), Haze(1e-4, 5000.0)])
def test_haze_in_an_image_is_that_of_the_twin(haze: Haze) -> None:
    sun = Sun((0.0, -0.8, -0.6), irradiance=2.0)
    clear, hazy = (place(sky=DAY, lights=(sun,), haze=some) for some in (Haze(), haze))
    directions = spiral(300)
    seen = looking(clear, directions)
    with np.errstate(divide="ignore"):
        distance = np.where(directions[:, 2] < 0.0, -1.7 / directions[:, 2], np.inf)
    distance = np.where(np.abs(directions[:, :2] * distance[:, None]).max(-1) < 49.0, distance, np.inf)
    edge = (directions[:, 2] < 0.0) & np.isinf(distance)
    row = haze_row(haze, table_irradiance(daylight_table(DAY), (0.0, 0.0, 1.0)), (sun,))
    expected = with_haze(row, seen, np.full(300, 1.7), directions, distance)
    np.testing.assert_allclose(looking(hazy, directions)[~edge], expected[~edge], rtol=2e-4, atol=1e-6)


def test_transmittance_through_layers_is_the_sum_of_their_densities() -> None:
    heights, rises, lengths = (
        np.array([0.0, 40.0, 3.0, 3.0, 100.0]),
        np.array([0.6, -0.9, 0.0, 1e-7, -1.0]),
        np.array([50.0, 44.0, 80.0, 80.0, 100.0]),
    )
    s = (np.arange(20_000) + 0.5) / 20_000 * lengths[:, None]
    dense = FOG.density * np.exp(-(heights[:, None] + rises[:, None] * s - FOG.base) / FOG.height)
    found = haze_transmittance(FOG, heights, rises, lengths)
    np.testing.assert_allclose(found, np.exp(-dense.mean(1) * lengths), rtol=1e-6)
    assert haze_transmittance(FOG, 0.0, 1.0, np.inf) == pytest.approx(math.exp(-0.02 * 30.0 * math.exp(1.0 / 30.0)), rel=1e-6)
    assert haze_transmittance(FOG, 0.0, -1.0, np.inf) < 1e-30
    assert (haze_transmittance(Haze(), heights, rises, lengths) == 1.0).all()


def test_the_phase_of_haze_shares_out_all_light() -> None:
    row = haze_row(Haze(0.01, asymmetry=0.6), np.zeros(3), (Sun((0.0, 0.0, -1.0), (1.0, 1.0, 1.0), 3.0),))
    np.testing.assert_allclose(airlight(row, spiral(40_000)).mean(0) * 4.0 * np.pi, 3.0, rtol=1e-3)


def test_what_a_mirror_shows_is_hazy_along_the_whole_way() -> None:
    shapes = {"mirror": Box((0.1, 5.0, 5.0)), "target": Box((0.5, 1.0, 1.0))}
    materials = {
        "m": Material((1.0, 1.0, 1.0, 1.0), metallic=1.0, roughness=0.03),
        "t": Material((0.0, 0.0, 0.0, 1.0), emissive=(2.0, 2.0, 2.0)),
    }
    instances = (
        Instance("mirror", (10.1, 0.0, 0.0), materials=("m",)),
        Instance("target", (-20.5, 0.0, 0.0), materials=("t",)),
    )
    parts = {"shapes": shapes, "materials": materials, "instances": instances}
    options = ShadingOptions(reflections=True, sun_disc=False)
    ahead = np.array([[1.0, 0.0, 0.0]])
    clear, hazy = (looking(place(**parts, haze=haze), ahead, 0.0, options)[0] for haze in (Haze(), Haze(0.02, 0.0)))
    # Under a black sky haze adds nothing: what is left has come over 10 and 30 m.
    np.testing.assert_allclose(hazy / clear, math.exp(-0.02 * 40.0), rtol=2e-3)


# ---- Promises ---------------------------------------------------------------------------------------------------------------


def weathered(number: int) -> Scene:
    return varied(room(number), number, 7, SkyVariation(hazy=0.6, overcast=0.3, turbidity=(2.0, 2.5)))


def test_a_bit_depends_on_neither_lanes_nor_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    hazy = replace(under_sky(room(0), replace(DAY, cumulus=0.5, cirrus=0.5), FOG))
    one, two = (visible_from(SceneBatch(hazy, threads=k), [0], EVERYTHING)["rgb"] for k in (1, 2))
    np.testing.assert_array_equal(one, two)
    monkeypatch.setattr(shading, "_PREFIX", "#define SCALAR_PATH\n")
    np.testing.assert_array_equal(visible_from(SceneBatch(hazy), [0], EVERYTHING)["rgb"], one)


def test_environments_under_skies_of_their_own_do_not_know_of_each_other() -> None:
    scenes = [weathered(k) for k in range(4)]
    order = [2, 0, 3, 1]
    straight = visible_from(SceneBatch(scenes), np.arange(4), EVERYTHING)["rgb"]
    mixed = visible_from(SceneBatch([scenes[k] for k in order]), np.arange(4), EVERYTHING)["rgb"]
    np.testing.assert_array_equal(mixed, straight[order])
    np.testing.assert_array_equal(visible_from(SceneBatch(scenes[3]), [0], EVERYTHING)["rgb"][0], straight[3])
    assert np.isfinite(straight).all()
    assert len({float(image.mean()) for image in straight}) == 4


def test_places_without_daylight_and_haze_keep_their_digests_and_their_baked_light() -> None:
    # As of the version before there was daylight.
    assert scene_digest(scene("forest:3")) == "1a899ce95afcc036dd71313e741a6081d6038f013dd0e277e739e698b8a149da"
    plain = scene("empty_room")
    assert scene_hash(plain, BakeSettings()) != scene_hash(replace(plain, sky=DAY), BakeSettings())
    assert scene_hash(plain, BakeSettings()) == scene_hash(replace(plain, haze=FOG), BakeSettings())


def test_baked_light_knows_of_no_haze_and_of_the_sun_of_the_sky() -> None:
    settings = BakeSettings(bounces=1, rays=64, probe_spacing=2.0, texel=2.0, finest=1.0, occlusion_rays=0)
    wall = Instance("wall", (3.0, 0.0, 1.0), materials=("m",))
    open_floor = Scene("s", {**FLOOR, "wall": Box((0.1, 2.0, 1.0))}, {"m": GREY}, instances=(*ON_FLOOR, wall))
    clear, hazy = (bake(under_sky(open_floor, DAY, haze), settings) for haze in (Haze(), FOG))
    np.testing.assert_array_equal(clear.probes, hazy.probes)


def test_light_is_scaled_as_a_whole() -> None:
    batch, half = (SceneBatch(one) for one in (weathered(1), relit(weathered(1), 0.5)))
    a, b = (visible_from(one, [0], ShadingOptions(sun_disc=False))["rgb"] for one in (batch, half))
    np.testing.assert_allclose(b, 0.5 * a, rtol=2e-3, atol=1e-6)


def test_floors_under_the_sun_of_a_sky_are_as_bright_as_both_make_them() -> None:
    given = under_sky(Scene("s", FLOOR, {"m": GREY}, instances=ON_FLOOR), DAY)
    (sun,) = given.lights
    assert isinstance(sun, Sun)
    whole = table_irradiance(daylight_table(DAY), (0.0, 0.0, 1.0)) + np.array(sun.color) * sun.irradiance * math.sin(0.5)
    np.testing.assert_allclose(down([[0.0, 0.0]], SceneBatch(given))[0], whole * GREY.base_color[:3] / np.pi, rtol=2e-4)
