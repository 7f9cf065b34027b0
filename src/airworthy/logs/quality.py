"""What a look at the numbers of a stream tells: rate, jitter, gaps, steps, saturation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayAny

GAP_PERIODS = 3.0
"""A step longer than this many periods is a gap."""
REST_RATE = 0.02
"""Largest deviation of a gyro at rest [rad/s]."""
_QUANTUM_ROWS = 1 << 16
"""Ours: rows that are sorted for the least step; more would only take time."""


@dataclass(frozen=True)
class StreamQuality:
    """Measures of one stream; shares are of all values, 0..1."""

    count: int
    rate: float
    """One over the median of differences of stamps [Hz]; 0 where it is not defined."""
    jitter: float
    """Median absolute deviation of these differences [s]."""
    gaps: int
    """Steps over three periods."""
    gap_longest: float
    """[s]"""
    duplicates: int
    """Stamps equal to the one before."""
    backward: int
    """Stamps before the one before."""
    saturated: float
    """Share at the least or largest value for two samples or more, in columns that come there more than once."""
    constant: float
    """Share of columns that never change."""
    quantum: float
    """Least step between different values; 0 where a column does not tell."""
    missing: float
    """Share of NaN."""


@np.errstate(all="ignore")
def stream_quality(time: Array, values: Array) -> StreamQuality:
    """Measure a stream.

    Args:
        time: Stamps [s], in the file's order, (n,).
        values: (n, k), NaN where missing.
    """
    steps = np.diff(time)
    forward = steps[steps > 0.0]
    period = float(np.median(forward)) if forward.size else 0.0
    long = steps > GAP_PERIODS * period
    return StreamQuality(
        count=len(time),
        rate=1.0 / period if period > 0.0 else 0.0,
        jitter=float(np.median(np.abs(forward - period))) if forward.size else 0.0,
        gaps=int(long.sum()) if period > 0.0 else 0,
        gap_longest=float(steps.max()) if period > 0.0 and np.any(long) else 0.0,
        duplicates=int((steps == 0.0).sum()),
        backward=int((steps < 0.0).sum()),
        saturated=_saturated(values),
        constant=_constant(values),
        quantum=_quantum(values),
        missing=float(np.isnan(values).mean()) if values.size else 0.0,
    )


def saturated_rows(column: Array) -> ArrayAny:
    """Return where a column stays at its least or largest value for two samples or more, (n,).

    A column that reaches an end in one run only, and one of a single value, are not saturated: the end is then a peak or rest.
    """
    marked = np.zeros(len(column), bool)
    finite = column[np.isfinite(column)]
    if finite.size < 2 or finite.min() == finite.max():
        return marked
    for end in (float(finite.min()), float(finite.max())):
        at = column == end
        pairs = at[1:] & at[:-1]
        runs = int(np.count_nonzero(at[1:] & ~at[:-1]) + at[0])
        # Commands rest at zero; an end that is zero is no full scale.
        if pairs.any() and runs >= 2 and end != 0.0:
            marked[1:] |= pairs
            marked[:-1] |= pairs
    return marked


def _saturated(values: Array) -> float:
    if not values.size:
        return 0.0
    return float(np.mean([saturated_rows(column).mean() for column in values.T]))


def _constant(values: Array) -> float:
    if len(values) < 2:
        return 0.0
    return float(np.mean([bool(np.all(column == column[0]) or np.all(np.isnan(column))) for column in values.T]))


def _quantum(values: Array) -> float:
    least = []
    for column in values[:_QUANTUM_ROWS].T:
        steps = np.diff(np.unique(column[np.isfinite(column)]))
        if steps.size:
            least.append(float(steps.min()))
    return max(least, default=0.0)
