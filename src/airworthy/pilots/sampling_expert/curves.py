"""Linear maps between anchors, points and polynomials over the expert's horizon: built once, applied to many samples.

Source: specification of the planners, sections 8.4 and 8.5. The horizon is ten points, 0.1 s apart.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["HORIZON", "TIMES", "constrained_fit", "powers", "spline_points"]

Array = NDArray[np.float64]
POINTS, HORIZON = 10, 1.0
TIMES = HORIZON * np.arange(1, POINTS + 1) / POINTS
"""Of the points [s]."""
ANCHORS = 3


@cache
def spline_points() -> Array:
    """(10, 4): points of the natural cubic spline through the vehicle and three anchors at equal times, from these four."""
    step = HORIZON / ANCHORS
    # Second derivatives of the inner knots: m0 + 4 m1 + m2 = 6 (y0 - 2 y1 + y2) / h^2, zero at both ends.
    system = np.array([[4.0, 1.0], [1.0, 4.0]])
    bend = np.linalg.solve(system, 6.0 / step**2 * np.array([[1.0, -2.0, 1.0, 0.0], [0.0, 1.0, -2.0, 1.0]]))
    bend = np.vstack([np.zeros(4), bend, np.zeros(4)])
    rows = []
    for t in TIMES:
        k = min(int(t / step), ANCHORS - 1)
        u = t / step - k
        row = (step**2 / 6.0) * (((1.0 - u) ** 3 - (1.0 - u)) * bend[k] + (u**3 - u) * bend[k + 1])
        row[k] += 1.0 - u
        row[k + 1] += u
        rows.append(row)
    return np.array(rows)


def powers(time: Array, degree: int, derivative: int = 0) -> Array:
    """(..., degree + 1): derivatives of 1, t, t^2, ... at times (...)."""
    time = np.asarray(time, float)
    out = np.zeros((*time.shape, degree + 1))
    for k in range(derivative, degree + 1):
        factor = np.prod([k - j for j in range(derivative)]) if derivative else 1.0
        out[..., k] = factor * time ** (k - derivative)
    return out


@cache
def constrained_fit(degree: int, held: int) -> tuple[Array, Array]:
    """Least squares of a polynomial through the ten points with its first `held` derivatives at the start given.

    Returns:
        (degree + 1, 10) and (degree + 1, held): coefficients from the points and from what is held.
    """
    factorial = np.cumprod([1.0, *range(1, held)])
    given = np.zeros((degree + 1, held))
    given[range(held), range(held)] = 1.0 / factorial
    rows = powers(TIMES, degree)
    free = np.linalg.pinv(rows[:, held:])
    points = np.zeros((degree + 1, POINTS))
    points[held:] = free
    start = given.copy()
    start[held:] = -free @ rows @ given
    return points, start
