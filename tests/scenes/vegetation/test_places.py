"""The dressed forest, and the woodland: what is hit stays as it was, and what is seen lies close to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box, RayTable, cast
from airworthy.geometry.distance import clearance
from airworthy.geometry.occupancy import voxelize
from airworthy.rendering import render
from airworthy.scenes import Instance, Scene, SceneBatch, check_scene, findings, scene, scene_digest, write_scene
from airworthy.scenes.dressing import dressed, has_dress
from airworthy.scenes.extent import LOOK_GAP_MAX, look_gap
from airworthy.scenes.record import PointLight, SpotLight, Sun
from airworthy.scenes.vegetation.variety import LampVariation, LookVariety, black_body, other_look
from airworthy.scenes.viewpoints import Viewpoint, look_at

BARE = scene("forest:3")
DRESSED = dressed(BARE)


def eye(w: int, h: int) -> tuple[RayTable, np.ndarray, np.ndarray]:
    view = Viewpoint(np.array([-20.0, -6.0, 1.6]), look_at((-20.0, -6.0, 1.6), (0.0, 2.0, 2.0)), 1.2)
    return RayTable(*view.rays(w, h), axis=(0.0, 0.0, 1.0)), view.position[None], view.attitude[None]


def test_nothing_that_is_hit_changes_by_a_bit() -> None:
    """Occupancy, distances and every geometric channel of the benchmark's forest, dressed and bare."""
    both = [SceneBatch(place).geometry for place in (BARE, DRESSED)]
    lower, upper = np.array(BARE.bounds.lower) - 1.0, np.array([31.0, 21.0, 12.0])
    cells = [voxelize(geometry, 0, lower, upper, 0.2) for geometry in both]
    assert cells[0].any()
    assert cells[0].tobytes() == cells[1].tobytes()
    points = np.random.default_rng(5).uniform(BARE.bounds.lower, BARE.bounds.upper, (500, 3))
    near = [clearance(geometry, points, np.zeros(500, np.int32)) for geometry in both]
    np.testing.assert_array_equal(near[0].distance, near[1].distance)
    table, where, turned = eye(64, 48)
    channels = ("depth", "range", "instance_id", "semantic_id", "normal_world")
    seen = [cast(geometry, table, where, turned, channels=channels) for geometry in both]
    for name in channels:
        assert seen[0][name].tobytes() == seen[1][name].tobytes()
    assert [len(place.instances) for place in (BARE, DRESSED)] == [len(BARE.instances)] * 2


def test_a_forest_that_wears_nothing_keeps_its_digest() -> None:
    assert not BARE.looks
    assert scene_digest(scene("forest:3")) == scene_digest(BARE) != scene_digest(DRESSED)


@pytest.mark.slow
def test_what_is_seen_lies_within_five_centimetres_of_what_is_hit() -> None:
    gap = look_gap(DRESSED)
    assert len(gap.hidden) > 500
    assert len(gap.shown) > 500
    assert gap.hidden.max() <= LOOK_GAP_MAX
    assert gap.shown.max() <= LOOK_GAP_MAX


def test_colours_see_trees_where_depth_sees_cylinders() -> None:
    table, where, turned = eye(96, 64)
    found = render(SceneBatch(DRESSED), table, where, turned, channels=("albedo", "semantic_id"))
    bare = render(SceneBatch(BARE), table, where, turned, channels=("albedo",))
    assert (found["albedo"] != bare["albedo"]).any(-1).mean() > 0.9
    trunk = found["semantic_id"][0] == 2
    # Bark is no leaf: at trunks below the ceiling red is above blue, and nothing is sky.
    low = trunk & (np.arange(64)[:, None] > 40)
    assert low.sum() > 50
    assert (found["albedo"][0][low].sum(-1) > 0.0).all()


def test_looks_of_a_place_differ_share_their_meshes_and_are_hit_alike() -> None:
    variety = LookVariety(seasons=("summer",))
    looks = [other_look(BARE, number, 3, variety) for number in range(3)]
    again = other_look(BARE, 1, 3, variety)
    assert again.looks == looks[1].looks
    assert again.materials == looks[1].materials
    assert again.sky == looks[1].sky
    for one in looks:
        assert [(i.position, i.shape, i.collide) for i in one.instances] == [
            (i.position, i.shape, i.collide) for i in BARE.instances
        ]
    first, other = looks[:2]
    shared = [name for name in first.shapes if name in other.shapes and first.shapes[name] is other.shapes[name]]
    assert len(shared) > 40
    assert {id(t.pixels) for t in first.textures.values()} == {id(t.pixels) for t in other.textures.values()}
    assert len({one.looks for one in looks}) == len({one.sky for one in looks}) == 3
    assert first.materials != other.materials
    kept = other_look(BARE, 0, 3, LookVariety(sky=None, plants=False))
    assert (kept.looks, kept.sky, kept.lights) == (BARE.looks, BARE.sky, BARE.lights)
    with pytest.raises(AirworthyError, match="Seasons"):
        LookVariety(seasons=())


def test_lamps_of_a_look_are_brighter_or_darker_of_one_colour_and_some_are_out() -> None:
    lamps = (PointLight((0.0, 0.0, 3.0), (1.0, 0.5, 0.25), 8.0), SpotLight((1.0, 0.0, 3.0), (0.0, 0.0, -1.0)))
    lit = replace(BARE, lights=(Sun((0.0, 0.0, -1.0)), *lamps, lamps[0]))
    even = LampVariation((2.0, 2.0), (1.0, 1.0), (6500.0, 6500.0), 0.0)
    sky = LookVariety(sky=None, plants=False, surfaces=False)
    bright = other_look(lit, 4, 1, replace(sky, lamps=even)).lights
    assert bright[0] == lit.lights[0]
    for before, after in zip(lit.lights[1:], bright[1:], strict=True):
        assert not isinstance(before, Sun)
        assert not isinstance(after, Sun)
        given = 2.0 * before.intensity * np.array(before.color) * black_body(6500.0)
        np.testing.assert_allclose(after.intensity * np.array(after.color), given, rtol=1e-12)
        assert replace(after, color=before.color, intensity=before.intensity) == before
    dark = other_look(lit, 4, 1, replace(sky, lamps=replace(even, out=1.0))).lights
    assert sorted(light.intensity > 0.0 for light in dark[1:] if not isinstance(light, Sun)) == [False, False, True]
    # What else is drawn does not depend on whether lamps are.
    assert other_look(lit, 4, 1).materials == other_look(lit, 4, 1, LookVariety(lamps=None)).materials
    assert other_look(lit, 4, 1, LookVariety(lamps=None)).lights[1:] == lit.lights[1:]
    with pytest.raises(AirworthyError, match=r"LampVariation\.level reaches from 2 down to 1"):
        LampVariation(level=(2.0, 1.0))


def test_black_bodies_have_the_colours_of_the_tables() -> None:
    """Illuminant A is a black body of 2,856 K, x 0.4476, y 0.4074 (CIE 15); at 6,500 K x is 0.3135, y 0.3237 (Planck's locus).

    The bands of 20 nm and the fitted matching functions are good to about 0.005; negative red, green and blue are not kept.
    """
    to_xyz = np.linalg.inv([[3.2406, -1.5372, -0.4986], [-0.9689, 1.8758, 0.0415], [0.0557, -0.2040, 1.0570]])
    for kelvin, x, y in ((2856.0, 0.4476, 0.4074), (6500.0, 0.3135, 0.3237)):
        xyz = to_xyz @ black_body(kelvin)
        assert xyz[1] == pytest.approx(1.0, abs=1e-3)
        assert (xyz / xyz.sum())[:2] == pytest.approx((x, y), abs=0.006)


def test_a_look_has_a_name() -> None:
    look = scene("other_look:mid_gate:3@1")
    again = other_look(scene("mid_gate:3@1"), 3, 1)
    assert scene_digest(replace(look, name=again.name)) == scene_digest(again)
    assert look.name == "other_look:mid_gate:3@1"
    assert scene("other_look:mid_gate").sky == other_look(scene("mid_gate"), 0, 0).sky
    for name, words in (
        ("hall", "holds splats"),
        ("other_look:mid_gate", "look of a place already"),
        ("foret:3", "Unknown scene"),
    ):
        with pytest.raises(AirworthyError, match=words):
            scene(f"other_look:{name}")
    with pytest.raises(AirworthyError, match="nor a path"):
        scene("other_look:")


def test_a_file_has_a_look(tmp_path: Path) -> None:
    path = write_scene(Scene("box", {"box": Box((1.0, 1.0, 1.0))}, instances=(Instance("box"),)), tmp_path / "box.toml")
    look = scene(f"other_look:{path}")
    assert look.sky == other_look(scene(path), 0, 0).sky != scene(path).sky


def test_only_forests_have_a_dress_and_wear_one() -> None:
    assert has_dress(BARE)
    assert not has_dress(DRESSED)
    with pytest.raises(AirworthyError, match="no dress"):
        dressed(DRESSED)
    with pytest.raises(AirworthyError, match="forest:3"):
        dressed(scene("maze:1"))
    plain = dressed(BARE, sky="")
    assert plain.sky == BARE.sky
    assert plain.lights == BARE.lights


@pytest.mark.slow
def test_a_woodland_is_sound_and_a_function_of_its_name() -> None:
    wood = scene("woodland:2")
    assert not [item for item in findings(wood) if item.fatal], check_scene(wood)
    assert wood.facts["trees"] > 100
    assert scene_digest(replace(wood)) == scene_digest(wood)
    again = scene("woodland:2")
    assert again.looks == wood.looks
    assert again.instances == wood.instances
    for one, other in zip(wood.shapes.values(), again.shapes.values(), strict=True):
        np.testing.assert_array_equal(one.vertices, other.vertices)  # type: ignore[union-attr]
    assert {item.semantic for item in wood.instances} == {"ground", "tree"}
    assert all(item.collide for item in wood.instances)
