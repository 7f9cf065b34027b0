"""The warehouse: what stands in it, where one can fly; racks and goods keep clear of walls and of each other."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from airworthy.geometry import Mesh
from airworthy.geometry.distance import clearance
from airworthy.scenes import Scene, SceneBatch, check_scene, findings, scene, scene_digest
from airworthy.scenes.extent import instance_box, triangle_count
from airworthy.scenes.generators.warehouse import warehouse_scene
from airworthy.scenes.record import SpotLight
from airworthy.scenes.warehouses.goods import LOADS, PALLET, load

HALL = warehouse_scene(0, map_size=64)
BODY = 0.3
"""Radius of what is to fly through [m]."""


def boxes(place: Scene, part: str) -> np.ndarray:
    """Return lower and upper corners (n, 2, 3) of the things whose shape's name holds a word."""
    found = [
        instance_box(place.shapes[item.shape], item.position, item.attitude, item.scale)
        for item in place.instances
        if part in item.shape
    ]
    return np.array(found)


def assert_flown_through(place: Scene) -> None:
    """The straight line from start to goal is free for a body: no other way has to be found."""
    assert place.start is not None
    assert place.goal is not None
    way = np.linspace(place.start.position, place.goal.position, 200)
    near = clearance(SceneBatch(place).geometry, way, np.zeros(len(way), np.int32))
    assert near.distance.min() > BODY


def assert_within_walls(place: Scene) -> None:
    """Within the sheet of walls, whose ribs are 4 cm deep and whose plinth 12 cm; all of it over the floor."""
    lower, upper = np.array(place.bounds.lower), np.array(place.bounds.upper)
    for part in ("hall/rack", "hall/load", "hall/pallet", "hall/press", "hall/turning centre", "hall/forklift"):
        found = boxes(place, part)
        assert len(found), part
        assert (found[:, 0, :2] > lower[:2] + 0.12).all(), part
        assert (found[:, 1, :2] < upper[:2] - 0.12).all(), part
        assert (found[:, 0, 2] > -1e-6).all(), part


def assert_loads_apart(place: Scene) -> None:
    found = boxes(place, "hall/load")
    low, high = found[:, 0], found[:, 1]
    meets = ((low[:, None] < high[None] - 1e-3) & (high[:, None] > low[None] + 1e-3)).all(-1)
    assert meets.sum() == len(found)


def assert_lamps_below_their_housings(place: Scene) -> None:
    """What is blocked by a lamp's own housing is grain on every wall that it lights from aside."""
    lamps = [light for light in place.lights if isinstance(light, SpotLight)]
    assert len(lamps) == place.facts["lamps"]
    near = clearance(SceneBatch(place).geometry, np.array([lamp.position for lamp in lamps]), np.zeros(len(lamps), np.int32))
    assert min(lamp.radius for lamp in lamps) > 0.1
    assert (near.distance > [lamp.radius for lamp in lamps]).all()
    # Each hangs below a lamp that is there, and not beside it.
    assert (near.distance < [lamp.radius + 0.05 for lamp in lamps]).all()


def assert_counts(place: Scene) -> None:
    assert_lamps_below_their_housings(place)
    assert place.facts["bays"] >= 30
    assert place.facts["loads"] > 200
    assert place.facts["lamps"] >= 8
    assert all(item.collide for item in place.instances)
    assert {item.attached for item in place.looks} == {actor.name for actor in place.actors}  # people, and nothing else
    own, drawn = triangle_count(place)
    assert own < 200_000
    assert drawn < 1_000_000


def test_the_way_from_start_to_goal_is_free() -> None:
    assert_flown_through(HALL)


def test_racks_and_goods_stand_in_the_hall_and_touch_no_others() -> None:
    assert_within_walls(HALL)
    assert_loads_apart(HALL)
    for name in LOADS:
        shape = HALL.shapes.get(f"hall/load/{name}")
        points = load(name).surface()[0] if not isinstance(shape, Mesh) else shape.vertices
        # Under the beams of the level above, which reach 15 cm below the pallets there.
        assert points[:, 2].max() < 1.65 - 0.2, name
        assert np.abs(points[:, 0]).max() < 0.5 * PALLET[0] + 0.03, name
        assert np.abs(points[:, 1]).max() < 0.5 * PALLET[1] + 0.04, name


def test_counts() -> None:
    assert_counts(HALL)


def test_lamps_of_a_hall_that_is_mirrored() -> None:
    place = warehouse_scene(2, map_size=64)
    assert place.start is not None
    assert place.start.position[1] > 0.0
    assert_lamps_below_their_housings(place)


@pytest.mark.slow
@pytest.mark.parametrize("index", range(1, 7))
def test_other_halls(index: int) -> None:
    place = warehouse_scene(index, map_size=64)
    assert not [item for item in findings(place) if item.fatal], check_scene(place)
    assert_flown_through(place)
    assert_within_walls(place)
    assert_loads_apart(place)
    assert_counts(place)
    assert scene_digest(place) != scene_digest(HALL)


@pytest.mark.slow
def test_the_same_bytes_in_another_process() -> None:
    code = "from airworthy.scenes import scene, scene_digest; print(scene_digest(scene('warehouse:2@5')))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == scene_digest(scene("warehouse:2@5")) != scene_digest(scene("warehouse:2"))
