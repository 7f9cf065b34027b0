"""Descent by the gradient of all parameters at once, beside Gauss-Newton's.

Limited-memory BFGS (Liu and Nocedal 1989) learns how the curvature changes on its way. It begins with that of Gauss-Newton, one
Jacobian: values of a vehicle are told so differently that without it hundreds of steps end far from the least.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array
from airworthy.vehicles.identification.fitting.gradient import cost_and_gradient
from airworthy.vehicles.identification.fitting.refine import (
    GAIN_MIN,
    ITERATIONS,
    Fit,
    FitProblem,
    curvature_of,
    descend_by_gauss_newton,
)

__all__ = ["Refined", "compared_descents", "descend_by_gradient"]

MEMORY = 20
"""Pairs that the curvature is told by."""
MOVE_MOST = 2.0
"""Largest move of a value in a step, in prior deviations; Gauss-Newton's is as far."""
PER_ITERATION = 10
"""Gradients for one iteration of Gauss-Newton, whose Jacobian is as dear as some of them, and which needs fewer."""
LEGS = 5
"""How often, at most, the curvature is taken anew where a descent stalls: one that was far off by then."""
ARMIJO = 1e-4
"""Share of what slopes promise that a step must gain."""
STALLED = 3
"""Steps of small gain, one after the other, that end it."""


# ---- Compared with Gauss-Newton ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Refined:
    """How a descent got on, on one problem from one start."""

    method: str
    """"gauss-newton" or "gradient"."""
    cost: float
    steps: int
    """Iterations of Gauss-Newton, or gradients."""
    seconds: float
    """Of processor time; another machine's are other ones."""
    apart: float
    """Largest distance of a value from the better descent's, in standard deviations of the fit."""
    of: str
    """That value."""


def compared_descents(fit: Fit, start: Array) -> tuple[Refined, ...]:
    """Run both descents from one start on the problem of a fit, its weights as they are in the end.

    Args:
        fit: Whose problem.
        start: All parameters, (parameters,).
    """
    problem, index = fit.problem, fit.problem.parameters.index
    rows = []
    for method, descend in (("gauss-newton", descend_by_gauss_newton), ("gradient", descend_by_gradient)):
        begun = time.process_time()
        theta, cost, steps = descend(problem, start, ITERATIONS)
        rows.append((method, theta, cost, steps, time.process_time() - begun))
    best = min(rows, key=lambda row: row[2])[1]
    found = []
    for method, theta, cost, steps, seconds in rows:
        apart = np.abs(theta - best)[index] / fit.sd[index]
        worst = int(np.argmax(apart))
        label = problem.parameters.items[int(index[worst])].label
        found.append(Refined(method, cost, steps, seconds, float(apart[worst]), label))
    return tuple(found)


# ---- Descent -----------------------------------------------------------------------------------------------------------------


def descend_by_gradient(problem: FitProblem, theta: Array, iterations: int, gain: float = GAIN_MIN) -> tuple[Array, float, int]:
    """Descend by limited-memory BFGS from the curvature at the start, as `refine.Descent`.

    Args:
        problem: With its errors' weights.
        theta: Where it begins, (parameters,).
        iterations: Of Gauss-Newton, which are worth `PER_ITERATION` gradients each.
        gain: Smaller gains over the cost, some one after the other, end it.
    """
    left, used, cost = iterations * PER_ITERATION, 0, np.inf
    for _ in range(LEGS):
        theta, after, took = _leg(problem, theta, left - used, gain)
        used, gained, cost = used + took, cost - after, after
        if used >= left or gained < gain * cost:
            break
    return theta, cost, used


def _leg(problem: FitProblem, theta: Array, iterations: int, gain: float) -> tuple[Array, float, int]:
    """Descend from the curvature at one place until little is gained."""
    index, sd, most = problem.parameters.index, problem.parameters.sd, problem.parameters.most

    first = np.asarray(np.linalg.inv(curvature_of(problem, theta)), np.float64)

    def at(z: Array) -> tuple[Array, float, Array]:
        moved = theta.copy()
        moved[index] += sd[index] * z
        out = moved >= most
        moved = np.minimum(moved, most)
        with np.errstate(over="ignore", invalid="ignore"):
            cost, slopes = cost_and_gradient(problem, moved)
        # At a limit nothing is gained beyond it.
        slopes = np.where(out[index] & (slopes < 0.0), 0.0, slopes)
        return moved, cost if np.isfinite(cost) and np.all(np.isfinite(slopes)) else np.inf, slopes

    z = np.zeros(len(index))
    best, cost, slopes = at(z)
    pairs: list[tuple[Array, Array]] = []
    used, small = 1, 0
    while used < iterations and small < STALLED:
        step = np.where(slopes == 0.0, 0.0, -_scaled_by(pairs, slopes, first))
        longest = float(np.abs(step).max())
        # No step leaves the place where the slopes mean something.
        step *= min(1.0, MOVE_MOST / max(longest, 1e-300))
        falls, length = float(step @ slopes), 1.0
        while used < iterations:
            tried = at(z + length * step)
            used += 1
            if tried[1] <= cost + ARMIJO * length * falls:
                break
            length *= 0.3
            if length < 1e-6:
                return best, float(cost), used
        moved, turned = length * step, tried[2] - slopes
        if not tried[1] < cost:
            break
        if moved @ turned > 1e-10 * float(np.linalg.norm(moved) * np.linalg.norm(turned)):
            pairs = [*pairs[1 - MEMORY :], (moved, turned)]
        small = small + 1 if cost - tried[1] < gain * cost else 0
        z, (best, cost, slopes) = z + moved, tried
    return best, float(cost), used


def _scaled_by(pairs: Sequence[tuple[Array, Array]], slopes: Array, first: Array) -> Array:
    """Slopes times an inverse curvature, as pairs of moves and changes of slopes changed it (two loops of Nocedal 1980)."""
    out, shares = slopes.copy(), []
    for moved, turned in reversed(pairs):
        share = float(moved @ out) / float(moved @ turned)
        out -= share * turned
        shares.append(share)
    out = first @ out
    for (moved, turned), share in zip(pairs, reversed(shares), strict=True):
        out += moved * (share - float(turned @ out) / float(moved @ turned))
    return out
