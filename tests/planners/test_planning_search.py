"""The searches of planners: rules, and the compiled form against the readable one."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.planner_maps import SolidMaps, mission

from airworthy.planners.common.search import Cells, CellTable, SearchMemory, find_paths, shortest_grid_path

LOWER, UPPER = (0.0, 0.0, 0.0), (6.0, 5.0, 2.5)


def _cells(grid: np.ndarray) -> Cells:
    return Cells(grid.astype(np.uint8), np.zeros(3), 0.1, np.array(LOWER), np.array(UPPER))


def test_a_free_way_is_straight() -> None:
    path = shortest_grid_path(_cells(np.zeros((60, 50, 25))), (1.0, 1.0, 1.0), (4.0, 1.0, 1.0))
    assert path.points == pytest.approx(np.stack([np.linspace(1, 4, 31), np.full(31, 1.0), np.full(31, 1.0)], axis=1))
    # Straight to the goal: the factor 1.0001 keeps ties from spreading.
    assert path.expansions == 31


def test_goes_round_a_wall_and_keeps_out_of_the_solid() -> None:
    grid = np.zeros((60, 50, 25), bool)
    grid[30:33, :18] = True
    cells = _cells(grid)
    path = shortest_grid_path(cells, (2.5, 1.0, 1.0), (4.0, 1.0, 1.0))
    assert not cells.taken(path.points).any()
    assert path.points[:, 1].max() > 1.7
    assert np.linalg.norm(np.diff(path.points, axis=0), axis=1).max() < 0.1 * np.sqrt(3) + 1e-9
    grid[30:33] = True
    closed = shortest_grid_path(_cells(grid), (1.0, 1.0, 1.0), (5.0, 1.0, 1.0), budget=500)
    assert (len(closed.points), closed.expansions) == (0, 500)


def test_ends_inside_are_pushed_outwards() -> None:
    grid = np.zeros((60, 50, 25), bool)
    grid[8:12, 5:15] = True
    cells = _cells(grid)
    path = shortest_grid_path(cells, (1.05, 1.05, 1.05), (4.05, 1.05, 1.05))
    assert path.points[0][0] < 0.8
    assert not cells.taken(path.points).any()
    assert len(shortest_grid_path(cells, (1.0, 1.0, 1.0), (1.0, 1.0, 1.0)).points) == 0


def test_compiled_gives_the_same_ways_and_work() -> None:
    rng = np.random.default_rng(0)
    grids = [rng.random((60, 50, 25)) < share for share in (0.0, 0.003, 0.008, 0.015)]
    task = mission(np.zeros((4, 3)), np.ones((4, 3)), LOWER, UPPER)
    table = CellTable(SolidMaps(grids, task), task, range(4), 0.1)
    rows = np.tile(np.arange(4), 4)
    start, goal = rng.uniform(0.5, 2.0, (16, 3)), rng.uniform((3, 2, 0.5), (5.5, 4.5, 2), (16, 3))
    memory = SearchMemory()
    paths = find_paths(table, rows, start, goal, budget=3_000, memory=memory)
    again = find_paths(table, rows[::-1], start[::-1], goal[::-1], budget=3_000, memory=memory)[::-1]
    assert sum(len(path.points) > 0 for path in paths) > 8
    for i, path in enumerate(paths):
        twin = shortest_grid_path(table.cells[rows[i]], start[i], goal[i], budget=3_000)
        assert path.expansions == twin.expansions == again[i].expansions
        assert np.array_equal(path.points, twin.points)
        assert np.array_equal(path.points, again[i].points)
