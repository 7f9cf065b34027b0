"""Carving of free space by rays: against a room in closed form, against its twin, and what must stay unknown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.capture.place_building import HIGH, LOW, PILLAR, exact_views, room_capture, room_splats

from airworthy.capture.places.carving import (
    Carving,
    carve,
    carve_twin,
    grid_box,
    grid_resolution,
    known_states,
)
from airworthy.capture.places.depth_views import DepthViews, certain_depth, depth_views
from airworthy.capture.places.free_space import HEIGHT, _way_clearance, enclosure, free_room, reachable_states
from airworthy.capture.places.place_surface import coverage_picture, depth_against_points, occupied_mesh
from airworthy.core.arrays import Array, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.geometry.distance import distance_field
from airworthy.geometry.query_arguments import is_closed
from airworthy.scenes.carved import FREE, OCCUPIED, UNKNOWN

CELL = 0.1
LOWER, UPPER = LOW - 0.3, HIGH + 0.3


def middles(shape: tuple[int, ...]) -> Array:
    return np.asarray(LOWER + CELL * (np.stack(np.indices(shape), -1) + 0.5))


def within(at: Array, low: Array, high: Array, margin: float = 0.0) -> Array:
    return np.asarray(((at > low - margin) & (at < high + margin)).all(axis=-1))


@pytest.fixture(scope="module")
def views() -> DepthViews:
    return exact_views()


@pytest.fixture(scope="module")
def carving(views: DepthViews) -> Carving:
    return carve(views, LOWER, UPPER, CELL)


@pytest.fixture(scope="module")
def states(carving: Carving, views: DepthViews) -> ArrayU8:
    return known_states(carving, len(views))


def test_it_counts_as_its_twin_does() -> None:
    few = exact_views(12, seed=3)
    # A corner of the pillar, and the air before it.
    box = PILLAR[0] + [-0.6, -0.6, 0.8], PILLAR[0] + [0.3, 0.3, 1.7]
    found = carve(few, *box, CELL)
    passes, through, total, weight = carve_twin(few, *box, CELL)
    # Float32 places a middle within 1e-4 px: next to no cell changes its pixel.
    assert np.mean(found.passes != passes) < 0.002
    assert np.mean(found.through != through) < 0.002
    assert (through >= passes).all()
    known = weight > 0.5
    assert np.mean(np.isfinite(found.distance) != known) < 0.002
    both = known & np.isfinite(found.distance)
    off = np.abs(found.distance[both] - (total / np.maximum(weight, 1e-9))[both])
    assert np.mean(off > 1e-4) < 0.005
    assert passes.max() > 1


def test_free_cells_are_free(states: ArrayU8) -> None:
    at = middles(states.shape)
    free = states == FREE
    # Exact depths: no cell of which a surface's half reaches into is called free, and hardly one that it touches.
    clear = within(at, LOW, HIGH) & ~within(at, *PILLAR)
    assert not (free & ~clear).any()
    roomy = within(at, LOW, HIGH, -0.25) & ~within(at, *PILLAR, 0.25)
    # The rest is seen by fewer than three of forty cameras.
    assert free[roomy].mean() > 0.88


def test_walls_are_occupied_and_what_lies_behind_is_unknown(states: ArrayU8) -> None:
    at = middles(states.shape)
    outside = ~within(at, LOW, HIGH, 0.051)
    assert (states[outside] == UNKNOWN).all()
    inner = within(at, *PILLAR, -0.11)
    assert inner.any()
    assert (states[inner] == UNKNOWN).all()
    assert np.count_nonzero(states == OCCUPIED) > 2000


def test_order_of_cameras_changes_nothing(views: DepthViews, carving: Carving) -> None:
    order = np.random.default_rng(1).permutation(len(views))
    turned = DepthViews(
        tuple(views.depth[k] for k in order),
        tuple(views.freed[k] for k in order),
        views.intrinsics[order],
        views.position[order],
        views.attitude[order],
    )
    found = carve(turned, LOWER, UPPER, CELL)
    assert np.array_equal(found.passes, carving.passes)
    assert np.array_equal(found.hits, carving.hits)


def test_uncertain_rays_free_less(views: DepthViews, states: ArrayU8) -> None:
    doubted = replace(views, freed=tuple(0.5 * image for image in views.freed))
    some = known_states(carve(doubted, LOWER, UPPER, CELL), len(views))
    assert np.count_nonzero(some == FREE) < 0.8 * np.count_nonzero(states == FREE)
    blind = replace(views, freed=tuple(0.0 * image for image in views.freed), depth=tuple(0.0 * d for d in views.depth))
    assert (known_states(carve(blind, LOWER, UPPER, CELL), len(views)) == UNKNOWN).all()


def test_fog_frees_less_and_hides_nothing() -> None:
    def looked(mean: float, *before: float) -> tuple[float, float]:
        images = [np.full((7, 7), value, np.float32) for value in (mean, 4.0, *before)]
        depth, free = certain_depth(images[0], images[1], images[2:])
        return float(depth[3, 3]), float(free[3, 3])

    # Light that ends in one place: free up to where it may end, and certain.
    assert looked(3.96, 0.02, 0.01, 0.0) == pytest.approx((4.0, 3.92), abs=1e-5)
    # Some of it before: up to the farthest share before which little is stopped.
    assert looked(3.2, 0.4, 0.29, 0.1) == pytest.approx((4.0, 3.6), abs=1e-5)
    assert looked(3.2, 0.4, 0.35, 0.1) == pytest.approx((0.0, 3.0), abs=1e-5)
    # Fog all the way: free as far before both depths as they are apart.
    assert looked(2.6, 0.45, 0.44, 0.4) == pytest.approx((0.0, 1.2), abs=1e-5)
    assert looked(1.5, 0.45, 0.44, 0.4) == (0.0, 0.0)


def test_a_single_doubtful_pixel_closes_nothing() -> None:
    mean = np.full((9, 9), 4.0, np.float32)
    mean[4, 4] = 0.0
    _, free = certain_depth(mean, np.full((9, 9), 4.0, np.float32), [np.ones((9, 9), np.float32)] * 3)
    assert (free == 4.0).all()


def test_one_camera_frees_nothing() -> None:
    one = exact_views(40)
    first = DepthViews(one.depth[:1] * 2, one.freed[:1] * 2, *(a[[0, 0]] for a in (one.intrinsics, one.position, one.attitude)))
    found = carve(first, LOWER, UPPER, CELL)
    assert found.passes.max() == 2
    assert not (known_states(found, 40) == FREE).any()


def test_points_in_free_space_are_doubted(carving: Carving, states: ArrayU8) -> None:
    free = np.argwhere(states == FREE)[500]
    at = LOWER + CELL * (free + 0.5)
    doubted = known_states(carving, 40, np.array([at, at + 0.01]))
    assert doubted[tuple(free)] == UNKNOWN
    assert np.count_nonzero(doubted != states) == 1
    assert np.array_equal(known_states(carving, 40, np.array([at, [np.nan, 0.0, 0.0]])), states)


def test_the_shell_lies_on_the_walls(carving: Carving, states: ArrayU8) -> None:
    mesh = occupied_mesh(carving, states)
    assert is_closed(mesh)
    corners = mesh.vertices[mesh.faces].astype(np.float64)
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(normal, axis=1)
    middle = corners.mean(axis=1)
    ahead = (middle + normal / area[:, None] * CELL - LOWER) / CELL
    shape = np.array(states.shape)
    held = np.clip(ahead.astype(int), 0, shape - 1)
    facing = states[tuple(held.T)] == FREE
    room = np.minimum(np.abs(middle - LOW), np.abs(middle - HIGH)).min(axis=1)
    out = np.maximum(np.maximum(PILLAR[0] - middle, middle - PILLAR[1]), 0.0)
    inside = np.minimum(middle - PILLAR[0], PILLAR[1] - middle).min(axis=1)
    pillar = np.where(inside > 0.0, inside, np.linalg.norm(out, axis=1))
    away = np.minimum(room, pillar)[facing]
    share = area[facing]
    # Edges of the pillar are rounded by a cell; all else lies within a fraction of one.
    assert np.average(away < 0.05, weights=share) > 0.95
    assert np.average(away, weights=share) < 0.02


def test_start_and_goal_lie_in_the_room_and_see_each_other(views: DepthViews, states: ArrayU8) -> None:
    room = free_room(states, LOWER, CELL, 0.3, views.position)
    for end in (room.start.position, room.goal.position):
        assert within(np.array(end), LOW, HIGH, -0.3)
        assert not within(np.array(end), *PILLAR, 0.3)
    assert np.linalg.norm(np.subtract(room.goal.position, room.start.position)) > 2.5
    # Both look along the way, and are at flying height above the lowest that is free.
    ahead = np.subtract(room.goal.position, room.start.position)[:2]
    for end in (room.start, room.goal):
        np.testing.assert_allclose([np.cos(end.yaw), np.sin(end.yaw)], ahead / np.linalg.norm(ahead), atol=1e-9)
        assert abs(end.position[2] - room.bounds.lower[2] - HEIGHT) <= 0.3
    steps = np.linspace(0.0, 1.0, 500)[:, None]
    way = np.array(room.start.position) + steps * np.subtract(room.goal.position, room.start.position)
    cells = ((way - LOWER) / CELL).astype(int)
    assert (states[tuple(cells.T)] == FREE).all()
    assert room.clearance >= 0.3
    assert (np.array(room.bounds.lower) >= LOW).all()
    assert (np.array(room.bounds.upper) <= HIGH).all()


def test_nobody_starts_behind_a_window() -> None:
    """Cameras see 3 m of air through a window of 1.2 x 1 m, wide enough for any vehicle: it is not of the room."""
    window = np.array([-0.6, 0.8]), np.array([0.6, 1.8])
    seen = exact_views(60, window=window)
    upper = HIGH + np.array([3.3, 0.3, 0.3])
    states = known_states(carve(seen, LOWER, upper, CELL), len(seen))
    at = middles(states.shape)
    beyond = at[..., 0] > HIGH[0] + 0.6
    assert np.count_nonzero((states == FREE) & beyond) > 200
    share = enclosure(states)
    assert np.median(share[(states == FREE) & beyond]) < 0.5 * np.median(share[(states == FREE) & (at[..., 0] < 1.5)])
    room = free_room(states, LOWER, CELL, 0.3, seen.position)
    assert room.bounds.upper[0] < HIGH[0] + 0.35
    kept = reachable_states(states, room, LOWER, CELL)
    assert not ((kept == FREE) & beyond).any()
    assert np.count_nonzero(kept == FREE) > 0.9 * np.count_nonzero((states == FREE) & within(at, LOW, HIGH))


def test_where_no_vehicle_fits_it_says_so(states: ArrayU8, views: DepthViews) -> None:
    with pytest.raises(AirworthyError, match="No connected free space holds a ball"):
        free_room(states, LOWER, CELL, 1.5, views.position)


def test_depths_of_splats_are_those_of_the_room() -> None:
    splats = room_splats()
    images = room_capture(splats, 10)
    seen = depth_views(splats, images, 0.05)
    truth = exact_views(10)
    assert len(seen) == 8
    off, certain = [], []
    for k, number in enumerate(images.training):
        sure = seen.depth[k] > 0.0
        certain.append(sure.mean())
        off.append(np.abs(seen.depth[k] - truth.depth[number])[sure])
        # Where nothing is certain nothing is freed beyond what is there, but for the gaussians' own width.
        assert np.mean(seen.freed[k] > truth.depth[number] + 0.1) < 0.02
    # Rays end where they meet the gaussians' planes, within their thickness of 4 mm; means are up to 4.8 cm off.
    assert np.mean(certain) > 0.8
    assert np.median(np.concatenate(off)) < 0.004
    wanted, found = depth_against_points(seen, images.points)
    assert len(wanted) > 500
    # Of a point its own pixel is asked, whose middle lies up to 0.7 px beside it.
    assert np.median(np.abs(wanted - found)) < 0.048


def test_grids_suit_the_size(views: DepthViews) -> None:
    low, high = grid_box(views, 0.0)
    assert np.abs(low - LOW).max() < 0.02
    assert np.abs(high - HIGH).max() < 0.02
    assert grid_resolution(low, high) == 0.05
    assert grid_resolution(np.zeros(3), np.array([20.0, 12.0, 6.0])) == 0.08
    assert grid_resolution(np.zeros(3), np.array([100.0, 50.0, 20.0])) == 0.19
    with pytest.raises(AirworthyError, match="opaque to no training camera"):
        grid_box(replace(views, depth=tuple(0.0 * image for image in views.depth)), 0.0)


def test_a_way_is_told_no_clearer_than_it_is() -> None:
    """Against cubes themselves: distances are of the middles of cells, which are nearer to nothing than their corners."""
    rng = np.random.default_rng(4)
    cell, short = 0.1, []
    for _ in range(20):
        full = np.zeros((14, 14, 14), bool)
        full[tuple(rng.integers(4, 10, 3))] = True
        field = distance_field(full, cell, np.zeros(3))
        lower, upper = cell * np.argwhere(full)[0], cell * (np.argwhere(full)[0] + 1)
        begin, end = rng.uniform(0.2, 1.2, (2, 1, 3))
        way = begin + np.linspace(0.0, 1.0, 2001)[:, None] * (end - begin)
        true = np.linalg.norm(np.maximum(np.maximum(lower - way, way - upper), 0.0), axis=1).min()
        told = _way_clearance(field, begin, end, cell)[0]
        assert told <= true + 1e-6
        short.append(true - told)
    # A corner is 0.87 cells from its middle, a face 0.5, and samples lie half a cell apart.
    assert max(short) < 0.9 * cell


def test_seen_from_above_y_is_up() -> None:
    states = np.zeros((4, 3, 2), np.uint8)
    states[0, 0] = FREE
    states[3, 2] = OCCUPIED
    picture = coverage_picture(states, np.array([[1.0, 1.0], [2.0, 1.0]]))
    assert picture.shape == (3, 4, 3)
    # Free at the lower left, a surface at the upper right, the way in the middle row.
    assert picture[2, 0].min() > 180
    assert picture[0, 3, 0] > 200
    assert picture[0, 3, 2] < 90
    assert (picture[1, 1] == picture[1, 2]).all()
    assert picture[1, 1, 0] == 200
