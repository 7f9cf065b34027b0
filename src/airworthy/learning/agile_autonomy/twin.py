"""The losses and the collision cost in NumPy, float64, by loops: what the tests and the tensors are compared with.

Source: specification of the planners, section 8.3.
"""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array

__all__ = [
    "NEAR",
    "SCORE_WEIGHT",
    "SPACE_WEIGHT",
    "TOUCHED",
    "WINNER_WEIGHT",
    "clearance_loss",
    "collision_costs",
    "score_loss",
    "space_loss",
]

# Source: spec/planners 8.3: squared error, mean x 10; winner 0.95; cost loss 2 * MSE; distances of 0.3 and 0.8 m.
SPACE_WEIGHT, WINNER_WEIGHT, SCORE_WEIGHT, TOUCHED, NEAR = 10.0, 0.95, 2.0, 0.3, 0.8


def collision_costs(distance: Array) -> Array:
    """Return the mean over points of: 4 - 2 (d / 0.3)^2 within 0.3 m, from 2 down to 0 at 0.8 m, else 0.

    Args:
        distance: Of points to the nearest thing [m], (..., points); what is inside of one counts as 0.
    """
    d = np.maximum(np.asarray(distance, np.float64), 0.0)
    touched = 4.0 - 2.0 * (d / TOUCHED) ** 2
    near = 2.0 * (TOUCHED - d) / (NEAR - TOUCHED) + 2.0
    return np.asarray(np.where(d <= TOUCHED, touched, np.where(d <= NEAR, near, 0.0)).mean(axis=-1))


def space_loss(points: Array, expert: Array) -> float:
    """Return the relaxed winner-takes-all loss of points (n, modes, 10, 3) by expert trajectories (n, k, 10, 3)."""
    total = 0.0
    for mine, right in zip(np.asarray(points, np.float64), np.asarray(expert, np.float64), strict=True):
        modes, voted = len(mine), set()
        for one in right:
            errors = [SPACE_WEIGHT * float(np.mean((mode - one) ** 2)) for mode in mine]
            winner = int(np.argmin(errors))
            voted.add(winner)
            total += WINNER_WEIGHT * errors[winner] / len(right)
        for mode in range(modes):
            if mode not in voted:
                error = SPACE_WEIGHT * float(np.mean((mine[mode] - right[0]) ** 2))
                total += (1.0 - WINNER_WEIGHT) / (modes - 1) * error
    return total / len(points)


def score_loss(score: Array, cost: Array) -> float:
    """Return the error of scores (n, modes) as estimates of collision costs (n, modes)."""
    return SCORE_WEIGHT * float(np.mean((np.asarray(score, np.float64) - np.asarray(cost, np.float64)) ** 2))


def clearance_loss(distance: Array) -> float:
    """Return the mean squared distance that points (n, modes, 10) at some distance [m] lack to `NEAR`."""
    lacking = [max(NEAR - float(d), 0.0) ** 2 for d in np.asarray(distance, np.float64).reshape(-1)]
    return SPACE_WEIGHT * sum(lacking) / len(lacking)
