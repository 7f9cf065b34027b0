"""Leaves: sheets that scatter light to both sides, against closed forms and their float64 twin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.geometry import Box, Mesh, RayTable
from airworthy.rendering import ShadingOptions, StillOptions, render
from airworthy.rendering.path_twin import path_twin
from airworthy.rendering.shading import Cameras, shade
from airworthy.rendering.still import still_images
from airworthy.scenes import Instance, Material, PointLight, Scene, SceneBatch, Sky, Sun
from airworthy.scenes.viewpoints import look_at

BLACK = Sky((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
WHITE = Sky((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
DOWN = RayTable(np.array([[[0.0, 0.0, -1.0]]]))
LEVEL = np.array([[0.0, 0.0, 0.0, 1.0]])
EYE = np.array([[0.0, 0.0, 1.0]])
LEAF = Material((0.4, 0.3, 0.2, 1.0), translucency=0.4, translucent_tint=(1.2, 1.0, 0.5))
HALF = Material((1.0, 1.0, 1.0, 1.0), translucency=0.5)


def sheet(material: Material = LEAF, lean: float = 0.0, **parts: Any) -> SceneBatch:
    """A level square of 8 m at z = 0, its vertex normals leaning by an angle [rad], as a crown bends those of leaves."""
    corners = 4.0 * np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], float)
    bent = np.tile([np.sin(lean), 0.0, np.cos(lean)], (4, 1))
    mesh = Mesh(corners, np.array([[0, 1, 2], [0, 2, 3]]), bent)
    given: dict[str, Any] = {"lights": (), "sky": BLACK, **parts}
    return SceneBatch(Scene("sheet", {"s": mesh}, {"m": material}, instances=(Instance("s", materials=("m",)),), **given))


def standard(batch: SceneBatch, specular: bool = False) -> Any:
    """The radiance (3,) seen from above, by the standard renderer."""
    return shade(batch, DOWN, EYE, LEVEL, options=ShadingOptions(specular=specular, sun_disc=False))[0, 0, 0]


def still(batch: SceneBatch, samples: int = 64, **options: Any) -> Any:
    """The same, by paths."""
    cameras = Cameras.of(batch, DOWN, EYE, LEVEL, np.zeros(1, np.int32))
    given = {"specular": False, "sun_disc": False, "sun_angle": 0.0, **options}
    return still_images(batch, DOWN, cameras, StillOptions(samples=samples, **given))[0, 0, 0]


REFLECTED = 0.6 * np.array([0.4, 0.3, 0.2])
PASSED = 0.4 * np.array([0.48, 0.3, 0.1])


@pytest.mark.parametrize("angle", [0.0, 0.9])
@pytest.mark.parametrize(("side", "albedo"), [(1.0, REFLECTED), (-1.0, PASSED)])
def test_the_sun_on_a_leaf_is_reflected_and_from_behind_it_passes_in_another_colour(
    side: float, albedo: Any, angle: float
) -> None:
    sun = Sun((np.sin(angle), 0.0, -side * np.cos(angle)), (1.0, 1.0, 1.0), np.pi)
    batch = sheet(lights=(sun,))
    np.testing.assert_allclose(standard(batch), albedo * np.cos(angle), rtol=2e-5)
    np.testing.assert_allclose(still(batch, 4, bounces=1), albedo * np.cos(angle), rtol=2e-5)


def test_a_lamp_behind_a_leaf_shines_through_it_by_the_inverse_square() -> None:
    batch = sheet(lights=(PointLight((0.0, 0.0, -2.0), (1.0, 1.0, 1.0), 4.0),))
    for found in (standard(batch), still(batch, 4)):
        np.testing.assert_allclose(found, PASSED / np.pi, rtol=2e-5)


@pytest.mark.parametrize("lean", [0.0, 0.7, 1.2])
def test_a_leaf_that_keeps_nothing_cannot_be_told_from_a_white_sky(lean: float) -> None:
    batch = sheet(HALF, lean, sky=WHITE)
    # By the table of irradiance, and by paths, whose weights are then 1 each.
    np.testing.assert_allclose(standard(batch), 1.0, atol=2e-3)
    np.testing.assert_allclose(still(batch), 1.0, rtol=1e-5)
    if not lean:
        # Of bent normals the gloss that falls behind the sheet is lost, as of any surface.
        np.testing.assert_allclose(still(batch, 4096, specular=True), 1.0, atol=0.02)


@pytest.mark.parametrize("lean", [0.4, 1.1])
def test_light_between_the_two_normals_is_not_lost(lean: float) -> None:
    # From all around, evenly: half of it meets each side whatever the normals do.
    rng = np.random.default_rng(3)
    ways = rng.normal(size=(200, 3))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    suns = tuple(Sun(tuple(way.tolist()), (1.0, 1.0, 1.0), 4.0 * np.pi / 200) for pair in ways for way in (pair, -pair))
    found = standard(sheet(HALF, lean, lights=suns[:200]))
    np.testing.assert_allclose(found, standard(sheet(HALF, 0.0, lights=suns[:200])), rtol=0.15)
    assert found.min() > 0.8


def test_a_leaf_knows_what_stands_on_its_other_side() -> None:
    sun = (Sun((0.0, 0.0, 1.0), (1.0, 1.0, 1.0), np.pi),)
    scene = sheet(lights=sun).scenes[0]
    lid = Instance("lid", (0.0, 0.0, -1.0), materials=("m",))
    shut = SceneBatch(replace(scene, shapes={**scene.shapes, "lid": Box((1.0, 1.0, 0.1))}, instances=(*scene.instances, lid)))
    assert standard(sheet(lights=sun)).min() > 0.03
    np.testing.assert_array_equal(standard(shut), 0.0)


def leafy() -> Scene:
    """Leaves as boxes, which the twin knows: lit from above, from behind and by what glows."""
    materials = {
        "m": Material((0.5, 0.4, 0.3, 1.0)),
        "leaf": replace(LEAF, roughness=0.5),
        "thin": HALF,
        "glow": Material((0.2, 0.2, 0.2, 1.0), emissive=(3.0, 2.5, 2.0)),
    }
    tilted = (0.28, 0.0, 0.0, 0.96)
    instances = (
        Instance("floor", (0.0, 0.0, -0.5), materials=("m",)),
        Instance("leaf", (-0.7, 0.3, 1.0), tilted, materials=("leaf",)),
        Instance("leaf", (0.6, 0.2, 1.4), materials=("thin",)),
        Instance("panel", (0.0, 0.6, 2.4), tilted, materials=("glow",)),
    )
    shapes = {"floor": Box((50.0, 50.0, 0.5)), "leaf": Box((0.5, 0.4, 0.01)), "panel": Box((0.6, 0.4, 0.02))}
    lights = (Sun((0.2, -0.6, -0.77), irradiance=2.0), PointLight((0.4, 1.2, 0.6)))
    return Scene("leafy", shapes, materials, instances=instances, lights=lights)


@pytest.mark.parametrize("specular", [True, False])
def test_every_pixel_is_that_of_the_float64_twin(specular: bool) -> None:
    batch, eye = SceneBatch(leafy()), (0.2, -3.2, 0.9)
    attitude = look_at(eye, (0.0, 0.3, 1.1))
    u, v = np.meshgrid(np.arange(24) - 11.5, np.arange(18) - 8.5)
    table = RayTable(np.stack([u * 0.04, v * 0.04, np.ones_like(u)], -1))
    options = StillOptions(samples=4, seed=5, specular=specular, sun_angle=0.03)
    mine = still_images(batch, table, Cameras.of(batch, table, [eye], [attitude], np.zeros(1, np.int32)), options)[0]
    twin = path_twin(batch, table, np.array(eye), attitude, options)
    off = np.abs(mine - twin).max(-1) / np.maximum(np.abs(twin).max(-1), 1e-2)
    assert np.median(off) < 5e-6
    # Paths that rounding sends past an edge, or through a leaf and not back, are others.
    assert (off < 1e-3).mean() > 0.95
    assert mine.mean() == pytest.approx(twin.mean(), rel=1e-2)


def test_both_renderers_agree_on_gloss_before_what_passes() -> None:
    sun = (Sun((0.3, 0.0, -0.95), irradiance=np.pi),)
    front, behind = sheet(lights=sun), sheet(lights=(Sun((0.3, 0.0, 0.95), irradiance=np.pi),))
    for batch in (front, behind):
        np.testing.assert_allclose(standard(batch, True), still(batch, 8, specular=True, bounces=1), rtol=0.05)


def test_leaves_are_the_same_in_lanes_and_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = SceneBatch(leafy())
    eye = (0.2, -3.2, 0.9)
    table = RayTable(np.array([[[x, 0.0, 1.0] for x in np.linspace(-0.4, 0.4, 48)]]))
    pose = np.array([eye]), np.array([look_at(eye, (0.0, 0.3, 1.1))])
    one = render(batch, table, *pose, channels=("rgb",))["rgb"]
    from airworthy.rendering import shading

    monkeypatch.setattr(shading, "_PREFIX", "#define SCALAR_PATH\n")
    np.testing.assert_allclose(render(SceneBatch(leafy()), table, *pose, channels=("rgb",))["rgb"], one, rtol=1e-5, atol=1e-6)
