"""Forest: upright trunks by Poisson-disk sampling; crowns above the ceiling are for the eye only."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from airworthy.geometry import Mesh
from airworthy.scenes.generators.flyingtrust.layout import Layout, about_z, goal_of, start_of
from airworthy.scenes.generators.flyingtrust.parameters import (
    CLEAR_RADIUS,
    SCENARIOS,
    TREE_COUNT,
    TRUNK_HEIGHT,
    TRUNK_RADIUS,
    TRUNK_SPACING,
)
from airworthy.scenes.generators.seeding import generator
from airworthy.scenes.record import Instance

CROWNS = 3
"""Different crowns that trees share."""
_CROWN_FLOOR = 3.1
"""No leaf hangs lower [m]."""


def draw_forest(index: int, rng: np.random.Generator) -> Layout:
    """49 trunks, at least 2 m apart."""
    layout = Layout("forest")
    stated = SCENARIOS["forest"]
    ends = np.stack([start_of(stated), goal_of(stated)])[:, :2]
    centres = np.zeros((0, 2))
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


def _tree(layout: Layout, centre: NDArray[np.float64], radius: float, height: float, rng: np.random.Generator) -> None:
    x, y = float(centre[0]), float(centre[1])
    number = len(layout.instances) // 2
    layout.upright(x, y, radius, height, "tree", f"bark~{number % 3}")
    kind, size, yaw = int(rng.random() * CROWNS), 1.4 + 1.2 * float(rng.random()), 2.0 * math.pi * float(rng.random())
    name = f"crown_{kind}"
    layout.shapes.setdefault(name, crown(kind))
    top = max(height - 0.2, _CROWN_FLOOR + size)
    material = f"leaves~{(number + kind) % 5}"
    place = (x, y, top)
    layout.instances.append(Instance(name, place, about_z(yaw), size, (material,), "tree", collide=False))


@cache
def crown(kind: int) -> Mesh:
    """A clump of leaves within the unit sphere: a subdivided icosahedron that bulges around nine boughs, with tufts."""
    vertices, faces = _icosphere(3)
    rng = generator("forest crown", kind)
    boughs = 2.0 * rng.random((9, 3)) - 1.0
    boughs /= np.sqrt((boughs * boughs).sum(1, keepdims=True))
    toward = np.stack([(vertices * bough).sum(1) for bough in boughs], axis=1)
    bulge = np.exp(5.0 * (toward.max(1) - 1.0))
    tufts = rng.random(len(vertices)) - 0.5
    vertices = vertices * (0.6 + 0.33 * bulge + 0.12 * tufts)[:, None] * np.array([1.0, 1.0, 0.85])
    return Mesh(vertices, faces, _vertex_normals(vertices, faces))


def _icosphere(rounds: int) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
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


def _middle(points: list[NDArray[np.float64]], known: dict[tuple[int, int], int], a: int, b: int) -> int:
    key = (min(a, b), max(a, b))
    if key not in known:
        known[key] = len(points)
        point = points[a] + points[b]
        points.append(point / np.linalg.norm(point))
    return known[key]


def _vertex_normals(vertices: NDArray[np.float64], faces: NDArray[np.int32]) -> NDArray[np.float64]:
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    flat = np.cross(b - a, c - a)
    normals = np.zeros_like(vertices)
    for k in range(3):
        np.add.at(normals, faces[:, k], flat)
    return normals / np.linalg.norm(normals, axis=1, keepdims=True)
