"""The floor: the lowest large level plane among a capture's points, below its cameras."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.capture.alignment.level import UpDirection, angle_of, tangents
from airworthy.capture.record import CaptureImages
from airworthy.core.arrays import Array, ArrayBool, ArrayLike

__all__ = ["Floor", "find_floor"]

LEVEL_SIGMA = np.radians(0.1)
"""Standard deviation of a floor's own slope about each level axis; ours: 2 mm in a metre, as screeds are accepted."""
_TRIALS, _POINTS = 1500, 20_000
_THICK = 0.012
"""Half the thickness of the plane that is looked for, as a share of the cameras' median height above it: 2 cm at 1.6 m."""
_LARGE = 0.25
"""Of the most points that a level plane holds: another is large from here on."""
_BELOW = 0.05
"""Share of the points that may lie below a floor: reflections in it, and what is wrong."""
_LEAST = 30
_CELLS = 6
"""Cells along each axis, by which the error of a floor is counted: points of one neighbourhood are wrong together."""
_CELLS_MIN = 4
_ROUNDS = 10


@dataclass(frozen=True, eq=False)
class Floor:
    """A plane: the points p with normal . p = height."""

    normal: Array
    """(3,) unit, upwards, frame of the capture."""
    height: float
    """[unit of the capture]."""
    sigma: float
    """Standard deviation of the normal about each level axis [rad], the floor's own slope included."""
    height_sigma: float
    """Standard deviation of the height in the middle of its points [unit of the capture]."""
    points: int
    middle: Array
    """(3,) of its points."""

    @property
    def up(self) -> UpDirection:
        """The direction that it says is up."""
        return UpDirection("floor", self.normal, self.sigma, f"a plane of {self.points:,} points below the cameras")

    def above(self, points: ArrayLike) -> Array:
        """Return how far points (..., 3) are above it [unit of the capture]."""
        return np.asarray(np.asarray(points, np.float64) @ self.normal - self.height)


def find_floor(images: CaptureImages, guess: ArrayLike, cone: float, seed: int = 0) -> Floor | None:
    """Return the floor, or None where there are no points or no large level plane below the cameras.

    Args:
        images: The capture.
        guess: About where up is, unit (3,).
        cone: How far from there the floor's normal may be [rad].
        seed: Of the samples.
    """
    if images.points is None or len(images.points) < _LEAST:
        return None
    rng = np.random.default_rng(seed)
    points = np.asarray(images.points, np.float64)
    some = points[rng.permutation(len(points))[:_POINTS]]
    start, cameras = np.asarray(guess, np.float64), np.asarray(images.position, np.float64)
    normals, heights = _planes(some, start, cone, rng)
    above = cameras @ normals.T - heights
    # Below nearly all cameras; and there must be a distance to measure thickness by.
    fit = (np.quantile(above, 0.02, axis=0) > 0.0) & (np.median(above, axis=0) > 0.0)
    normals, heights, above = normals[fit], heights[fit], above[:, fit]
    if not len(normals):
        return None
    thick = _THICK * np.median(above, axis=0)
    off = some @ normals.T - heights
    held, below = (np.abs(off) <= thick).sum(axis=0), (off < -3.0 * thick).mean(axis=0)
    large = np.flatnonzero((held >= max(_LARGE * held.max(), _LEAST)) & (below <= _BELOW))
    if not len(large):
        return None
    # Of one floor's samples the one that holds most; a table above it holds its own, and more lies below it.
    lowest = large[np.argmax(np.median(above[:, large], axis=0))]
    same = large[np.abs(np.median(above[:, large], axis=0) - np.median(above[:, lowest])) <= 4.0 * thick[lowest]]
    best = same[np.argmax(held[same])]
    found = _fitted(points, normals[best], float(heights[best]), float(thick[best]))
    # A band of a wall is narrower than long, and flatter across: its best plane is the wall.
    if found is None or angle_of(found.normal, start) > cone or np.quantile(found.above(cameras), 0.02) <= 0.0:
        return None
    return found


def _planes(points: Array, start: Array, cone: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Planes through three points each that are near enough to level: normals (k, 3), heights (k,)."""
    three = points[rng.integers(0, len(points), (_TRIALS, 3))]
    # Most of three random points span no level plane: a third of the trials take one point and the guess itself.
    normal = np.cross(three[:, 1] - three[:, 0], three[:, 2] - three[:, 0])
    normal[: _TRIALS // 3] = start
    size = np.linalg.norm(normal, axis=-1)
    good = size > 1e-12
    normal, first = normal[good] / size[good, None], three[good, 0]
    normal = normal * np.where(normal @ start < 0.0, -1.0, 1.0)[:, None]
    level = normal @ start >= np.cos(cone)
    return normal[level], (normal[level] * first[level]).sum(axis=-1)


def _fitted(points: Array, normal: Array, height: float, thick: float) -> Floor | None:
    """Least squares on the points within a band, Cauchy's weights, the band narrowed to their scatter."""
    limit = 3.0 * thick
    for _ in range(_ROUNDS):
        held = np.abs(points @ normal - height) <= limit
        if np.count_nonzero(held) < _LEAST:
            return None
        some = points[held]
        off = some @ normal - height
        scale = 1.4826 * float(np.median(np.abs(off - np.median(off)))) + 1e-9
        weight = 1.0 / (1.0 + (off / (2.0 * scale)) ** 2)
        middle = weight @ some / weight.sum()
        spread = (weight[:, None] * (some - middle)).T @ (some - middle)
        axis = np.linalg.eigh(spread)[1][:, 0]
        axis = axis * (1.0 if axis @ normal > 0.0 else -1.0)
        moved = float(np.linalg.norm(axis - normal))
        normal, height, limit = axis, float(axis @ middle), max(4.0 * scale, 0.25 * thick)
        if moved < 1e-12:
            break
    held = np.abs(points @ normal - height) <= limit
    return _judged(points[held], normal, height) if np.count_nonzero(held) >= _LEAST else None


def _judged(some: Array, normal: Array, height: float) -> Floor | None:
    """How sure it is: by leaving out one neighbourhood after the other, to first order."""
    middle = some.mean(axis=0)
    flat = (some - middle) @ tangents(normal).T
    rows = np.column_stack((flat, np.ones(len(flat))))
    off = some @ normal - height
    inverse = np.linalg.pinv(rows.T @ rows)
    cell = _cells(flat)
    numbers = np.unique(cell)
    if len(numbers) < _CELLS_MIN:
        return None
    moves = np.array([_left_out(rows, off, cell == number, inverse) for number in numbers])
    share = (len(numbers) - 1) / len(numbers)
    variance = share * (moves**2).sum(axis=0)
    sigma = float(np.sqrt(variance[:2].max() + LEVEL_SIGMA**2))
    return Floor(normal, height, sigma, float(np.sqrt(variance[2])), len(some), middle)


def _left_out(rows: Array, off: Array, part: ArrayBool, inverse: Array) -> Array:
    rest = np.linalg.pinv(np.eye(3) - inverse @ rows[part].T @ rows[part])
    return np.asarray(rest @ inverse @ (rows[part].T @ off[part]))


def _cells(flat: Array) -> Array:
    low, high = flat.min(axis=0), flat.max(axis=0)
    place = np.floor((flat - low) / np.maximum(high - low, 1e-12) * _CELLS).clip(0, _CELLS - 1).astype(np.int64)
    return np.asarray(place[:, 0] * _CELLS + place[:, 1])
