"""B-splines of many flights at once: evaluation, derivatives, fits with boundary derivatives, feasibility, lengthening.

The first axis is the flight, the second the control point or the time, the last the coordinate (three for positions, one for
yaw). Flights with fewer control points than the arrays hold say so in `count`; what lies beyond is never read. Source:
spec/planners section 2. `native/bspline.h` holds the same operations for compiled planners, in the same order, so that both
give the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayLike
from airworthy.core.errors import AirworthyError

__all__ = [
    "DEGREE",
    "derivative",
    "differences",
    "duration",
    "evaluate",
    "evaluate_uniform",
    "fit",
    "lengthen",
    "limits_ratio",
    "uniform_knots",
]


# Source: spec/planners section 2: both original planners use cubic splines, p = 3.
DEGREE = 3


def uniform_knots(count: int, interval: ArrayLike) -> Array:
    """Return knots (i - 3) dt of cubic splines of `count` control points, shape (n, count + 4); `interval` (n,) [s]."""
    return (np.arange(count + DEGREE + 1) - float(DEGREE)) * np.atleast_1d(np.asarray(interval, np.float64))[:, None]


def duration(knots: Array, count: ArrayLike | None = None, degree: int = DEGREE) -> Array:
    """Return the length of the valid time [u_p, u_N] of each spline [s], shape (n,).

    Args:
        knots: (n, N + 4) [s] of a cubic.
        count: Control points of each spline, (n,), where rows are padded; None: all.
        degree: Of the splines.
    """
    last = _counts(knots, count, degree)
    return np.asarray(np.take_along_axis(knots, last[:, None], 1)[:, 0] - knots[:, degree])


def evaluate(control: Array, knots: Array, time: ArrayLike, count: ArrayLike | None = None, degree: int = DEGREE) -> Array:
    """Return points of splines with any knots, by de Boor's recursion.

    Args:
        control: Control points, shape (n, N, d).
        knots: Ascending, shape (n, N + degree + 1).
        time: Since the beginning of the valid time [s], clipped to it, shape (n, m).
        count: Control points in use, shape (n,); None: all.
        degree: 3 for the curve, 2 and 1 for `derivative`s of it.

    Returns:
        Shape (n, m, d).
    """
    last = _counts(knots, count, degree)
    rows = np.arange(len(knots))[:, None]
    end = np.take_along_axis(knots, last[:, None], 1)
    u = np.clip(knots[:, degree, None] + np.asarray(time, np.float64), knots[:, degree, None], end)
    # The knot span of each time: the last whose beginning is not later, among those of the valid time.
    inner = np.arange(knots.shape[1])[None] < last[:, None]
    inner &= np.arange(knots.shape[1])[None] > degree
    span = degree + np.sum((knots[:, None, :] <= u[..., None]) & inner[:, None, :], axis=-1)
    points = [control[rows, span - degree + j] for j in range(degree + 1)]
    for r in range(1, degree + 1):
        for j in range(degree, r - 1, -1):
            low, high = knots[rows, j + span - degree], knots[rows, 1 + j + span - r]
            share = ((u - low) / (high - low))[..., None]
            points[j] = (1.0 - share) * points[j - 1] + share * points[j]
    return np.asarray(points[degree])


def derivative(control: Array, knots: Array, degree: int = DEGREE) -> tuple[Array, Array]:
    """Return control points (n, N - 1, d) and knots of the time derivative, a spline of one degree less.

    Args:
        control: (n, N, d) [m or rad].
        knots: (n, N + degree + 1) [s].
        degree: Of the splines.
    """
    step = knots[:, 1 + degree : -1] - knots[:, 1 : -1 - degree]
    return degree * np.diff(control, axis=1) / step[..., None], knots[:, 1:-1]


def differences(control: Array, interval: ArrayLike, order: int) -> Array:
    """Return control points of a derivative of evenly knotted splines, shape (n, N - order, d): 1 velocity, 2 acceleration, 3
    jerk.

    Args:
        control: (n, N, d) [m or rad].
        interval: Between knots [s], (n,) or one.
        order: 1 velocity, 2 acceleration, 3 jerk.
    """
    return np.diff(control, n=order, axis=1) / np.asarray(interval, np.float64).reshape(-1, 1, 1) ** order


# Basis of the evenly knotted cubic over tau in [0, 1): rows by derivative, columns by control point, ascending powers.
_CUBIC = np.array([[1.0, -3.0, 3.0, -1.0], [4.0, 0.0, -6.0, 3.0], [1.0, 3.0, 3.0, -3.0], [0.0, 0.0, 0.0, 1.0]]) / 6.0
_FALLING = [np.array([1.0, 1.0, 1.0, 1.0]), np.array([1.0, 2.0, 3.0]), np.array([2.0, 6.0]), np.array([6.0])]


def evaluate_uniform(control: Array, interval: Array, time: ArrayLike, order: int = 0, count: ArrayLike | None = None) -> Array:
    """Return points (n, m, d), or a time derivative, of evenly knotted cubics at times (n, m) [s] clipped to [0, duration].

    Args:
        control: Shape (n, N, d).
        interval: Knot spacing, shape (n,) [s].
        time: Shape (n, m) [s].
        order: Derivative, 0 to 3.
        count: Control points in use, shape (n,); None: all.
    """
    pieces = (np.full(len(control), control.shape[1]) if count is None else np.asarray(count, np.int64)) - DEGREE
    scaled = np.clip(np.asarray(time, np.float64) / interval[:, None], 0.0, pieces[:, None])
    piece = np.minimum(scaled.astype(np.int64), pieces[:, None] - 1)
    tau = scaled - piece
    rows = np.arange(len(control))[:, None]
    weights = _CUBIC[:, order:] * _FALLING[order]
    value = np.zeros((*tau.shape, control.shape[2]))
    for j in range(4):
        weight = np.full(tau.shape, weights[j, -1])
        for k in range(weights.shape[1] - 2, -1, -1):
            weight = weight * tau + weights[j, k]
        value += weight[..., None] * control[rows, piece + j]
    for _ in range(order):
        value /= interval[:, None, None]
    return value


def fit(points: ArrayLike, interval: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike) -> Array:
    """Return control points of cubic splines through points at their knots, with velocities and accelerations at both ends.

    K + 4 rows for K + 2 unknowns: [1 4 1]/6 at the points, [-1 0 1]/(2 dt) and [1 -2 1]/dt^2 at both ends, in the sense of
    least squares. The rows touch three neighbours each, so the normal equations have two side diagonals; with the intervals of
    planners (0.05 to 1 s) they keep 10 digits.

    Args:
        points: Shape (n, K, d), K >= 3.
        interval: Time between neighbours [s], shape (n,) or a number.
        velocity: At start and end, shape (n, 2, d).
        acceleration: At start and end, shape (n, 2, d).

    Returns:
        Shape (n, K + 2, d).

    Raises:
        AirworthyError: Fewer than 3 points.
    """
    through = np.asarray(points, np.float64)
    if through.ndim != 3 or through.shape[1] < 3:
        raise AirworthyError(f"A fit takes points of shape (flights, 3 or more, coordinates), not {through.shape}.")
    dt = np.broadcast_to(np.asarray(interval, np.float64), through.shape[:1])
    slope, bend = 1.0 / (2.0 * dt), 1.0 / (dt * dt)
    diagonals, right = _point_rows(through)
    for end in range(2):
        at = end * (through.shape[1] - 1)
        _add_row(diagonals, right, at, (-slope, 0.0 * dt, slope), np.asarray(velocity, np.float64)[:, end])
        _add_row(diagonals, right, at, (bend, -2.0 * bend, bend), np.asarray(acceleration, np.float64)[:, end])
    return _solve_pentadiagonal(diagonals, right)


def _point_rows(points: Array) -> tuple[list[Array], Array]:
    n, k, d = points.shape
    diagonals, right = [np.zeros((n, k + 2)) for _ in range(3)], np.zeros((n, k + 2, d))
    row = (np.full(n, 1.0 / 6.0), np.full(n, 4.0 / 6.0), np.full(n, 1.0 / 6.0))
    for i in range(k):
        _add_row(diagonals, right, i, row, points[:, i])
    return diagonals, right


def _add_row(diagonals: list[Array], right: Array, at: int, row: tuple[Any, Any, Any], value: Array) -> None:
    """Add the normal equations of one row, whose three numbers begin at column `at`."""
    for i in range(3):
        right[:, at + i] += row[i][:, None] * value
        for j in range(i, 3):
            diagonals[j - i][:, at + i] += row[i] * row[j]


def _solve_pentadiagonal(diagonals: list[Array], right: Array) -> Array:
    """Solve symmetric positive systems with two side diagonals, by L D L^T; `diagonals[k][:, i]` couples i and i + k."""
    d, e, f = (a.copy() for a in diagonals)
    x, count = right.copy(), right.shape[1]
    for i in range(count):
        for k, side in ((1, e), (2, f)):
            if i + k < count:
                share = side[:, i] / d[:, i]
                d[:, i + k] -= share * side[:, i]
                if k == 1 and i + 2 < count:
                    e[:, i + 1] -= share * f[:, i]
                x[:, i + k] -= share[:, None] * x[:, i]
    for i in range(count - 1, -1, -1):
        for k, side in ((1, e), (2, f)):
            if i + k < count:
                x[:, i] -= side[:, i, None] * x[:, i + k]
        x[:, i] /= d[:, i, None]
    return x


def limits_ratio(
    control: Array, interval: ArrayLike, speed: ArrayLike, acceleration: ArrayLike, tolerance: float = 0.05
) -> tuple[ArrayBool, Array]:
    """Tell whether evenly knotted splines keep their limits per axis, and by how much their time must be stretched to.

    Args:
        control: Shape (n, N, d).
        interval: Shape (n,) [s].
        speed: Cap per axis, shape (n,) [m/s].
        acceleration: Cap per axis, shape (n,) [m/s^2].
        tolerance: Share by which a cap may be passed.

    Returns:
        Feasible (n,), and r = max(|V| / v, sqrt(|A| / a)) (n,).
    """
    v, a = np.asarray(speed, np.float64), np.asarray(acceleration, np.float64)
    fastest, hardest = (np.max(np.abs(differences(control, interval, k)), axis=(1, 2)) for k in (1, 2))
    feasible = (fastest <= v * (1.0 + tolerance) + 1e-4) & (hardest <= a * (1.0 + tolerance) + 1e-4)
    return feasible, np.maximum(fastest / v, np.sqrt(hardest / a))


def lengthen(knots: Array, ratio: ArrayLike) -> Array:
    """Return knots with those between the fifth and the fifth from behind stretched evenly by `ratio` (n,), the rest moved
    along.

    Raises:
        AirworthyError: Fewer than 8 control points: there is nothing between them.
    """
    first, last = 5, knots.shape[1] - 1 - 5
    if last <= first:
        raise AirworthyError(f"Only splines of 8 or more control points are stretched; this one has {knots.shape[1] - 4}.")
    longer = (np.asarray(ratio, np.float64) - 1.0) * (knots[:, last] - knots[:, first])
    share = longer / (last - first)
    steps = np.clip(np.arange(knots.shape[1]) - first, 0, last - first)
    return np.asarray(knots + share[:, None] * steps)


def _counts(knots: Array, count: ArrayLike | None, degree: int) -> ArrayInt:
    every = np.full(len(knots), knots.shape[1] - degree - 1)
    return every if count is None else np.broadcast_to(np.asarray(count, np.int64), every.shape)
