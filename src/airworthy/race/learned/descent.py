"""Products of a small network in torch on one thread: NumPy's are split over threads, which wait for each other by spinning.

`observing.network_outputs` and `learning.distill.training.imitation_gradient` are the same in NumPy, and their tests' twins.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch

from airworthy.core.arrays import ArrayF32

__all__ = ["error_gradient", "outputs"]


def outputs(weights: Sequence[ArrayF32], observed: ArrayF32) -> ArrayF32:
    """Return outputs of a network with tanh behind each layer, (n, outputs).

    Args:
        weights: Weight (rows, columns) and bias of each layer.
        observed: (n, columns of the first).
    """
    last: ArrayF32 = _layers(weights, observed)[-1].numpy()
    return last


def error_gradient(weights: Sequence[ArrayF32], observed: ArrayF32, wanted: ArrayF32) -> list[ArrayF32]:
    """Return the gradient of the mean squared error of outputs, shaped as the weights.

    Args:
        weights: As above.
        observed: (n, columns of the first).
        wanted: (n, outputs).
    """
    layers = _layers(weights, observed)
    error = layers[-1] - torch.from_numpy(wanted)
    slope = error * (2.0 / error.numel())
    gradient: list[ArrayF32] = []
    for w, (before, after) in zip(weights[-2::-2], reversed(list(pairwise(layers))), strict=True):
        slope = slope * (1.0 - after * after)
        gradient = [(slope.T @ before).numpy(), slope.sum(0).numpy(), *gradient]
        slope = slope @ torch.from_numpy(w)
    return gradient


def _layers(weights: Sequence[ArrayF32], observed: ArrayF32) -> list[Any]:
    layers = [torch.from_numpy(observed)]
    for w, b in zip(weights[::2], weights[1::2], strict=True):
        layers.append(torch.tanh(torch.addmm(torch.from_numpy(b), layers[-1], torch.from_numpy(w).T)))
    return layers
