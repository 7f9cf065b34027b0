"""Convolutions that learn with the heads (`--features trained`): the control for those that stay as they are.

The whitening of what they gave at first stays, and is folded into the classifier as that of frozen ones is: it says in which
units heads begin to read. Images are kept instead of features, and changed anew each time they are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from airworthy.core.arrays import ArrayF32, ArrayU8
from airworthy.learning.svnet.data_loader import normalized
from airworthy.learning.svnet.model import SqueezeNetTrunk
from airworthy.learning.visuomotor.features import Whitening

__all__ = ["Sight"]


class Sight(nn.Module):
    """Images of 8 bits to whitened features.

    Args:
        trunk: Tensors `features.*` of SqueezeNet 1.1 to begin with.
        whitening: Of what they give.
        looks: One of so many looks at an image is as it is; the others are changed.
        changed: Returns changed images, of images and seeds.
        half: Compute convolutions in bfloat16.
    """

    def __init__(
        self,
        trunk: Mapping[str, ArrayF32],
        whitening: Whitening,
        looks: int,
        changed: Callable[[ArrayU8, tuple[int, ...]], ArrayU8],
        half: bool,
    ):
        super().__init__()
        self.features = SqueezeNetTrunk()
        self.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in trunk.items()})
        self.to(memory_format=torch.channels_last)
        self.register_buffer("mean", torch.from_numpy(whitening.mean.astype(np.float32)), persistent=False)
        self.register_buffer("matrix", torch.from_numpy(whitening.matrix.astype(np.float32)), persistent=False)
        self._looks, self._changed, self._half = looks, changed, half

    def forward(self, images: Tensor, rng: np.random.Generator) -> Tensor:
        """Return (n, H, W, 3) of 8 bits -> (n, cells^2, channels).

        Args:
            images: Red, green, blue.
            rng: Draws which are changed, and how.
        """
        drawn = torch.from_numpy(rng.integers(self._looks, size=len(images)) > 0)
        seed = int(rng.integers(1 << 62))
        if drawn.any():
            images = images.clone()
            images[drawn] = torch.from_numpy(self._changed(images[drawn].numpy(), (seed,)))
        with torch.autocast("cpu", torch.bfloat16, enabled=self._half):
            seen = self.features(normalized(images))
        return self.whitened(seen.float().flatten(2).mT)

    def whitened(self, features: Tensor) -> Tensor:
        """Return (n, cells^2, 512) -> (n, cells^2, channels)"""
        return cast(Tensor, (features - self.mean) @ cast(Tensor, self.matrix).T)

    def tensors(self) -> dict[str, ArrayF32]:
        """Return tensors `features.*` as they are."""
        return {name: value.detach().contiguous().numpy().copy() for name, value in self.state_dict().items()}
