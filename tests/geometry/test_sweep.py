"""Sweeps against closed forms and brute force in float64; no tunnels; the impact lies where the clearance says."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box, Capsule, Cylinder, GeometryBatch, Mesh, Placement, Shape, Sphere, twins
from airworthy.geometry.distance import clearance
from airworthy.geometry.sweep import sweep_capsule, sweep_sphere

SOLIDS: list[Shape] = [Box((0.5, 0.3, 0.8)), Sphere(0.6), Cylinder(0.4, 0.7), Capsule(0.3, 0.5)]
SHEET = Mesh(np.array([[-50.0, -50, 0], [50, -50, 0], [0, 80, 0]]), np.array([[0, 1, 2]]))


def soup(seed: int, count: int) -> Mesh:
    return Mesh(np.random.default_rng(seed).normal(size=(3 * count, 3)), np.arange(3 * count).reshape(-1, 3))


def world(seed: int, shapes: int, count: int) -> Placement:
    rng = np.random.default_rng(seed)
    return Placement.of(
        shape=np.arange(count) % shapes,
        position=rng.uniform(-3, 3, (count, 3)),
        attitude=rng.normal(size=(count, 4)),
        scale=rng.uniform(0.5, 1.5, count),
        collide=rng.random(count) < 0.9,
    )


def motions(seed: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    ends = rng.uniform(-5, 5, (2, count, 3))
    return ends[0], ends[1], 0.3 * rng.normal(size=(count, 3)), rng.uniform(0.0, 0.3, count)


@pytest.mark.parametrize("share", [1e-6, 0.05, 0.5, 0.95, 1.0])
def test_the_closed_form_of_a_sphere_and_a_triangle_holds_all_along_the_way(share: float) -> None:
    """A sphere of 0.1 m on its way down 2 m, onto the face, an edge and a corner of a triangle at z = 0."""
    corners = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    for place in ([0.25, 0.25], [0.5, 0.0], [0.0, 0.0]):
        start = np.array([*place, 0.1 + 2.0 * share])
        found = twins.sphere_sweep_triangle(start, start - [0.0, 0.0, 2.0], 0.1, corners)
        # The start is rounded to 2e-16 m; onto an edge or a corner the contact is head-on as well.
        assert found == pytest.approx(min(share, 1.0), abs=1e-12)
        assert np.isinf(twins.sphere_sweep_triangle(start, start - [0.0, 0.0, 1.9 * share], 0.1, corners))


def test_spheres_meet_triangles_where_the_closed_form_says() -> None:
    mesh = soup(0, 8)
    start, end, _, radius = motions(1, 200)
    found = sweep_sphere(GeometryBatch([mesh], [Placement.of(0)]), start, end, radius, env=0)
    triangles = twins.triangles_of(mesh)
    exact = [min(twins.sphere_sweep_triangle(*row, t) for t in triangles) for row in zip(start, end, radius, strict=True)]
    # Contact is declared at a gap of 1e-9 m: 1e-9 of the path head-on, the square root of it where the sphere only grazes.
    np.testing.assert_allclose(found.fraction, np.minimum(exact, 1.0), atol=1e-5)
    assert (found.instance >= 0).sum() > 20
    hit = np.array(exact) < 0.999
    assert np.median(np.abs(found.fraction - exact)[hit]) < 1e-9


def hits_and_misses(instance: np.ndarray, among: np.ndarray, most: int = 10) -> np.ndarray:
    """As many of each, at most: the brute force takes a tenth of a second for one, and most motions of a draw miss."""
    hits, misses = np.flatnonzero(among & (instance >= 0))[:most], np.flatnonzero(among & (instance < 0))[:most]
    assert min(len(hits), len(misses)) >= min(most, 5)
    return np.concatenate((hits, misses))


@pytest.mark.parametrize("seed", range(2))
def test_spheres_and_capsules_meet_solids_as_by_brute_force(seed: int) -> None:
    placement = world(seed, 4, 8)
    batch = GeometryBatch(SOLIDS, [placement])
    start, end, axis, radius = motions(10 + seed, 60)
    free = clearance(batch, start, env=0).distance > 0
    for half in (np.zeros_like(axis), axis):
        found = sweep_capsule(batch, start, end, half, radius, env=0)
        some = hits_and_misses(found.instance, free)
        brute = twins.sweep(SOLIDS, placement, start[some], end[some], half[some], radius[some], cuts=30).min(1)
        # Poses are float32 in the kernel; 30 cuts leave the twin's nearest core point within 1e-5 of its length.
        np.testing.assert_allclose(found.fraction[some], np.minimum(brute, 1.0), atol=1e-5)


@pytest.mark.parametrize("most", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_capsules_meet_triangles_as_by_brute_force(most: int) -> None:
    mesh, start, end, axis, radius = soup(3, 2), *motions(5, 100)
    found = sweep_capsule(GeometryBatch([mesh], [Placement.of(0)]), start, end, axis, radius, env=0)
    some = hits_and_misses(found.instance, np.ones(100, bool), most)
    brute = twins.sweep([mesh], Placement.of([0]), start[some], end[some], axis[some], radius[some], cuts=30).min(1)
    np.testing.assert_allclose(found.fraction[some], np.minimum(brute, 1.0), atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_at_the_impact_the_clearance_is_the_radius(seed: int) -> None:
    batch = GeometryBatch([*SOLIDS, soup(seed, 20)], [world(seed, 5, 12)])
    start, end, _, radius = motions(seed, 1000)
    found = sweep_sphere(batch, start, end, radius, env=0)
    centre = start + found.fraction[:, None] * (end - start)
    gap = clearance(batch, centre, env=0).distance - radius
    hit, begun = found.instance >= 0, clearance(batch, start, env=0).distance <= radius
    assert (hit & ~begun).sum() > 200
    # Both use the same float32 poses; contact is declared at a gap of 1e-9 m.
    np.testing.assert_allclose(gap[hit & ~begun], 0.0, atol=1e-7)
    assert (gap[~hit] > -1e-7).all()
    np.testing.assert_array_equal(found.fraction[begun], 0.0)
    np.testing.assert_array_equal(found.fraction[~hit], 1.0)
    # Before the impact nothing is touched.
    for share in (0.25, 0.5, 0.75, 0.95):
        before = start + share * (centre - start)
        assert (clearance(batch, before, env=0).distance - radius)[~begun].min() > -1e-9
    # The point touched is one radius away, against the normal.
    np.testing.assert_allclose((centre - radius[:, None] * found.normal)[hit & ~begun], found.point[hit & ~begun], atol=1e-6)


def _wall_cases(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Starts and ends on both sides of the plane z = 0: up to 30 m/s for up to 0.1 s, at any angle down to grazing."""
    rng = np.random.default_rng(7)
    start = np.concatenate([rng.uniform(-2, 2, (count, 2)), rng.uniform(0.05, 1.5, (count, 1))], 1)
    displacement = rng.normal(size=(count, 3)) * [1, 1, 10 ** rng.uniform(-3, 0)]
    displacement[:, 2] = -np.abs(displacement[:, 2])
    displacement *= rng.uniform(0.5, 3.0, (count, 1)) / np.linalg.norm(displacement, axis=1, keepdims=True)
    short = start[:, 2] + displacement[:, 2] > -0.05
    start[short, 2] = 0.05 + 0.4 * rng.random(short.sum())
    displacement[short, 2] = -start[short, 2] - rng.uniform(0.05, 1.0, short.sum())
    return start, start + displacement, 0.2 * rng.normal(size=(count, 3)), rng.uniform(0.0, 0.2, count)


@pytest.mark.parametrize("shape", [Box((50, 50, 0.025)), SHEET])
def test_nothing_tunnels(shape: Shape) -> None:
    count = 10_000
    turn = np.random.default_rng(1).normal(size=4)
    turn /= np.linalg.norm(turn)
    rotation, shift = twins.rotation(turn), np.array([7.0, -3.0, 2.0])
    batch = GeometryBatch([shape], [Placement.of(0, shift, turn)])
    start, end, axis, radius = _wall_cases(count)
    to_world = [x @ rotation.T + shift for x in (start, end)]
    for half in (np.zeros((count, 3)), axis):
        found = sweep_capsule(batch, *to_world, half @ rotation.T, radius, env=0)
        tunnels = int((found.instance < 0).sum())
        assert tunnels == 0
        # First contact of a flat wall in closed form: core end nearest to it plus the radius.
        top = 0.025 if isinstance(shape, Box) else 0.0
        gap = start[:, 2] - np.abs(half[:, 2]) - radius - top
        exact = np.where(gap <= 0, 0.0, gap / (start[:, 2] - end[:, 2]))
        # float32 attitude over 5 m, divided by how steeply the wall is approached (at least 0.1 m down).
        np.testing.assert_allclose(found.fraction, exact, atol=5e-5)


def test_grazing_just_touches_or_just_misses() -> None:
    batch = GeometryBatch([Sphere(1.0)], [Placement.of(0)])
    heights = 1.5 + np.array([-1e-6, 1e-6])
    start = np.stack([np.full(2, -3.0), np.zeros(2), heights], 1)
    found = sweep_sphere(batch, start, start + np.array([6.0, 0, 0]), 0.5, env=0)
    np.testing.assert_array_equal(found.instance, [0, -1])
    # The way enters the grown sphere half a chord before the middle.
    assert found.fraction[0] == pytest.approx(0.5 - np.sqrt(1.5**2 - heights[0] ** 2) / 6.0, abs=1e-6)


def test_bodies_that_start_in_contact_stop_at_once_with_the_normal_of_the_deepest() -> None:
    floor, wall = Box((5, 5, 0.5)), Box((0.5, 5, 5))
    batch = GeometryBatch([floor, wall], [Placement.of([0, 1], [[0, 0, -0.5], [-0.5, 0, 0]])])
    found = sweep_sphere(batch, [[0.29, 0, 0.1]], [[1.0, 0, 0.5]], 0.3)
    assert found.fraction[0] == 0.0
    np.testing.assert_allclose(found.normal[0], (0, 0, 1), atol=1e-12)
    inside = sweep_capsule(batch, [[3.0, 0, -0.2]], [[3.0, 0, 5.0]], (0.1, 0, 0), 0.05)
    assert inside.fraction[0] == 0.0
    np.testing.assert_allclose(inside.normal[0], (0, 0, 1), atol=1e-12)


def test_inside_a_closed_mesh_is_contact_and_outside_a_sheet_is_not() -> None:
    rng = np.random.default_rng(0)
    corners = np.array([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    tetrahedron = Mesh(corners, np.array([[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]]))
    batch = GeometryBatch([tetrahedron], [Placement.of(0, scale=10.0)])
    centre = rng.uniform(-1, 1, (20, 3))
    deep = sweep_sphere(batch, centre, centre + 0.1, 0.01, env=0)
    np.testing.assert_array_equal(deep.fraction, 0.0)
    np.testing.assert_allclose(deep.normal, clearance(batch, centre, env=0).normal, atol=1e-12)
    opened = GeometryBatch([Mesh(corners, tetrahedron.faces[1:])], [Placement.of(0, scale=10.0)])
    np.testing.assert_array_equal(sweep_sphere(opened, centre, centre + 0.1, 0.01, env=0).fraction, 1.0)


def test_a_body_at_rest_touches_or_not() -> None:
    batch = GeometryBatch([Sphere(1.0)], [Placement.of(0)])
    start = np.array([[0.0, 0, 1.6], [0.0, 0, 1.4]])
    found = sweep_sphere(batch, start, start, 0.5, env=0)
    np.testing.assert_array_equal(found.fraction, [1.0, 0.0])
    np.testing.assert_array_equal(found.instance, [-1, 0])
    np.testing.assert_allclose(found.normal[1], (0, 0, 1))


def test_a_point_stops_on_the_side_from_which_it_comes() -> None:
    batch = GeometryBatch([SHEET], [Placement.of(0)])
    found = sweep_sphere(batch, [[0, 0, 1.0], [0, 0, -1.0], [0, 0, 0]], [[0, 0, -1.0], [0, 0, 1.0], [0, 0, 1.0]], 0.0, env=0)
    np.testing.assert_allclose(found.fraction, [0.5, 0.5, 0.0], atol=1e-8)
    np.testing.assert_allclose(found.normal, [[0, 0, 1], [0, 0, -1], [0, 0, -1]])


def test_bits_do_not_depend_on_the_batch() -> None:
    layouts = [world(k, 5, 10) for k in range(3)]
    dynamic = [Placement.of([1, 4], np.random.default_rng(k).uniform(-2, 2, (2, 3))) for k in range(6)]
    shapes, chosen = [*SOLIDS, soup(0, 10)], [0, 1, 2, 2, 1, 0]
    batch = GeometryBatch(shapes, layouts, env_layout=chosen, dynamic_instances=dynamic)
    start, end, axis, radius = motions(3, 300)
    env = np.random.default_rng(0).integers(0, 6, 300)
    together = sweep_capsule(batch, start, end, axis, radius, env)
    order = np.random.default_rng(1).permutation(300)
    permuted = sweep_capsule(batch, start[order], end[order], axis[order], radius[order], env[order])
    np.testing.assert_array_equal(permuted.fraction, together.fraction[order])
    for k in range(6):
        mine = env == k
        alone = GeometryBatch(shapes, [layouts[chosen[k]]], dynamic_instances=[dynamic[k]])
        single = sweep_capsule(alone, start[mine], end[mine], axis[mine], radius[mine], env=0)
        np.testing.assert_array_equal(single.fraction, together.fraction[mine])
        np.testing.assert_array_equal(single.normal, together.normal[mine])


def test_a_vehicle_can_ignore_itself() -> None:
    batch = GeometryBatch([Sphere(0.5)], [Placement.of(0, (5, 0, 0))], dynamic_instances=[Placement.of([0], [[0.0, 0, 0]])])
    ask = ([[0.0, 0, 0]], [[5.0, 0, 0]], 0.5)
    assert sweep_sphere(batch, *ask).instance[0] == batch.dynamic_start
    found = sweep_sphere(batch, *ask, ignore=batch.dynamic_start)
    assert found.instance[0] == 0
    assert found.fraction[0] == pytest.approx(0.8, abs=1e-9)


def test_motions_that_are_not_finite_stay_alone() -> None:
    batch = GeometryBatch([Sphere(0.5)], [Placement.of(0)])
    found = sweep_sphere(batch, [[-2.0, 0, 0], [np.nan, 0, 0]], [[2.0, 0, 0], [2.0, 0, 0]], 0.1, env=0)
    assert found.fraction[0] == pytest.approx(0.35, abs=1e-9)
    assert np.isnan(found.fraction[1])
    assert found.instance[1] == -1


def test_wrong_arguments_get_one_sentence() -> None:
    batch = GeometryBatch([Sphere(0.5)], [Placement.of(0)])
    with pytest.raises(AirworthyError, match=r"`end` has shape \(2, 3\); expected \(1, 3\)"):
        sweep_sphere(batch, [[0.0, 0, 0]], np.zeros((2, 3)), 0.1)
    with pytest.raises(AirworthyError, match="`radius` holds a negative number"):
        sweep_sphere(batch, [[0.0, 0, 0]], [[0.0, 0, 0]], -0.1)
