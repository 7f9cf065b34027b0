"""Minibatches on their way to the device: read ahead by one thread, turned into normalised images where they are used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from airworthy.core.arrays import ArrayInt
from airworthy.learning.svnet.data import TrainingData
from airworthy.learning.svnet.model import Inputs
from airworthy.pilots.svnet.features import IMAGE_MEAN, IMAGE_STD

__all__ = ["DataLoader", "normalized", "pasted"]

# Ours: each costs the memory of a minibatch.
AHEAD = 3
"""Minibatches that are read before they are asked for."""
# Ours: images that are copied to the device in one go.
CHUNK = 512
# Source: spec/sousvide section 10: linear radiance times a factor, gamma 2.2.
GAMMA = 2.2
"""Of images: brightness is a factor of linear light."""
# Ours, like the three below: an extension that the paper does not have, off unless it is asked for.
PIECES, PIECE_USED = 4, 0.6
"""Most pieces that are pasted into an image, and the share of them that is."""
PIECE_LEAST, PIECE_MORE = 0.08, 0.37
"""Least height and width of a piece, and how much more there may be, of the image's."""
PLAIN = 0.4
"""Share of images whose pieces are of a plain colour; ours, as the two above."""


def normalized(
    images: Tensor, generator: torch.Generator | None = None, brightness: float = 0.0, noise: float = 0.0, paste: float = 0.0
) -> Tensor:
    """Return (n, H, W, 3) of 8 bits -> (n, 3, H, W), channels last in memory, mean and spread of ImageNet taken off.

    Args:
        images: Red, green, blue.
        generator: Draws what is augmented; None: nothing is.
        brightness: Light is scaled by a factor within 1 - this and 1 + this.
        noise: Standard deviation of each pixel's noise [counts of 255].
        paste: Share of images into which others' pieces and plain ones are pasted.
    """
    device = images.device
    x = images.permute(0, 3, 1, 2).float() / 255.0
    if generator is not None and paste:
        x = pasted(x, generator, paste)
    if generator is not None and brightness:
        # One factor per image: light changes for all of it.
        drawn = torch.rand((len(x), 1, 1, 1), generator=generator, device=device)
        x = (x * (1.0 + brightness * (2.0 * drawn - 1.0)) ** (1.0 / GAMMA)).clamp(0.0, 1.0)
    if generator is not None and noise:
        x = (x + torch.randn(x.shape, generator=generator, device=device) * (noise / 255.0)).clamp(0.0, 1.0)
    mean, std = (torch.tensor(values, device=device).view(1, 3, 1, 1) for values in (IMAGE_MEAN, IMAGE_STD))
    return ((x - mean) / std).contiguous(memory_format=torch.channels_last)


def pasted(images: Tensor, generator: torch.Generator, share: float) -> Tensor:
    """Return images with things in them that do not belong there: rectangles of a plain colour, or of another image, mirrored.

    Random erasing (Zhong et al., arXiv 1708.04896) and CutMix (Yun et al., arXiv 1905.04899) without its change of the target:
    what a drone has to do does not depend on what else stands about.

    Args:
        images: (n, 3, H, W) in [0, 1], or of 8 bits.
        generator: Draws which, where and how large.
        share: Of images that get some.
    """
    count, _, height, width = images.shape
    # All numbers in one draw, so that the generator's state does not depend on what comes of them.
    drawn = torch.rand((count, PIECES, 6), generator=generator, device=images.device)
    color = torch.rand((count, 3, 1, 1), generator=generator, device=images.device)
    if not images.is_floating_point():
        color = (255.0 * color).to(images.dtype)
    rows = torch.arange(height, device=images.device).view(1, height, 1) / height
    columns = torch.arange(width, device=images.device).view(1, 1, width) / width
    covered = torch.zeros((count, height, width), dtype=torch.bool, device=images.device)
    for piece in drawn.unbind(1):
        high, wide, top, left, used, _ = (value.view(count, 1, 1) for value in piece.unbind(1))
        high, wide = PIECE_LEAST + PIECE_MORE * high, PIECE_LEAST + PIECE_MORE * wide
        # Pieces may stick out of the image, as things do.
        top, left = top * (1.0 + high) - high, left * (1.0 + wide) - wide
        inside = (rows >= top) & (rows < top + high) & (columns >= left) & (columns < left + wide)
        covered |= inside & (used < PIECE_USED)
    chosen = drawn[:, :2, 5]
    covered &= (chosen[:, 0] < share).view(count, 1, 1)
    plain = (chosen[:, 1] < PLAIN).view(count, 1, 1, 1)
    fill = torch.where(plain, color, images.roll(1, 0).flip(3))
    return torch.where(covered.unsqueeze(1), fill, images)


class DataLoader:
    """The pairs of a training on a device. Numbers lie there whole; images do where they fit, and are read ahead otherwise.

    Args:
        data: The pairs.
        device: Where they are used.
        resident: "yes", "no" or "auto": whether all images lie on the device.
    """

    def __init__(self, data: TrainingData, device: torch.device, resident: str = "auto"):
        self.data, self.device = data, device
        names = ("state", "objective", "history", "command", "parameters")
        self._tables = {name: torch.from_numpy(np.ascontiguousarray(getattr(data, name))).to(device) for name in names}
        self._resident: Tensor | None = None
        if data.images is not None and (resident == "yes" or (resident == "auto" and self._fits())):
            self._resident = self._loaded()

    def table(self, name: str) -> Tensor:
        """Return a field of the data, whole."""
        return self._tables[name]

    def numbers(self, which: ArrayInt, name: str) -> Tensor:
        """Return rows of a field."""
        return self._tables[name][torch.from_numpy(which).to(self.device)]

    def inputs(self, which: ArrayInt, images: Tensor | None) -> Inputs:
        """Return what the network reads of some pairs; `images` normalised."""
        index = torch.from_numpy(which).to(self.device)
        return Inputs(self._tables["state"][index], self._tables["objective"][index], self._tables["history"][index], images)

    def stream(self, batches: Iterable[ArrayInt]) -> Iterator[tuple[ArrayInt, Tensor | None]]:
        """Yield minibatches with their images (n, H, W, 3) of 8 bits on the device; None where the network sees none."""
        if self.data.images is None:
            yield from ((which, None) for which in batches)
            return
        if self._resident is not None:
            for which in batches:
                yield which, self._resident[torch.from_numpy(which).to(self.device)]
            return
        yield from self._ahead(batches)

    def _ahead(self, batches: Iterable[ArrayInt]) -> Iterator[tuple[ArrayInt, Tensor]]:
        waiting: list[tuple[ArrayInt, Future[Tensor]]] = []
        # One thread: files are read in the order of the minibatches, and a disk gains nothing from more.
        with ThreadPoolExecutor(1, "images") as reader:
            try:
                for which in batches:
                    waiting.append((which, reader.submit(self._read, which)))
                    if len(waiting) > AHEAD:
                        yield self._arrived(*waiting.pop(0))
                while waiting:
                    yield self._arrived(*waiting.pop(0))
            finally:
                for _, later in waiting:
                    later.cancel()

    def _arrived(self, which: ArrayInt, later: Future[Tensor]) -> tuple[ArrayInt, Tensor]:
        return which, later.result().to(self.device, non_blocking=True)

    def _read(self, which: ArrayInt) -> Tensor:
        assert self.data.images is not None
        images = torch.from_numpy(self.data.images.take(which))
        # Pinned memory is copied while the device computes; pageable memory would be waited for.
        return images.pin_memory() if self.device.type == "cuda" else images

    def _fits(self) -> bool:
        if self.device.type != "cuda" or self.data.images is None:
            return False
        free, _ = torch.cuda.mem_get_info(self.device)
        # Twice the images: the other half is for activations, gradients and what others hold on the device.
        return 2 * len(self.data.images) * self.data.images.side**2 * 3 < free

    def _loaded(self) -> Tensor:
        assert self.data.images is not None
        count, side = len(self.data.images), self.data.images.side
        whole: Any = torch.empty((count, side, side, 3), dtype=torch.uint8, device=self.device)
        for first in range(0, count, CHUNK):
            some = np.arange(first, min(first + CHUNK, count))
            whole[first : first + len(some)] = torch.from_numpy(self.data.images.take(some)).to(self.device)
        return whole
