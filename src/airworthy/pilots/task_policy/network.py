"""A small network in flight, on NumPy: the same bits alone and in any batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from airworthy.core.arrays import ArrayF32

__all__ = ["ACTIVATIONS", "network_output"]

ACTIVATIONS = ("tanh", "elu", "relu", "clip", "linear")
"""What may stand behind a layer; clip: to within [-1, 1]."""


def network_output(weights: Sequence[ArrayF32], seen: ArrayF32, hidden: str = "tanh", last: str = "tanh") -> ArrayF32:
    """Return what comes out of fully connected layers, (env, outputs), float32.

    Args:
        weights: Weight (rows, columns) and bias (rows,) of each layer, first to last.
        seen: Inputs, (env, columns), float32.
        hidden: Of `ACTIVATIONS`, behind all layers but the last.
        last: Behind the last.
    """
    x = np.ascontiguousarray(seen.T)
    count = len(weights) // 2
    for k, (w, b) in enumerate(zip(weights[::2], weights[1::2], strict=True)):
        # Column by column instead of as a matrix product, whose order of sums depends on the size of the batch; and in the
        # order of the exported C, so that both round alike.
        total = np.repeat(b[:, None], x.shape[1], axis=1)
        for column, row in zip(w.T, x, strict=True):
            total += column[:, None] * row
        x = _activated(total, last if k == count - 1 else hidden)
    return np.ascontiguousarray(x.T)


def _activated(x: ArrayF32, name: str) -> ArrayF32:
    if name == "tanh":
        return np.tanh(x)
    if name == "elu":
        return np.where(x > 0.0, x, np.expm1(np.minimum(x, np.float32(0.0))))
    if name == "relu":
        return np.maximum(x, np.float32(0.0))
    return np.clip(x, np.float32(-1.0), np.float32(1.0)) if name == "clip" else x
