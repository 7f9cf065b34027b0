"""Corners of a dark square to a fraction of a pixel: where lines through its edges meet.

A lens rounds corners off, and a point found there lies too far inside; the middles of the edges stay where they are. They are
looked for in light, since the encoding of an image moves blurred edges to their dark side.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.sensors.tone import linear_from_srgb

__all__ = ["refined_corners"]

Array = NDArray[np.float64]
_ENDS = 0.18
"""Share of an edge that is left out at each end."""
_STEP = 0.25
"""Between samples across an edge [px]."""
_CONTRAST = 0.05
"""Least difference of light across an edge."""
_ROUNDS = 4


def refined_corners(rgb: NDArray[np.uint8], corners: ArrayLike) -> Array:
    """Corners (4, 2) [px] of a dark square on white, from ones that are a few pixels off.

    Across every edge the light rises from dark to white; with any symmetric blur the edge is where the areas on both sides of
    it are equal. Cells of a marker and its margin are a sixth of the side, and half of one is looked at to each side.

    Args:
        rgb: (h, w, 3) sRGB-encoded.
        corners: (4, 2) [px], around the square.

    Returns:
        The corners; the given ones where an edge cannot be told or lies elsewhere.
    """
    given = np.asarray(corners, np.float64)
    light = linear_from_srgb(rgb).astype(np.float64) @ (0.2126, 0.7152, 0.0722)
    found = given.copy()
    for _ in range(_ROUNDS):
        lines = [_line(light, found, k) for k in range(4)]
        if any(line is None for line in lines):
            return given
        crossings = [np.cross(lines[k - 1], lines[k]) for k in range(4)]  # type: ignore[arg-type]
        if min(abs(point[2]) for point in crossings) < 1e-9:
            return given
        found = np.array([point[:2] / point[2] for point in crossings])
    side = np.linalg.norm(given - np.roll(given, 1, axis=0), axis=-1).min()
    return found if np.linalg.norm(found - given, axis=-1).max() < max(side / 6.0, 2.0) else given


def _line(light: Array, corners: Array, number: int) -> Array | None:
    """The line (a, b, c), a x + b y + c = 0, of an edge from a corner to the next; None where there is no such edge."""
    start, end = corners[number], corners[(number + 1) % 4]
    length = float(np.linalg.norm(end - start))
    if not 8.0 <= length < 1e5:
        return None
    along = (end - start) / length
    outward = np.array([along[1], -along[0]])
    if outward @ (start + end - 2.0 * corners.mean(axis=0)) < 0.0:
        outward = -outward
    reach = float(np.clip(length / 12.0, 2.0, 12.0))
    share = np.linspace(_ENDS, 1.0 - _ENDS, max(8, int(length)))
    across = np.arange(-reach, reach + 0.5 * _STEP, _STEP)
    middle = start + share[:, None] * (end - start)
    profile = _sampled(light, middle[:, None] + across[:, None] * outward)
    ends = max(2, len(across) // 8)
    dark, white = profile[:, :ends].mean(axis=1), profile[:, -ends:].mean(axis=1)
    good = np.isfinite(profile).all(axis=1) & (white - dark > _CONTRAST)
    if np.count_nonzero(good) < 6:
        return None
    rise = (profile[good] - dark[good, None]) / (white - dark)[good, None]
    offset = reach - np.trapezoid(rise, dx=_STEP, axis=1)
    return _fitted(middle[good] + offset[:, None] * outward)


def _fitted(points: Array) -> Array:
    """The line nearest to points (n, 2), those left out that are far from it for most."""
    for _ in range(3):
        middle = points.mean(axis=0)
        normal = np.linalg.svd(points - middle)[2][1]
        off = np.abs((points - middle) @ normal)
        near = off <= max(3.0 * float(np.median(off)), 0.02)
        if near.all() or np.count_nonzero(near) < 4:
            break
        points = points[near]
    return np.array([*normal, -normal @ middle])


def _sampled(light: Array, pixels: Array) -> Array:
    """Light at places (..., 2), bilinear between centres of pixels; NaN outside."""
    height, width = light.shape
    x, y = pixels[..., 0] - 0.5, pixels[..., 1] - 0.5
    inside = (x >= 0.0) & (y >= 0.0) & (x <= width - 1) & (y <= height - 1)
    column = np.clip(np.where(inside, np.floor(x), 0).astype(np.int64), 0, max(width - 2, 0))
    row = np.clip(np.where(inside, np.floor(y), 0).astype(np.int64), 0, max(height - 2, 0))
    u, v = x - column, y - row
    right, below = np.minimum(column + 1, width - 1), np.minimum(row + 1, height - 1)
    upper = (1.0 - u) * light[row, column] + u * light[row, right]
    lower = (1.0 - u) * light[below, column] + u * light[below, right]
    return np.where(inside, (1.0 - v) * upper + v * lower, np.nan)
