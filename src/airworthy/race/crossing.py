"""Whether a step of flight crosses a gate's opening: two triangles and a segment, decided exactly.

The signs of determinants decide (Segura and Feito, "Algorithms to test ray-triangle intersection", WSCG 2001); where rounding
could have changed one (Shewchuk, "Adaptive precision floating-point arithmetic and fast robust geometric predicates", 1997) it
is computed again in rational numbers. A point on the edge of the opening is inside; one on its plane counts as behind it, so
that of two steps that join in the plane exactly one crosses.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt

_EPS = 2.0**-53
_BOUND = (7.0 + 56.0 * _EPS) * _EPS
"""Share of the permanent by which the determinant may be off: o3derrboundA of Shewchuk 1997."""
_UNDERFLOW = 1e-290
"""Below it products may have lost bits to underflow, of which the bound above knows nothing; ours."""


def orientation(a: Array, b: Array, c: Array, d: Array) -> tuple[ArrayInt, Array]:
    """Return on which side of the plane through a, b, c the point d lies, exactly, and six times the signed volume, rounded.

    Args:
        a: (n, 3).
        b: (n, 3).
        c: (n, 3).
        d: (n, 3).

    Returns:
        1 where (b - a) x (c - a) points to the side of d, -1 on the other, 0 in the plane; and the volume [m^3]. (n,) each.
    """
    u, v, w = b - a, c - a, d - a
    terms = (
        (u[:, 1] * v[:, 2], u[:, 2] * v[:, 1], w[:, 0]),
        (u[:, 2] * v[:, 0], u[:, 0] * v[:, 2], w[:, 1]),
        (u[:, 0] * v[:, 1], u[:, 1] * v[:, 0], w[:, 2]),
    )
    volume: Array = sum((plus - minus) * factor for plus, minus, factor in terms)  # type: ignore[assignment]
    permanent: Array = sum((abs(plus) + abs(minus)) * abs(factor) for plus, minus, factor in terms)  # type: ignore[assignment]
    side = np.sign(volume).astype(np.int64)
    # Written so that NaN is doubtful too; it never comes here, for a flight without a position has ended.
    doubtful = ~(np.abs(volume) > _BOUND * permanent + _UNDERFLOW)
    for k in np.flatnonzero(doubtful):
        side[k] = _exact(a[k], b[k], c[k], d[k])
    return side, volume


def _exact(a: Array, b: Array, c: Array, d: Array) -> int:
    """Sign of the same determinant in rational numbers."""
    origin = [Fraction(float(x)) for x in a]
    u, v, w = ([Fraction(float(x)) - o for x, o in zip(point, origin, strict=True)] for point in (b, c, d))
    cross = (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])
    volume = sum(x * y for x, y in zip(cross, w, strict=True))
    return (volume > 0) - (volume < 0)


def crossings(before: Array, after: Array, ring: Array) -> tuple[ArrayInt, Array]:
    """Return in which direction steps cross openings.

    Args:
        before: Positions at the beginning of steps [m], (n, 3).
        after: At their end, (n, 3).
        ring: Corners of the opening that each is held against, going round it [m], (n, 4, 3); see `GateShape.ring`.

    Returns:
        1 along the gate's direction, -1 against it, 0 where it is not crossed; and the part of the step flown then, 0 to 1.
        (n,) each.
    """
    way = np.zeros(len(before), np.int64)
    share = np.zeros(len(before))
    # The diagonal belongs to both triangles: what meets it is found by either, and told once.
    for corners in ((0, 2, 3), (0, 1, 2)):
        triangle = ring[:, corners]
        found, part = _through(before, after, triangle)
        way, share = np.where(found != 0, found, way), np.where(found != 0, part, share)
    return way, share


def _through(before: Array, after: Array, triangle: Array) -> tuple[ArrayInt, Array]:
    a, b, c = triangle[:, 0], triangle[:, 1], triangle[:, 2]
    first, behind = orientation(a, b, c, before)
    last, ahead = orientation(a, b, c, after)
    along: ArrayBool = (first < 0) & (last >= 0)
    against: ArrayBool = (first >= 0) & (last < 0)
    way = along.astype(np.int64) - against.astype(np.int64)
    # Only where the ends lie on both sides of the plane the edges matter.
    rows = np.flatnonzero(way)
    sides = np.zeros((3, len(before)), np.int64)
    for k, (one, other) in enumerate(((a, b), (b, c), (c, a))):
        sides[k, rows] = orientation(before[rows], after[rows], one[rows], other[rows])[0]
    # The line passes all edges on one side, whichever way it goes; 0 is on the edge.
    inside = np.all(sides >= 0, axis=0) | np.all(sides <= 0, axis=0)
    way[~inside] = 0
    gap = behind - ahead
    # Rounded, as a time may be; the decision above never reads it.
    share = np.divide(behind, gap, out=np.zeros(len(before)), where=gap != 0.0)
    return way, np.clip(share, 0.0, 1.0)
