"""Where the nose points along a plan: a one-dimensional cubic B-spline through headings to where the vehicle will be.

Minimised are 10 times the squared third differences plus 100 times the squared misses of the way points, which is a linear
system: it is solved exactly. Source: spec/planners section 4.5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.fast.smoothing import smoothed
from airworthy.pilots.planning.bspline import evaluate

__all__ = ["YawPlan", "headings", "unwrapped", "yaw_plan"]

Array = NDArray[np.float64]

_LEAST_WAY = 1e-6
"""Of a vector whose direction means something [m]."""
_BEFORE_END = 0.1
"""The direction at the end is that of the velocity so long before it [s]."""


@dataclass(frozen=True, eq=False)
class YawPlan:
    """An evenly knotted cubic of the heading."""

    control: Array
    """(N,) [rad], not wrapped."""
    interval: float
    """[s]"""


def unwrapped(before: float, angle: float) -> float:
    """The angle, by whole turns, within half a turn of the one before."""
    return before + (angle - before + np.pi) % (2.0 * np.pi) - np.pi


def headings(positions: Array, ahead: Array, start: float) -> Array:
    """Directions (k,) [rad] from positions to points ahead, each (k, 3), without turns over pi; without a way, the last."""
    way = ahead - positions
    result, last = np.empty(len(way)), start
    for k, (x, y, z) in enumerate(way.tolist()):
        if x * x + y * y + z * z > _LEAST_WAY**2:
            last = unwrapped(last, float(np.arctan2(y, x)))
        result[k] = last
    return result


def yaw_plan(
    curve: Array,
    knots: Array,
    start: tuple[float, float, float],
    *,
    ahead: float,
    longest: float,
    smooth: float,
    points: float,
) -> YawPlan:
    """The heading along a plan.

    Args:
        curve: Control points of the plan, (N, 3) [m].
        knots: Of the plan, (N + 4,) [s].
        start: Yaw, its rate and its acceleration when the plan begins [rad, s].
        ahead: Each heading is towards where the plan is so much later [s].
        longest: Knot interval at most [s].
        smooth: Weight of squared third differences.
        points: Weight of squared misses of the headings.
    """
    total = float(knots[len(curve)] - knots[3])
    pieces = max(1, int(np.ceil(total / longest)))
    dt = total / pieces
    at = np.arange(pieces) * dt
    last = np.array([total - _BEFORE_END, total])
    where = evaluate(curve[None], knots[None], np.concatenate([at, np.minimum(at + ahead, total), last])[None])[0]
    wanted = headings(where[:pieces], where[pieces : 2 * pieces], start[0])
    before_end, end = where[-2:]
    final = headings(before_end[None], end[None], wanted[-1])[0]
    control = np.zeros((pieces + 3, 1))
    control[:3, 0], control[-3:, 0] = _with_state(start, dt), final
    return YawPlan(smoothed(control, wanted[:, None], (1, 4, 1), 0, smooth=smooth, weight=points)[:, 0], dt)


def _with_state(state: tuple[float, float, float], dt: float) -> Array:
    """The three control points that give value, rate and acceleration at a knot."""
    value, rate, bend = state
    middle = value - bend * dt * dt / 6.0
    return np.array([middle - rate * dt + 0.5 * bend * dt * dt, middle, middle + rate * dt + 0.5 * bend * dt * dt])
