"""Statistics over flights, each with the interval that says how far to trust it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError

Array = NDArray[np.float64]
NAN = float("nan")

_CHUNK_VALUES = 1 << 22


@dataclass(frozen=True)
class Estimate:
    """A value and its confidence interval; the bounds are NaN where there is too little to say."""

    value: float
    low: float
    high: float


def wilson_interval(successes: int, count: int, confidence: float = 0.95) -> Estimate:
    """Rate and its Wilson score interval (Wilson 1927), which stays inside [0, 1] and is honest at 0 and 1.

    Args:
        successes: From 0 to `count`.
        count: Number of trials; with 0 everything is NaN.
        confidence: Inside (0, 1).
    """
    if not 0 <= successes <= count:
        raise AirworthyError(f"A rate needs 0 to {count} successes; got {successes}.")
    if count == 0:
        return Estimate(NAN, NAN, NAN)
    z, rate = _normal_quantile(confidence), successes / count
    centre = (rate + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * sqrt(rate * (1 - rate) / count + z * z / (4 * count * count))
    # At 0 and 1 the bound is the rate itself; the formula leaves a rounding error there.
    return Estimate(
        rate, 0.0 if successes == 0 else max(0.0, centre - half), 1.0 if successes == count else min(1.0, centre + half)
    )


def bootstrap_interval(
    values: ArrayLike, rng: np.random.Generator, *, confidence: float = 0.95, resamples: int = 2000
) -> Estimate:
    """Mean and its bootstrap interval.

    The percentile interval, widened for small samples as Hesterberg ("What Teachers Should Know about the Bootstrap", 2015)
    advises: the tail share is that of Student's t scaled by sqrt(n / (n - 1)), so that five flights do not look like fifty.

    Args:
        values: Shape (n,); values that are not finite are left out. With none the mean is NaN, with one the bounds are.
        rng: Where the resampling draws from.
        confidence: Inside (0, 1).
        resamples: Number of resampled means.
    """
    values = _finite(values)
    if values.size < 2:
        return Estimate(float(values[0]) if values.size else NAN, NAN, NAN)
    mean = float(np.mean(values))
    if np.all(values == values[0]):
        return Estimate(mean, mean, mean)
    rows = max(1, _CHUNK_VALUES // values.size)
    means = [
        np.mean(values[rng.integers(values.size, size=(min(rows, resamples - i), values.size))], axis=1)
        for i in range(0, resamples, rows)
    ]
    tail = _small_sample_tail(values.size, confidence)
    low, high = np.quantile(np.concatenate(means), [tail, 1.0 - tail])
    return Estimate(mean, float(low), float(high))


def interquartile_mean(values: ArrayLike) -> float:
    """Mean of the middle half (the 25 % trimmed mean, with the boundary values weighted by the part of them that is inside).

    Values that are not finite are left out; NaN where none is left.
    """
    values = np.sort(_finite(values))
    if values.size == 0:
        return NAN
    # Value i stands for the share [i/n, (i+1)/n] of the sample; its weight is what of that lies in the middle half.
    edges = np.arange(values.size + 1) / values.size
    weights = np.clip(np.minimum(edges[1:], 0.75) - np.maximum(edges[:-1], 0.25), 0.0, None)
    return float(np.sum(weights * values) / np.sum(weights))


def describe(
    values: ArrayLike, name: str, *, seed: int = 0, confidence: float = 0.95, resamples: int = 2000
) -> dict[str, float | int]:
    """Statistics of one metric over flights, in a fixed order of keys.

    Args:
        values: Shape (n,); values that are not finite are left out, `count` says how many remain.
        name: Of the metric; with the seed it fixes what the bootstrap draws, so that no metric depends on another.
        seed: Of the bootstrap.
        confidence: Of the interval `low` to `high` of the mean.
        resamples: Of the bootstrap.
    """
    values = _finite(values)
    rng = np.random.default_rng([seed & 0xFFFFFFFFFFFFFFFF, zlib.crc32(name.encode())])
    estimate = bootstrap_interval(values, rng, confidence=confidence, resamples=resamples)
    quantiles = np.quantile(values, [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0]) if values.size else np.full(7, NAN)
    low, q05, q25, median, q75, q95, high = (float(q) for q in quantiles)
    return {
        "count": int(values.size),
        "mean": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "std": float(np.std(values, ddof=1)) if values.size > 1 else NAN,
        "interquartile_mean": interquartile_mean(values),
        "min": low,
        "q05": q05,
        "q25": q25,
        "median": median,
        "q75": q75,
        "q95": q95,
        "max": high,
    }


def rank_correlation(a: ArrayLike, b: ArrayLike) -> float:
    """Spearman's rank correlation of two samples (n,), ties sharing their mean rank; NaN where it is not defined."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    both = np.isfinite(a) & np.isfinite(b)
    if np.sum(both) < 3 or np.ptp(a[both]) == 0.0 or np.ptp(b[both]) == 0.0:
        return NAN
    return float(np.corrcoef(_ranks(a[both]), _ranks(b[both]))[0, 1])


def _ranks(values: Array) -> Array:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - 0.5 * (counts - 1))[inverse])


def _finite(values: ArrayLike) -> Array:
    values = np.asarray(values, dtype=np.float64).ravel()
    return values[np.isfinite(values)]


def _normal_quantile(confidence: float) -> float:
    """Two-sided quantile of the normal distribution."""
    from statistics import NormalDist

    if not 0.0 < confidence < 1.0:
        raise AirworthyError(f"A confidence of {confidence!r} arrived; expected a number between 0 and 1, as 0.95.")
    return NormalDist().inv_cdf(0.5 + 0.5 * confidence)


def _small_sample_tail(count: int, confidence: float) -> float:
    from statistics import NormalDist

    from scipy.special import stdtrit

    _normal_quantile(confidence)
    student = float(stdtrit(count - 1, 0.5 + 0.5 * confidence))
    return NormalDist().cdf(-sqrt(count / (count - 1)) * student)
