"""The interior point method in float64 NumPy: the readable twin of the kernel.

Barrier, steps, filter and ridge are those of IPOPT (Waechter and Biegler 2006, sections 2.1 to 2.3 and 3.1), with which plans
are compared, and so are its numbers where nothing is said. Left out: second-order corrections, and the restoration phase:
where no part of a step passes the filter, the whole step is taken and the filter begins anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from airworthy.core.arrays import Array
from airworthy.race.planning.shooting.iterate import (
    SOFT_EQUALITY,
    Iterate,
    Residuals,
    assembled,
    barrier,
    cost_slopes,
    linear_rows,
    row_values,
    sights,
    violation,
)
from airworthy.race.planning.shooting.newton import Direction, StageTerms, newton_direction
from airworthy.race.planning.shooting.problem import ShootingProblem
from airworthy.race.planning.shooting.step import StepDerivatives

__all__ = ["STATUS", "Solved", "solve_twin"]

STATUS = ("solved", "nearly", "iterations", "no direction")
MU_FIRST = 3e-3
"""Of the barrier, as `horizon` begins: the guess is near."""
TOLERANCE, OFF_MAX, PRODUCT_MAX = 1e-3, 1e-4, 1e-4
"""Of slopes, equations and products where a plan is solved: those that `horizon` asks of IPOPT."""
MU_LAST = PRODUCT_MAX / 11.0
NEARLY, NEARLY_OFF = 1e-2, 1e-3
"""The same of a plan that is nearly solved when iterations end."""
SLACK_LEAST, WIDE_FIRST, LACK_FIRST = 1e-2, 0.01, 0.05
"""First slack of a row that is less, of windows [m], and of looks [s]; ours, and those of `horizon`."""
KEEP = 0.99
RIDGE_FIRST, RIDGE_MAX = 1e-4, 1e10
SHARE_OFF = 1e-5
GROWTH = 1.0
"""Equations may be off by so many times what they were at first, or by as much in all. Ours, where IPOPT has 1e4: of 203 plans
of ten flights two then did not come back."""
HALVINGS = 12
FILTER_MAX = 64
"""Parts of a step that are tried, and pairs that the filter keeps; ours: plans take 20 steps."""


class Solved(NamedTuple):
    """What a solve gave."""

    x: Array
    """(N + 1, 13)"""
    u: Array
    """(N, 4)"""
    t: Array
    """Legs [s], (L,)."""
    b: Array
    """By how much windows are left [m], (L,)."""
    lack: Array
    """Seconds of sight that are lacking, (G,)."""
    status: str
    """Of `STATUS`."""
    iterations: int


def solve_twin(
    p: ShootingProblem, states: Array, inputs: Array, legs: Array, iterations: int, derivatives: StepDerivatives | None = None
) -> Solved:
    """Solve one problem.

    Args:
        p: The programme.
        states: To begin with, the first where it starts, (N + 1, 13).
        inputs: (N, 4)
        legs: [s], (L,).
        iterations: At most.
        derivatives: Of the vehicle's steps, where they are at hand; None: derived here.
    """
    derivatives = derivatives or StepDerivatives(p.model)
    z, mu, last = _begun(p, states, inputs, legs), MU_FIRST, 0.0
    now = violation(p, z)
    search, status = _Search(p, now), 2
    for count in range(iterations + 1):
        terms, residuals = assembled(p, derivatives, z, mu)
        worst = _error(residuals, 0.0)
        if worst <= TOLERANCE and residuals.off <= OFF_MAX and _gap(residuals, 0.0) <= PRODUCT_MAX:
            status = 0
            break
        if count == iterations:
            status = 1 if worst <= NEARLY and residuals.off <= NEARLY_OFF else 2
            break
        before = mu
        while mu > MU_LAST and _error(residuals, mu) <= 10.0 * mu:
            mu = max(MU_LAST, min(0.2 * mu, mu * float(np.sqrt(mu))))
        if mu < before:
            search.pairs.clear()
            terms, residuals = assembled(p, derivatives, z, mu)
        direction, ridge = _convex(terms, last)
        if direction is None:
            status = 3
            break
        last = ridge or last
        z = search.step(z, _change(p, z, direction, mu), mu)
    return Solved(z.x, z.u, z.t, z.b, z.rows[4], STATUS[status], count)


def _begun(p: ShootingProblem, states: Array, inputs: Array, legs: Array) -> Iterate:
    looks, wide = len(p.needed), np.full(p.legs, WIDE_FIRST)
    z = Iterate(states.copy(), inputs.copy(), legs.copy(), wide, [], [], np.zeros_like(states), np.zeros(p.legs))
    values = row_values(p, z, np.full(looks, LACK_FIRST), sights(p, z.x))
    z.rows = [np.maximum(value, SLACK_LEAST) for value in values]
    z.duals = [MU_FIRST / slack for slack in z.rows]
    return z


def _gap(residuals: Residuals, mu: float) -> float:
    return max(float(np.max(np.abs(item - mu), initial=0.0)) for item in residuals.products)


def _error(residuals: Residuals, mu: float) -> float:
    return max(residuals.stationary, residuals.off, _gap(residuals, mu))


def _convex(terms: StageTerms, last: float) -> tuple[Direction | None, float]:
    """Return the step with the ridge that makes its programme convex: as little as does it, from the last one on."""
    found, ridge = newton_direction(terms, 0.0), 0.0
    while found is None and ridge < RIDGE_MAX:
        begin = last / 3.0 if last else RIDGE_FIRST
        ridge = ridge * (8.0 if last else 100.0) if ridge else begin
        found = newton_direction(terms, ridge)
    return found, ridge


def _change(p: ShootingProblem, z: Iterate, d: Direction, mu: float) -> Iterate:
    """Return the change of all that an iterate has."""
    legs, price = p.legs, p.options.glance_price
    t, b, psi = d.theta[1 : 1 + legs], d.theta[1 + legs : 1 + 2 * legs], d.theta[1 + 2 * legs :]
    lack, lack_dual, look, look_dual = z.rows[4], z.duals[4], z.rows[5], z.duals[5]
    short = (mu - lack * (price - look_dual) + lack * psi) / lack_dual
    values, moves = row_values(p, z, lack, sights(p, z.x)), linear_rows(p, d.x, d.u, t, b, short)
    rows = [move + value - slack for move, value, slack in zip(moves, values, z.rows, strict=False)]
    duals = [mu / s - y - y / s * ds for s, y, ds in zip(z.rows, z.duals, rows, strict=False)]
    duals[4] = price - look_dual - lack_dual - psi
    rows.append(mu / look_dual - look - look / look_dual * psi)
    ends = np.arange(1, legs + 1) * p.nodes
    off = np.sum((z.x + d.x)[ends, :3] * p.plane[:, :3], axis=1) + p.plane[:, 3]
    return Iterate(d.x, d.u, t, b, rows, [*duals, psi], d.costate - z.costate, off / SOFT_EQUALITY)


def _largest(values: list[Array], changes: list[Array], keep: float) -> float:
    """Return the largest part of a step that keeps what is positive so."""
    value, change = (np.concatenate([np.ravel(item) for item in items]) for items in (values, changes))
    falling = change < 0.0
    return float(np.min(-keep * value[falling] / change[falling], initial=1.0))


def _moved(z: Iterate, c: Iterate, size: float, dual: float) -> Iterate:
    def ahead(name: str) -> Array:
        return np.asarray(getattr(z, name) + size * getattr(c, name))

    rows = [value + size * change for value, change in zip(z.rows, c.rows, strict=True)]
    duals = [value + dual * change for value, change in zip(z.duals, c.duals, strict=True)]
    return Iterate(ahead("x"), ahead("u"), ahead("t"), ahead("b"), rows, duals, ahead("costate"), ahead("plane"))


class _Search:
    """The line search with a filter: a step lowers either what equations are off or the cost, against all steps before.

    Args:
        p: The programme.
        first: What equations are off at first, summed.
    """

    def __init__(self, p: ShootingProblem, first: float) -> None:
        self.p, self.most, self.least = p, GROWTH * max(1.0, first), 1e-4 * max(1.0, first)
        self.pairs: list[tuple[float, float]] = []

    def step(self, z: Iterate, change: Iterate, mu: float) -> Iterate:
        """Return the next iterate.

        Args:
            z: Where it stands.
            change: The whole step.
            mu: Of the barrier.
        """
        p, keep = self.p, max(KEEP, 1.0 - mu)
        whole, dual = _largest(z.rows, change.rows, keep), _largest(z.duals, change.duals, keep)
        now, cost, slope = violation(p, z), barrier(p, z, mu), _slope(p, z, change, mu)
        size, trial = whole, z
        for _ in range(HALVINGS):
            trial = _moved(z, change, size, dual)
            if self._passes(now, cost, slope * size, size, violation(p, trial), barrier(p, trial, mu)):
                break
            size *= 0.5
        else:
            self.pairs.clear()
            trial = _moved(z, change, whole, dual)
        # Multipliers stay within a wide band round mu / s, as there.
        middles = [mu / slack for slack in trial.rows]
        trial.duals = [np.clip(y, 1e-10 * m, 1e10 * m) for y, m in zip(trial.duals, middles, strict=True)]
        return trial

    def _passes(self, now: float, cost: float, gain: float, size: float, then: float, paid: float) -> bool:
        if not (then < self.most and np.isfinite(paid)):
            return False
        if any(then >= (1.0 - SHARE_OFF) * off and paid >= least for off, least in self.pairs):
            return False
        slope = gain / size
        if now <= self.least and slope < 0.0 and size * (-slope) ** 2.3 > now**1.1:
            return paid <= cost + 1e-8 * gain + 1e-10
        if then <= (1.0 - SHARE_OFF) * now or paid <= cost - SHARE_OFF * now:
            del self.pairs[FILTER_MAX - 1 :]
            self.pairs.append(((1.0 - SHARE_OFF) * now, cost - SHARE_OFF * now))
            return True
        return False


def _slope(p: ShootingProblem, z: Iterate, change: Iterate, mu: float) -> float:
    """Return the slope of the cost with the barrier's along a step."""
    by_x, by_u, by_t = cost_slopes(p, z)
    total = np.sum(by_x * change.x[1:]) + np.sum(by_u * change.u) + by_t @ change.t
    total += p.options.window_price * np.sum(change.b) + p.options.glance_price * np.sum(change.rows[4])
    return float(total - mu * sum(np.sum(move / slack) for move, slack in zip(change.rows, z.rows, strict=True)))
