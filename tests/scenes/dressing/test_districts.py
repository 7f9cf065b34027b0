"""The dressed district of the benchmark: what is hit stays as it was, and what is seen lies close to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.core import frames
from airworthy.geometry import Mesh, RayTable, cast
from airworthy.geometry.distance import clearance
from airworthy.geometry.occupancy import voxelize
from airworthy.rendering import render
from airworthy.scenes import Scene, SceneBatch, scene, scene_digest
from airworthy.scenes.dressing import dressed, has_dress
from airworthy.scenes.dressing.urban import dressed_urban
from airworthy.scenes.extent import LOOK_GAP_MAX, look_gap, triangle_count
from airworthy.scenes.viewpoints import Viewpoint, look_at

BARE = scene("urban:1")
COLLISION_DIGEST = "9b2a5f26c67bd72b398bc772edc5340cf38aeee6a0be402f7de930af946281e6"
"""Of `urban:1` before it had a dress."""


def few() -> Scene:
    """Return a part of the district that has one of everything: tests of all of it are dear."""
    kept = [item for item in BARE.instances if item.name in ("ground", "outer_left") or item.semantic in ("pillar", "object")]
    kept += [item for item in BARE.instances if item.semantic == "wall" and not item.name]
    kept += [item for item in BARE.instances if item.semantic == "building"][8:10]
    return replace(BARE, instances=tuple(kept))


FEW = few()
DRESSED = dressed_urban(FEW, map_size=64)


def assert_equal_to_the_byte(bare: Scene, worn: Scene, cell: float) -> None:
    both = [SceneBatch(place).geometry for place in (bare, worn)]
    lower, upper = np.array(bare.bounds.lower) - 1.0, np.array([31.0, 31.0, 21.0])
    cells = [voxelize(geometry, 0, lower, upper, cell) for geometry in both]
    assert cells[0].any()
    assert cells[0].tobytes() == cells[1].tobytes()
    points = np.random.default_rng(5).uniform(bare.bounds.lower, bare.bounds.upper, (300, 3))
    near = [clearance(geometry, points, np.zeros(300, np.int32)) for geometry in both]
    np.testing.assert_array_equal(near[0].distance, near[1].distance)
    view = Viewpoint(np.array([-27.0, 0.0, 3.0]), look_at((-27.0, 0.0, 3.0), (0.0, 5.0, 3.0)), 1.2)
    table = RayTable(*view.rays(64, 48), axis=(0.0, 0.0, 1.0))
    channels = ("depth", "range", "instance_id", "semantic_id", "normal_world")
    seen = [cast(geometry, table, view.position[None], view.attitude[None], channels=channels) for geometry in both]
    for name in channels:
        assert seen[0][name].tobytes() == seen[1][name].tobytes()


def test_nothing_that_is_hit_changes_by_a_bit() -> None:
    assert_equal_to_the_byte(FEW, DRESSED, 0.4)
    assert len(DRESSED.instances) == len(FEW.instances)
    assert not any(item.collide for item in DRESSED.looks)


def test_a_district_that_wears_nothing_keeps_its_digest() -> None:
    assert scene_digest(BARE) == COLLISION_DIGEST
    assert has_dress(BARE)
    assert not has_dress(DRESSED)


def test_the_same_bytes_for_the_same_name() -> None:
    again = dressed_urban(FEW, map_size=64)
    assert scene_digest(again) == scene_digest(DRESSED) != scene_digest(FEW)


def test_what_is_seen_lies_within_five_centimetres_of_what_is_hit() -> None:
    assert_close(DRESSED, FEW)


def assert_close(worn: Scene, bare: Scene) -> None:
    """Assert it at points spread over surfaces, and at every corner of every look within the bounds: small things, too."""
    gap = look_gap(worn)
    assert len(gap.hidden) > 500
    assert len(gap.shown) > 500
    assert gap.hidden.max() <= LOOK_GAP_MAX
    assert gap.shown.max() <= LOOK_GAP_MAX
    low, high = np.array(bare.bounds.lower), np.array(bare.bounds.upper)
    corners = []
    for item in worn.looks:
        shape = worn.shapes[item.shape]
        assert isinstance(shape, Mesh)
        turn = frames.normalize(np.array(item.attitude))
        corners.append(np.array(item.position) + frames.rotate(turn, shape.vertices.astype(float)))
    points = np.concatenate(corners)
    points = points[((points >= low) & (points <= high)).all(1)]
    assert len(points) > 5000
    distance = clearance(SceneBatch(bare).geometry, points, np.zeros(len(points), np.int32)).distance
    # A micrometre for single precision 30 m from the origin, twice.
    assert np.abs(distance).max() <= LOOK_GAP_MAX + 4e-6


def test_colours_see_facades_where_depth_sees_boxes() -> None:
    view = Viewpoint(np.array([4.0, 2.0, 3.0]), look_at((4.0, 2.0, 3.0), (-13.0, 13.0, 3.0)), 1.0)
    table = RayTable(*view.rays(48, 32))
    pose = (view.position[None], view.attitude[None])
    found = render(SceneBatch(DRESSED), table, *pose, channels=("albedo", "semantic_id"))
    house = found["semantic_id"][0] == 5
    assert house.sum() > 100
    # Boxes had one albedo but for noise; walls, frames, panes and doors differ.
    assert np.std(found["albedo"][0][house].mean(-1)) > 0.06


@pytest.mark.slow
@pytest.mark.parametrize("name", ["urban:1", "urban:6", "urban:10"])
def test_whole_districts(name: str) -> None:
    bare = scene(name)
    worn = dressed(bare)
    assert_equal_to_the_byte(bare, worn, 0.3)
    assert_close(worn, bare)
    assert triangle_count(worn)[1] < 250_000
