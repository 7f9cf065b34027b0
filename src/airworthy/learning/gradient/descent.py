"""Adam on a network's weights, which lie in one array: a step is a few operations on it, not fifty small ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from airworthy.core.arrays import ArrayF32

__all__ = ["Descent"]

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8
"""Adam's, as published (Kingma and Ba 2015)."""


class Descent:
    """Weights that go down a slope.

    Args:
        drawn: Where they begin; copied.
    """

    def __init__(self, drawn: Sequence[ArrayF32]):
        self.flat = np.concatenate([w.ravel() for w in drawn])
        self.moments = np.zeros((2, len(self.flat)), np.float32)
        """First and second, (2, numbers)."""
        ends = np.cumsum([w.size for w in drawn])
        parts = np.split(self.flat, ends[:-1])
        self.weights: list[ArrayF32] = [part.reshape(w.shape) for part, w in zip(parts, drawn, strict=True)]
        """Views, shaped as what was given."""

    def step(self, gradient: Sequence[ArrayF32], rate: float, clip: float, done: int) -> None:
        """Go a step.

        Args:
            gradient: Shaped as the weights.
            rate: Of learning.
            clip: Largest norm of the whole gradient; a longer one is shortened.
            done: Steps that were taken before.
        """
        g = np.concatenate([x.ravel() for x in gradient])
        norm = math.sqrt(float(np.vdot(g, g)))
        # The floor under the norm: where no flight was sound the gradient is zero, and stays so.
        g *= np.float32(min(1.0, clip / max(norm, 1e-30)))
        # Both moments' bias corrections folded into the step (Kingma and Ba 2015, end of section 2).
        size = rate * math.sqrt(1.0 - _BETA2 ** (done + 1)) / (1.0 - _BETA1 ** (done + 1))
        m, v = self.moments
        m += np.float32(1.0 - _BETA1) * (g - m)
        v += np.float32(1.0 - _BETA2) * (g * g - v)
        self.flat -= np.float32(size) * m / (np.sqrt(v) + np.float32(_EPSILON))
