"""Stated numbers of the Aerial Gym environments (ntnu-arl/aerial_gym_simulator at f0d0f05, BSD-3; arXiv 2503.01471).

Ratios place things within a room's bounds: 0 is the lower corner, 1 the upper one. Orders are those of the source: what is kept
comes first, then the lists in the order given here. Marks: [O] our choice where the source is silent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from airworthy.geometry import Box
from airworthy.scenes.record import Vector3

Kind = Literal["panel", "object", "tree", "thin", "wall"]
_TURN = math.pi

PANEL = Box((0.05, 0.6, 1.5))
OBJECTS = (Box((0.05, 0.25, 0.25)), Box((0.05, 0.5, 0.5)), Box((0.05, 0.05, 1.0)), Box((0.2, 0.2, 0.2)))
"""Plates of 0.5 m and 1 m, a rod, a small cube."""
WALL_X, WALL_Y, WALL_Z = Box((0.1, 10.0, 10.0)), Box((10.0, 0.1, 10.0)), Box((10.0, 10.0, 0.1))
"""Normal to x, y and z."""
HALF_COUNT_PROBABILITY = 0.15
"""With which a room gets half of its obstacles at reset."""
SPAWN = ((0.10, 0.15, 0.15), (0.20, 0.85, 0.85))
"""Ratios of the box in which robots begin."""
TARGET = ((0.90, 0.1, 0.1), (0.94, 0.9, 0.9))
"""Ratios of the box in which the navigation task puts targets."""
TREE_KINDS, TREE_LINKS = 100, 21
"""Different trees, and cylinders in each [O: number of links]."""
THIN_KINDS = 1000
"""Different thin rods."""
TWIST_LIMIT = (1.0, 0.5)
"""Largest speed [m/s] and rate [rad/s] per axis with which dynamic instances of a dynamic room begin [O]."""


@dataclass(frozen=True)
class Assets:
    """Things of one kind in a room."""

    kind: Kind
    count: int
    lower: Vector3
    """Ratios."""
    upper: Vector3
    angle: Vector3
    """Largest roll, pitch and yaw, either way [rad]."""
    keep: bool = False
    """Never removed by the curriculum."""
    semantic: str = "object"
    box: Box | None = None
    """Of walls."""
    moves: bool = False


def _wall(name: str, ratio: Vector3, box: Box, keep: bool) -> Assets:
    return Assets("wall", 1, ratio, ratio, (0.0, 0.0, 0.0), keep, name, box)


def _walls(keep: bool) -> tuple[Assets, ...]:
    return (
        _wall("left_wall", (0.5, 1.0, 0.5), WALL_Y, keep),
        _wall("right_wall", (0.5, 0.0, 0.5), WALL_Y, keep),
        _wall("back_wall", (0.0, 0.5, 0.5), WALL_X, keep),
        _wall("front_wall", (1.0, 0.5, 0.5), WALL_X, keep),
        _wall("top_wall", (0.5, 0.5, 1.0), WALL_Z, keep),
        _wall("bottom_wall", (0.5, 0.5, 0.0), WALL_Z, keep),
    )


_ANY = (_TURN, _TURN, _TURN)
_PANELS = Assets("panel", 3, (0.3, 0.05, 0.05), (0.85, 0.95, 0.95), (0.0, 0.0, _TURN / 3.0), True, "panel")
_OBJECTS = Assets("object", 35, (0.3, 0.05, 0.05), (0.85, 0.9, 0.9), _ANY)
_TREE = Assets("tree", 1, (0.1, 0.1, 0.0), (0.9, 0.9, 0.0), (0.0, _TURN / 6.0, _TURN), True, "tree")
_THIN = Assets("thin", 100, (0.3, 0.05, 0.05), (0.85, 0.95, 0.95), _ANY, False, "thin")


@dataclass(frozen=True)
class Room:
    """An environment: bounds to draw from, and what stands in it."""

    lower: tuple[Vector3, Vector3]
    """Least and greatest lower corner [m]."""
    upper: tuple[Vector3, Vector3]
    """Least and greatest upper corner [m]."""
    assets: tuple[Assets, ...] = ()
    ground: bool = False
    """A ground plane at z = 0."""

    def ordered(self) -> tuple[Assets, ...]:
        """Return kept assets first: the order in which the curriculum counts."""
        return (*(a for a in self.assets if a.keep), *(a for a in self.assets if not a.keep))

    @property
    def kept(self) -> int:
        return sum(a.count for a in self.assets if a.keep)

    @property
    def count(self) -> int:
        """Assets in all, walls included."""
        return sum(a.count for a in self.assets)


_OBSTACLE_LOWER = ((-2.0, -4.0, -3.0), (-1.0, -2.5, -2.0))
_OBSTACLE_UPPER = ((9.0, 2.5, 2.0), (10.0, 4.0, 3.0))

ROOMS: dict[str, Room] = {
    "obstacle_room": Room(_OBSTACLE_LOWER, _OBSTACLE_UPPER, (_PANELS, _OBJECTS, *_walls(True))),
    "gym_forest": Room(
        ((-5.0, -5.0, -1.0), (-5.0, -5.0, -1.0)),
        ((5.0, 5.0, 3.0), (5.0, 5.0, 3.0)),
        (_TREE, _OBJECTS, _walls(True)[5]),
    ),
    "lidar_room": Room(
        ((-7.5, -7.5, -5.0), (-5.0, -5.0, -3.0)),
        ((5.0, 5.0, 3.0), (7.5, 7.5, 5.0)),
        (
            Assets("panel", 15, (0.35, 0.0, 0.0), (1.0, 1.0, 1.0), (0.0, 0.0, _TURN / 3.0), False, "panel"),
            Assets("object", 70, (0.3, 0.0, 0.0), (1.0, 1.0, 1.0), _ANY),
            *_walls(False),
        ),
    ),
    "dynamic_room": Room(
        ((-2.0, -4.0, 0.0), (-1.0, -2.5, 0.0)),
        ((9.0, 2.5, 4.0), (10.0, 4.0, 5.0)),
        (Assets("object", 40, (0.3, 0.05, 0.05), (0.85, 0.9, 0.9), _ANY, moves=True),),
        ground=True,
    ),
    "empty_room": Room(((-1.0, -1.0, -1.0), (-1.0, -1.0, -1.0)), ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))),
    "thin_room": Room(_OBSTACLE_LOWER, _OBSTACLE_UPPER, (_THIN, *_walls(True))),
}
"""Rooms by name. The thin room is ours: the source makes the rods but switches them off everywhere."""

ALIASES = {
    "env_with_obstacles": "obstacle_room",
    "forest_env": "gym_forest",
    "env_with_lidar_nav_obstacles": "lidar_room",
    "dynamic_environment": "dynamic_room",
    "empty_env": "empty_room",
}
"""Names of the source."""
