"""Quintics: one segment between two states, and chains of them with the least integral of squared jerk.

Coefficients ascend in powers of seconds. Source: spec/planners section 2 (where the sources call the chain "minimum snap").
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError

__all__ = ["evaluate_polynomial", "least_jerk", "quintic", "quintic_pair"]

Array = NDArray[np.float64]
# Integral of squared jerk of a quintic in (dp, dv T, da T^2), times T^5: what is left of place, speed, acceleration at its end.
_JERK = np.array([[720.0, -360.0, 60.0], [-360.0, 192.0, -36.0], [60.0, -36.0, 9.0]])


def quintic(start: ArrayLike, end: ArrayLike, duration: ArrayLike) -> Array:
    """Coefficients (..., 6, d) of the quintic between states.

    Args:
        start: Position, velocity, acceleration, shape (..., 3, d).
        end: The same at the end.
        duration: Above 0 [s], shape (...).
    """
    (p0, v0, a0), (p1, v1, a1) = (np.moveaxis(np.asarray(s, np.float64), -2, 0) for s in (start, end))
    t = np.asarray(duration, np.float64)[..., None]
    dp = p1 - p0 - v0 * t - a0 * (0.5 * t * t)
    dv = (v1 - v0 - a0 * t) * t
    da = (a1 - a0) * (t * t)
    cubed = t * t * t
    c3 = (10.0 * dp - 4.0 * dv + 0.5 * da) / cubed
    c4 = (-15.0 * dp + 7.0 * dv - da) / (cubed * t)
    c5 = (6.0 * dp - 3.0 * dv + 0.5 * da) / (cubed * t * t)
    return np.stack([p0, v0, 0.5 * a0, c3, c4, c5], axis=-2)


def quintic_pair(start: ArrayLike, middle: ArrayLike, end: ArrayLike, duration: float) -> Array:
    """Coefficients (2, 6, d) of two quintics of equal `duration` [s] through a middle point, with the least squared jerk.

    Jerk and snap are continuous in the middle, which by symmetry gives its acceleration and velocity one by one.

    Args:
        start: Position, velocity, acceleration, shape (3, d).
        middle: Position, shape (d,).
        end: Position, velocity, acceleration, shape (3, d).
        duration: Of each half [s].
    """
    (p0, v0, a0), pm, (p1, v1, a1), t = np.asarray(start, float), np.asarray(middle, float), np.asarray(end, float), duration
    dp, dv, da = pm - p0 - v0 * t - a0 * (0.5 * t * t), (-v0 - a0 * t) * t, -a0 * (t * t)
    ep, ev, ea = p1 - pm, v1 * t, a1 * (t * t)
    am = (60.0 * ep - 24.0 * ev + 3.0 * ea - (60.0 * dp - 36.0 * dv + 9.0 * da)) / (18.0 * t * t)
    vm = (360.0 * dp - 192.0 * dv + 36.0 * da + 360.0 * ep - 168.0 * ev + 24.0 * ea) / (384.0 * t)
    half = np.stack([pm, vm, am])
    return np.stack([quintic(np.stack([p0, v0, a0]), half, t), quintic(half, np.stack([p1, v1, a1]), t)])


def least_jerk(points: ArrayLike, durations: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike) -> Array:
    """Coefficients (m, 6, d) of m quintics through m + 1 points with the least integral of squared jerk.

    Args:
        points: Shape (m + 1, d).
        durations: Above 0 [s], shape (m,).
        velocity: At start and end, shape (2, d).
        acceleration: At start and end, shape (2, d).

    Raises:
        AirworthyError: Fewer than 2 points, another number of durations, or one not above 0.
    """
    p, t = np.asarray(points, np.float64), np.asarray(durations, np.float64)
    if p.ndim != 2 or len(p) < 2 or t.shape != (len(p) - 1,) or not np.all(t > 0.0):
        raise AirworthyError(f"A chain of {len(p)} points takes that many durations less one, above 0, not {t.tolist()}.")
    ends = np.asarray(velocity, np.float64), np.asarray(acceleration, np.float64)
    states = np.zeros((len(p), 3, p.shape[1]))
    states[:, 0], states[0, 1:], states[-1, 1:] = p, (ends[0][0], ends[1][0]), (ends[0][1], ends[1][1])
    if len(p) > 2:
        states[1:-1, 1:] = _free_derivatives(states, t)
    return quintic(states[:-1], states[1:], t)


def _free_derivatives(states: Array, durations: Array) -> Array:
    """Velocities and accelerations at the inner points at which the cost is stationary, (m - 1, 2, d)."""
    count = len(states)
    cost = np.zeros((3 * count, 3 * count))
    for i, t in enumerate(durations):
        left = np.array(
            [[-1.0, -t, -0.5 * t * t, 1.0, 0.0, 0.0], [0.0, -t, -t * t, 0.0, t, 0.0], [0.0, 0.0, -t * t, 0.0, 0.0, t * t]]
        )
        cost[3 * i : 3 * i + 6, 3 * i : 3 * i + 6] += left.T @ _JERK @ left / t**5
    free = np.array([3 * i + k for i in range(1, count - 1) for k in (1, 2)])
    fixed = np.setdiff1d(np.arange(3 * count), free)
    flat = states.reshape(3 * count, -1)
    solved = np.linalg.solve(cost[np.ix_(free, free)], -cost[np.ix_(free, fixed)] @ flat[fixed])
    return np.asarray(solved.reshape(count - 2, 2, -1))


_FACTOR = [np.ones(6), np.arange(1.0, 6.0), np.array([2.0, 6.0, 12.0, 20.0]), np.array([6.0, 24.0, 60.0])]


def evaluate_polynomial(coefficients: Array, time: ArrayLike, order: int = 0) -> Array:
    """Value (..., d), or derivative up to the third, of polynomials (..., 6, d) at times (...) [s]."""
    t = np.asarray(time, np.float64)[..., None]
    factors = _FACTOR[order]
    value = coefficients[..., 5, :] * factors[-1]
    for k in range(4, order - 1, -1):
        value = value * t + coefficients[..., k, :] * factors[k - order]
    return np.asarray(value)
