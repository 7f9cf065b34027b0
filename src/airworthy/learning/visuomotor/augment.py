"""Changed looks at an image: what a place may look like on another day, and through another exposure.

A look is made once, before the frozen trunk sees it; which look is drawn, follows from the seed and the image's number in its
part alone. Everything acts on 8-bit images, so that what is learnt from is what a camera could have given.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from airworthy.core.arrays import ArrayU8
from airworthy.learning.svnet.data_loader import GAMMA, pasted
from airworthy.learning.visuomotor.config import Augmentation

__all__ = ["augmented"]

_AT_ONCE = 256
_TINT = 0.08
"""Most by which one colour is stronger or weaker: white balance of a phone's camera, ours."""


def augmented(images: ArrayU8, how: Augmentation, seed: tuple[int, ...]) -> ArrayU8:
    """Return a changed look at each of n images (n, H, W, 3).

    Args:
        images: Red, green, blue.
        how: By what.
        seed: Of this part of the images.
    """
    found = np.empty_like(images)
    for first in range(0, len(images), _AT_ONCE):
        drawn = int(np.random.SeedSequence((*seed, first)).generate_state(1, np.uint64)[0] >> np.uint64(1))
        generator = torch.Generator().manual_seed(drawn)
        some = torch.from_numpy(np.ascontiguousarray(images[first : first + _AT_ONCE]))
        found[first : first + _AT_ONCE] = _looks(some, how, generator).numpy()
    return found


def _looks(images: Tensor, how: Augmentation, generator: torch.Generator) -> Tensor:
    x = images.permute(0, 3, 1, 2).float() / 255.0
    count = len(x)

    def uniform(*shape: int) -> Tensor:
        return 2.0 * torch.rand((count, *shape), generator=generator) - 1.0

    if how.paste:
        x = pasted(x, generator, how.paste)
    if how.light:
        x = x * (1.0 - how.light) ** (uniform(1, 1, 1) / GAMMA)
        x = (x * (1.0 + _TINT * uniform(3, 1, 1))).clamp(0.0, 1.0)
    if how.contrast:
        x = x ** (1.0 + how.contrast) ** uniform(1, 1, 1)
    if how.blur:
        x = _blurred(x, how.blur, generator)
    if how.noise:
        spread = how.noise / 255.0 * torch.rand((count, 1, 1, 1), generator=generator)
        x = x + torch.randn(x.shape, generator=generator) * spread
    return (255.0 * x.clamp(0.0, 1.0)).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def _blurred(x: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Blur some images along rows, and others along columns, as turning about an axis of the camera does."""
    drawn = torch.rand((len(x), 2), generator=generator)
    for along, (rows, columns) in enumerate(((1, 5), (5, 1))):
        smooth = functional.avg_pool2d(x, (rows, columns), 1, (rows // 2, columns // 2), count_include_pad=False)
        mine = (drawn[:, 0] < share) & ((drawn[:, 1] < 0.5) == bool(along))
        x = torch.where(mine.view(-1, 1, 1, 1), smooth, x)
    return x
