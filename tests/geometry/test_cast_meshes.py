"""Triangles: against brute force in double precision, against Embree, and closed meshes that nothing escapes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayIndex
from airworthy.geometry import GeometryBatch, Mesh, Placement, RayTable, cast

LEVEL = (0.0, 0.0, 0.0, 1.0)


def ball(rows: int = 24, columns: int = 40) -> Mesh:
    """A closed sphere of radius 1 from shared vertices, with slivers at its poles."""
    polar = np.linspace(0, np.pi, rows + 1)[1:-1, None]
    around = np.linspace(0, 2 * np.pi, columns, endpoint=False)[None]
    ring = np.stack([np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar) + 0 * around], -1)
    vertices = np.concatenate([[[0, 0, 1]], ring.reshape(-1, 3), [[0, 0, -1]]]).astype(np.float32)
    faces, last = [], len(vertices) - 1
    for c in range(columns):
        d = (c + 1) % columns
        faces.append([0, 1 + c, 1 + d])
        faces.append([last, last - columns + d, last - columns + c])
        for r in range(rows - 2):
            a, b = 1 + r * columns, 1 + (r + 1) * columns
            faces += [[a + c, b + c, b + d], [a + c, b + d, a + d]]
    return Mesh(vertices, np.array(faces))


def brute_force(mesh: Mesh, origin: Array, directions: Array) -> tuple[Array, ArrayIndex, Array]:
    """Nearest t of rays (n, 3) from one point, its face, and how far from an edge the hit is (least barycentric weight)."""
    a, b, c = np.asarray(mesh.vertices, float)[mesh.faces].transpose(1, 0, 2)
    n = np.cross(b - a, c - a)
    with np.errstate(all="ignore"):
        t = np.sum(n * (a - origin), 1) / (directions @ n.T)
        p = origin + t[..., None] * directions[:, None]
        area = np.sum(n * n, 1)
        weights = [np.sum(np.cross(q - p, r - p) * n, -1) / area for q, r in ((b, c), (c, a), (a, b))]
        least = np.min(weights, 0)
        t = np.where((least >= 0) & (t > 0), t, np.inf)
    face = np.argmin(t, 1)
    rows = np.arange(len(directions))
    return t[rows, face], face, np.min(np.abs(np.where(np.isfinite(least), least, 1)), 1)


def aimed(rng: np.random.Generator, count: int, origin: Array, spread: float = 1.2) -> Array:
    d = rng.uniform(-spread, spread, (count, 3)) - origin
    return d / np.linalg.norm(d, axis=1, keepdims=True)


def test_a_hundred_random_meshes_equal_brute_force() -> None:
    """Away from edges (relative weight 1e-4) faces agree exactly and depths to 1e-4 m at up to 10 m."""
    compared = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        count = int(rng.integers(1, 60))
        corners = rng.uniform(-1, 1, (count, 1, 3)) + rng.uniform(0.05, 0.6) * rng.normal(size=(count, 3, 3))
        mesh = Mesh(corners.reshape(-1, 3).astype(np.float32), np.arange(3 * count).reshape(-1, 3))
        origin = rng.normal(size=3)
        origin *= rng.uniform(0.5, 9.0) / np.linalg.norm(origin)
        origin = origin.astype(np.float32).astype(float)
        d = aimed(rng, 96, origin)
        t, face, edge = brute_force(mesh, origin, d)
        batch = GeometryBatch([mesh], [Placement.of([0])])
        hits = cast(batch, RayTable(d.reshape(8, 12, 3)), [origin], [LEVEL], channels=("range", "face", "barycentric"))
        found, where = hits["range"].reshape(-1).astype(float), hits["face"].reshape(-1)
        clear = edge > 1e-4
        assert clear.mean() > 0.9
        np.testing.assert_array_equal(np.isfinite(found)[clear], np.isfinite(t)[clear])
        met = clear & np.isfinite(t)
        compared += int(met.sum())
        ties = met & (where != face)  # two triangles that cross there
        assert ties.sum() <= 1
        np.testing.assert_allclose(found[met], t[met], atol=1e-4, rtol=0)
        _reconstructs(mesh, origin, d[met], found[met], where[met], hits["barycentric"].reshape(-1, 2)[met])
    assert compared > 3000


def _reconstructs(mesh: Mesh, origin: Array, d: Array, t: Array, face: Any, weights: Any) -> None:
    """Face and barycentrics give the point to 1e-5 m, measured across the ray and along the triangle."""
    corners = np.asarray(mesh.vertices, float)[mesh.faces[face]]
    v, w = weights[:, :1].astype(float), weights[:, 1:].astype(float)
    point = (1 - v - w) * corners[:, 0] + v * corners[:, 1] + w * corners[:, 2] - origin
    across = point - np.sum(point * d, 1)[:, None] * d
    assert np.linalg.norm(across, axis=1).max(initial=0.0) < 1e-5


def test_nothing_escapes_from_a_closed_mesh() -> None:
    """From inside, also exactly at its vertices and at the middles of its edges."""
    mesh = ball()
    batch = GeometryBatch([mesh], [Placement.of([0], attitude=[[0.1, 0.2, 0.3, 0.9]], scale=3.0), Placement.of([0])])
    rng = np.random.default_rng(0)
    corners = np.asarray(mesh.vertices, float)[mesh.faces]
    edges = (corners + np.roll(corners, 1, 1)).reshape(-1, 3) / 2
    for origin in (np.zeros(3), np.array([0.3, -0.2, 0.5]), np.array([0.0, 0.0, 0.9])):
        targets = np.concatenate([np.asarray(mesh.vertices, float), edges]) - origin
        random = rng.normal(size=(40000, 3))
        rays = np.concatenate([targets[np.linalg.norm(targets, axis=1) > 1e-6], random])
        rays = rays[: len(rays) // 8 * 8].reshape(8, -1, 3)
        hits = cast(batch, RayTable(rays), [origin], [LEVEL], env=[1], channels=("face",))
        assert (hits["face"] >= 0).all()
        hits = cast(batch, RayTable(rays), [origin], [LEVEL], env=[0], channels=("face",))
        assert (hits["face"] >= 0).all()


def test_degenerate_triangles_and_empty_meshes_are_never_met() -> None:
    vertices = np.array([[5, -1, 0], [5, 1, 0], [5, 0.5, 0], [5, 0, 0]], np.float32)
    shapes = [Mesh(vertices, np.array([[0, 1, 2], [0, 0, 1], [3, 3, 3]])), Mesh(vertices, np.zeros((0, 3), int))]
    rays = np.stack(np.broadcast_arrays(1.0, np.linspace(-0.3, 0.3, 61)[None], np.linspace(-0.1, 0.1, 21)[:, None]), -1)
    for shape in shapes:
        for place in (Placement.of([0]), Placement.empty()):
            hits = cast(GeometryBatch([shape], [place]), RayTable(rays), [[0, 0, 0]], [LEVEL], channels=("range", "face"))
            assert np.isinf(hits["range"]).all()


# ---- Embree ----------------------------------------------------------------------------------------------------------


def read_obj(path: Path) -> Mesh:
    """Vertices and faces of a Wavefront file, polygons as fans."""
    vertices, faces = [], []
    for line in path.read_text(errors="replace").splitlines():
        tokens = line.split()
        if tokens[:1] == ["v"]:
            vertices.append([float(x) for x in tokens[1:4]])
        elif tokens[:1] == ["f"]:
            corners = [int(w.split("/")[0]) - 1 for w in tokens[1:]]
            faces += [[corners[0], *corners[k : k + 2]] for k in range(1, len(corners) - 1)]
    array = np.array(vertices)
    centre, size = (array.max(0) + array.min(0)) / 2, np.ptp(array, axis=0).max()
    return Mesh(((array - centre) * (2.0 / size)).astype(np.float32), np.array(faces))


def embree(mesh: Mesh, origin: Array, d: Array) -> dict[str, Any]:
    pytest.importorskip("embreex", reason="Embree, the yardstick, is optional: pip install embreex")
    from embreex.mesh_construction import TriangleMesh
    from embreex.rtcore_scene import EmbreeScene

    scene = EmbreeScene()
    TriangleMesh(scene, np.asarray(mesh.vertices, np.float32), np.asarray(mesh.faces, np.int32))
    starts = np.broadcast_to(origin.astype(np.float32), d.shape).copy()
    answer: dict[str, Any] = scene.run(starts, d.astype(np.float32), output=True)
    return answer


def _band(ids: ArrayAny) -> ArrayBool:
    """Pixels whose four neighbours all have their number: outside the band of one pixel around silhouettes."""
    same = np.ones(ids.shape, bool)
    for axis in (0, 1):
        equal = np.diff(ids, axis=axis) == 0
        lower = [slice(None)] * 2
        upper = [slice(None)] * 2
        lower[axis], upper[axis] = slice(None, -1), slice(1, None)
        same[tuple(lower)] &= equal
        same[tuple(upper)] &= equal
    return same


def _equals_embree(mesh: Mesh, origin: Array, side: int = 96) -> None:
    u, v = np.meshgrid(*[(np.arange(side) + 0.5) / side * 1.0 - 0.5] * 2)
    forward = -origin / np.linalg.norm(origin)
    right = np.cross(forward, [0.1, 0.2, 1.0])
    right /= np.linalg.norm(right)
    rays = forward + u[..., None] * right + v[..., None] * np.cross(forward, right)
    table = RayTable(rays)
    batch = GeometryBatch([mesh], [Placement.of([0])])
    hits = cast(batch, table, [origin], [LEVEL], channels=("range", "face", "barycentric", "instance"))
    d = table.directions.reshape(-1, 3)
    reference = embree(mesh, origin, d)
    theirs = np.asarray(reference["primID"]).reshape(side, side)
    inner = _band((theirs >= 0).astype(int))
    np.testing.assert_array_equal(hits["instance"][0][inner], np.where(theirs >= 0, 0, -1)[inner])
    both = (theirs >= 0) & (hits["face"][0] >= 0)
    assert both.sum() > 100
    far = np.asarray(reference["tfar"]).reshape(side, side)
    close = np.abs(far - hits["range"][0]) <= 1e-4
    # Where a ray passes between two sheets' edges one of us sees the sheet behind: fewer than one pixel in a thousand.
    assert close[both & inner].mean() > 0.999
    # Another face where two meet in the ray: then at the same depth.
    assert (hits["face"][0] == theirs)[both].mean() > 0.99
    met = both.reshape(-1)
    weights = hits["barycentric"].reshape(-1, 2)[met]
    _reconstructs(mesh, origin, d[met], hits["range"].reshape(-1)[met], hits["face"].reshape(-1)[met], weights)


def test_a_ball_equals_embree() -> None:
    _equals_embree(ball(60, 100), np.array([2.0, -3.0, 1.0]))


@pytest.mark.parametrize("name", ["threedscans/Plato/Plato.obj", "ggg/Angel.obj", "copyroom/copyroom_c2000_opt.obj"])
def test_scans_equal_embree(name: str, data_dir: Path) -> None:
    _equals_embree(read_obj(data_dir / "meshes" / name), np.array([1.5, -2.5, 1.0]))


@pytest.mark.slow
def test_every_scan_equals_embree(data_dir: Path) -> None:
    for path in sorted((data_dir / "meshes").rglob("*.obj")):
        for origin in ([3.0, 0.5, 0.2], [-2.0, 2.0, 1.5], [0.3, -9.0, 3.0]):
            _equals_embree(read_obj(path), np.array(origin), 256)
