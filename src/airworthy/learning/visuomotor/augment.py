"""Changed looks at an image: what a place may look like on another day, and through another exposure.

A look is made once, before the frozen trunk sees it; which look is drawn, follows from the seed and the image's number in its
part alone. Everything acts on 8-bit images, so that what is learnt from is what a camera could have given.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from airworthy.core.arrays import ArrayU8
from airworthy.learning.svnet.data_loader import GAMMA, pasted
from airworthy.learning.visuomotor.config import Augmentation

__all__ = ["augmented"]

_AT_ONCE = 256
_FIELDS = 32
"""Of noise, for the images of one go; their strengths and signs differ."""
_TINT = 0.08
"""Most by which one colour is stronger or weaker: white balance of a phone's camera, ours."""


def augmented(images: ArrayU8, how: Augmentation, seed: tuple[int, ...], alive: Callable[[], None] = lambda: None) -> ArrayU8:
    """Return a changed look at each of n images (n, H, W, 3).

    Args:
        images: Red, green, blue.
        how: By what.
        seed: Of this part of the images.
        alive: Called before each block of images; raises where they are not wanted any more.
    """
    found = np.empty_like(images)
    for first in range(0, len(images), _AT_ONCE):
        alive()
        drawn = int(np.random.SeedSequence((*seed, first)).generate_state(1, np.uint64)[0] >> np.uint64(1))
        generator = torch.Generator().manual_seed(drawn)
        some = torch.from_numpy(np.ascontiguousarray(images[first : first + _AT_ONCE]))
        found[first : first + _AT_ONCE] = _looks(some, how, generator).numpy()
    return found


def _looks(images: Tensor, how: Augmentation, generator: torch.Generator) -> Tensor:
    """Return looks at some images, (n, H, W, 3) of 8 bits; only what is changed is computed."""
    x = images.permute(0, 3, 1, 2)
    if how.paste:
        x = pasted(x, generator, how.paste)
    if how.light or how.contrast:
        x = _toned(x, how, generator)
    if how.blur:
        x = _blurred(x, how.blur, generator)
    x = x.permute(0, 2, 3, 1).contiguous()
    return _noisy(x, how.noise, generator) if how.noise else x


def _toned(x: Tensor, how: Augmentation, generator: torch.Generator) -> Tensor:
    """Return images (n, 3, H, W) through a curve per image and colour: light, white balance, contrast."""
    light, contrast = (2.0 * torch.rand((len(x), 1, 1), generator=generator) - 1.0 for _ in range(2))
    tint = 2.0 * torch.rand((len(x), 3, 1), generator=generator) - 1.0
    value = torch.arange(256).view(1, 1, 256) / 255.0
    if how.light:
        value = (value * (1.0 - how.light) ** (light / GAMMA) * (1.0 + _TINT * tint)).clamp(0.0, 1.0)
    curves = (255.0 * value ** (1.0 + how.contrast) ** contrast).round().to(torch.uint8).expand(len(x), 3, 256).numpy()
    found = np.empty(x.shape, np.uint8)
    for image, curve, pixels in zip(found, curves, x.numpy(), strict=True):
        for colour in range(3):
            np.take(curve[colour], pixels[colour], out=image[colour])
    return torch.from_numpy(found)


def _noisy(x: Tensor, most: float, generator: torch.Generator) -> Tensor:
    """Return images (n, H, W, 3) with noise, each of its own strength; there are few fields of it, since normals are dear."""
    fields = torch.randn((min(_FIELDS, len(x)), *x.shape[1:]), generator=generator).numpy()
    which = torch.randint(len(fields), (len(x),), generator=generator).tolist()
    spread = (most * (2.0 * torch.rand(len(x), generator=generator) - 1.0)).tolist()
    found, work = np.empty(x.shape, np.uint8), np.empty(x.shape[1:], np.float32)
    # An image at a time stays in the cache; torch would split each among threads.
    for image, pixels, field, strength in zip(found, x.numpy(), which, spread, strict=True):
        np.multiply(fields[field], np.float32(strength), out=work)
        np.add(work, pixels, out=work)
        np.clip(np.rint(work, out=work), 0.0, 255.0, out=work)
        image[:] = work
    return torch.from_numpy(found)


def _blurred(x: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Blur some images along rows, and others along columns, as turning about an axis of the camera does."""
    drawn = torch.rand((len(x), 2), generator=generator)
    found = x.clone()
    for along, (rows, columns) in enumerate(((1, 5), (5, 1))):
        mine = torch.nonzero((drawn[:, 0] < share) & ((drawn[:, 1] < 0.5) == bool(along)))[:, 0]
        if len(mine):
            size, border = (rows, columns), (rows // 2, columns // 2)
            smooth = functional.avg_pool2d(x[mine].float(), size, 1, border, count_include_pad=False)
            found[mine] = smooth.round().to(torch.uint8)
    return found
