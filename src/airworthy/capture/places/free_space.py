"""The room of a captured place: connected free space in which a vehicle fits, its bounds, and a start and a goal in it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayFloat, ArrayIndex, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.geometry.distance import DistanceField, distance_field
from airworthy.scenes.carved import FREE, OCCUPIED, UNKNOWN
from airworthy.scenes.record import Pose, Region, Vector3

__all__ = ["FreeRoom", "NoRoomError", "enclosure", "free_room", "reachable_states"]

HEIGHT = 1.25
"""Of start and goal above the lowest free cell, where there is room [m], as in other scenes that name none."""
_LAYER = 0.3
"""Places this far above and below that count as at that height [m]."""
_WIDE = 0.8
"""Clearance that start and goal should have, if there is so much [m]."""
_PLACES = 200
"""Places among which start and goal are chosen."""
_PAIRS = 4000
"""Pairs whose way is looked at in one go."""
_ENCLOSED = 0.6
"""A free cell is inside where it is this much as enclosed as half of the cameras are (ours: the air behind a window is seen in
cones between unknown space, a room between surfaces; outdoors nothing is much enclosed, cameras neither)."""
_NOOK = 0.3
"""Free cells that the ball cannot cover stay free this far from those that it can [m]: corners, and under tables."""
_CORNER = 0.5 * math.sqrt(3.0)
"""From the middle of a cell to its corner, in edges."""


class NoRoomError(AirworthyError):
    """No free space that is known holds a vehicle.

    Args:
        radius: Of the ball that was to fit [m].
    """

    def __init__(self, radius: float) -> None:
        seen = "the cameras saw too little of this place from several sides"
        self.found = f"No connected free space holds a ball of {radius:g} m: {seen}."
        """What was found, without what to do: that depends on who asked."""
        super().__init__(f"{self.found} Film more of it, or say that a smaller vehicle flies (radius).")


@dataclass(frozen=True, eq=False)
class FreeRoom:
    """Where a vehicle can be without leaving what is known to be free."""

    inside: ArrayBool
    """(nx, ny, nz) cells that a ball of the vehicle's radius can cover, all connected for it."""
    bounds: Region
    """Box around them, world [m]."""
    start: Pose
    goal: Pose
    clearance: float
    """Least distance of the straight way between the two from what is not known to be free [m]."""


def enclosure(states: ArrayU8) -> Array:
    """Return of each free cell the share of 26 directions in which a surface ends its free space, and not unknown space.

    Args:
        states: (nx, ny, nz) of UNKNOWN, FREE, OCCUPIED.

    Returns:
        (nx, ny, nz) in [0, 1]; 0 where a cell is not free.
    """
    free, solid = states == FREE, states == OCCUPIED
    count = np.zeros(states.shape, np.uint8)
    for step in np.ndindex(3, 3, 3):
        direction = np.array(step) - 1
        if direction.any():
            count += _ends_at_surface(free, solid, direction)
    return np.where(free, count / 26.0, 0.0)


def _ends_at_surface(free: ArrayBool, solid: ArrayBool, direction: ArrayIndex) -> ArrayBool:
    """Tell of each cell whether the first cell in a direction that is not free is a surface's, slice by slice."""
    axis = int(np.flatnonzero(direction)[0])
    others = [k for k in range(3) if k != axis]
    free, solid = np.moveaxis(free, axis, 0), np.moveaxis(solid, axis, 0)
    found = np.zeros(free.shape, bool)
    forward = direction[axis] > 0
    order = range(len(free) - 2, -1, -1) if forward else range(1, len(free))
    for k in order:
        ahead = k + int(direction[axis])
        found[k] = _shifted(solid[ahead] | (free[ahead] & found[ahead]), direction[others])
    return np.moveaxis(found, 0, axis)


def _shifted(plane: ArrayBool, step: ArrayIndex) -> ArrayBool:
    """Return what lies a step on in a plane; nothing beyond its edge."""
    out = np.zeros_like(plane)
    to, of = ([], [])
    for d, n in zip(step, plane.shape, strict=True):
        to.append(slice(max(-d, 0), n - max(d, 0)))
        of.append(slice(max(d, 0), n - max(-d, 0)))
    out[tuple(to)] = plane[tuple(of)]
    return out


def free_room(states: ArrayU8, lower: Array, resolution: float, radius: float, cameras: ArrayFloat) -> FreeRoom:
    """Return the largest connected room in which a ball fits, and two far places in it with a free straight way between.

    Free space that is much less enclosed than the cameras are is not of the room: it was seen through a window or a gap.

    Args:
        states: (nx, ny, nz) of UNKNOWN, FREE, OCCUPIED.
        lower: Lower corner of the grid, world [m], (3,).
        resolution: Edge of a cell [m].
        radius: Of the ball [m].
        cameras: Where the images were taken, world [m], (n, 3).

    Raises:
        NoRoomError: A ball of this radius fits nowhere, or only in one place.
    """
    free = np.pad((states == FREE) & _indoors(states, lower, resolution, cameras), 1)
    field = distance_field(~free, resolution, lower - resolution)
    # To the nearest corner of a cell that is not free, at least.
    room = field.values.astype(np.float64) - _CORNER * resolution
    fits = _largest(free & (room >= radius))
    if fits is None or np.count_nonzero(fits) < 2:
        raise NoRoomError(radius)
    near = distance_field(fits, resolution).values
    inside = free & (near <= radius)
    cells = np.argwhere(inside) - 1
    low = np.asarray(lower) + resolution * cells.min(axis=0)
    high = np.asarray(lower) + resolution * (cells.max(axis=0) + 1)
    start, goal, least = _ends(fits, room, field, float(low[2]), radius, resolution, np.asarray(lower) - resolution)
    ahead = goal - start
    yaw = math.atan2(ahead[1], ahead[0])
    inner = inside[1:-1, 1:-1, 1:-1]
    return FreeRoom(inner, Region(_triple(low), _triple(high)), Pose(_triple(start), yaw), Pose(_triple(goal), yaw), least)


def _indoors(states: ArrayU8, lower: Array, resolution: float, cameras: ArrayFloat) -> ArrayBool:
    """Tell which cells are about as enclosed as the cameras are."""
    from scipy.ndimage import uniform_filter

    share = enclosure(states)
    # A mean over neighbours: single directions jump at the edges of furniture.
    mean = uniform_filter(share, 3) / np.maximum(uniform_filter((states == FREE).astype(np.float64), 3), 1e-9)
    at = np.clip(((cameras - lower) / resolution).astype(np.int64), 0, np.array(states.shape) - 1)
    seen = mean[tuple(at[states[tuple(at.T)] == FREE].T)]
    return np.asarray(mean >= (_ENCLOSED * np.median(seen) if len(seen) else 0.0))


def reachable_states(states: ArrayU8, room: FreeRoom, lower: Array, resolution: float) -> ArrayU8:
    """Return states in which only such cells are free as hang together with the room and lie in its bounds.

    What rays freed elsewhere, behind a window or through a gap of a wall, nobody can reach: it is unknown.

    Args:
        states: (nx, ny, nz) of UNKNOWN, FREE, OCCUPIED.
        room: Of them.
        lower: Lower corner of the grid, world [m], (3,).
        resolution: Edge of a cell [m].
    """
    from scipy.ndimage import label

    within = np.ones(states.shape, bool)
    for axis, count in enumerate(states.shape):
        middle = lower[axis] + resolution * (np.arange(count) + 0.5)
        some = (middle > room.bounds.lower[axis]) & (middle < room.bounds.upper[axis])
        within &= some.reshape([-1 if k == axis else 1 for k in range(3)])
    # A straight way through a window leads out of the room, too: what is far from where the ball fits is not taken.
    near = distance_field(room.inside, resolution).values <= _NOOK
    group, _ = label((states == FREE) & within & near)
    mine = np.unique(group[room.inside])
    kept = np.isin(group, mine[mine > 0])
    return np.where((states == FREE) & ~kept, UNKNOWN, states).astype(np.uint8)


def _largest(cells: ArrayBool) -> ArrayBool | None:
    """Return the largest group of cells that touch by faces; None where there are none."""
    from scipy.ndimage import label

    group, count = label(cells)
    if not count:
        return None
    sizes = np.bincount(group.reshape(-1))
    sizes[0] = 0
    return np.asarray(group == np.argmax(sizes), bool)


def _ends(
    fits: ArrayBool, room: Array, field: DistanceField, floor: float, radius: float, resolution: float, corner: Array
) -> tuple[Array, Array, float]:
    """Return start and goal, and the least clearance between them: of pairs that see each other, the farthest."""
    cells = _places(fits, room, floor, resolution, corner)
    points = corner + resolution * (cells + 0.5)
    first, second = np.triu_indices(len(points), 1)
    away = points[second] - points[first]
    # Level ways are better ones: a metre up or down counts against two metres along.
    worth = np.linalg.norm(away, axis=1) - 2.0 * np.abs(away[:, 2])
    order = np.argsort(-worth, kind="stable")
    for begin in range(0, len(order), _PAIRS):
        some = order[begin : begin + _PAIRS]
        least = _way_clearance(field, points[first[some]], points[second[some]], resolution)
        free = np.flatnonzero(least >= radius)
        if len(free):
            k = free[0]
            return points[first[some[k]]], points[second[some[k]]], float(least[k])
    raise AirworthyError("No two places of the free space see each other: film more of the place from several sides.")


def _places(fits: ArrayBool, room: Array, floor: float, resolution: float, corner: Array) -> ArrayIndex:
    """Return cells (n, 3) for start and goal: at flying height and with room around where there are such, evenly thinned."""
    cells = np.argwhere(fits)
    clear = room[fits]
    height = corner[2] + resolution * (cells[:, 2] + 0.5) - floor
    level = np.abs(height - HEIGHT) <= _LAYER
    if np.count_nonzero(level) < 2:
        level = np.abs(height - np.median(height)) <= _LAYER
    wide = clear >= min(_WIDE, 0.7 * float(clear.max()))
    for kept in (level & wide, level, wide):
        if np.count_nonzero(kept) >= 2:
            cells = cells[kept]
            break
    # The outermost of eight directions are always there: the farthest pair is among them.
    turn = np.arange(8) * 0.25 * np.pi
    outer = np.argmax(cells[:, :2] @ np.stack([np.cos(turn), np.sin(turn)]), axis=0)
    some = np.linspace(0, len(cells) - 1, min(_PLACES, len(cells))).round().astype(int)
    return cells[np.unique(np.concatenate([outer, some]))]


def _way_clearance(field: DistanceField, begin: Array, end: Array, resolution: float) -> Array:
    """Return the least distance (n,) of straight ways from what is not free [m], in steps of half a cell."""
    longest = float(np.linalg.norm(end - begin, axis=1).max())
    share = np.linspace(0.0, 1.0, max(int(np.ceil(longest / (0.5 * resolution))), 2))
    points = begin[:, None] + share[:, None] * (end - begin)[:, None]
    value, _ = field.sample(points.reshape(-1, 3))
    # The field is that of middles of cells, and the way passes within a quarter of a cell of a sample.
    return np.asarray(value.reshape(points.shape[:2]).min(axis=1) - (_CORNER + 0.25) * resolution)


def _triple(values: Array) -> Vector3:
    return float(values[0]), float(values[1]), float(values[2])
