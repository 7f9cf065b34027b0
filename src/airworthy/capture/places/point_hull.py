"""How far a place reaches for certain: the convex hull of what was triangulated, and of the cameras.

A ray of a training that is not done may end far behind a plain ceiling: nothing on it tells its depth to few cameras, and a
gaussian behind it has the right colour in all of them. Cells before such an end look free. But a room lies between its
surfaces, and next to every surface something has texture, if only an edge or a lamp: free space beyond all triangulated
points and all cameras has nothing that speaks for it but splats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.capture.places.depth_views import DepthViews
from airworthy.core.arrays import Array, ArrayFloat, ArrayU8
from airworthy.scenes.carved import FREE, UNKNOWN

__all__ = ["PointHull", "bounded_states", "ends_beyond", "point_hull", "walled"]

_LEAST_POINTS = 100
"""Fewer tell no hull: every further point would move it."""
_NEIGHBOURS, _NEAR, _LONELY = 3, 0.3, 4.0
"""A point is a stray, and does not count, where its third neighbour is farther than 0.3 m [m], and than four times what half of
the points have: triangulated mistakes stand alone."""
_AT_ONCE = 100_000


@dataclass(frozen=True, eq=False)
class PointHull:
    """A convex hull, by the planes of its faces."""

    normals: Array
    """(k, 3) unit, outward."""
    offsets: Array
    """(k,) A place x is within where normals @ x + offsets <= 0 for all faces [m]."""

    def beyond(self, points: ArrayFloat) -> Array:
        """Return how far places (n, 3) lie beyond the farthest face's plane [m], (n,); not positive within.

        Args:
            points: World [m].
        """
        place = np.asarray(points, np.float64)
        found = np.empty(len(place))
        for first in range(0, len(place), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            found[some] = (place[some] @ self.normals.T + self.offsets).max(axis=1)
        return found


def point_hull(points: ArrayFloat | None, cameras: ArrayFloat) -> PointHull | None:
    """Return the convex hull of triangulated points, strays left out, and of cameras; None where too few points tell it.

    Args:
        points: Sparse points of a capture, world [m], (n, 3); None: it has none.
        cameras: Where its images were taken, world [m], (m, 3).
    """
    from scipy.spatial import ConvexHull, QhullError, cKDTree

    if points is None:
        return None
    place = np.asarray(points, np.float64)
    place = place[np.isfinite(place).all(axis=1)]
    if len(place) < _LEAST_POINTS:
        return None
    third = cKDTree(place).query(place, k=[_NEIGHBOURS + 1])[0][:, 0]
    kept = place[third <= max(_NEAR, _LONELY * float(np.median(third)))]
    try:
        hull = ConvexHull(np.concatenate([kept, np.asarray(cameras, np.float64)]))
    except QhullError:
        # All of it in one plane: a wall that was photographed for itself.
        return None
    faces = np.unique(hull.equations, axis=0)
    return PointHull(faces[:, :3], faces[:, 3])


def walled(hull: PointHull | None, walls: Sequence[tuple[Array, float]]) -> PointHull | None:
    """Return a hull that ends at walls, too: at mirrors, behind which there is a room for cameras alone.

    Args:
        hull: Of points and cameras; None: there is none.
        walls: Normal towards the room (3,) and offset [m] of each: a place x is in the room where normal @ x >= offset.
    """
    if not walls:
        return hull
    normals, offsets = -np.array([normal for normal, _ in walls]), np.array([offset for _, offset in walls])
    if hull is None:
        return PointHull(normals, offsets)
    return PointHull(np.concatenate([hull.normals, normals]), np.concatenate([hull.offsets, offsets]))


def bounded_states(states: ArrayU8, lower: Array, resolution: float, hull: PointHull) -> ArrayU8:
    """Return states in which free cells are unknown whose middle lies beyond the hull.

    Args:
        states: (nx, ny, nz) of UNKNOWN, FREE, OCCUPIED.
        lower: Lower corner of the grid, world [m], (3,).
        resolution: Edge of a cell [m].
        hull: Of points and cameras.
    """
    free = np.argwhere(states == FREE)
    out = free[hull.beyond(np.asarray(lower) + resolution * (free + 0.5)) > 0.0]
    found = states.copy()
    found[tuple(out.T)] = UNKNOWN
    return found


def ends_beyond(views: DepthViews, hull: PointHull, margin: float) -> float:
    """Return the share of the rays that free anything, of which what they free reaches beyond the hull by more than a margin.

    Args:
        views: Depths that cameras see.
        hull: Of points and cameras.
        margin: What depths may be off by [m].
    """
    beyond = total = 0
    for k in range(len(views)):
        ends = views.points(k, freed=True)
        total += len(ends)
        beyond += int(np.count_nonzero(hull.beyond(ends) > margin))
    return beyond / max(total, 1)
