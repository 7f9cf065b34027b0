"""What is bounded along a trajectory, each as control points, exact value and upper bound (see `hull`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from airworthy.trajectories.hull import Controls, Quantity, cross_squared_norm, elevate, multiply, squared_norm
from airworthy.trajectories.polynomial import differentiate, substitute, to_bernstein
from airworthy.trajectories.trajectory import Trajectory

Array = NDArray[np.float64]


def derivative_controls(trajectory: Trajectory, order: int) -> tuple[Array, Array]:
    """Control points of a time derivative of position, (pieces, 3, ...), and the pieces' times."""
    spans = np.diff(trajectory.knots)
    controls = to_bernstein(differentiate(trajectory.coefficients, order)) / spans[:, None, None] ** order
    return controls, np.stack((trajectory.knots[:-1], trajectory.knots[1:]), axis=1)


def magnitude(trajectory: Trajectory, order: int, offset: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Quantity:
    """|d^order p / dt^order + offset|: convex, so the largest control point bounds it."""
    controls, times = derivative_controls(trajectory, order)
    return Quantity(
        (controls + np.array(offset)[:, None],), times, lambda v: _norm(v[0]), lambda c: np.max(_norm(c[0]), axis=-1)
    )


def smallest_thrust(trajectory: Trajectory, gravity: float) -> Quantity:
    """-|a + g|^2, whose maximum is the smallest squared thrust over mass, negated."""
    controls, times = derivative_controls(trajectory, 2)
    square = squared_norm(controls + np.array([0.0, 0.0, gravity])[:, None])
    return Quantity((-square,), times, lambda v: v[0][:, 0], lambda c: np.max(c[0][:, 0], axis=-1))


def envelope(trajectory: Trajectory, factor: float) -> Quantity:
    """|a| + factor |v|^3: convex in (v, a), over control points of one degree."""
    speed, times = derivative_controls(trajectory, 1)
    push = elevate(derivative_controls(trajectory, 2)[0], speed.shape[-1] - 1)

    def value(v: tuple[Array, ...]) -> Array:
        return _norm(v[1]) + factor * _norm(v[0]) ** 3

    return Quantity((speed, push), times, value, lambda c: np.max(value(c), axis=-1))


def yaw_rate(trajectory: Trajectory) -> Quantity:
    """|yaw rate|."""
    spans = np.diff(trajectory.yaw_knots)
    controls = (to_bernstein(differentiate(trajectory.yaw_coefficients)) / spans[:, None])[:, None]
    times = np.stack((trajectory.yaw_knots[:-1], trajectory.yaw_knots[1:]), axis=1)
    return Quantity((controls,), times, lambda v: np.abs(v[0][:, 0]), lambda c: np.max(np.abs(c[0][:, 0]), axis=-1))


def along(trajectory: Trajectory, normal: Array) -> Quantity:
    """n . p for a direction n."""
    controls, times = derivative_controls(trajectory, 0)
    line = np.einsum("j,ijk->ik", normal, controls)[:, None]
    return Quantity((line,), times, lambda v: v[0][:, 0], lambda c: np.max(c[0][:, 0], axis=-1))


def polyline_distance(trajectory: Trajectory, polyline: Array) -> Quantity:
    """Distance to a polyline (n, 3): to each leg it is convex, and the nearest leg of a whole piece bounds it."""
    controls, times = derivative_controls(trajectory, 0)

    def value(v: tuple[Array, ...]) -> Array:
        return np.min(_leg_distances(v[0][:, :, None], polyline), axis=(1, 2))

    def upper(c: Controls) -> Array:
        return np.min(np.max(_leg_distances(c[0], polyline), axis=2), axis=1)

    return Quantity((controls,), times, value, upper)


def _leg_distances(points: Array, polyline: Array) -> Array:
    """Distances of points (pieces, 3, k) to each leg of a polyline, shape (pieces, legs, k)."""
    start, leg = polyline[:-1], np.diff(polyline, axis=0)
    square = np.maximum(np.sum(leg * leg, axis=1), 1e-300)
    relative = points[:, None] - start[:, :, None]
    share = np.clip(np.einsum("lj,nljk->nlk", leg, relative) / square[:, None], 0.0, 1.0)
    return np.linalg.norm(relative - share[:, :, None] * leg[:, :, None], axis=2)


def nearness(trajectory: Trajectory, center: Array, half_size: Array, yaw: float) -> Quantity:
    """Minus the distance to a box that is turned by yaw about z: a piece's own box, along the same axes, bounds it."""
    controls, times = derivative_controls(trajectory, 0)
    c, s = np.cos(yaw), np.sin(yaw)
    turn = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    local = np.einsum("ij,njk->nik", turn, controls - center[:, None])

    def gap(low: Array, high: Array) -> Array:
        return np.linalg.norm(np.maximum(0.0, np.maximum(low - half_size, -high - half_size)), axis=-1)

    return Quantity((local,), times, lambda v: -gap(v[0], v[0]), lambda p: -gap(np.min(p[0], axis=-1), np.max(p[0], axis=-1)))


def squared_body_rate(trajectory: Trajectory, gravity: float) -> Quantity:
    """|w|^2 of the flatness map without drag.

    Roll and pitch rates: |j x u|^2 / |u|^4 with u = a + g, a ratio of polynomials, bounded by the ratios of control points.
    Yaw rate: |u| (psi' uz + ux' (uz j' - u' jz) / |u|^2) / (u'^2 + uz^2), primes along the heading, bounded by interval
    arithmetic.
    """
    knots = np.union1d(trajectory.knots, trajectory.yaw_knots)
    lifted = _on(knots, trajectory.knots, trajectory.coefficients, 2)
    lifted[:, 2] += gravity
    jerk = _on(knots, trajectory.knots, trajectory.coefficients, 3)
    yaw = _on(knots, trajectory.yaw_knots, trajectory.yaw_coefficients[:, None], 0)
    turn = _on(knots, trajectory.yaw_knots, trajectory.yaw_coefficients[:, None], 1)
    square = squared_norm(lifted)
    below = multiply(square, square)
    above = elevate(cross_squared_norm(lifted, jerk), below.shape[-1] - 1)
    times = np.stack((knots[:-1], knots[1:]), axis=1)
    return Quantity((lifted, jerk, yaw, turn, above, below), times, _body_rate_value, _body_rate_upper)


def _body_rate_value(v: tuple[Array, ...]) -> Array:
    lifted, jerk, yaw, turn, above, below = v
    c, s = np.cos(yaw[:, 0]), np.sin(yaw[:, 0])
    ahead, left = c * lifted[:, 0] + s * lifted[:, 1], c * lifted[:, 1] - s * lifted[:, 0]
    jerk_ahead = c * jerk[:, 0] + s * jerk[:, 1]
    up, square = lifted[:, 2], _norm(lifted) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        twist = turn[:, 0] * up + left / square * (up * jerk_ahead - ahead * jerk[:, 2])
        spin = np.sqrt(square) / (ahead**2 + up**2) * twist
        total = above[:, 0] / below[:, 0] + spin**2
    # Where the map is undefined nothing is attained; the bound is infinite there.
    return np.where(np.isfinite(total), total, -np.inf)


def _body_rate_upper(c: Controls) -> Array:
    lifted, jerk, yaw, turn, above, below = c
    half = 0.5 * (np.max(yaw[:, 0], axis=-1) - np.min(yaw[:, 0], axis=-1))
    middle = np.min(yaw[:, 0], axis=-1) + half
    cosine, sine = np.cos(middle)[:, None], np.sin(middle)[:, None]
    # A heading within `half` of the middle one moves a horizontal component by at most half times its length.
    slack = half * np.max(np.hypot(lifted[:, 0], lifted[:, 1]), axis=-1)
    slack_jerk = half * np.max(np.hypot(jerk[:, 0], jerk[:, 1]), axis=-1)
    ahead = _range(cosine * lifted[:, 0] + sine * lifted[:, 1], slack)
    left = _range(cosine * lifted[:, 1] - sine * lifted[:, 0], slack)
    jerk_ahead = _range(cosine * jerk[:, 0] + sine * jerk[:, 1], slack_jerk)
    up, jerk_up = _range(lifted[:, 2]), _range(jerk[:, 2])
    square = _range(squared_norm(lifted)[:, 0])
    with np.errstate(divide="ignore", invalid="ignore"):
        leaning = _times(left, _subtract(_times(up, jerk_ahead), _times(ahead, jerk_up)))
        inverse = (1.0 / square[1], 1.0 / square[0])
        twist = _add(_times(_range(turn[:, 0]), up), _times(leaning, inverse))
        flat = _square_low(ahead) + _square_low(up)
        spin = np.sqrt(square[1]) / flat * np.maximum(np.abs(twist[0]), np.abs(twist[1]))
        tilt = np.max(above[:, 0] / below[:, 0], axis=-1)
        total = tilt + spin**2
    sound = (square[0] > 0.0) & (flat > 0.0) & (np.min(below[:, 0], axis=-1) > 0.0) & np.isfinite(total)
    return np.where(sound, total, np.inf)


def _on(knots: Array, own: Array, coefficients: Array, order: int) -> Array:
    """Control points of a time derivative on finer knots, shape (pieces, components, ...)."""
    piece = np.clip(np.searchsorted(own, knots[:-1], side="right") - 1, 0, len(own) - 2)
    span = np.diff(own)[piece]
    cut = [((t - own[piece]) / span)[:, None] for t in (knots[:-1], knots[1:])]
    fine = substitute(coefficients[piece], np.clip(cut[0], 0.0, 1.0), np.clip(cut[1], 0.0, 1.0))
    return to_bernstein(differentiate(fine, order)) / np.diff(knots)[:, None, None] ** order


def _norm(v: Array) -> Array:
    return np.linalg.norm(v, axis=1)


Interval = tuple[Array, Array]


def _range(controls: Array, slack: Array | float = 0.0) -> Interval:
    return np.min(controls, axis=-1) - slack, np.max(controls, axis=-1) + slack


def _add(a: Interval, b: Interval) -> Interval:
    return a[0] + b[0], a[1] + b[1]


def _subtract(a: Interval, b: Interval) -> Interval:
    return a[0] - b[1], a[1] - b[0]


def _times(a: Interval, b: Interval) -> Interval:
    corners: Callable[..., Array] = np.stack
    products = corners((a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]))
    return np.min(products, axis=0), np.max(products, axis=0)


def _square_low(a: Interval) -> Array:
    """Least square over an interval."""
    return np.maximum(0.0, np.maximum(a[0], -a[1])) ** 2
