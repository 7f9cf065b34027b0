"""Grid search against Dijkstra, and its rules."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError
from airworthy.geometry import grid_path
from airworthy.geometry.grid_path import shortest_path

STEPS = [np.array(s) - 1 for s in np.ndindex(3, 3, 3) if s != (1, 1, 1)]


def _free_box(grid: np.ndarray, cell: np.ndarray, step: np.ndarray) -> bool:
    low, high = np.minimum(cell, cell + step), np.maximum(cell, cell + step)
    if (low < 0).any() or (high >= grid.shape).any():
        return False
    return not grid[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))].any()


def _dijkstra(grid: np.ndarray, start: tuple[int, ...], goal: tuple[int, ...]) -> float:
    """Length by SciPy on the explicit graph."""
    rows, columns, lengths = [], [], []
    for cell in np.argwhere(~grid):
        for step in STEPS:
            if _free_box(grid, cell, step):
                rows.append(np.ravel_multi_index(tuple(cell), grid.shape))
                columns.append(np.ravel_multi_index(tuple(cell + step), grid.shape))
                lengths.append(np.linalg.norm(step))
    graph = scipy.sparse.coo_array((lengths, (rows, columns)), shape=(grid.size, grid.size)).tocsr()
    return float(
        scipy.sparse.csgraph.dijkstra(graph, indices=np.ravel_multi_index(start, grid.shape))[
            np.ravel_multi_index(goal, grid.shape)
        ]
    )


@pytest.mark.slow
@given(st.tuples(*3 * [st.integers(1, 7)]), st.floats(0.0, 0.6), st.integers(0, 10_000))
def test_as_short_as_dijkstra(shape: tuple[int, int, int], share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    grid = rng.random(shape) < share
    start, goal = (tuple(int(rng.integers(n)) for n in shape) for _ in range(2))
    grid[start] = grid[goal] = False
    path = shortest_path(grid, 0.5, 0.5 * (np.array(start) + 0.5), 0.5 * (np.array(goal) + 0.5))
    least = _dijkstra(grid, start, goal)
    if path is None:
        assert np.isinf(least)
        return
    # Sums of at most a few hundred float64 terms.
    assert path.length == pytest.approx(0.5 * least, abs=1e-9)
    assert tuple(path.cells[0]) == start
    assert tuple(path.cells[-1]) == goal
    for cell, after in zip(path.cells[:-1], path.cells[1:], strict=True):
        assert _free_box(grid, cell, after - cell)


def test_a_straight_way_is_straight_and_cheap() -> None:
    path = shortest_path(np.zeros((50, 50, 10), bool), 0.1, (0.05, 2.5, 0.5), (4.95, 2.5, 0.5), lower=(0, 0, 0))
    assert path is not None
    assert path.length == pytest.approx(4.9)
    assert path.expansions == 50
    np.testing.assert_allclose(path.points[0], (0.05, 2.55, 0.55))


def test_no_way_through_a_wall_and_none_between_touching_corners() -> None:
    wall = np.zeros((5, 5, 5), bool)
    wall[2] = True
    assert shortest_path(wall, 1.0, (0.5, 0.5, 0.5), (4.5, 0.5, 0.5)) is None
    corners = np.array([[False, True], [True, False]])[:, :, None]
    assert shortest_path(corners, 1.0, (0.5, 0.5, 0.5), (1.5, 1.5, 0.5)) is None


def test_an_occupied_start_or_goal_has_no_path() -> None:
    grid = np.zeros((3, 3, 3), bool)
    grid[0, 0, 0] = True
    assert shortest_path(grid, 1.0, (0.5, 0.5, 0.5), (2.5, 2.5, 2.5)) is None
    assert shortest_path(grid, 1.0, (2.5, 2.5, 2.5), (0.5, 0.5, 0.5)) is None


def test_equal_searches_give_equal_paths() -> None:
    grid = np.random.default_rng(5).random((20, 20, 20)) < 0.2
    grid[0, 0, 0] = grid[-1, -1, -1] = False
    paths = [shortest_path(grid, 0.1, (0.05, 0.05, 0.05), (1.95, 1.95, 1.95)) for _ in range(2)]
    assert paths[0] is not None
    assert paths[1] is not None
    np.testing.assert_array_equal(paths[0].cells, paths[1].cells)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"start": (9.0, 0.0, 0.0)}, "`start` [9.0, 0.0, 0.0] lies outside the grid"),
        ({"goal": (0.0, float("nan"), 0.0)}, "expected three finite coordinates"),
        ({"resolution": -1.0}, "`resolution` is -1.0"),
        ({"occupied": np.zeros((3, 3), bool)}, "shape (3, 3)"),
        ({"max_expansions": 2}, "gave up after 2 of 64 cells"),
    ],
)
def test_wrong_arguments_get_one_sentence(change: dict[str, object], said: str) -> None:
    asked = {"occupied": np.zeros((4, 4, 4), bool), "resolution": 1.0, "start": (0.5, 0.5, 0.5), "goal": (3.5, 3.5, 3.5)}
    with pytest.raises(AirworthyError) as caught:
        shortest_path(**{**asked, **change})  # type: ignore[arg-type]
    assert said in str(caught.value)


def test_how_large_a_grid_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid_path, "MAX_CELLS", 24)
    assert grid_path._grid(np.zeros((2, 3, 4), bool), 0.1).shape == (2, 3, 4)
    for shape in ((5, 5, 1), (2, 0, 4), (6, 4)):
        with pytest.raises(AirworthyError, match="with 1 to 24 cells"):
            grid_path._grid(np.zeros(shape, bool), 0.1)
    for resolution in (0.0, -0.1, np.inf, np.nan):
        with pytest.raises(AirworthyError, match="expected the edge of a cell"):
            grid_path._grid(np.zeros((2, 3, 4), bool), resolution)
