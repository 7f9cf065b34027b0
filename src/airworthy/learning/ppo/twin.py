"""What the gated recurrent unit of `layers` computes, in NumPy and float64, instant by instant, to be read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayBool

__all__ = ["GatedWeights", "gated_sequence", "gated_slopes"]


@dataclass(frozen=True)
class GatedWeights:
    """Of a unit; rows in three blocks: reset gate r, update gate z, new content n (the order of torch.nn.GRU)."""

    by_input: Array
    """(3 width, inputs)."""
    by_memory: Array
    """(3 width, width)."""
    bias: Array
    """Of inputs, (3 width,)."""
    other: Array
    """Of memory, (3 width,)."""


def _gates(x: Array, memory: Array, w: GatedWeights) -> tuple[Array, Array, Array, Array]:
    """Gates r and z, content n, and the sum c_n that r lets through, (batch, width) each."""
    a_r, a_z, a_n = np.split(x @ w.by_input.T + w.bias, 3, axis=1)
    c_r, c_z, c_n = np.split(memory @ w.by_memory.T + w.other, 3, axis=1)
    r, z = (1.0 / (1.0 + np.exp(-sums)) for sums in (a_r + c_r, a_z + c_z))
    return r, z, np.tanh(a_n + r * c_n), c_n


def gated_sequence(x: Array, memory: Array, ended: ArrayBool, w: GatedWeights) -> tuple[Array, Array]:
    """Return what is told at each instant, (time, batch, width), and what is held before each and behind the last, one more.

    Args:
        x: (time, batch, inputs).
        memory: Before the first instant, (batch, width).
        ended: Where a flight ended with the step behind an instant, so that the next knows nothing of it, (time, batch).
        w: Weights.
    """
    told, held = [], [memory]
    for now, end in zip(x, ended, strict=True):
        _, z, n, _ = _gates(now, held[-1], w)
        told.append((1.0 - z) * n + z * held[-1])
        held.append(np.where(end[:, None], 0.0, told[-1]))
    return np.array(told), np.array(held)


def gated_slopes(
    x: Array, memory: Array, ended: ArrayBool, w: GatedWeights, by_told: Array, by_last: Array
) -> tuple[Array, Array, GatedWeights]:
    """Return slopes of a number by inputs, by the first memory, and by weights: the chain rule from the last instant back.

    Args:
        x: (time, batch, inputs).
        memory: Before the first instant, (batch, width).
        ended: Where a flight ended with the step behind an instant, (time, batch).
        w: Weights.
        by_told: Slopes by what is told, (time, batch, width).
        by_last: By the memory behind the last instant, (batch, width).
    """
    _, held = gated_sequence(x, memory, ended, w)
    found = GatedWeights(*(np.zeros_like(part) for part in vars(w).values()))
    by_x, by_memory = np.zeros_like(x), by_last
    for t in reversed(range(len(x))):
        r, z, n, c_n = _gates(x[t], held[t], w)
        # What is told goes on as memory, but for flights that ended.
        slope = by_told[t] + np.where(ended[t][:, None], 0.0, by_memory)
        by_n = slope * (1.0 - z) * (1.0 - n * n)
        by_z = slope * (held[t] - n) * z * (1.0 - z)
        by_r = by_n * c_n * r * (1.0 - r)
        by_a, by_c = np.hstack([by_r, by_z, by_n]), np.hstack([by_r, by_z, by_n * r])
        found.by_input[:] += by_a.T @ x[t]
        found.by_memory[:] += by_c.T @ held[t]
        found.bias[:] += by_a.sum(axis=0)
        found.other[:] += by_c.sum(axis=0)
        by_x[t] = by_a @ w.by_input
        by_memory = slope * z + by_c @ w.by_memory
    return by_x, by_memory, found
