"""Yaw profiles: ramps between headings, headings along a path, cubic splines."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError

Array = NDArray[np.float64]

RAMP_SHARE = 0.25
"""R of spec/boundary_predictor section 4: the share of a segment in which the heading turns."""
_WITHIN = 1.0 - 1e-9
"""A turn at a bound keeps it although times are rounded."""


def unwrap_headings(headings: ArrayLike) -> Array:
    """The same headings [rad], shape (n,), each on the shorter arc from the one before."""
    return np.unwrap(np.asarray(headings, dtype=np.float64))


def yaw_ramp(
    knots: ArrayLike, headings: ArrayLike, share: float = RAMP_SHARE, rate: float | None = None
) -> tuple[Array, Array]:
    """Piecewise linear yaw: each segment turns to its end's heading during its first part, then holds it.

    Args:
        knots: Segment times [s], shape (n + 1,).
        headings: Heading at each knot [rad], shape (n + 1,); the shorter arc is taken.
        share: Part of each segment in which it turns, in (0, 1].
        rate: A turn that would be faster [rad/s] takes a longer part, at most the whole segment; None: never.

    Returns:
        Yaw knots [s], shape (m + 1,), and ascending coefficients of normalised time [rad], shape (m, 2).
    """
    if not 0.0 < share <= 1.0:
        raise AirworthyError(f"The share of a segment in which yaw turns must be in (0, 1], but is {share!r}.")
    times = np.asarray(knots, dtype=np.float64)
    yaw = unwrap_headings(headings)
    ends, rows = [0.0], []
    for start, end, before, after in zip(times[:-1], times[1:], yaw[:-1], yaw[1:], strict=True):
        whole = end - start
        turning = share * whole if rate is None else max(share * whole, abs(after - before) / (rate * _WITHIN))
        if turning < whole and before != after:
            ends.append(start + turning)
            rows.append((before, after - before))
            before = after
        ends.append(end)
        rows.append((before, after - before))
    return np.array(ends), np.array(rows)


def yaw_fixed(duration: float, yaw: float) -> tuple[Array, Array]:
    """One constant yaw [rad] as knots and coefficients."""
    return np.array([0.0, duration]), np.array([[yaw]])


def yaw_spline(knots: ArrayLike, yaw: ArrayLike) -> tuple[Array, Array]:
    """Cubic spline through yaw [rad] at knots [s] with zero rate at both ends: the least integrated squared acceleration.

    Returns:
        Knots, shape (n + 1,), and ascending coefficients of normalised time, shape (n, 4).
    """
    from scipy.interpolate import CubicSpline

    times = np.asarray(knots, dtype=np.float64)
    spline = CubicSpline(times, np.asarray(yaw, dtype=np.float64), bc_type="clamped")
    return times, spline.c[::-1].T * np.diff(times)[:, None] ** np.arange(4)


def path_headings(velocity: ArrayLike, fallback: float = 0.0, slow: float = 0.05) -> Array:
    """Headings along horizontal velocities, unwrapped; where it is (nearly) zero, the nearest earlier or later one.

    Args:
        velocity: Shape (n, 3) [m/s].
        fallback: Heading where nothing moves sideways at all [rad].
        slow: Horizontal speed below this share of the largest has no heading.
    """
    v = np.asarray(velocity, dtype=np.float64)
    speed = np.hypot(v[:, 0], v[:, 1])
    moving = np.flatnonzero(speed > max(slow * float(np.max(speed, initial=0.0)), 1e-6))
    if len(moving) == 0:
        return np.full(len(v), fallback)
    headings = np.unwrap(np.arctan2(v[moving, 1], v[moving, 0]))
    return np.interp(np.arange(len(v)), moving, headings)
