"""Point clouds far from the origin, as surveys leave them: the same occupancy, or one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from airworthy.cli.main import main
from airworthy.core.arrays import Array, ArrayInt
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.geometry import Mesh
from airworthy.scenes import Scene, scene
from airworthy.scenes.extent import triangle_count
from airworthy.scenes.formats import export_scene, read_points, sample_points, write_pcd, write_points_ply
from airworthy.scenes.formats.model import Points
from airworthy.scenes.imports import add_model
from airworthy.scenes.point_clouds import cloud_cells, cloud_mesh, find_lattice, need_near

UTM = (5e5, 5.6e6, 120.0)
FAR = [UTM, (5e4, 0.0, 0.0), (0.0, 2e5, 0.0)]
SPACING = 0.25


def nodes() -> ArrayInt:
    """A floor of 40 by 40 cells with a wall on it."""
    floor = np.argwhere(np.ones((40, 40, 1), bool))
    wall = np.argwhere(np.ones((40, 1, 10), bool)) + np.array([0, 20, 1])
    return np.concatenate([floor, wall])


def write(path: Path, offset: tuple[float, float, float], form: str) -> Path:
    """The cloud as other programs write it: not by the writers under test."""
    points = np.asarray(nodes() * SPACING + np.array(offset))
    size, kind = (4, "f4") if "float" in form else (8, "f8")
    text = form.startswith("text")
    if path.suffix == ".pcd":
        head = f"VERSION 0.7\nFIELDS x y z\nSIZE {size} {size} {size}\nTYPE F F F\nCOUNT 1 1 1\nWIDTH {len(points)}\nHEIGHT 1\n"
        head += f"POINTS {len(points)}\nDATA {'ascii' if text else 'binary'}\n"
    else:
        word = "float" if size == 4 else "double"
        head = f"ply\nformat {'ascii' if text else 'binary_little_endian'} 1.0\nelement vertex {len(points)}\n"
        head += "".join(f"property {word} {axis}\n" for axis in "xyz") + "end_header\n"
    body = (
        "".join(f"{x!r} {y!r} {z!r}\n" for x, y, z in points.tolist()).encode() if text else points.astype("<" + kind).tobytes()
    )
    path.write_bytes(head.encode() + body)
    return path


def faces_of(item: Scene) -> Array:
    """Middles of all triangles relative to the box, in units of a quarter cell, in rising order."""
    (mesh,) = item.shapes.values()
    assert isinstance(mesh, Mesh)
    middle = mesh.vertices[mesh.faces].astype(float).mean(1)
    middle = np.rint((middle - mesh.vertices.min(0)) * 12.0 / SPACING)
    return middle[np.lexsort(middle.T)]


@pytest.mark.parametrize("name", ["map.pcd", "map.ply"])
@pytest.mark.parametrize("form", ["double", "text double"])
@pytest.mark.parametrize("offset", FAR)
def test_doubles_are_kept_and_recentred(name: str, form: str, offset: tuple[float, float, float], tmp_path: Path) -> None:
    near = scene(write(tmp_path / f"near_{name}", (0.0, 0.0, 0.0), form))
    path = write(tmp_path / name, offset, form)
    np.testing.assert_array_equal(read_points(path).positions, nodes() * SPACING + np.array(offset))
    far = scene(path, recentre=True)
    assert far.facts["cell_m"] == pytest.approx(SPACING, rel=1e-6)
    np.testing.assert_array_equal(faces_of(far), faces_of(near))
    assert len(faces_of(far)) == triangle_count(near)[0] > 6000
    with pytest.raises(AssetError, match=r"cells of 0\.25 m reaches .* m from the origin.*--recentre"):
        scene(path)


@pytest.mark.parametrize("offset", FAR[1:2])
def test_floats_that_are_exact_are_a_lattice_too(offset: tuple[float, float, float], tmp_path: Path) -> None:
    near = scene(write(tmp_path / "near.pcd", (0.0, 0.0, 0.0), "float"))
    far = scene(write(tmp_path / "far.pcd", offset, "float"), recentre=True)
    np.testing.assert_array_equal(faces_of(far), faces_of(near))


@pytest.mark.parametrize("form", ["float", "text float"])
@pytest.mark.parametrize("name", ["map.pcd", "map.ply"])
def test_places_that_floats_have_lost_are_refused_even_recentred(name: str, form: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, UTM, form)
    with pytest.raises(AssetError, match=r"float32 coordinates up to 5,600,\d+, .*write it with doubles"):
        scene(path, recentre=True)


def test_a_lattice_is_found_wherever_it_lies() -> None:
    for offset in (0.0, 1e3, 5e4, 1e6, 9e6):
        points = nodes() * 0.1 + offset
        found = find_lattice(points)
        assert found is not None
        assert found.spacing == pytest.approx(0.1, rel=1e-6)
        assert len(cloud_cells(points).cells) == len(nodes())
    scan = np.random.default_rng(0).uniform(0.0, 4.0, (5000, 3))
    assert find_lattice(scan + np.array(UTM)) is None
    assert cloud_cells(scan + np.array(FAR[0])).side == pytest.approx(cloud_cells(scan).side, rel=1e-6)


def test_every_door_refuses_what_it_would_move(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path / "far.pcd", UTM, "double"))
    out = tmp_path / "out"
    lines = [
        ["scenes", "show", path],
        ["scenes", "validate", path],
        ["scenes", "render", path, "--out", str(tmp_path / "picture.png")],
        ["scenes", "export", path, "--out", str(tmp_path / "back.pcd")],
        ["bench", "navigation", "--scenes", path, "--out", str(out)],
        ["fly", "--scene", path, "--goal", "1", "1", "1"],
    ]
    for line in lines:
        assert main(line) == 2, line
        printed = capsys.readouterr()
        said = " ".join((printed.err + printed.out).replace("│", " ").split())
        assert "reaches 5,600,010 m from the origin" in said, (line, said)
        assert "Traceback" not in said
    assert not out.exists()
    assert sorted(item.name for item in tmp_path.iterdir()) == ["far.pcd"]
    with pytest.raises(AssetError, match="floor"):
        add_model(Scene("s"), path)
    assert add_model(Scene("s"), path, floor=True).instances
    with pytest.raises(AirworthyError, match="subtract an offset"):
        cloud_mesh(nodes() * SPACING + UTM)


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_far_is_as_far_on_the_side_of_negative_coordinates(sign: float, axis: int) -> None:
    # From 2^15 m = 32,768 m on float32 steps are 2^-8 m, more than a hundredth of a cell of 0.25 m; below they are half of it.
    place = sign * np.eye(3)[axis]
    need_near(*np.sort([32_000 * place, 32_500 * place], axis=0), 0.25, "A cloud", "mend it")
    for corner in (33_900 * place, 10 * place, -10 * place):
        with pytest.raises(AssetError, match=r"A cloud with cells of 0\.25 m reaches 34,000 m from the origin"):
            need_near(*np.sort([corner, 34_000 * place], axis=0), 0.25, "A cloud", "mend it")


def test_a_cloud_far_to_the_south_west_is_refused() -> None:
    with pytest.raises(AssetError, match="subtract an offset"):
        cloud_mesh(nodes() * SPACING - UTM)


@pytest.mark.parametrize("name", ["back.pcd", "back.cloud.ply"])
def test_a_cloud_of_a_far_place_is_written_as_doubles(name: str, tmp_path: Path) -> None:
    """At 20 km cells of 0.25 m are simulated; points of it every 0.1 m are kept, and read again only where that is sound."""
    place = scene(write(tmp_path / "far.pcd", (2e4, 0.0, 0.0), "double"))
    path = export_scene(place, tmp_path / name)
    found = read_points(path).positions
    assert found.dtype == np.float64
    np.testing.assert_allclose(found / 0.1 - 0.5, np.rint(found / 0.1 - 0.5), atol=1e-6)
    with pytest.raises(AssetError, match="--recentre"):
        scene(path)
    coarse = sample_points(place, 0.25)
    assert scene(path, recentre=True).facts["cell_m"] == pytest.approx(0.1, rel=1e-6)
    write_pcd(tmp_path / "coarse.pcd", coarse)
    again = scene(tmp_path / "coarse.pcd")
    assert len(read_points(tmp_path / "coarse.pcd").positions) == len(coarse.positions)
    assert (again.bounds, again.start, again.goal) == (place.bounds, place.start, place.goal)


def test_near_clouds_are_written_as_floats(tmp_path: Path) -> None:
    cloud = Points(nodes() * SPACING, np.full((len(nodes()), 3), 7, np.uint8), np.ones(len(nodes()), np.float32))
    for path in (write_pcd(tmp_path / "a.pcd", cloud), write_points_ply(tmp_path / "a.ply", cloud)):
        assert read_points(path).positions.dtype == np.float32
    far = Points(cloud.positions + UTM, cloud.colors, cloud.intensity)
    for path in (write_pcd(tmp_path / "b.pcd", far), write_points_ply(tmp_path / "b.ply", far)):
        back = read_points(path)
        np.testing.assert_array_equal(back.positions, far.positions)
        assert np.all(back.colors == 7)
        assert np.all(back.intensity == 1.0)
