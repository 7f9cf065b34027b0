"""Maze: walls between 16 x 10 cells of 2.5 m by depth-first backtracking, some dead ends opened, fewer with the index.

Start and goal lie on a corner of four cells; these four are one room at either end, so that 2 m around both stay clear. The
maze is perfect between rooms and cells before dead ends are opened.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from airworthy.scenes.generators.flyingtrust.layout import Layout
from airworthy.scenes.generators.flyingtrust.parameters import CONFIGURATIONS, MAZE_BRAID, MAZE_CELL, MAZE_CELLS, MAZE_WALL

Cell = tuple[int, int]
_STEPS = ((1, 0), (-1, 0), (0, 1), (0, -1))
_NX, _NY = MAZE_CELLS


def draw_maze(index: int, rng: np.random.Generator) -> Layout:
    """One maze, with an opening of a cell's width at start and goal."""
    east, north = carve(rng)
    share = MAZE_BRAID[0] + (MAZE_BRAID[1] - MAZE_BRAID[0]) * (index - 1) / (CONFIGURATIONS - 1)
    ends = dead_ends(east, north)
    opened = round(share * len(ends))
    _open_dead_ends(east, north, ends, opened, rng)
    layout = Layout("maze", openings=(MAZE_CELL, MAZE_CELL))
    for x0, y0, x1, y1 in _runs(east, north):
        _wall(layout, x0, y0, x1, y1)
    layout.facts = {"obstacles": float(len(layout.instances)), "cells": float(_NX * _NY), "braid_share": share}
    layout.facts |= {"dead_ends": float(len(ends)), "dead_ends_opened": float(opened)}
    return layout


def room_of(cell: Cell) -> Cell:
    """The cell that stands for a cell's room: the four cells at either end are one."""
    i, j = cell
    if j in (_NY // 2 - 1, _NY // 2):
        if i < 2:
            return (0, _NY // 2)
        if i >= _NX - 2:
            return (_NX - 1, _NY // 2)
    return cell


def carve(rng: np.random.Generator) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Walls of a perfect maze: east (15, 10) between (i, j) and (i + 1, j), north (16, 9) between (i, j) and (i, j + 1)."""
    east, north = np.ones((_NX - 1, _NY), bool), np.ones((_NX, _NY - 1), bool)
    for i in range(_NX):
        for j in range(_NY):
            for step in ((1, 0), (0, 1)):
                other = (i + step[0], j + step[1])
                if other[0] < _NX and other[1] < _NY and room_of((i, j)) == room_of(other):
                    _open(east, north, (i, j), other)
    members: dict[Cell, list[Cell]] = {}
    for i in range(_NX):
        for j in range(_NY):
            members.setdefault(room_of((i, j)), []).append((i, j))
    stack, seen = [room_of((0, _NY // 2))], {room_of((0, _NY // 2))}
    while stack:
        doors = [(a, b) for a in members[stack[-1]] for b in _neighbours(a) if room_of(b) not in seen]
        if not doors:
            stack.pop()
            continue
        a, b = doors[int(rng.random() * len(doors))]
        _open(east, north, a, b)
        seen.add(room_of(b))
        stack.append(room_of(b))
    return east, north


def _neighbours(cell: Cell) -> list[Cell]:
    found = [(cell[0] + dx, cell[1] + dy) for dx, dy in _STEPS]
    return [c for c in found if 0 <= c[0] < _NX and 0 <= c[1] < _NY]


def _open(east: NDArray[np.bool_], north: NDArray[np.bool_], a: Cell, b: Cell, wall: bool = False) -> None:
    if a[0] != b[0]:
        east[min(a[0], b[0]), a[1]] = wall
    else:
        north[a[0], min(a[1], b[1])] = wall


def _walled(east: NDArray[np.bool_], north: NDArray[np.bool_], a: Cell, b: Cell) -> bool:
    return bool(east[min(a[0], b[0]), a[1]] if a[0] != b[0] else north[a[0], min(a[1], b[1])])


def dead_ends(east: NDArray[np.bool_], north: NDArray[np.bool_]) -> list[Cell]:
    """Cells with a single way out."""
    cells = [(i, j) for i in range(_NX) for j in range(_NY)]
    return [c for c in cells if sum(not _walled(east, north, c, n) for n in _neighbours(c)) == 1]


def _open_dead_ends(
    east: NDArray[np.bool_], north: NDArray[np.bool_], ends: list[Cell], count: int, rng: np.random.Generator
) -> None:
    """Take one wall out of `count` of the dead ends, drawn by lot."""
    order = np.argsort(rng.random(len(ends)), kind="stable")
    for k in order[:count].tolist():
        walls = [n for n in _neighbours(ends[k]) if _walled(east, north, ends[k], n)]
        _open(east, north, ends[k], walls[int(rng.random() * len(walls))])


def _runs(east: NDArray[np.bool_], north: NDArray[np.bool_]) -> list[tuple[float, float, float, float]]:
    """Walls in line, joined: (x0, y0, x1, y1) [m]."""
    x, y = -0.5 * _NX * MAZE_CELL, -0.5 * _NY * MAZE_CELL
    found = []
    for i in range(_NX - 1):
        at = x + (i + 1) * MAZE_CELL
        found += [(at, y + a * MAZE_CELL, at, y + b * MAZE_CELL) for a, b in _stretches(east[i])]
    for j in range(_NY - 1):
        at = y + (j + 1) * MAZE_CELL
        found += [(x + a * MAZE_CELL, at, x + b * MAZE_CELL, at) for a, b in _stretches(north[:, j])]
    return found


def _stretches(walls: NDArray[np.bool_]) -> list[tuple[int, int]]:
    padded = np.concatenate([[False], walls, [False]]).astype(np.int8)
    change = np.diff(padded)
    return list(zip(np.flatnonzero(change == 1).tolist(), np.flatnonzero(change == -1).tolist(), strict=True))


def _wall(layout: Layout, x0: float, y0: float, x1: float, y1: float) -> None:
    """Half a thickness longer at both ends, so that corners close; no farther than the edge of the map."""
    thick, height = MAZE_WALL
    half = (0.5 * _NX * MAZE_CELL, 0.5 * _NY * MAZE_CELL)
    a = (max(x0 - 0.5 * thick, -half[0]), max(y0 - 0.5 * thick, -half[1]))
    b = (min(x1 + 0.5 * thick, half[0]), min(y1 + 0.5 * thick, half[1]))
    center = (0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1]), 0.5 * height)
    layout.box(center, (b[0] - a[0], b[1] - a[1], height), "wall", "brick")
