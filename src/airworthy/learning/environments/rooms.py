"""Rooms with boxes that flights of a task go through: drawn once as a pool, chosen and measured out by each flight.

A room of the pool holds where its boxes are as shares of the room, how they are turned, and how large they are; each flight
draws which room it is in and how large that is. Boxes come in the order in which they are placed, so that the first n of a room
are a room, too: one number says how cluttered it is, and a curriculum turns it (specification aerial_gym, section 8).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayFloat, Scalar, Vector
from airworthy.core.ops import clip, floor, where
from airworthy.core.schema import SEED, SHARE, Bound, check_fields

__all__ = ["BOX_NUMBERS", "PLACE", "WALL", "BoxKind", "RoomForm", "draw_rooms", "placed_boxes", "touches"]

WALL = 0.1
"""Half the thickness of a wall [m]; its middle is the room's bound, so that the room is smaller by it on each side."""
WALLS = 6
"""Of every room; levels count them."""
BOX_NUMBERS = 15
"""Of a box of the pool: position as shares 3, axes in the room 9 (row by row), half edges [m] 3."""
PLACE = 9
"""Numbers of a flight's place: room, panels, objects, lower corner 3, upper corner 3 [m]."""
_ROUNDING = 1e-6
"""Ours: grows the cosines between edges, so that parallel ones, whose cross product is none, part nothing."""


@dataclass(frozen=True)
class BoxKind:
    """Boxes of one kind."""

    count: int
    """Of each room."""
    sizes: tuple[tuple[float, float, float], ...]
    """Edges [m], of which each box has one, drawn."""
    lower: tuple[float, float, float]
    """Least share of the room, of the box's middle."""
    upper: tuple[float, float, float]
    """Largest share."""
    turn: tuple[float, float, float]
    """Largest roll, pitch and yaw either way [rad]."""


# Source: specification aerial_gym, section 8.
_OBJECTS = ((0.1, 0.5, 0.5), (0.1, 1.0, 1.0), (0.1, 0.1, 2.0), (0.4, 0.4, 0.4))
_ANY, _SIXTY = 3.141592653589793, 1.0471975511965976


@dataclass(frozen=True)
class RoomForm:
    """Rooms of a task; the defaults are Aerial Gym's `env_with_obstacles`."""

    lower: tuple[tuple[float, float, float], tuple[float, float, float]] = ((-2.0, -4.0, -3.0), (-1.0, -2.5, -2.0))
    """Between which the lower corner is drawn [m]."""
    upper: tuple[tuple[float, float, float], tuple[float, float, float]] = ((9.0, 2.5, 2.0), (10.0, 4.0, 3.0))
    """Between which the upper corner is drawn [m]."""
    panels: BoxKind = BoxKind(3, ((0.1, 1.2, 3.0),), (0.3, 0.05, 0.05), (0.85, 0.95, 0.95), (0.0, 0.0, _SIXTY))
    """Placed first."""
    objects: BoxKind = BoxKind(35, _OBJECTS, (0.3, 0.05, 0.05), (0.85, 0.9, 0.9), (_ANY, _ANY, _ANY))
    """Placed behind them."""
    halved: Annotated[float, SHARE] = 0.15
    """Share of flights with half as many panels and objects. Published, half of the walls go, too: ours all stay, or flights
    would leave the room."""
    pool: Annotated[int, Bound(1, 1 << 16)] = 1024
    """Rooms."""
    seed: Annotated[int, SEED] = 0
    """Of the pool: rooms of another seed are unseen."""

    def __post_init__(self) -> None:
        check_fields(self, "RoomForm.")

    @property
    def boxes(self) -> int:
        """Most in a room."""
        return self.panels.count + self.objects.count

    def place(self, uniforms: Vector, level: Scalar) -> Vector:
        """Return the place of a new flight, `PLACE` numbers.

        Args:
            uniforms: 16 numbers in (0, 1).
            level: Of the curriculum: things placed, walls included.
        """
        u = uniforms
        # Levels count the walls as published, and walls are always there.
        wanted = clip(level - float(WALLS), 0.0, float(self.boxes))
        panels = clip(wanted, 0.0, float(self.panels.count))
        objects = wanted - panels
        few = u[1] < self.halved
        counts = (where(few, floor(0.5 * panels), panels), where(few, floor(0.5 * objects), objects))
        corners = [
            low + (high - low) * u[2 + 3 * end + k]
            for end, (least, most) in enumerate((self.lower, self.upper))
            for k, (low, high) in enumerate(zip(least, most, strict=True))
        ]
        return (floor(u[0] * float(self.pool)), *counts, *corners)


def draw_rooms(form: RoomForm) -> ArrayF32:
    """Return the pool, (pool, boxes, `BOX_NUMBERS`)."""
    return _drawn(form)


@cache
def _drawn(form: RoomForm) -> ArrayF32:
    # 17 is any number: a training's other draws with the same seed must differ from these.
    rng = np.random.default_rng([form.seed, 17])
    found = [_boxes(kind, form.pool, rng) for kind in (form.panels, form.objects)]
    return np.concatenate(found, 1).astype(np.float32)


def _boxes(kind: BoxKind, pool: int, rng: np.random.Generator) -> Array:
    shape = (pool, kind.count)
    at = rng.uniform(kind.lower, kind.upper, (*shape, 3))
    angles = rng.uniform(-1.0, 1.0, (*shape, 3)) * np.array(kind.turn)
    half = 0.5 * np.array(kind.sizes)[rng.integers(0, len(kind.sizes), shape)]
    return np.concatenate([at, euler_matrices(angles).reshape(*shape, 9), half], 2)


def euler_matrices(angles: Array) -> Array:
    """Return rotation matrices (..., 3, 3) of Z-Y-X Euler angles roll, pitch, yaw [rad], (..., 3)."""
    (cr, cp, cy), (sr, sp, sy) = (np.moveaxis(f(angles), -1, 0) for f in (np.cos, np.sin))
    rows = [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
    return np.stack([np.stack(row, -1) for row in rows], -2)


def placed_boxes(form: RoomForm, pool: ArrayF32, place: ArrayFloat) -> tuple[Array, Array, Array]:
    """Return boxes of one flight: middles (n, 3) world [m], axes (n, 3, 3), half edges (n, 3) [m]; columns of axes are edges.

    Args:
        form: Of the rooms.
        pool: From `draw_rooms`.
        place: `PLACE` numbers.
    """
    panels, objects = int(place[1]), int(place[2])
    rows = np.concatenate([np.arange(panels), form.panels.count + np.arange(objects)]).astype(int)
    box = pool[int(place[0])].astype(np.float64)[rows]
    lower, upper = np.asarray(place[3:6], float), np.asarray(place[6:9], float)
    return lower + box[:, :3] * (upper - lower), box[:, 3:12].reshape(-1, 3, 3), box[:, 12:]


def touches(form: RoomForm, pool: ArrayF32, places: Array, body: Vector, position: Array, axes: Array) -> ArrayBool:
    """Tell which flights touch a wall or a box, (env,), by axes that may part two boxes (Gottschalk et al., SIGGRAPH 1996).

    Args:
        form: Of the rooms.
        pool: From `draw_rooms`.
        places: (`PLACE`, env).
        body: Middle of the vehicle's box from its centre of mass 3, and half edges 3, body [m].
        position: (3, env).
        axes: Of the body, (3, 3, env): columns are body x, y, z in the world.
    """
    found = np.zeros(position.shape[1], bool)
    for k in range(position.shape[1]):
        turned = axes[:, :, k]
        middle = position[:, k] + turned @ np.array(body[:3])
        found[k] = _touches(form, pool, places[:, k], middle, turned, np.array(body[3:]))
    return found


def _touches(form: RoomForm, pool: ArrayF32, place: Array, middle: Array, axes: Array, half: Array) -> bool:
    reach = np.abs(axes) @ half
    # Walls lie along the axes: the box around the body is exact for them, and quick.
    if (middle - reach < place[3:6] + WALL).any() or (middle + reach > place[6:9] - WALL).any():
        return True
    boxes = placed_boxes(form, pool, place)
    # Spheres first: few boxes are near.
    near = np.linalg.norm(boxes[0] - middle, axis=1) <= np.linalg.norm(half) + np.linalg.norm(boxes[2], axis=1)
    for at, turned, edges in zip(*(x[near] for x in boxes), strict=True):
        away, cosines = at - middle, axes.T @ turned
        size = np.abs(cosines) + _ROUNDING
        lines = [(axes[:, i], half[i] + size[i] @ edges) for i in range(3)]
        # 15 axes in all: three faces of each box, and nine cross products of their edges; if none parts them, they touch.
        lines += [(turned[:, j], edges[j] + half @ size[:, j]) for j in range(3)]
        for i in range(3):
            for j in range(3):
                (a, b), (c, d) = ((i + 1) % 3, (i + 2) % 3), ((j + 1) % 3, (j + 2) % 3)
                both = half[a] * size[b, j] + half[b] * size[a, j] + edges[c] * size[i, d] + edges[d] * size[i, c]
                lines.append((np.cross(axes[:, i], turned[:, j]), both))
        if all(abs(away @ line) <= extent for line, extent in lines):
            return True
    return False
