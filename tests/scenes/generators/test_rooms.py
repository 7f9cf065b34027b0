"""The Aerial Gym rooms: stated numbers, one at a time and thousands at once, levels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.core.frames import rotate_inverse, to_euler, to_matrix
from airworthy.geometry import Box, Cylinder
from airworthy.scenes.generators import GENERATORS, resample, room_arrays, room_batch, with_level
from airworthy.scenes.generators.rooms import ALIASES, ROOMS, RoomArrays
from airworthy.scenes.generators.rooms.batch import thin_rods, trees
from airworthy.scenes.generators.rooms.scene import room_scene
from airworthy.scenes.record import DEFAULT_SEMANTICS, PointLight
from airworthy.scenes.viewpoints import scene_digest

COUNT = 300


def many(name: str, **options: Any) -> RoomArrays:
    return room_arrays(name, np.arange(COUNT), **options)


# ---- stated numbers -----------------------------------------------------------------------------------------------------

SOURCES = {
    "obstacle_room": ("env_with_obstacles", "env_object_config"),
    "gym_forest": ("forest_env", "env_object_config"),
    "lidar_room": ("env_with_lidar_nav_obstacles", "lidar_nav_env_config"),
    "dynamic_room": ("dynamic_environment", "dynamic_env_object_config"),
    "empty_room": ("empty_env", None),
}


@pytest.mark.parametrize("name", SOURCES)
def test_rooms_are_those_of_the_source(name: str, data_dir: Path) -> None:
    data = json.loads((data_dir / "aerial_gym" / "environments.json").read_text())
    source, config = SOURCES[name]
    assert ALIASES[source] == name
    room, env = ROOMS[name], data["environments"][source]["env"]
    assert [list(c) for c in room.lower] == [env["lower_bound_min"], env["lower_bound_max"]]
    assert [list(c) for c in room.upper] == [env["upper_bound_min"], env["upper_bound_max"]]
    assert room.ground == env["create_ground_plane"]
    switched_on = {key for key, on in data["environments"][source]["include_asset_type"].items() if on}
    assert {(a.kind + "s").replace("walls", a.semantic) for a in room.assets} == switched_on
    assets = data["assets"][config] if config else {}
    for mine in room.assets:
        theirs = assets.get(f"{mine.kind}_asset_params") or assets[mine.semantic]
        assert mine.count == theirs["num_assets"]
        assert mine.keep == theirs["keep_in_env"]
        low, high = theirs["min_state_ratio"], theirs["max_state_ratio"]
        assert list(mine.lower) == low[:3]
        assert list(mine.upper) == high[:3]
        assert list(mine.angle) == pytest.approx(high[3:6])
        assert [-a for a in mine.angle] == pytest.approx(low[3:6])
        if theirs["semantic_id"] > 0:
            assert DEFAULT_SEMANTICS[mine.semantic] == theirs["semantic_id"]


def test_boxes_are_those_of_the_source(data_dir: Path) -> None:
    sizes = json.loads((data_dir / "aerial_gym" / "environments.json").read_text())["asset_geometry"]
    stated = {k: v["box_size"] for k, v in sizes.items() if "backup" not in k}
    shapes = room_arrays("lidar_room", [0]).shapes
    mine = sorted([2.0 * h for h in s.half_size] for s in shapes if isinstance(s, Box))
    unique = [list(v) for v in sorted({tuple(v) for v in stated.values()})]
    assert np.array(mine) == pytest.approx(np.array(unique))


@pytest.mark.parametrize("name", ROOMS)
def test_everything_is_within_its_ratios(name: str) -> None:
    rooms, room = many(name), ROOMS[name]
    assert (rooms.lower >= room.lower[0]).all()
    assert (rooms.lower <= room.lower[1]).all()
    assert (rooms.upper >= room.upper[0]).all()
    assert (rooms.upper <= room.upper[1]).all()
    size = rooms.upper - rooms.lower
    ordered = [a for a in room.ordered() for _ in range(a.count)]
    for number, assets in enumerate(ordered):
        k = np.flatnonzero(rooms.asset == number)
        assert len(k) == (21 if assets.kind == "tree" else 1)
        if assets.kind == "tree":
            continue
        ratio = (rooms.position[:, k[0]] - rooms.lower) / size
        assert (ratio >= np.array(assets.lower) - 1e-9).all()
        assert (ratio <= np.array(assets.upper) + 1e-9).all()
        angles = np.abs(to_euler(rooms.attitude[:, k[0]]))
        small = np.array(assets.angle) < 1.5  # larger ones have more than one set of Euler angles
        assert (angles[:, small] <= np.array(assets.angle)[small] + 1e-9).all()
    if ordered and ordered[0].kind != "tree":
        first = (rooms.position[:, 0] - rooms.lower) / size
        low, high = np.array(ordered[0].lower), np.array(ordered[0].upper)
        # Uniform over its range: the mean of 300 lies within 4 standard deviations, 4 / sqrt(12 * 300) = 0.067 of the range.
        assert first.mean(0) == pytest.approx(0.5 * (low + high), abs=0.067 * max(1e-3, (high - low).max()))


def test_walls_stand_on_the_bounds() -> None:
    rooms = many("obstacle_room")
    for semantic, axis, corner in ((9, 0, rooms.upper), (10, 0, rooms.lower), (11, 1, rooms.upper), (12, 1, rooms.lower)):
        k = int(np.flatnonzero(rooms.semantic_id == semantic)[0])
        assert rooms.position[:, k, axis] == pytest.approx(corner[:, axis])
        box = rooms.shapes[rooms.shape[0, k]]
        assert isinstance(box, Box)
        assert box.half_size[axis] == 0.1
        assert (rooms.shape[:, k] == rooms.shape[0, k]).all()
    assert sorted(set(rooms.semantic_id.tolist())) == [3, 9, 10, 11, 12, 13, 14, 20]


def test_objects_are_drawn_from_all_four_boxes() -> None:
    rooms = many("obstacle_room")
    picked = np.bincount(rooms.shape[:, rooms.semantic_id == 3].reshape(-1), minlength=len(rooms.shapes))
    share = picked[picked > 0] / picked.sum()
    assert len(share) == 4
    assert share == pytest.approx(0.25, abs=0.02)  # 10,500 draws: 4 standard deviations are 0.017


def test_spawn_boxes() -> None:
    rooms = many("obstacle_room")
    low, high = rooms.spawn
    size = rooms.upper - rooms.lower
    assert (low - rooms.lower) / size == pytest.approx(np.tile([0.10, 0.15, 0.15], (COUNT, 1)))
    assert (high - rooms.lower) / size == pytest.approx(np.tile([0.20, 0.85, 0.85], (COUNT, 1)))


# ---- trees and rods -----------------------------------------------------------------------------------------------------


def test_trees() -> None:
    assert len(trees()) == 100
    for tree in trees()[::7]:
        trunk = tree.links[0]
        assert len(tree.links) == 21
        assert 2.0 <= trunk.half_length <= 4.0
        assert 0.1 <= trunk.radius <= 0.2
        assert tree.position[0] == pytest.approx([0.0, 0.0, trunk.half_length], abs=1e-4)
        for k in range(1, 21):  # each link begins inside of its bearer: of the trunk, or of its branch
            bearer = 0 if (k - 1) % 4 == 0 else k - (k - 1) % 4
            axis = to_matrix(tree.attitude[k])[:, 2]
            root = tree.position[k] - axis * tree.links[k].half_length
            local = rotate_inverse(tree.attitude[bearer], root - tree.position[bearer])
            assert np.hypot(*local[:2]) <= tree.links[bearer].radius
            assert abs(local[2]) <= tree.links[bearer].half_length


def test_a_tree_is_carried_by_its_root() -> None:
    rooms = many("gym_forest")
    links = np.flatnonzero(rooms.semantic_id == DEFAULT_SEMANTICS["tree"])
    assert len(links) == 21
    stock = {link for tree in trees() for link in tree.links}
    kinds = set()
    for env in range(0, COUNT, 10):
        trunk = rooms.shapes[rooms.shape[env, links[0]]]
        assert trunk in stock
        assert isinstance(trunk, Cylinder)
        axis = to_matrix(rooms.attitude[env, links[0]])[:, 2]
        root = rooms.position[env, links[0]] - trunk.half_length * axis
        assert root[2] == pytest.approx(-1.0, abs=1e-4)  # measures of links are rounded to 0.1 mm
        assert (np.abs(root[:2]) <= 4.0 + 1e-3).all()
        assert axis[2] >= np.cos(np.pi / 6.0) - 1e-9
        kinds.add(int(rooms.shape[env, links[0]]))
    assert len(kinds) > 15


def test_numbers_of_links() -> None:
    per_link = room_scene("gym_forest", 0)
    per_tree = room_scene("gym_forest", 0, per_link=False)
    ids = [[i.instance_id for i in scene.instances if i.semantic == "tree"] for scene in (per_link, per_tree)]
    assert len(set(ids[0])) == 21
    assert len(set(ids[1])) == 1
    others = {i.instance_id for i in per_tree.instances if i.semantic != "tree"}
    assert not others & set(ids[1])
    assert len(others) == 36


def test_thin_rods() -> None:
    rods = thin_rods()
    assert len(rods) == 1000
    assert len(set(rods)) == 1000
    for rod in rods:
        if isinstance(rod, Box):
            thick, length = 2.0 * rod.half_size[0], 2.0 * rod.half_size[2]
        else:
            assert isinstance(rod, Cylinder)
            thick, length = 2.0 * rod.radius, 2.0 * rod.half_length
        assert 0.0099 <= thick <= 0.0401
        assert 0.999 <= length <= 5.001


# ---- one function of (name, seed, environment, episode) -----------------------------------------------------------------


def same(a: RoomArrays, b: RoomArrays, rows_a: Any, rows_b: Any) -> bool:
    fields = ("lower", "upper", "shape", "position", "attitude", "active", "velocity", "rate")
    return all((getattr(a, f)[rows_a] == getattr(b, f)[rows_b]).all() for f in fields)


@pytest.mark.parametrize("name", ["obstacle_room", "gym_forest", "dynamic_room"])
def test_a_room_depends_on_nothing_but_its_key(name: str) -> None:
    order = np.random.default_rng(1).permutation(COUNT)
    straight, mixed = many(name, seed=5), room_arrays(name, order, 5)
    assert same(straight, mixed, order, slice(None))
    alone = room_arrays(name, [17], 5)
    assert same(straight, alone, [17], [0])
    for other in (room_arrays(name, [17], 6), room_arrays(name, [18], 5), room_arrays(name, [17], 5, episodes=1)):
        assert not same(alone, other, [0], [0])
    assert same(many(name, episodes=3), room_arrays(name, [4, 9], episodes=[3, 3]), [4, 9], slice(None))


def test_a_scene_is_a_row_of_the_batch() -> None:
    shapes, placements = room_batch("obstacle_room", 5, seed=3)
    scene = GENERATORS["obstacle_room"](4, 3)
    placed = placements[4]
    assert [scene.shapes[i.shape] for i in scene.instances] == [shapes[k] for k in placed.shape]
    assert np.array([i.position for i in scene.instances]) == pytest.approx(placed.position, abs=0.0)
    assert np.array([i.attitude for i in scene.instances]) == pytest.approx(placed.attitude, abs=1e-15)
    assert [i.instance_id for i in scene.instances] == placed.instance_id.tolist()
    assert [DEFAULT_SEMANTICS[i.semantic] for i in scene.instances] == placed.semantic_id.tolist()


def test_thousands_of_different_rooms_share_shapes() -> None:
    shapes, placements = room_batch("obstacle_room", 4096)
    assert len(shapes) == 8
    assert len(placements) == 4096
    assert len({p.position.tobytes() for p in placements}) == 4096
    assert all(len(p) == 44 for p in placements)


def test_dynamic_room() -> None:
    scene = GENERATORS["dynamic_room"](2, 0)
    assert [i.name for i in scene.instances] == ["ground"]
    assert len(scene.actors) == 40
    assert all(a.motion == "velocity" for a in scene.actors)
    speeds, rates = (np.abs([getattr(a, f) for a in scene.actors]) for f in ("velocity", "rate"))
    assert 0.5 < speeds.max() <= 1.0
    assert 0.25 < rates.max() <= 0.5
    rooms = room_arrays("dynamic_room", [2])
    moving, still = rooms.placements(moving=True)[0], rooms.placements()[0]
    assert (len(moving), len(still)) == (40, 1)
    assert np.array([a.position for a in scene.actors]) == pytest.approx(moving.position, abs=0.0)
    ground = rooms.shapes[still.shape[0]]
    assert isinstance(ground, Box)
    assert still.position[0, 2] + ground.half_size[2] == 0.0
    assert len(room_batch("dynamic_room", 2)[1][1]) == 41


# ---- levels -------------------------------------------------------------------------------------------------------------


def test_levels_count_over_the_whole_list() -> None:
    scene = GENERATORS["obstacle_room"](0, 0)
    for level, left in ((0, 9), (5, 9), (9, 9), (15, 15), (44, 44), (50, 44)):
        cut = with_level(scene, level)
        assert len(cut.instances) == left
        assert cut.instances == scene.instances[:left]  # kept ones come first
        assert cut.facts["level"] == left
        rooms = room_arrays("obstacle_room", [0], level=level)
        assert rooms.active.sum() == left
        assert rooms.placements()[0].collide.tolist() == [k < left for k in range(44)]
    assert len(with_level(GENERATORS["lidar_room"](0, 0), 20).instances) == 20  # nothing is kept there
    assert len(with_level(GENERATORS["dynamic_room"](0, 0), 7).actors) == 7
    forest = with_level(GENERATORS["gym_forest"](0, 0), 3)
    assert len(forest.instances) == 21 + 1 + 1  # tree, floor, one object


def test_half_counts_come_with_the_stated_probability() -> None:
    rooms = resample("obstacle_room", np.arange(4000), 2, level=40)
    placed = rooms.active.sum(1)
    assert set(placed.tolist()) == {20, 40}
    # 4,000 draws at 0.15: 4 standard deviations are 0.023.
    assert np.mean(placed == 20) == pytest.approx(0.15, abs=0.023)
    assert (room_arrays("obstacle_room", np.arange(100), level=12, half_probability=1.0).active.sum(1) == 9).all()


# ---- scenes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*ROOMS, *ALIASES])
def test_scenes_are_complete(name: str) -> None:
    scene = GENERATORS[name](1, 4)
    assert scene.name == f"{ALIASES.get(name, name)}:1@4"
    parts = [*scene.instances, *(part for actor in scene.actors for part in actor.parts)]
    assert {p.shape for p in parts} <= set(scene.shapes)
    assert {m for p in parts for m in p.materials} <= set(scene.materials)
    assert {p.semantic for p in parts} <= set(DEFAULT_SEMANTICS)
    assert len({p.name for p in parts}) == len(parts)
    assert scene.start is not None
    assert scene.goal is not None
    lower, upper = np.array(scene.bounds.lower), np.array(scene.bounds.upper)
    assert (scene.start.position - lower) / (upper - lower) == pytest.approx([0.15, 0.5, 0.5])
    assert (scene.goal.position - lower) / (upper - lower) == pytest.approx([0.92, 0.5, 0.5])
    assert len(scene.spawn) == 1
    assert scene_digest(scene) == scene_digest(GENERATORS[name](1, 4))


def test_closed_rooms_have_lamps() -> None:
    assert all(isinstance(light, PointLight) for light in GENERATORS["obstacle_room"](0, 0).lights)
    assert not any(isinstance(light, PointLight) for light in GENERATORS["gym_forest"](0, 0).lights)


# ---- mistakes -----------------------------------------------------------------------------------------------------------


def test_mistakes() -> None:
    with pytest.raises(UnknownNameError, match=r"Unknown room 'obstacle_rom'. Closest: 'obstacle_room'"):
        room_arrays("obstacle_rom", [0])
    with pytest.raises(AirworthyError, match="`env_ids` holds float64 numbers; expected integers from 0"):
        room_arrays("obstacle_room", [0.5])
    with pytest.raises(AirworthyError, match="`env_ids` holds int64 numbers; expected integers from 0"):
        room_arrays("obstacle_room", [-1])
    with pytest.raises(AirworthyError, match=r"`level` is -1; expected an integer from 0 on."):
        room_arrays("obstacle_room", [0], level=-1)
    with pytest.raises(AirworthyError, match=r"`index` is -1; expected an integer from 0 on."):
        GENERATORS["obstacle_room"](-1, 0)
    with pytest.raises(AirworthyError, match=r"Scene 'forest:1' has no levels; expected one of the rooms"):
        with_level(GENERATORS["forest"](1, 0), 3)
    assert room_arrays("obstacle_room", []).position.shape == (0, 44, 3)
