"""A module that tells from the last half second which vehicle is flown, learnt beside a policy that was told (rapid motor
adaptation; Kumar et al. 2021, arXiv 2107.04034): on flights that its own estimates fly, by regression on the truth."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from airworthy.pilots.avoid_policy.fleet import FEATURES, HISTORY, HISTORY_ROW, IDENTIFIER_WIDTH, bounded, rough_ratio

__all__ = ["IDENTIFIER_RATE", "Identifier", "identifier_step"]

IDENTIFIER_RATE = 2e-3
"""Ours, of its Adam."""


class Identifier(nn.Module):
    """From a history (env, 72) to features (env, 3)."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(HISTORY * HISTORY_ROW, IDENTIFIER_WIDTH)
        self.second = nn.Linear(IDENTIFIER_WIDTH, len(FEATURES))
        with torch.no_grad():
            # Untrained it adds nothing to what least squares say.
            self.second.weight.mul_(0.01)
            self.second.bias.zero_()

    def forward(self, history: Tensor) -> Tensor:
        """Return features (env, 3) of histories (env, 72)."""
        found = self.second(torch.tanh(self.first(history)))
        rough = rough_ratio(history, torch)
        return bounded(found + torch.cat([rough, torch.zeros_like(found[:, 1:])], 1), torch)


def identifier_step(net: Identifier, adam: torch.optim.Optimizer, histories: Tensor, truth: Tensor) -> float:
    """Learn from one window; returns the mean squared error of features before it.

    Args:
        net: Learns.
        adam: Its optimiser.
        histories: (tick, env, 72).
        truth: Features of the vehicles, (env, 3).
    """
    first = 0.0
    # A window is 40 decisions of every flight: they are learnt from in parts, each a mean over all flights.
    for part in histories.split(4):
        error = (net(part.flatten(0, 1)) - truth.repeat(len(part), 1)).square().mean()
        adam.zero_grad()
        error.backward()
        adam.step()
        first = first or float(error.detach())
    return first
