"""Errors that come in blocks: neighbours share their cause, so that blocks, and not errors, are what varies by chance.

The jackknife leaves out one block at a time (Quenouille 1956, Tukey 1958); it draws nothing, so that the same errors give the
same interval. Logarithms are what is nearly normal of root mean squares and of their ratios.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.evaluation.statistics import NAN, Estimate

__all__ = ["BLOCKS_MIN", "block_mean", "block_rms", "block_rms_ratio", "block_slope"]

BLOCKS_MIN = 4
"""Fewer blocks give no interval: their spread is hardly known."""


def block_rms(errors: ArrayLike, blocks: ArrayLike, confidence: float = 0.9) -> Estimate:
    """Return the root mean square of errors and its interval.

    Args:
        errors: (n,); those that are not finite are left out.
        blocks: Which block each is of, (n,).
        confidence: Inside (0, 1).

    Raises:
        AirworthyError: The shapes do not fit.
    """
    (squares, counts) = _sums(blocks, np.asarray(errors, np.float64) ** 2)
    if not counts.sum() or not squares.sum():
        return Estimate(0.0 if counts.sum() else NAN, NAN, NAN)
    return _powered(_jackknife(lambda s, n: 0.5 * np.log(s / n), squares, counts, confidence=confidence))


def block_rms_ratio(errors: ArrayLike, others: ArrayLike, blocks: ArrayLike, confidence: float = 0.9) -> Estimate:
    """Return the root mean square of errors over that of others of the same windows, and its interval.

    Args:
        errors: (n,)
        others: Of the same windows, (n,); where either is not finite both are left out.
        blocks: Which block each is of, (n,).
        confidence: Inside (0, 1).

    Raises:
        AirworthyError: The shapes do not fit.
    """
    a, b = np.asarray(errors, np.float64), np.asarray(others, np.float64)
    both = np.isfinite(a) & np.isfinite(b)
    mine, _ = _sums(blocks, np.where(both, a, np.nan) ** 2)
    theirs, counts = _sums(blocks, np.where(both, b, np.nan) ** 2)
    if not counts.sum() or not mine.sum() or not theirs.sum():
        return Estimate(NAN, NAN, NAN)
    return _powered(_jackknife(lambda s, t: 0.5 * np.log(s / t), mine, theirs, confidence=confidence))


def block_mean(values: ArrayLike, blocks: ArrayLike, confidence: float = 0.9) -> Estimate:
    """Return the mean of values and its interval.

    Args:
        values: (n,); those that are not finite are left out.
        blocks: Which block each is of, (n,).
        confidence: Inside (0, 1).
    """
    sums, counts = _sums(blocks, np.asarray(values, np.float64))
    if not counts.sum():
        return Estimate(NAN, NAN, NAN)
    return _jackknife(lambda s, n: s / n, sums, counts, confidence=confidence)


def block_slope(x: ArrayLike, y: ArrayLike, blocks: ArrayLike, confidence: float = 0.9) -> Estimate:
    """Return the slope of y over x through the origin by least squares, and its interval.

    Args:
        x: (n,)
        y: (n,)
        blocks: Which block each is of, (n,).
        confidence: Inside (0, 1).
    """
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    both = np.isfinite(a) & np.isfinite(b)
    products, _ = _sums(blocks, np.where(both, a * b, np.nan))
    squares, counts = _sums(blocks, np.where(both, a * a, np.nan))
    if not counts.sum() or not squares.sum():
        return Estimate(NAN, NAN, NAN)
    return _jackknife(lambda p, s: p / s, products, squares, confidence=confidence)


def _sums(blocks: ArrayLike, values: Array) -> tuple[Array, Array]:
    """Return sums and counts of what is finite in each block that holds any."""
    labels = np.asarray(blocks)
    if labels.shape != values.shape or values.ndim != 1:
        raise AirworthyError(f"Errors have shape {values.shape} and blocks {labels.shape}; expected (n,) both.")
    good = np.isfinite(values)
    if not good.any():
        return np.zeros(0), np.zeros(0)
    _, index = np.unique(labels[good], return_inverse=True)
    count = int(index.max()) + 1
    sums, counts = np.zeros(count), np.zeros(count)
    np.add.at(sums, index, values[good])
    np.add.at(counts, index, 1.0)
    return sums, counts


def _jackknife(function, *sums: Array, confidence: float) -> Estimate:  # type: ignore[no-untyped-def]
    """Value of a function of sums over blocks, and Student's interval by the spread of what each block's absence changes."""
    from scipy.special import stdtrit

    if not 0.0 < confidence < 1.0:
        raise AirworthyError(f"A confidence of {confidence!r} arrived; expected a number between 0 and 1, as 0.9.")
    count = len(sums[0])
    value = float(function(*(part.sum() for part in sums)))
    if count < BLOCKS_MIN:
        return Estimate(value, NAN, NAN)
    with np.errstate(divide="ignore", invalid="ignore"):
        without = np.asarray(function(*(part.sum() - part for part in sums)), np.float64)
    if not np.isfinite(without).all():
        return Estimate(value, -inf, inf)
    error = sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))
    reach = float(stdtrit(count - 1, 0.5 + 0.5 * confidence)) * error
    return Estimate(value, value - reach, value + reach)


def _powered(logarithm: Estimate) -> Estimate:
    low, value, high = (float(np.exp(min(x, 700.0))) for x in (logarithm.low, logarithm.value, logarithm.high))
    return Estimate(value, low, high)
