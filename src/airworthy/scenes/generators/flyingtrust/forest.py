"""Forest: upright trunks by Poisson-disk sampling; crowns above the ceiling are for the eye only."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, NDArray
from airworthy.geometry import Mesh
from airworthy.scenes.generators.flyingtrust.layout import ObstacleLayout, about_z, goal_of, start_of
from airworthy.scenes.generators.flyingtrust.parameters import (
    CLEAR_RADIUS,
    CONFIGURATIONS,
    MAZE_BRAID,
    MAZE_CELL,
    MAZE_CELLS,
    MAZE_WALL,
    SCENARIOS,
    TREE_COUNT,
    TRUNK_HEIGHT,
    TRUNK_RADIUS,
    TRUNK_SPACING,
)
from airworthy.scenes.generators.seeding import generator
from airworthy.scenes.record import Instance

# -----------------------------------------------------------------------------------------------------------------------------
# Maze: walls between 16 x 10 cells of 2.5 m by depth-first backtracking, some dead ends opened, fewer with the index.
#
# Start and goal lie on a corner of four cells; these four are one room at either end, so that 2 m around both stay clear. The
# maze is perfect between rooms and cells before dead ends are opened.

Cell = tuple[int, int]
_STEPS = ((1, 0), (-1, 0), (0, 1), (0, -1))
_NX, _NY = MAZE_CELLS


def draw_maze(index: int, rng: np.random.Generator) -> ObstacleLayout:
    """Return one maze, with an opening of a cell's width at start and goal."""
    east, north = carve(rng)
    share = MAZE_BRAID[0] + (MAZE_BRAID[1] - MAZE_BRAID[0]) * (index - 1) / (CONFIGURATIONS - 1)
    ends = dead_ends(east, north)
    opened = round(share * len(ends))
    _open_dead_ends(east, north, ends, opened, rng)
    layout = ObstacleLayout("maze", openings=(MAZE_CELL, MAZE_CELL))
    for x0, y0, x1, y1 in _runs(east, north):
        _wall(layout, x0, y0, x1, y1)
    layout.facts = {"obstacles": float(len(layout.instances)), "cells": float(_NX * _NY), "braid_share": share}
    layout.facts |= {"dead_ends": float(len(ends)), "dead_ends_opened": float(opened)}
    return layout


def room_of(cell: Cell) -> Cell:
    """Return the cell that stands for a cell's room: the four cells at either end are one."""
    i, j = cell
    if j in (_NY // 2 - 1, _NY // 2):
        if i < 2:
            return (0, _NY // 2)
        if i >= _NX - 2:
            return (_NX - 1, _NY // 2)
    return cell


def carve(rng: np.random.Generator) -> tuple[ArrayBool, ArrayBool]:
    """Return walls of a perfect maze: east (15, 10) between (i, j) and (i + 1, j), north (16, 9) between (i, j) and (i, j +
    1)."""
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
    stack, visited = [room_of((0, _NY // 2))], {room_of((0, _NY // 2))}
    while stack:
        doors = [(a, b) for a in members[stack[-1]] for b in _neighbours(a) if room_of(b) not in visited]
        if not doors:
            stack.pop()
            continue
        a, b = doors[int(rng.random() * len(doors))]
        _open(east, north, a, b)
        visited.add(room_of(b))
        stack.append(room_of(b))
    return east, north


def _neighbours(cell: Cell) -> list[Cell]:
    found = [(cell[0] + dx, cell[1] + dy) for dx, dy in _STEPS]
    return [c for c in found if 0 <= c[0] < _NX and 0 <= c[1] < _NY]


def _open(east: ArrayBool, north: ArrayBool, a: Cell, b: Cell, wall: bool = False) -> None:
    if a[0] != b[0]:
        east[min(a[0], b[0]), a[1]] = wall
    else:
        north[a[0], min(a[1], b[1])] = wall


def _walled(east: ArrayBool, north: ArrayBool, a: Cell, b: Cell) -> bool:
    return bool(east[min(a[0], b[0]), a[1]] if a[0] != b[0] else north[a[0], min(a[1], b[1])])


def dead_ends(east: ArrayBool, north: ArrayBool) -> list[Cell]:
    """Return cells with a single way out."""
    cells = [(i, j) for i in range(_NX) for j in range(_NY)]
    return [c for c in cells if sum(not _walled(east, north, c, n) for n in _neighbours(c)) == 1]


def _open_dead_ends(east: ArrayBool, north: ArrayBool, ends: list[Cell], count: int, rng: np.random.Generator) -> None:
    """Take one wall out of `count` of the dead ends, drawn by lot."""
    order = np.argsort(rng.random(len(ends)), kind="stable")
    for k in order[:count].tolist():
        walls = [n for n in _neighbours(ends[k]) if _walled(east, north, ends[k], n)]
        _open(east, north, ends[k], walls[int(rng.random() * len(walls))])


def _runs(east: ArrayBool, north: ArrayBool) -> list[tuple[float, float, float, float]]:
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


def _stretches(walls: ArrayBool) -> list[tuple[int, int]]:
    padded = np.concatenate([[False], walls, [False]]).astype(np.int8)
    change = np.diff(padded)
    return list(zip(np.flatnonzero(change == 1).tolist(), np.flatnonzero(change == -1).tolist(), strict=True))


def _wall(layout: ObstacleLayout, x0: float, y0: float, x1: float, y1: float) -> None:
    """Half a thickness longer at both ends, so that corners close; no farther than the edge of the map."""
    thick, height = MAZE_WALL
    half = (0.5 * _NX * MAZE_CELL, 0.5 * _NY * MAZE_CELL)
    a = (max(x0 - 0.5 * thick, -half[0]), max(y0 - 0.5 * thick, -half[1]))
    b = (min(x1 + 0.5 * thick, half[0]), min(y1 + 0.5 * thick, half[1]))
    center = (0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1]), 0.5 * height)
    layout.box(center, (b[0] - a[0], b[1] - a[1], height), "wall", "brick")


# -----------------------------------------------------------------------------------------------------------------------------

CROWNS = 3
"""Different crowns that trees share."""
_CROWN_FLOOR = 3.1
"""No leaf hangs lower [m]."""


def draw_forest(index: int, rng: np.random.Generator) -> ObstacleLayout:
    """Return 49 trunks, at least 2 m apart."""
    layout = ObstacleLayout("forest")
    stated = SCENARIOS["forest"]
    ends = np.stack([start_of(stated), goal_of(stated)])[:, :2]
    centres = np.zeros((0, 2))
    # By rejection, which keeps the draws uniform.
    while len(centres) < TREE_COUNT:
        radius, height = _between(rng, TRUNK_RADIUS), _between(rng, TRUNK_HEIGHT)
        half = 0.5 * np.array([stated.length, stated.width]) - radius
        centre = (2.0 * rng.random(2) - 1.0) * half
        near_end = np.hypot(*(ends - centre).T).min() < CLEAR_RADIUS + radius + 1e-3
        if near_end or (len(centres) and np.hypot(*(centres - centre).T).min() < TRUNK_SPACING):
            continue
        centres = np.vstack([centres, centre])
        _tree(layout, centre, radius, height, rng)
    gaps = np.hypot(*(centres[:, None] - centres[None]).transpose(2, 0, 1)) + 1e9 * np.eye(TREE_COUNT)
    layout.facts = {"obstacles": float(TREE_COUNT), "least_spacing_m": float(gaps.min())}
    return layout


def _between(rng: np.random.Generator, limits: tuple[float, float]) -> float:
    return limits[0] + (limits[1] - limits[0]) * float(rng.random())


def _tree(layout: ObstacleLayout, centre: Array, radius: float, height: float, rng: np.random.Generator) -> None:
    x, y = float(centre[0]), float(centre[1])
    number = len(layout.instances) // 2
    layout.upright(x, y, radius, height, "tree", f"bark~{number % 3}")
    kind, size, yaw = int(rng.random() * CROWNS), 1.4 + 1.2 * float(rng.random()), 2.0 * math.pi * float(rng.random())
    name = f"crown_{kind}"
    layout.shapes.setdefault(name, crown(kind))
    # Crowns cannot be hit, so none may hang into the heights that are flown at.
    top = max(height - 0.2, _CROWN_FLOOR + size)
    material = f"leaves~{(number + kind) % 5}"
    position = (x, y, top)
    layout.instances.append(Instance(name, position, about_z(yaw), size, (material,), "tree", collide=False))


@cache
def crown(kind: int) -> Mesh:
    """Return a clump of leaves within the unit sphere: a subdivided icosahedron that bulges around nine boughs, with tufts."""
    vertices, faces = _icosphere(3)
    rng = generator("forest crown", kind)
    boughs = 2.0 * rng.random((9, 3)) - 1.0
    boughs /= np.sqrt((boughs * boughs).sum(1, keepdims=True))
    toward = np.stack([(vertices * bough).sum(1) for bough in boughs], axis=1)
    # Largest in the direction of a bough, falling off around it.
    bulge = np.exp(5.0 * (toward.max(1) - 1.0))
    tufts = rng.random(len(vertices)) - 0.5
    vertices = vertices * (0.6 + 0.33 * bulge + 0.12 * tufts)[:, None] * np.array([1.0, 1.0, 0.85])
    return Mesh(vertices, faces, _vertex_normals(vertices, faces))


def _icosphere(rounds: int) -> tuple[Array, NDArray[np.int32]]:
    g = (1.0 + math.sqrt(5.0)) / 2.0
    corners: list[tuple[float, float, float]] = [
        (-1, g, 0),
        (1, g, 0),
        (-1, -g, 0),
        (1, -g, 0),
        (0, -1, g),
        (0, 1, g),
        (0, -1, -g),
        (0, 1, -g),
    ]
    corners += [(g, 0, -1), (g, 0, 1), (-g, 0, -1), (-g, 0, 1)]
    faces = [
        (0, 11, 5),
        (0, 5, 1),
        (0, 1, 7),
        (0, 7, 10),
        (0, 10, 11),
        (1, 5, 9),
        (5, 11, 4),
        (11, 10, 2),
        (10, 7, 6),
        (7, 1, 8),
    ]
    faces += [(3, 9, 4), (3, 4, 2), (3, 2, 6), (3, 6, 8), (3, 8, 9), (4, 9, 5), (2, 4, 11), (6, 2, 10), (8, 6, 7), (9, 8, 1)]
    points = [np.array(c) / np.linalg.norm(c) for c in corners]
    for _ in range(rounds):
        middle: dict[tuple[int, int], int] = {}
        finer = []
        for a, b, c in faces:
            ab, bc, ca = (_middle(points, middle, p, q) for p, q in ((a, b), (b, c), (c, a)))
            finer += [(a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca)]
        faces = finer
    return np.array(points), np.array(faces, np.int32)


def _middle(points: list[Array], known: dict[tuple[int, int], int], a: int, b: int) -> int:
    key = (min(a, b), max(a, b))
    if key not in known:
        known[key] = len(points)
        point = points[a] + points[b]
        points.append(point / np.linalg.norm(point))
    return known[key]


def _vertex_normals(vertices: Array, faces: NDArray[np.int32]) -> Array:
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    flat = np.cross(b - a, c - a)
    normals = np.zeros_like(vertices)
    for k in range(3):
        # By `add.at`, since a vertex occurs in several faces; weighted by area, as cross products are.
        np.add.at(normals, faces[:, k], flat)
    return normals / np.linalg.norm(normals, axis=1, keepdims=True)
