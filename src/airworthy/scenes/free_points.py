"""Start and goal in a place that names none: where there is room to fly, far apart, with a free straight way between them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.geometry import GeometryBatch, RayTable, cast, occluded
from airworthy.geometry.distance import clearance
from airworthy.scenes.record import Pose, Scene, Vector3

__all__ = ["free_path", "with_free_path"]

_WIDE = 1.2
"""Clearance that a start should have, if there is room [m]."""
_NARROW = 0.4
"""Clearance of the straight way from start to goal [m]."""
_LATTICE = (25, 25, 9)

# ---- In a scene of meshes: at flying height above what one could stand on ---------------------------------------------------

_HEIGHT = 1.25
"""Above the surface below, where it fits [m]; half of a lower gap."""
_PATH = 12.0
"""Longest way from start to goal [m]."""
_CELL = 0.4
"""Least distance of columns [m]."""
_COLUMNS = 48
"""Most columns along an axis."""
_SURFACES = 8
"""Most surfaces met in a column, from above."""
_AROUND = 4
"""Neighbours that a column has inside a floor; fewer above its edge."""
_AREA = 4.0
"""Free floors smaller than this [m2] are no place to fly in: the thing is an object to fly around."""
_INDOORS, _OUTDOORS, _NEAR_SURFACE, _ROOF = 3.0, 1.0, 0.3, 0.1
"""What an area counts under a ceiling, under the sky, beside everything at the lowest height, and on top of everything: a
room's inside is wanted, not its roof, though that is larger; a plane is wanted, not the tower on it."""
_TOP = (0.8, 1.5)
"""A roof lies above this share of the whole height, and so far above the lowest point [m]."""


@dataclass(frozen=True, eq=False)
class _FreePoints:
    """Places at flying height, with how much room they have."""

    points: Array
    """(n, 3) world [m]."""
    column: ArrayInt
    """(n,) column of the lattice."""
    weight: Array
    """(n,) what their area counts."""
    room: Array
    """(n,) clearance [m]."""

    def part(self, kept: ArrayBool | ArrayInt) -> _FreePoints:
        """Return some of them."""
        return _FreePoints(self.points[kept], self.column[kept], self.weight[kept], self.room[kept])


def with_free_path(scene: Scene, lower: Array, upper: Array) -> Scene:
    """Return a scene of meshes with a free start and goal, within its bounds.

    Both lie in the largest connected free space at flying height above a surface, where what lies under a ceiling counts more
    than what lies under the sky; around the middle of it, up to 12 m apart, with a free straight way. Around what has no such
    space, an object, they are as `free_path` finds them. Where nothing is below, a scan saw nothing and a model ends: both
    lie above a surface if they can.

    Args:
        scene: With bounds.
        lower: Lower corner of the box around what there is, world [m], (3,).
        upper: Upper corner, world [m], (3,).
    """
    from airworthy.scenes.batch import SceneBatch

    batch = SceneBatch(scene).geometry
    bounds = np.array(scene.bounds.lower), np.array(scene.bounds.upper)

    def distance(points: Array) -> Array:
        return np.asarray(clearance(batch, points).distance, float)

    pair = None
    for supported in (True, False):
        if pair is None:
            found = _largest(batch, distance, bounds, lower, upper, supported)
            pair = None if found is None else _far_apart(batch, distance, found)
    if pair is None:
        start, goal = free_path(distance, *bounds, 0.5 * (lower + upper))
        return replace(scene, start=start, goal=goal)
    ahead = pair[1] - pair[0]
    return replace(scene, start=Pose(_triple(pair[0]), math.atan2(ahead[1], ahead[0])), goal=Pose(_triple(pair[1])))


def _largest(
    batch: GeometryBatch,
    distance: Callable[[Array], Array],
    bounds: tuple[Array, Array],
    lower: Array,
    upper: Array,
    supported: bool,
) -> _FreePoints | None:
    """Return the connected free places of the largest weighted area, above a surface alone or not; None around an object."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    size = bounds[1] - bounds[0]
    cell = max(_CELL, float(size[:2].max()) / _COLUMNS)
    count = np.maximum(np.floor(size[:2] / cell).astype(int), 1)
    # Symmetric about the middle, so that they lie alike in the thing wherever it stands.
    axes = [0.5 * (bounds[0][k] + bounds[1][k]) + cell * (np.arange(n) - 0.5 * (n - 1)) for k, n in enumerate(count)]
    found = _above_surfaces(
        batch, np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2), bounds, lower, upper, supported
    )
    found = replace(found, room=distance(found.points))
    found = found.part(found.room >= _NARROW)
    if not len(found.points):
        return None
    first, second = _neighbours(found, count[1], cell)
    connected = ~occluded(batch, found.points[first], found.points[second])
    joined = coo_array((np.ones(int(connected.sum())), (first[connected], second[connected])), shape=(len(found.points),) * 2)
    group = connected_components(joined, directed=False)[1]
    best = group == np.argmax(np.bincount(group, found.weight))
    if supported:
        # Neither begins nor ends above an edge.
        inner = best & (np.bincount(np.concatenate([first[connected], second[connected]]), minlength=len(best)) >= _AROUND)
        best = inner if inner.any() else best
    if cell * cell * np.count_nonzero(best) < _AREA or found.weight[best].max() < _OUTDOORS:
        return None
    return found.part(best)


def _above_surfaces(
    batch: GeometryBatch, columns: Array, bounds: tuple[Array, Array], lower: Array, upper: Array, supported: bool
) -> _FreePoints:
    """Return the places above all surfaces that columns (n, 2) meet; if they need no support, also where they meet none."""
    down = RayTable(np.array([[[0.0, 0.0, -1.0]]]))
    roof = lower[2] + max(_TOP[0] * float(upper[2] - lower[2]), _TOP[1])
    active, ceiling = np.arange(len(columns)), np.full(len(columns), np.inf)
    begin = np.full(len(columns), bounds[1][2] + 1.0)
    points, column, weight = [], [], []
    for _ in range(_SURFACES):
        at = np.column_stack([columns[active], begin[active]])
        far = cast(batch, down, at, np.tile([0.0, 0.0, 0.0, 1.0], (len(at), 1)), np.zeros(len(at), int), ("range",))["range"]
        met = np.isfinite(far.reshape(-1))
        surface = np.where(met, begin[active] - far.reshape(-1), bounds[0][2])
        gap = ceiling[active] - surface
        open_ = ~np.isfinite(ceiling[active])
        kind = np.where(met, np.where(open_, np.where(surface >= roof, _ROOF, _OUTDOORS), _INDOORS), _NEAR_SURFACE)
        # Under a hill's surface there is no place to fly.
        usable = (gap >= 2.0 * _NARROW) & (met | (open_ & (not supported)))
        height = surface + np.minimum(_HEIGHT, 0.5 * gap)
        points.append(np.column_stack([columns[active], height])[usable])
        column.append(active[usable])
        weight.append(kind[usable])
        ceiling[active] = surface
        active = active[met]
        # A millimetre on, and more where the engine's numbers are coarser.
        begin[active] = ceiling[active] - 1e-3 - 1e-5 * np.abs(ceiling[active])
        if not len(active):
            break
    at = np.concatenate(points)
    return _FreePoints(at, np.concatenate(column), np.concatenate(weight), np.zeros(len(at)))


def _neighbours(found: _FreePoints, width: int, cell: float) -> tuple[ArrayInt, ArrayInt]:
    """Return the pairs of places in neighbouring columns that are not much steeper apart than a stair."""
    from scipy.spatial import cKDTree

    x, y = found.column // width, found.column % width
    # Heights scaled so that a pair within 1.01 of each other differs by a column and less than a cell, half a metre at least.
    rise = max(cell, 0.5)
    pairs = cKDTree(np.column_stack([x, y, 0.3 * found.points[:, 2] / rise])).query_pairs(1.045, output_type="ndarray")
    return pairs[:, 0], pairs[:, 1]


def _far_apart(batch: GeometryBatch, distance: Callable[[Array], Array], found: _FreePoints) -> tuple[Array, Array] | None:
    """Return start and goal: of some lines through the middle of the points, the longest that is free."""
    wide = min(_WIDE, 0.7 * float(found.room.max()))
    free = found.points[found.room >= wide]
    middle = found.points.mean(0)
    offset = (free - middle)[:, :2]
    near = np.linalg.norm(offset, axis=1) <= 0.5 * _PATH
    if not near.any():
        near = np.linalg.norm(offset, axis=1) <= np.linalg.norm(offset, axis=1).min() + 0.5 * _PATH
    angle = np.arange(8) * 0.25 * np.pi
    reach = np.where(near[:, None], offset @ np.stack([np.cos(angle), np.sin(angle)]), -np.inf)
    best, longest = None, 0.0
    for index in np.unique(np.argmax(reach, axis=0)):
        goal = free[index]
        visible = free[~occluded(batch, free, np.broadcast_to(goal, free.shape))]
        start = _visible_from(distance, goal, visible, min(_NARROW, 0.5 * wide), _PATH)
        if start is not None and np.linalg.norm(start - goal) > longest + 1e-6:
            best, longest = (start, goal), float(np.linalg.norm(start - goal))
    return best


# ---- Where only distances are known -----------------------------------------------------------------------------------------

_PATH_AROUND = 6.0
"""Longest way from start to goal beside an object, or in a capture [m]."""


def free_path(distance: Callable[[Array], Array], lower: Array, upper: Array, middle: Array) -> tuple[Pose | None, Pose | None]:
    """Return the free place nearest to the middle, looking at it, and the farthest one that it sees; None where there is none.

    In a room that is its middle, beside a statue a place before it.

    Args:
        distance: Distances [m], (n,), of points (n, 3) from what can be hit, negative inside.
        lower: Lower corner of the bounds [m], (3,).
        upper: Upper corner [m], (3,).
        middle: Of the place [m], (3,).
    """
    edge = np.minimum(0.8, 0.25 * (upper - lower))
    axes = [np.linspace(a, b, n) for a, b, n in zip(lower + edge, upper - edge, _LATTICE, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    room = distance(points)
    wide = min(_WIDE, 0.7 * float(room.max()))
    if not wide > 0.05:
        return None, None
    free = points[room >= wide]
    start = free[np.argmin(np.linalg.norm(free - middle, axis=1))]
    goal = _visible_from(distance, start, free, min(_NARROW, 0.5 * wide), _PATH_AROUND)
    ahead = middle if np.hypot(*(middle - start)[:2]) > 0.3 else start + np.array([1.0, 0.0, 0.0]) if goal is None else goal
    yaw = math.atan2(*(ahead - start)[[1, 0]])
    return Pose(_triple(start), yaw), None if goal is None else Pose(_triple(goal))


def _visible_from(distance: Callable[[Array], Array], start: Array, free: Array, least: float, longest: float) -> Array | None:
    """Return the farthest place, at much the same height, to which a straight way leads; of equally good ones the first."""
    far, rise = np.linalg.norm(free - start, axis=1), np.abs(free[:, 2] - start[2])
    usable = (far <= longest) & (far > 0.5)
    # Level ways are better ones: a metre up or down counts against two metres along.
    order = np.argsort(-np.where(usable, far - 2.0 * rise, -np.inf), kind="stable")
    for index in order[: np.count_nonzero(usable)]:
        steps = np.linspace(0.0, 1.0, max(int(far[index] / (0.5 * least)), 2))[:, None]
        if (distance(start + steps * (free[index] - start)) >= least).all():
            return np.asarray(free[index])
    return None


def _triple(values: Array) -> Vector3:
    return float(values[0]), float(values[1]), float(values[2])
