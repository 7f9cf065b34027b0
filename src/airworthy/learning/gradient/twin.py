"""The readable twin of the fused kernel: a window of flights with a policy, on float64 NumPy, and its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, Vector
from airworthy.core.tracing import adjoint
from airworthy.learning.gradient.kernel import FlightWindow, hover_step, observe, vehicle_record

__all__ = ["flown_twin", "window_twin"]


Layers = list[Array]
"""Inputs of the network and what its layers make of them, each (rows, env)."""


def flown_twin(window: FlightWindow, weights: Sequence[Array], state: Array) -> tuple[Array, Array, list[tuple[Array, Layers]]]:
    """Fly a window.

    Args:
        window: Whose vehicles, shape and length are taken.
        weights: As for `FlightWindow.run`.
        state: Where flights begin, (state rows, env).

    Returns:
        Cost of each environment over the window, (env,); states after it, (state rows, env); per step the state before it,
        and the network's layers.
    """
    shape = window.shape
    record = vehicle_record(shape, _numbers(window))
    past: list[tuple[Array, Layers]] = []
    cost = np.zeros(window.env_count)
    for _ in range(window.steps):
        layers = [np.array(np.broadcast_arrays(*observe(tuple(state), shape)))]
        for w, b in zip(weights[::2], weights[1::2], strict=True):
            layers.append(np.tanh(w @ layers[-1] + b[:, None]))
        past.append((state, layers))
        out = hover_step(tuple(state), tuple(layers[-1]), record, shape)
        state = np.array(np.broadcast_arrays(*out[: shape.state]))
        cost = cost + out[-1]
    return cost, state, past


def window_twin(
    window: FlightWindow, weights: Sequence[Array], state: Array, keep: float = 1.0
) -> tuple[Array, Array, list[Array]]:
    """Fly a window and derive its mean cost per step by the weights, as `FlightWindow.run`.

    Args:
        window: Whose vehicles, shape and length are taken.
        weights: As for `FlightWindow.run`.
        state: Where flights begin, (state rows, env).
        keep: Share of the state's slope that each step hands back.

    Returns:
        Cost of each environment over the window, (env,); states after it, (state rows, env); the gradient, shaped as weights.
    """
    shape, numbers = window.shape, _numbers(window)
    ends = np.cumsum([shape.state, shape.actions])

    def step(*x: Any) -> Vector:
        p = vehicle_record(shape, dict(zip(numbers, x[ends[1] :], strict=True)))
        return hover_step(x[: ends[0]], x[ends[0] : ends[1]], p, shape)

    w = [np.asarray(x, float) for x in weights]
    cost, after, past = flown_twin(window, w, state)
    gradient = [np.zeros_like(x) for x in w]
    weight = np.full(window.env_count, 1.0 / (window.steps * window.env_count))
    bar = np.zeros((shape.state + shape.observed, window.env_count))
    for before, layers in reversed(past):
        slopes = adjoint(step, [*before, *layers[-1], *numbers.values()], [*bar, weight])[1]
        by = np.array(np.broadcast_arrays(*slopes[: ends[1]]))
        slope = by[ends[0] :]
        for k in (4, 2, 0):
            slope = slope * (1.0 - layers[k // 2 + 1] ** 2)
            gradient[k] += slope @ layers[k // 2].T
            gradient[k + 1] += slope.sum(axis=1)
            slope = w[k].T @ slope
        bar = np.concatenate([keep * by[: ends[0]], slope])
    return cost, after, gradient


def _numbers(window: FlightWindow) -> dict[int, Array]:
    return {row: values.astype(float) for row, values in window.parameters.items()}
