"""The distance field: against brute force, its sign, its interpolation and gradient."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from tests.planners.mapping_cases import CAMERA, Array, mission

from airworthy.core.arrays import ArrayBool, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.planners.common.interface import MapSettings
from airworthy.planners.mapping import LocalMaps, maps_of_cells
from airworthy.planners.mapping.maps import distances, occupied_cells
from airworthy.planners.mapping.twin import squared_field

SIDE = 32
FIELD = MapSettings(field=True, ground=0.0, inflation=0.0)
BOX = mission([[-1.0, -2.0, -3.0]], [[2.2, 1.2, 0.2 - 0.1]])
"""32 cells along each edge; the last layer along z is the ceiling's."""


def brute_force(taken: ArrayBool) -> ArrayInt:
    """Signed squares [cells^2] by looking at every pair of cells; by a tree of points where both are over 1,000."""
    cells = np.argwhere(np.ones(taken.shape, bool))
    flags = taken.reshape(-1)

    def least(sources: ArrayInt, asked: ArrayInt) -> ArrayInt:
        if len(sources) > 1000 < len(asked):
            return np.rint(scipy.spatial.cKDTree(sources).query(asked)[0] ** 2).astype(np.int64)
        square = (sources**2).sum(1) - 2 * asked.astype(np.float64) @ sources.T.astype(np.float64)
        return np.rint(square.min(1) + (asked**2).sum(1)).astype(np.int64)

    out = np.zeros(len(cells), np.int64)
    out[~flags] = least(cells[flags], cells[~flags])
    out[flags] = -least(cells[~flags], cells[flags])
    return out.reshape(taken.shape)


def signed(squared: ArrayInt, h: float) -> Array:
    """D = D+ - D- + h inside."""
    outside, inside = h * np.sqrt(np.maximum(squared, 0)), h * np.sqrt(np.maximum(-squared, 0))
    return outside - np.where(inside > 0.0, inside - h, 0.0)


@pytest.mark.parametrize("density", [0.0005, 0.01, 0.2])
def test_the_field_of_a_local_map_equals_brute_force(density: float) -> None:
    rng = np.random.default_rng(7)
    maps = LocalMaps(FIELD, BOX, CAMERA)
    points = BOX.lower[0] + 0.1 * (np.argwhere(rng.random((SIDE,) * 3) < density) + 0.5)
    maps.update_cloud([0], points[None], [[0.5, 0.0, -1.5]])
    taken, _ = maps.inflated(0)
    assert taken.shape == (SIDE,) * 3
    want = signed(brute_force(taken.astype(bool)), 0.1)
    got, corner = maps.field(0)
    np.testing.assert_allclose(corner, BOX.lower[0], atol=1e-12)
    np.testing.assert_allclose(got, want, atol=1e-6)  # float32 of up to 5 m
    middles = corner + 0.1 * (np.argwhere(np.ones(taken.shape, bool)) + 0.5)
    inside = np.all((middles > BOX.lower[0]) & (middles < BOX.upper[0]), axis=1)
    at_middles, _ = maps.distance([0], middles[None, inside])
    np.testing.assert_allclose(at_middles[0], want.reshape(-1)[inside], atol=1e-9)


def test_the_twin_and_the_true_scene_equal_brute_force() -> None:
    rng = np.random.default_rng(8)
    for density in (0.002, 0.5):
        taken = rng.random((SIDE,) * 3) < density
        np.testing.assert_array_equal(squared_field(taken), brute_force(taken))
        maps = maps_of_cells([taken], BOX, FIELD)
        layer = maps.inflated(0)[0].astype(bool)
        np.testing.assert_array_equal(layer[..., :-1], taken[..., :-1])
        np.testing.assert_allclose(maps.field(0)[0], signed(brute_force(layer), 0.1), atol=1e-6)


def test_the_sign_changes_a_cell_inside() -> None:
    """A slab of five cells: 0 in the outermost, then minus one and minus two cells; outside whole cells."""
    taken = np.zeros((SIDE,) * 3, bool)
    taken[10:15] = True
    line = maps_of_cells([taken], BOX, FIELD).field(0)[0][7:18, 16, 3]
    np.testing.assert_allclose(line, [0.3, 0.2, 0.1, 0.0, -0.1, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3], atol=1e-6)


def test_the_gradient_is_that_of_the_trilinear_value() -> None:
    rng = np.random.default_rng(9)
    maps = maps_of_cells([rng.random((SIDE,) * 3) < 0.01], BOX, FIELD)
    # Well inside one cell of the interpolation, so that a difference does not cross into the next.
    cell = rng.integers(2, SIDE - 3, (500, 3))
    points = BOX.lower[0] + 0.1 * (cell + 0.5 + rng.uniform(0.01, 0.99, (500, 3)))
    _, gradient = maps.distance([0], points[None])
    step = 1e-5
    for axis in range(3):
        off = np.eye(3)[axis] * step
        ahead, behind = (maps.distance([0], (points + sign * off)[None])[0] for sign in (1.0, -1.0))
        # Linear along an axis: rounding of values below 2 m over 2e-5 m remains.
        np.testing.assert_allclose(gradient[0, :, axis], ((ahead - behind) / (2 * step))[0], atol=1e-9)


def test_compiled_answers_equal_their_twin_to_the_bit() -> None:
    rng = np.random.default_rng(10)
    task = mission([[-1.0, -2.0, -3.0], [0.0, 0.0, 0.0]], [[2.2, 1.2, 0.1], [3.2, 3.2, 1.0]])
    cells = [rng.random((SIDE,) * 3) < 0.02, rng.random((SIDE, SIDE, 11)) < 0.02]
    maps = maps_of_cells(cells, task, FIELD)
    points = rng.uniform([-1.5, -2.5, -3.5], [3.5, 3.5, 1.5], (3, 4000, 3))
    points[0, :3] = [[np.nan, 0, 0], [np.inf, 0, 0], [2.2, 1.2, 0.1]]
    flight = np.array([1, 0, 1])
    np.testing.assert_array_equal(maps.occupied(flight, points), occupied_cells(maps.layers, flight, points))
    for got, want in zip(maps.distance(flight, points), distances(maps.layers, flight, points), strict=True):
        np.testing.assert_array_equal(got, want)


def test_what_is_not_known_is_far_and_outside_is_zero() -> None:
    maps = LocalMaps(FIELD, BOX, CAMERA)
    maps.update_cloud([0], np.full((1, 1, 3), np.nan), [[0.5, 0.0, -1.5]])
    value, gradient = maps.distance([0], [[[9.0, 0.0, 0.0], [0.5, 0.0, -2.0]]])
    assert value[0, 0] == 0.0
    assert not gradient[0, 0].any()
    assert value[0, 1] == pytest.approx(2.15, abs=1e-9)  # to the middle of the ceiling's layer
    unseen = LocalMaps(MapSettings(field=True, margin=0, ray_max=0.5), mission([[0, 0, 0]], [[20, 20, 3]]), CAMERA)
    assert unseen.distance([0], [[[10.0, 10.0, 1.0]]])[0] > 18.0


def test_distances_need_a_field() -> None:
    maps = LocalMaps(MapSettings(), BOX, CAMERA)
    for ask in (lambda: maps.distance([0], np.zeros((1, 1, 3))), lambda: maps.field(0)):
        with pytest.raises(AirworthyError, match="field=True"):
            ask()
