"""One Newton step of the interior point method: the stages' quadratic programme, and a Riccati recursion that is bordered by
leg times, the windows' slacks and the looks' multipliers.

With theta = (1, dt, db, dpsi) the cost-to-go of stage k is dx' P dx / 2 + dx' p theta + theta' S theta / 2: a backward pass
over the states alone gives P, p and S, the border's small system gives theta, and a forward pass the rest. Sources: of the
recursion Rao, Wright and Rawlings, "Application of Interior-Point Methods to Model Predictive Control", 1998; of the inertia
test and of the ridge Waechter and Biegler 2006, section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from airworthy.core.arrays import Array
from airworthy.race.planning.racer import INPUTS, STATES

__all__ = ["Direction", "StageTerms", "newton_direction"]


@dataclass(eq=False)
class StageTerms:
    """Of the quadratic programme of one step; m columns: 1, L leg times, L slacks of windows, G looks."""

    a: Array
    """(N, 13, 13)"""
    b: Array
    """(N, 13, 4)"""
    c: Array
    """By theta, (N, 13, m)."""
    hxx: Array
    """(N + 1, 13, 13)"""
    hxu: Array
    """(N, 13, 4)"""
    huu: Array
    """(N, 4, 4)"""
    qx: Array
    """Of states by theta, (N + 1, 13, m)."""
    qu: Array
    """Of inputs by theta, (N, 4, m)."""
    s: Array
    """Of theta, (m, m), symmetric."""
    border: int
    """Leg times and slacks among theta: 2 L."""


class Direction(NamedTuple):
    """A Newton step."""

    x: Array
    """Change of states, (N + 1, 13)."""
    u: Array
    """Of inputs, (N, 4)."""
    theta: Array
    """(m,), the first is 1."""
    costate: Array
    """Multipliers of the dynamics after the step, (N + 1, 13); that of node 0 is none."""


def newton_direction(terms: StageTerms, ridge: float) -> Direction | None:
    """Return the step, None where the programme is not convex: a larger ridge makes it so.

    Args:
        terms: Of the stages.
        ridge: Added to the diagonal of states, inputs and border.
    """
    steps, every = len(terms.a), np.arange(STATES)
    value, lean, border = terms.hxx[steps].copy(), terms.qx[steps].copy(), terms.s.copy()
    value[every, every] += ridge
    values, leans, gains, offsets = [value], [lean], [], []
    for k in range(steps - 1, -1, -1):
        a, b, c = terms.a[k], terms.b[k], terms.c[k]
        carried = value @ c + lean
        border += c.T @ carried + lean.T @ c
        bv = b.T @ value
        quu = terms.huu[k] + bv @ b + ridge * np.eye(INPUTS)
        qux, qut = terms.hxu[k].T + bv @ a, terms.qu[k] + b.T @ carried
        try:
            root = np.linalg.cholesky(quu)
        except np.linalg.LinAlgError:
            return None
        solved = -np.linalg.solve(root.T, np.linalg.solve(root, np.hstack([qux, qut])))
        gain, offset = solved[:, :STATES], solved[:, STATES:]
        border += qut.T @ offset
        lean = terms.qx[k] + a.T @ carried + qux.T @ offset
        value = terms.hxx[k] + a.T @ value @ a + qux.T @ gain
        value = 0.5 * (value + value.T)
        value[every, every] += ridge
        values.append(value)
        leans.append(lean)
        gains.append(gain)
        offsets.append(offset)
    theta = _border(border, terms.border, ridge)
    if theta is None:
        return None
    x, u = np.zeros((steps + 1, STATES)), np.zeros((steps, INPUTS))
    costate = np.zeros((steps + 1, STATES))
    for k in range(steps):
        u[k] = gains[steps - 1 - k] @ x[k] + offsets[steps - 1 - k] @ theta
        x[k + 1] = terms.a[k] @ x[k] + terms.b[k] @ u[k] + terms.c[k] @ theta
        costate[k + 1] = values[steps - 1 - k] @ x[k + 1] + leans[steps - 1 - k] @ theta
    return Direction(x, u, theta, costate)


def _border(s: Array, count: int, ridge: float) -> Array | None:
    """Solve the border's saddle: convex in the first `count`, concave in the looks' multipliers behind them."""
    free, looks = slice(1, 1 + count), slice(1 + count, None)
    try:
        if s.shape[0] > 1 + count:
            below = np.linalg.cholesky(-s[looks, looks])
            # (-S_ll)^-1 times the coupling and the constant.
            solved = np.linalg.solve(below.T, np.linalg.solve(below, np.hstack([s[looks, free], s[looks, :1]])))
            joined = s[free, free] + s[free, looks] @ solved[:, :count]
            right = s[free, 0] + s[free, looks] @ solved[:, count]
        else:
            joined, right, solved = s[free, free], s[free, 0], np.zeros((0, count + 1))
        root = np.linalg.cholesky(joined + ridge * np.eye(count))
    except np.linalg.LinAlgError:
        return None
    change = -np.linalg.solve(root.T, np.linalg.solve(root, right))
    return np.concatenate([[1.0], change, solved[:, :count] @ change + solved[:, count]])
