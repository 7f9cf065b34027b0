"""Similarities p -> s R p + t between two sets of the same points: closed form, and against outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.scenes.splats import Splats, transformed

__all__ = ["FoundSimilarity", "Similarity", "best_similarity", "find_similarity"]

_LINE = 1e-6
"""Second over first singular value of three points that count as lying on a line."""
_INLIER_ROUNDS = 10


@dataclass(frozen=True, eq=False)
class Similarity:
    """p -> scale R(rotation) p + translation."""

    rotation: Array
    """(4,) x, y, z, w."""
    translation: Array
    """(3,)"""
    scale: float

    def points(self, points: ArrayLike) -> Array:
        """Return points (..., 3) in the new frame."""
        return self.scale * frames.rotate(self.rotation, points) + self.translation

    def splats(self, splats: Splats) -> Splats:
        """Return splats in the new frame, harmonics turned with them."""
        return transformed(splats, self.rotation, self.translation, self.scale)

    @property
    def inverse(self) -> Similarity:
        """The way back."""
        turn = frames.conjugate(self.rotation)
        return Similarity(turn, -frames.rotate(turn, self.translation) / self.scale, 1.0 / self.scale)


@dataclass(frozen=True, eq=False)
class FoundSimilarity:
    """A similarity, and how well it fits."""

    similarity: Similarity
    inliers: ArrayBool
    """(n,) points within the tolerance."""
    residual: float
    """Root mean square of the inliers' distances [m]."""

    @property
    def inlier_ratio(self) -> float:
        """Share of the points that are within the tolerance."""
        return float(self.inliers.mean())


def best_similarity(source: ArrayLike, target: ArrayLike) -> Similarity:
    """Return the similarity from source to target points, (n, 3) each, n >= 3, of least squares (Umeyama, 1991, equations 40
    to 42).

    Raises:
        AirworthyError: Points are missing, not finite, or all on a line.
    """
    x, y = np.asarray(source, np.float64), np.asarray(target, np.float64)
    if x.shape != y.shape or x.ndim != 2 or x.shape[1:] != (3,) or len(x) < 3 or not np.isfinite([x, y]).all():
        raise AirworthyError(f"A similarity needs 3 or more pairs of finite points; {x.shape} and {y.shape} arrived.")
    rotation, spread = _rotations(x[None] - x.mean(axis=0), y[None] - y.mean(axis=0))
    if not spread[0] > _LINE:
        raise AirworthyError("The points of a similarity lie on a line, about which anything may turn; take others.")
    a, b = x - x.mean(axis=0), y - y.mean(axis=0)
    scale = float((b * (a @ rotation[0].T)).sum() / (a * a).sum())
    return Similarity(frames.from_matrix(rotation[0]), y.mean(axis=0) - scale * rotation[0] @ x.mean(axis=0), scale)


def find_similarity(
    source: ArrayLike,
    target: ArrayLike,
    tolerance: float = 0.05,
    trials: int = 1000,
    seed: int = 0,
    least: float = 0.5,
) -> FoundSimilarity:
    """Return the similarity that most pairs of points agree on, fitted to these (random sample consensus, Fischler and Bolles,
    1981).

    Args:
        source: (n, 3)
        target: (n, 3) [m]
        tolerance: Largest distance of a point that agrees [m].
        trials: Samples of three pairs.
        seed: Of the samples.
        least: Smallest share of points that must agree.

    Raises:
        AirworthyError: Under 3 pairs, all on a line, or fewer agree.
    """
    x, y = np.asarray(source, np.float64), np.asarray(target, np.float64)
    if len(x) < 3 or x.shape != y.shape or x.shape[1:] != (3,) or not np.isfinite([x, y]).all():
        raise AirworthyError(f"A similarity needs 3 or more pairs of finite points; {x.shape} and {y.shape} arrived.")
    inliers = _best_sample(x, y, tolerance, trials, seed)
    for _ in range(_INLIER_ROUNDS):
        if np.count_nonzero(inliers) < 3:
            break
        found = best_similarity(x[inliers], y[inliers])
        off = np.linalg.norm(found.points(x) - y, axis=-1)
        before, inliers = inliers, off <= tolerance
        # The same points give the same fit: nothing would change any more.
        if (before == inliers).all():
            break
    count = np.count_nonzero(inliers)
    if count < max(3, least * len(x)):
        raise AirworthyError(
            f"Only {count} of {len(x)} places agree on a similarity within {tolerance:g} m, and {least:.0%} are needed:"
            " check the side of the marker, and that it lay still."
        )
    return FoundSimilarity(found, inliers, float(np.sqrt(np.square(off[inliers]).mean())))


def _best_sample(x: Array, y: Array, tolerance: float, trials: int, seed: int) -> ArrayBool:
    """Return who agrees with the best of the samples: the most, then the closest."""
    rng = np.random.default_rng(seed)
    # The three least of random numbers are three different points, all trials at once.
    chosen = np.argsort(rng.random((trials, len(x))), axis=1)[:, :3]
    a, b = x[chosen], y[chosen]
    middle_a, middle_b = a.mean(axis=1), b.mean(axis=1)
    a, b = a - middle_a[:, None], b - middle_b[:, None]
    rotation, spread = _rotations(a, b)
    with np.errstate(all="ignore"):
        scale = np.sqrt((b * b).sum(axis=(1, 2)) / (a * a).sum(axis=(1, 2)))
    usable = (spread > _LINE) & np.isfinite(scale) & (scale > 0.0)
    if not usable.any():
        raise AirworthyError("The places from which the marker was seen lie on a line; film it from all around.")
    moved = np.einsum("kij,nj->kni", scale[usable, None, None] * rotation[usable], x)
    moved += (middle_b[usable] - np.einsum("kij,kj->ki", scale[usable, None, None] * rotation[usable], middle_a[usable]))[
        :, None
    ]
    off = np.linalg.norm(moved - y, axis=-1)
    agree = off <= tolerance
    error = np.where(agree, off, 0.0).sum(axis=1) / np.maximum(agree.sum(axis=1), 1)
    return np.asarray(agree[np.lexsort((error, -agree.sum(axis=1)))[0]])


def _rotations(a: Array, b: Array) -> tuple[Array, Any]:
    """Rotations (k, 3, 3) that bring centred points a (k, n, 3) nearest to b; and how far the points are from a line, (k,)."""
    left, values, right = np.linalg.svd(np.swapaxes(b, 1, 2) @ a)
    sign = np.ones((len(a), 3))
    sign[:, 2] = np.sign(np.linalg.det(left) * np.linalg.det(right))
    return (left * sign[:, None]) @ right, values[:, 1] / np.maximum(values[:, 0], 1e-300)
