"""Soft sun, soft lamps and rough mirrors of the standard renderer: closed forms, and the path tracer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.still_scenes import SCENES

from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.geometry import Box, Mesh, RayTable, Shape
from airworthy.optics.tone import display_from_linear
from airworthy.rendering import BakeSettings, image_psnr, quality_options, shading, use_baked
from airworthy.rendering.images import render
from airworthy.rendering.shading import ShadingOptions, shade
from airworthy.rendering.still import StillOptions
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Instance, Light, Material, PointLight, Scene, Sky, Sun

BLACK = Sky((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
WHITE = Sky((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
SOFT = ShadingOptions(specular=False, sun_disc=False, light_rays=256)


def half_plane(light: Light) -> SceneBatch:
    """A floor at z = 0 and, 2 m above it, a thin roof over x < 0."""
    shapes: dict[str, Shape] = {"floor": Box((4.0, 4.0, 0.1)), "roof": Box((2.0, 4.0, 1e-4))}
    material = {"m": Material((1.0, 1.0, 1.0, 1.0))}
    parts = (Instance("floor", (0.0, 0.0, -0.1), materials=("m",)), Instance("roof", (-2.0, 0.0, 2.0), materials=("m",)))
    return SceneBatch(Scene("s", shapes, material, {}, parts, lights=(light,), sky=BLACK))


def along_x(batch: SceneBatch, x: np.ndarray, options: ShadingOptions) -> np.ndarray:
    """Radiance of the floor at places (x, 0), from below the roof."""
    table = RayTable(np.array([[[0.0, 0.0, -1.0]]]))
    places = np.stack([x, 0.0 * x, 1.0 + 0.0 * x], -1)
    turn = np.tile([0.0, 0.0, 0.0, 1.0], (len(x), 1))
    return shade(batch, table, places, turn, np.zeros(len(x), int), options)[:, 0, 0, 0]


def disc_share(t: np.ndarray) -> np.ndarray:
    """Share of a unit disc on the side of a line at t of its middle."""
    t = np.clip(t, -1.0, 1.0)
    return 0.5 + (t * np.sqrt(1.0 - t * t) + np.arcsin(t)) / np.pi


def test_a_penumbra_is_as_wide_as_the_distance_times_twice_the_half_angle() -> None:
    angle, height = 0.05, 2.0
    batch = half_plane(Sun((0.0, 0.0, -1.0), (1.0, 1.0, 1.0), np.pi))
    x = np.linspace(-0.14, 0.14, 29)
    found = along_x(batch, x, replace(SOFT, sun_angle=angle))
    expected = disc_share(x / (height * np.tan(angle)))
    # 256 points of a sequence that is even over the disc: errors of a few of them.
    np.testing.assert_allclose(found, expected, atol=0.02)
    assert ((found > 1e-3) & (found < 0.998)).sum() == 19  # of 20 cm, each centimetre
    hard = along_x(batch, x, replace(SOFT, light_rays=0))
    assert set(hard.tolist()) <= {0.0, 1.0}


def test_a_lamp_with_a_radius_has_a_penumbra_by_similar_triangles() -> None:
    """A lamp of radius r at height 4 over an edge at 2: its penumbra on the floor is as wide as its disc."""
    batch = half_plane(PointLight((0.0, 0.0, 4.0), (1.0, 1.0, 1.0), 16.0 * np.pi, radius=0.2))
    x = np.linspace(-0.3, 0.3, 13)
    lit = (1.0 + (x / 4.0) ** 2) ** -2.0
    found = along_x(batch, x, SOFT) / lit
    np.testing.assert_allclose(found, disc_share(x / 0.2), atol=0.03)  # 256 points; and the disc faces the place
    table = RayTable(np.array([[[0.0, 0.0, -1.0]]]))
    still = StillOptions(samples=1024, specular=False, seed=3)
    for where in (-0.1, 0.1):
        traced = render(batch, table, [[where, 0.0, 1.0]], [[0.0, 0.0, 0.0, 1.0]], channels=("rgb",), still=still)["rgb"]
        # Paths meet the roof, too; it is black below but for what the floor sends back.
        own = along_x(batch, np.array([where]), SOFT)[0]
        assert traced[0, 0, 0, 0] == pytest.approx(own, abs=0.12)


@pytest.mark.parametrize("roughness", [0.1, 0.3, 0.5])
def test_a_white_metal_under_a_white_sky_sends_all_of_it_back(roughness: float) -> None:
    """Whatever its roughness: rays bring 1, so they must weigh 1; the table of what facets lose is interpolated."""
    material = {"m": Material((1.0, 1.0, 1.0, 1.0), metallic=1.0, roughness=roughness)}
    parts = (Instance("floor", (0.0, 0.0, -0.1), materials=("m",)),)
    batch = SceneBatch(Scene("s", {"floor": Box((50.0, 50.0, 0.1))}, material, {}, parts, lights=(), sky=WHITE))
    rays = np.stack([np.linspace(-1.5, 1.5, 9), np.zeros(9), -np.ones(9)], -1)[None]
    options = ShadingOptions(gloss_rays=256)
    found = shade(
        batch, RayTable(rays / np.linalg.norm(rays, axis=-1, keepdims=True)), [[0, 0, 2.0]], [[0, 0, 0, 1.0]], [0], options
    )
    np.testing.assert_allclose(found, 1.0, atol=0.04)


def test_gloss_shows_what_is_around_as_paths_do() -> None:
    item = SCENES["metals"]()
    batch, table = SceneBatch(item.scene), RayTable(*item.view.rays(32, 24))
    use_baked(batch, BakeSettings(rays=64, texel=0.5, finest=1.0, occlusion_rays=0))
    pose = item.view.position[None], item.view.attitude[None]
    options = quality_options("high")
    traced = render(batch, table, *pose, channels=("rgb",), still=StillOptions(samples=64))["rgb"]
    shown = render(batch, table, *pose, channels=("rgb",), options=options)["rgb"]
    bare = render(batch, table, *pose, channels=("rgb",), options=replace(options, gloss_rays=0))["rgb"]
    db = [image_psnr(display_from_linear(image), display_from_linear(traced)) for image in (shown, bare)]
    # Glossy places are to agree with still images to 26 dB; most of this picture is floor and sky, which always do.
    assert db[0] > max(26.0, db[1] + 3.0)


def test_a_mirror_shows_what_glows() -> None:
    material = {
        "mirror": Material((0.9, 0.5, 0.3, 1.0), metallic=1.0, roughness=0.03),
        "glow": Material((0.0, 0.0, 0.0, 1.0), emissive=(5.0, 5.0, 5.0)),
    }
    shapes: dict[str, Shape] = {"floor": Box((2.0, 2.0, 0.1)), "panel": Box((0.5, 0.5, 0.01))}
    parts = (
        Instance("floor", (0.0, 0.0, -0.1), materials=("mirror",)),
        Instance("panel", (1.0, 0.0, 1.0), materials=("glow",)),
    )
    batch = SceneBatch(Scene("s", shapes, material, {}, parts, lights=(), sky=BLACK))
    ray = RayTable(np.array([[[1.0, 0.0, -1.0]]]) / np.sqrt(2.0))
    found = shade(batch, ray, [[-1.0, 0.0, 1.0]], [[0.0, 0.0, 0.0, 1.0]], [0], ShadingOptions(gloss_rays=16))[0, 0, 0]
    # Schlick's term at 45 degrees: f0 + (1 - f0) (1 - cos)^5.
    f0 = np.array([0.9, 0.5, 0.3])
    np.testing.assert_allclose(found, 5.0 * (f0 + (1.0 - f0) * (1.0 - np.sqrt(0.5)) ** 5), rtol=0.01)


def test_noise_is_the_same_in_any_batch_and_in_the_form_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    item = SCENES["metals"]()
    table = RayTable(*item.view.rays(12, 8))
    one, many = SceneBatch(item.scene), SceneBatch([item.scene] * 3, threads=1)
    options = replace(quality_options("standard"), light_rays=2)
    pose = item.view.position[None], item.view.attitude[None]
    alone = shade(one, table, *pose, options=options)[0]
    several = shade(many, table, np.tile(pose[0], (3, 1)), np.tile(pose[1], (3, 1)), options=options)
    for image in several:
        np.testing.assert_array_equal(image, alone)
    monkeypatch.setattr(shading, "_PREFIX", "#define SCALAR_PATH\n")
    np.testing.assert_array_equal(shade(one, table, *pose, options=options)[0], alone)


def test_chosen_rays_fill_tasks_camera_by_camera() -> None:
    table = RayTable(np.dstack([np.zeros((9, 20)), np.zeros((9, 20)), np.ones((9, 20))]))
    wanted = np.zeros((3, 9, 20), bool)
    wanted[0, 4, 7] = wanted[2] = True
    chosen = shading.chosen_rays(wanted, table)
    assert chosen is not None
    room = shading.PACKETS_PER_TASK * 16
    places = table.pixels.size
    tasks = chosen.reshape(-1, room)
    for row in tasks:
        assert len(set(row[row >= 0] // places)) <= 1
    taken = chosen[chosen >= 0]
    assert len(taken) == len(set(taken)) == wanted.sum()
    pixels = table.pixels.reshape(-1)[taken % places]
    assert wanted.reshape(3, -1)[taken // places, pixels].all()
    assert len(tasks) == 3 * -(-places // room)
    assert shading.chosen_rays(np.zeros((2, 9, 20), bool), table) is None


def test_qualities_have_names_and_options_bounds() -> None:
    assert quality_options("policy") == ShadingOptions()
    with pytest.raises(UnknownNameError, match="quality"):
        quality_options("best")
    for wrong in ({"light_rays": -1}, {"gloss_rays": 1000}, {"sun_angle": 1.0}):
        with pytest.raises(AirworthyError, match="expected 0 to 256"):
            ShadingOptions(**wrong)


def test_a_pane_mirrors_lets_pass_and_tints_in_every_quality() -> None:
    """At right angles a sheet of n = 1.5 mirrors 2 R / (1 + R), R = 0.04; the rest comes through its colour."""
    card = np.array([[-9.0, -9.0, 0.0], [9.0, -9.0, 0.0], [9.0, 9.0, 0.0], [-9.0, 9.0, 0.0]])
    shapes: dict[str, Shape] = {"floor": Box((9.0, 9.0, 0.1)), "pane": Mesh(card, np.array([[0, 1, 2], [0, 2, 3]]))}
    materials = {"m": Material((0.5, 0.5, 0.5, 1.0)), "glass": Material((0.5, 0.8, 1.0, 1.0), transmission=0.9)}
    parts = (
        Instance("floor", (0.0, 0.0, -0.1), materials=("m",)),
        Instance("pane", (0.0, 0.0, 1.0), materials=("glass",)),
        Instance("pane", (0.0, 0.0, 1.5), materials=("glass",)),
    )
    sun = Sun((0.0, 0.0, -1.0), (1.0, 1.0, 1.0), np.pi)
    batch = SceneBatch(Scene("s", shapes, materials, {}, parts, lights=(sun,), sky=BLACK))
    mirrored = 2.0 * 0.04 / 1.04
    once = np.array([0.5, 0.8, 1.0]) * 0.9 * (1.0 - mirrored)
    ray, turn = RayTable(np.array([[[0.0, 0.0, -1.0]]])), [[0.0, 0.0, 0.0, 1.0]]
    for options in (
        ShadingOptions(specular=False, sun_disc=False),
        ShadingOptions(specular=False, sun_disc=False, gloss_rays=1),
    ):
        # From below both, between, and above: the sun comes through two sheets, the eye looks through none, one, two.
        for height, sheets in ((0.5, 0), (1.25, 1), (2.0, 2)):
            found = shade(batch, ray, [[0.1, 0.2, height]], turn, [0], options)[0, 0, 0]
            np.testing.assert_allclose(found, 0.5 * once ** (2 + sheets), rtol=2e-4)
    white = SceneBatch(replace(batch.scenes[0], lights=(), sky=WHITE, instances=parts[1:2]))
    found = shade(white, ray, [[0.1, 0.2, 2.0]], turn, [0], ShadingOptions(sun_disc=False))[0, 0, 0]
    np.testing.assert_allclose(found, mirrored + once, rtol=2e-4)


def test_edges_are_found_in_the_dark_as_by_day() -> None:
    """The same place a thousand times darker, as at night, has the samples that it has by day."""
    item = SCENES["metals"]()
    table, pose = RayTable(*item.view.rays(40, 30)), (item.view.position[None], item.view.attitude[None])
    few = ShadingOptions(samples=2, contrast=0.1)
    day, night = 0.02, 2e-5
    found = []
    for light in (day, night):
        scene = replace(
            item.scene,
            lights=tuple(replace(one, irradiance=one.irradiance * light) for one in item.scene.lights if isinstance(one, Sun)),
            sky=Sky(
                *(tuple(light * c for c in color) for color in (item.scene.sky.zenith, item.scene.sky.horizon, (0.0,) * 3))
            ),
        )
        batch = SceneBatch(scene)
        sampled = shade(batch, table, *pose, options=few)
        plain = shade(batch, table, *pose, options=replace(few, samples=1))
        found.append((np.abs(sampled - plain) > 0.0).any(axis=-1).mean())
    assert found[0] > 0.02
    assert found[1] == pytest.approx(found[0], abs=0.01)
