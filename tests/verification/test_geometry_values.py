"""What the checks of rays, distances and contact feed to the engine, and how they judge, against lines on file and by hand."""

# ruff: noqa: PLW0108 - functions are looked up when they are called, since names of their modules are replaced.

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.verification.conftest import Compare

import airworthy.verification.contact as contact
import airworthy.verification.geometry as geometry
from airworthy.core.frames import rotate
from airworthy.geometry import Box, Capsule, Cylinder, Placement, RayTable, Shape, Sphere

CASES: dict[str, Callable[[], Any]] = {
    "closed forms": lambda: geometry._closed_forms(),
    "brute force": lambda: geometry.brute_force_figures(3),
    "order": lambda: geometry._order(),
    "moved": lambda: iter([geometry._moved()]),
    "distance field": lambda: iter([geometry._distance_field()]),
    "memory": lambda: geometry._memory(),
    "tunnels": lambda: contact._tunnels(40),
    "energy": lambda: contact._energy_gain(),
    "a box": lambda: contact.box_mesh((1.0, 2.0, 3.0)),
    "meshes": lambda: [geometry.random_mesh(np.random.default_rng(3), kind) for kind in range(3)],
    "around": lambda: geometry._around(3, 4.0),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_asked_and_judged(case: str, compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geometry, "_POSES", 4)
    compare("geometry.txt", case, [geometry, contact], CASES[case], leave_out=("_energy",))


@pytest.mark.parametrize(("spoilt", "passed"), [("", (True, True)), ("far", (True, False)), ("face", (False, True))])
def test_rays_against_another_engine(spoilt: str, passed: Any, compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    """Embree's part is played by every triangle in float64; its answers are spoilt in one picture of four."""

    def other(mesh: Any, table: Any, position: Any, attitude: Any) -> Any:
        rays = rotate(attitude[:, None, None], table.directions).reshape(-1, 3)
        start = np.repeat(position, table.height * table.width, axis=0)
        distance, face = geometry.triangle_hits(start, rays, mesh.vertices.astype(float)[mesh.faces])
        distance, face = (part.reshape(len(position), table.height, table.width) for part in (distance, face))
        if spoilt:
            distance[1] += 2e-4 if spoilt == "far" else 2e-3
            face[1] += spoilt == "face"
        return distance, face

    monkeypatch.setattr(geometry, "_embree", other)
    monkeypatch.setattr(
        geometry, "ray_table", lambda width, height, focal, plain=geometry.ray_table: plain(width // 4, height // 4, focal / 4)
    )
    mesh = geometry.random_mesh(np.random.default_rng(5), 1)
    found = list(geometry._figures("one", [mesh]))
    assert tuple(figure.passed for figure in found) == passed
    if not spoilt:
        monkeypatch.setattr(geometry, "_embree", lambda *_: (np.zeros((4, 30, 40)), np.zeros((4, 30, 40), int)))
        asked: list[Any] = []
        monkeypatch.setattr(geometry, "ray_table", lambda *size: asked.append(size) or RayTable(np.ones((30, 40, 3))))
        list(geometry._figures("one", [mesh]))
        assert asked == [(160, 120, 220.0)]


def test_scans_are_brought_to_two_metres(tmp_path: Any) -> None:
    (tmp_path / "a.obj").write_text("v 1 1 1\nv 5 1 1\nv 1 2 1\nv 1 1 4\nf 1 2 3\nf 1 3 4\n")
    mesh = geometry._scan(tmp_path / "a.obj")
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    np.testing.assert_allclose(low + high, 0.0, atol=1e-6)
    assert float((high - low).max()) == pytest.approx(2.0)
    assert len(mesh.faces) == 2


def test_landings(compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three vehicles; their bodies rest on the ground and on a mesh at one height, and nothing gains energy."""
    monkeypatch.setattr(contact, "vehicle_names", lambda: ["carl", "cf2x_L250", "base_octarotor"])
    compare(
        "geometry.txt",
        "landings",
        [contact],
        lambda: [contact.landings(on_mesh) for on_mesh in (False, True)],
        leave_out=("_energy",),
    )


def test_energy_by_its_definition() -> None:
    """Of a vehicle with products of inertia: half of v.mv + w.Jw, and mgh."""
    from dataclasses import replace

    body = replace(contact._vehicle_of_shape("box", (0.2, 0.15, 0.05)), inertia=(0.006, 0.007, 0.011, 0.001, -0.002, 0.0005))
    (xx, yy, zz, xy, xz, yz), v, w = body.inertia, np.array([1.0, -2.0, 3.0]), np.array([4.0, 5.0, -6.0])
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    flown: Any = SimpleNamespace(
        velocity=v[None], rate=w[None], position=np.array([[0.0, 0.0, 2.0]]), field=lambda name: np.array([[0, 0, 1e-3]])
    )
    wanted = 0.5 * 1.2 * v @ v + 0.5 * w @ tensor @ w + 1.2 * 9.81 * 2.001
    np.testing.assert_allclose(contact._energy([body], flown), [wanted])


@pytest.mark.parametrize("wrong", ["height", "settled", "gain", ""])
def test_landings_beyond_their_bars_fail(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heights a little over 1 mm apart, 1.51 s until it stands, a gain of 1.1 thousandths; each alone."""
    monkeypatch.setattr(contact, "_tunnels", lambda trials: 0)
    monkeypatch.setattr(contact, "_energy_gain", lambda: (1e-3, 7))

    def landings(on_mesh: bool) -> contact.Landings:
        bad = on_mesh
        height = np.array([0.1, 0.2]) + (1.01e-3 if bad and wrong == "height" else 0.99e-3 if bad else 0.0) * np.array([0, -1])
        settled = np.array([1.51 if not bad and wrong == "settled" else 1.5, 0.3])
        return contact.Landings(("a", "b"), height, settled, np.array([1.1e-3 if bad and wrong == "gain" else 1e-3, -1.0]))

    monkeypatch.setattr(contact, "landings", landings)
    found = list(contact.contact_figures(4))
    assert [figure.passed for figure in found] == [True, True, wrong != "height", wrong != "settled", wrong != "gain"]
    assert found[1].name.endswith("in 7 steps with contact")
    assert found[2].measured == pytest.approx(1.01 if wrong == "height" else 0.99)


@pytest.mark.parametrize("shape", [Box((0.9, 0.6, 1.1)), Sphere(1.2), Cylinder(0.7, 1.0), Capsule(0.5, 0.9)])
def test_distances_to_solids_are_where_their_surfaces_are(shape: Shape) -> None:
    """By marching: outside before the distance that was found, inside just after; never inside where none was found."""
    rng = np.random.default_rng(1)
    origin, target = rng.normal(size=(60, 3)), rng.normal(0.0, 0.9, (60, 3))
    origin *= 5.0 / np.linalg.norm(origin, axis=1, keepdims=True)
    direction = target - origin
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)

    def inside(points: np.ndarray) -> np.ndarray:
        x, y, z = np.moveaxis(points, -1, 0)
        if isinstance(shape, Box):
            return np.all(np.abs(points) < shape.half_size, axis=-1)
        if isinstance(shape, Sphere):
            return np.linalg.norm(points, axis=-1) < shape.radius
        beyond = np.maximum(np.abs(z) - shape.half_length, 0.0)
        if isinstance(shape, Cylinder):
            return (np.hypot(x, y) < shape.radius) & (beyond == 0.0)
        return np.hypot(np.hypot(x, y), beyond) < shape.radius

    found = geometry.solid_range(shape, origin, direction)
    assert 5 < np.isfinite(found).sum() < 60
    for start, way, at in zip(origin, direction, found, strict=True):
        t = np.linspace(0.0, 12.0, 4001)
        there = inside(start + t[:, None] * way)
        if np.isinf(at):
            assert there.sum() <= 40  # a chord shorter than its rounding may be missed by none
            assert not there.any() or np.ptp(t[there]) < 0.12
            continue
        assert not there[t < at - 1e-6].any()
        assert inside(start + (at + 1e-6) * way)
    turn = np.array([0.0, 0.6, 0.0, 0.8])
    moved = geometry.placed_range(
        shape, np.array([1.0, 2.0, 3.0]), turn, np.add(rotate(turn, origin), [1.0, 2.0, 3.0]), rotate(turn, direction)
    )
    np.testing.assert_allclose(moved, found, atol=1e-9)


def test_distances_to_planes_and_triangles() -> None:
    origin = np.array([[0.0, 0.0, 2.0], [0.3, 0.2, 2.0], [0.3, 0.2, -2.0], [0.9, 0.9, 2.0]])
    down = np.tile([0.0, 0.0, -1.0], (4, 1))
    np.testing.assert_allclose(
        geometry.plane_range(np.zeros(3), np.array([0.0, 0.0, 1.0]), origin, down), [2.0, 2.0, np.inf, 2.0]
    )
    corners = np.array(
        [[[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 0, 1], [1, 0, 1], [0, 1, 1]], [[5, 5, 0], [6, 5, 0], [5, 6, 0]]], float
    )
    distance, number = geometry.triangle_hits(origin, down, corners)
    assert distance.tolist() == [1.0, 1.0, np.inf, np.inf]
    assert number.tolist() == [1, 1, -1, -1]
    slanted, which = geometry.triangle_hits(origin[:1], np.array([[0.1, 0.1, -1.0]]), corners[:1])
    assert (slanted[0], which[0]) == (pytest.approx(2.0), 0)


def test_triangles_are_looked_at_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    mesh = geometry.random_mesh(rng, 1)
    corners = geometry.world_corners(mesh, Placement.of([0], [0.0, 0.0, 4.0], [0.0, 0.0, 0.6, 0.8], 1.5))
    by_hand = 1.5 * rotate(np.array([0.0, 0.0, 0.6, 0.8]), mesh.vertices.astype(float)) + [0.0, 0.0, 4.0]
    np.testing.assert_allclose(corners, by_hand[mesh.faces], atol=1e-6)
    rays = geometry.ray_table(8, 6, 12.0).directions.reshape(-1, 3)
    whole = geometry.triangle_hits(np.zeros_like(rays), rays, corners)
    monkeypatch.setattr(geometry, "_BLOCK", 5 * len(corners))
    parts = geometry.triangle_hits(np.zeros_like(rays), rays, corners)
    assert np.array_equal(whole[0], parts[0])
    assert np.array_equal(whole[1], parts[1])


def test_a_table_of_rays_is_a_pinhole_s() -> None:
    table = geometry.ray_table(4, 2, 3.0)
    assert isinstance(table, RayTable)
    wanted = np.array([[[u, v, 3.0] for u in (-1.5, -0.5, 0.5, 1.5)] for v in (-0.5, 0.5)])
    np.testing.assert_allclose(table.directions, wanted / np.linalg.norm(wanted, axis=-1, keepdims=True), atol=1e-6)


def test_edges_of_pictures() -> None:
    labels = np.zeros((1, 6, 7), int)
    labels[0, 2, 3] = 1
    band = geometry.silhouette(labels)
    wanted = np.ones((6, 7), bool)
    wanted[1:5, 1:6] = False
    wanted[1:4, 2:5] = True
    assert np.array_equal(band[0], wanted)
    depth = np.full((1, 6, 7), 4.0)
    depth[0, 2, 3], depth[0, 4, 5] = 4.021, 4.019
    jumps = geometry._jumps(depth)
    ring = np.zeros((6, 7), bool)
    ring[1:4, 2:5] = True
    assert np.array_equal(jumps[0, 1:5, 1:6], ring[1:5, 1:6])


def test_points_met_by_face_and_barycentrics() -> None:
    corners = np.array([[[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 0, 5], [2, 0, 5], [0, 2, 5]]], float)
    rendered: Any = {
        "face": np.array([[[1, -1], [0, 0]]]),
        "barycentric": np.array([[[[0.25, 0.5], [9, 9]], [[0, 0], [1, 0]]]], float),
        "point_world": np.array([[[[0.5, 1.0, 5.0], [7, 7, 7]], [[0, 0, 0.3], [1, 0, 0]]]], float),
    }
    assert geometry._rebuilt(rendered, corners, 0) == pytest.approx(0.3)
    rendered["face"][:] = -1
    assert geometry._rebuilt(rendered, corners, 0) == 0.0


def test_an_error_of_the_engine_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges a tenth of a millimetre too long, and a pixel that misses where it should hit."""
    plain = geometry.cast

    def spoilt(*given: Any, **named: Any) -> Any:
        found = {key: value.copy() for key, value in plain(*given, **named).items()}
        found["range"][:, 18:30, 26:38] += 2e-4
        found["depth"][:, 18:30, 26:38] -= 3e-4
        found["range"][0, 25, 32] = np.inf
        found["depth"][0, 25, 32] = np.inf
        return found

    monkeypatch.setattr(geometry, "_POSES", 2)
    monkeypatch.setattr(geometry, "cast", spoilt)
    *solids, plane, wrong = geometry._closed_forms()
    assert [figure.passed for figure in (*solids, plane, wrong)] == [False] * 6
    assert plane.measured == pytest.approx(3e-4, rel=0.2)
    assert 1.0 <= wrong.measured <= 5.0


def test_a_picture_elsewhere_that_changes_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, calls = geometry.cast, []

    def spoilt(*given: Any, **named: Any) -> Any:
        calls.append(0)
        found = {key: value.copy() for key, value in plain(*given, **named).items()}
        if len(calls) == 2:
            found["depth"][7, 0, 0] = 1.0
            found["depth"][5, 20, 30] += 0.1
        return found

    monkeypatch.setattr(geometry, "cast", spoilt)
    assert geometry._moved().measured == 2.0


def test_a_wrong_distance_in_a_field_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = geometry.distance_field

    def spoilt(grid: Any, cell: float) -> Any:
        found = plain(grid, cell)
        values = found.values.copy()
        values[1, 2, 3] += 1.0
        return type("Field", (), {"values": values})

    monkeypatch.setattr(geometry, "distance_field", spoilt)
    assert geometry._distance_field().measured == 4.0


def test_an_environment_that_depends_on_the_others_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, calls = geometry.cast, []

    def spoilt(batch: Any, *given: Any, **named: Any) -> Any:
        calls.append(batch.env_count)
        found = {key: value.copy() for key, value in plain(batch, *given, **named).items()}
        if len(calls) in (2, 5):
            found["range"][0, 0, 0] = -3.0
        return found

    monkeypatch.setattr(geometry, "cast", spoilt)
    assert [figure.measured for figure in geometry._order()] == [1.0, 1.0]
    assert calls == [48, 48, *[1] * 10]


@pytest.mark.parametrize(("size", "passed"), [(24_900_000, True), (25_100_000, False)])
def test_memory_is_counted_in_millions_of_bytes(size: int, passed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two parts, whose sum lies just within the bar or just beyond."""
    made = SimpleNamespace(memory=lambda: {"a": size - 1_000_000, "b": 1_000_000})
    monkeypatch.setattr(geometry, "GeometryBatch", lambda *given: made)
    figure = next(geometry._memory())
    assert figure.passed == passed
    assert figure.measured == pytest.approx(size / 1e6)
