"""The warehouse: what stands in it, where one can fly; racks and goods keep clear of walls and of each other."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from airworthy.geometry import Mesh
from airworthy.geometry.distance import clearance
from airworthy.scenes import SceneBatch, check_scene, findings, scene, scene_digest
from airworthy.scenes.extent import instance_box, triangle_count
from airworthy.scenes.generators.warehouse import warehouse_scene
from airworthy.scenes.warehouses.goods import LOADS, PALLET, load

HALLS = [warehouse_scene(index, map_size=64) for index in (0, 3)]
BODY = 0.3
"""Radius of what is to fly through [m]."""


def boxes(number: int, part: str) -> np.ndarray:
    """Return lower and upper corners (n, 2, 3) of the things whose shape's name holds a word."""
    place = HALLS[number]
    found = [
        instance_box(place.shapes[item.shape], item.position, item.attitude, item.scale)
        for item in place.instances
        if part in item.shape
    ]
    return np.array(found)


@pytest.mark.parametrize("number", [0, 1])
def test_the_way_from_start_to_goal_is_free(number: int) -> None:
    place = HALLS[number]
    assert place.start is not None
    assert place.goal is not None
    way = np.linspace(place.start.position, place.goal.position, 200)
    near = clearance(SceneBatch(place).geometry, way, np.zeros(len(way), np.int32))
    assert near.distance.min() > BODY


@pytest.mark.parametrize("number", [0, 1])
def test_racks_and_goods_stand_in_the_hall(number: int) -> None:
    """Within the sheet of walls, whose ribs are 4 cm deep and whose plinth 12 cm; all of it over the floor."""
    lower, upper = np.array(HALLS[number].bounds.lower), np.array(HALLS[number].bounds.upper)
    for part in ("hall/rack", "hall/load", "hall/pallet", "hall/press", "hall/turning centre", "hall/forklift"):
        found = boxes(number, part)
        assert len(found), part
        assert (found[:, 0, :2] > lower[:2] + 0.12).all(), part
        assert (found[:, 1, :2] < upper[:2] - 0.12).all(), part
        assert (found[:, 0, 2] > -1e-6).all(), part


def test_goods_in_racks_touch_no_others() -> None:
    """Loads stand apart, and under the beams of the level above (14.5 cm below the pallets there)."""
    for number in (0, 1):
        found = boxes(number, "hall/load")
        low, high = found[:, 0], found[:, 1]
        meets = ((low[:, None] < high[None] - 1e-3) & (high[:, None] > low[None] + 1e-3)).all(-1)
        assert meets.sum() == len(found)
    for name in LOADS:
        points, _ = load(name).surface()
        assert points[:, 2].max() < 1.65 - 0.2, name
        assert np.abs(points[:, 0]).max() < 0.5 * PALLET[0] + 0.03, name
        assert np.abs(points[:, 1]).max() < 0.5 * PALLET[1] + 0.04, name


def test_counts_and_soundness() -> None:
    for place in HALLS:
        assert not [item for item in findings(place) if item.fatal], check_scene(place)
        assert place.facts["bays"] >= 30
        assert place.facts["loads"] > 200
        assert place.facts["lamps"] >= 8
        assert all(item.collide for item in place.instances)
        assert not place.looks
        own, drawn = triangle_count(place)
        assert own < 200_000
        assert drawn < 1_000_000
        for shape in place.shapes.values():
            if isinstance(shape, Mesh):
                assert np.isfinite(shape.vertices).all()
    assert len({place.facts["length_m"] for place in HALLS} | {place.facts["loads"] for place in HALLS}) > 2


@pytest.mark.slow
def test_the_same_bytes_in_another_process() -> None:
    code = "from airworthy.scenes import scene, scene_digest; print(scene_digest(scene('warehouse:2@5')))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == scene_digest(scene("warehouse:2@5")) != scene_digest(scene("warehouse:2"))
