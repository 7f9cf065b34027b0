"""Differences between two that flew the same starts, each with the interval that says whether it is one."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.evaluation.statistics import NAN, Estimate, wilson_interval

__all__ = ["paired_median_difference", "paired_rate_difference"]


def paired_rate_difference(first: ArrayLike, second: ArrayLike, confidence: float = 0.95) -> Estimate:
    """Return how much more often the first succeeds than the second on the same trials, and its interval.

    The square-and-add interval of Wilson's bounds with the correlation of the pairs (Newcombe, "Improved confidence intervals
    for the difference between binomial proportions based on paired data", Statistics in Medicine 17, 1998, method 10): it stays
    inside [-1, 1], and has a width also where both succeed always.

    Args:
        first: Successes of one, (n,) booleans.
        second: Of the other on the same trials, (n,).
        confidence: Inside (0, 1).

    Raises:
        AirworthyError: They are not as many.
    """
    a, b = _pairs(first, second, bool)
    count = len(a)
    if not count:
        return Estimate(NAN, NAN, NAN)
    mine, theirs = (wilson_interval(int(x.sum()), count, confidence) for x in (a, b))
    linked = _correlation(a, b)

    def reach(up: float, down: float) -> float:
        # Rounding may leave a tiny negative number where the two are the same and wholly correlated.
        return sqrt(max(up * up - 2.0 * linked * up * down + down * down, 0.0))

    value = mine.value - theirs.value
    low = value - reach(mine.value - mine.low, theirs.high - theirs.value)
    return Estimate(value, low, value + reach(mine.high - mine.value, theirs.value - theirs.low))


def _correlation(a: Any, b: Any) -> float:
    """Correlation of successes, (n,) each, with the continuity correction of method 10; 0 where one is always or never."""
    both, neither = float((a & b).sum()), float((~a & ~b).sum())
    only_a, only_b = float((a & ~b).sum()), float((~a & b).sum())
    margins = (both + only_a) * (only_b + neither) * (both + only_b) * (only_a + neither)
    if not margins:
        return 0.0
    linked = both * neither - only_a * only_b
    return (max(linked - 0.5 * len(a), 0.0) if linked > 0.0 else linked) / sqrt(margins)


def paired_median_difference(first: ArrayLike, second: ArrayLike, confidence: float = 0.95) -> Estimate:
    """Return the median of first less second on the same trials, and its interval.

    The interval that the sign test gives: between two of the sorted differences, as far apart as the binomial distribution
    asks (Conover, "Practical Nonparametric Statistics", 3rd edition, 1999, section 3.2), whatever their distribution. Fewer
    than six pairs cannot say anything at 95 %: the bounds are then infinite.

    Args:
        first: Values of one, (n,), finite.
        second: Of the other on the same trials, (n,), finite.
        confidence: Inside (0, 1).

    Raises:
        AirworthyError: They are not as many.
    """
    a, b = _pairs(first, second, float)
    apart = np.sort(a - b)
    if not len(apart):
        return Estimate(NAN, NAN, NAN)
    outside = _outside(len(apart), confidence)
    value = float(np.median(apart))
    if outside < 0:
        return Estimate(value, -inf, inf)
    return Estimate(value, float(apart[outside]), float(apart[len(apart) - 1 - outside]))


def _outside(count: int, confidence: float) -> int:
    """Return how many sorted values lie below the lower bound; -1: not even the extremes are far enough apart."""
    from scipy.special import bdtr

    # P(at most k of n signs) of a fair coin, k from 0: the last whose share is still within one tail.
    below = bdtr(np.arange(count, dtype=float), count, 0.5)
    return int(np.searchsorted(below, 0.5 - 0.5 * confidence, side="right")) - 1


def _pairs(first: ArrayLike, second: ArrayLike, kind: type) -> tuple[Any, Any]:
    a: ArrayAny = np.asarray(first, kind)
    b: ArrayAny = np.asarray(second, kind)
    if a.shape != b.shape or a.ndim != 1:
        raise AirworthyError(f"Pairs are two rows of as many values; got shapes {a.shape} and {b.shape}.")
    return a, b
