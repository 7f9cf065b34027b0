"""Metropolis-Hastings over trajectories: three anchors around a reference, cost by deviation and by what is near.

Source: specification of the planners, section 8.4. Several chains run side by side and share the budget; with one chain it is
the published walk.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayIndex, ArrayInt, ArrayU32
from airworthy.core.random import Stream, uniforms

__all__ = [
    "HORIZON",
    "TIMES",
    "Goal",
    "Sampled",
    "collision_cost",
    "constrained_fit",
    "powers",
    "sample",
    "spline_points",
    "trajectory_cost",
]

# -----------------------------------------------------------------------------------------------------------------------------
# Linear maps between anchors, points and polynomials over the expert's horizon: built once, applied to many samples.
#
# Source: specification of the planners, sections 8.4 and 8.5. The horizon is ten points, 0.1 s apart.

# Source: spec/planners 8.4: horizon 10 x 0.1 s; 3 anchors.
POINTS, HORIZON = 10, 1.0
TIMES = HORIZON * np.arange(1, POINTS + 1) / POINTS
"""Of the points [s]."""
ANCHORS = 3
# Standard gravity as everywhere here (docs/concepts/conventions.md): attitudes follow by flatness from what thrust must do.
GRAVITY = 9.81


@cache
def spline_points() -> Array:
    """Return (10, 4): points of the natural cubic spline through the vehicle and three anchors at equal times, from these
    four."""
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
    """Return (..., degree + 1): derivatives of 1, t, t^2, ... at times (...).

    Args:
        time: (...) [s].
        degree: Highest power.
        derivative: Order of the derivative, 0 for the value.
    """
    time = np.asarray(time, float)
    out = np.zeros((*time.shape, degree + 1))
    for k in range(derivative, degree + 1):
        factor = np.prod([k - j for j in range(derivative)]) if derivative else 1.0
        out[..., k] = factor * time ** (k - derivative)
    return out


@cache
def constrained_fit(degree: int, held: int) -> tuple[Array, Array]:
    """Return the least squares of a polynomial through the ten points with its first `held` derivatives at the start given.

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


# -----------------------------------------------------------------------------------------------------------------------------

# Source: spec/planners 8.4: Q = 100 position xy, 100 z, 10 velocity, 200 quaternion.
WEIGHTS = {"position": 100.0, "height": 100.0, "velocity": 10.0, "attitude": 200.0}
# Source: spec/planners 8.4: oriented box 0.3 x 0.3 x 0.2; R = 0.5 + |box|, contact 9999, kept below 9000, good below 100.
BOX = np.array([0.3, 0.3, 0.2])
"""Half lengths of the vehicle, body axes [m]."""
REACH = 0.5 + float(np.linalg.norm(BOX))
"""Farther away nothing costs [m]."""
CONTACT, KEPT_COST, GOOD_COST = 9999.0, 9000.0, 100.0
# Source: spec/planners 8.4: min drone dimension 0.2 m, doubled for the first two points.
NARROW = 0.2
"""Nearer to anything a sample is thrown away; for the first two points twice that [m]."""
# Source: spec/planners 8.4: by 0.15 and 0.2 rad.
WIDENING = np.array([0.15, 0.2])
"""Added to the half widths of both angles at the first step, at one third, and at two thirds of the budget [rad]."""
# Source: spec/planners 8.4: exp(-0.01 c) + 1e-7; polynomials of degree 8.
TEMPER, FLOOR = 0.01, 1e-7
DEGREE = 8


@dataclass(frozen=True, eq=False)
class Goal:
    """Of n flights: where they are and what they should do over the horizon."""

    position: Array
    """(n, 3)"""
    velocity: Array
    """(n, 3)"""
    points: Array
    """Reference, (n, 10, 3)."""
    speeds: Array
    """Its velocities, (n, 10, 3)."""
    heights: Array
    """Least and largest height, (n, 2) [m]."""


@dataclass(frozen=True, eq=False)
class Sampled:
    """Of n flights."""

    coefficients: Array
    """Of the best polynomials, (n, k, 9, 3), best first; NaN where there are fewer."""
    cost: Array
    """(n, k), infinite there."""
    samples: ArrayInt
    """Trajectories that were looked at, (n,)."""


def collision_cost(maps: Any, flights: ArrayInt, points: Array, turn: Array) -> tuple[Array, Array]:
    """Return the cost of each point (n, m, 3) of bodies with axes in the columns of `turn` (n, m, 3, 3), and its distance (n,
    m) [m].

    Args:
        maps: With a distance field.
        flights: Flights (n,) in the maps.
        points: (n, m, 3) [m], world.
        turn: Body axes as columns, (n, m, 3, 3).
    """
    away, slope = maps.distance(flights, points)
    steep = np.linalg.norm(slope, axis=-1, keepdims=True)
    toward = -away[..., None] * slope / np.maximum(steep, 1e-9)
    local = np.abs(np.einsum("nmij,nmi->nmj", turn, toward))
    touch = (local <= BOX).all(axis=-1) | (away <= 0.0)
    return np.where(touch, CONTACT, CONTACT * np.clip((REACH - away) / REACH, 0.0, 1.0)), np.asarray(away)


def axes_of(acceleration: Array, velocity: Array) -> Array:
    """Return attitudes by flatness with the nose along the way: body axes as columns (..., 3, 3)."""
    push = acceleration + np.array([0.0, 0.0, GRAVITY])
    z = push / np.maximum(np.linalg.norm(push, axis=-1, keepdims=True), 1e-9)
    yaw = np.arctan2(velocity[..., 1], velocity[..., 0])
    x = np.cross(np.stack([-np.sin(yaw), np.cos(yaw), np.zeros_like(yaw)], axis=-1), z)
    x /= np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-9)
    return np.stack([x, np.cross(z, x), z], axis=-1)


def trajectory_cost(maps: Any, flights: ArrayInt, coefficients: Array, goal: Goal) -> Array:
    """Return the cost of polynomials (n, c, 9, 3) of c chains per flight, (n, c); infinite where one comes too near to
    anything.

    Args:
        maps: With a distance field.
        flights: Flights (n,) in the maps.
        coefficients: (n, c, 9, 3), ascending powers of time [m, s], world.
        goal: The reference to be kept near.
    """
    n, c = coefficients.shape[:2]
    points, speeds, pushes = (np.einsum("tk,nckj->nctj", powers(TIMES, DEGREE, d), coefficients) for d in range(3))
    turn, level = axes_of(pushes, speeds), axes_of(np.zeros_like(goal.speeds), goal.speeds)[:, None]
    flat = np.repeat(flights, c), points.reshape(n * c, POINTS, 3), turn.reshape(n * c, POINTS, 3, 3)
    hit, away = (a.reshape(n, c, POINTS) for a in collision_cost(maps, *flat))
    off = points - goal.points[:, None]
    cost = WEIGHTS["position"] * (off[..., :2] ** 2).sum(axis=-1) + WEIGHTS["height"] * off[..., 2] ** 2
    cost = cost + WEIGHTS["velocity"] * ((speeds - goal.speeds[:, None]) ** 2).sum(axis=-1)
    # Squared vector part of the quaternion between two attitudes: (3 - trace) / 4.
    aligned = np.clip((turn * level).sum(axis=(-2, -1)), -1.0, 3.0)
    cost = cost + WEIGHTS["attitude"] * 0.25 * (3.0 - aligned)
    least = np.full(POINTS, NARROW)
    least[:2] *= 2.0
    height, room = points[..., 2], goal.heights[:, None, None]
    outside = (height < room[..., 0]) | (height > room[..., 1])
    return np.where(((away < least) | outside).any(axis=-1), np.inf, (cost + hit).mean(axis=-1))


def sample(maps: Any, flights: ArrayInt, goal: Goal, key: ArrayU32, tick: ArrayInt, settings: Any) -> Sampled:
    """Return the best trajectories of n flights.

    Args:
        maps: With a distance field.
        flights: Flights (n,) in the maps.
        goal: Where they are and where to.
        key: Of each flight, (n, 4).
        tick: Number of the decision of each flight, (n,).
        settings: With `samples`, `chains`, `kept`.
    """
    n, chains = len(flights), settings.chains
    steps = max(1, settings.samples // chains)
    radius, angles = _spherical(np.einsum("at,ntj->naj", _anchor_rows(), goal.points) - goal.position[:, None])
    present = np.repeat(angles[:, None], chains, axis=1)
    cost = np.full((n, chains), np.inf)
    best = Sampled(
        np.full((n, settings.kept, DEGREE + 1, 3), np.nan), np.full((n, settings.kept), np.inf), np.zeros(n, np.int64)
    )
    width, going = np.zeros(2), np.ones(n, bool)
    for step in range(steps):
        if step in (0, steps // 3, 2 * steps // 3):
            width = width + WIDENING
        ids = np.flatnonzero(going)
        drawn = _drawn(key[ids], tick[ids] * steps + step, chains)
        tried = present[ids] + width * (2.0 * drawn[..., :6].reshape(len(ids), chains, ANCHORS, 2) - 1.0)
        if step == 0:
            tried[:, 0] = present[ids, 0]  # the reference itself comes first
        part = Goal(*(getattr(goal, name)[ids] for name in ("position", "velocity", "points", "speeds", "heights")))
        coefficients = _polynomials(part, radius[ids], tried)
        new = trajectory_cost(maps, flights[ids], coefficients, part)
        old = cost[ids]
        ratio = (np.exp(-TEMPER * new) + FLOOR) / (np.exp(-TEMPER * old) + FLOOR)
        take = np.isfinite(new) & (drawn[..., 6] < np.minimum(1.0, ratio))
        present[ids] = np.where(take[..., None, None], tried, present[ids])
        cost[ids] = np.where(take, new, old)
        best.samples[ids] += chains
        _keep(best, ids, coefficients, new)
        going[ids] = (best.cost[ids] < GOOD_COST).sum(axis=1) < settings.kept
        if not going.any():
            break
    return best


def _anchor_rows() -> Array:
    """(3, 10): points at the anchors' times, by lines between the ten."""
    times = TIMES[-1] * np.arange(1, ANCHORS + 1) / ANCHORS
    return np.array([[np.interp(t, TIMES, row) for row in np.eye(POINTS)] for t in times])


def _drawn(key: ArrayU32, number: ArrayInt, chains: int) -> Array:
    """Seven uniform numbers per chain, (n, chains, 7): of each chain two blocks of four of its own number."""
    block = (number[:, None] * chains + np.arange(chains))[..., None] * 2 + np.arange(2)
    return uniforms(key[:, None, None], block.astype(np.uint32), Stream.SENSED, 4).reshape(len(key), chains, 8)[..., :7]


def _keep(best: Sampled, ids: ArrayIndex, coefficients: Array, cost: Array) -> None:
    costs = np.concatenate([best.cost[ids], np.where(cost < KEPT_COST, cost, np.inf)], axis=1)
    order = np.argsort(costs, axis=1, kind="stable")[:, : best.cost.shape[1]]
    every = np.concatenate([best.coefficients[ids], coefficients], axis=1)
    best.cost[ids] = np.take_along_axis(costs, order, axis=1)
    best.coefficients[ids] = np.take_along_axis(every, order[..., None, None], axis=1)


def _spherical(points: Array) -> tuple[Array, Array]:
    """Radius (..., ) and angles (..., 2), azimuth and elevation, of points (..., 3)."""
    radius = np.linalg.norm(points, axis=-1)
    level = np.hypot(points[..., 0], points[..., 1])
    return radius, np.stack([np.arctan2(points[..., 1], points[..., 0]), np.arctan2(points[..., 2], level)], axis=-1)


def _polynomials(goal: Goal, radius: Array, angles: Array) -> Array:
    """Polynomials (n, c, 9, 3) through the splines of anchors (n, c, 3, 2), from the present place and velocity."""
    azimuth, elevation = angles[..., 0], angles[..., 1]
    level = np.cos(elevation)
    unit = np.stack([level * np.cos(azimuth), level * np.sin(azimuth), np.sin(elevation)], axis=-1)
    anchors = goal.position[:, None, None] + radius[:, None, :, None] * unit
    knots = np.concatenate([np.broadcast_to(goal.position[:, None, None], (*anchors.shape[:2], 1, 3)), anchors], axis=2)
    points = np.einsum("tk,nckj->nctj", spline_points(), knots)
    by_points, by_start = constrained_fit(DEGREE, 2)
    start = np.stack([goal.position, goal.velocity], axis=1)
    return np.asarray(np.einsum("kt,nctj->nckj", by_points, points) + np.einsum("kh,nhj->nkj", by_start, start)[:, None])
