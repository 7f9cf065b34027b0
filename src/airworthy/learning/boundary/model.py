"""The network in torch, for training: the same tensors that the runner without torch reads.

Dropout takes its masks from outside: they are drawn from (seed, epoch), so a training that was stopped goes on with the same
numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from airworthy.pilots.boundary.contract import SLOPES, WIDTHS

__all__ = ["DROPPED", "BoundaryNet", "draw_masks"]

DROPPED = (1, 2)
"""Layers behind whose rectifier numbers are dropped."""


class BoundaryNet(nn.Module):
    """Eight scaled inputs, two scaled outputs.

    Args:
        seed: Of the weights: uniform within 1 / sqrt(inputs of the layer), torch's usual rule.
    """

    def __init__(self, seed: int):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.layers = nn.ModuleList()
        for given, wide in pairwise(WIDTHS):
            layer = nn.utils.skip_init(nn.Linear, given, wide)
            for tensor in (layer.weight, layer.bias):
                nn.init.uniform_(tensor, -(given**-0.5), given**-0.5, generator=generator)
            self.layers.append(layer)

    def forward(self, x: Tensor, masks: Sequence[Tensor] = ()) -> Tensor:
        """(n, 8) -> (n, 2), both in [0, 1].

        Args:
            x: Scaled inputs.
            masks: From `draw_masks`; none: nothing is dropped.
        """
        for number, (layer, slope) in enumerate(zip(self.layers, SLOPES, strict=False)):
            x = functional.leaky_relu(layer(x), slope, inplace=True)
            if masks and number in DROPPED:
                x = x * masks[DROPPED.index(number)]
        found: Tensor = torch.sigmoid(self.layers[-1](x))
        return found


def draw_masks(rows: int, share: float, generator: torch.Generator, device: torch.device) -> list[Tensor]:
    """One per layer of `DROPPED`, (rows, width): 0 for that share of numbers, 1 / (1 - share) elsewhere; none of share 0."""
    if share == 0.0:
        return []
    widths = [WIDTHS[number + 1] for number in DROPPED]
    drawn = torch.rand(rows, sum(widths), generator=generator, device=device)
    kept = (drawn >= share).to(torch.float32) / (1.0 - share)
    return list(kept.split(widths, dim=1))
