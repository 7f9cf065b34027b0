"""What the places promise: stated ranges, ways through, equal bytes, exports, clearances, and readers that hold."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from airworthy.core.files import data_dir, read_json
from airworthy.evaluation.verification.damaged_files import FORMATS, broken_promises
from airworthy.evaluation.verification.figure import Figure, below, zero
from airworthy.evaluation.verification.stated_ranges import violations
from airworthy.geometry import GeometryBatch, Placement
from airworthy.geometry.distance import clearance
from airworthy.geometry.occupancy import voxelize
from airworthy.scenes import SceneBatch, scene, scene_digest
from airworthy.scenes.formats import export_scene, read_model, read_points
from airworthy.scenes.generators import SCENARIOS
from airworthy.scenes.generators.flyingtrust import layout_of
from airworthy.scenes.generators.flyingtrust.layout import Layout, straight_is_free
from airworthy.scenes.generators.halls.alphapilot import gate_corners, perturbed
from airworthy.scenes.generators.prove import solvable
from airworthy.trajectories import course

Array = NDArray[np.float64]
Grid = NDArray[np.bool_]

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
def _plans(name: str) -> tuple[Layout, ...]:
    return tuple(layout_of(name, index) for index in _INDICES)


def _ranges() -> Figure:
    plans = [(index, plan) for name in SCENARIOS for index, plan in enumerate(_plans(name), 1)]
    wrong = [phrase for index, plan in plans for phrase in violations(plan, index)]
    return zero(f"FLYINGTRUST: numbers out of their stated range, {len(plans)} configurations", len(wrong))


def straight_figure(name: str, free: list[bool]) -> Figure:
    """Straight flights that succeed in the ten configurations of a scenario."""
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
    place = scene(f"{name}:2")
    high = np.array([np.floor(place.bounds.upper[0]), 6.0, place.bounds.upper[2]])
    low = np.array([-high[0], -6.0, 0.0])
    with TemporaryDirectory() as folder:
        cloud = cloud_cells(export_scene(place, Path(folder) / "cloud.pcd"), low, high)
        mesh = mesh_cells(export_scene(place, Path(folder) / "mesh.ply"), low, high)
    overlap = 100.0 * float((cloud & mesh).sum() / max((cloud | mesh).sum(), 1))
    return Figure(f"Exported {name}: cells that cloud and mesh share", overlap, "more than 98", overlap > 98.0, "%")


def cloud_cells(path: Path, low: Array, high: Array) -> Grid:
    """Cells that hold a point of a file."""
    grid = np.zeros(np.rint((high - low) / CELL).astype(int), bool)
    index = np.floor((read_points(path).positions - low) / CELL).astype(int)
    index = index[((index >= 0) & (index < grid.shape)).all(1)]
    grid[tuple(index.T)] = True
    return grid


def mesh_cells(path: Path, low: Array, high: Array) -> Grid:
    """Cells that the meshes of a file occupy."""
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
    """Least distance of a course to everything in its hall but the floor, over which the published courses fly at 0.3 m."""
    place = scene(hall)
    place = replace(place, instances=tuple(item for item in place.instances if item.semantic != "ground"))
    flight = course(path).trajectory()
    points = flight.sample(np.linspace(0.0, flight.duration, 4001)).position
    least = float(clearance(SceneBatch(place).geometry, points, np.zeros(len(points), int)).distance.min())
    return Figure(f"Course {path} in {hall}: least clearance but the floor", least, "at least 0.35", least >= 0.35, "m")


def _gates(folder: Path) -> Figure:
    nominal, worst = gate_corners(), 0.0
    pivots = read_json(folder / "gates_nominal.json")["gates"]
    published = read_json(folder / "alphapilot_courses.json")["courses"]
    for item in published:
        for name, gate in item["gates"].items():
            shift = np.array([gate["dx_m"], gate["dy_m"], gate["dyaw_file_deg"]])
            ours = perturbed(nominal[name], pivots[name]["pivot_xy_m"], shift)
            worst = max(worst, float(np.abs(ours - gate["corners_m"]).max()))
    # Pivots are published to 0.1 mm.
    return below(f"AlphaPilot: corners of the gates of {len(published)} published courses, worst", 1e3 * worst, 0.15, "mm")


def _damaged(name: str, count: int) -> Figure:
    wrong, slowest, loaded = broken_promises(name, count)
    text = f"Damaged {name} of {count:,}, neither loaded ({loaded:,}) nor refused in a sentence in {slowest:.2f} s"
    return zero(text, wrong)
