"""Certified maxima of functions of polynomials: control points bound a piece from above, its ends from below, halving
closes the gap.

A polynomial piece lies in the convex hull of its Bernstein coefficients (control points). A function convex in the
polynomial's value is therefore at most its largest value at a control point. The bound's excess falls with the square of a
piece's length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np

from airworthy.core.arrays import Array

Controls = tuple[Array, ...]

ROUNDING = 1e-12
"""Relative allowance for rounding in the control points, which float64 keeps to about 1e-14."""


@dataclass(frozen=True)
class Quantity:
    """A function of time whose maximum is sought.

    Pieces are tuples of control point arrays, each (pieces, components, degree + 1).
    """

    controls: Controls
    times: Array
    """Start and end of each piece [s], shape (pieces, 2)."""
    value: Callable[[tuple[Array, ...]], Array]
    """Exact value from the polynomials' values, each (pieces, components)."""
    upper: Callable[[Controls], Array]
    """Bound of the value over each piece, from its control points."""
    pieces_max: int = 100_000
    """More than these at once are not looked at: what is open then stays open."""


@dataclass(frozen=True)
class Maximum:
    """What is known of a maximum: it is at least `attained`, at `time`, and at most `bound`."""

    bound: float
    attained: float
    time: float


def maximise(quantity: Quantity, tolerance: float, threshold: float | None = None) -> Maximum:
    """Enclose the maximum of a quantity.

    Args:
        quantity: What to bound.
        tolerance: Gap between bound and attained value at which to stop, in the quantity's unit.
        threshold: Value to decide against: halving goes on, down to rounding, while it lies inside the gap.
    """
    controls, times = quantity.controls, quantity.times
    settled, best, best_time = -np.inf, -np.inf, 0.0
    while True:
        upper = quantity.upper(controls)
        # A bound that rounding has made too small would be none.
        upper = upper + ROUNDING * np.abs(upper)
        for end in (0, -1):
            ends = quantity.value(tuple(c[..., end] for c in controls))
            top = float(np.max(ends))
            # Of equal peaks the first, whichever of them a machine's rounding makes the highest.
            index = int(np.argmax(ends >= top - ROUNDING * abs(top))) if np.isfinite(top) else int(np.argmax(ends))
            if ends[index] > best + ROUNDING * abs(best) or not np.isfinite(best):
                best, best_time = float(ends[index]), float(times[index, end])
        bound = max(settled, float(np.max(upper, initial=-np.inf)))
        gap = tolerance
        if threshold is not None and best <= threshold < bound:
            # Close to the threshold the usual gap leaves it open.
            gap = max(min(tolerance, 0.5 * (threshold - best)), 1e-10 * max(1.0, abs(best)))
        # Pieces that cannot hold a larger value than was met are settled and never halved again.
        open_ = upper > best + gap
        settled = max(settled, float(np.max(upper[~open_], initial=-np.inf)))
        count = int(np.count_nonzero(open_))
        widths = times[open_, 1] - times[open_, 0]
        if count == 0 or 2 * count > quantity.pieces_max or float(np.min(widths)) < 1e-12 * float(np.max(times)):
            return Maximum(max(bound, best), best, best_time)
        controls, times = halve(tuple(c[open_] for c in controls), times[open_])


def halve(controls: Controls, times: Array) -> tuple[Controls, Array]:
    """First halves of all pieces, then second halves."""
    middle = 0.5 * (times[:, 0] + times[:, 1])
    first = np.stack((times[:, 0], middle), axis=1)
    second = np.stack((middle, times[:, 1]), axis=1)
    return tuple(_de_casteljau(c) for c in controls), np.concatenate((first, second))


def _de_casteljau(points: Array) -> Array:
    """Control points of both halves: first halves, then second halves."""
    left, right = [points[..., 0]], [points[..., -1]]
    while points.shape[-1] > 1:
        # De Casteljau at the middle: only means of neighbours, so that rounding never leaves the hull.
        points = 0.5 * (points[..., 1:] + points[..., :-1])
        left.append(points[..., 0])
        right.append(points[..., -1])
    return np.concatenate((np.stack(left, axis=-1), np.stack(right[::-1], axis=-1)))


def elevate(controls: Array, degree: int) -> Array:
    """Return the same polynomials with control points of a higher degree."""
    while controls.shape[-1] - 1 < degree:
        n = controls.shape[-1]
        share = np.arange(1, n) / n
        inner = share * controls[..., :-1] + (1.0 - share) * controls[..., 1:]
        controls = np.concatenate((controls[..., :1], inner, controls[..., -1:]), axis=-1)
    return controls


def multiply(a: Array, b: Array) -> Array:
    """Product of polynomials in Bernstein form, shapes (..., m + 1) and (..., n + 1): no cancellation of coefficients."""
    m, n = a.shape[-1] - 1, b.shape[-1] - 1
    weighted_a, weighted_b = a * _binomials(m), b * _binomials(n)
    product = np.zeros((*np.broadcast_shapes(a.shape[:-1], b.shape[:-1]), m + n + 1))
    for i in range(m + 1):
        product[..., i : i + n + 1] += weighted_a[..., i : i + 1] * weighted_b
    return product / _binomials(m + n)


def _binomials(degree: int) -> Array:
    return np.array([comb(degree, k) for k in range(degree + 1)], dtype=np.float64)


def squared_norm(controls: Array) -> Array:
    """|v|^2 of a vector polynomial (pieces, 3, d + 1) as a polynomial (pieces, 1, 2 d + 1)."""
    return np.sum(multiply(controls, controls), axis=1, keepdims=True)
