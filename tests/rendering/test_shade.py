"""Shade under trees: where it is looked for, how dark it is, haze in it, and what stays as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.geometry import Box, Mesh, RayTable
from airworthy.rendering.light_baking import SHADE, bake, under_trees, use_shade
from airworthy.rendering.shading import ShadingOptions, seen_by_colors, shade
from airworthy.scenes import Haze, Instance, Material, Region, Scene, SceneBatch, Sky
from airworthy.scenes.appearance import OPEN_CHANNEL, appearance_of
from airworthy.scenes.vegetation.canopy import CLOSED_FOREST, canopy_cover
from airworthy.scenes.vegetation.leaf import FOLIAGE_MATERIAL, both_sides

WHITE = Sky((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
CLEAR = Haze()


def crown(width: float, color: float = 0.3, height: float = 3.0) -> Mesh:
    """Leaves in layers without gaps, as high as a tree's crown, over a square."""
    half = 0.5 * width
    square = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * [half, half, 1.0]
    points = np.concatenate([square + np.array([0.0, 0.0, z]) for z in np.linspace(0.0, height, 4)])
    faces = np.concatenate([np.array([[0, 1, 2], [0, 2, 3]]) + 4 * k for k in range(4)])
    colors = np.column_stack([np.full((16, 3), color), np.ones(16)])
    return Mesh(points, faces, np.tile([0.0, 0.0, 1.0], (16, 1)), None, colors, None, {OPEN_CHANNEL: np.full(16, 0.5)})


def wood(width: float = 10.0, haze: Haze = CLEAR, **leaf: Any) -> Scene:
    """A floor of 8 m under one crown, between 3 and 6 m up, and a sky that is white everywhere."""
    return Scene(
        "wood",
        {"floor": Box((4.0, 4.0, 0.1)), "crown": crown(width)},
        {"m": Material((0.2, 0.2, 0.2, 1.0), roughness=1.0), "leaf": replace(FOLIAGE_MATERIAL, **leaf)},
        instances=(Instance("floor", (0.0, 0.0, -0.1), materials=("m",)),),
        looks=(Instance("crown", (0.0, 0.0, 3.0), materials=("leaf",), collide=False),),
        lights=(),
        sky=WHITE,
        haze=haze,
        bounds=Region((-4.0, -4.0, 0.0), (4.0, 4.0, 4.0)),
    )


def seen(batch: SceneBatch, direction: Any, position: Any = (0.0, 0.0, 1.5)) -> Any:
    table = RayTable(np.array([[direction]], float))
    return shade(batch, table, [position], [[0.0, 0.0, 0.0, 1.0]], options=ShadingOptions(sun_disc=False))[0, 0, 0]


def test_a_place_lies_under_trees_where_crowns_cover_two_fifths_of_it() -> None:
    assert canopy_cover(wood()) > 0.9
    narrow = wood(4.0)
    assert canopy_cover(narrow) == pytest.approx(np.pi * 2.0**2 / 8.0**2, abs=0.05)
    assert under_trees(wood())
    assert not under_trees(narrow)
    assert canopy_cover(narrow) < CLOSED_FOREST
    # What lets no light through is no crown: a roof.
    assert canopy_cover(wood(translucency=0.0)) == 0.0


def test_low_plants_are_no_trees() -> None:
    scene = wood()
    assert canopy_cover(replace(scene, shapes={**scene.shapes, "crown": crown(10.0, height=0.5)})) == 0.0


def test_shade_is_dark_and_what_leaves_let_through_lights_it(tmp_path: Path) -> None:
    plain, dim = SceneBatch(wood()), SceneBatch(wood())
    assert use_shade(dim, folder=tmp_path)
    opaque = SceneBatch(wood(translucent_tint=(0.0, 0.0, 0.0)))
    use_shade(opaque, folder=tmp_path)
    floor = [float(seen(batch, (0.0, 0.0, -1.0)).mean()) for batch in (plain, dim, opaque)]
    assert floor[0] > 1.5 * floor[1] > 1.5 * 1.05 * floor[2] > 0.0
    assert len(list(tmp_path.iterdir())) == 2


def test_places_in_the_open_stay_as_they_are(tmp_path: Path) -> None:
    batch = SceneBatch(wood(4.0))
    before = seen(batch, (0.0, 0.0, -1.0))
    assert not use_shade(batch, folder=tmp_path)
    np.testing.assert_array_equal(seen(batch, (0.0, 0.0, -1.0)), before)
    assert not list(tmp_path.iterdir())


def test_shade_has_probes_alone_and_crowns_no_longer_shade_themselves(tmp_path: Path) -> None:
    scene = wood()
    light = bake(scene, SHADE)
    assert len(light.nodes) == 0
    assert set(light.occlusion) == {"crown"}
    np.testing.assert_array_equal(light.occlusion["crown"], 1.0)
    batch = SceneBatch(scene)
    use_shade(batch, folder=tmp_path)
    seen_batch = seen_by_colors(batch)
    first = appearance_of(seen_batch).vertices[:, 4] >> 16
    assert first.max() == 65535


def test_haze_is_dark_in_the_shade_and_bright_in_the_open(tmp_path: Path) -> None:
    black = Material((0.0, 0.0, 0.0, 1.0), roughness=1.0)
    added = []
    for under in (False, True):
        pictures = []
        for haze in (Haze(), Haze(0.05, 1000.0)):
            scene = wood(haze=haze)
            batch = SceneBatch(replace(scene, materials={**scene.materials, "m": black}))
            if under:
                use_shade(batch, folder=tmp_path)
            pictures.append(float(seen(batch, (0.5, 0.0, -1.0)).mean()))
        added.append(pictures[1] - pictures[0])
    assert 0.0 < added[1] < 0.6 * added[0]


def test_leaves_reflect_what_their_kinds_say() -> None:
    color = np.array([[0.04, 0.09, 0.02]])
    drawn = both_sides(color)
    np.testing.assert_allclose(drawn * (1.0 - FOLIAGE_MATERIAL.translucency), color)
    passed = drawn * FOLIAGE_MATERIAL.translucent_tint * FOLIAGE_MATERIAL.translucency
    # PROSPECT-D: a green leaf lets about as much pass as it reflects, and it is yellower.
    assert (passed.sum() / color.sum()) == pytest.approx(1.0, abs=0.15)
    assert passed[0, 2] / passed[0, 1] < color[0, 2] / color[0, 1]


def test_pictures_of_a_wood_look_for_shade_by_day_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from airworthy.cli.scenes import pictures
    from airworthy.rendering import light_baking

    asked: list[float] = []
    monkeypatch.setattr(light_baking, "use_shade", lambda batch, **_: asked.append(batch.scenes[0].sky.elevation))
    where = pictures.Viewpoint(np.array([0.0, 0.0, 1.5]), np.array([0.0, 0.0, 0.0, 1.0]), 1.0)
    for elevation, shade_asked in ((0.5, True), (-0.3, True), (0.5, False)):
        place = replace(wood(), sky=Sky(model="daylight", elevation=elevation))
        light = pictures.PictureLight(shade=shade_asked, ev=None)
        pictures.pictures(place, where, (8, 8), ("rgb",), light=light)
    assert asked == [0.5]
