"""Linear-quadratic tracking with bounds for many flights: an interior-point method over a Riccati recursion, in NumPy.

    minimise  sum_k (e_k + x_k)' Q (e_k + x_k) / 2 + (f_k + u_k)' R (f_k + u_k) / 2 + (e_N + x_N)' Q (e_N + x_N) / 2
    with      x_0 given,  x_{k+1} = A_k x_k + B_k u_k + c_k,  low <= u_k <= high,  floor <= x_k[bounded] <= top  (k > 0)

Bounds enter as terms lambda / s on the diagonal, so each step is one recursion. Every product is of one flight's matrices:
results do not depend on the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from airworthy.core.arrays import Array

__all__ = ["LinearProblem", "solve_bounded"]


# Ours: a fixed number, so that results do not depend on a tolerance and rows of a batch stay alike; real-time iteration starts
# warm.
ITERATIONS = 8
CENTERING = 0.1
"""Ours: share of the complementarity that is aimed at in each step, as usual of interior points."""
# Ours, customary of interior points: 99 % of the way to a bound, starts 5 % inside, and products kept above rounding.
_KEEP, _INSIDE, _SMALLEST = 0.99, 0.05, 1e-9


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """n problems of N steps with states of size s and inputs of size m."""

    a: Array
    """(N, n, s, s)"""
    b: Array
    """(N, n, s, m)"""
    c: Array
    """(N, n, s)"""
    start: Array
    """x_0, (n, s)."""
    state_error: Array
    """e, (N + 1, n, s)."""
    input_error: Array
    """f, (N, n, m)."""
    state_weight: Array
    """Diagonal of Q, (n, s)."""
    input_weight: Array
    """Diagonal of R, (n, m)."""
    low: Array
    """(N, n, m)"""
    high: Array
    bounded: slice
    """States that have bounds."""
    floor: Array
    """(N + 1, n, j); those of step 0 are not used."""
    top: Array


class _Bound(NamedTuple):
    """One-sided bounds of a variable: slacks and multipliers of its lower and upper one."""

    s: tuple[Array, Array]
    m: tuple[Array, Array]


def solve_bounded(problem: LinearProblem, iterations: int = ITERATIONS) -> tuple[Array, Array]:
    """Return states (N + 1, n, s) and inputs (N, n, m), the inputs within their bounds."""
    x, u = np.zeros_like(problem.state_error), np.zeros_like(problem.input_error)
    x[0] = problem.start
    rows = problem.bounded
    limits = ((problem.low, problem.high), (problem.floor, problem.top))
    bounds = [_begun(u, *limits[0]), _begun(x[..., rows], *limits[1])]
    for _ in range(iterations):
        mu = _mean_product(bounds) * CENTERING
        terms = [_terms(z, bound, limit, mu) for z, bound, limit in zip((u, x[..., rows]), bounds, limits, strict=True)]
        new_x, new_u = _riccati(problem, terms[0], terms[1])
        steps = [new_u - u, new_x[..., rows] - x[..., rows]]
        moves = [
            _moves(z, dz, bound, limit, mu)
            for z, dz, bound, limit in zip((u, x[..., rows]), steps, bounds, limits, strict=True)
        ]
        size = np.minimum(*[_largest(bound, move) for bound, move in zip(bounds, moves, strict=True)])[None, :, None]
        x, u = x + size * (new_x - x), u + size * (new_u - u)
        bounds = [_moved(bound, move, size) for bound, move in zip(bounds, moves, strict=True)]
    return x, np.clip(u, problem.low, problem.high)


def _begun(z: Array, low: Array, high: Array) -> _Bound:
    # Slacks start clear of zero even where bounds touch: a rotor that is not there has none between its limits.
    room = np.maximum(_INSIDE * (high - low), 1e-6)
    slack = np.maximum(z - low, room), np.maximum(high - z, room)
    return _Bound(slack, (room / slack[0], room / slack[1]))


def _mean_product(bounds: list[_Bound]) -> Array:
    """Mean of slack times multiplier of each flight, (n,)."""
    total, count = np.zeros(bounds[0].s[0].shape[1]), 0
    for bound in bounds:
        for s, m in zip(bound.s, bound.m, strict=True):
            total, count = total + (s * m).sum(axis=(0, 2)), count + s.shape[0] * s.shape[2]
    return total / count


def _terms(z: Array, bound: _Bound, limit: tuple[Array, Array], mu: Array) -> tuple[Array, Array]:
    """Diagonal and gradient that bounds add to the cost of the new z."""
    (s0, s1), (m0, m1) = bound
    away0, away1 = z - limit[0] - s0, limit[1] - z - s1
    weight = m0 / s0 + m1 / s1
    push = mu[None, :, None]
    return weight, -weight * z - push / s0 + m0 * away0 / s0 + push / s1 - m1 * away1 / s1


def _moves(z: Array, dz: Array, bound: _Bound, limit: tuple[Array, Array], mu: Array) -> _Bound:
    (s0, s1), (m0, m1) = bound
    push = mu[None, :, None]
    ds0, ds1 = dz + (z - limit[0] - s0), -dz + (limit[1] - z - s1)
    return _Bound((ds0, ds1), ((push - m0 * (s0 + ds0)) / s0, (push - m1 * (s1 + ds1)) / s1))


def _largest(bound: _Bound, move: _Bound) -> Array:
    """Largest step of each flight that keeps slacks and multipliers positive, at most 1, (n,)."""
    size = np.ones(bound.s[0].shape[1])
    for value, change in zip((*bound.s, *bound.m), (*move.s, *move.m), strict=True):
        falling = change < -_SMALLEST
        share = np.where(falling, -_KEEP * value / np.where(falling, change, -1.0), 1.0)
        size = np.minimum(size, share.min(axis=(0, 2)))
    return size


def _moved(bound: _Bound, move: _Bound, size: Array) -> _Bound:
    parts = [
        tuple(np.maximum(v + size * d, _SMALLEST) for v, d in zip(value, change, strict=True))
        for value, change in zip(bound, move, strict=True)
    ]
    return _Bound(parts[0], parts[1])  # type: ignore[arg-type]


def _riccati(p: LinearProblem, on_inputs: tuple[Array, Array], on_states: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the best states and inputs without bounds, with what bounds add to the cost."""
    steps, states = len(p.a), p.a.shape[-1]
    diagonal, tilt = _costs(p, on_states)
    every, rows = np.arange(states), np.arange(p.b.shape[-1])
    value, slope = np.zeros((*p.start.shape, states)), tilt[steps]
    value[:, every, every] = diagonal[steps]
    at, bt = p.a.swapaxes(2, 3), p.b.swapaxes(2, 3)
    weight, lean = p.input_weight + on_inputs[0], p.input_weight * p.input_error + on_inputs[1]
    gains, offsets = [], []
    for k in range(steps - 1, -1, -1):
        carried = slope + _times(value, p.c[k])
        bv = bt[k] @ value
        right = np.concatenate([bv @ p.a[k], (lean[k] + _times(bt[k], carried))[..., None]], axis=2)
        quu = bv @ p.b[k]
        quu[:, rows, rows] += weight[k]
        solved = -np.linalg.solve(quu, right)
        gains.append(solved[..., :states])
        offsets.append(solved[..., states])
        cross = right[..., :states].swapaxes(1, 2)
        slope = tilt[k] + _times(at[k], carried) + _times(cross, offsets[-1])
        value = at[k] @ value @ p.a[k] + cross @ gains[-1]
        value[:, every, every] += diagonal[k]
        # Rounding would let the Hessian drift from symmetry over the horizon, and with it from positive definiteness.
        value = 0.5 * (value + value.swapaxes(1, 2))
    x, u = np.empty_like(p.state_error), np.empty_like(p.input_error)
    x[0] = p.start
    for k in range(steps):
        u[k] = _times(gains[steps - 1 - k], x[k]) + offsets[steps - 1 - k]
        x[k + 1] = _times(p.a[k], x[k]) + _times(p.b[k], u[k]) + p.c[k]
    return x, u


def _costs(p: LinearProblem, on_states: tuple[Array, Array]) -> tuple[Array, Array]:
    """Diagonals and slopes of the states' cost, (N + 1, n, s), with what bounds add to all but the first."""
    diagonal = np.repeat(p.state_weight[None], len(p.state_error), axis=0)
    slope = p.state_weight * p.state_error
    diagonal[1:, :, p.bounded] += on_states[0][1:]
    slope[1:, :, p.bounded] += on_states[1][1:]
    return diagonal, slope


def _times(matrix: Array, vector: Array) -> Array:
    return np.asarray(np.matmul(matrix, vector[..., None])[..., 0])
