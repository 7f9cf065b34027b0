"""What a student is taught by: trajectories of the expert, by relaxed winner-takes-all, and how near its own come to things.

Source: specification of the planners, section 8.3; the float64 twin is `airworthy.learning.agile_autonomy.twin`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from airworthy.learning.agile_autonomy.twin import NEAR, SCORE_WEIGHT, SPACE_WEIGHT, WINNER_WEIGHT

__all__ = ["clearance_loss", "score_loss", "space_loss"]


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


def clearance_loss(points: Tensor, distance: Tensor, slope: Tensor) -> Tensor:
    """Return the mean squared distance that is missing to `NEAR`, as the error of places is weighed.

    Ours: what lies around is known where a place was generated, and says of a trajectory of the student's own which way it
    should give, which no trajectory of the expert says.

    Args:
        points: (n, modes, 10, 3), body frame [m].
        distance: Of these points to the nearest thing [m], (n, modes, 10); carries no gradient.
        slope: Its gradient there, body frame, (n, modes, 10, 3).
    """
    missing = torch.clamp(NEAR - distance, min=0.0)
    # Its value, with the gradient of distances that were looked up and not computed.
    moved = (slope * (points - points.detach())).sum(dim=-1)
    return SPACE_WEIGHT * (missing**2 - 2.0 * missing * moved).mean()
