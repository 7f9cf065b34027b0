"""The solver as plain NumPy in float64: what the kernel is tested against, and where tolerances of 1e-6 hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.control.mpc.solver import GRAVITY, MpcReference
from airworthy.control.mpc.stage import INPUT_SIZE, STATE_SIZE, MpcConfig, step
from airworthy.core.arrays import ArrayAny, ArrayBool, ArrayLike
from airworthy.core.tracing import jacobian

__all__ = ["TwinSolution", "cost_of", "roll_out", "solve_twin"]

# Source: spec/sousvide section 4: line search 1, .5, .25, .1, .03.
SHARES = (1.0, 0.5, 0.25, 0.1, 0.03)
"""Of a direction, tried one after the other."""
# Ours: more than the kernel's, since the twin need not be fast.
_ROUNDS = 20


@dataclass(frozen=True, eq=False)
class TwinSolution:
    """Of n problems."""

    inputs: ArrayAny
    """(n, N, 4)"""
    states: ArrayAny
    """(n, N + 1, 10)"""
    cost: ArrayAny
    """(n,)"""


def solve_twin(
    start: ArrayLike,
    full: ArrayLike,
    reference: MpcReference,
    config: MpcConfig | None = None,
    row: int = 0,
    inputs: ArrayLike | None = None,
    iterations: int = 50,
) -> TwinSolution:
    """Solve problems that want the same rows of a reference; the quaternions of the starts and the reference agree in sign.

    Args:
        start: (n, 10).
        full: (n,) or one: thrust at full command over mass [m/s^2].
        reference: What is to be followed.
        config: Weights and bounds.
        row: Of the reference that is wanted now.
        inputs: (n, N, 4) to begin with; None: the reference's.
        iterations: That are done, whatever they gain.
    """
    config = config or MpcConfig()
    x0 = np.asarray(start, np.float64)
    thrust = np.broadcast_to(np.asarray(full, np.float64), len(x0))
    wanted = reference.rows()[np.minimum(row + np.arange(config.horizon + 1), len(reference) - 1)]
    wanted = np.repeat(wanted[None], len(x0), axis=0)
    wanted[..., STATE_SIZE] /= thrust[:, None]
    # A reference of another drone may ask for more than this one has.
    u = np.clip(wanted[:, :-1, STATE_SIZE:] if inputs is None else np.array(inputs, np.float64), config.lower, config.upper)
    x = roll_out(x0, u, thrust, config)
    cost = cost_of(x, u, wanted, config)
    for _ in range(iterations):
        change, gain = _backward(x, u, wanted, thrust, config)
        x, u, cost = _forward(x, u, cost, change, gain, wanted, thrust, config)
    return TwinSolution(u, x, cost)


def roll_out(start: ArrayAny, inputs: ArrayAny, full: ArrayAny, config: MpcConfig) -> ArrayAny:
    """Return states (n, N + 1, 10) that inputs (n, N, 4) lead to.

    Args:
        start: (n, 10), world, z up.
        inputs: (n, N, 4): thrust command in [0, 1], body rates [rad/s].
        full: Thrust at full command over mass, (n,) [m/s^2].
        config: Weights, bounds and rate.
    """
    states = [start]
    for k in range(inputs.shape[1]):
        states.append(_step(states[-1], inputs[:, k], full, config))
    return np.stack(states, axis=1)


def cost_of(states: ArrayAny, inputs: ArrayAny, wanted: ArrayAny, config: MpcConfig) -> ArrayAny:
    """Return the cost (n,) of states and inputs; `wanted` (n, N + 1, 14) holds states and inputs.

    Args:
        states: (n, N + 1, 10).
        inputs: (n, N, 4).
        wanted: (n, N + 1, 14).
        config: Weights, bounds and rate.
    """
    off, change = states - wanted[..., :STATE_SIZE], inputs - wanted[:, :-1, STATE_SIZE:]
    paid = (off[:, :-1] ** 2 * config.state_weights).sum((1, 2)) + (change**2 * config.input_weights).sum((1, 2))
    return np.asarray(paid + (off[:, -1] ** 2 * config.terminal_weights).sum(1))


def _step(x: ArrayAny, u: ArrayAny, full: ArrayAny, config: MpcConfig) -> ArrayAny:
    return np.stack(step(tuple(x.T), tuple(u.T), full, GRAVITY, 1.0 / config.rate), axis=-1)


def _slopes(x: ArrayAny, u: ArrayAny, full: ArrayAny, config: MpcConfig) -> tuple[ArrayAny, ArrayAny]:
    """Return derivatives of a step by state (n, 10, 10) and input (n, 10, 4)."""
    dt, n = 1.0 / config.rate, STATE_SIZE
    _, rows = jacobian(lambda *z: step(z[:n], z[n:], full, GRAVITY, dt), (*x.T, *u.T))
    whole = np.stack([np.stack([np.broadcast_to(e, len(x)) for e in row], axis=-1) for row in rows], axis=1)
    return whole[..., :n], whole[..., n:]


def _backward(x: ArrayAny, u: ArrayAny, wanted: ArrayAny, full: ArrayAny, config: MpcConfig) -> tuple[ArrayAny, ArrayAny]:
    """Return changes (n, N, 4) and feedbacks (n, N, 4, 10) of the inputs."""
    count, horizon = u.shape[:2]
    q, r, end = (2.0 * weights for weights in (config.state_weights, config.input_weights, config.terminal_weights))
    value, slope = np.tile(np.diag(end), (count, 1, 1)), end * (x[:, -1] - wanted[:, -1, :STATE_SIZE])
    changes, gains = np.zeros(u.shape), np.zeros((*u.shape, STATE_SIZE))
    for k in range(horizon - 1, -1, -1):
        a, b = _slopes(x[:, k], u[:, k], full, config)
        at, bt = a.swapaxes(1, 2), b.swapaxes(1, 2)
        q_x = q * (x[:, k] - wanted[:, k, :STATE_SIZE]) + _times(at, slope)
        q_u = r * (u[:, k] - wanted[:, k, STATE_SIZE:]) + _times(bt, slope)
        q_xx, q_uu, q_ux = np.diag(q) + at @ value @ a, np.diag(r) + bt @ value @ b, bt @ value @ a
        change, free = _boxed(q_uu, q_u, config.lower - u[:, k], config.upper - u[:, k])
        # Inputs at a bound give no feedback: they cannot answer.
        gain = -np.linalg.solve(_part(q_uu, free), q_ux * free[..., None])
        changes[:, k], gains[:, k] = change, gain
        gt = gain.swapaxes(1, 2)
        slope = q_x + _times(gt @ q_uu, change) + _times(gt, q_u) + _times(q_ux.swapaxes(1, 2), change)
        value = q_xx + gt @ q_uu @ gain + gt @ q_ux + q_ux.swapaxes(1, 2) @ gain
    return changes, gains


def _boxed(matrix: ArrayAny, slope: ArrayAny, low: ArrayAny, high: ArrayAny) -> tuple[ArrayAny, ArrayBool]:
    """Minimum of 1/2 z' matrix z + slope' z between bounds (n, 4), and which of its parts are at none of them."""
    z = np.clip(np.zeros_like(slope), low, high)
    for _ in range(_ROUNDS):
        g = slope + _times(matrix, z)
        free = ~(((z <= low) & (g > 0.0)) | ((z >= high) & (g < 0.0)))
        z = np.clip(z - _times(np.linalg.inv(_part(matrix, free)), g * free), low, high)
    g = slope + _times(matrix, z)
    return z, ~(((z <= low) & (g > 0.0)) | ((z >= high) & (g < 0.0)))


def _forward(
    x: ArrayAny,
    u: ArrayAny,
    cost: ArrayAny,
    change: ArrayAny,
    gain: ArrayAny,
    wanted: ArrayAny,
    full: ArrayAny,
    config: MpcConfig,
) -> tuple[ArrayAny, ArrayAny, ArrayAny]:
    """Return the first of the shares of a direction that costs less, of each problem."""
    best = (x.copy(), u.copy(), cost.copy())
    waiting = np.ones(len(x), bool)
    for share in SHARES:
        states, inputs = [x[:, 0]], []
        for k in range(u.shape[1]):
            new = u[:, k] + share * change[:, k] + _times(gain[:, k], states[-1] - x[:, k])
            inputs.append(np.clip(new, config.lower, config.upper))
            states.append(_step(states[-1], inputs[-1], full, config))
        found = (np.stack(states, axis=1), np.stack(inputs, axis=1))
        paid = cost_of(*found, wanted, config)
        # The first share that costs less is taken, not the best: as the kernel does.
        better = waiting & (paid < cost)
        for old, now in zip(best, (*found, paid), strict=True):
            old[better] = now[better]
        waiting &= ~better
    return best


def _times(matrix: ArrayAny, vector: ArrayAny) -> ArrayAny:
    return np.asarray(np.einsum("nij,nj->ni", matrix, vector))


def _part(matrix: ArrayAny, free: ArrayBool) -> ArrayAny:
    """Return a matrix with the rows and columns of what is not free replaced by the identity's."""
    return np.where(free[:, :, None] & free[:, None, :], matrix, np.eye(INPUT_SIZE))
