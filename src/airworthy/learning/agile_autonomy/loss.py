"""What a student is taught by: trajectories of the expert, by relaxed winner-takes-all, and how near its own come to things.

Source: specification of the planners, section 8.3; the float64 twin is `airworthy.learning.agile_autonomy.twin`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from airworthy.learning.agile_autonomy.twin import SCORE_WEIGHT, SPACE_WEIGHT, WINNER_WEIGHT

__all__ = ["score_loss", "space_loss"]


def space_loss(points: Tensor, expert: Tensor) -> Tensor:
    """Return the mean over n of: each expert trajectory's error to its nearest mode, and a little of modes that won none.

    A mode that is nearest to no trajectory is drawn to the expert's first one by what the relaxation leaves, so that it is
    not lost for good.

    Args:
        points: (n, modes, 10, 3), body frame [m].
        expert: (n, k, 10, 3), best first.
    """
    # (n, k, modes)
    error = SPACE_WEIGHT * ((expert[:, :, None] - points[:, None]) ** 2).mean(dim=(-1, -2))
    modes = error.shape[-1]
    winner = error.argmin(dim=-1)
    won = WINNER_WEIGHT * error.gather(-1, winner[..., None])[..., 0].mean(dim=-1)
    if modes == 1:
        return won.mean()
    votes = torch.nn.functional.one_hot(winner, modes).sum(dim=1)
    share = (1.0 - WINNER_WEIGHT) / (modes - 1)
    return (won + share * torch.where(votes == 0, error[:, 0], 0.0).sum(dim=-1)).mean()


def score_loss(score: Tensor, cost: Tensor) -> Tensor:
    """Return the error of scores (n, modes) as estimates of collision costs (n, modes), which carry no gradient."""
    return SCORE_WEIGHT * ((score - cost) ** 2).mean()
