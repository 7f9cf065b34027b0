"""What generators measure themselves with: distances, rays, grids, noise, mazes, ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.core.frames import normalize, rotate, rotate_inverse
from airworthy.geometry import Box, Cylinder
from airworthy.geometry.query_arguments import is_closed
from airworthy.scenes.generators.flyingtrust import forest, ordering
from airworthy.scenes.generators.flyingtrust.difficulty import find_path, measure
from airworthy.scenes.generators.flyingtrust.layout import ObstacleLayout, Solids, straight_clearance
from airworthy.scenes.generators.flyingtrust.ordering import pick_rising, rank_sums
from airworthy.scenes.generators.flyingtrust.voxels import Voxels
from airworthy.scenes.generators.seeding import generator, shape_name
from airworthy.scenes.record import Instance


def some_solids(rng: np.random.Generator, count: int = 6) -> tuple[Solids, list[tuple[Box | Cylinder, Instance]]]:
    items: list[tuple[Box | Cylinder, Instance]] = []
    for k in range(count):
        size = rng.uniform(0.2, 1.5, 3)
        shape: Box | Cylinder = Box(tuple(size.tolist())) if k % 2 else Cylinder(float(size[0]), float(size[1]))
        turn = normalize(rng.standard_normal(4))
        items.append((shape, Instance(shape_name(shape), tuple(rng.uniform(-4, 4, 3).tolist()), tuple(turn.tolist()))))
    return Solids.of({i.shape: s for s, i in items}, [i for _, i in items]), items


def surface_samples(shape: Box | Cylinder, item: Instance, rng: np.random.Generator, count: int = 40000) -> np.ndarray:
    """Points on the surface, by pushing random inner points out to it along axes."""
    u = rng.uniform(-1.0, 1.0, (count, 3))
    face = rng.integers(0, 3, count)
    if isinstance(shape, Box):
        u[np.arange(count), face] = np.sign(u[np.arange(count), face])
        local = u * np.array(shape.half_size)
    else:
        angle, radius = np.pi * u[:, 0], np.where(face == 0, np.sqrt(np.abs(u[:, 1])), 1.0) * shape.radius
        height = np.where(face == 0, np.sign(u[:, 2]), u[:, 2]) * shape.half_length
        local = np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=1)
    return np.array(item.position) + rotate(np.array(item.attitude), local)


def test_distances_against_sampled_surfaces() -> None:
    rng = np.random.default_rng(1)
    solids, items = some_solids(rng)
    points = rng.uniform(-5, 5, (60, 3))
    found = solids.distances(points)
    for k, (shape, item) in enumerate(items):
        samples = surface_samples(shape, item, rng)
        nearest = np.linalg.norm(points[:, None] - samples, axis=-1).min(1)
        # 40,000 samples on at most 30 m^2 lie about 0.03 m apart, which adds well under 0.03 m to a distance above 0.3 m.
        outside = found[:, k] > 0.3
        assert (nearest[outside] >= found[outside, k] - 1e-9).all()
        assert nearest[outside] == pytest.approx(found[outside, k], abs=0.03)
        local = rotate_inverse(np.array(item.attitude), points - np.array(item.position))
        if isinstance(shape, Box):
            inside = (np.abs(local) < shape.half_size).all(1)
        else:
            inside = (np.hypot(local[:, 0], local[:, 1]) < shape.radius) & (np.abs(local[:, 2]) < shape.half_length)
        assert ((found[:, k] < 0.0) == inside).all()


@given(st.integers(0, 2**32))
@settings(max_examples=25)
def test_rays_end_on_surfaces(seed: int) -> None:
    rng = np.random.default_rng(seed)
    solids, _ = some_solids(rng)
    origin = rng.uniform(-6, 6, 3)
    rays = rng.standard_normal((50, 3))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    hit = solids.first_hit(origin, rays, 9.0)
    if solids.distance(origin)[0] <= 0.0:
        assert (hit == 0.0).all()
        return
    found = np.isfinite(hit)
    assert solids.distance(origin + hit[found, None] * rays[found]) == pytest.approx(0.0, abs=1e-9)
    along = np.linspace(0.0, 1.0, 200)[:, None] * np.minimum(hit, 9.0)[:, None, None] * 0.9999
    assert solids.distance((origin + along * rays[:, None]).reshape(-1, 3)).min() > -1e-9


def test_grid_and_keeps_agree_with_distance() -> None:
    rng = np.random.default_rng(3)
    solids, _ = some_solids(rng)
    lower, shape, cell = np.array([-6.0, -5.5, -6.0]), (40, 36, 41), 0.3
    centres = lower + (np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1) + 0.5) * cell
    distance = solids.distance(centres.reshape(-1, 3)).reshape(shape)
    for clearance in (0.0, 0.3, 1.1):
        grid = solids.near(lower, shape, cell, clearance)
        sure = np.abs(distance - clearance) > 1e-9
        assert (grid == (distance < clearance))[sure].all()
    points = centres[::9, 10, 12]
    least = solids.distance(points).min()
    assert solids.keeps(points, least - 1e-6)
    assert not solids.keeps(points, least + 1e-6)


def test_extents_hold_the_solids() -> None:
    rng = np.random.default_rng(4)
    solids, items = some_solids(rng)
    for k, (shape, item) in enumerate(items):
        reach = np.abs(surface_samples(shape, item, rng) - np.array(item.position)).max(0)
        assert (reach <= solids.half_extent()[k] + 1e-9).all()
        assert reach == pytest.approx(solids.half_extent()[k], abs=0.12)  # as near as samples come to a corner


def test_straight_clearance_of_one_trunk() -> None:
    plan = ObstacleLayout("forest")
    plan.upright(3.3, 0.95, 0.5, 5.0, "tree", "bark")
    assert straight_clearance(plan.obstacles(), plan.stated) == pytest.approx(0.45, abs=1e-6)


def test_the_way_around_one_wall() -> None:
    """A wall 8 m wide across the line: 0.3 m around its corners, 3 m of straight line from corner to corner of the corridor."""
    plan = ObstacleLayout("forest")
    plan.box((0.0, 0.0, 2.0), (0.4, 8.0, 4.0), "wall", "brick")
    found = measure(plan.obstacles(), plan.stated)
    assert found is not None
    # Shortest: tangents from (28, 0) to circles of 0.3 m around (0.2, 4), arcs, and 0.4 m past the wall.
    side = np.hypot(27.8, 4.0)
    tangent = np.sqrt(side**2 - 0.3**2)
    arc = 0.3 * (np.arctan2(4.0, 27.8) + np.arcsin(0.3 / side))
    shortest = (2.0 * (tangent + arc) + 0.4) / 56.0
    assert shortest - 1e-9 <= found.detour <= 1.01 * shortest  # on cells of 0.2 m
    assert plan.obstacles().distance(found.path).min() >= 0.3 - 1e-6
    assert 0.2 < found.turn < 0.45  # the way bends by 2 * (0.143 + 0.011) rad in all
    assert 1.0 / 5.0 < found.tightness < 1.0


def test_no_way_through_a_closed_wall() -> None:
    plan = ObstacleLayout("forest")
    plan.box((0.0, 0.0, 2.0), (0.4, 40.0, 4.0), "wall", "brick")
    assert find_path(plan.obstacles(), plan.stated) is None
    assert measure(plan.obstacles(), plan.stated) is None


# ---- voxels and noise ---------------------------------------------------------------------------------------------------


def cubes(seed: int, fill: float = 0.05) -> Voxels:
    return Voxels(np.random.default_rng(seed).random((12, 14, 9)) < fill, np.array([1.0, -2.0, 0.5]), 0.1)


def test_voxel_distances_against_all_voxels() -> None:
    voxels = cubes(1)
    points = np.random.default_rng(2).uniform([0.0, -3.0, 0.0], [3.0, 0.0, 2.0], (400, 3))
    centres = voxels.lower + (np.argwhere(voxels.occupied) + 0.5) * 0.1
    gap = np.maximum(np.abs(points[:, None] - centres) - 0.05, 0.0)
    exact = np.linalg.norm(gap, axis=-1).min(1)
    found = voxels.distance(points)
    near = exact < 0.5
    assert near.sum() > 100
    assert found[near] == pytest.approx(exact[near], abs=1e-12)
    assert (found[~near] >= exact[~near] - 1e-12).all()
    assert found[~near] == pytest.approx(exact[~near], abs=0.05)


@pytest.mark.parametrize("factor", [1, 2])
def test_voxel_grid_against_distances(factor: int) -> None:
    voxels = cubes(3)
    centres = voxels.lower + (np.argwhere(np.ones((12, 14, 8), bool)) + 0.5) * 0.1
    close = (voxels.distance(centres) < 0.17).reshape(12, 14, 8)
    blocks = close.reshape(12 // factor, factor, 14 // factor, factor, 8 // factor, factor).any(axis=(1, 3, 5))
    grid = voxels.near(voxels.lower, blocks.shape, 0.1 * factor, 0.17)
    assert (grid == blocks).all()
    shifted = voxels.near(voxels.lower - 0.2, (4, 4, 4), 0.1, 0.17)  # partly outside of the voxels' own grid
    assert (shifted[2:, 2:, 2:] == close[:2, :2, :2]).all()


def test_voxel_rays() -> None:
    occupied = np.zeros((30, 10, 10), bool)
    occupied[20, 5, 5] = True
    voxels = Voxels(occupied, np.zeros(3), 0.1)
    hit = voxels.first_hit((0.0, 0.55, 0.55), [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0)], 6.0)
    assert hit[0] == pytest.approx(2.0, abs=0.05)
    assert np.isinf(hit[1:]).all()
    assert np.isinf(voxels.first_hit((0.0, 0.55, 0.55), [(1.0, 0.0, 0.0)], 1.5)).all()


@given(st.integers(0, 2**32), st.floats(0.02, 0.9))
@settings(max_examples=20)
def test_the_surface_of_voxels_is_closed_and_holds_their_volume(seed: int, fill: float) -> None:
    occupied = np.random.default_rng(seed).random((5, 6, 4)) < fill
    occupied[2, 2, 2] = True
    mesh = Voxels(occupied, np.array([0.3, -1.0, 2.0]), 0.1).mesh()
    assert is_closed(mesh)
    a, b, c = (mesh.vertices[mesh.faces[:, k]].astype(float) for k in range(3))
    volume = float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum()) / 6.0  # divergence theorem; positive when outward
    assert volume == pytest.approx(occupied.sum() * 1e-3, rel=1e-4)  # float32 vertices


def gradient(h: int, x: float, y: float, z: float) -> float:
    """As printed in K. Perlin, "Improving noise", SIGGRAPH 2002."""
    h &= 15
    u = x if h < 8 else y
    v = y if h < 4 else (x if h in (12, 14) else z)
    return (u if not h & 1 else -u) + (v if not h & 2 else -v)


def plain_noise(p: np.ndarray, x: float, y: float, z: float) -> float:
    p = np.concatenate([p, p])
    i, j, k = (int(np.floor(v)) & 255 for v in (x, y, z))
    x, y, z = x - np.floor(x), y - np.floor(y), z - np.floor(z)
    u, v, w = (t * t * t * (t * (t * 6 - 15) + 10) for t in (x, y, z))
    total = 0.0
    for dx in (0, 1):
        for dy in (0, 1):
            for dz in (0, 1):
                h = p[p[p[i + dx] + j + dy] + k + dz]
                weight = (u if dx else 1 - u) * (v if dy else 1 - v) * (w if dz else 1 - w)
                total += weight * gradient(int(h), x - dx, y - dy, z - dz)
    return 0.5 * (1.0 + total)


def test_noise_against_the_plain_form() -> None:
    permutation = np.argsort(np.random.default_rng(5).random(256))
    grid = ordering.noise_grid(permutation, (37, 24, 40), 0.05)
    assert grid.shape == (37, 24, 40)
    for i, j, k in np.random.default_rng(6).integers(0, [37, 24, 40], (200, 3)).tolist():
        assert grid[i, j, k] == pytest.approx(plain_noise(permutation, 0.1 * i, 0.1 * j, 0.1 * k), abs=1e-12)


# ---- mazes --------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32))
@settings(max_examples=25)
def test_mazes_are_perfect_between_rooms(seed: int) -> None:
    """A tree over rooms: one passage fewer than there are rooms, and all of them reached."""
    east, north = forest.carve(np.random.default_rng(seed))
    assert east.shape == (15, 10)
    assert north.shape == (16, 9)
    rooms = {forest.room_of((i, j)) for i in range(16) for j in range(10)}
    assert len(rooms) == 160 - 6
    assert (~east).sum() + (~north).sum() == (len(rooms) - 1) + 8  # and four passages within each of the two large rooms
    label = np.arange(160).reshape(16, 10)
    for _ in range(160):
        label[:-1] = np.where(east, label[:-1], np.minimum(label[:-1], label[1:]))
        label[1:] = np.where(east, label[1:], np.minimum(label[:-1], label[1:]))
        label[:, :-1] = np.where(north, label[:, :-1], np.minimum(label[:, :-1], label[:, 1:]))
        label[:, 1:] = np.where(north, label[:, 1:], np.minimum(label[:, :-1], label[:, 1:]))
    assert (label == 0).all()


# ---- ranks --------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32))
@settings(max_examples=25)
def test_rank_sums_against_scipy(seed: int) -> None:
    from scipy.stats import rankdata

    terms = np.random.default_rng(seed).integers(0, 6, (10, 4)).astype(float)
    assert rank_sums(terms) == pytest.approx(rankdata(terms, axis=0).sum(1))


def test_picks_rise_where_they_can() -> None:
    rng = np.random.default_rng(7)
    pools = [rng.normal(0.3 * k, 1.0, (8, 4)) for k in range(10)]
    picks, falls = pick_rising(pools)
    assert not falls.any()
    sums = rank_sums([pool[k] for pool, k in zip(pools, picks, strict=True)])
    assert (np.diff(sums) >= 0.0).all()
    reversed_pools = [np.full((1, 4), float(-k)) for k in range(10)]
    assert pick_rising(reversed_pools)[1] == pytest.approx(4.0)


def test_generators_are_keyed_by_every_part() -> None:
    draws = {tuple(generator(*key).random(3)) for key in (("a", 1), ("a", 2), ("b", 1), ("a", 1, 0), ("a1",), ("a", "1", ""))}
    assert len(draws) == 6
    assert generator("a", 1).random(3) == pytest.approx(generator("a", 1).random(3), abs=0.0)
