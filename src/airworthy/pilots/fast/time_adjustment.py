"""Knots stretched where control points break the limits: the twin of native/time_adjustment.h. Source: spec/planners 4.4."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["adjusted", "derivative_peaks"]

Array = NDArray[np.float64]


def adjusted(control: Array, knots: Array, speed: float, most: float, sweeps: int = 3) -> Array:
    """Knots (N + 4,) of a cubic (N, 3), made slower where its velocity or acceleration control points exceed the limits.

    A sweep visits every point once and stretches its knots by at most a tenth, so a limit may still be broken afterwards.

    Args:
        control: [m]
        knots: [s]
        speed: Limit per axis [m/s].
        most: Limit per axis [m/s^2].
        sweeps: At most so many.
    """
    u = knots.copy()
    for _ in range(sweeps):
        if _sweep(control, u, speed, most):
            break
    return u


def _velocity(q: Array, u: Array, i: int) -> Array:
    return 3.0 * (q[i + 1] - q[i]) / (u[i + 4] - u[i + 1])


def _acceleration(q: Array, u: Array, i: int) -> Array:
    return 2.0 * (_velocity(q, u, i + 1) - _velocity(q, u, i)) / (u[i + 4] - u[i + 2])


def _stretch(u: Array, first: int, last: int, longer: float) -> None:
    """Spread `longer` evenly over knots first .. last and move the later ones along."""
    share = longer / (last - first + 1)
    u[first : last + 1] += np.arange(1, last - first + 2) * share
    u[last + 1 :] += longer


def _sweep(q: Array, u: Array, speed: float, most: float) -> bool:
    kept = True
    for i in range(len(q) - 1):
        worst = float(np.abs(_velocity(q, u, i)).max())
        if worst > speed + 1e-4:
            kept = False
            ratio = min(1.1, worst / speed + 1e-4)
            _stretch(u, i + 2, i + 4, (ratio - 1.0) * (u[i + 4] - u[i + 1]))
    for i in range(len(q) - 2):
        worst = float(np.abs(_acceleration(q, u, i)).max())
        if worst > most + 1e-4:
            kept = False
            longer = (min(1.1, math.sqrt(worst / most) + 1e-4) - 1.0) * (u[i + 4] - u[i + 2])
            # At the beginning the time is put where it leaves the first acceleration as it is.
            if i in (1, 2):
                _stretch(u, 2, 5, 2.0 * longer)
            else:
                _stretch(u, i + 3, i + 4, longer)
    return kept


def derivative_peaks(control: Array, knots: Array) -> tuple[float, float]:
    """Largest components of the control points of velocity [m/s] and acceleration [m/s^2]."""
    fastest = max(float(np.abs(_velocity(control, knots, i)).max()) for i in range(len(control) - 1))
    hardest = max(float(np.abs(_acceleration(control, knots, i)).max()) for i in range(len(control) - 2))
    return fastest, hardest
