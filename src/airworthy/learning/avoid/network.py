"""The network: an image of 12 x 16, ten numbers of state, a memory; an acceleration and an estimate of velocity.

The specification has three convolutions before a GRU of 192 (7.2). Over 192 pixels they cost forty times as much as one matrix,
1.04 M multiply-adds against 25 k, and a step of training is mostly network: here the image goes into a matrix.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from airworthy.learning.avoid.identifier import Identifier

__all__ = ["HIDDEN", "OUTPUTS", "PIXELS", "SLOPE", "STATE", "AvoidNet"]

# Source: specification, learning by reward, 7.2: 12 x 16 cells, state of 10, six outputs; published layers have 192, ours 128.
PIXELS, STATE, OUTPUTS, HIDDEN = 192, 10, 6, 128
# Source: the same, LeakyReLU .05.
SLOPE = 0.05
"""Of the leaky rectifier."""


class AvoidNet(nn.Module):
    """See the module."""

    def __init__(self, hidden: int = HIDDEN, told: int = 0, identifies: bool = False):
        super().__init__()
        self.hidden = hidden
        self.image = nn.Linear(PIXELS, hidden)
        # What is told of a vehicle stands behind the state.
        self.state = nn.Linear(STATE + told, hidden, bias=False)
        self.input = nn.Linear(hidden, 3 * hidden)
        self.memory = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, OUTPUTS)
        with torch.no_grad():
            # Ours: with torch's own spread, speeds of ten metres per second would drown the image.
            self.state.weight.mul_(0.5)
            # An untrained policy asks for almost nothing: it hovers, and the first windows are flights, not falls.
            self.out.weight.mul_(0.01)
            self.out.bias.zero_()
        # Last: with and without it a seed draws the same policy.
        self.identify = Identifier() if identifies else None

    def forward(self, image: Tensor, state: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Return outputs (env, 6) and the memory (env, hidden) after them.

        Args:
            image: (env, 192).
            state: (env, 10), and what is told.
            memory: (env, hidden).
        """
        seen: Any = F.leaky_relu(self.image(image) + self.state(state), SLOPE)
        new, old = self.input(seen), self.memory(memory)
        n = self.hidden
        # The gates as torch.nn.GRU has them, written out since the pilot computes them without torch.
        gates = torch.sigmoid(new[:, : 2 * n] + old[:, : 2 * n])
        reset, update = gates[:, :n], gates[:, n:]
        candidate = torch.tanh(new[:, 2 * n :] + reset * old[:, 2 * n :])
        memory = candidate + update * (memory - candidate)
        # Specification, 7.2: a rectifier between memory and output, too.
        return self.out(F.leaky_relu(memory, SLOPE)), memory
