"""The exact distance transform against SciPy's, its invariances, and the interpolation."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError
from airworthy.geometry import distance
from airworthy.geometry.distance import DistanceField, distance_field


def _random(shape: tuple[int, ...], share: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    grid = rng.random(shape) < share
    grid.reshape(-1)[rng.integers(grid.size)] = True
    return grid


@pytest.mark.parametrize("shape", [(5, 7, 3), (20, 33, 17), (1, 1, 40), (2, 3, 300), (3, 250, 18), (210, 2, 2), (1, 1, 1)])
@pytest.mark.parametrize("share", [0.0, 0.002, 0.1])
def test_equals_scipy_exactly(shape: tuple[int, ...], share: float) -> None:
    # Squared distances in cells are whole numbers on both sides. Lines of more than 96 empty cells take the other construction.
    grid = _random(shape, share)
    ours = distance_field(grid, 1.0).values.astype(float) ** 2
    np.testing.assert_array_equal(np.rint(ours), np.rint(scipy.ndimage.distance_transform_edt(~grid) ** 2))


@given(st.tuples(*3 * [st.integers(1, 20)]), st.floats(0.0, 1.0), st.integers(0, 1000))
def test_equals_scipy_on_any_grid(shape: tuple[int, int, int], share: float, seed: int) -> None:
    grid = _random(shape, share, seed)
    # float32 of a root times the edge: 1e-7 of at most 7 m.
    np.testing.assert_allclose(distance_field(grid, 0.2).values, 0.2 * scipy.ndimage.distance_transform_edt(~grid), atol=1e-6)


def test_every_cell_by_brute_force() -> None:
    grid = _random((6, 7, 8), 0.02)
    centres = np.argwhere(np.ones_like(grid))
    taken = np.argwhere(grid)
    brute = np.linalg.norm(centres[:, None] - taken, axis=-1).min(1).reshape(grid.shape)
    np.testing.assert_allclose(distance_field(grid, 1.0).values, brute, rtol=1e-7)


def test_an_empty_grid_is_infinitely_far() -> None:
    assert np.isinf(distance_field(np.zeros((3, 4, 5), bool), 0.1).values).all()


def test_grids_of_a_batch_do_not_see_each_other() -> None:
    grids = np.stack([_random((9, 8, 21), share, seed) for seed, share in enumerate([0.0, 0.05, 0.3])])
    grids[0] = False
    together = distance_field(grids[None], 0.1).values
    assert together.shape == (1, 3, 9, 8, 21)
    for k in range(3):
        np.testing.assert_array_equal(together[0, k], distance_field(grids[k], 0.1).values)
    np.testing.assert_array_equal(distance_field(grids[::-1], 0.1).values, together[0, ::-1])


@given(st.integers(0, 1000), st.permutations([0, 1, 2]), st.tuples(*3 * [st.sampled_from([1, -1])]))
def test_turning_and_mirroring_the_grid_turns_the_field(seed: int, order: list[int], signs: tuple[int, ...]) -> None:
    grid = _random((7, 10, 13), 0.01, seed)

    def turn(a: np.ndarray) -> np.ndarray:
        return a[:: signs[0], :: signs[1], :: signs[2]].transpose(order)

    np.testing.assert_array_equal(distance_field(turn(grid), 0.3).values, turn(distance_field(grid, 0.3).values))


def test_signed_distance_is_zero_between_free_and_occupied() -> None:
    grid = np.zeros((30, 5, 5), bool)
    grid[10:20] = True
    along = distance_field(grid, 0.2, signed=True).values[:, 2, 2]
    # The wall spans 2 m to 4 m; centres lie at 0.1, 0.3, ...
    centres = 0.2 * (np.arange(30) + 0.5)
    np.testing.assert_allclose(along, np.maximum(2.0 - centres, centres - 4.0), atol=1e-6)


def test_samples_of_a_linear_field_are_exact() -> None:
    rng = np.random.default_rng(0)
    slope, lower, h = np.array([0.3, -0.7, 0.2]), np.array([1.0, 2.0, 3.0]), 0.1
    centres = lower + h * (np.argwhere(np.ones((6, 7, 8))) + 0.5)
    field = DistanceField((centres @ slope).reshape(6, 7, 8).astype(np.float32), h, lower)
    points = lower + h * (0.5 + rng.random((200, 3)) * [5, 6, 7])
    value, gradient = field.sample(points)
    # The values are float32 near 2: 1e-7 each; their differences over a cell of 0.1 m: 1e-5.
    np.testing.assert_allclose(value, points @ slope, atol=1e-6)
    np.testing.assert_allclose(gradient, np.broadcast_to(slope, (200, 3)), atol=1e-5)


def test_at_the_outermost_centres_the_slope_is_that_of_the_cells_inside() -> None:
    values = np.random.default_rng(5).random((4, 5, 6)).astype(np.float32)
    field = DistanceField(values, 0.5, np.zeros(3))
    corners = np.argwhere(np.ones((2, 2, 2))) * (np.array(values.shape) - 1)
    value, gradient = field.sample(0.5 * (corners + 0.5))
    np.testing.assert_array_equal(value, values[tuple(corners.T)])
    for axis in range(3):
        inside, step = corners.copy(), np.where(corners[:, axis] == 0, 1, -1)
        inside[:, axis] += step
        slope = (values[tuple(inside.T)].astype(float) - values[tuple(corners.T)]) / (0.5 * step)
        np.testing.assert_allclose(gradient[:, axis], slope, atol=1e-12)


def test_samples_take_each_points_own_grid() -> None:
    grids = np.stack([_random((6, 6, 6), 0.05, k) for k in range(3)])
    lower = np.array([[0.0, 0, 0], [10, 0, 0], [0, 10, 0]])
    field = distance_field(grids, 0.5, lower)
    points = lower[[2, 0, 1, 2]] + np.random.default_rng(1).random((4, 3)) * 3
    value, gradient = field.sample(points, [2, 0, 1, 2])
    for k, env in enumerate([2, 0, 1, 2]):
        alone = distance_field(grids[env], 0.5, lower[env]).sample(points[k : k + 1])
        assert value[k] == alone[0][0]
        np.testing.assert_array_equal(gradient[k], alone[1][0])


def test_gradients_are_differences_and_vanish_outside() -> None:
    grid = _random((8, 8, 8), 0.02)
    field = distance_field(grid, 0.25)
    points = 0.2 + 1.5 * np.random.default_rng(2).random((50, 3))
    _, gradient = field.sample(points)
    for axis in range(3):
        step = 1e-6 * np.eye(3)[axis]
        difference = (field.sample(points + step)[0] - field.sample(points - step)[0]) / 2e-6
        np.testing.assert_allclose(gradient[:, axis], difference, atol=1e-6)
    value, gradient = field.sample([[50.0, 50.0, 50.0]])
    assert value[0] == field.values[-1, -1, -1]
    assert not gradient.any()


def test_samples_of_an_empty_grid_are_infinite_without_gradient() -> None:
    value, gradient = distance_field(np.zeros((3, 3, 3), bool), 0.1).sample([[0.1, 0.1, 0.1]])
    assert np.isinf(value[0])
    assert not gradient.any()


@pytest.mark.parametrize(
    ("grid", "resolution", "said"),
    [
        (np.zeros((3, 3), bool), 0.1, "shape (3, 3)"),
        (np.zeros((3, 0, 3), bool), 0.1, "shape (3, 0, 3)"),
        (np.zeros((9000, 1, 1), bool), 0.1, "sides of 1 to 8192"),
        (np.zeros((3, 3, 3), bool), 0.0, "`resolution` is 0.0"),
        (np.zeros((3, 3, 3), bool), float("nan"), "`resolution` is nan"),
    ],
)
def test_wrong_arguments_get_one_sentence(grid: np.ndarray, resolution: float, said: str) -> None:
    with pytest.raises(AirworthyError) as caught:
        distance_field(grid, resolution)
    assert said in str(caught.value)


def test_samples_refuse_wrong_shapes_and_grids() -> None:
    field = distance_field(np.ones((2, 3, 3, 3), bool), 0.1)
    for points, env in (([0.0, 0, 0], None), ([[0.0, 0, 0]], [2]), ([[0.0, 0, 0]], [0, 1])):
        with pytest.raises(AirworthyError):
            field.sample(points, env)


@pytest.mark.parametrize(
    ("shape", "fits"),
    [
        ((1, 1, 8192), True),
        ((1, 1, 8193), False),
        ((8193, 1, 1), False),
        ((9000, 1, 1, 1), True),
        ((512, 512, 1024), True),
        ((2, 512, 512, 513), False),
        ((4, 0, 4), False),
        ((4, 4), False),
    ],
)
def test_how_large_grids_may_be(shape: tuple[int, ...], fits: bool) -> None:
    """Sides of 1 to 8,192 cells, and of all grids together 2^28 of them."""
    if fits:
        distance._check(shape, 0.1)
        return
    with pytest.raises(AirworthyError, match="sides of 1 to 8192, at most 268435456 cells"):
        distance._check(shape, 0.1)
