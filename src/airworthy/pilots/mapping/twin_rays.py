"""One ray of the readable update: where it ends, and the cells that it passes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.planning.interface import MapSettings

__all__ = ["Cell", "ray_end", "walk"]

Array = NDArray[np.float64]
Cell = tuple[int, int, int]


def ray_end(
    settings: MapSettings, box: tuple[Array, Array], pixel: tuple[float, float, float], eye: Array, turn: Array
) -> tuple[Array, bool] | None:
    """Where the ray of a pixel ends [m], and whether something was hit there; None: the pixel is not used.

    Args:
        settings: Lengths of rays and depths.
        box: Corners of the map [m].
        pixel: Slopes x/z and y/z, and depth [m].
        eye: Place of the camera [m], (3,).
        turn: Its optical frame, (3, 3).
    """
    s, (lower, upper), (x, y, d) = settings, box, pixel
    if d == 0.0 or d > s.depth_max:
        d = s.ray_max + 0.1
    if not d >= s.depth_min:
        return None
    point = np.array([c + d * (m[0] * x + m[1] * y + m[2]) for c, m in zip(eye, turn, strict=True)])
    way = point - eye
    inside = bool(((point > lower + 1e-4) & (point < upper - 1e-4)).all())
    if not inside:
        faces = [(u if w > 0.0 else o) - c for u, o, w, c in zip(upper, lower, way, eye, strict=True)]
        part = min(face / w if w != 0.0 else 1e30 for face, w in zip(faces, way, strict=True)) - 1e-3 / norm(way)
        way = way * max(part, 0.0)
    length = norm(way)
    if length <= s.ray_max:
        return (point if inside else eye + way), inside
    return eye + way * (s.ray_max / length), False


def norm(v: Array) -> float:
    """Length of a vector, summed in the order of the native text."""
    return math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])


def walk(start: Array, cell: Cell, stop: Array, goal: Cell, least: float) -> list[Cell]:
    """Cells from a point back to the camera (Amanatides and Woo, 1987).

    Args:
        start: The point, in cells from the corner of the box, (3,).
        cell: In which it lies.
        stop: The camera, likewise.
        goal: Its cell.
        least: The walk ends before the first cell whose middle is nearer to the camera [cells].
    """
    at, left = list(cell), [abs(g - c) for g, c in zip(goal, cell, strict=True)]
    move = [1 if g > c else -1 for g, c in zip(goal, cell, strict=True)]
    way = stop - start
    step = [1.0 / abs(w) if w != 0.0 else math.inf for w in way]
    following = [((c + 1 if w > 0.0 else c) - s) / w if n else 1e300 for c, w, s, n in zip(cell, way, start, left, strict=True)]
    cells: list[Cell] = []
    while True:
        off = [c + 0.5 - s for c, s in zip(at, stop, strict=True)]
        if off[0] * off[0] + off[1] * off[1] + off[2] * off[2] < least * least:
            return cells
        cells.append((at[0], at[1], at[2]))
        if not any(left):
            return cells
        axis = following.index(min(following))  # of equal ones the first
        at[axis] += move[axis]
        left[axis] -= 1
        following[axis] = following[axis] + step[axis] if left[axis] else 1e300
