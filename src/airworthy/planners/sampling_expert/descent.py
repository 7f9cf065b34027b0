"""What was sampled, brought to the nearest least cost: a few hundred samples are far from the best of fifty thousand.

A sample of the walk wavers about its reference by as much as it was drawn off it. To fly the best of some does no harm, for 15
times a second another is drawn; a student that learns from them learns the noise. From each kept sample the same cost is
descended by Gauss and Newton with Levenberg's damping, over polynomials of degree 5 that begin as the vehicle flies.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.planners.sampling_expert.sampling import (
    CONTACT,
    GRAVITY,
    POINTS,
    REACH,
    TIMES,
    WEIGHTS,
    Goal,
    powers,
)

__all__ = ["DESCENT_DEGREE", "descended", "descent_cost"]

DESCENT_DEGREE = 5
"""As what is flown, whose two lowest powers are given by place and velocity."""
_FREE = DESCENT_DEGREE - 1
# Ours: the squared vector part of the quaternion between two attitudes is a quarter of their squared angle, which is
# acceleration over gravity where it is small.
_PUSH = 0.25 * WEIGHTS["attitude"] / GRAVITY**2
_LIMIT = 2.0
"""Weight of a height outside of its limits, over that of contact [1/m^2]."""
# Ours: of Levenberg's damping, at first, where a step is taken, where it is not.
_DAMPING, _BETTER, _WORSE = 1e-2, 0.3, 8.0


@cache
def _bases() -> tuple[Array, Array, Array]:
    """Points, velocities and accelerations (10, 4) by the free powers of time."""
    places, speeds, pushes = (powers(TIMES, DESCENT_DEGREE, d)[:, 2:] for d in range(3))
    return places, speeds, pushes


def descent_cost(maps: Any, flights: ArrayInt, goal: Goal, points: Array, speeds: Array, pushes: Array) -> Array:
    """Return the cost (n, m) of trajectories by their points, velocities and accelerations (n, m, 10, 3), world.

    That of the expert but for smooth forms of two terms: nearness by its square, attitude by acceleration.

    Args:
        maps: With a distance field.
        flights: Flights (n,) in the maps.
        goal: The reference to be kept near.
        points: [m]
        speeds: [m/s]
        pushes: [m/s^2]
    """
    return _terms(maps, flights, goal, points, speeds, pushes)[0]


def descended(maps: Any, flights: ArrayInt, goal: Goal, points: Array, steps: int) -> Array:
    """Return trajectories (n, m, 10, 3) that end where no small step costs less; NaN stays NaN.

    Args:
        maps: With a distance field.
        flights: Flights (n,) in the maps.
        goal: Where the vehicles are, and the reference to be kept near.
        points: Of trajectories to begin from, (n, m, 10, 3), world [m].
        steps: Of descent.
    """
    n, m = points.shape[:2]
    base = _bases()[0]
    free = goal.position[:, None] + TIMES[:, None] * goal.velocity[:, None]
    there: ArrayBool = np.asarray(np.isfinite(points).all(axis=(2, 3)))
    begun = np.where(there[..., None, None], points - free[:, None], 0.0)
    x = np.einsum("kt,nmtj->nmkj", np.linalg.pinv(base), begun)
    cost, slope, bend = _model(maps, flights, goal, free, x)
    damping = np.full((n, m), _DAMPING)
    for _ in range(steps):
        diagonal = np.einsum("nmii->nmi", bend)
        system = bend + damping[..., None, None] * (diagonal[..., None] * np.eye(3 * _FREE))
        moved = x - np.linalg.solve(system, slope[..., None])[..., 0].reshape(n, m, _FREE, 3)
        new_cost, new_slope, new_bend = _model(maps, flights, goal, free, moved)
        better = new_cost < cost
        x = np.where(better[..., None, None], moved, x)
        slope = np.where(better[..., None], new_slope, slope)
        bend = np.where(better[..., None, None], new_bend, bend)
        cost = np.where(better, new_cost, cost)
        damping *= np.where(better, _BETTER, _WORSE)
    found = free[:, None] + np.einsum("tk,nmkj->nmtj", base, x)
    return np.asarray(np.where(there[..., None, None], found, np.nan))


def _model(maps: Any, flights: ArrayInt, goal: Goal, free: Array, x: Array) -> tuple[Array, Array, Array]:
    """Return cost (n, m), its gradient (n, m, 12) and Gauss-Newton Hessian (n, m, 12, 12) at coefficients (n, m, 4, 3)."""
    bases = _bases()
    points, speeds, pushes = (np.einsum("tk,nmkj->nmtj", basis, x) for basis in bases)
    points, speeds = points + free[:, None], speeds + goal.velocity[:, None, None]
    cost, off, rows = _terms(maps, flights, goal, points, speeds, pushes)
    n, m = x.shape[:2]
    slope, bend = np.zeros((n, m, _FREE, 3)), np.zeros((n, m, _FREE, 3, _FREE, 3))
    plain = zip(bases, (WEIGHTS["position"], WEIGHTS["velocity"], _PUSH), off, strict=True)
    for basis, weight, error in plain:
        slope += 2.0 * weight * np.einsum("tk,nmtj->nmkj", basis, error)
        square = 2.0 * weight * basis.T @ basis
        for axis in range(3):
            bend[:, :, :, axis, :, axis] += square
    for value, direction in rows:
        # Of a residual r with gradient g at each point: 2 r g, and 2 g g'.
        slope += 2.0 * np.einsum("tk,nmt,nmtj->nmkj", bases[0], value, direction)
        part = np.einsum("tk,nmtj->nmtkj", bases[0], direction).reshape(n, m, POINTS, -1)
        bend += 2.0 * (part.swapaxes(-1, -2) @ part).reshape(bend.shape)
    return cost, slope.reshape(n, m, -1) / POINTS, bend.reshape(n, m, 3 * _FREE, 3 * _FREE) / POINTS


def _terms(
    maps: Any, flights: ArrayInt, goal: Goal, points: Array, speeds: Array, pushes: Array
) -> tuple[Array, tuple[Array, Array, Array], list[tuple[Array, Array]]]:
    """Return cost (n, m), deviations of place, velocity and acceleration, and residuals with their gradients."""
    n, m = points.shape[:2]
    away, slope = maps.distance(flights, points.reshape(n, m * POINTS, 3))
    away, slope = away.reshape(n, m, POINTS), slope.reshape(points.shape)
    off = points - goal.points[:, None], speeds - goal.speeds[:, None], pushes
    near = np.sqrt(CONTACT) * np.maximum(REACH - away, 0.0) / REACH
    touching = np.where((away < REACH)[..., None], -np.sqrt(CONTACT) / REACH * slope, 0.0)
    height, room = points[..., 2], goal.heights[:, None, None]
    beyond = np.maximum(room[..., 0] - height, 0.0) - np.maximum(height - room[..., 1], 0.0)
    scale, up = np.sqrt(_LIMIT * CONTACT), np.zeros_like(points)
    up[..., 2] = np.where(beyond != 0.0, -scale, 0.0)
    rows = [(near, touching), (scale * beyond, up)]
    cost = sum(
        (
            weight * (error**2).sum(axis=-1)
            for weight, error in zip((WEIGHTS["position"], WEIGHTS["velocity"], _PUSH), off, strict=True)
        ),
        np.zeros(away.shape),
    )
    cost = cost + sum((value**2 for value, _ in rows), np.zeros(away.shape))
    return np.asarray(cost.mean(axis=-1)), off, rows
