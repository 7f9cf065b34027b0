"""What the places promise: stated ranges, ways through, equal bytes, exports, clearances, and readers that hold."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.files import data_dir, read_json
from airworthy.core.frames import to_matrix
from airworthy.geometry import Box, Cylinder, GeometryBatch, Placement
from airworthy.geometry.distance import clearance
from airworthy.geometry.occupancy import voxelize
from airworthy.scenes import SceneBatch, scene, scene_digest
from airworthy.scenes.formats import export_scene, read_model, read_points, write_pcd
from airworthy.scenes.formats.meshes.sampling import sample_points
from airworthy.scenes.generators import SCENARIOS
from airworthy.scenes.generators.flyingtrust import layout_of
from airworthy.scenes.generators.flyingtrust.layout import ObstacleLayout, straight_is_free
from airworthy.scenes.generators.flyingtrust.scenario import solvable
from airworthy.scenes.generators.halls.race_courses import course_frames
from airworthy.trajectories import course
from airworthy.verification.damaged_files import FORMATS, broken_promises
from airworthy.verification.published import Figure, below, zero

# -----------------------------------------------------------------------------------------------------------------------------
# Numbers that are stated of the seven scenarios of FLYINGTRUST (arXiv 2510.26588), and which of them a configuration
# breaks.
#
# The numbers are written here anew, not taken from the generators.

ENDS_CLEAR = 2.0
"""Around start and goal [m]."""
_HAIR = 1e-6


def violations(plan: ObstacleLayout, index: int) -> list[str]:
    """Return what is not as stated of configuration `index` of a scenario, one phrase each."""
    wrong = [f"{phrase} is {value:g}, stated {low:g} to {high:g}" for phrase, value, low, high in _stated(plan, index)
             if not low - _HAIR <= value <= high + _HAIR]  # fmt: skip
    return [f"{plan.scenario}:{index}: {phrase}" for phrase in wrong]


Range = tuple[str, float, float, float]
"""What, its value, and between what it must lie."""


def _stated(plan: ObstacleLayout, index: int) -> Iterator[Range]:
    yield from _ends(plan)
    yield from _OF[plan.scenario](plan, index)


def _ends(plan: ObstacleLayout) -> Iterator[Range]:
    """Yield the ranges of the upright lines through start and goal, which are clear from floor to ceiling."""
    stated = plan.stated
    heights = np.arange(0.0, stated.ceiling, 0.1)
    for x in (2.0 - 0.5 * stated.length, 0.5 * stated.length - 2.0):
        axis = np.stack([np.full_like(heights, x), 0.0 * heights, heights], axis=1)
        yield "clearance of an end", float(plan.obstacles().distance(axis).min()), ENDS_CLEAR, np.inf


def _boxes(plan: ObstacleLayout, semantic: str) -> list[tuple[Array, Array]]:
    """Centre and full size of the boxes of a class."""
    found = [(item, plan.shapes[item.shape]) for item in plan.instances if item.semantic == semantic]
    return [(np.array(item.position), 2.0 * np.array(shape.half_size)) for item, shape in found if isinstance(shape, Box)]


def _cylinders(plan: ObstacleLayout, semantic: str) -> list[tuple[Array, Cylinder, Array]]:
    """Centre, shape and axis of the colliding cylinders of a class."""
    found = [(item, plan.shapes[item.shape]) for item in plan.instances if item.semantic == semantic and item.collide]
    return [(np.array(i.position), s, to_matrix(i.attitude)[:, 2]) for i, s in found if isinstance(s, Cylinder)]


def _forest(plan: ObstacleLayout, index: int) -> Iterator[Range]:
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


def _urban(plan: ObstacleLayout, index: int) -> Iterator[Range]:
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


def _random_cylinder(plan: ObstacleLayout, index: int) -> Iterator[Range]:
    logs = _cylinders(plan, "cylinder")
    yield "number of cylinders", len(logs), 67, 67
    tilts = [float(np.degrees(np.arccos(axis[2]))) for _, _, axis in logs]
    yield "least tilt", min(tilts), 0.0, 30.0
    yield "largest tilt", max(tilts), 150.0, 180.0
    for centre, log, _ in logs:
        yield "radius of a cylinder", log.radius, 0.25, 0.5
        yield "length of a cylinder", 2.0 * log.half_length, 4.0, 8.0
        yield "height of a centre", centre[2], 0.0, 3.0


def _narrow_gap(plan: ObstacleLayout, index: int) -> Iterator[Range]:
    walls = _boxes(plan, "wall")
    yield "number of half walls", len(walls), 2 * index, 2 * index
    centres, corners = [], []
    for pair in zip(walls[::2], walls[1::2], strict=True):
        right, left = sorted(pair, key=lambda wall: wall[0][1])
        low, high = right[0][1] + 0.5 * right[1][1], left[0][1] - 0.5 * left[1][1]
        yield "width of a gap", high - low, 0.85, 0.90
        yield "right end of a wall", right[0][1] - 0.5 * right[1][1], -25.0, -25.0
        yield "left end of a wall", left[0][1] + 0.5 * left[1][1], 25.0, 25.0
        centres.append(0.5 * (low + high))
        corners.append(right[0][0])
    yield "farthest gap", max(abs(c) for c in centres), 0.0, 0.0 if index == 1 else 8.0
    for a, b in pairwise(centres):
        yield "shift of two gaps", abs(b - a), 3.0, np.inf
    for a, b in pairwise(corners):
        yield "room between two walls", b - a - 0.3, 4.0, np.inf


def _sudden_drop(plan: ObstacleLayout, index: int) -> Iterator[Range]:
    slabs = _boxes(plan, "slab")
    yield "number of slabs", len(slabs), index, index
    for centre, size in slabs:
        yield "bottom of a slab", centre[2] - 0.5 * size[2], 1.5, 1.5
        yield "top of a slab", centre[2] + 0.5 * size[2], 14.0, 14.0
        yield "thickness of a slab", size[0], 0.5, 2.0
        yield "width of a slab", size[1], 50.0, 50.0
    for a, b in pairwise([-23.0, *(float(centre[0]) for centre, _ in slabs), 23.0]):
        yield "spacing of slabs", b - a, 46.0 / (index + 1), 46.0 / (index + 1)


def _maze(plan: ObstacleLayout, index: int) -> Iterator[Range]:
    yield "share of dead ends opened", plan.facts["braid_share"], 0.3 * (10 - index) / 9, 0.3 * (10 - index) / 9
    for width in plan.openings:
        yield "width of an opening", width, 2.5, 2.5
    for _, size in _boxes(plan, "wall"):
        yield "thickness of a wall", min(size[:2]), 0.2, 0.2
        yield "height of a wall", size[2], 2.5, 2.5
        yield "length of a wall", max(size[:2]), 2.5, 40.2


def _perlin(plan: ObstacleLayout, index: int) -> Iterator[Range]:
    voxels = plan.voxels
    assert voxels is not None
    yield "edge of a voxel", voxels.size, 0.1, 0.1
    # Voxels of the same value as the last one taken are taken too: a few dozen of 240,000.
    yield "share of voxels filled", float(voxels.occupied.mean()), 0.03 * (1 - 1e-3), 0.03 * (1 + 1e-3)


_OF: dict[str, Callable[[ObstacleLayout, int], Iterator[Range]]] = {
    "forest": _forest,
    "urban": _urban,
    "random_cylinder": _random_cylinder,
    "narrow_gap": _narrow_gap,
    "sudden_drop": _sudden_drop,
    "maze": _maze,
    "perlin": _perlin,
}

# -----------------------------------------------------------------------------------------------------------------------------

STRAIGHT = {"forest": (1, 2), "urban": (1, 2), "narrow_gap": (1, 1)}
"""Configurations, of ten, through which a straight flight succeeds (published); of the other scenarios none."""
PROVED = (1, 10)
"""Configurations whose way is proved without `everything`."""
HALLS = {"mid_gate": "robustness", "flightroom": "extended", "backroom": "cluttered"}
CELL = 0.1
"""[m]"""
_INDICES = range(1, 11)
_SAME = (*(f"{name}:3" for name in SCENARIOS), "forest:4@7", "alphapilot:2", "mid_gate", "obstacle_room:5", "gym_forest:2@9")


def scene_figures(everything: bool = False) -> Iterator[Figure]:
    """Run the checks one after the other.

    Args:
        everything: All configurations are solved, all scenarios exported, and 10,000 files of each format damaged.
    """
    yield _ranges()
    for name in SCENARIOS:
        yield straight_figure(name, [straight_is_free(plan.obstacles(), plan.stated) for plan in _plans(name)])
    yield _solved(tuple(_INDICES) if everything else PROVED)
    yield _bytes()
    for name in SCENARIOS if everything else ("sudden_drop",):
        yield _export(name)
    for hall, path in HALLS.items():
        yield clearance_figure(hall, path)
    data = data_dir()
    if data is not None:
        yield _gates(data / "flightgoggles")
    for name in FORMATS:
        yield _damaged(name, 10_000 if everything else 200)


@cache
def _plans(name: str) -> tuple[ObstacleLayout, ...]:
    return tuple(layout_of(name, index) for index in _INDICES)


def _ranges() -> Figure:
    plans = [(index, plan) for name in SCENARIOS for index, plan in enumerate(_plans(name), 1)]
    wrong = [phrase for index, plan in plans for phrase in violations(plan, index)]
    return zero(f"FLYINGTRUST: numbers out of their stated range, {len(plans)} configurations", len(wrong))


def straight_figure(name: str, free: list[bool]) -> Figure:
    """Return straight flights that succeed in the ten configurations of a scenario."""
    low, high = STRAIGHT.get(name, (0, 0))
    aim = f"{low} to {high}" if low < high else f"{low}"
    return Figure(f"FLYINGTRUST {name}: straight flights that arrive, of 10", float(sum(free)), aim, low <= sum(free) <= high)


def _solved(indices: tuple[int, ...]) -> Figure:
    found = [np.isfinite(solvable(_plans(name)[index - 1])) for name in SCENARIOS for index in indices]
    which = "all" if len(indices) == len(_INDICES) else f"configurations {indices[0]} and {indices[-1]}"
    name = f"FLYINGTRUST: without a way of 0.30 m clearance, 0.1 m grid, {which} ({len(found)})"
    return zero(name, sum(not one for one in found))


def _bytes() -> Figure:
    code = f"from airworthy.scenes import scene, scene_digest\nfor name in {_SAME!r}: print(scene_digest(scene(name)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    there = [line for line in done.stdout.splitlines() if len(line) == 64]
    here = [scene_digest(scene(name)) for name in _SAME]
    differ = len(here) if len(there) != len(here) else sum(a != b for a, b in zip(here, there, strict=True))
    return zero(f"Scenes, of {len(here)}, with other bytes in a fresh process", differ)


# ---- exports ------------------------------------------------------------------------------------------------------------


def _export(name: str) -> Figure:
    """Cells of a strip of 12 m along the line, up to the ceiling, of the exported cloud and of the exported mesh."""
    exported = scene(f"{name}:2")
    high = np.array([np.floor(exported.bounds.upper[0]), 6.0, exported.bounds.upper[2]])
    low = np.array([-high[0], -6.0, 0.0])
    with TemporaryDirectory() as folder:
        cloud = cloud_cells(write_pcd(Path(folder) / "cloud.pcd", sample_points(exported, CELL, inside=True)), low, high)
        mesh = mesh_cells(export_scene(exported, Path(folder) / "mesh.ply"), low, high)
    overlap = 100.0 * float((cloud & mesh).sum() / max((cloud | mesh).sum(), 1))
    return Figure(f"Exported {name}: cells that cloud and mesh share", overlap, "more than 98", overlap > 98.0, "%")


def cloud_cells(path: Path, low: Array, high: Array) -> ArrayBool:
    """Return cells that hold a point of a file.

    Args:
        path: Of the cloud.
        low: Lower corner of the lattice [m], (3,).
        high: Upper corner of the lattice [m], (3,).
    """
    grid = np.zeros(np.rint((high - low) / CELL).astype(int), bool)
    index = np.floor((read_points(path).positions - low) / CELL).astype(int)
    index = index[((index >= 0) & (index < grid.shape)).all(1)]
    grid[tuple(index.T)] = True
    return grid


def mesh_cells(path: Path, low: Array, high: Array) -> ArrayBool:
    """Return cells that the meshes of a file occupy.

    Args:
        path: Of the model.
        low: Lower corner of the lattice [m], (3,).
        high: Upper corner of the lattice [m], (3,).
    """
    model = read_model(path)
    names, items = list(model.shapes), model.instances
    placed = Placement.of(
        shape=[names.index(item.shape) for item in items],
        position=[item.position for item in items],
        attitude=[item.attitude for item in items],
        scale=[item.scale for item in items],
    )
    return voxelize(GeometryBatch([model.shapes[name] for name in names], [placed]), 0, low, high - 0.5 * CELL, CELL)


# ---- halls --------------------------------------------------------------------------------------------------------------


def clearance_figure(hall: str, path: str) -> Figure:
    """Return the least distance of a course to everything in its hall but the floor, over which the published courses fly at
    0.3 m."""
    cleared = scene(hall)
    cleared = replace(cleared, instances=tuple(item for item in cleared.instances if item.semantic != "ground"))
    flight = course(path).trajectory()
    points = flight.sample(np.linspace(0.0, flight.duration, 4001)).position
    least = float(clearance(SceneBatch(cleared).geometry, points, np.zeros(len(points), int)).distance.min())
    return Figure(f"Course {path} in {hall}: least clearance but the floor", least, "at least 0.35", least >= 0.35, "m")


def _gates(folder: Path) -> Figure:
    worst, published = 0.0, read_json(folder / "alphapilot_courses.json")["courses"]
    for item in published:
        for frame in course_frames(f"published/{item['id']}"):
            corners = np.array(item["gates"][frame.name]["corners_m"])
            worst = max(worst, float(np.abs(np.array(frame.corners) - corners).max()))
    # Spec/race 2.
    return below(f"AlphaPilot: corners of the gates of {len(published)} published courses, worst", 1e3 * worst, 0.1, "mm")


def _damaged(name: str, count: int) -> Figure:
    wrong, slowest, loaded = broken_promises(name, count)
    text = f"Damaged {name} of {count:,}, neither loaded ({loaded:,}) nor refused in a sentence in {slowest:.2f} s"
    return zero(text, wrong)
