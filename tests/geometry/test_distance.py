"""Clearance against closed forms, brute force in float64, and its properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box, Capsule, Cylinder, GeometryBatch, Mesh, Placement, Shape, Sphere, twins
from airworthy.geometry.distance import clearance
from airworthy.geometry.query_arguments import is_closed


def cube(half: float = 1.0, outwards: bool = True) -> Mesh:
    """Closed, twelve triangles, every corner its own vertex: edges must be found by position."""
    quads = []
    for axis in range(3):
        for side in (-1.0, 1.0):
            u, v = np.eye(3)[(axis + 1) % 3], np.eye(3)[(axis + 2) % 3]
            centre = side * np.eye(3)[axis]
            corners = [centre - u - v, centre + u - v, centre + u + v, centre - u + v]
            quads.append(corners if (side > 0) == outwards else corners[::-1])
    vertices = half * np.array(quads).reshape(-1, 3)
    faces = [[4 * k + i for i in tri] for k in range(6) for tri in ((0, 1, 2), (0, 2, 3))]
    return Mesh(vertices, np.array(faces))


def soup(seed: int, count: int = 30) -> Mesh:
    """Triangles of all shapes, one of them a sliver of almost no width."""
    rng = np.random.default_rng(seed)
    vertices = rng.normal(size=(3 * count, 3))
    vertices[5] = 0.5 * (vertices[3] + vertices[4])
    return Mesh(vertices, np.arange(3 * count).reshape(-1, 3))


SHAPES: list[Shape] = [
    Box((0.5, 0.3, 0.8)), Sphere(0.6), Cylinder(0.4, 0.7), Capsule(0.3, 0.5), cube(0.6), cube(0.4, outwards=False), soup(1),
]  # fmt: skip
CLOSED = [True, True, True, True, True, False, False]
"""A cube seen from inside encloses nothing that is solid."""


def world(seed: int, count: int = 14) -> Placement:
    """Instances of every shape, turned, scaled, some not colliding."""
    rng = np.random.default_rng(seed)
    return Placement.of(
        shape=np.arange(count) % len(SHAPES),
        position=rng.uniform(-3, 3, (count, 3)),
        attitude=rng.normal(size=(count, 4)),
        scale=rng.uniform(0.5, 1.5, count),
        collide=rng.random(count) < 0.8,
        visible=rng.random(count) < 0.5,
    )


@pytest.mark.parametrize("seed", range(5))
def test_equals_brute_force(seed: int) -> None:
    placement = world(seed)
    points = np.random.default_rng(100 + seed).uniform(-4, 4, (500, 3))
    found = clearance(GeometryBatch(SHAPES, [placement]), points, env=0)
    brute = twins.clearance(SHAPES, CLOSED, placement, points)
    # Poses are float32 in the kernel: 6e-8 of up to 5 m per coordinate of the rotation.
    np.testing.assert_allclose(found.distance, brute.min(1), atol=3e-6)
    np.testing.assert_allclose(brute[np.arange(500), found.instance], brute.min(1), atol=3e-6)
    assert (found.distance < 0).any()
    np.testing.assert_allclose(np.linalg.norm(found.normal, axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(found.point + found.normal * found.distance[:, None], points, atol=1e-9)


@pytest.mark.parametrize(
    ("shape", "point", "distance", "normal"),
    [
        (Box((1, 2, 3)), (2, 0, 0), 1.0, (1, 0, 0)),
        (Box((1, 2, 3)), (0.5, 0, 0), -0.5, (1, 0, 0)),
        (Box((1, 2, 3)), (4, 6, 3), 5.0, (0.6, 0.8, 0)),
        (Box((1, 2, 3)), (0, 0, 0), -1.0, (1, 0, 0)),
        (Sphere(2), (0, 3, 0), 1.0, (0, 1, 0)),
        (Sphere(2), (0, 0, 0), -2.0, (0, 0, 1)),
        (Cylinder(1, 2), (0, 0, 3), 1.0, (0, 0, 1)),
        (Cylinder(1, 2), (4, 0, 6), 5.0, (0.6, 0, 0.8)),
        (Cylinder(1, 2), (0, 0.5, 0), -0.5, (0, 1, 0)),
        (Cylinder(1, 2), (0, 0, 0), -1.0, (1, 0, 0)),
        (Capsule(1, 2), (0, 0, 4), 1.0, (0, 0, 1)),
        (Capsule(1, 2), (0, 0, 0), -1.0, (1, 0, 0)),
        (cube(), (0.25, 0, 0.5), -0.5, (0, 0, 1)),
        (cube(), (1, 1, 1.5), 0.5, (0, 0, 1)),
        (cube(outwards=False), (0.25, 0, 0.5), 0.5, (0, 0, -1)),
    ],
)
def test_closed_forms(shape: Shape, point: tuple[float, ...], distance: float, normal: tuple[float, ...]) -> None:
    found = clearance(GeometryBatch([shape], [Placement.of(0)]), [point])
    # Whole numbers and their halves: exact but for the last bit of float32 rotations, here the identity.
    assert found.distance[0] == pytest.approx(distance, abs=1e-12)
    np.testing.assert_allclose(found.normal[0], normal, atol=1e-12)


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_never_changes_faster_than_the_point_moves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.uniform(-4, 4, (200, 3))
    b = a + rng.normal(size=(200, 3)) * rng.choice([1e-3, 0.1, 1.0], (200, 1))
    batch = GeometryBatch(SHAPES, [world(seed)])
    change = np.abs(clearance(batch, a, env=0).distance - clearance(batch, b, env=0).distance)
    # Rotations in float32 stretch by 1e-7; crossing an open sheet's copy of a distance adds nothing.
    assert (change <= np.linalg.norm(a - b, axis=1) * (1 + 1e-6) + 1e-9).all()


def test_moving_everything_moves_the_answer() -> None:
    placement, rng = world(3), np.random.default_rng(0)
    points = rng.uniform(-4, 4, (200, 3))
    shift, quarter = np.array([5.0, -3.0, 2.0]), np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    half = np.sqrt(0.5)
    x, y, z, w = placement.attitude.T
    turned = half * np.stack([x - y, x + y, z + w, w - z], -1)  # a quarter turn about z before
    moved = Placement.of(
        shape=placement.shape, position=placement.position @ quarter.T + shift, attitude=turned, scale=placement.scale,
        collide=placement.collide,
    )  # fmt: skip
    before = clearance(GeometryBatch(SHAPES, [placement]), points, env=0)
    after = clearance(GeometryBatch(SHAPES, [moved]), points @ quarter.T + shift, env=0)
    np.testing.assert_allclose(after.distance, before.distance, atol=3e-6)  # float32 poses, as above


def test_bits_do_not_depend_on_the_batch() -> None:
    layouts = [world(k) for k in range(3)]
    dynamic = [Placement.of([1, 4], np.random.default_rng(k).uniform(-2, 2, (2, 3))) for k in range(6)]
    batch = GeometryBatch(SHAPES, layouts, env_layout=[0, 1, 2, 2, 1, 0], dynamic_instances=dynamic)
    rng = np.random.default_rng(9)
    points, env = rng.uniform(-4, 4, (300, 3)), rng.integers(0, 6, 300)
    all_at_once = clearance(batch, points, env)
    order = rng.permutation(300)
    permuted = clearance(batch, points[order], env[order])
    np.testing.assert_array_equal(permuted.distance, all_at_once.distance[order])
    np.testing.assert_array_equal(permuted.normal, all_at_once.normal[order])
    for k in range(6):
        alone = GeometryBatch(SHAPES, [layouts[[0, 1, 2, 2, 1, 0][k]]], dynamic_instances=[dynamic[k]])
        mine = env == k
        np.testing.assert_array_equal(clearance(alone, points[mine], env=0).distance, all_at_once.distance[mine])


def test_dynamic_instances_layouts_and_switches_show_at_once() -> None:
    batch = GeometryBatch([Sphere(0.5)], [Placement.of(0)], dynamic_instances=[Placement.of([0], [[5.0, 0, 0]])])
    point = [[2.0, 0, 0]]
    assert clearance(batch, point).distance[0] == pytest.approx(1.5)
    batch.set_dynamic_instances([[[2.0, 1.0, 0.0]]], [[[0.0, 0, 0, 1]]])
    found = clearance(batch, point)
    assert found.distance[0] == pytest.approx(0.5)
    assert found.instance[0] == batch.dynamic_start
    assert clearance(batch, point, ignore=batch.dynamic_start).distance[0] == pytest.approx(1.5)
    batch.set_layout_active(0, np.array([False]))
    nothing = clearance(batch, point, ignore=batch.dynamic_start)
    assert np.isinf(nothing.distance[0])
    assert nothing.instance[0] == -1
    assert np.isnan(nothing.point).all()
    assert not nothing.normal.any()


def test_what_is_out_of_reach_does_not_matter() -> None:
    batch = GeometryBatch(SHAPES, [world(2)])
    points = np.random.default_rng(5).uniform(-6, 6, (300, 3))
    full, near = clearance(batch, points, env=0), clearance(batch, points, env=0, max_distance=0.7)
    within = full.distance <= 0.7
    np.testing.assert_array_equal(near.distance[within], full.distance[within])
    assert np.isinf(near.distance[~within]).all()


def test_equal_distances_go_to_the_lowest_number() -> None:
    rng = np.random.default_rng(0)
    twice = Placement.of(np.repeat(np.arange(7), 2), np.repeat(rng.uniform(-2, 2, (7, 3)), 2, axis=0))
    found = clearance(GeometryBatch(SHAPES, [twice]), rng.uniform(-3, 3, (200, 3)), env=0)
    assert (found.instance % 2 == 0).all()
    # Above the common corner of four triangles all are equally near.
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]])
    fan = Mesh(corners, np.array([[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 1]]))
    assert clearance(GeometryBatch([fan], [Placement.of(0)]), [[0.0, 0, 1]]).face[0] == 0


def test_points_that_are_not_finite_stay_alone() -> None:
    batch = GeometryBatch(SHAPES, [world(1)])
    points = np.random.default_rng(0).uniform(-2, 2, (3, 3))
    broken = points.copy()
    broken[1, 2] = np.nan
    whole, found = clearance(batch, points, env=0), clearance(batch, broken, env=0)
    assert np.isnan(found.distance[1])
    assert found.instance[1] == -1
    np.testing.assert_array_equal(found.distance[[0, 2]], whole.distance[[0, 2]])


def test_insides_of_meshes_equal_solid_angles_also_straight_below_edges_and_corners() -> None:
    batch = GeometryBatch([cube(0.5)], [Placement.of(0)])
    grid = np.stack(np.meshgrid(*3 * [np.linspace(-0.75, 0.75, 7)], indexing="ij"), -1).reshape(-1, 3)
    inside = np.abs(grid).max(1) < 0.5
    on = np.abs(np.abs(grid).max(1) - 0.5) < 1e-12
    found = clearance(batch, grid, env=0)
    np.testing.assert_array_equal((found.distance < 0)[~on], inside[~on])
    np.testing.assert_allclose(found.distance[on], 0.0, atol=1e-12)


def test_which_meshes_are_closed() -> None:
    whole = cube()
    assert is_closed(whole)
    assert is_closed(cube(outwards=False))
    assert not is_closed(Mesh(whole.vertices, whole.faces[1:]))
    assert not is_closed(Mesh(whole.vertices, np.concatenate([whole.faces[1:], whole.faces[:1, ::-1]])))
    assert not is_closed(Mesh(whole.vertices, whole.faces[:0]))
    assert not is_closed(soup(0))


def test_no_points_no_answers() -> None:
    assert clearance(GeometryBatch(SHAPES, [world(0)]), np.zeros((0, 3)), env=np.zeros(0, int)).distance.shape == (0,)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"points": [0.0, 0, 0]}, "`points` has shape (3,)"),
        ({"env": [2]}, "`env` names environments 2 to 2; expected 0 to 1"),
        ({"env": None}, "1 queries arrived for 2 environments"),
        ({"env": [0.5]}, "expected whole numbers"),
        ({"max_distance": -1.0}, "`max_distance` holds a negative number"),
        ({"ignore": [0.5]}, "`ignore` is an array of float64"),
    ],
)
def test_wrong_arguments_get_one_sentence(change: dict[str, object], said: str) -> None:
    batch = GeometryBatch(SHAPES, [world(0), world(1)])
    with pytest.raises(AirworthyError) as caught:
        clearance(batch, **{"points": [[0.0, 0, 0]], "env": [0], **change})  # type: ignore[arg-type]
    assert said in str(caught.value)
