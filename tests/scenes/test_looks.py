"""Looks: what colours see beside what everything else meets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.core import frames
from airworthy.geometry import Box, RayTable, Shape, Sphere
from airworthy.geometry.distance import clearance
from airworthy.geometry.occupancy import voxelize
from airworthy.rendering import ShadingOptions, StillOptions, render, use_baked
from airworthy.rendering.shading import DEFAULT_OPTIONS
from airworthy.scenes import (
    Actor,
    Instance,
    Material,
    Pose,
    Region,
    Scene,
    SceneBatch,
    Sun,
    check_scene,
    read_scene,
    scene_digest,
    write_scene,
)
from airworthy.scenes.extent import hidden, look_gap, triangle_count
from airworthy.scenes.formats import mitsuba
from airworthy.scenes.formats._parts import as_model
from airworthy.scenes.viewpoints import view

AHEAD = RayTable([[[1.0, 0.0, 0.0]]], axis=(1.0, 0.0, 0.0))
COLORS = ("rgb", "albedo", "normal", "grey")


def place(gap: float = 0.02) -> Scene:
    """A box that is hit at x = 2, and in its place a red wall that is seen, `gap` before it; a ball behind both."""
    return Scene(
        "place",
        {"box": Box((0.5, 1.0, 1.0)), "wall": Box((0.05, 1.0, 1.0)), "ball": Sphere(1.0)},
        {"red": Material((0.8, 0.05, 0.05, 1.0)), "blue": Material((0.05, 0.05, 0.8, 1.0))},
        instances=(
            hidden(Instance("box", (2.5, 0.0, 0.0), semantic="tree")),
            Instance("ball", (8.0, 0.0, 0.0), materials=("blue",)),
        ),
        looks=(Instance("wall", (2.05 - gap, 0.0, 0.0), materials=("red",)),),
        bounds=Region((-9.0, -9.0, -9.0), (12.0, 9.0, 9.0)),
        start=Pose((-3.0, 0.0, 0.0)),
        source="own",
    )


def seen(batch: SceneBatch, channels: tuple[str, ...], **more: object) -> dict[str, np.ndarray]:
    count = batch.env_count
    where, turned = np.tile([[-2.0, 0.0, 0.0]], (count, 1)), np.tile(frames.IDENTITY, (count, 1))
    found = render(batch, AHEAD, where, turned, np.arange(count), channels, **more)  # type: ignore[arg-type]
    return {name: array[:, 0, 0] for name, array in found.items()}


def test_colours_see_looks_and_all_else_meets_what_is_hit() -> None:
    batch = SceneBatch(place())
    both = seen(batch, ("depth", "instance", "semantic_id", *COLORS))
    assert both["depth"] == pytest.approx([4.0])
    assert both["instance"].tolist() == [0]
    assert both["semantic_id"].tolist() == [2]
    assert both["albedo"][0] == pytest.approx([0.8, 0.05, 0.05], rel=1e-3)
    assert both["normal"][0] == pytest.approx([-1.0, 0.0, 0.0], abs=1e-3)
    apart = {**seen(batch, ("depth", "instance", "semantic_id")), **seen(batch, COLORS)}
    for name, array in both.items():
        np.testing.assert_array_equal(array, apart[name])


def test_geometry_is_that_of_the_place_without_looks_to_the_byte() -> None:
    dressed, bare = SceneBatch(place()), SceneBatch(replace(place(), looks=()))
    seen(dressed, COLORS)  # the twin is made, and leaves the batch as it was
    channels = (
        "range",
        "depth",
        "point_world",
        "normal_world",
        "instance",
        "instance_id",
        "semantic_id",
        "face",
        "barycentric",
    )
    for name, array in seen(bare, channels).items():
        np.testing.assert_array_equal(array, seen(dressed, channels)[name])
    cells = [voxelize(one.geometry, 0, (-4.0, -4.0, -4.0), (10.0, 4.0, 4.0), 0.1) for one in (dressed, bare)]
    assert cells[0].tobytes() == cells[1].tobytes()
    points = np.random.default_rng(1).uniform(-4.0, 9.0, (200, 3))
    near = [clearance(one.geometry, points, np.zeros(200, np.int32)) for one in (dressed, bare)]
    np.testing.assert_array_equal(near[0].distance, near[1].distance)
    assert dressed.geometry.dynamic_start == bare.geometry.dynamic_start
    assert len(dressed.geometry.shapes) == len(bare.geometry.shapes)


def test_still_images_and_baked_light_are_of_the_looks() -> None:
    batch = SceneBatch(place())
    traced = seen(batch, ("rgb",), still=StillOptions(samples=16, quiet=True))["rgb"][0]
    assert traced[0] > 3.0 * traced[2]
    plain = seen(batch, ("rgb",))["rgb"][0]
    from airworthy.rendering.baking import BakeSettings

    use_baked(batch, BakeSettings(bounces=1, rays=32, probe_spacing=4.0, texel=1.0, finest=1.0, occlusion_rays=0))
    lit = seen(batch, ("rgb",))["rgb"][0]
    assert (lit != plain).any()
    assert lit[0] > 3.0 * lit[2]


def test_what_a_camera_ignores_is_the_same_thing_under_either_numbering() -> None:
    """Looks stand between static and dynamic instances in the twin: the vehicle's own body has another number there."""
    actor = Actor("body", (Instance("wall", materials=("blue",)),), position=(0.0, 0.0, 0.0))
    batch = SceneBatch(replace(place(), actors=(actor,)))
    body = batch.geometry.dynamic_start
    assert batch.rendered().geometry.dynamic_start == body + 1
    assert seen(batch, ("albedo",))["albedo"][0] == pytest.approx([0.05, 0.05, 0.8], rel=1e-2)
    ignoring = seen(batch, ("albedo", "depth"), ignore=np.array([body]))
    assert ignoring["albedo"][0] == pytest.approx([0.8, 0.05, 0.05], rel=1e-2)
    assert ignoring["depth"] == pytest.approx([4.0])


def test_environments_with_and_without_looks_share_a_batch() -> None:
    mixed = SceneBatch([place(), replace(place(), looks=())])
    found = seen(mixed, ("albedo",))["albedo"]
    assert found[0] == pytest.approx([0.8, 0.05, 0.05], rel=1e-2)
    assert found[1] == pytest.approx([0.05, 0.05, 0.8], rel=1e-2)  # the ball behind what is hidden
    alone = seen(SceneBatch(place()), ("rgb",))["rgb"][0]
    np.testing.assert_array_equal(seen(mixed, ("rgb",))["rgb"][0], alone)
    mixed.assign([1], [0])
    np.testing.assert_array_equal(seen(mixed, ("rgb",))["rgb"][1], alone)


def test_files_keep_looks_and_digests_count_them(tmp_path: Path) -> None:
    one, bare = place(), replace(place(), looks=())
    one = replace(one, looks=(replace(one.looks[0], shadow="none", footprint=(0.0, 0.5)), *one.looks))
    write_scene(one, tmp_path)
    again = read_scene(tmp_path)
    assert again.looks == one.looks
    assert scene_digest(again) == scene_digest(one) != scene_digest(bare)


def test_the_check_tells_how_far_the_seen_lies_from_the_hit() -> None:
    near = [text for text in check_scene(place()) if " lie within " in text]
    assert len(near) == 2
    assert all(text.startswith("note: ") for text in near)
    gap = look_gap(place(0.02))
    # The wall begins 2 cm before the box and ends 8 cm within it; the box's far side lies 0.92 m behind the wall.
    assert gap.shown.max() == pytest.approx(0.08, abs=1e-3)
    assert gap.hidden.max() == pytest.approx(0.92, abs=1e-3)
    assert np.quantile(look_gap(place(1.0)).shown, 0.05) > 0.85
    assert not [text for text in check_scene(replace(place(), looks=())) if " lie within " in text]


def test_a_look_that_names_nothing_is_told() -> None:
    wrong = replace(place(), looks=(Instance("nowhere", materials=("none",)),))
    found = " ".join(check_scene(wrong))
    assert "looks[0] names the shape 'nowhere'" in found
    assert "looks[0] names the material 'none'" in found


def test_exports_hold_looks_that_nothing_hits(tmp_path: Path) -> None:
    model = as_model(place())
    assert [item.collide for item in model.instances] == [True, True, False]
    assert triangle_count(place()) == (0, 0)
    mitsuba.write_mitsuba(tmp_path, place(), view(place(), "start"), (8, 8), samples=1)
    text = (tmp_path / "scene.xml").read_text()
    # The sun's disc, the ball and the wall; what is hit and not shown is not there.
    assert [text.count(f'<shape type="{kind}"') for kind in ("disk", "sphere", "ply")] == [1, 1, 1]


def leveled() -> SceneBatch:
    """The place with a fine red wall that is seen from near, and a coarse blue one behind it that is seen from afar."""
    scene = place()
    fine = replace(scene.looks[0], footprint=(0.0, 0.5))
    coarse = replace(scene.looks[0], materials=("blue",), footprint=(0.5, 0.0))
    return SceneBatch(replace(scene, looks=(fine, coarse)))


def test_levels_of_detail_follow_distance_and_resolution() -> None:
    """A pixel of a tenth of a radian covers 0.4 m at the wall, from 4 m; of a fifth, or from 8 m, more than half a metre."""
    batch = leveled()

    def color(width: float, away: float, options: ShadingOptions = DEFAULT_OPTIONS) -> str:
        turn = np.arctan(np.linspace(-width, width, 3))
        table = RayTable(np.stack([np.cos(turn), np.sin(turn), 0.0 * turn], -1)[:, None], axis=(1.0, 0.0, 0.0))
        rgb = render(batch, table, [[2.0 - away, 0.0, 0.0]], [frames.IDENTITY], [0], ("albedo",), options)["albedo"][0, 1, 0]
        return "red" if rgb[0] > rgb[2] else "blue"

    assert color(0.1, 4.0) == "red"
    assert color(0.2, 4.0) == "blue"
    assert color(0.1, 8.0) == "blue"
    assert color(0.2, 8.0, ShadingOptions(detail=0.0)) == "red"
    assert color(0.1, 8.0, ShadingOptions(detail=0.25)) == "red"


def test_what_shades_is_said_by_each_thing() -> None:
    """A lid between a floor and the sun: its own shadow, none, or a shadow of something that is not seen."""
    sun = Sun((0.0, 0.0, -1.0))

    def image(lid: Instance | None, options: ShadingOptions = DEFAULT_OPTIONS) -> tuple[float, float]:
        floor = Instance("floor", (0.0, 0.0, -0.5))
        shapes: dict[str, Shape] = {"floor": Box((9.0, 9.0, 0.5)), "lid": Box((0.5, 0.5, 0.05))}
        scene = Scene("lid", shapes, instances=(floor,), looks=(lid,) if lid else (), lights=(sun,), source="own")
        batch, table = SceneBatch(scene), RayTable([[[0.0, 0.0, -1.0]]], axis=(0.0, 0.0, -1.0))
        # Beside the lid and under it, on the floor; and down onto the lid.
        under = render(batch, table, [[0.0, 0.0, 0.5]], [frames.IDENTITY], [0], ("rgb",), options)["rgb"][0, 0, 0, 1]
        onto = render(batch, table, [[0.0, 0.0, 5.0]], [frames.IDENTITY], [0], ("normal", "albedo"), options)
        return float(under), float(onto["albedo"][0, 0, 0, 1])

    lid = Instance("lid", (0.0, 0.0, 2.0))
    light, dark = image(None)[0], image(lid)[0]
    assert dark < 0.8 * light
    assert image(replace(lid, shadow="none"))[0] == light
    assert image(replace(lid, shadow="only"))[0] == dark
    assert image(replace(lid, shadow="none"), ShadingOptions(own_shadows=True))[0] == dark
    assert image(replace(lid, shadow="only"), ShadingOptions(own_shadows=True))[0] == light


def test_a_shadow_alone_is_met_by_no_eye_and_no_ray() -> None:
    scene = place()
    wall = replace(scene.looks[0], shadow="only")
    found = seen(SceneBatch(replace(scene, looks=(wall,))), ("albedo", "depth"))
    assert found["albedo"][0] == pytest.approx([0.05, 0.05, 0.8], rel=1e-3)
    assert found["depth"] == pytest.approx([4.0])
