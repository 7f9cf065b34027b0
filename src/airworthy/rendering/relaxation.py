"""Fixed points of linear maps that are dear to apply: light that goes round a place until it no longer changes.

Repeating x <- G(x) follows light bounce by bounce and nears its end by the walls' reflectance each time, in a white room a
hundred times. Mixing what the last rounds have found so that what they changed cancels best (Anderson, Iterative procedures
for nonlinear integral equations, 1965; for linear maps it is GMRES) ends after a handful.
"""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array

__all__ = ["Relaxation"]


class Relaxation:
    """Proposes what to apply a linear map to next; colours are independent of each other."""

    def __init__(self, depth: int = 4) -> None:
        """Begin.

        Args:
            depth: Rounds that are remembered.
        """
        self.depth = depth
        self.tried: list[Array] = []
        self.found: list[Array] = []

    @property
    def change(self) -> float:
        """What the last round changed, as a share of what it found: the larger of the colours; infinite before the first."""
        if not self.found:
            return float("inf")
        moved, size = (np.abs(x).sum(0) for x in (self.found[-1] - self.tried[-1], self.found[-1]))
        return float(np.max(moved / np.maximum(size, 1e-30)))

    def next(self, tried: Array, found: Array) -> Array:
        """Return what to try next, (n, 3).

        Args:
            tried: What the map was applied to, (n, 3).
            found: What it gave, (n, 3).
        """
        self.tried, self.found = [*self.tried, tried][-self.depth :], [*self.found, found][-self.depth :]
        if len(self.found) == 1:
            return found
        mixed = np.empty_like(found)
        for color in range(found.shape[1]):
            left = np.stack([f[:, color] - t[:, color] for t, f in zip(self.tried, self.found, strict=True)], -1)
            # Weights that sum to 1 and leave least: the last round, and differences of the others to it.
            against = left[:, :-1] - left[:, -1:]
            weights, *_ = np.linalg.lstsq(against, -left[:, -1], rcond=1e-8)
            share = np.append(weights, 1.0 - weights.sum())
            mixed[:, color] = np.stack([f[:, color] for f in self.found], -1) @ share
        # No light is negative; where mixing says so, what was found stands.
        return np.where(mixed >= 0.0, mixed, found)
