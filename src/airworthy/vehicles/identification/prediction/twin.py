"""Rates that follow their torques, readable: the float64 twin of `kernels.integrate_rates`."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array

__all__ = ["integrated"]


def integrated(begun: Array, driven: Array, inertia: Array, inverse: Array, damping: Array, span: float) -> tuple[Array, Array]:
    """Return rates and angular accelerations at each step, (sets, windows, steps + 1, 3) each; as `integrate_rates`.

    Euler's equation, w' = driven - J^-1 (w x J w + damping w), by Runge and Kutta's fourth order.
    """

    def slope(rate: Array, pushed: Array) -> Array:
        momentum = np.einsum("sij,swj->swi", inertia, rate)
        against = np.cross(rate, momentum) + damping[:, None] * rate
        return np.asarray(pushed - np.einsum("sij,swj->swi", inverse, against))

    rate, h = begun, span
    rates, slopes = [rate], []
    for k in range((driven.shape[2] - 1) // 2):
        first, middle, last = (driven[:, :, 2 * k + part] for part in range(3))
        k1 = slope(rate, first)
        k2 = slope(rate + 0.5 * h * k1, middle)
        k3 = slope(rate + 0.5 * h * k2, middle)
        k4 = slope(rate + h * k3, last)
        rate = rate + h / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)
        rates.append(rate)
        slopes.append(k1)
    slopes.append(slope(rate, driven[:, :, -1]))
    return np.stack(rates, axis=2), np.stack(slopes, axis=2)
