"""A small network in flight, on NumPy: the same bits alone and in any batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from airworthy.core.arrays import ArrayF32

__all__ = ["ACTIVATIONS", "network_output", "recurrent_output"]

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
        x = _activated(_sums(w, b, x), last if k == count - 1 else hidden)
    return np.ascontiguousarray(x.T)


def recurrent_output(weights: Sequence[ArrayF32], seen: ArrayF32, memory: ArrayF32) -> tuple[ArrayF32, ArrayF32]:
    """Return what comes out of a tanh layer, a GRU and a tanh layer, (env, outputs), and what it remembers, (env, hidden).

    Args:
        weights: Weight and bias of the first layer, of the gates by what comes in and by memory, of the last layer.
        seen: Inputs, (env, columns), float32.
        memory: Before, (env, hidden), float32.
    """
    w1, b1, wi, bi, wh, bh, w3, b3 = weights
    held, half = np.ascontiguousarray(memory.T), np.float32(0.5)
    x = np.tanh(_sums(w1, b1, np.ascontiguousarray(seen.T)))
    (ir, iz, fresh), (hr, hz, pushed) = np.split(_sums(wi, bi, x), 3), np.split(_sums(wh, bh, held), 3)
    # The logistic function by tanh, which does not overflow.
    reset, update = half + half * np.tanh(half * (ir + hr)), half + half * np.tanh(half * (iz + hz))
    fresh = np.tanh(fresh + reset * pushed)
    held = fresh + update * (held - fresh)
    out = np.tanh(_sums(w3, b3, held))
    return np.ascontiguousarray(out.T), np.ascontiguousarray(held.T)


def _sums(w: ArrayF32, b: ArrayF32, x: ArrayF32) -> ArrayF32:
    """Return W x + b of columns, (rows, env)."""
    # Column by column instead of as a matrix product, whose order of sums depends on the size of the batch; and in the
    # order of the exported C, so that both round alike.
    total = np.repeat(b[:, None], x.shape[1], axis=1)
    for column, row in zip(w.T, x, strict=True):
        total += column[:, None] * row
    return total


def _activated(x: ArrayF32, name: str) -> ArrayF32:
    if name == "tanh":
        return np.tanh(x)
    if name == "elu":
        return np.where(x > 0.0, x, np.expm1(np.minimum(x, np.float32(0.0))))
    if name == "relu":
        return np.maximum(x, np.float32(0.0))
    return np.clip(x, np.float32(-1.0), np.float32(1.0)) if name == "clip" else x
