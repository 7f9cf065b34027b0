"""Where the interior point method stands, and the quadratic programme of its next step (readable; the kernel has the same).

Each row r(z) >= 0 has a slack s > 0 and a multiplier y > 0 with r - s = 0 and s y = mu; both are eliminated from the Newton
step, which leaves y/s on the rows' diagonal. A look's row keeps its multiplier psi in the border, for it reaches over all
stages. Source: Nocedal and Wright, "Numerical Optimization", 2006, chapter 19.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from airworthy.core.arrays import Array
from airworthy.race.planning.horizon import LEG
from airworthy.race.planning.minimum_time_program import TURNING_COST, YAW_COST
from airworthy.race.planning.racer import INPUTS, STATES
from airworthy.race.planning.shooting.curvature import SIGHT, Terms, sight, sight_curves
from airworthy.race.planning.shooting.newton import StageTerms
from airworthy.race.planning.shooting.problem import WINDOW, ShootingProblem
from airworthy.race.planning.shooting.step import StepDerivatives

__all__ = [
    "SOFT_EQUALITY",
    "TURN_SCALE",
    "Iterate",
    "Residuals",
    "assembled",
    "barrier",
    "cost_slopes",
    "linear_rows",
    "row_values",
    "sights",
    "violation",
]

SOFT_EQUALITY = 1e-6
"""A plane is held by its multiplier with this much give [m^2/s]: a step then leaves a millionth of it, and the recursion need
not know equalities. Ours."""
TURN_SCALE = 10.0
"""Of the cost of turning [rad/s^2]."""
SEEN = np.r_[0:3, 6:10]
"""States that a look depends on."""


@dataclass(eq=False)
class Iterate:
    """Unknowns, slacks and multipliers."""

    x: Array
    u: Array
    t: Array
    """(L,)"""
    b: Array
    """By how much windows are left [m], (L,)."""
    rows: list[Array]
    """Slacks of: states (N + 1, STATE_ROWS), inputs (N, rows), legs within both bounds (2, L), b (L,), what looks lack (G,),
    which is its own, and looks (G,)."""
    duals: list[Array]
    """Their multipliers; the looks' is psi."""
    costate: Array
    """(N + 1, 13)"""
    plane: Array
    """Multipliers of the planes, (L,)."""


def linear_rows(p: ShootingProblem, x: Array, u: Array, t: Array, b: Array, lack: Array) -> list[Array]:
    """Return the rows of `Iterate.rows` but the looks', without their constants.

    Args:
        p: The programme.
        x: States or their change, (N + 1, 13).
        u: Inputs, (N, 4).
        t: Legs, (L,).
        b: Of windows, (L,).
        lack: Of looks, (G,).
    """
    states = np.einsum("nri,ni->nr", p.state_rows, x)
    states[:, WINDOW] += np.where(p.beside >= 0, b[p.beside], 0.0)[:, None]
    return [states, u @ p.input_rows.T, np.stack([t, -t]), b, lack]


def row_values(p: ShootingProblem, z: Iterate, lack: Array, worth: Array) -> list[Array]:
    """Return the rows of `Iterate.rows`.

    Args:
        p: The programme.
        z: Where it stands.
        lack: Of looks [s], (G,).
        worth: Of `sights`.
    """
    states, inputs, legs, b, short = linear_rows(p, z.x, z.u, z.t, z.b, lack)
    bounds = np.array([[-LEG[0]], [LEG[1]]])
    looks = (worth * p.counts) @ z.t[p.leg_of] / p.nodes + lack - p.needed
    return [states + p.state_offset, inputs + p.input_offset, legs + bounds, b, short, looks]


_LOOK, _LOOK_CURVES = (
    Terms(lambda x: [sight(x[:SIGHT], x[SIGHT:-1], x[-1])], SIGHT + 4),
    Terms(lambda x: sight_curves(x[:SIGHT], x[SIGHT:-1], x[-1]), SIGHT + 4),
)


def sights(p: ShootingProblem, x: Array) -> Array:
    """Return what looks are worth at nodes 1 to N, (G, N); 0 where they do not count."""
    return np.reshape([_LOOK(*_look_numbers(p, x, k))[:, 0] for k in range(len(p.needed))], p.counts.shape) * (p.counts != 0.0)


def _look_numbers(p: ShootingProblem, x: Array, look: int) -> list[Array]:
    return [*x[1:, SEEN].T, *(np.full(p.steps, number) for number in (*p.target[look], p.soft))]


def objective(p: ShootingProblem, z: Iterate) -> float:
    """Return the cost [s]."""
    options, h = p.options, z.t[p.leg_of] / p.nodes
    turning = TURNING_COST * np.sum(h * np.sum((z.u[:, 1:] / TURN_SCALE) ** 2, axis=1))
    yaw = YAW_COST * np.sum(h * z.x[1:, 12] ** 2)
    return float(np.sum(z.t) + options.window_price * np.sum(z.b) + options.glance_price * np.sum(z.rows[4]) + turning + yaw)


def violation(p: ShootingProblem, z: Iterate) -> float:
    """Return the sum of what equations are off."""
    after = np.stack(p.model.step(z.x[:-1].T, z.u.T, z.t[p.leg_of] / p.nodes), axis=1)
    rows = row_values(p, z, z.rows[4], sights(p, z.x))
    off = [after - z.x[1:], _planes(p, z), *(value - slack for value, slack in zip(rows, z.rows, strict=True))]
    return float(sum(np.sum(np.abs(item)) for item in off))


def _planes(p: ShootingProblem, z: Iterate) -> Array:
    return np.asarray(np.sum(z.x[p.nodes :: p.nodes, :3] * p.plane[:, :3], axis=1) + p.plane[:, 3])


def barrier(p: ShootingProblem, z: Iterate, mu: float) -> float:
    """Return the cost with the barrier's.

    Args:
        p: The programme.
        z: Where it stands.
        mu: Of the barrier.
    """
    return objective(p, z) - mu * float(sum(np.sum(np.log(slack)) for slack in z.rows))


class Residuals(NamedTuple):
    """How far an iterate is from the optimum."""

    stationary: float
    """Largest slope of the Lagrangian."""
    off: float
    """Largest violation of an equation."""
    products: list[Array]
    """Slack times multiplier, of each kind of row."""


def assembled(p: ShootingProblem, derivatives: StepDerivatives, z: Iterate, mu: float) -> tuple[StageTerms, Residuals]:
    """Return the quadratic programme of the next step, and how far this iterate is off.

    Args:
        p: The programme.
        derivatives: Of its vehicle's steps.
        z: Where it stands.
        mu: Of the barrier.
    """
    legs, steps, looks = p.legs, p.steps, len(p.needed)
    columns, of, each = 1 + 2 * legs + looks, p.leg_of, p.nodes
    h, every = z.t[of] / each, np.arange(steps)
    found = derivatives.terms(z.x[:-1], z.u, h, z.costate[1:])
    hxx, hxu, huu = (
        np.zeros((steps + 1, STATES, STATES)),
        found.curves[:, :STATES, STATES:-1],
        found.curves[:, STATES:-1, STATES:-1],
    )
    hxx[:-1] = found.curves[:, :STATES, :STATES]
    huu = huu.copy()
    qx, qu = np.zeros((steps + 1, STATES, columns)), np.zeros((steps, INPUTS, columns))
    c, s = np.zeros((steps, STATES, columns)), np.zeros((columns, columns))
    defect = found.after - z.x[1:]
    c[..., 0] = defect
    c[every, :, 1 + of] = found.slopes[:, :, -1] / each
    qx[every, :, 1 + of] += found.curves[:, :STATES, -1] / each
    qu[every, :, 1 + of] += found.curves[:, STATES:-1, -1] / each
    np.add.at(s, (1 + of, 1 + of), found.curves[:, -1, -1] / each**2)
    _costs(p, z, (hxx, huu, qx, qu, s))
    values = row_values(p, z, z.rows[4], sights(p, z.x))
    # Slopes of the Lagrangian need y as it is, the step what y is heading for: gradients are kept apart.
    pull_x, pull_u, pull_t, pull_b = np.zeros_like(z.x), np.zeros_like(z.u), np.zeros(legs), np.zeros(legs)
    _state_rows(p, z, mu, values[0], (hxx, qx, s, pull_x, pull_b))
    weight, push = _eliminated(z, 1, mu, values[1])
    huu += np.einsum("nr,ri,rj->nij", weight, p.input_rows, p.input_rows)
    qu[..., 0] += push @ p.input_rows
    pull_u -= z.duals[1] @ p.input_rows
    for kind, first, sign, pull in ((2, 1, (1.0, -1.0), pull_t), (3, 1 + legs, (1.0,), pull_b)):
        weight, push = (np.atleast_2d(item) for item in _eliminated(z, kind, mu, values[kind]))
        for row, up in enumerate(sign):
            place = np.arange(first, first + legs)
            s[place, place] += weight[row]
            s[0, place] += up * push[row]
            pull -= up * np.atleast_2d(z.duals[kind])[row]
    ends = np.arange(1, legs + 1) * each
    off = _planes(p, z)
    hxx[ends, :3, :3] += p.plane[:, :3, None] * p.plane[:, None, :3] / SOFT_EQUALITY
    qx[ends, :3, 0] += p.plane[:, :3] * (z.plane + off / SOFT_EQUALITY)[:, None]
    pull_x[ends, :3] += p.plane[:, :3] * z.plane[:, None]
    _looks(p, z, mu, values[5], (hxx, qx, s, pull_x, pull_t))
    s[1:, 0] = s[0, 1:]
    # Costs' own slopes are what `_costs` wrote into columns 0 before rows were added: computed anew, they are few.
    grad_x, grad_u, grad_t = cost_slopes(p, z)
    pull_x[1:] += grad_x - z.costate[1:]
    pull_x[:-1] += np.einsum("nij,ni->nj", found.slopes[:, :, :STATES], z.costate[1:])
    pull_u += grad_u + np.einsum("nij,ni->nj", found.slopes[:, :, STATES:-1], z.costate[1:])
    pull_t += grad_t
    np.add.at(pull_t, of, np.sum(found.slopes[:, :, -1] * z.costate[1:], axis=1) / each)
    pull_b += p.options.window_price
    parts = [pull_x[1:], pull_u, pull_t, pull_b]
    short = p.options.glance_price - z.duals[5] - z.duals[4]
    stationary = max(float(np.max(np.abs(item), initial=0.0)) for item in [*parts, short])
    gaps = [np.abs(defect), np.abs(off), *(np.abs(value - slack) for value, slack in zip(values, z.rows, strict=True))]
    products = [slack * dual for slack, dual in zip(z.rows, z.duals, strict=True)]
    terms = StageTerms(found.slopes[:, :, :STATES], found.slopes[:, :, STATES:-1], c, hxx, hxu, huu, qx, qu, s, 2 * legs)
    return terms, Residuals(stationary, max(float(np.max(gap, initial=0.0)) for gap in gaps), products)


def _eliminated(z: Iterate, kind: int, mu: float, values: Array) -> tuple[Array, Array]:
    """Weight of rows on the diagonal, and their part of the gradient."""
    slack, dual = z.rows[kind], z.duals[kind]
    weight = dual / slack
    return weight, weight * (values - slack) - mu / slack


def cost_slopes(p: ShootingProblem, z: Iterate) -> tuple[Array, Array, Array]:
    """Return the cost's slopes by states behind the first, inputs and legs."""
    of, each = p.leg_of, p.nodes
    h = z.t[of] / each
    x, u = np.zeros_like(z.x[1:]), np.zeros_like(z.u)
    x[:, 12] = 2.0 * YAW_COST * h * z.x[1:, 12]
    u[:, 1:] = 2.0 * TURNING_COST / TURN_SCALE**2 * h[:, None] * z.u[:, 1:]
    rate = TURNING_COST * np.sum((z.u[:, 1:] / TURN_SCALE) ** 2, axis=1) + YAW_COST * z.x[1:, 12] ** 2
    return x, u, 1.0 + np.bincount(of, rate, p.legs) / each


def _costs(p: ShootingProblem, z: Iterate, to: tuple[Array, Array, Array, Array, Array]) -> None:
    hxx, huu, qx, qu, s = to
    of, each, every = p.leg_of, p.nodes, np.arange(p.steps)
    h = z.t[of] / each
    turn = 2.0 * TURNING_COST / TURN_SCALE**2
    grad_x, grad_u, grad_t = cost_slopes(p, z)
    qx[1:, :, 0] += grad_x
    qu[..., 0] += grad_u
    s[0, 1 : 1 + p.legs] += grad_t
    s[0, 1 + p.legs : 1 + 2 * p.legs] += p.options.window_price
    hxx[1:, 12, 12] += 2.0 * YAW_COST * h
    for axis in range(1, INPUTS):
        huu[:, axis, axis] += turn * h
    qx[1 + every, 12, 1 + of] += 2.0 * YAW_COST * z.x[1:, 12] / each
    qu[every, 1:, 1 + of] += turn * z.u[:, 1:] / each


def _state_rows(p: ShootingProblem, z: Iterate, mu: float, values: Array, to: tuple[Array, Array, Array, Array, Array]) -> None:
    hxx, qx, s, pull_x, pull_b = to
    weight, push = _eliminated(z, 0, mu, values)
    hxx += np.einsum("nr,nri,nrj->nij", weight, p.state_rows, p.state_rows)
    qx[..., 0] += np.einsum("nr,nri->ni", push, p.state_rows)
    pull_x -= np.einsum("nr,nri->ni", z.duals[0], p.state_rows)
    for node in np.flatnonzero(p.beside >= 0):
        leg = p.beside[node]
        column, rows = 1 + p.legs + leg, WINDOW
        qx[node, :, column] += weight[node, rows] @ p.state_rows[node, rows]
        s[column, column] += np.sum(weight[node, rows])
        s[0, column] += np.sum(push[node, rows])
        pull_b[leg] -= np.sum(z.duals[0][node, rows])


def _looks(p: ShootingProblem, z: Iterate, mu: float, values: Array, to: tuple[Array, Array, Array, Array, Array]) -> None:
    hxx, qx, s, pull_x, pull_t = to
    of, each = p.leg_of, p.nodes
    h = z.t[of] / each
    worth = sights(p, z.x)
    for look in range(len(p.needed)):
        psi, place = z.duals[5][look], 1 + 2 * p.legs + look
        share = h * p.counts[look]
        found = _LOOK_CURVES(*_look_numbers(p, z.x, look))
        slopes, curves = found[:, :SIGHT], found[:, SIGHT:].reshape(-1, SIGHT, SIGHT)
        slope = share[:, None] * slopes
        by_leg = np.bincount(of, p.counts[look] * worth[look], p.legs) / each
        hxx[1:][:, SEEN[:, None], SEEN] -= psi * share[:, None, None] * curves
        qx[1:, SEEN, 0] -= psi * slope
        qx[1:, SEEN, place] -= slope
        cross = psi * p.counts[look][:, None] / each * slopes
        qx[1 + np.arange(p.steps)[:, None], SEEN, (1 + of)[:, None]] -= cross
        s[place, 1 : 1 + p.legs] -= by_leg
        s[1 : 1 + p.legs, place] -= by_leg
        s[0, 1 : 1 + p.legs] -= psi * by_leg
        short, slack, dual = z.rows[4][look], z.rows[5][look], z.duals[4][look]
        price = p.options.glance_price
        s[place, place] -= short / dual + slack / psi
        s[0, place] += -(values[look] - slack) - (mu - short * (price - psi)) / dual + (mu / psi - slack)
        pull_x[1:, SEEN] -= psi * slope
        pull_t -= psi * by_leg
