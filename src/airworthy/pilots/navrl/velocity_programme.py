"""The velocity nearest to a wanted one within half spaces and a speed: an incremental linear programme in three dimensions.

Half spaces are taken one after the other. Where the best point so far lies outside the next one, the new best lies on its
plane: the same problem in two dimensions, and there in turn on a line. Without a solution the largest violation is made least.
The numbers are few and plain floats: at a dozen planes arrays would cost more than they save.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["nearest_velocity", "violation"]

Vec = tuple[float, float, float]
Plane = tuple[Vec, Vec]
"""A point and the unit normal into what is allowed."""
_TINY = 1e-10
_HALVINGS = 40


def nearest_velocity(
    wanted: Sequence[float] | NDArray[np.float64], planes: Sequence[Plane], speed: float
) -> tuple[NDArray[np.float64], bool]:
    """The velocity nearest to `wanted` on the allowed side of all planes and not faster than `speed`.

    Returns:
        It, (3,), and whether there was one; else the one whose worst violation is least.
    """
    target = (float(wanted[0]), float(wanted[1]), float(wanted[2]))
    found = _in_space(target, planes, speed)
    if found is not None:
        return np.array(found), True
    low, high = 0.0, max((violation(p, (0.0, 0.0, 0.0)) for p in planes), default=0.0)  # rest violates nothing by more
    best: Vec = (0.0, 0.0, 0.0)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        eased = [(_plus(point, normal, -middle), normal) for point, normal in planes]
        found = _in_space(target, eased, speed)
        if found is None:
            low = middle
        else:
            best, high = found, middle
    return np.array(best), False


def violation(plane: Plane, v: Sequence[float] | NDArray[np.float64]) -> float:
    """By how much a velocity is outside a half space [m/s]; negative inside."""
    (px, py, pz), (nx, ny, nz) = plane
    return nx * (px - v[0]) + ny * (py - v[1]) + nz * (pz - v[2])


def _in_space(target: Vec, planes: Sequence[Plane], speed: float) -> Vec | None:
    length = math.sqrt(_dot(target, target))
    best = target if length <= speed else _times(target, speed / length)
    for i, plane in enumerate(planes):
        if violation(plane, best) > _TINY:
            found = _on_plane(target, planes[:i], plane, speed)
            if found is None:
                return None
            best = found
    return best


def _on_plane(target: Vec, planes: Sequence[Plane], plane: Plane, speed: float) -> Vec | None:
    """Nearest allowed point of a plane: of its disc within the speed."""
    point, normal = plane
    offset = _dot(point, normal)
    rest = speed * speed - offset * offset
    if rest < 0.0:
        return None
    centre, radius = _times(normal, offset), math.sqrt(rest)
    best = _in_disc(_plus(target, normal, offset - _dot(target, normal)), centre, radius)
    for i, other in enumerate(planes):
        if violation(other, best) <= _TINY:
            continue
        line = _cut(plane, other)
        found = None if line is None else _on_line(target, planes[:i], line, speed)
        if found is None:
            return None
        best = found
    return best


def _in_disc(v: Vec, centre: Vec, radius: float) -> Vec:
    way = (v[0] - centre[0], v[1] - centre[1], v[2] - centre[2])
    length = math.sqrt(_dot(way, way))
    return v if length <= radius else _plus(centre, way, radius / length)


def _cut(first: Plane, second: Plane) -> tuple[Vec, Vec] | None:
    """Point and unit direction of the line that two planes share; None where they are parallel."""
    (p, n), (q, m) = first, second
    direction = (n[1] * m[2] - n[2] * m[1], n[2] * m[0] - n[0] * m[2], n[0] * m[1] - n[1] * m[0])
    squared = _dot(direction, direction)
    if squared < 1e-12:
        return None
    a, b, c = _dot(n, p), _dot(m, q), _dot(n, m)
    k, j = (a - b * c) / squared, (b - a * c) / squared
    return (k * n[0] + j * m[0], k * n[1] + j * m[1], k * n[2] + j * m[2]), _times(direction, 1.0 / math.sqrt(squared))


def _on_line(target: Vec, planes: Sequence[Plane], line: tuple[Vec, Vec], speed: float) -> Vec | None:
    """Nearest allowed point of a line: of a stretch of it."""
    point, direction = line
    along = _dot(point, direction)
    rest = along * along + speed * speed - _dot(point, point)
    if rest < 0.0:
        return None
    low, high = -along - math.sqrt(rest), -along + math.sqrt(rest)
    for plane in planes:
        slope, short = _dot(direction, plane[1]), violation(plane, point)
        if abs(slope) < 1e-12:
            if short > _TINY:
                return None
        elif slope > 0.0:
            low = max(low, short / slope)
        else:
            high = min(high, short / slope)
    if low > high + _TINY:
        return None
    t = _dot(direction, (target[0] - point[0], target[1] - point[1], target[2] - point[2]))
    return _plus(point, direction, min(max(t, low), max(low, high)))


def _dot(a: Vec, b: Vec) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _times(a: Vec, k: float) -> Vec:
    return a[0] * k, a[1] * k, a[2] * k


def _plus(a: Vec, b: Vec, k: float) -> Vec:
    return a[0] + k * b[0], a[1] + k * b[1], a[2] + k * b[2]
