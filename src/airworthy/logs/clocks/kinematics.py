"""Attitude from a gyro alone."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.frames import from_rotation_vector

_BLOCK = 1 << 15
"""Ours: steps that are numbers of Python at once, which take twenty times the room."""


def integrate_gyro(time: Array, rate: Array) -> Array:
    """Return the attitude relative to the first sample, quaternions (n, 4), by the mean rate over each step (second order).

    Args:
        time: [s], ascending, (n,).
        rate: Body rate [rad/s], (n, 3).
    """
    out = np.empty((len(time), 4))
    x, y, z, w = 0.0, 0.0, 0.0, 1.0
    out[0] = x, y, z, w
    for first in range(0, len(time) - 1, _BLOCK):
        part = slice(first, first + _BLOCK + 1)
        turns = from_rotation_vector(0.5 * (rate[part][1:] + rate[part][:-1]) * np.diff(time[part])[:, None]).tolist()
        rows = []
        # Written out: a product of two quaternions in NumPy takes longer over its arguments than over the products.
        for a, b, c, d in turns:
            x, y, z, w = (
                w * a + x * d + y * c - z * b,
                w * b - x * c + y * d + z * a,
                w * c + x * b - y * a + z * d,
                w * d - x * a - y * b - z * c,
            )
            rows.append((x, y, z, w))
        out[first + 1 : first + 1 + len(rows)] = rows
    for first in range(0, len(out), _BLOCK):
        out[first : first + _BLOCK] /= np.linalg.norm(out[first : first + _BLOCK], axis=1, keepdims=True)
    return out
