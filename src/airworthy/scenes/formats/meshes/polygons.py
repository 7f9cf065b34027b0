"""Polygons that are not convex, cut into triangles: a fan would cover what lies outside them."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayInt, NDArray
from airworthy.scenes.formats._source import ModelSource

__all__ = ["EAR_CORNERS", "cut_concave", "fans"]

EAR_CORNERS = 512
"""Most corners of a polygon that is cut by ears: the work grows with their square."""
_WORK = 4_000_000
"""Most of the sum of these squares over all polygons: some seconds."""
_OVERLAP = -1e-6
"""Share of a polygon's area by which a triangle of its fan must be turned over to be more than rounding."""
_BLOCK = 1 << 16
_OTHER_DIAGONAL = np.array([[1, 2, 3], [1, 3, 0]])
_Point = tuple[float, float]
_RETRIES = 4
"""Times that all corners of a polygon are looked at anew where none is an ear, as where its sides cross."""


def fans(counts: ArrayInt) -> NDArray[np.int32]:
    """Return triangles (T, 3) of polygons, numbers of corners: each polygon's from its first corner, in order.

    Args:
        counts: (P,) corners of each polygon; fewer than three make no triangle.
    """
    pieces = np.maximum(counts - 2, 0)
    first = np.repeat(np.cumsum(counts) - counts, pieces)
    step = np.arange(len(first)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    return np.stack([first, first + step + 1, first + step + 2], 1).astype(np.int32)


def cut_concave(
    source: ModelSource, triangles: NDArray[np.int32], counts: NDArray[np.integer], points: NDArray, corners: NDArray[np.int32]
) -> None:
    """Replace fans that cover what lies outside their polygons, in place; each polygon keeps its number of triangles.

    Quadrilaterals are cut along their other diagonal, larger polygons by ear clipping (Meisters 1975, "Polygons have ears")
    in their own plane, that of Newell's normal. Fans that fill their polygon stay as they are.

    Args:
        source: The file, which gets a note of what is too large for it.
        triangles: (T, 3) numbers of corners, the fans of all polygons in their order.
        counts: (P,) corners of each polygon.
        points: (V, 3).
        corners: (C,) point of each corner.
    """
    chosen = np.flatnonzero(counts > 3)
    if not len(chosen):
        return
    pieces = np.maximum(counts - 2, 0).astype(np.int64)
    starts = np.cumsum(pieces) - pieces
    firsts = np.cumsum(counts) - counts
    left = _WORK
    large = late = cut = 0
    # Whole polygons, some of many triangles at a time.
    for block in np.split(chosen, np.flatnonzero(np.diff(np.cumsum(pieces[chosen]) // _BLOCK)) + 1):
        bad, normals = _overlapping(triangles, starts[block], pieces[block], points, corners)
        polygons = block[bad]
        four = polygons[counts[polygons] == 4]
        for row, corner in enumerate(_OTHER_DIAGONAL):
            triangles[starts[four] + row] = firsts[four, None] + corner
        for number, normal in zip(polygons, normals, strict=True):
            count, first, start = int(counts[number]), int(firsts[number]), int(starts[number])
            if count == 4:
                continue
            if count > EAR_CORNERS:
                large += 1
            elif count * count > left:
                late += 1
            else:
                left -= count * count
                cut += 1
                flat = _projected(points[corners[first : first + count]].astype(np.float64), normal)
                triangles[start : start + count - 2] = first + np.array(_ears(flat))
    told = "were filled as fans, which may cover what lies outside them"
    if large:
        source.warn(f"concave polygons of more than {EAR_CORNERS} corners {told}", large)
    if late:
        source.warn(f"concave polygons after the first {cut:,} {told}", late)


def _overlapping(
    triangles: NDArray[np.int32], starts: ArrayInt, pieces: ArrayInt, points: NDArray, corners: NDArray[np.int32]
) -> tuple[ArrayInt, Array]:
    """Return which polygons have a fan with a triangle turned over, and their normals (n, 3), as long as twice their areas."""
    rows = np.repeat(starts - np.cumsum(pieces) + pieces, pieces) + np.arange(int(pieces.sum()))
    at = points[corners[triangles[rows]]].astype(np.float64)
    with np.errstate(invalid="ignore"):  # of what is not finite, which is dropped later
        cross = np.cross(at[:, 1] - at[:, 0], at[:, 2] - at[:, 0])
        begin = np.cumsum(pieces) - pieces
        normals = np.add.reduceat(cross, begin, axis=0)
        along = np.einsum("ti,ti->t", cross, np.repeat(normals, pieces, axis=0))
        size = np.einsum("pi,pi->p", normals, normals)
        bad = np.flatnonzero(np.isfinite(size) & (np.minimum.reduceat(along, begin) < _OVERLAP * size))
    return bad, normals[bad]


def _projected(corners: Array, normal: Array) -> list[_Point]:
    """Return (n, 2) corners along the axis that their normal has most of, turning left as seen against the normal."""
    axis = int(np.argmax(np.abs(normal)))
    flat = (corners - corners[0])[:, [(axis + 1) % 3, (axis + 2) % 3]]
    return [(x, y) for x, y in (flat if normal[axis] > 0 else flat[:, ::-1]).tolist()]


def _turn(a: _Point, b: _Point, c: _Point) -> float:
    """Twice the area of a triangle, positive where it turns left."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _ears(flat: list[_Point]) -> list[tuple[int, int, int]]:
    """Return n - 2 triangles of a polygon (n, 2) that turns left: ears, corners whose triangle holds no other corner."""
    ring = list(range(len(flat)))
    ears = [_is_ear(flat, ring, k) for k in range(len(ring))]
    result: list[tuple[int, int, int]] = []
    retries = _RETRIES
    while len(ring) > 3:
        if not any(ears) and retries:
            retries -= 1
            ears = [_is_ear(flat, ring, k) for k in range(len(ring))]
        at = ears.index(True) if any(ears) else max(range(len(ring)), key=lambda k: _turn(*_around(flat, ring, k)))
        result.append((ring[at - 1], ring[at], ring[(at + 1) % len(ring)]))
        del ring[at], ears[at]
        for k in ((at - 1) % len(ring), at % len(ring)):
            ears[k] = _is_ear(flat, ring, k)
    return [*result, (ring[0], ring[1], ring[2])]


def _around(flat: list[_Point], ring: list[int], k: int) -> tuple[_Point, _Point, _Point]:
    return flat[ring[k - 1]], flat[ring[k]], flat[ring[(k + 1) % len(ring)]]


def _is_ear(flat: list[_Point], ring: list[int], k: int) -> bool:
    """Tell whether a corner turns left and no other lies in its triangle or on its rim; those at its corners do not count."""
    own = a, b, c = _around(flat, ring, k)
    if _turn(a, b, c) <= 0.0:
        return False
    for number in ring:
        at = flat[number]
        if _turn(a, b, at) >= 0.0 and _turn(b, c, at) >= 0.0 and _turn(c, a, at) >= 0.0 and at not in own:
            return False
    return True
