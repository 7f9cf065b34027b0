"""What is hit in a captured place: a thin closed shell where surfaces were seen; and the evidence that it lies there."""

from __future__ import annotations

import numpy as np

from airworthy.capture.places.carving import REACH, Carving
from airworthy.capture.places.depth_views import DepthViews
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool, ArrayFloat, ArrayU8
from airworthy.geometry import Mesh, surface_nets
from airworthy.scenes.carved import FREE, OCCUPIED, UNKNOWN

__all__ = ["coverage_picture", "depth_against_points", "occupied_mesh"]

_THIN = 0.25
"""Depth, in cells, that is given to an occupied cell in which no camera's mean distance is negative: a wire, or a pole."""
_THIN_HITS = 4
"""Cameras that must see something there, and as many as see what is behind its middle: fewer are noise of depth, of which a
training that is not done has much before its walls."""
_GROUP = 30
"""Shells of fewer cells than this are specks."""
_COLORS = {UNKNOWN: (44, 48, 58), FREE: (214, 232, 240), OCCUPIED: (232, 140, 60)}
_ROUTE = (200, 40, 60)
_NEAR_POINTS = 0.5
"""Points farther than this before or behind what is rendered are hidden by it, or strays [m]."""


def occupied_mesh(carving: Carving, states: ArrayU8) -> Mesh:
    """Return the closed shell of the surfaces that were seen, as precise as depths are, not as cells.

    Its front lies where the mean distance of the cameras is zero, its back `REACH` cells behind or where nothing was seen any
    more. Where a cell is occupied for sure and no mean distance around is negative (something thinner than a cell), the cell's
    middle is taken for inside.

    Args:
        carving: Distances to surfaces.
        states: (nx, ny, nz) of UNKNOWN, FREE, OCCUPIED.
    """
    reach = REACH * carving.resolution
    known = np.isfinite(carving.distance)
    front = np.where(known, carving.distance, reach).astype(np.float64)
    # Behind the surface the shell ends: there what is positive again is its back.
    field = np.maximum(front, -(reach + front))
    field = np.where(states == FREE, np.maximum(field, 0.05 * carving.resolution), field)
    sure = (carving.hits >= _THIN_HITS) & (carving.hits >= carving.through)
    thin = (states == OCCUPIED) & sure & (field >= 0.0) & ~_has_neighbour(field < 0.0)
    field = np.where(thin, -_THIN * carving.resolution, field)
    field = np.where(_in_large_groups(field < 0.0, _GROUP), field, np.maximum(field, 0.5 * carving.resolution))
    return surface_nets(field, carving.lower, carving.resolution)


def _has_neighbour(cells: ArrayBool) -> ArrayBool:
    """Tell which cells have one of these among their 26 neighbours, or are one."""
    from scipy.ndimage import binary_dilation

    return np.asarray(binary_dilation(cells, np.ones((3, 3, 3), bool)), bool)


def _in_large_groups(cells: ArrayBool, least: int) -> ArrayBool:
    from scipy.ndimage import label

    group, _ = label(cells, np.ones((3, 3, 3), bool))
    large = np.bincount(group.reshape(-1)) >= least
    large[0] = False
    return np.asarray(large[group], bool)


# ---- Evidence -----------------------------------------------------------------------------------------------------------


def depth_against_points(views: DepthViews, points: ArrayFloat, most: int = 20_000) -> tuple[Array, Array]:
    """Return depths of a capture's points, along the optical axes of the cameras, and what the splats have there.

    A point counts in every camera in whose image it lies, where depth is certain and no farther than half a metre from it:
    points that something hides, or that were triangulated from a mistake, are farther.

    Args:
        views: Depths that cameras see.
        points: Sparse points of the capture (n, 3), world [m].
        most: Points that are looked at, evenly among all.

    Returns:
        Depth of the points (m,) and of the splats (m,) [m].
    """
    some = np.asarray(points, np.float64)[np.linspace(0, len(points) - 1, min(most, len(points))).round().astype(int)]
    wanted, found = [], []
    for k in range(len(views)):
        inside = frames.rotate_inverse(views.attitude[k], some - views.position[k])
        z = np.where(inside[:, 2] > 1e-3, inside[:, 2], 1.0)
        fx, fy, cx, cy = views.intrinsics[k]
        u, v = fx * inside[:, 0] / z + cx, fy * inside[:, 1] / z + cy
        height, width = views.depth[k].shape
        seen = (inside[:, 2] > 1e-3) & (u >= 0.0) & (u < width) & (v >= 0.0) & (v < height)
        depth = views.depth[k][v[seen].astype(int), u[seen].astype(int)].astype(np.float64)
        near = (depth > 0.0) & (np.abs(depth - z[seen]) <= _NEAR_POINTS)
        wanted.append(z[seen][near])
        found.append(depth[near])
    return np.concatenate(wanted), np.concatenate(found)


def coverage_picture(states: ArrayU8, way: Array | None = None) -> ArrayU8:
    """Return what is known of a place, seen from above, north (y) up: light where a column is free, orange where it holds a
    surface, dark where nothing in it is known.

    Args:
        states: (nx, ny, nz) of UNKNOWN, FREE, OCCUPIED.
        way: Straight ways that are drawn, as cells (n, 2): begin, end, begin, end, ...; None: none.

    Returns:
        (height, width, 3), a pixel for each column.
    """
    free = (states == FREE).sum(axis=2)
    solid = (states == OCCUPIED).sum(axis=2)
    # A floor is occupied everywhere: a column is a surface's where more of it is occupied than free.
    kind = np.where(solid > free, OCCUPIED, np.where(free > 0, FREE, np.where(solid > 0, OCCUPIED, UNKNOWN)))
    table = np.array([_COLORS[key] for key in (UNKNOWN, FREE, OCCUPIED)], np.float64)
    share = np.clip(free / max(float(free.max()), 1.0), 0.0, 1.0)[..., None]
    picture = table[kind]
    # The more of a column is known to be free, the lighter.
    picture = np.where((kind == FREE)[..., None], (0.45 + 0.55 * share) * picture, picture)
    for begin, end in zip(way[::2], way[1::2], strict=True) if way is not None else ():
        count = int(np.abs(end - begin).max()) + 1
        x, y = np.linspace(begin, end, count).round().astype(int).T
        picture[np.clip(x, 0, len(picture) - 1), np.clip(y, 0, picture.shape[1] - 1)] = _ROUTE
    return np.ascontiguousarray(np.rint(picture).astype(np.uint8).swapaxes(0, 1)[::-1])
