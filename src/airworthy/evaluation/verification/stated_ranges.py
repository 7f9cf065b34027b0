"""Numbers that are stated of the seven scenarios of FLYINGTRUST (arXiv 2510.26588), and which of them a configuration breaks.

The numbers are written here anew, not taken from the generators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from airworthy.core.frames import to_matrix
from airworthy.geometry import Box, Cylinder
from airworthy.scenes.generators.flyingtrust.layout import Layout

Array = NDArray[np.float64]

ENDS_CLEAR = 2.0
"""Around start and goal [m]."""
_HAIR = 1e-6


def violations(plan: Layout, index: int) -> list[str]:
    """What is not as stated of configuration `index` of a scenario, one phrase each."""
    wrong = [f"{phrase} is {value:g}, stated {low:g} to {high:g}" for phrase, value, low, high in _stated(plan, index)
             if not low - _HAIR <= value <= high + _HAIR]  # fmt: skip
    return [f"{plan.scenario}:{index}: {phrase}" for phrase in wrong]


Range = tuple[str, float, float, float]
"""What, its value, and between what it must lie."""


def _stated(plan: Layout, index: int) -> Iterator[Range]:
    yield from _ends(plan)
    yield from _OF[plan.scenario](plan, index)


def _ends(plan: Layout) -> Iterator[Range]:
    """The upright lines through start and goal are clear from floor to ceiling."""
    stated = plan.stated
    heights = np.arange(0.0, stated.ceiling, 0.1)
    for x in (2.0 - 0.5 * stated.length, 0.5 * stated.length - 2.0):
        axis = np.stack([np.full_like(heights, x), 0.0 * heights, heights], axis=1)
        yield "clearance of an end", float(plan.obstacles().distance(axis).min()), ENDS_CLEAR, np.inf


def _boxes(plan: Layout, semantic: str) -> list[tuple[Array, Array]]:
    """Centre and full size of the boxes of a class."""
    found = [(item, plan.shapes[item.shape]) for item in plan.instances if item.semantic == semantic]
    return [(np.array(item.position), 2.0 * np.array(shape.half_size)) for item, shape in found if isinstance(shape, Box)]


def _cylinders(plan: Layout, semantic: str) -> list[tuple[Array, Cylinder, Array]]:
    """Centre, shape and axis of the colliding cylinders of a class."""
    found = [(item, plan.shapes[item.shape]) for item in plan.instances if item.semantic == semantic and item.collide]
    return [(np.array(i.position), s, to_matrix(i.attitude)[:, 2]) for i, s in found if isinstance(s, Cylinder)]


def _forest(plan: Layout, index: int) -> Iterator[Range]:
    trunks = _cylinders(plan, "tree")
    yield "number of trees", len(trunks), 49, 49
    middle = np.array([centre[:2] for centre, _, _ in trunks])
    apart = np.linalg.norm(middle[:, None] - middle, axis=-1) + 1e3 * np.eye(len(trunks))
    yield "distance of two trees", float(apart.min()), 2.0, np.inf
    for centre, trunk, axis in trunks:
        yield "radius of a trunk", trunk.radius, 0.3, 0.6
        yield "height of a trunk", 2.0 * trunk.half_length, 3.5, 8.0
        yield "foot of a trunk", centre[2] - trunk.half_length, 0.0, 0.0
        yield "uprightness of a trunk", axis[2], 1.0, 1.0
        yield "place of a trunk along", abs(centre[0]) + trunk.radius, 0.0, 30.0
        yield "place of a trunk across", abs(centre[1]) + trunk.radius, 0.0, 20.0


def _urban(plan: Layout, index: int) -> Iterator[Range]:
    yield "number of objects", len(plan.instances), 15 + 3 * index, 15 + 3 * index
    buildings = _boxes(plan, "building")
    yield "share of the ground built on", sum(size[0] * size[1] for _, size in buildings) / 3600.0, 0.20, 0.35
    for centre, size in buildings:
        for side, at in zip(size[:2], centre[:2], strict=True):
            yield "side of a building", side, 4.0, 12.0
            yield "place of a building", abs(at) + 0.5 * side, 0.0, 30.0
        yield "height of a building", size[2], 4.0, 20.0
    for _, size in _boxes(plan, "wall"):
        yield "thickness of a wall", min(size[:2]), 0.3, 0.3
        yield "length of a wall", max(size[:2]), 2.0, 8.0
        yield "height of a wall", size[2], 2.0, 4.0
    for _, pole, _ in _cylinders(plan, "pillar"):
        yield "radius of a pole", pole.radius, 0.1, 0.2
    for axis in "xy":
        yield "length of a block", plan.facts[f"block_{axis}_m"], 12.0, 18.0
        yield "width of a street", plan.facts[f"street_{axis}_m"], 4.0, 8.0


def _random_cylinder(plan: Layout, index: int) -> Iterator[Range]:
    logs = _cylinders(plan, "cylinder")
    yield "number of cylinders", len(logs), 67, 67
    tilts = [float(np.degrees(np.arccos(axis[2]))) for _, _, axis in logs]
    yield "least tilt", min(tilts), 0.0, 30.0
    yield "largest tilt", max(tilts), 150.0, 180.0
    for centre, log, _ in logs:
        yield "radius of a cylinder", log.radius, 0.25, 0.5
        yield "length of a cylinder", 2.0 * log.half_length, 4.0, 8.0
        yield "height of a centre", centre[2], 0.0, 3.0


def _narrow_gap(plan: Layout, index: int) -> Iterator[Range]:
    walls = _boxes(plan, "wall")
    yield "number of half walls", len(walls), 2 * index, 2 * index
    centres, places = [], []
    for pair in zip(walls[::2], walls[1::2], strict=True):
        right, left = sorted(pair, key=lambda wall: wall[0][1])
        low, high = right[0][1] + 0.5 * right[1][1], left[0][1] - 0.5 * left[1][1]
        yield "width of a gap", high - low, 0.85, 0.90
        yield "right end of a wall", right[0][1] - 0.5 * right[1][1], -25.0, -25.0
        yield "left end of a wall", left[0][1] + 0.5 * left[1][1], 25.0, 25.0
        centres.append(0.5 * (low + high))
        places.append(right[0][0])
    yield "farthest gap", max(abs(c) for c in centres), 0.0, 0.0 if index == 1 else 8.0
    for a, b in pairwise(centres):
        yield "shift of two gaps", abs(b - a), 3.0, np.inf
    for a, b in pairwise(places):
        yield "room between two walls", b - a - 0.3, 4.0, np.inf


def _sudden_drop(plan: Layout, index: int) -> Iterator[Range]:
    slabs = _boxes(plan, "slab")
    yield "number of slabs", len(slabs), index, index
    for centre, size in slabs:
        yield "bottom of a slab", centre[2] - 0.5 * size[2], 1.5, 1.5
        yield "top of a slab", centre[2] + 0.5 * size[2], 14.0, 14.0
        yield "thickness of a slab", size[0], 0.5, 2.0
        yield "width of a slab", size[1], 50.0, 50.0
    for a, b in pairwise([-23.0, *(float(centre[0]) for centre, _ in slabs), 23.0]):
        yield "spacing of slabs", b - a, 46.0 / (index + 1), 46.0 / (index + 1)


def _maze(plan: Layout, index: int) -> Iterator[Range]:
    yield "share of dead ends opened", plan.facts["braid_share"], 0.3 * (10 - index) / 9, 0.3 * (10 - index) / 9
    for width in plan.openings:
        yield "width of an opening", width, 2.5, 2.5
    for _, size in _boxes(plan, "wall"):
        yield "thickness of a wall", min(size[:2]), 0.2, 0.2
        yield "height of a wall", size[2], 2.5, 2.5
        yield "length of a wall", max(size[:2]), 2.5, 40.2


def _perlin(plan: Layout, index: int) -> Iterator[Range]:
    voxels = plan.voxels
    assert voxels is not None
    yield "edge of a voxel", voxels.size, 0.1, 0.1
    # Voxels of the same value as the last one taken are taken too: a few dozen of 240,000.
    yield "share of voxels filled", float(voxels.occupied.mean()), 0.03 * (1 - 1e-3), 0.03 * (1 + 1e-3)


_OF: dict[str, Callable[[Layout, int], Iterator[Range]]] = {
    "forest": _forest,
    "urban": _urban,
    "random_cylinder": _random_cylinder,
    "narrow_gap": _narrow_gap,
    "sudden_drop": _sudden_drop,
    "maze": _maze,
    "perlin": _perlin,
}
