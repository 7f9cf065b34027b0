"""Costs of EGO-Planner and their gradients over control points; readable, and in the order of operations of the native text.

Control points Q have shape (N, 3); gradients are with respect to all of them. Source: spec/planners sections 3.5 and 3.7.
"""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array

__all__ = ["Pair", "collision_cost", "feasibility_cost", "fitness_cost", "smooth_cost"]

Pair = tuple[Array, Array]
"""A point on the surface of an obstacle, and the unit direction away from it."""


def _dots(a: Array, b: Array) -> Array:
    return np.asarray(a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1] + a[..., 2] * b[..., 2])


def _total(terms: Array) -> float:
    """Sum in index order."""
    return float(np.add.accumulate(terms.reshape(-1))[-1]) if terms.size else 0.0


def smooth_cost(q: Array) -> tuple[float, Array]:
    """Return the sum of |Q_{i+3} - 3 Q_{i+2} + 3 Q_{i+1} - Q_i|^2."""
    jerk = q[3:] - 3.0 * q[2:-1] + 3.0 * q[1:-2] - q[:-3]
    t, gradient = 2.0 * jerk, np.zeros_like(q)
    gradient[3:] += t
    gradient[2:-1] += -3.0 * t
    gradient[1:-2] += 3.0 * t
    gradient[:-3] += -t
    return _total(_dots(jerk, jerk)), gradient


def collision_cost(q: Array, pairs: list[list[Pair]], clearance: float) -> tuple[float, Array]:
    """Return the cost and its gradient for e = d0 - (Q - p).v > 0: e^3 up to d0, beyond it the parabola with the same value,
    slope and curvature.

    Args:
        q: Control points (N, 3) [m], world.
        pairs: Of each control point, bases [m] and unit directions away from obstacles.
        clearance: Wanted distance d0 [m].
    """
    cost, gradient, d0 = 0.0, np.zeros_like(q), clearance
    for i in range(3, len(q) - 3):
        for base, direction in pairs[i]:
            # Beyond d0 a cubic would grow without bound and spoil the line search; the parabola meets it with two equal
            # derivatives.
            e = d0 - float(_dots(q[i] - base, direction))
            if e < 0.0:
                continue
            if e < d0:
                cost += e * e * e
                slope = -3.0 * (e * e)
            else:
                cost += 3.0 * d0 * (e * e) - 3.0 * (d0 * d0) * e + d0 * d0 * d0
                slope = -(6.0 * d0 * e - 3.0 * (d0 * d0))
            gradient[i] += slope * direction
    return cost, gradient


def feasibility_cost(q: Array, interval: float, speed: float, acceleration: float) -> tuple[float, Array]:
    """Return the cost and its gradient per axis (|v| - v_max)^2 / dt^2 and (|a| - a_max)^2, where positive.

    Args:
        q: Control points (N, 3) [m], world.
        interval: Between knots [s].
        speed: Limit v_max per axis [m/s].
        acceleration: Limit a_max per axis [m/s^2].
    """
    fast, gradient = 1.0 / (interval * interval), np.zeros_like(q)
    v = (q[1:] - q[:-1]) / interval
    over = np.maximum(np.abs(v) - speed, 0.0)
    slope = 2.0 * np.where(v > 0.0, over, -over) * fast / interval
    gradient[1:] += slope
    gradient[:-1] += -slope
    # The original divides the speed's excess by dt^2 once more (spec/planners 3.5), which gives it the acceleration's unit.
    terms = over * over * fast
    a = (q[2:] - 2.0 * q[1:-1] + q[:-2]) * fast
    over = np.maximum(np.abs(a) - acceleration, 0.0)
    slope = 2.0 * np.where(a > 0.0, over, -over) * fast
    gradient[2:] += slope
    gradient[1:-1] += -2.0 * slope
    gradient[:-2] += slope
    return _total(np.concatenate([terms.reshape(-1), (over * over).reshape(-1)])), gradient


def fitness_cost(q: Array, reference: Array) -> tuple[float, Array]:
    """Return the distance of the curve's knots from reference points (N - 2, 3): a fifth of it counts along the way, all across
    it."""
    x = (q[1:-3] + 4.0 * q[2:-2] + q[3:-1]) / 6.0 - reference[1:-1]
    v = reference[2:] - reference[:-2]
    along = np.sqrt(_dots(v, v))[:, None]
    v = np.where(along > 0.0, v / np.where(along > 0.0, along, 1.0), 0.0)
    s = _dots(x, v)
    c = np.stack([x[:, (k + 1) % 3] * v[:, (k + 2) % 3] - x[:, (k + 2) % 3] * v[:, (k + 1) % 3] for k in range(3)], axis=1)
    w = np.stack([v[:, (k + 1) % 3] * c[:, (k + 2) % 3] - v[:, (k + 2) % 3] * c[:, (k + 1) % 3] for k in range(3)], axis=1)
    slope = (2.0 * s / 25.0)[:, None] * v + 2.0 * w
    gradient = np.zeros_like(q)
    gradient[3:-1] += slope / 6.0
    gradient[2:-2] += 4.0 * slope / 6.0
    gradient[1:-3] += slope / 6.0
    # 25 and 1 are the squared half axes of the fitness ellipse of spec/planners 3.7: sliding along is cheap, leaving sideways
    # is not.
    return _total(s * s / 25.0 + _dots(c, c)), gradient
