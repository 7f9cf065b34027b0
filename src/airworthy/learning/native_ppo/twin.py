"""The readable twin of the update's kernel, on float64 NumPy: the gradient of PPO's loss by plain products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayFloat
from airworthy.core.tracing import adjoint
from airworthy.learning.native_ppo.kernel import NetworkSizes
from airworthy.learning.native_ppo.loss import ppo_loss

__all__ = ["loss_gradient", "network_layers"]


def network_layers(weights: Sequence[ArrayFloat], observation: Array) -> list[Array]:
    """Return inputs of each layer, then the sums of the last, (samples, width) each.

    Args:
        weights: Matrix (rows, columns) and bias (rows,) of three layers, of which the first two end in tanh.
        observation: (samples, observed).
    """
    layers = [observation]
    for k in (0, 2):
        layers.append(np.tanh(layers[-1] @ weights[k].T + weights[k + 1]))
    return [*layers, layers[-1] @ weights[4].T + weights[5]]


def loss_gradient(sizes: NetworkSizes, weights: Sequence[ArrayFloat], samples: Array) -> tuple[Array, Array]:
    """Return the gradient of the mean loss, and the sums of loss, divergence and squared error.

    Args:
        sizes: Of network and loss.
        weights: Of policy, of critic, and logarithms of standard deviations, as `NativePpo.parameters` holds them: 13 arrays.
        samples: Observation, action, old log-probability, advantage, target, what the critic alone sees; (samples, numbers).

    Returns:
        (weights,) in the order of `NativePpo.parameters`, and (3,).
    """
    n, k = sizes.actions, sizes.observed
    rows, v = samples.astype(float), [w.astype(float) for w in weights]
    # Behind observation and actions: old log-probability, advantage, target; then what the critic alone sees.
    told = k + n + 3
    policy = network_layers(v[:6], rows[:, :k])
    critic = network_layers(v[6:12], rows[:, told:] if sizes.known else rows[:, :k])
    mean = np.tanh(policy[3])

    def loss(*inputs: Any) -> Any:
        actions, old = inputs[2 * n + 1 : 3 * n + 1], inputs[3 * n + 1 :]
        given = (inputs[:n], inputs[n : 2 * n], inputs[2 * n], actions, old)
        return ppo_loss(*given, sizes.clip_share, sizes.value_weight, sizes.entropy_weight)

    inputs = [*mean.T, *np.repeat(v[12][:, None], len(rows), axis=1), critic[3][:, 0], *rows[:, k:told].T]
    weight = np.full(len(rows), 1.0 / len(rows))
    values, slopes = adjoint(loss, inputs, [weight, 0.0 * weight, 0.0 * weight])
    # 1 - tanh^2: the mean of an action is squashed, the value is not.
    by_mean, by_value = np.array(slopes[:n]).T * (1.0 - mean**2), np.array(slopes[2 * n])[:, None]
    parts = [*_by_weights(v[:6], policy, by_mean), *_by_weights(v[6:12], critic, by_value)]
    parts.append(np.array([np.sum(slope) for slope in slopes[n : 2 * n]]))
    return np.concatenate(parts), np.array([np.sum(value) for value in values])


def _by_weights(weights: Sequence[Array], layers: Sequence[Array], slope: Array) -> list[Array]:
    parts: list[Array] = []
    # From the output back: each layer's slope is needed by the one below it.
    for k in (2, 1, 0):
        parts = [(slope.T @ layers[k]).ravel(), slope.sum(axis=0), *parts]
        slope = slope @ weights[2 * k] * (1.0 - layers[k] ** 2)
    return parts
