"""Yaw profiles: ramps between headings, headings along a path, cubic splines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError

RAMP_SHARE = 0.25
"""R of spec/boundary_predictor section 4: the share of a segment in which the heading turns."""
_EVEN = (0.0, 1.0)
# 10 tau^3 - 15 tau^4 + 6 tau^5: from rest to rest with no acceleration at either end.
_SOFT = (0.0, 0.0, 0.0, 10.0, -15.0, 6.0)
SOFT_PEAK_RATE, SOFT_PEAK_ACCELERATION = 1.875, 10.0 / np.sqrt(3.0)
"""Largest derivatives of a unit turn in unit time: at tau = 1/2 and at tau = (3 -+ sqrt 3) / 6."""
_HELD_STEP = 0.1  # [s] between control points of a heading that is held back
_WITHIN = 1.0 - 1e-9
"""A turn at a bound keeps it although times are rounded."""


def unwrap_headings(headings: ArrayLike) -> Array:
    """Return the same headings [rad], shape (n,), each on the shorter arc from the one before."""
    return np.unwrap(np.asarray(headings, dtype=np.float64))


def yaw_ramp(
    knots: ArrayLike,
    headings: ArrayLike,
    share: float = RAMP_SHARE,
    rate: float | None = None,
    acceleration: float | None = None,
) -> tuple[Array, Array]:
    """Return the yaw that turns in each segment to its end's heading during its first part, then holds it.

    Without a bound on the acceleration it turns evenly, as published, and its rate jumps. With one it turns as softly as a
    polynomial of degree 5 from rest to rest does: rate and acceleration begin and end at zero.

    Args:
        knots: Segment times [s], shape (n + 1,).
        headings: Heading at each knot [rad], shape (n + 1,); the shorter arc is taken.
        share: Part of each segment in which it turns, in (0, 1].
        rate: A turn that would be faster [rad/s] takes a longer part, at most the whole segment; None: never.
        acceleration: So does one that would be rougher [rad/s^2]; None: it turns evenly.

    Returns:
        Yaw knots [s], shape (m + 1,), and ascending coefficients of normalised time [rad], shape (m, 2) or (m, 6).
    """
    if not 0.0 < share <= 1.0:
        raise AirworthyError(f"The share of a segment in which yaw turns must be in (0, 1], but is {share!r}.")
    times = np.asarray(knots, dtype=np.float64)
    yaw = unwrap_headings(headings)
    shape = np.array(_EVEN if acceleration is None else _SOFT)
    ends, rows = [0.0], []
    for start, end, before, after in zip(times[:-1], times[1:], yaw[:-1], yaw[1:], strict=True):
        whole, turn = end - start, after - before
        # Bounds only lengthen the turn: the published share is the least.
        turning = max(share * whole, turn_duration(abs(turn), rate, acceleration) / _WITHIN)
        if turning < whole and turn != 0.0:
            ends.append(start + turning)
            rows.append(_turned(before, turn, shape))
            # The rest of the segment holds the heading.
            before, turn = after, 0.0
        ends.append(end)
        rows.append(_turned(before, turn, shape))
    return np.array(ends), np.array(rows)


def turn_duration(angle: Any, rate: float | None = None, acceleration: float | None = None) -> Any:
    """Return the least time [s] of a turn by an angle >= 0 [rad] within bounds [rad/s, rad/s^2], see `yaw_ramp`.

    Args:
        angle: [rad], any shape.
        rate: Largest [rad/s]; None: no bound.
        acceleration: Largest [rad/s^2]; None: no bound, and the turn is even.
    """
    if acceleration is None:
        return 0.0 * angle if rate is None else angle / rate
    by_rate = 0.0 * angle if rate is None else SOFT_PEAK_RATE * angle / rate
    return np.maximum(by_rate, np.sqrt(SOFT_PEAK_ACCELERATION * angle / acceleration))


def _turned(before: float, turn: float, shape: Array) -> Array:
    row = turn * shape
    row[0] = before
    return row


def yaw_fixed(duration: float, yaw: float) -> tuple[Array, Array]:
    """Return one constant yaw [rad] as knots and coefficients."""
    return np.array([0.0, duration]), np.array([[yaw]])


def yaw_spline(knots: ArrayLike, yaw: ArrayLike) -> tuple[Array, Array]:
    """Return the cubic spline through yaw [rad] at knots [s] with zero rate at both ends: the least integrated squared
    acceleration.

    Returns:
        Knots, shape (n + 1,), and ascending coefficients of normalised time, shape (n, 4).
    """
    from scipy.interpolate import CubicSpline

    times = np.asarray(knots, dtype=np.float64)
    spline = CubicSpline(times, np.asarray(yaw, dtype=np.float64), bc_type="clamped")
    return times, spline.c[::-1].T * np.diff(times)[:, None] ** np.arange(4)


def yaw_held_back(
    duration: float, yaw: Callable[[Array], Array], rate: float, acceleration: float | None = None
) -> tuple[Array, Array]:
    """Return a heading that turns no faster than a rate, as near to the wanted one as its largest deviation can be.

    The mean of the least function above and of the greatest below the wanted heading that change by no more than `rate`: it
    turns sooner and later than was asked, by as much. With a bound on the acceleration it is averaged over the time in which
    the rate may turn round. It begins at the wanted heading, and ends there where there is time for that. These are the
    control points of a uniform cubic B-spline, whose derivatives lie between the differences of its control points; it is at
    rest at both ends.

    Args:
        duration: [s]
        yaw: The wanted heading [rad] at times (n,), continuous.
        rate: Most that it turns [rad/s].
        acceleration: Most that its rate changes [rad/s^2]; None: no bound.

    Returns:
        Knots [s], shape (n + 1,), and ascending coefficients of normalised time, shape (n, 4).
    """
    count = int(np.clip(np.ceil(duration / _HELD_STEP), 64, 8000))
    step = duration / count
    if acceleration is not None:
        rate = min(rate, 0.1 * acceleration * duration)  # or there is no time to reach it and to come to rest
    times, most = np.linspace(0.0, duration, count + 1), rate * _WITHIN * step
    # Averaged over 2 half + 1 points, a change of rate from one bound to the other is spread over as many steps.
    half = 0 if acceleration is None else int(np.ceil(most / (acceleration * _WITHIN * step**2)))
    wanted = np.asarray(yaw(times), dtype=np.float64)
    above, below = wanted.copy(), wanted.copy()
    for order in (range(1, count + 1), range(count - 1, -1, -1)):
        for k in order:
            before = k - 1 if order.step > 0 else k + 1
            above[k] = max(above[k], above[before] - most)
            below[k] = min(below[k], below[before] + most)
    held = 0.5 * (above + below)
    room = most * np.maximum(0.0, np.arange(count + 1) - 1.0 - half)
    held = np.clip(held, wanted[0] - room, wanted[0] + room)
    turn, within = wanted[-1] - wanted[0], most * max(0.0, count - 2.0 * (1.0 + half))
    # With a bound on the acceleration it comes to rest in any case, as near to the wanted end as time allows.
    if half or abs(turn) <= within:
        end = wanted[0] + np.clip(turn, -within, within) if abs(turn) > within else wanted[-1]
        held = np.clip(held, end - room[::-1], end + room[::-1])
    if half:
        padded = np.concatenate((np.full(half, held[0]), held, np.full(half, held[-1])))
        held = np.convolve(padded, np.full(2 * half + 1, 1.0 / (2 * half + 1)), mode="valid")
    points = np.concatenate((held[1:2], held, held[-2:-1]))
    spread = np.array([[1.0, 4.0, 1.0, 0.0], [-3.0, 0.0, 3.0, 0.0], [3.0, -6.0, 3.0, 0.0], [-1.0, 3.0, -3.0, 1.0]]) / 6.0
    windows = np.lib.stride_tricks.sliding_window_view(points, 4)
    return times, windows @ spread.T


def path_headings(velocity: ArrayLike, fallback: float = 0.0, slow: float = 0.05) -> Array:
    """Return headings along horizontal velocities, unwrapped; where it is (nearly) zero, the nearest earlier or later one.

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
