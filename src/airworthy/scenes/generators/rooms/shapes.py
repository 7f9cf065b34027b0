"""Shapes that rooms share: boxes, 1,000 thin rods, and 100 trees as branches of cylinders."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from airworthy.core.frames import from_matrix
from airworthy.geometry import Box, Cylinder, Shape
from airworthy.scenes.generators.rooms.parameters import (
    OBJECTS,
    PANEL,
    THIN_KINDS,
    TREE_KINDS,
    TREE_LINKS,
    WALL_X,
    WALL_Y,
    WALL_Z,
    Room,
)
from airworthy.scenes.generators.seeding import generator

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree: its cylinders, trunk first, in the frame of its root."""

    links: tuple[Cylinder, ...]
    position: Floats
    """(21, 3) [m]"""
    attitude: Floats
    """(21, 4)"""


@cache
def trees() -> tuple[Tree, ...]:
    """The 100 trees: a trunk, five branches, fifteen twigs; every link starts inside of the one that bears it."""
    return tuple(_tree(generator("gym tree", kind)) for kind in range(TREE_KINDS))


def _tree(rng: np.random.Generator) -> Tree:
    """Trunk 4 to 8 m high and 0.10 to 0.20 m thick (radius), each generation about half as long and thick as the one before."""
    height, radius = 4.0 + 4.0 * float(rng.random()), 0.10 + 0.10 * float(rng.random())
    trunk = (np.zeros(3), np.array([0.0, 0.0, 1.0]), height, radius)
    links = [trunk]
    branches = [_offshoot(trunk, 0.30 + 0.13 * k, 2.4 * k, rng) for k in range(5)]
    for number, branch in enumerate(branches):
        links.append(branch)
        links += [_offshoot(branch, 0.40 + 0.22 * k, 2.1 * k + number, rng) for k in range(3)]
    assert len(links) == TREE_LINKS
    shapes = tuple(Cylinder(round(r, 4), round(0.5 * length, 4)) for _, _, length, r in links)
    position = np.stack([root + 0.5 * length * axis for root, axis, length, _ in links])
    return Tree(shapes, position, np.stack([_along(axis) for _, axis, _, _ in links]))


Link = tuple[Floats, Floats, float, float]
"""Root, unit axis, length, radius."""


def _offshoot(parent: Link, at: float, azimuth: float, rng: np.random.Generator) -> Link:
    """A link that leaves its parent at a fraction of its length, at 35 to 70 degrees."""
    root, axis, length, radius = parent
    u = rng.random(4).tolist()
    side = np.cross(axis, [0.0, 0.0, 1.0] if abs(axis[2]) < 0.9 else [1.0, 0.0, 0.0])
    side /= np.linalg.norm(side)
    other = np.cross(axis, side)
    turn, tilt = azimuth + 1.2 * u[0], math.radians(35.0 + 35.0 * u[1])
    out = math.cos(turn) * side + math.sin(turn) * other
    direction = math.cos(tilt) * axis + math.sin(tilt) * out
    fraction = min(at + 0.08 * u[2], 0.97)
    return (root + fraction * length * axis, direction, length * (0.35 + 0.2 * u[3]) * (1.2 - 0.6 * fraction), 0.5 * radius)


def _along(axis: Floats) -> Floats:
    """Attitude that lays z along a direction."""
    side = np.cross([1.0, 0.0, 0.0] if abs(axis[0]) < 0.9 else [0.0, 1.0, 0.0], axis)
    side /= np.linalg.norm(side)
    return np.asarray(from_matrix(np.stack([side, np.cross(axis, side), axis], axis=1)))


@cache
def thin_rods() -> tuple[Shape, ...]:
    """The 1,000 rods: square bars and round sticks, 1 to 5 m long, 10 to 40 mm thick."""
    u = generator("gym thin").random((THIN_KINDS, 3))
    half, thick = np.round(0.5 + 2.0 * u[:, 0], 4).tolist(), np.round(0.005 + 0.015 * u[:, 1], 5).tolist()
    bars = [Box((t, t, h)) if k % 2 else Cylinder(t, h) for k, (h, t) in enumerate(zip(half, thick, strict=True))]
    return tuple(bars)


@dataclass(frozen=True, eq=False)
class Stock:
    """All shapes that a room may hold, and where those of each kind begin."""

    shapes: tuple[Shape, ...]
    first: dict[str, int]
    """First index of a kind ("panel", "object", "thin", "tree") or of a wall by its box's normal ("wall_0", ...)."""


@cache
def stock(room: Room) -> Stock:
    """The shapes of one room, the same for every environment."""
    kinds: set[str] = {a.kind for a in room.assets}
    shapes: list[Shape] = []
    first: dict[str, int] = {}
    for kind, members in _members(kinds):
        first[kind] = len(shapes)
        shapes += members
    return Stock(tuple(shapes), first)


def _members(kinds: set[str]) -> list[tuple[str, list[Shape]]]:
    found: list[tuple[str, list[Shape]]] = []
    if "panel" in kinds:
        found.append(("panel", [PANEL]))
    if "object" in kinds:
        found.append(("object", list(OBJECTS)))
    if "wall" in kinds:
        found += [(f"wall_{k}", [box]) for k, box in enumerate((WALL_X, WALL_Y, WALL_Z))]
    if "thin" in kinds:
        found.append(("thin", list(thin_rods())))
    if "tree" in kinds:
        found.append(("tree", [link for tree in trees() for link in tree.links]))
    return found
