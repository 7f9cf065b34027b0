"""Exported clouds and meshes of generated scenes fill the same cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from airworthy.geometry import Placement
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.occupancy import voxelize
from airworthy.scenes.formats import read_model
from airworthy.scenes.formats.export import export_scene
from airworthy.scenes.formats.meshes.sampling import note_lines, parse_note, sample_points
from airworthy.scenes.formats.model import CloudNote
from airworthy.scenes.generators import GENERATORS
from airworthy.scenes.generators.flyingtrust import layout_of
from airworthy.scenes.record import Scene

CELL = 0.1


def cells_of_cloud(scene: Scene, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Cells that hold a point of the scene's cloud, those inside solids included."""
    shape = np.rint((upper - lower) / CELL).astype(int)
    grid = np.zeros(shape, bool)
    index = np.floor((sample_points(scene, CELL, inside=True).positions - lower) / CELL).astype(int)
    index = index[((index >= 0) & (index < shape)).all(1)]
    grid[tuple(index.T)] = True
    return grid


def cells_of_mesh(path: Path, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    model = read_model(path)
    names = list(model.shapes)
    placed = Placement.of(
        shape=[names.index(i.shape) for i in model.instances],
        position=[i.position for i in model.instances],
        attitude=[i.attitude for i in model.instances],
        scale=[i.scale for i in model.instances],
    )
    batch = GeometryBatch([model.shapes[name] for name in names], [placed])
    return voxelize(batch, 0, lower, upper - 0.5 * CELL, CELL)


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    return float((a & b).sum() / (a | b).sum())


def check(name: str, folder: Path, half_width: float = 6.0) -> None:
    """Compare a strip along the line, up to the ceiling; a crown is exported to be seen but is no obstacle, and lies above."""
    scene = GENERATORS[name](2, 0)
    export_scene(scene, folder / "mesh.ply")
    top = scene.bounds.upper
    lower, upper = np.array([-np.floor(top[0]), -half_width, 0.0]), np.array([np.floor(top[0]), half_width, top[2]])
    cloud = cells_of_cloud(scene, lower, upper)
    mesh = cells_of_mesh(folder / "mesh.ply", lower, upper)
    assert cloud.sum() > 1000
    assert overlap(cloud, mesh) > 0.98


@pytest.mark.slow
def test_a_corridor_of_slabs(tmp_path: Path) -> None:
    check("sudden_drop", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["forest", "urban", "random_cylinder", "narrow_gap", "maze", "perlin", "sudden_drop_plus"])
def test_every_scenario(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)


@pytest.mark.slow
def test_clutter_is_exported_voxel_by_voxel() -> None:
    """The cloud of the noise holds the generator's own voxels, no more and no fewer."""
    voxels = layout_of("perlin", 2).voxels
    assert voxels is not None
    upper = voxels.lower + np.array(voxels.occupied.shape) * CELL
    assert overlap(cells_of_cloud(GENERATORS["perlin"](2, 0), voxels.lower, upper), voxels.occupied) > 0.999


def test_what_a_cloud_says_of_itself_comes_back() -> None:
    note = CloudNote(
        0.1,
        np.array([[1.0, 2.0, 3.0], [-4.0, 5.0, 0.1]]),
        lower=(-1.0, -2.0, -3.0),
        upper=(4.0, 5.0, 6.0),
        start=(1.5, 2.5, 3.5, 0.5),
        goal=(7.0, 8.0, 9.0),
    )
    found = parse_note(["by somebody", *note_lines(note)])
    assert found is not None
    assert found.open is not None
    np.testing.assert_array_equal(found.open, note.open)
    assert (found.spacing, found.lower, found.upper) == (note.spacing, note.lower, note.upper)
    assert (found.start, found.goal) == (note.start, note.goal)
    assert parse_note(["airworthy", "nothing of ours"]) is None
