"""The student's network as torch learns it; `airworthy.planners.agile_autonomy.layers` flies it without torch.

Source: specification of the planners, section 8.2, with smaller layers; the other module says why.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from airworthy.planners.agile_autonomy.layers import (
    CELL_FEATURES,
    CONVOLUTIONS,
    IMAGE_SLOPE,
    NUMBERS,
    PATCH,
    PLAN,
    POINTS,
    SPACING,
    STATE_SLOPE,
    WIDTHS,
    flown_shapes,
    free_course,
    level_state,
)
from airworthy.planners.agile_autonomy.level import UNSEEN, VIEW_STEPS

__all__ = ["StudentNet", "level_tensor"]


class StudentNet(nn.Module):
    """See the module.

    Args:
        modes: Trajectories at once.
    """

    def __init__(self, modes: int):
        super().__init__()
        self._modes = modes
        convolutions = [nn.Conv2d(2, CONVOLUTIONS[0], PATCH, PATCH)]
        convolutions += [nn.Conv2d(given, wide, 3, 2, 1) for given, wide in pairwise(CONVOLUTIONS)]
        self.convolutions = nn.ModuleList(convolutions)
        self.cells = nn.Conv2d(CONVOLUTIONS[-1], CELL_FEATURES, 1)
        self.image, self.state, self.plan = (_layers(WIDTHS[name]) for name in ("image", "state", "plan"))
        self.modes = nn.Linear(PLAN, modes * WIDTHS["plan"][0])
        with torch.no_grad():
            for layer in (*convolutions, self.cells):
                # He et al. 2015: behind a rectifier half of the variance is gone, and torch's own spread lets an image fade.
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                if layer.bias is not None:
                    layer.bias.zero_()
            # Untrained it flies the free course.
            self.plan[-1].weight.mul_(0.1)
            self.plan[-1].bias.zero_()

    def forward(self, views: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores (n, modes) and points (n, modes, 10, 3), body frame [m].

        Args:
            views: (n, 48, 96) uint8, see `planners.agile_autonomy.level`.
            state: (n, 18).
        """
        axes = level_tensor(state)
        unseen = views == UNSEEN
        x = torch.stack([torch.where(unseen, 0.0, views.to(state.dtype) / VIEW_STEPS), unseen.to(state.dtype)], dim=1)
        for layer in self.convolutions:
            x = F.relu(layer(x))
        # Cell by cell, as NumPy reads them.
        x = F.relu(self.cells(x)).permute(0, 2, 3, 1).flatten(1)
        seen = _through(self.image, x, IMAGE_SLOPE, True)
        moving = _through(self.state, torch.cat(level_state(state, axes), dim=1), STATE_SLOPE, True)
        begun = F.leaky_relu(self.modes(torch.cat([seen, moving], dim=1)), STATE_SLOPE)
        out = _through(self.plan, begun.unflatten(1, (self._modes, -1)), STATE_SLOPE, False)
        shapes = torch.from_numpy(flown_shapes()).to(state)
        points = torch.einsum("nji,st,nmjt->nmsi", axes, shapes, out[..., 1:NUMBERS].unflatten(-1, (3, POINTS)))
        first, second = free_course(state)
        times = SPACING * torch.arange(1, POINTS + 1, dtype=state.dtype, device=state.device)[:, None]
        return out[..., 0], points + (times * first[:, None] + times**2 * second[:, None])[:, None]


def level_tensor(state: Tensor) -> Tensor:
    """Return rotations (n, 3, 3) from body to level; `planners.agile_autonomy.level.level_axes` without torch."""
    turn = state[:, :9].unflatten(1, (3, 3))
    nose = turn[:, :2, 0]
    c, s = (nose / nose.norm(dim=1, keepdim=True).clamp_min(1e-9)).unbind(1)
    zero, one = torch.zeros_like(c), torch.ones_like(c)
    back = torch.stack([c, s, zero, -s, c, zero, zero, zero, one], dim=1).unflatten(1, (3, 3))
    return back @ turn


def _layers(widths: tuple[int, ...]) -> nn.ModuleList:
    return nn.ModuleList(nn.Linear(given, wide) for given, wide in pairwise(widths))


def _through(layers: nn.ModuleList, x: Tensor, slope: float, last: bool) -> Tensor:
    for number, layer in enumerate(layers):
        x = layer(x)
        if last or number < len(layers) - 1:
            x = F.leaky_relu(x, slope)
    return x
