"""Polygons of files become triangles that cover them and nothing else, whichever corner they begin at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.geometry import Mesh
from airworthy.scenes.formats import read_model
from airworthy.scenes.formats.meshes import polygons

ELL = [(2, 0), (2, 1), (0, 1), (0, -1), (1, -1), (1, 0)]
ARROW = [(0, 0), (2, -1), (1, 0), (2, 1)]
BRIDGED = [(0, 0), (4, 0), (4, 4), (0, 4), (0, 0), (1, 1), (1, 3), (3, 3), (3, 1), (1, 1)]
"""A square with a square hole, made one ring by a bridge that it goes along twice."""
SLANT = np.array([[0.8, 0.0], [0.36, 0.8], [-0.48, 0.6]])
"""An orthonormal base (3, 2) of a plane that is along no axis."""


def write(path: Path, *rings: Array) -> Path:
    corners = [row for ring in rings for row in ring]
    ends = np.cumsum([len(ring) for ring in rings])
    faces = [range(end - len(ring) + 1, end + 1) for ring, end in zip(rings, ends, strict=True)]
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in np.array(corners).tolist()]
    path.write_text("\n".join(lines + ["f " + " ".join(map(str, face)) for face in faces]) + "\n")
    return path


def areas(path: Path) -> tuple[Array, int, tuple[str, ...]]:
    """Return areas times normals of all triangles (F, 3), how many these are, and what was told."""
    model = read_model(path)
    (mesh,) = model.shapes.values()
    assert isinstance(mesh, Mesh)
    corners = mesh.vertices[mesh.faces].astype(float)
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) / 2
    return cross, len(mesh.faces), model.warnings


def star(count: int) -> Array:
    turn = np.arange(count) * 2 * np.pi / count
    return np.stack([np.cos(turn), np.sin(turn)], 1) * np.where(np.arange(count) % 2, 0.2, 1.0)[:, None]


@pytest.mark.parametrize(
    ("ring", "area"),
    [
        (ELL, 3.0),
        (ARROW, 1.0),
        (BRIDGED, 12.0),
        (star(40), 0.2 * 20 * np.sin(np.pi / 20)),
        ([*ELL[:1], (2, 0.5), *ELL[1:]], 3.0),
    ],
)
@pytest.mark.parametrize("back", [False, True])
def test_triangles_cover_a_concave_polygon_and_nothing_else(ring: list, area: float, back: bool, tmp_path: Path) -> None:
    flat = np.array(ring, float)[:: -1 if back else 1]
    for first in range(0, len(flat), 1 + len(flat) // 16):
        for base in (SLANT, np.eye(3)[:, :2], np.eye(3)[:, 1:], np.eye(3)[:, [2, 0]]):
            cross, _, told = areas(write(tmp_path / "a.obj", np.roll(flat, first, axis=0) @ base.T + 5.0))
            # All on one side, and no more of them than the polygon has: no gap and no overlap.
            normal = np.cross(base[:, 0], base[:, 1]) * (-1 if back else 1)
            np.testing.assert_allclose(cross @ normal, np.linalg.norm(cross, axis=1), atol=1e-5)
            assert np.linalg.norm(cross, axis=1).sum() == pytest.approx(area, rel=1e-5)
            assert not [line for line in told if "area" not in line]


def test_polygons_whose_fan_fills_them_stay_fans_beside_others(tmp_path: Path) -> None:
    """A hexagon, an L whose first corner sees all of it, and one whose does not; materials keep their triangles."""
    hexagon = star(12)[::2]
    rings = [np.c_[np.array(ring, float), np.zeros(6)] for ring in (hexagon, np.roll(ELL, 1, axis=0), ELL, hexagon)]
    model = read_model(write(tmp_path / "a.obj", *rings))
    (mesh,) = model.shapes.values()
    assert isinstance(mesh, Mesh)
    fan = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]])
    np.testing.assert_array_equal(
        mesh.faces[[0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15]], np.concatenate([fan, fan + 6, fan + 18])
    )
    cut = mesh.faces[8:12] - 12
    assert cut.min() == 0
    assert cut.max() == 5
    assert not np.array_equal(cut, fan)


def test_sides_that_cross_and_polygons_that_are_too_large_are_filled_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bow = np.array([[0, 0, 0], [2, 2, 0], [2, 0, 0], [0, 1, 0], [1, 3, 0]], float)
    assert areas(write(tmp_path / "a.obj", bow))[1:] == (3, ())
    large = np.c_[star(2 * 257), np.zeros(2 * 257)]
    told = "were filled as fans, which may cover what lies outside them"
    assert areas(write(tmp_path / "a.obj", large))[1:] == (512, (f"concave polygons of more than 512 corners {told}",))
    monkeypatch.setattr(polygons, "_WORK", 80)
    ells = [np.c_[np.array(ELL, float), np.full(6, float(z))] for z in range(4)]
    assert areas(write(tmp_path / "a.obj", *ells))[1:] == (16, (f"concave polygons after the first 2 {told} (2)",))


# ---- Other formats ----------------------------------------------------------------------------------------------------------


def ply_text(corners: Array, sizes: list[int]) -> str:
    ends = np.cumsum(sizes)
    faces = [" ".join(map(str, (size, *range(end - size, end)))) for size, end in zip(sizes, ends, strict=True)]
    head = [
        "ply", "format ascii 1.0", f"element vertex {len(corners)}", *(f"property float {axis}" for axis in "xyz"),
        f"element face {len(sizes)}", "property list uchar int vertex_indices", "end_header",
    ]  # fmt: skip
    return "\n".join([*head, *(" ".join(map(repr, row)) for row in corners.tolist()), *faces]) + "\n"


def dae_text(corners: Array, sizes: list[int]) -> str:
    values, index = " ".join(map(repr, corners.reshape(-1).tolist())), " ".join(map(str, range(len(corners))))
    return f"""<COLLADA version="1.4.1"><asset><up_axis>Z_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="f" count="{corners.size}">{values}</float_array><technique_common>
<accessor source="#f" count="{len(corners)}" stride="3"/></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<polylist count="{len(sizes)}"><input semantic="VERTEX" source="#v" offset="0"/><vcount>{" ".join(map(str, sizes))}</vcount>
<p>{index}</p></polylist></mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node><instance_geometry url="#g"/></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


def usd_text(corners: Array, sizes: list[int]) -> str:
    points = ", ".join(str(tuple(row)) for row in corners.tolist())
    return f"""#usda 1.0
(
    upAxis = "Z"
    metersPerUnit = 1
)
def Mesh "m"
{{
    int[] faceVertexCounts = {sizes}
    int[] faceVertexIndices = {list(range(len(corners)))}
    point3f[] points = [{points}]
    uniform token subdivisionScheme = "none"
}}
"""


@pytest.mark.parametrize(("suffix", "text"), [(".ply", ply_text), (".dae", dae_text), (".usda", usd_text)])
def test_every_format_cuts_concave_polygons(suffix: str, text: Callable[[Array, list[int]], str], tmp_path: Path) -> None:
    """An L from each of its corners, a square and an arrow side by side: as large as they are, all on one side."""
    if suffix == ".usda":
        pytest.importorskip("pxr")
    square = [(0, 0), (1, 0), (1, 1), (0, 1)]
    rings = [np.roll(np.array(ELL, float), first, axis=0) for first in range(len(ELL))]
    rings += [np.array(square, float), np.array(ARROW, float)]
    flat = np.concatenate([ring + np.array([5.0 * k, 0.0]) for k, ring in enumerate(rings)])
    path = tmp_path / f"a{suffix}"
    path.write_text(text((flat @ SLANT.T).round(6), [len(ring) for ring in rings]))
    cross, count, told = areas(path)
    normal = np.cross(SLANT[:, 0], SLANT[:, 1])
    assert count == 4 * len(ELL) + 2 + 2
    # Coordinates of six digits, up to 40 m: sums of areas to 1e-4.
    np.testing.assert_allclose(cross @ normal, np.linalg.norm(cross, axis=1), atol=1e-4)
    assert np.linalg.norm(cross, axis=1).sum() == pytest.approx(3.0 * len(ELL) + 1.0 + 1.0, abs=1e-3)
    assert not told
