"""Splats as parts of scenes: files, names, placement, what is hit, what moves, light."""

from __future__ import annotations

import gc
import json
import math
import struct
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from airworthy.cli.main import main
from airworthy.core import frames
from airworthy.core.errors import AirworthyError, AssetError, UnknownNameError
from airworthy.geometry import Box, RayTable, cast
from airworthy.geometry.distance import clearance
from airworthy.geometry.sweep import sweep_sphere
from airworthy.rendering.light_baking import relit
from airworthy.scenes import (
    Actor,
    Instance,
    Material,
    PointLight,
    Pose,
    Region,
    Scene,
    SceneBatch,
    SplatPlacement,
    Sun,
    Waypoint,
    check_scene,
    posed,
    read_scene,
    scene,
    scene_digest,
    write_scene,
)
from airworthy.scenes.extent import gaussian_count, scene_box
from airworthy.scenes.formats.model import FileLimits
from airworthy.scenes.splats import Splats, read_splats, transformed, write_splats
from airworthy.scenes.splats.placing import (
    SURFACE,
    add_splat_actor,
    add_splats,
    placed,
    standing,
    static_splats,
    stood,
    surface_geometry,
    surface_resolution,
    with_surface,
)
from airworthy.scenes.viewpoints import content_box, roofless

C0 = 0.28209479177387814
TURN = (0.0, 0.0, math.sin(0.2), math.cos(0.2))


def gaussians(position: ArrayLike, scale: ArrayLike = 0.04, color: ArrayLike = (0.2, 0.6, 0.2), opacity: float = 0.9) -> Splats:
    where = np.atleast_2d(np.asarray(position, float))
    n = len(where)
    harmonics = (np.broadcast_to(np.asarray(color, float), (n, 3)) - 0.5) / C0
    turn = np.tile([0.0, 0.0, 0.0, 1.0], (n, 1))
    return Splats(where, turn, np.broadcast_to(np.asarray(scale, float), (n, 3)), np.full(n, opacity), harmonics[:, None])


def block(size: float = 0.5) -> Splats:
    """Round gaussians that fill a cube around the origin."""
    side = np.linspace(-size, size, 11)
    return gaussians(np.stack(np.meshgrid(side, side, side), -1).reshape(-1, 3))


def same(one: Splats, other: Splats) -> bool:
    parts = ("position", "rotation", "scale", "opacity", "harmonics")
    return all(np.array_equal(getattr(one, part), getattr(other, part)) for part in parts)


# ---- files --------------------------------------------------------------------------------------------------------------


def yard(folder: Path, text: str) -> Path:
    path = folder / "scene.toml"
    path.write_text('version = 1\nname = "yard"\n' + text)
    return path


def test_a_scene_file_names_clouds_and_places_them(tmp_path: Path) -> None:
    write_splats(block(), tmp_path / "block.ply", up="z")
    path = yard(
        tmp_path,
        """
[clouds.block]
file = "block.ply"
[clouds.lying]
file = "block.ply"
up = "x"
[[splats]]
cloud = "block"
position = [3.0, 1.0, 2.0]
yaw = 0.4
scale = 2.0
name = "big one"
[[splats]]
cloud = "block"
attached = "cart"
[[actors]]
name = "cart"
parts = []
""",
    )
    found = read_scene(path)
    assert np.abs(found.clouds["block"].position - block().position).max() < 1e-6
    assert found.splats[0] == SplatPlacement("block", (3.0, 1.0, 2.0), TURN, 2.0, "", "big one")
    assert found.splats[1] == SplatPlacement("block", attached="cart")
    assert any("clouds are not used (lying)" in line for line in check_scene(found))
    assert gaussian_count(found) == (2 * 1331, 2 * 1331)
    static = static_splats(found)
    assert static is not None
    assert np.allclose(static.position, transformed(block(), TURN, (3.0, 1.0, 2.0), 2.0).position, atol=1e-5)


@pytest.mark.parametrize("form", ["ply", "spz"])
def test_clouds_are_written_for_other_programs(form: str, tmp_path: Path) -> None:
    place = add_splats(Scene("place"), block(), "block", (1.0, 2.0, 3.0), TURN, 0.5)
    path = write_scene(place, tmp_path / "out", clouds=form)  # type: ignore[arg-type]
    assert [file.suffix for file in (tmp_path / "out" / "assets").iterdir()] == [f".{form}"]
    again = read_scene(path)
    assert again.splats == place.splats
    # SPZ rounds positions to 2^-12 m, colours and opacities to 8 bits, logarithms of scales to 1/16; PLY to float32.
    close = {"ply": (1e-6, 1e-6, 1e-6), "spz": (2.0**-12, 1.0 / 255.0, 0.07 * 0.04)}[form]
    for part, bound in zip(("position", "opacity", "scale"), close, strict=True):
        assert np.abs(getattr(again.clouds["block"], part) - getattr(block(), part)).max() <= bound


def test_clouds_of_a_base_and_of_a_file_are_both_there(tmp_path: Path) -> None:
    write_splats(block(), tmp_path / "block.spz")
    path = yard(tmp_path, 'base = "empty_room"\n[clouds.b]\nfile = "block.spz"\n[[splats]]\ncloud = "b"\n')
    found = read_scene(path)
    assert list(found.clouds) == ["b"]
    assert len(found.instances) == len(scene("empty_room").instances)


BAD = [
    ('[clouds.b]\nfile = "../secret.spz"', "leads out"),
    ('[clouds.b]\nfile = "/etc/passwd"', "not a remote or absolute one"),
    ('[clouds.b]\nfile = "https://x/y.spz"', "not a remote or absolute one"),
    ('[clouds.b]\nfile = "none.spz"', "none.spz"),
    ('[clouds.b]\nfile = "torn.spz"', "torn.spz"),
    ('[clouds.b]\nfile = "model.ckpt"', "ns-export"),
    ('[clouds.b]\nfile = "torn.safetensors"', "safetensors"),
    ('[clouds.b]\nfile = "some.safetensors"', "lack"),
    ('[clouds.b]\nfile = "nan.safetensors"', "no gaussian"),
    ("[clouds.b]\nup = 3", "lacks 'file'"),
    ('[clouds.b]\nfile = "ok.spz"\nup = "north"', "north"),
    ('[clouds.b]\nfiles = "ok.spz"', "files"),
    ("[[splats]]\nposition = [0.0, 0.0, 0.0]", "'cloud'"),
    ('[[splats]]\ncloud = "b"\nyaw = 1.0\nattitude = [0.0, 0.0, 0.0, 1.0]', "both 'yaw' and 'attitude'"),
    ('[[splats]]\ncloud = "b"\nscale = "big"', "scale"),
]


@pytest.mark.parametrize(("text", "says"), BAD)
def test_bad_clouds_are_refused_in_one_sentence(text: str, says: str, tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    write_splats(block(), tmp_path / "ok.spz")
    (tmp_path / "torn.spz").write_bytes((tmp_path / "ok.spz").read_bytes()[:200])
    (tmp_path / "torn.safetensors").write_bytes(b"\xff" * 50)
    (tmp_path / "model.ckpt").write_bytes(b"\x80\x04.")
    save_file({"position": np.zeros((1, 3), np.float32)}, tmp_path / "some.safetensors")
    parts = {part: getattr(block(), part) for part in ("position", "rotation", "scale", "opacity", "harmonics")}
    save_file({**parts, "scale": np.full_like(parts["scale"], np.nan)}, tmp_path / "nan.safetensors")
    with pytest.raises(AssetError) as caught:
        read_scene(yard(tmp_path, text))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_clouds_together_are_bounded(tmp_path: Path) -> None:
    write_splats(block(), tmp_path / "b.spz")
    path = yard(tmp_path, "".join(f'[clouds.c{k}]\nfile = "b.spz"\n' for k in range(3)))
    assert len(read_scene(path, FileLimits(vertices=4000)).clouds) == 3
    with pytest.raises(AssetError, match="gaussians"):
        read_scene(path, FileLimits(vertices=3000))


def test_the_digest_sees_clouds_and_placements() -> None:
    place = add_splats(Scene("place"), block(), "block")
    other = transformed(block(), translation=(1e-6, 0.0, 0.0))
    item = place.splats[0]
    changed = [
        place,
        replace(place, clouds={"block": other}),
        replace(place, splats=(replace(item, scale=1.5),)),
        replace(place, splats=(replace(item, attached="x"),)),
        replace(place, splats=()),
    ]
    assert len({scene_digest(one) for one in changed}) == len(changed)
    assert scene_digest(add_splats(Scene("place"), block(), "block")) == scene_digest(place)


# ---- checking -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (SplatPlacement("none"), "names the cloud 'none'"),
        (SplatPlacement("block", attached="none"), "attached to the actor 'none'"),
        (SplatPlacement("block", attitude=(0.0, 0.0, 0.0, 2.0)), "length"),
        (SplatPlacement("block", scale=0.0), "above 0"),
        (SplatPlacement("block", (math.nan, 0.0, 0.0)), "finite"),
    ],
)
def test_placements_are_checked(item: SplatPlacement, says: str) -> None:
    place = Scene("place", clouds={"block": block()}, splats=(item,))
    assert any(says in line and not line.startswith("note") for line in check_scene(place))
    with pytest.raises(AirworthyError):
        SceneBatch(place)


def test_notes_say_what_cannot_be_hit() -> None:
    place = add_splats(Scene("place"), block(), "block")
    assert any("can be hit" in line for line in check_scene(place))
    assert not any("can be hit" in line for line in check_scene(with_surface(place)))
    with pytest.raises(AirworthyError, match="another cloud"):
        add_splats(place, block(), "block")


# ---- what is hit --------------------------------------------------------------------------------------------------------


def test_a_surface_is_hit_where_the_splats_are() -> None:
    where = (3.0, 1.0, 2.0)
    place = add_splats(Scene("place"), block(), "block", where, TURN, 2.0)
    hit = with_surface(place, 0.1, filled=True)
    item = hit.instances[-1]
    assert (item.name, item.visible, item.covered, item.collide) == (SURFACE, False, True, True)
    batch = SceneBatch(hit)
    # From the left through the middle: the cube, 2 m wide and turned by 0.4, begins 1 / cos 0.4 before its middle.
    impact = sweep_sphere(batch.geometry, [[0.0, 1.0, 2.0]], [[6.0, 1.0, 2.0]], [0.1], env=[0])
    face = 3.0 - (1.0 + 2 * 0.04 * 2) / np.cos(0.4) - 0.1  # to 2 sigma of its outermost gaussians, less the sphere
    assert face - 0.15 <= 6.0 * impact.fraction[0] <= face + 0.25  # a cell before it, or the threshold's way into it
    assert clearance(batch.geometry, [where], env=[0]).distance[0] < -0.9  # inside is filled
    with pytest.raises(AirworthyError, match="already"):
        with_surface(hit)


PLACED = """version = 1
name = "place"
bounds = { lower = [-9.0, -9.0, 0.0], upper = [9.0, 9.0, 9.0] }
[clouds.cube]
file = "cube.ply"
up = "z"
[[splats]]
cloud = "cube"
position = [3.0, 1.0, 2.0]
scale = 2.0
"""
RIDING = """[[splats]]
cloud = "cube"
attached = "cart"
position = [0.0, 0.0, 1.0]
solid = true
cell = 0.1
[shapes.deck]
kind = "sphere"
radius = 0.01
[[actors]]
name = "cart"
motion = "scripted"
parts = [{ shape = "deck" }]
path = [{ time = 0.0, position = [0.0, -8.0, 2.0] }, { time = 4.0, position = [0.0, 0.0, 2.0] }]
"""


def placed_file(folder: Path, more: str) -> Scene:
    write_splats(block(), folder / "cube.ply", up="z")
    (folder / "scene.toml").write_text(PLACED + more)
    return read_scene(folder / "scene.toml")


def test_placed_splats_are_solid_in_a_scene_file(tmp_path: Path) -> None:
    """The same cube as in Python: hit where it is placed, not without `solid`, and the same when written and read again."""
    assert not placed_file(tmp_path, "").instances
    place = placed_file(tmp_path, "solid = true\ncell = 0.1\nfilled = true\n")
    wanted = with_surface(placed_file(tmp_path, ""), 0.1, filled=True)
    np.testing.assert_array_equal(place.shapes[place.instances[0].shape].vertices, wanted.shapes[SURFACE].vertices)
    assert not any("can be hit" in line for line in check_scene(place))
    impact = sweep_sphere(SceneBatch(place).geometry, [[0.0, 1.0, 2.0]], [[6.0, 1.0, 2.0]], [0.1], env=[0])
    assert 1.6 <= 6.0 * impact.fraction[0] <= 2.0  # the cube of 2 m begins at x = 2, less the sphere, a cell and 2 sigma
    write_scene(place, tmp_path / "again")
    assert scene_digest(read_scene(tmp_path / "again")) == scene_digest(place)


def test_solid_splats_ride_on_actors(tmp_path: Path) -> None:
    place = placed_file(tmp_path, RIDING)
    at = [[0.0, 0.0, 3.0]]
    far, near = (clearance(SceneBatch(posed(place, time)).geometry, at, env=[0]).distance[0] for time in (0.0, 4.0))
    assert far > 3.0
    assert near < 0.6  # in the cube's middle, whose sides are half a metre away


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("cell = 0.1\n", "add solid = true"),
        ("solid = 1\n", r"solid must be true or false, but is 1"),
        ("solid = true\ncell = -1.0\n", "above 0"),
        ("solid = true\ncell = 1e-6\n", "cells"),
        ('solid = true\nattached = "nobody"\n', "nobody"),
        ("solid = true\n[[splats]]\ncloud = 'cube'\nposition = [90.0, 0.0, 0.0]\nsolid = true\n", "outside its"),
    ],
)
def test_solid_splats_that_cannot_be(tmp_path: Path, more: str, reason: str) -> None:
    with pytest.raises(AssetError, match=reason):
        placed_file(tmp_path, more)


def test_a_vehicle_hits_placed_splats(tmp_path: Path) -> None:
    """Through the command line: a flight along a line ends at the cube in its way, and arrives where the cube is only seen."""
    outcomes = []
    for name, more in (("seen", ""), ("solid", "solid = true\ncell = 0.1\n")):
        (tmp_path / name).mkdir()
        placed_file(tmp_path / name, more)
        line = [
            "--scene",
            str(tmp_path / name / "scene.toml"),
            "--waypoints=0,1,2",
            "6,1,2",
            "--hold",
            "0",
            "--no-report",
            "--course-check",
            "warn",
        ]
        main(["fly", "--vehicle", "carl", *line, "--out", str(tmp_path / name / "run")])
        outcomes.append(json.loads((tmp_path / name / "run" / "summary.json").read_text())["flights"][0]["outcome"])
    assert outcomes == ["success", "collision"]


def test_surfaces_keep_to_the_bounds() -> None:
    place = add_splats(Scene("place", bounds=Region((-50.0, -50.0, 0.0), (50.0, 50.0, 30.0))), block(), "block")
    assert surface_geometry(place, 0.1).lower[2] == pytest.approx(-0.1)  # a cell below the bounds, on which floors lie
    faint = add_splats(Scene("place"), gaussians([[0.0, 0.0, 1.0]], 0.01, opacity=0.3), "faint")
    assert with_surface(faint, 0.1) is faint
    far = add_splats(Scene("place"), block(), "block", (500.0, 0.0, 0.0))
    with pytest.raises(AirworthyError, match="outside its bounds"):
        with_surface(far)
    with pytest.raises(AirworthyError, match="no splats that stand still"):
        with_surface(Scene("place"))


@given(st.tuples(*[st.floats(0.01, 300.0)] * 3))
@settings(max_examples=50)
def test_the_resolution_suits_the_size(size: tuple[float, float, float]) -> None:
    cell = surface_resolution((0.0, 0.0, 0.0), size)
    assert cell >= 0.02
    assert np.prod(np.array(size) / cell) <= 3_000_001.0
    assert cell <= 0.1 or np.prod(np.array(size) / 0.1) > 2_999_999.0


def test_rays_meet_what_is_covered_and_colours_do_not() -> None:
    """Ghosts are in `geometry` and not in `seen()`; numbers agree; what is covered and visible is in both."""
    place = with_surface(add_splats(Scene("place"), block(), "block"), 0.1)
    wall = Instance("wall", (3.0, 0.0, 0.0))
    shell = Instance("wall", (5.0, 0.0, 0.0), covered=True)
    place = replace(place, shapes={**place.shapes, "wall": Box((0.1, 2.0, 2.0))}, instances=(*place.instances, wall, shell))
    actor = Actor(
        "mover", (Instance("wall", (-9.0, 0.0, 0.0), visible=False, covered=True), Instance("wall", (-7.0, 0.0, 0.0)))
    )
    batch = SceneBatch(replace(place, actors=(actor,)), 2)
    rendered = batch.rendered()
    assert rendered is not batch
    assert rendered.origin is batch
    assert batch.rendered().geometry is rendered.geometry
    ahead = RayTable([[[1.0, 0.0, 0.0]]], axis=(1.0, 0.0, 0.0))
    start = np.array([[-2.0, 0.0, 0.0], [-12.0, 0.0, 0.0]])
    channels = ("range", "instance")
    both = cast(batch.geometry, ahead, start, np.tile(frames.IDENTITY, (2, 1)), [0, 1], channels)
    colors = cast(rendered.geometry, ahead, start, np.tile(frames.IDENTITY, (2, 1)), [0, 1], channels)
    assert both["range"].ravel() == pytest.approx([1.4, 2.9], abs=0.11)  # its own surface, within a cell; the actor's ghost
    assert colors["range"].ravel() == pytest.approx([4.9, 4.9])  # the wall behind, and the actor's second part
    assert colors["instance"].ravel().tolist() == [1, batch.geometry.dynamic_start + 1]
    batch.pose_actor("mover", (0.0, 1.0, 0.0), env_ids=[1])
    moved = cast(batch.rendered().geometry, ahead, start, np.tile(frames.IDENTITY, (2, 1)), [0, 1], channels)
    assert moved["range"].ravel() == pytest.approx([4.9, 4.9])
    batch.pose_actor("mover", (0.5, 5.0, 0.0), env_ids=[1])
    moved = cast(batch.rendered().geometry, ahead, start, np.tile(frames.IDENTITY, (2, 1)), [0, 1], channels)
    assert moved["range"].ravel() == pytest.approx([4.9, 14.9])


def test_a_batch_that_nobody_holds_goes_with_its_twin() -> None:
    """Without the garbage collector, which comes late: with it goes what is kept for images, half a gigabyte of a court."""
    gc.collect()
    gc.disable()
    try:
        place = Scene("place", {"wall": Box((1.0, 1.0, 1.0))}, instances=(Instance("wall", visible=False, covered=True),))
        batch = SceneBatch([place], 2)
        rendered = batch.rendered()
        assert rendered is not batch
        assert rendered.origin is batch
        assert batch.origin is batch
        gone = weakref.ref(batch)
        del rendered, batch
        assert gone() is None
    finally:
        gc.enable()


def test_a_batch_without_ghosts_is_what_colours_see() -> None:
    place = Scene("place", {"wall": Box((1.0, 1.0, 1.0))}, instances=(Instance("wall", covered=True),))
    batch = SceneBatch(place)
    assert batch.rendered() is batch
    assert batch.origin is batch


def test_the_seen_twin_follows_scenes_that_are_swapped() -> None:
    one = with_surface(add_splats(Scene("one"), block(), "block"), 0.1)
    box = {"wall": Box((0.1, 2.0, 2.0))}
    two = Scene("two", box, instances=(Instance("wall", (3.0, 0.0, 0.0)),), actors=(Actor("a", (Instance("wall"),)),))
    batch = SceneBatch([one, two], 2)
    ahead = RayTable([[[1.0, 0.0, 0.0]]], axis=(1.0, 0.0, 0.0))

    def look() -> list[float]:
        start = np.tile([[-2.0, 0.0, 0.0]], (2, 1))
        return (
            cast(batch.rendered().geometry, ahead, start, np.tile(frames.IDENTITY, (2, 1)), [0, 1], ("range",))["range"]
            .ravel()
            .tolist()
        )

    assert look() == pytest.approx([np.inf, 1.9])
    batch.assign([0, 1], [1, 0])
    assert look() == pytest.approx([1.9, np.inf])
    three = replace(two, name="three", actors=())
    batch.assign([1], three)  # never seen before: the batch is placed anew
    assert look() == pytest.approx([1.9, 4.9])


# ---- what moves ---------------------------------------------------------------------------------------------------------


def test_attached_clouds_ride_on_their_actor() -> None:
    path = (Waypoint(0.0, (0.0, 0.0, 0.0)), Waypoint(1.0, (2.0, 0.0, 0.0), (0.0, 0.0, math.sin(0.5), math.cos(0.5))))
    place = add_splat_actor(Scene("place"), Actor("cart", (), "scripted", path=path), block(), 0.1)
    assert place.splats == (SplatPlacement("cart", attached="cart", name="cart"),)
    part = place.actors[0].parts[0]
    assert part.covered
    assert not part.visible
    place = replace(place, splats=(replace(place.splats[0], position=(1.0, 0.0, 0.5), attitude=TURN),))
    batch = SceneBatch([place, Scene("empty")], 4)
    batch.advance([0.0, 0.0, 1.0, 0.0])
    position, attitude = batch.splat_poses()
    assert position.shape == (4, 1, 3)
    assert np.isnan(position[[1, 3]]).all()
    assert position[0, 0] == pytest.approx([1.0, 0.0, 0.5])
    assert position[2, 0] == pytest.approx([2.0 + math.cos(1.0), math.sin(1.0), 0.5])
    half = 0.5 * (1.0 + 0.4)
    assert attitude[2, 0] == pytest.approx([0.0, 0.0, math.sin(half), math.cos(half)])
    still = posed(place, 1.0)
    assert still.splats[0].attached == ""
    assert still.splats[0].position == pytest.approx(position[2, 0])
    assert still.splats[0].attitude == pytest.approx(attitude[2, 0])
    assert clearance(batch.geometry, [[0.0, 0.0, 0.0]], env=[2]).distance[0] > 1.0  # it drove away, and its surface with it
    assert clearance(batch.geometry, [[0.0, 0.0, 0.9]], env=[0]).distance[0] < 0.5


# ---- objects ------------------------------------------------------------------------------------------------------------


def test_standing_on_the_floor() -> None:
    splats = standing(block(), (2.0, -1.0, 0.5), yaw=0.7, scale=3.0, foot=0.0)
    assert splats.position[:, 2].min() == pytest.approx(0.5, abs=1e-5)
    assert splats.position.mean(0) == pytest.approx([2.0, -1.0, 2.0], abs=1e-4)
    item = stood("block", block(), (2.0, -1.0, 0.5), 0.7, 3.0, 0.0)
    assert same(placed(block(), item), splats)
    for mistake in ({"foot": 0.5}, {"scale": 0.0}, {"yaw": math.inf}):
        with pytest.raises(AirworthyError):
            stood("block", block(), (0.0, 0.0, 0.0), **mistake)
    with pytest.raises(AirworthyError, match="opacity"):
        stood("faint", gaussians([0.0] * 3, opacity=0.2), (0.0, 0.0, 0.0))


# ---- names --------------------------------------------------------------------------------------------------------------


def glb_with_splats(path: Path) -> None:
    """A glTF of one primitive with KHR_gaussian_splatting, three gaussians."""
    n = 3
    arrays = {
        "POSITION": np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], "<f4"),
        "KHR_gaussian_splatting:ROTATION": np.tile(np.array([0.0, 0.0, 0.0, 1.0], "<f4"), (n, 1)),
        "KHR_gaussian_splatting:SCALE": np.full((n, 3), 0.3, "<f4"),
        "KHR_gaussian_splatting:OPACITY": np.full((n, 1), 0.9, "<f4"),
        "KHR_gaussian_splatting:SH_DEGREE_0_COEF_0": np.zeros((n, 3), "<f4"),
    }
    blob, views, accessors = b"", [], []
    for array in arrays.values():
        views.append({"buffer": 0, "byteOffset": len(blob), "byteLength": array.nbytes})
        kind = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}[array.shape[1]]
        accessors.append({"bufferView": len(views) - 1, "componentType": 5126, "count": n, "type": kind})
        blob += array.tobytes()
    primitive = {
        "mode": 0,
        "attributes": {name: k for k, name in enumerate(arrays)},
        "extensions": {"KHR_gaussian_splatting": {"kernel": "ellipse", "colorSpace": "srgb_rec709_display"}},
    }
    root = {
        "asset": {"version": "2.0"},
        "extensionsUsed": ["KHR_gaussian_splatting"],
        "buffers": [{"byteLength": len(blob)}],
        "bufferViews": views,
        "accessors": accessors,
        "meshes": [{"primitives": [primitive]}],
        "nodes": [{"mesh": 0}],
        "scenes": [{"nodes": [0]}],
        "scene": 0,
    }
    text = json.dumps(root).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(blob), b"BIN\0") + blob
    path.write_bytes(struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks)


@pytest.mark.parametrize("name", ["block.ply", "block.spz"])
def test_a_splat_file_is_a_place_to_fly_in(name: str, tmp_path: Path) -> None:
    write_splats(block(1.0), tmp_path / name)
    found = scene(str(tmp_path / name), units="m")
    assert found.name == "block"
    assert list(found.clouds) == ["block"]
    assert found.splats == (SplatPlacement("block", name="block"),)
    assert found.instances[-1].name == SURFACE
    assert np.allclose(found.bounds.lower, -3.0, atol=2e-3)
    assert np.allclose(found.bounds.upper, 3.0, atol=2e-3)
    assert found.facts == {"gaussians": 1331.0, "dropped": 0.0}
    assert found.start is not None
    assert found.goal is not None
    problems = [line for line in check_scene(found) if not line.startswith("note")]
    assert problems == []
    batch = SceneBatch(found)
    ends = np.array([found.start.position, found.goal.position])
    assert (clearance(batch.geometry, ends).distance > 0.3).all()
    sweep = sweep_sphere(batch.geometry, ends[:1], ends[1:], [0.3], env=[0])
    assert sweep.fraction[0] == 1.0
    toward = -ends[0, :2] / np.linalg.norm(ends[0, :2])  # it looks at the block
    assert [math.cos(found.start.yaw), math.sin(found.start.yaw)] == pytest.approx(toward)


def test_units_and_axes_of_splats(tmp_path: Path) -> None:
    write_splats(block(100.0), tmp_path / "block.ply")
    small = scene(tmp_path / "block.ply", units="cm", up="z")
    assert small.splats[0].scale == 0.01
    assert np.allclose(small.bounds.upper, 3.0, atol=1e-3)
    with pytest.raises(UnknownNameError):
        scene(tmp_path / "block.ply", units="feet")
    with pytest.raises(AirworthyError, match="says its own units"):
        scene(yard(tmp_path, ""), up="y")


def test_a_room_is_entered(tmp_path: Path) -> None:
    """Of a room captured from inside, start and goal are inside: its walls are between them and the rest of the bounds."""
    side = np.arange(-2.5, 2.51, 0.1)
    a, b = (grid.ravel() for grid in np.meshgrid(side, side))
    faces = [np.insert(np.stack([a, b], -1), axis, value, axis=1) for axis in range(3) for value in (-2.5, 2.5)]
    write_splats(gaussians(np.concatenate(faces), 0.06), tmp_path / "room.spz")
    found = scene(tmp_path / "room.spz")
    assert found.start is not None
    assert found.goal is not None
    assert np.abs([found.start.position, found.goal.position]).max() < 2.3
    assert math.dist(found.start.position, found.goal.position) > 1.0


def test_every_kind_of_name_finds_its_reader(tmp_path: Path) -> None:
    glb_with_splats(tmp_path / "three.glb")
    assert len(scene(tmp_path / "three.glb").clouds["three"]) == 3
    (tmp_path / "mesh.ply").write_text(
        "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
        "element face 1\nproperty list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n"
    )
    assert not scene(tmp_path / "mesh.ply").clouds
    with pytest.raises(AssetError, match="ns-export"):
        scene(str(tmp_path / "model.ckpt"))
    with pytest.raises(AssetError, match="There is no file"):
        scene(str(tmp_path / "none.sog"))
    write_splats(gaussians(np.zeros((4, 3)), opacity=0.2), tmp_path / "faint.spz")
    with pytest.raises(AirworthyError, match="opaque"):
        scene(tmp_path / "faint.spz")


def test_files_from_the_web_are_scenes(data_dir: Path) -> None:
    """Counts of SOURCES.md; every container of the folder."""
    folder = data_dir / "splats"
    names = {
        "statues_sog/angel.sog": 71359,
        "guitar.compressed.ply": 90854,
        "flowers_sog_chunks/0_0": None,
        "format_fixtures/minimal.splat": None,
        "format_fixtures/minimal-v4.spz": None,
    }
    for name, count in names.items():
        found = scene(str(folder / name))
        cloud = next(iter(found.clouds.values()))
        assert count in (None, len(cloud))
        assert [line for line in check_scene(found) if not line.startswith("note")] == []


# ---- extent, roofs, light -----------------------------------------------------------------------------------------------


def test_splats_count_in_the_extent() -> None:
    place = Scene("place", {"box": Box((0.5, 0.5, 0.5))}, instances=(Instance("box", (5.0, 0.0, 0.0)),))
    with_strays = Splats(*(np.concatenate([getattr(block(), part), getattr(gaussians([[900.0, 0.0, 0.0]]), part)])
                           for part in ("position", "rotation", "scale", "opacity", "harmonics")))  # fmt: skip
    place = add_splats(place, with_strays, "block", (0.0, -3.0, 1.0))
    box = scene_box(place)
    assert box is not None
    # The stray lies beyond the thousandth that is left out; the faces of the block are in it.
    assert box[0] == pytest.approx([-0.5, -3.5, -0.5], abs=1e-3)
    assert box[1] == pytest.approx([5.5, 0.5, 1.5], abs=1e-3)
    low, high = content_box(place)
    assert low[2] == 0.0  # cut by the bounds
    assert high[0] == pytest.approx(5.5)


def test_a_roof_goes_with_the_splats_that_show_it() -> None:
    room = {"slab": Box((3.0, 3.0, 0.05))}
    place = Scene(
        "room",
        room,
        instances=(Instance("slab", (0.0, 0.0, -0.05), covered=True), Instance("slab", (0.0, 0.0, 3.05), covered=True)),
        bounds=Region((-3.0, -3.0, 0.0), (3.0, 3.0, 3.0)),
    )
    cloud = gaussians([[0.0, 0.0, 1.0], [0.0, 0.0, 2.99], [1.0, 0.0, 0.0]])
    place = add_splats(place, cloud, "room")
    assert roofless(replace(place, instances=place.instances[:1])) is not None
    bare = roofless(place)
    assert len(bare.instances) == 1
    left = static_splats(bare)
    assert left is not None
    assert left.position[:, 2].tolist() == [1.0, 0.0]
    assert len(place.clouds["room"]) == 3


def test_light_is_scaled_alike() -> None:
    glow = Material(emissive=(1.0, 0.5, 0.0))
    place = Scene(
        "place", materials={"lamp": glow, "wall": Material()}, lights=(Sun((0.0, 0.0, -1.0)), PointLight((0.0, 0.0, 2.0)))
    )
    place = add_splats(place, block(), "block")
    dim = relit(place, 0.4)
    assert isinstance(dim.lights[0], Sun)
    assert dim.lights[0].irradiance == pytest.approx(1.2)
    assert dim.lights[1].intensity == pytest.approx(4.0)  # type: ignore[union-attr]
    assert dim.sky.intensity == pytest.approx(0.4)
    assert dim.materials["lamp"].emissive == pytest.approx((0.4, 0.2, 0.0))
    assert dim.materials["wall"] is place.materials["wall"]
    shown = 0.5 + C0 * dim.clouds["block"].harmonics[0, 0]
    linear = ((np.array([0.2, 0.6, 0.2]) + 0.055) / 1.055) ** 2.4
    assert ((shown + 0.055) / 1.055) ** 2.4 == pytest.approx(0.4 * linear, rel=1e-5)
    for factor in (-1.0, math.nan):
        with pytest.raises(AirworthyError, match="times as brightly"):
            relit(place, factor)


# ---- the command line ---------------------------------------------------------------------------------------------------


def test_the_command_line_knows_splats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_splats(block(1.0), tmp_path / "block.spz")
    assert main(["scenes", "show", str(tmp_path / "block.spz"), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["clouds"], shown["gaussians_stored"], shown["gaussians_seen"]) == (1, 1331, 1331)
    assert main(["scenes", "export", str(tmp_path / "block.spz"), "--out", str(tmp_path / "out.glb")]) == 0
    assert "splats are not in it" in capsys.readouterr().out
    assert main(["scenes", "export", str(tmp_path / "block.spz"), "--out", str(tmp_path / "out.splats.ply")]) == 0
    assert "not in it" not in capsys.readouterr().out
    assert len(read_splats(tmp_path / "out.splats.ply").splats) == 1331
    assert main(["scenes", "export", str(tmp_path / "block.spz"), "--out", str(tmp_path / "folder")]) == 0
    capsys.readouterr()
    assert main(["scenes", "validate", str(tmp_path / "folder")]) == 0
    assert "1,331 gaussians" in capsys.readouterr().out
    assert main(["scenes", "export", "empty_room", "--out", str(tmp_path / "none.spz")]) == 2
    assert "no splats to write" in capsys.readouterr().err


def test_a_start_in_a_splat_wall_is_found() -> None:
    place = add_splats(Scene("place", start=Pose((0.0, 0.0, 0.5))), block(1.0), "block")
    assert any("clearance" in line for line in check_scene(with_surface(place, 0.1, filled=True)))
