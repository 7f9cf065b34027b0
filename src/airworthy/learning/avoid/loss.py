"""What flights of a window cost. Specification learning_by_reward 7.2, with weights of ours where stated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from airworthy.pilots.avoid_policy.sight import RATE

__all__ = ["MEAN_OVER", "POINTS", "AvoidTick", "window_loss"]

MEAN_OVER = 30
"""Decisions over which velocity is averaged, two seconds: who goes round a tree is not off its course."""
POINTS = 8
"""Places per decision whose clearance counts; specification: 10."""
NEAR_M = 0.5
"""Below this clearance nearness costs [m]; specification: 1, at which no forest of a tree per 2.5 square metres is flown."""
STEEP = 32.0
"""Of the softplus of clearance [1/m]; specification, 7.2."""
CLOSING_MAX = 20.0
"""Largest factor of closing speed, [m/s]; ours, so that one flight inside a trunk does not outweigh a batch."""
_ESTIMATE_WEIGHT, _COMMAND_WEIGHT, _JERK_WEIGHT = 2.0, 0.01, 0.001
"""Specification, 7.2."""


@dataclass
class AvoidTick:
    """What a decision left, of all flights."""

    velocity: Tensor
    """World [m/s], (env, 3), after it."""
    wanted: Tensor
    """Wanted velocity [m/s], (env, 3), before it."""
    clearance: Tensor
    """Beyond the margin [m], (env, points), along what is flown."""
    asked: Tensor
    """Acceleration the policy asked for [m/s^2], (env, 3)."""
    acting: Tensor
    """Acceleration that acts [m/s^2], (env, 3)."""
    misjudged: Tensor
    """Error of the policy's estimate of velocity [m/s], (env, 3)."""


def window_loss(
    ticks: Sequence[AvoidTick], before: Tensor, collision_weight: float, nearness_weight: float
) -> tuple[Tensor, dict[str, float]]:
    """Return what a window costs, and its parts before their weights.

    Args:
        ticks: Decisions of the window, in order.
        before: Velocities of the `MEAN_OVER` - 1 decisions before it [m/s], (n, env, 3).
        collision_weight: Of collision.
        nearness_weight: Of nearness.
    """
    velocity = torch.cat([before, torch.stack([t.velocity for t in ticks])])
    # Differences of a running sum: 30 decisions are averaged at the price of one subtraction.
    total = torch.cat([torch.zeros_like(velocity[:1]), velocity.cumsum(0)])
    off = ((total[MEAN_OVER:] - total[:-MEAN_OVER]) / MEAN_OVER - torch.stack([t.wanted for t in ticks])).norm(dim=2)
    # Smooth at 0 and linear far off: a flight that stands still must not outweigh those that learn to turn.
    speed = F.smooth_l1_loss(off, torch.zeros_like(off))
    near, hit = clearance_cost(torch.stack([t.clearance for t in ticks]))
    command = torch.stack([t.asked for t in ticks]).square().sum(2).mean()
    acting = torch.stack([t.acting for t in ticks])
    # Of what acts, not of what was asked for: the body's lag smooths the rest by itself.
    jerk = ((acting[1:] - acting[:-1]) * RATE).square().sum(2).mean()
    estimate = torch.stack([t.misjudged for t in ticks]).square().mean()
    cost = speed + collision_weight * hit + nearness_weight * near
    cost = cost + _ESTIMATE_WEIGHT * estimate + _COMMAND_WEIGHT * command + _JERK_WEIGHT * jerk
    parts = {"speed": speed, "nearness": near, "collision": hit, "estimate": estimate, "command": command, "jerk": jerk}
    return cost, {name: float(value.detach()) for name, value in parts.items()}


def clearance_cost(clearance: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean cost of nearness and of collision.

    Args:
        clearance: Beyond the margin [m], (tick, env, points), points in the order in which they are flown.
    """
    ticks, env, points = clearance.shape
    along = clearance.permute(0, 2, 1).reshape(ticks * points, env)
    # How fast it closes in [m/s], without gradient: slower would be cheaper otherwise, whatever it leads to. The factor 0.9
    # is the specification's: 135 times the change over a tenth of a fifteenth of a second.
    closing = (-(along[1:] - along[:-1]) * (0.9 * points * RATE)).clamp(1.0, CLOSING_MAX).detach()
    # The later of two points: the earlier one is where the vehicle already is, which nothing can change.
    later = along[1:]
    near = (closing * (NEAR_M - later).relu().square()).mean()
    return near, (closing * F.softplus(-STEEP * later)).mean()
