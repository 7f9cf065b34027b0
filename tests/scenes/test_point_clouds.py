"""Point clouds as maps: frame, spacing, cells that let no ray through, and back to the occupancy they were sampled from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy

from airworthy.core.arrays import ArrayBool
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box, occluded
from airworthy.geometry.distance import clearance
from airworthy.geometry.occupancy import voxelize
from airworthy.scenes import Instance, Pose, Region, Scene, SceneBatch, scene
from airworthy.scenes.extent import scene_box
from airworthy.scenes.formats import read_points, sample_points, write_pcd, write_points_ply
from airworthy.scenes.formats.model import Points
from airworthy.scenes.point_clouds import cloud_cells, cloud_mesh, find_lattice

WRITERS = {"cloud.pcd": write_pcd, "cloud.ply": write_points_ply}


def place() -> Scene:
    """A closed hall away from the origin: two walls with a gap of 0.8 m, and a post."""
    shapes = {
        "slab": Box((3.0, 2.0, 0.3)),
        "side": Box((3.0, 0.1, 1.3)),
        "end": Box((0.1, 2.0, 1.3)),
        "wall": Box((0.2, 0.7, 1.3)),
        "post": Box((0.25, 0.25, 1.3)),
    }
    middle = np.array([101.0, -52.0, 7.0])

    def at(shape: str, x: float, y: float, z: float, semantic: str = "object") -> Instance:
        return Instance(shape, (float(middle[0] + x), float(middle[1] + y), float(middle[2] + z)), semantic=semantic)

    walls = (at("wall", -0.5, 1.1, 0.0), at("wall", -0.5, -1.1, 0.0), at("post", 1.25, 0.35, 0.0))
    shell = (at("slab", 0, 0, -1.6, "ground"), at("slab", 0, 0, 1.6), at("side", 0, 1.9, 0), at("side", 0, -1.9, 0))
    return Scene(
        "hall",
        shapes,
        instances=(*shell, at("end", -2.9, 0.0, 0.0), at("end", 2.9, 0.0, 0.0), *walls),
        bounds=Region((97.0, -55.0, 5.0), (105.0, -49.0, 9.0)),
        start=Pose((99.0, -52.0, 7.0), 0.3),
        goal=Pose((103.3, -53.0, 7.2)),
    )


def grid_of(item: Scene, lower: tuple[float, float, float], upper: tuple[float, float, float]) -> ArrayBool:
    return voxelize(SceneBatch(item).geometry, 0, lower, upper, 0.1)


@pytest.mark.parametrize("name", WRITERS)
def test_export_and_reload_give_the_same_occupancy_in_the_same_frame(name: str, tmp_path: Path) -> None:
    source = place()
    WRITERS[name](tmp_path / name, sample_points(source))
    back = scene(tmp_path / name)
    lower, upper = (97.0, -55.0, 4.0), (105.0, -49.0, 10.0)
    expected, found = grid_of(source, lower, upper), grid_of(back, lower, upper)
    assert expected.sum() > 20_000
    np.testing.assert_array_equal(found, expected)  # the inside of solids is filled again, that of the hall is not
    assert (back.bounds, back.start, back.goal) == (source.bounds, source.start, source.goal)
    points = np.random.default_rng(0).uniform((98.5, -53.5, 6.0), (103.5, -50.5, 8.0), (500, 3))
    true = clearance(SceneBatch(source).geometry, points).distance
    kept = clearance(SceneBatch(back).geometry, points).distance
    # All surfaces lie on the grid or within a cell of it.
    assert np.abs(kept - true).max() < 0.1


def test_no_ray_aimed_at_an_occupied_cell_passes(tmp_path: Path) -> None:
    source = place()
    path = write_pcd(tmp_path / "map.pcd", sample_points(source, ground=False))
    centres = read_points(path).positions.astype(float)
    rng = np.random.default_rng(1)
    aimed = centres[rng.integers(0, len(centres), 4000)] + rng.uniform(-0.049, 0.049, (4000, 3))
    turned = rng.normal(size=(4000, 3))
    end = aimed + 20.0 * turned / np.linalg.norm(turned, axis=1, keepdims=True)
    assert occluded(SceneBatch(scene(path)).geometry, end, aimed).all()


def test_the_export_holds_surfaces_with_or_without_the_ground() -> None:
    solid = Scene(
        "s",
        {"floor": Box((5.0, 5.0, 1.0)), "box": Box((0.5, 0.5, 0.5))},
        instances=(Instance("floor", (0.0, 0.0, -1.0), semantic="ground"), Instance("box", (0.0, 0.0, 0.5))),
    )
    grid = np.zeros((100, 100, 30), bool)
    grid[:, :, :20] = True
    grid[45:55, 45:55, 20:] = True
    surface = grid & ~scipy.ndimage.binary_erosion(grid)
    assert len(sample_points(solid, inside=True).positions) == grid.sum()
    assert len(sample_points(solid).positions) == surface.sum()
    assert len(sample_points(solid, ground=False).positions) == 1000 - 8**3


@pytest.mark.parametrize("spacing", [0.05, 0.1, 0.25])
@pytest.mark.parametrize("offset", [(0.0, 0.0, 0.0), (0.137, -41.03, 812.5)])
def test_the_lattice_of_a_cloud_is_found(spacing: float, offset: tuple[float, float, float]) -> None:
    rng = np.random.default_rng(2)
    nodes = np.argwhere(rng.random((60, 50, 12)) < 0.4)
    found = find_lattice((nodes * spacing + offset).astype(np.float32))
    assert found is not None
    assert found.spacing == pytest.approx(spacing, rel=1e-5)
    cells = cloud_cells((nodes * spacing + offset).astype(np.float32))
    assert cells.lattice
    assert len(cells.cells) == len(nodes)
    np.testing.assert_allclose(cells.lower, np.array(offset) - 0.5 * spacing, atol=2e-3 * spacing + 1e-4)


def test_a_scan_is_no_lattice_though_its_numbers_are_rounded() -> None:
    rng = np.random.default_rng(3)
    scan = np.column_stack([rng.uniform(0, 4, (20_000, 2)), np.zeros(20_000)])
    assert find_lattice(scan) is None
    assert find_lattice(np.round(scan, 3)) is None  # millimetres
    assert find_lattice(scan[:5]) is None


@pytest.mark.parametrize("density", [100.0, 1500.0])
def test_a_scanned_surface_is_closed_and_not_bloated(density: float) -> None:
    """A tilted sheet of random points: nothing gets through its middle, and no cell lies far from it."""
    rng = np.random.default_rng(4)
    flat = rng.uniform(0.0, 4.0, (int(density * 16.0), 2))
    normal = np.array([-0.3, 0.2, 1.0]) / np.linalg.norm([-0.3, 0.2, 1.0])
    points = np.column_stack([flat, 0.3 * flat[:, 0] - 0.2 * flat[:, 1]])
    side = cloud_cells(points).side
    assert 0.9 < side * np.sqrt(density) < 1.2
    mesh = cloud_mesh(points)
    assert np.abs(mesh.vertices @ normal).max() < 2.2 * side
    batch = SceneBatch(Scene("sheet", {"sheet": mesh}, instances=(Instance("sheet"),))).geometry
    aim = rng.uniform(0.5, 3.5, (3000, 2))
    on = np.column_stack([aim, 0.3 * aim[:, 0] - 0.2 * aim[:, 1]])
    direction = normal + rng.uniform(-0.4, 0.4, (3000, 3))
    assert occluded(batch, on - 2.0 * direction, on + 2.0 * direction).all()


def test_a_cell_can_be_asked_for(tmp_path: Path) -> None:
    source = place()
    path = write_pcd(tmp_path / "map.pcd", sample_points(source))
    assert scene(path).facts["cell_m"] == pytest.approx(0.1, rel=1e-5)
    assert scene(path, voxel=0.2).facts["cell_m"] == 0.2
    with pytest.warns(UserWarning, match=r"0\.1 apart"):
        scene(path, voxel=0.05)
    with pytest.raises(AirworthyError, match="voxel"):
        scene(path, voxel=-1.0)
    box = scene_box(scene(path, units="cm"))
    assert box is not None
    np.testing.assert_allclose(box[1], (1.04, -0.5, 0.089), atol=1e-6)


def test_a_foreign_cloud_gets_start_and_goal_in_its_frame(tmp_path: Path) -> None:
    known = sample_points(place())
    path = write_pcd(tmp_path / "map.pcd", Points(known.positions))
    found = scene(path)
    assert found.start is not None
    assert found.goal is not None
    ends = np.array([found.start.position, found.goal.position])
    assert ((ends > (98.0, -54.0, 5.0)) & (ends < (104.0, -50.0, 12.0))).all()
    batch = SceneBatch(found).geometry
    assert (clearance(batch, ends).distance > 0.3).all()
    assert not occluded(batch, ends[:1], ends[1:]).any()


def test_comments_that_lie_are_passed_over(tmp_path: Path) -> None:
    path = write_pcd(tmp_path / "map.pcd", sample_points(place()))
    text = path.read_bytes()
    for old, new in (
        (b"airworthy start", b"airworthy start nan"),
        (b"airworthy goal ", b"airworthy goal 1e99 "),
        (b"airworthy bounds 97.0", b"airworthy bounds 1970"),
        (b"airworthy enclosed 1", b"airworthy enclosed 7"),
        (b"airworthy spacing", b"airworthy spacings"),
    ):
        assert old in text
        text = text.replace(old, new)
    path.write_bytes(text)
    note = read_points(path).note
    assert note is not None
    assert (note.lower, note.start, note.goal, note.open, note.spacing) == (None, None, None, None, 0.0)
    assert len(scene(path).instances) == 1


def test_what_is_filled_again_does_not_count_as_filled_by_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A forest's floor of 50 m is three million cells inside, and a tenth of that on its surface."""
    block = Scene("b", {"b": Box((1.0, 1.0, 1.0))}, instances=(Instance("b"),))
    path = write_pcd(tmp_path / "b.pcd", sample_points(block))
    monkeypatch.setattr("airworthy.scenes.point_clouds.VOXELS_MAX", 20**3 - 18**3)
    assert clearance(SceneBatch(scene(path)).geometry, np.zeros((1, 3))).distance[0] == pytest.approx(-1.0, abs=1e-5)
