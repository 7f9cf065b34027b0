"""Running mean and variance of observations and values."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayFloat

__all__ = ["RunningMoments"]

_LEAST = 1e-8
"""Of a variance: an input that never changes is not blown up (ours)."""


class RunningMoments:
    """Mean and variance of all rows so far, each as much as the others.

    By Chan, Golub and LeVeque's update of Welford's sums in float64: sums of float32 lose their last digits after 1e8 rows.

    Args:
        width: Numbers of a row.
    """

    def __init__(self, width: int):
        self.count = 0.0
        self.mean: Array = np.zeros(width)
        self._squares: Array = np.zeros(width)

    def learn(self, rows: ArrayFloat) -> None:
        """Take rows (n, width) into account; those with a number that is none are left out."""
        # A copy of one's own, which is worked in: of 16,384 rows of 209 numbers each further one would be 27 MB of new memory.
        rows = np.array(rows, float)
        fine = np.isfinite(rows).all(axis=1)
        # Boolean indexing copies, and nearly never is it needed.
        rows = rows if fine.all() else rows[fine]
        if not len(rows):
            return
        mean, whole = rows.mean(axis=0), self.count + len(rows)
        shift = mean - self.mean
        rows -= mean
        self._squares += np.square(rows, out=rows).sum(axis=0) + shift**2 * (self.count * len(rows) / whole)
        self.mean += shift * (len(rows) / whole)
        self.count = whole

    @property
    def deviation(self) -> Array:
        """Standard deviation of each number, (width,); 1 before anything was seen."""
        return np.sqrt(np.maximum(self._squares / self.count, _LEAST)) if self.count else np.ones_like(self.mean)

    def saved(self) -> dict[str, ArrayAny]:
        """Return everything, by name."""
        return {"count": np.array([self.count]), "mean": self.mean.copy(), "squares": self._squares.copy()}

    def restore(self, saved: Mapping[str, ArrayAny]) -> None:
        """Go on from what `saved` gave."""
        self.count = float(saved["count"][0])
        self.mean[:], self._squares[:] = saved["mean"], saved["squares"]


class WeightAverage:
    """Mean of weights over updates, the older the less they count: what a learner wanders about (Polyak and Juditsky 1992).

    Args:
        updates: Over how many, exponentially; 0: none is kept.
    """

    def __init__(self, updates: int):
        self.updates, self.count = updates, 0
        self.mean: Array = np.zeros(0)

    def learn(self, weights: ArrayFloat) -> None:
        """Take weights (n,) into account; the first ones alike, so that there is nothing of a beginning to forget."""
        if not self.updates:
            return
        self.count += 1
        if self.count == 1:
            self.mean = np.array(weights, float)
        self.mean += max(1.0 / self.count, 1.0 / self.updates) * (weights - self.mean)

    def saved(self) -> dict[str, ArrayAny]:
        """Return everything, by name; nothing where nothing is kept."""
        return {"count": np.array([self.count]), "mean": self.mean.copy()} if self.updates else {}

    def restore(self, saved: Mapping[str, ArrayAny]) -> None:
        """Go on from what `saved` gave."""
        if self.updates:
            self.count, self.mean = int(saved["count"][0]), np.array(saved["mean"], float)
