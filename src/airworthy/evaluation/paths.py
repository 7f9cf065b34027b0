"""Distance from points to a polyline: exact, for millions of points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

_CHUNK_PAIRS = 1 << 20
_FIRST_CANDIDATES = 4


def path_distance(points: ArrayLike, path: ArrayLike) -> Array:
    """Distance of each point to the nearest point of a polyline (not only to its corners).

    The nearest segments by midpoint are found in a tree and measured exactly. A segment's midpoint is at most half its length
    farther than its nearest point, so once the next midpoint in line is farther than the best distance found plus half the
    longest segment, no other segment can be nearer; points for which that is not yet proved look at twice as many.

    Args:
        points: [m], shape (n, 3); finite.
        path: Corners of the polyline [m], shape (at least 1, 3); finite.

    Returns:
        Distances [m], shape (n,).
    """
    points = np.asarray(points, dtype=np.float64).reshape(-1, 3)
    path = np.asarray(path, dtype=np.float64).reshape(-1, 3)
    if len(path) == 1 or len(points) == 0:
        return np.linalg.norm(points - path[0], axis=1)
    start, along = path[:-1], np.diff(path, axis=0)
    reach = 0.5 * float(np.max(np.linalg.norm(along, axis=1)))
    distance = np.empty(len(points))
    pending, count = np.arange(len(points)), min(_FIRST_CANDIDATES, len(start))
    tree = _tree(start + 0.5 * along)
    while pending.size:
        left = []
        for part in np.array_split(pending, 1 + pending.size * count // _CHUNK_PAIRS):
            midpoint_distance, candidates = tree.query(points[part], k=range(1, count + 1), workers=-1)
            distance[part] = _nearest(points[part], start, along, candidates)
            if count < len(start):
                left.append(part[midpoint_distance[:, -1] < distance[part] + reach])
        pending = np.concatenate(left) if left else pending[:0]
        count = min(2 * count, len(start))
    return distance


def segment_distance(points: Array, start: Array, along: Array) -> Array:
    """Distance of points (..., 3) to segments that start at `start` and run `along`, both (..., 3); zero length is a point."""
    length_squared = np.einsum("...i,...i", along, along)
    offset = points - start
    share = np.einsum("...i,...i", offset, along) / np.where(length_squared > 0.0, length_squared, 1.0)
    rest = offset - np.clip(share, 0.0, 1.0)[..., None] * along
    return np.sqrt(np.einsum("...i,...i", rest, rest))


def _nearest(points: Array, start: Array, along: Array, candidates: NDArray[np.int64]) -> Array:
    best = np.full(len(points), np.inf)
    for column in candidates.T:
        np.minimum(best, segment_distance(points, start[column], along[column]), out=best)
    return best


def _tree(points: Array):  # type: ignore[no-untyped-def]
    from scipy.spatial import cKDTree

    return cKDTree(points)
