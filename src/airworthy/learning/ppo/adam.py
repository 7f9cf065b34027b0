"""Adam (Kingma and Ba 2015) in torch, with the numbers of the native form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from airworthy.core.arrays import ArrayAny
from airworthy.learning.native_ppo.shared import BETA1, BETA2, EPSILON

__all__ = ["Adam"]


class Adam:
    """Steps with moments in float64, on one row of all parameters.

    Not torch's: its epsilon counts from the corrected second moment, where the native form's counts from the plain one; and
    sums in float32 lose what is small (specification, learning by reward, section 10).

    Args:
        parameters: That are stepped, which become views of one row.
    """

    def __init__(self, parameters: list[Tensor]):
        self.parameters, self.steps = parameters, 0
        flat = torch.cat([x.detach().reshape(-1) for x in parameters])
        self.flat = flat
        at = 0
        for x in parameters:
            # Views of one row: a step changes all of them at once.
            x.data = flat[at : at + x.numel()].view(x.shape)
            at += x.numel()
        self._first, self._second = (torch.zeros(len(flat), dtype=torch.float64, device=flat.device) for _ in range(2))

    def step(self, gradient: Tensor, rate: float) -> None:
        """Go a step against a gradient, (parameters,) float64."""
        self.steps += 1
        self._first += (1.0 - BETA1) * (gradient - self._first)
        self._second += (1.0 - BETA2) * (gradient * gradient - self._second)
        size = rate * math.sqrt(1.0 - BETA2**self.steps) / (1.0 - BETA1**self.steps)
        self.flat -= (size * self._first / (self._second.sqrt() + EPSILON)).float()

    def saved(self) -> dict[str, ArrayAny]:
        """Return parameters and moments, by name."""
        named = {"parameters": self.flat, "first": self._first, "second": self._second}
        return {name: x.cpu().numpy().copy() for name, x in named.items()}

    def restore(self, saved: Any, steps: int) -> None:
        """Go on from what `saved` gave, after so many steps."""
        self.steps = steps
        for name, x in (("parameters", self.flat), ("first", self._first), ("second", self._second)):
            x.copy_(torch.from_numpy(np.array(saved[name])))
