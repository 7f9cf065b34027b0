"""Openings of race gates in one image: what orange tubes enclose, with straight sides fitted to parts of a pixel.

Race gates are the only things in the hall that are of a saturated orange (decoys are dark). What is not orange falls into
pieces, of which those that are enclosed by a tube, or by a tube and the picture's edge, and are convex, are openings. A side is
a straight line through the places where rows or columns cross from orange to not: each is off by half a pixel at most, evenly,
so that a line through n of them is good to 0.3 / sqrt(n) pixels. Corners are where neighbouring sides meet. Nothing is assumed
of where gates stand; what is no opening is found out when it is named (`naming`).

Gates that are seen through an opening cut it to pieces where their tubes meet its edge. They are farther away and their tubes
thinner: openings are looked for again without what is thinner than a few pixels. Taking away what no square of n x n pixels
fits into leaves straight edges and inner corners of thicker tubes as they are.

Pixels have their origin at the picture's upper left corner; the middle of the first pixel is (0.5, 0.5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayU8

__all__ = ["Opening", "find_openings", "orange"]

RED_LEAST, SPAN_LEAST = 165, 55
"""Least red, and least red over blue, of a gate's tube [counts of 255]. Measured on 24 views of the hall, 4 to 25 m away: 173
and 59; in the sun the tube pales."""
HUE = (0.29, 0.58)
"""Green over blue as a share of red over blue; measured 0.32 to 0.56. Crates and lanes are yellower, bricks redder."""
AREA_LEAST = 60
"""Of an opening [px^2]; ours: eight by eight are too few points for sides."""
SIDE_LEAST = 7.0
"""Shortest side that is fitted [px]; ours."""
CONVEX = 0.97
"""Least share of an opening in its convex hull: what is bitten by something in front of it has less."""
_STAIRS = 0.5
"""A hull may lie outside the stairs of its edge by so much [px]."""
_TURN = 1.2
"""Points this far off a side end it [px]: stairs of a straight edge are less."""
_SHORT, _BLUNT = 6.0, 0.08
"""Sides up to here are the stairs of a corner [px], and sides up to this part of both neighbours."""
_BENT, _STUB = math.cos(math.radians(20.0)), 0.3
"""So are sides up to this part of a neighbour that turn from it by less than 20 degrees: stairs of a sharp corner are long."""
_MARGIN = 0.06
"""Part of a side at each of its ends whose points belong to the corner."""
_OFF = 0.75
"""Farthest that a point of a side may lie off it [px]; of a straight one half a pixel."""
_COUNTED = 0.85
"""Least share of a side's rows or columns that must have their point on it."""
_PASSES = 3
"""Times that points off a side are left out and it is fitted anew."""
THICKNESSES = (1, 3, 5, 8)
"""Least thickness of the tubes that are looked at, one after the other [px]. Ours: a tube of 0.15 m has 8 at 10 m."""
_ALIKE = 1.5
"""Corners nearer to each other are the same [px]."""
_EDGE = 1.0
"""Corners this near to the picture's edge are dropped, and sides there are the picture's [px]."""


@dataclass(frozen=True)
class Opening:
    """What a tube encloses."""

    corners: Array
    """Those that are in the picture, in order round it, clockwise as seen, (k, 2) [px]; four where it is whole."""
    side: float
    """Its shortest side in the picture [px]."""

    @property
    def whole(self) -> bool:
        """Whether all four corners are in the picture."""
        return len(self.corners) == 4


def orange(pixels: ArrayU8) -> ArrayBool:
    """Return which pixels of an image, (height, width, 3), have the colour of race gates."""
    red, green, blue = (pixels[..., k].astype(np.int16) for k in range(3))
    span, above = red - blue, green - blue
    return (red >= RED_LEAST) & (span >= SPAN_LEAST) & (above >= HUE[0] * span) & (above <= HUE[1] * span)


def find_openings(pixels: ArrayU8) -> list[Opening]:
    """Return openings of gates in an image, (height, width, 3): each once, those found among the thinnest tubes first."""
    from scipy import ndimage

    tubes = orange(pixels)
    found: list[Opening] = []
    rows, columns = _bounds(np.any(tubes, axis=1)), _bounds(np.any(tubes, axis=0))
    corner, size = (columns.start, rows.start), (pixels.shape[1], pixels.shape[0])
    # All that is enclosed lies within a frame around all orange: mostly a small part of the picture.
    tubes = tubes[rows, columns]
    for thickness in THICKNESSES if tubes.size else ():
        if thickness > 1:
            # Squares that fit: an erosion, then a dilation by the same square (the second is shifted back by an even one).
            eroded = ndimage.minimum_filter(tubes.view(np.uint8), thickness, mode="constant", cval=1)
            shift = -1 if thickness % 2 == 0 else 0
            tubes = ndimage.maximum_filter(eroded, thickness, mode="constant", cval=0, origin=shift).astype(bool)
        if not tubes.any():
            break
        found += [item for item in _enclosed(tubes, corner, size) if not any(_same(item, other) for other in found)]
    return found


def _same(first: Opening, second: Opening) -> bool:
    """Tell whether all corners of one opening are corners of another, which has no more."""
    if len(first.corners) > len(second.corners):
        return False
    apart = np.linalg.norm(first.corners[:, None] - second.corners[None], axis=2)
    return bool(np.all(apart.min(axis=1) < _ALIKE))


def _bounds(any_in: ArrayBool) -> slice:
    """Return the first to the last that is true, with one more on each side where there is one."""
    where = np.flatnonzero(any_in)
    return slice(max(int(where[0]) - 1, 0), int(where[-1]) + 2) if len(where) else slice(0, 0)


def _enclosed(tubes: ArrayBool, corner: tuple[int, int], size: tuple[int, int]) -> list[Opening]:
    """Return openings that tubes enclose.

    Args:
        tubes: Of a part of the picture, (h, w).
        corner: Where the part lies, x and y [px].
        size: Of the picture, width and height [px].
    """
    from scipy import ndimage

    pieces, _ = ndimage.label(~tubes)
    found = []
    for number, part in enumerate(ndimage.find_objects(pieces), 1):
        rows, columns = part
        if min(rows.stop - rows.start, columns.stop - columns.start) < SIDE_LEAST:
            continue
        # What leads out of the part that is looked at is enclosed by nothing.
        across = _leads_out(columns, corner[0], tubes.shape[1], size[0])
        if across or _leads_out(rows, corner[1], tubes.shape[0], size[1]):
            continue
        # What is seen through an opening, such as another gate, belongs to it.
        inside = ndimage.binary_fill_holes(pieces[part] == number)
        if np.count_nonzero(inside) >= AREA_LEAST:
            opening = _opening(inside, (corner[0] + columns.start, corner[1] + rows.start), size)
            found += [opening] if opening is not None else []
    return found


def _leads_out(piece: slice, begins: int, count: int, most: int) -> bool:
    """Tell whether a piece reaches an end of the part that is looked at which is not the picture's.

    Args:
        piece: Its rows or columns in the part.
        begins: Where the part begins in the picture.
        count: Rows or columns of the part.
        most: Of the picture.
    """
    return (piece.start == 0 and begins > 0) or (piece.stop == count and begins + count < most)


def _opening(inside: ArrayBool, corner: tuple[int, int], size: tuple[int, int]) -> Opening | None:
    """Return a piece as an opening, or None where it is none.

    Args:
        inside: The piece in its bounding box, (h, w).
        corner: Where the box lies in the picture, x and y [px].
        size: Of the picture, width and height [px].
    """
    upright, level = _crossings(inside)
    upright, level = upright + corner, level + corner
    hull = _hull(np.concatenate([upright, level]))
    if hull is None or np.count_nonzero(inside) + _STAIRS * _length(hull) < CONVEX * _area(hull):
        return None
    sides = _sides(_vertices(hull))
    own = [not _at_edge(a, b, size) for a, b in sides]
    # Two sides make a corner; what has no side of the picture's has four of its own.
    if not 2 <= sum(own) <= 4 or (all(own) and len(own) != 4):
        return None
    lines = [_line(a, b, upright, level) if mine else None for (a, b), mine in zip(sides, own, strict=True)]
    if any(line is None for line, mine in zip(lines, own, strict=True) if mine):
        return None
    corners = []
    for number, (first, second) in enumerate(zip(lines[-1:] + lines[:-1], lines, strict=True)):
        if first is None or second is None:
            continue
        point = _meeting(first, second)
        near = (sides[number - 1][1], sides[number][0])
        # Where sides meet far from where they end, something else lies between.
        apart = float(np.linalg.norm(near[1] - near[0]))
        if point is None or min(float(np.linalg.norm(point - end)) for end in near) > _SHORT + apart:
            return None
        if np.all(point > _EDGE) and np.all(point < np.array(size) - _EDGE):
            corners.append(point)
    if not corners:
        return None
    shortest = min(float(np.linalg.norm(b - a)) for (a, b), mine in zip(sides, own, strict=True) if mine)
    return Opening(np.array(corners), shortest) if shortest >= SIDE_LEAST else None


def _crossings(inside: ArrayBool) -> tuple[Array, Array]:
    """Return where rows and columns of a piece begin and end, each (n, 2) [px] from its box's corner."""
    framed = np.pad(inside, 1)
    y, x = np.nonzero(framed[1:-1, 1:] != framed[1:-1, :-1])
    upright = np.column_stack([x, y + 0.5]).astype(np.float64)
    y, x = np.nonzero(framed[1:, 1:-1] != framed[:-1, 1:-1])
    return upright, np.column_stack([x + 0.5, y]).astype(np.float64)


def _hull(points: Array) -> Array | None:
    """Return the convex hull of points, clockwise as seen with y down, (k, 2); None of points on a line."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except QhullError:
        return None


def _area(ring: Array) -> float:
    after = np.roll(ring, -1, axis=0)
    return 0.5 * abs(float(np.sum(ring[:, 0] * after[:, 1] - ring[:, 1] * after[:, 0])))


def _length(ring: Array) -> float:
    return float(np.linalg.norm(np.roll(ring, -1, axis=0) - ring, axis=1).sum())


def _sides(ends: Array) -> list[tuple[Array, Array]]:
    """Return begin and end of the sides between vertices, in order, without the stairs of corners."""
    steps = np.roll(ends, -1, axis=0) - ends
    length = np.linalg.norm(steps, axis=1)
    long = length > _SHORT
    along = steps / np.maximum(length, 1e-9)[:, None]
    long &= length > _BLUNT * np.minimum(np.roll(length, 1), np.roll(length, -1))
    for turn in (-1, 1):
        straight = np.sum(along * np.roll(along, turn, axis=0), axis=1) > _BENT
        long &= ~(straight & (length < _STUB * np.roll(length, turn)))
    return [(ends[k], ends[(k + 1) % len(ends)]) for k in np.flatnonzero(long)]


def _vertices(hull: Array) -> Array:
    """Return the few points of a hull between which it is straight, in order (Ramer 1972, Douglas & Peucker 1973)."""
    apart = np.linalg.norm(hull[:, None] - hull[None], axis=2)
    # The two points farthest from each other are corners of any convex figure.
    first, second = sorted(int(k) for k in np.unravel_index(int(np.argmax(apart)), apart.shape))
    ring = np.concatenate([hull, hull[:1]])
    chosen = {first, second}
    left = [(first, second), (second, first + len(hull))]
    while left:
        start, end = left.pop()
        between = np.arange(start + 1, end) % len(hull)
        if not len(between):
            continue
        a, b = ring[start % len(hull)], ring[end % len(hull)]
        away = np.abs(_cross(b - a, hull[between] - a)) / max(float(np.linalg.norm(b - a)), 1e-9)
        worst = int(np.argmax(away))
        if away[worst] > _TURN:
            middle = start + 1 + worst
            chosen.add(middle % len(hull))
            left += [(start, middle), (middle, end)]
    return np.asarray(hull[sorted(chosen)])


def _cross(a: Array, b: Array) -> Array:
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])


def _at_edge(a: Array, b: Array, size: tuple[int, int]) -> bool:
    """Tell whether a side is the picture's edge."""
    both = np.stack([a, b])
    return bool(np.any(np.all(both < _EDGE, axis=0)) or np.any(np.all(both > np.array(size) - _EDGE, axis=0)))


def _line(a: Array, b: Array, upright: Array, level: Array) -> tuple[Array, float] | None:
    """Return a side as unit normal n and c with n . p = c, by least squares; None where points do not lie on a line.

    Args:
        a: Where it begins, roughly (2,) [px].
        b: Where it ends.
        upright: Crossings of rows, which steep sides are fitted to, (n, 2).
        level: Crossings of columns, for the others.
    """
    along = (b - a) / np.linalg.norm(b - a)
    length = float(np.linalg.norm(b - a))
    steep = abs(along[1]) > abs(along[0])
    points = upright if steep else level
    at = (points - a) @ along
    rim = max(_MARGIN * length, 1.0)
    mine = points[(at > rim) & (at < length - rim) & (np.abs(_cross(along, points - a)) < _TURN + 1.0)]
    # One point in each row or column, if the side is whole.
    least = max(3.0, _COUNTED * ((length - 2.0 * rim) * float(max(abs(along))) - 1.0))
    free, bound = (1, 0) if steep else (0, 1)
    for _ in range(_PASSES):
        if len(mine) < least:
            return None
        slope, offset = np.polyfit(mine[:, free], mine[:, bound], 1)
        near = np.abs(mine[:, bound] - slope * mine[:, free] - offset) < _OFF
        if near.all():
            break
        mine = mine[near]
    else:
        return None
    normal = np.zeros(2)
    normal[bound], normal[free] = 1.0, -slope
    size = float(np.linalg.norm(normal))
    return normal / size, float(offset) / size


def _meeting(first: tuple[Array, float], second: tuple[Array, float]) -> Array | None:
    """Return where two lines meet, or None where they hardly do."""
    both = np.stack([first[0], second[0]])
    if abs(float(np.linalg.det(both))) < 0.05:  # three degrees
        return None
    return np.asarray(np.linalg.solve(both, np.array([first[1], second[1]])))
