"""The student's network as torch learns it; `airworthy.planners.agile_autonomy.layers` flies it without torch.

Source: specification of the planners, section 8.2, with smaller convolutions; the other module says why.
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
    POINTS,
    SPACING,
    STATE_SLOPE,
    WIDTHS,
    free_course,
)

__all__ = ["StudentNet"]


class StudentNet(nn.Module):
    """See the module.

    Args:
        modes: Trajectories at once.
    """

    def __init__(self, modes: int):
        super().__init__()
        self.modes = modes
        convolutions = [nn.Conv2d(1, CONVOLUTIONS[0], PATCH, PATCH)]
        convolutions += [nn.Conv2d(given, wide, 3, 2, 1) for given, wide in pairwise(CONVOLUTIONS)]
        self.convolutions = nn.ModuleList(convolutions)
        self.cells = nn.Conv2d(CONVOLUTIONS[-1], CELL_FEATURES, 1)
        self.image, self.state, self.plan = (_layers(WIDTHS[name]) for name in ("image", "state", "plan"))
        self.image_modes, self.state_modes = (nn.Conv1d(1, modes, 3, padding=1) for _ in range(2))
        with torch.no_grad():
            for layer in (*convolutions, self.cells):
                # He et al. 2015: behind a rectifier half of the variance is gone, and torch's own spread lets an image fade.
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                if layer.bias is not None:
                    layer.bias.zero_()
            # Untrained it flies the free course.
            self.plan[-1].weight.mul_(0.1)
            self.plan[-1].bias.zero_()

    def forward(self, images: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores (n, modes) and points (n, modes, 10, 3), body frame [m].

        Args:
            images: (n, 224, 224) uint8, in steps of a 250th of the reach.
            state: (n, 18).
        """
        x = images[:, None].to(state.dtype) / 127.5 - 1.0
        for layer in self.convolutions:
            x = F.relu(layer(x))
        # Cell by cell, as NumPy reads them.
        x = F.relu(self.cells(x)).permute(0, 2, 3, 1).flatten(1)
        seen = self.image_modes(_through(self.image, x, IMAGE_SLOPE, True)[:, None])
        moving = self.state_modes(_through(self.state, state, STATE_SLOPE, True)[:, None])
        out = _through(self.plan, torch.cat([seen, moving], dim=2), STATE_SLOPE, False)
        points = out[..., 1:NUMBERS].unflatten(-1, (3, POINTS)).transpose(-1, -2)
        first, second = free_course(state)
        times = SPACING * torch.arange(1, POINTS + 1, dtype=state.dtype, device=state.device)[:, None]
        return out[..., 0], points + (times * first[:, None] + times**2 * second[:, None])[:, None]


def _layers(widths: tuple[int, ...]) -> nn.ModuleList:
    return nn.ModuleList(nn.Linear(given, wide) for given, wide in pairwise(widths))


def _through(layers: nn.ModuleList, x: Tensor, slope: float, last: bool) -> Tensor:
    for number, layer in enumerate(layers):
        x = layer(x)
        if last or number < len(layers) - 1:
            x = F.leaky_relu(x, slope)
    return x
