"""Splines drawn to a guiding path, compared, and refined. Source: spec/planners section 5, steps 2, 6 and 7."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.fast.descent import Fit
from airworthy.pilots.fast.smoothing import smoothed
from airworthy.pilots.planning.bspline import derivative, differences, evaluate, lengthen, limits_ratio, uniform_knots

__all__ = ["CollisionRange", "collision_range", "guided", "path_length", "resampled", "squared_jerk", "stretched"]

Array = NDArray[np.float64]


def path_length(path: Array) -> float:
    """Of corners (k, 3) [m]."""
    return float(np.sqrt((np.diff(path, axis=0) ** 2).sum(1)).sum())


def resampled(path: Array, count: int) -> Array:
    """`count` points (count, 3) evenly along a path (k, 3)."""
    ends = np.append(0.0, np.cumsum(np.sqrt((np.diff(path, axis=0) ** 2).sum(1))))
    way = np.linspace(0.0, ends[-1], count)
    return np.stack([np.interp(way, ends, path[:, k]) for k in range(3)], axis=1)


def guided(control: Array, guide: Array, smooth: float, weight: float) -> Array:
    """Control points (N, 3) that minimise smooth * sum |third differences|^2 + weight * sum |Q_i - g_i|^2.

    The first and the last three stay; `guide` (N - 6, 3) draws the others. The problem is linear and solved exactly.
    """
    return smoothed(control, guide, (1,), 3, smooth=smooth, weight=weight)


def squared_jerk(control: Array, interval: float) -> float:
    """Integral of the squared jerk of an evenly knotted cubic (N, 3)."""
    jerk = differences(control[None], interval, 3)[0]
    return float((jerk**2).sum() * interval)


@dataclass(frozen=True, eq=False)
class CollisionRange:
    """Where a spline is too near to something."""

    head: Array
    """Points before, (h, 3); the last is where it begins."""
    tail: Array
    """Points after, (t, 3); the first is where it is over."""


def collision_range(control: Array, interval: float, times: Array, safe: NDArray[np.bool_]) -> CollisionRange | str:
    """From the first entry to the last exit of what is not safe, at times (m,) [s] of an evenly knotted cubic (N, 3).

    Returns:
        The range; or "free" where there is none, or "ends inside" where it is entered once and never left.
    """
    change = np.diff(np.concatenate([[True], safe]).astype(int))
    entries, exits = np.flatnonzero(change < 0), np.flatnonzero(change > 0)
    if not len(entries):
        return "free"
    if not len(exits):
        return "ends inside"
    knots, total = uniform_knots(len(control), interval), (len(control) - 3) * interval
    first, last = max(float(times[max(entries[0] - 1, 0)]), 0.0), float(times[exits[-1]])

    def points(a: float, b: float) -> Array:
        at = np.linspace(a, b, max(1, int(np.ceil((b - a) / interval - 1e-9))) + 1)
        return evaluate(control[None], knots, at[None])[0]

    return CollisionRange(points(0.0, first), points(last, total))


def stretched(control: Array, interval: float, speed: float, acceleration: float, most: float) -> tuple[Fit, float]:
    """An evenly knotted cubic (N, 3) made slower, or faster, towards its limits: points for a new one, and the time won [s].

    Time is multiplied by how far the limits are exceeded, at most by `most`; a plan that is slower than it need be becomes
    faster.
    """
    knots = uniform_knots(len(control), interval)
    ratio = float(limits_ratio(control[None], np.array([interval]), speed, acceleration)[1][0])
    if len(control) >= 8:
        knots = lengthen(knots, np.array([min(ratio, most)]))
    count = len(control) - 3
    total = float(knots[0, len(control)] - knots[0, 3])
    velocity, velocity_knots = derivative(control[None], knots)
    bend, bend_knots = derivative(velocity, velocity_knots, 2)
    ends = np.array([[0.0, total]])
    boundary = np.stack([evaluate(velocity, velocity_knots, ends, degree=2)[0], evaluate(bend, bend_knots, ends, degree=1)[0]])
    points = evaluate(control[None], knots, np.linspace(0.0, total, count + 1)[None])[0]
    return Fit(points, boundary, total / count), total - count * interval
