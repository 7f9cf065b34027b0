"""The readable twin of the fused kernel: a window of flights with a policy, on float64 NumPy, and its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, Vector
from airworthy.core.tracing import adjoint
from airworthy.learning.gradient.kernel import Ahead, FlightWindow, hover_step, observe, vehicle_record

__all__ = ["FlownTwin", "flown_twin", "gru_twin", "loss_twin", "returns_twin", "value_twin", "window_twin"]


Layers = list[Array]
"""Inputs of the network and what its layers make of them, each (rows, env)."""


def gru_twin(weights: Sequence[Array], x: Array, memory: Array) -> tuple[Array, Layers]:
    """Return the memory after a step of a GRU (Cho et al. 2014, as torch has it), and reset, update, new, and what reset
    multiplies.

    Args:
        weights: Matrix by what comes in (3 hidden, hidden), bias, matrix by memory, bias.
        x: What comes in, (hidden, env).
        memory: Before, (hidden, env).
    """
    (wr, wz, wn), (br, bz, bn), (ur, uz, un), (cr, cz, cn) = (np.split(np.asarray(w, float), 3) for w in weights)
    r, z = (
        1.0 / (1.0 + np.exp(-(w @ x + b[:, None] + u @ memory + c[:, None])))
        for w, b, u, c in ((wr, br, ur, cr), (wz, bz, uz, cz))
    )
    # Reset multiplies after the product, as in torch and cuDNN; Cho et al. write it before.
    pushed = un @ memory + cn[:, None]
    new = np.tanh(wn @ x + bn[:, None] + r * pushed)
    return (1.0 - z) * new + z * memory, [r, z, new, pushed]


def value_twin(ahead: Ahead, seen: Array) -> tuple[Array, list[Array]]:
    """Return what a critic tells of what is seen (observed, env): (env,), and its layers, the observation first."""
    w = [np.asarray(x, float) for x in ahead.weights]
    layers = [np.asarray(seen, float)]
    for k in (0, 2):
        layers.append(np.tanh(w[k] @ layers[-1] + w[k + 1][:, None]))
    return (w[4] @ layers[-1] + w[5][:, None])[0], layers


def returns_twin(ahead: Ahead, costs: Array, seen: Sequence[Array]) -> Array:
    """Return lambda returns (Sutton and Barto 2018, equation 12.20) of a window, (steps, env), as large as a step's cost.

    Args:
        ahead: The critic.
        costs: (steps, env).
        seen: Before each step, and at the end, (observed, env) each.
    """
    found, later = np.zeros_like(costs), value_twin(ahead, seen[-1])[0]
    for t in reversed(range(len(costs))):
        told = value_twin(ahead, seen[t + 1])[0]
        # Times 1 - discount, so that a return has the size of one step's cost, whatever the horizon.
        later = (1.0 - ahead.discount) * costs[t] + ahead.discount * (told + ahead.blend * (later - told))
        found[t] = later
    return found


@dataclass(frozen=True)
class FlownTwin:
    """A window that was flown."""

    costs: Array
    """(steps, env)."""
    state: Array
    """After it, (state rows, env)."""
    past: list[tuple[Array, Layers]]
    """Per step the state before it, and layers: observation, hidden, hidden, action, of a GRU memory before and gates."""
    seen: list[Array]
    """Before each step, and at the end, (observed, env)."""
    memory: Array
    """After it, (hidden, env), of a GRU."""


def flown_twin(window: FlightWindow, weights: Sequence[Array], state: Array, memory: Array | None = None) -> FlownTwin:
    """Fly a window.

    Args:
        window: Whose vehicles, shape and length are taken.
        weights: As for `FlightWindow.run`.
        state: Where flights begin, (state rows, env).
        memory: Of a GRU there, (hidden, env).
    """
    shape = window.shape
    record = vehicle_record(shape, _numbers(window))
    past: list[tuple[Array, Layers]] = []
    costs, seen = [], [np.array(np.broadcast_arrays(*observe(tuple(state), shape)))]
    held = np.zeros((shape.hidden, window.env_count)) if memory is None else np.asarray(memory, float)
    for _ in range(window.steps):
        first = np.tanh(weights[0] @ seen[-1] + weights[1][:, None])
        rest: Layers = []
        if shape.recurrent:
            second, gates = gru_twin(weights[2:6], first, held)
            rest, held = [held, *gates], second
        else:
            second = np.tanh(weights[2] @ first + weights[3][:, None])
        action = np.tanh(weights[-2] @ second + weights[-1][:, None])
        past.append((state, [seen[-1], first, second, action, *rest]))
        out = hover_step(tuple(state), tuple(action), record, shape)
        state = np.array(np.broadcast_arrays(*out[: shape.state]))
        seen.append(np.array(np.broadcast_arrays(*out[shape.state : -1])))
        costs.append(out[-1])
    return FlownTwin(np.array(costs), state, past, seen, held)


def loss_twin(window: FlightWindow, flown: FlownTwin, ahead: Ahead | None = None) -> float:
    """Return what a window costs: the mean per step, discounted, and what a critic says comes after it.

    Args:
        window: That was flown.
        flown: How.
        ahead: The critic, if there is one.
    """
    discount = ahead.discount if ahead else 1.0
    total = (flown.costs * discount ** np.arange(window.steps)[:, None]).sum()
    if ahead is not None:
        # The critic tells a mean per step: over 1 - discount it is the sum of all that comes.
        total += discount**window.steps / (1.0 - discount) * value_twin(ahead, flown.seen[-1])[0].sum()
    return float(total) / (window.steps * window.env_count)


def window_twin(
    window: FlightWindow,
    weights: Sequence[Array],
    state: Array,
    keep: float = 1.0,
    ahead: Ahead | None = None,
    memory: Array | None = None,
) -> tuple[FlownTwin, list[Array]]:
    """Fly a window and derive what it costs by the weights, as `FlightWindow.run`; returns both, slopes shaped as weights.

    Args:
        window: Whose vehicles, shape and length are taken.
        weights: As for `FlightWindow.run`.
        state: Where flights begin, (state rows, env).
        keep: Share of the state's slope that each step hands back.
        ahead: What comes after the window.
        memory: Of a GRU where flights begin, (hidden, env).
    """
    shape, numbers = window.shape, _numbers(window)
    ends = np.cumsum([shape.state, shape.actions])

    def step(*x: Any) -> Vector:
        p = vehicle_record(shape, dict(zip(numbers, x[ends[1] :], strict=True)))
        return hover_step(x[: ends[0]], x[ends[0] : ends[1]], p, shape)

    w = [np.asarray(x, float) for x in weights]
    flown = flown_twin(window, w, state, memory)
    gradient = [np.zeros_like(x) for x in w]
    discount = ahead.discount if ahead else 1.0
    # The mean over steps and flights: the learning rate then does not depend on how many there are.
    weight = np.full(window.env_count, 1.0 / (window.steps * window.env_count))
    bar = np.zeros((shape.state + shape.observed, window.env_count))
    if ahead is not None:
        bar[shape.state :] = _value_slope(ahead, flown.seen[-1]) * weight * discount**window.steps / (1.0 - discount)
    by_memory = np.zeros((shape.hidden, window.env_count))
    for t, (before, layers) in reversed(list(enumerate(flown.past))):
        seeds = [*bar, weight * discount**t]
        slopes = adjoint(step, [*before, *layers[3], *numbers.values()], seeds)[1]
        by = np.array(np.broadcast_arrays(*slopes[: ends[1]]))
        # From the output back to the input; 1 - y^2 is the slope of y = tanh(x).
        slope = by[ends[0] :] * (1.0 - layers[3] ** 2)
        gradient[-2] += slope @ layers[2].T
        gradient[-1] += slope.sum(axis=1)
        slope = w[-2].T @ slope
        if shape.recurrent:
            slope, by_memory = _gru_back(w[2:6], gradient[2:6], layers, slope + by_memory)
        else:
            slope = slope * (1.0 - layers[2] ** 2)
            gradient[2] += slope @ layers[1].T
            gradient[3] += slope.sum(axis=1)
            slope = w[2].T @ slope
        slope = slope * (1.0 - layers[1] ** 2)
        gradient[0] += slope @ layers[0].T
        gradient[1] += slope.sum(axis=1)
        # Only the slope by the state decays; that by what was seen goes on whole.
        bar = np.concatenate([keep * by[: ends[0]], w[0].T @ slope])
    return flown, gradient


def _gru_back(weights: Sequence[Array], gradient: Sequence[Array], layers: Layers, slope: Array) -> tuple[Array, Array]:
    """Slopes by what came in and by the memory before, from those by the memory after; adds to the gradient."""
    _, x, _, _, memory, r, z, new, pushed = layers
    by_new = slope * (1.0 - z) * (1.0 - new**2)
    by_update = slope * (memory - new) * z * (1.0 - z)
    by_reset = by_new * pushed * r * (1.0 - r)
    # Two sets: what comes in enters the new memory whole, what was held only by the share that reset leaves.
    coming = np.concatenate([by_reset, by_update, by_new])
    held = np.concatenate([by_reset, by_update, by_new * r])
    for k, (sums, factor) in enumerate(((coming, x), (held, memory))):
        gradient[2 * k] += sums @ factor.T
        gradient[2 * k + 1] += sums.sum(axis=1)
    return weights[0].T @ coming, weights[2].T @ held + slope * z


def _value_slope(ahead: Ahead, seen: Array) -> Array:
    """Slope of what a critic tells by what is seen, (observed, env)."""
    _, layers = value_twin(ahead, seen)
    w = [np.asarray(x, float) for x in ahead.weights]
    slope = w[4].T * (1.0 - layers[2] ** 2)
    return np.asarray(w[0].T @ (w[2].T @ slope * (1.0 - layers[1] ** 2)))


def _numbers(window: FlightWindow) -> dict[int, Array]:
    return {row: values.astype(float) for row, values in window.parameters.items()}
