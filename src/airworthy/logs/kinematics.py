"""Attitude from a gyro alone."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.frames import from_rotation_vector


def integrate_gyro(time: Array, rate: Array) -> Array:
    """Return the attitude relative to the first sample, quaternions (n, 4), by the mean rate over each step (second order).

    Args:
        time: [s], ascending, (n,).
        rate: Body rate [rad/s], (n, 3).
    """
    turns = from_rotation_vector(0.5 * (rate[1:] + rate[:-1]) * np.diff(time)[:, None]).tolist()
    out = np.empty((len(time), 4))
    x, y, z, w = 0.0, 0.0, 0.0, 1.0
    out[0] = x, y, z, w
    # Written out: a product of two quaternions in NumPy takes longer over its arguments than over the products.
    for index, (a, b, c, d) in enumerate(turns, start=1):
        x, y, z, w = (
            w * a + x * d + y * c - z * b,
            w * b - x * c + y * d + z * a,
            w * c + x * b - y * a + z * d,
            w * d - x * a - y * b - z * c,
        )
        out[index] = x, y, z, w
    return out / np.linalg.norm(out, axis=1, keepdims=True)
