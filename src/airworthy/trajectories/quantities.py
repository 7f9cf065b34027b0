"""What is bounded along a trajectory, each as control points, exact value and upper bound.

Certified maxima of functions of polynomials: control points bound a piece from above, its ends from below, halving
closes the gap.

A polynomial piece lies in the convex hull of its Bernstein coefficients (control points). A function convex in the
polynomial's value is therefore at most its largest value at a control point. The bound's excess falls with the square of a
piece's length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.intervals import Interval
from airworthy.core.vectors import norm
from airworthy.trajectories.polynomial import differentiate, substitute, to_bernstein
from airworthy.trajectories.tracked import THRUST_LEAST, RotorBound, Tracked, rotor_use, tracked
from airworthy.trajectories.trajectory import Trajectory

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
    """Return the first halves of all pieces, then second halves."""
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
    """Return the product of polynomials in Bernstein form, shapes (..., m + 1) and (..., n + 1): no cancellation of
    coefficients."""
    m, n = a.shape[-1] - 1, b.shape[-1] - 1
    weighted_a, weighted_b = a * _binomials(m), b * _binomials(n)
    product = np.zeros((*np.broadcast_shapes(a.shape[:-1], b.shape[:-1]), m + n + 1))
    for i in range(m + 1):
        product[..., i : i + n + 1] += weighted_a[..., i : i + 1] * weighted_b
    return product / _binomials(m + n)


def _binomials(degree: int) -> Array:
    return np.array([comb(degree, k) for k in range(degree + 1)], dtype=np.float64)


def squared_norm(controls: Array) -> Array:
    """Return |v|^2 of a vector polynomial (pieces, 3, d + 1) as a polynomial (pieces, 1, 2 d + 1)."""
    return np.sum(multiply(controls, controls), axis=1, keepdims=True)


JUMP = 1e-6
"""Of a derivative at a knot, relative to its largest value: more than rounding leaves."""
_CUTS = np.arange(8) / 8.0  # of each piece, before intervals are worth a look
_PIECES_MAX = 10_000


def derivative_controls(trajectory: Trajectory, order: int) -> tuple[Array, Array]:
    """Return control points of a time derivative of position, (pieces, 3, ...), and the pieces' times."""
    spans = np.diff(trajectory.knots)
    controls = to_bernstein(differentiate(trajectory.coefficients, order)) / spans[:, None, None] ** order
    return controls, np.stack((trajectory.knots[:-1], trajectory.knots[1:]), axis=1)


def magnitude(trajectory: Trajectory, order: int, offset: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Quantity:
    """Return |d^order p / dt^order + offset|: convex, so the largest control point bounds it.

    Args:
        trajectory: The path.
        order: Of the derivative.
        offset: Added to it, world, in its unit.
    """
    controls, times = derivative_controls(trajectory, order)
    return Quantity(
        (controls + np.array(offset)[:, None],), times, lambda v: _norm(v[0]), lambda c: np.max(_norm(c[0]), axis=-1)
    )


def smallest_thrust(trajectory: Trajectory, gravity: float) -> Quantity:
    """Return -|a + g|^2, whose maximum is the smallest squared thrust over mass, negated."""
    controls, times = derivative_controls(trajectory, 2)
    square = squared_norm(controls + np.array([0.0, 0.0, gravity])[:, None])
    return Quantity((-square,), times, lambda v: v[0][:, 0], lambda c: np.max(c[0][:, 0], axis=-1))


def envelope(trajectory: Trajectory, factor: float) -> Quantity:
    """Return |a| + factor |v|^3: convex in (v, a), over control points of one degree."""
    speed, times = derivative_controls(trajectory, 1)
    push = elevate(derivative_controls(trajectory, 2)[0], speed.shape[-1] - 1)

    def value(v: tuple[Array, ...]) -> Array:
        return _norm(v[1]) + factor * _norm(v[0]) ** 3

    return Quantity((speed, push), times, value, lambda c: np.max(value(c), axis=-1))


def yaw_rate(trajectory: Trajectory) -> Quantity:
    """Return |yaw rate|."""
    spans = np.diff(trajectory.yaw_knots)
    controls = (to_bernstein(differentiate(trajectory.yaw_coefficients)) / spans[:, None])[:, None]
    times = np.stack((trajectory.yaw_knots[:-1], trajectory.yaw_knots[1:]), axis=1)
    return Quantity((controls,), times, lambda v: np.abs(v[0][:, 0]), lambda c: np.max(np.abs(c[0][:, 0]), axis=-1))


def along(trajectory: Trajectory, normal: Array) -> Quantity:
    """Return n . p for a direction n."""
    controls, times = derivative_controls(trajectory, 0)
    line = np.einsum("j,ijk->ik", normal, controls)[:, None]
    return Quantity((line,), times, lambda v: v[0][:, 0], lambda c: np.max(c[0][:, 0], axis=-1))


def polyline_distance(trajectory: Trajectory, polyline: Array) -> Quantity:
    """Return the distance to a polyline (n, 3): to each leg it is convex, and the nearest leg of a whole piece bounds it."""
    controls, times = derivative_controls(trajectory, 0)

    def value(v: tuple[Array, ...]) -> Array:
        return np.min(_leg_distances(v[0][:, :, None], polyline), axis=(1, 2))

    def upper(c: Controls) -> Array:
        return np.min(np.max(_leg_distances(c[0], polyline), axis=2), axis=1)

    return Quantity((controls,), times, value, upper)


def _leg_distances(points: Array, polyline: Array) -> Array:
    """Distances of points (pieces, 3, k) to each leg of a polyline, shape (pieces, legs, k)."""
    start, leg = polyline[:-1], np.diff(polyline, axis=0)
    # A leg of no length is its own nearest point.
    square = np.maximum(np.sum(leg * leg, axis=1), 1e-300)
    relative = points[:, None] - start[:, :, None]
    share = np.clip(np.einsum("lj,nljk->nlk", leg, relative) / square[:, None], 0.0, 1.0)
    return np.linalg.norm(relative - share[:, :, None] * leg[:, :, None], axis=2)


def nearness(trajectory: Trajectory, center: Array, half_size: Array, yaw: float) -> Quantity:
    """Return minus the distance to a box that is turned by yaw about z: a piece's own box, along the same axes, bounds it.

    Args:
        trajectory: The path.
        center: Of the box, (3,) [m], world.
        half_size: Of the box, (3,) [m].
        yaw: Of the box [rad].
    """
    controls, times = derivative_controls(trajectory, 0)
    c, s = np.cos(yaw), np.sin(yaw)
    turn = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    local = np.einsum("ij,njk->nik", turn, controls - center[:, None])

    def gap(low: Array, high: Array) -> Array:
        return np.linalg.norm(np.maximum(0.0, np.maximum(low - half_size, -high - half_size)), axis=-1)

    return Quantity((local,), times, lambda v: -gap(v[0], v[0]), lambda p: -gap(np.min(p[0], axis=-1), np.max(p[0], axis=-1)))


def yaw_acceleration(trajectory: Trajectory) -> Quantity:
    """Return |yaw acceleration| within the pieces; see `jumps`."""
    spans = np.diff(trajectory.yaw_knots)
    controls = (to_bernstein(differentiate(trajectory.yaw_coefficients, 2)) / spans[:, None] ** 2)[:, None]
    times = np.stack((trajectory.yaw_knots[:-1], trajectory.yaw_knots[1:]), axis=1)
    return Quantity((controls,), times, lambda v: np.abs(v[0][:, 0]), lambda c: np.max(np.abs(c[0][:, 0]), axis=-1))


def jumps(knots: Array, coefficients: Array, order: int) -> Array:
    """Return where a derivative of pieces (n, axes, k) jumps, in which case the next one has no bound: times [s].

    Args:
        knots: (n + 1,) [s].
        coefficients: (n, axes, k), ascending powers of normalised time.
        order: Of the derivative.
    """
    spans = np.diff(knots)
    controls = to_bernstein(differentiate(coefficients, order)) / spans[:, None, None] ** order
    gap = np.max(np.abs(controls[1:, :, 0] - controls[:-1, :, -1]), axis=1)
    return np.asarray(knots[1:-1][gap > JUMP * np.maximum(1.0, np.max(np.abs(controls)))])


def body_rate(trajectory: Trajectory, gravity: float) -> Quantity:
    """Return |w| in the attitude that the tracking laws hold."""
    return _tracked(trajectory, gravity, 0, lambda state: norm(state.body_rate))


def rotor_thrust(trajectory: Trajectory, gravity: float, bounds: Sequence[RotorBound]) -> Quantity:
    """Return the largest part that any rotor of any drone uses of its own range, see `rotor_use`.

    Args:
        trajectory: The path.
        gravity: [m/s^2]
        bounds: Rotors of every drone that is to follow.
    """

    return _tracked(trajectory, gravity, 1, lambda state: rotor_use(state, bounds))


def _tracked(trajectory: Trajectory, gravity: float, more: int, measure: Callable[[Tracked], Any]) -> Quantity:
    """Return a measure of what a tracked body does; `more` 1: with its angular acceleration.

    The law's own equations in intervals are the bound: each piece lies between its control points, along axes turned by the
    yaw in its middle.
    """
    knots = np.union1d(trajectory.knots, trajectory.yaw_knots)
    knots = np.append((knots[:-1, None] + np.diff(knots)[:, None] * _CUTS).reshape(-1), knots[-1])
    motion = [_on(knots, trajectory.knots, trajectory.coefficients, k) for k in range(2, 4 + more)]
    motion[0][:, 2] += gravity
    heading = [_on(knots, trajectory.yaw_knots, trajectory.yaw_coefficients[:, None], k) for k in range(2 + more)]
    times = np.stack((knots[:-1], knots[1:]), axis=1)

    def value(v: tuple[Array, ...]) -> Array:
        vectors, angles = [tuple(x.T) for x in v[: 2 + more]], [x[:, 0] for x in v[2 + more :]]
        chi = (np.cos(angles[0]), np.sin(angles[0]), 0.0)
        state = tracked(vectors[0], vectors[1], chi, angles[1], *(vectors[2], angles[2]) if more else ())
        found = _largest(np.asarray(measure(state)))
        # Where the map is undefined nothing is attained; the bound is infinite there.
        return np.where(np.isfinite(found) & (state.thrust >= THRUST_LEAST), found, -np.inf)

    def upper(c: Controls) -> Array:
        yaw = Interval.around(c[2 + more][:, 0])
        half = 0.5 * (yaw.high - yaw.low)
        cosine, sine = np.cos(yaw.low + half)[:, None], np.sin(yaw.low + half)[:, None]
        vectors = [_turned(points, cosine, sine) for points in c[: 2 + more]]
        wide = half >= 0.5 * np.pi
        aside = np.where(wide, 1.0, np.sin(half))
        chi = (Interval(np.where(wide, -1.0, np.cos(half)), np.ones_like(half)), Interval(-aside, aside), 0.0)
        turn = [Interval.around(points[:, 0]) for points in c[3 + more :]]
        state = tracked(vectors[0], vectors[1], chi, turn[0], *(vectors[2], turn[1]) if more else ())
        top = _largest(measure(state).high)
        return np.where((state.thrust.low >= THRUST_LEAST) & ~np.isnan(top), top, np.inf)

    return Quantity((*motion, *heading), times, value, upper, _PIECES_MAX)


def _largest(values: Array) -> Array:
    """Of several rotors (rotors, pieces); NaN, where one is."""
    return values if values.ndim == 1 else np.max(values, axis=0)


def _turned(points: Array, cosine: Array, sine: Array) -> tuple[Interval, Interval, Interval]:
    """Ranges of a vector's components along axes turned by an angle."""
    x, y = cosine * points[:, 0] + sine * points[:, 1], cosine * points[:, 1] - sine * points[:, 0]
    return Interval.around(x), Interval.around(y), Interval.around(points[:, 2])


def _on(knots: Array, own: Array, coefficients: Array, order: int) -> Array:
    """Control points of a time derivative on finer knots, shape (pieces, components, ...)."""
    piece = np.clip(np.searchsorted(own, knots[:-1], side="right") - 1, 0, len(own) - 2)
    span = np.diff(own)[piece]
    cut = [((t - own[piece]) / span)[:, None] for t in (knots[:-1], knots[1:])]
    fine = substitute(coefficients[piece], np.clip(cut[0], 0.0, 1.0), np.clip(cut[1], 0.0, 1.0))
    return to_bernstein(differentiate(fine, order)) / np.diff(knots)[:, None, None] ** order


def _norm(v: Array) -> Array:
    return np.linalg.norm(v, axis=1)
