"""Bloom: light that scatters in a lens around what is very bright, and the dirt that it shows."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from airworthy.sensors.realism.pieces import Bloom, LensDirt

Image = NDArray[np.float32]

__all__ = ["bloom_layer", "bloomed", "bright_part", "dirt_mask"]

_FILTER = (0.125, 0.375, 0.375, 0.125)
"""Binomial, over two pixels to either side of a new pixel's middle: it keeps the mean and moves nothing."""


def bloomed(image: Image, bloom: Bloom, dirt: LensDirt | None = None) -> Image:
    """Image plus weight x bloom layer, the layer times the dirt where there is any.

    Images in which nothing exceeds the threshold stay as they are, bit for bit. Light is added, not moved.

    Args:
        image: Linear, (H, W, 3) or (c, H, W, 3).
        bloom: Threshold, levels, weight.
        dirt: Specks on the lens.
    """
    batch = image[None] if image.ndim == 3 else image
    out = batch.copy()
    for number, one in enumerate(batch):  # most images have nothing to bloom
        bright = bright_part(one, bloom.threshold)
        if not bright.any():
            continue
        layer = bloom_layer(bright, bloom.levels)
        if dirt is not None:
            mask = dirt_mask(one.shape[0], one.shape[1], dirt.seed)
            layer = layer * (1.0 + np.float32(dirt.intensity) * (mask - 1.0))[..., None]
        out[number] += np.float32(bloom.weight) * layer
    return out[0] if image.ndim == 3 else out


def bright_part(image: Image, threshold: float) -> Image:
    """What exceeds a threshold in the brightest channel, with the colour it has: (..., 3)."""
    peak = np.maximum(np.maximum(image[..., :1], image[..., 1:2]), image[..., 2:])  # faster than a maximum over three
    share = np.maximum(peak - np.float32(threshold), 0.0) / np.maximum(peak, np.float32(1e-12))
    return np.where(np.isfinite(share), np.nan_to_num(image, nan=0.0, posinf=1e6) * np.nan_to_num(share), 0.0).astype(
        np.float32
    )


def bloom_layer(bright: Image, levels: int) -> Image:
    """Mean of the levels of a pyramid (H, W, 3), each half the one before, brought back to full size: its sum is the input's.

    A side that is one pixel is not halved further. The border is held, so a uniform image stays what it is.
    """
    sizes, stack = [], [bright]
    for _ in range(levels):
        sizes.append(stack[-1].shape[:2])
        stack.append(_halved(_halved(stack[-1], 0), 1))
    total = stack.pop()
    for size, below in zip(reversed(sizes), reversed(stack), strict=True):
        total = _doubled(_doubled(total, 0, size[0]), 1, size[1])
        if below is not bright:
            total = total + below
    return total / np.float32(levels)


def _halved(image: Image, axis: int) -> Image:
    size = image.shape[axis]
    if size == 1:
        return image
    pad = [(0, 0)] * image.ndim
    pad[axis] = (1, 1 + size % 2)
    wide = np.pad(image, pad, mode="edge")
    count = (size + 1) // 2
    parts = [np.take(wide, np.arange(k, k + 2 * count, 2), axis) * np.float32(w) for k, w in enumerate(_FILTER)]
    return parts[0] + parts[1] + parts[2] + parts[3]


def _doubled(image: Image, axis: int, size: int) -> Image:
    """To twice the size, linearly (weights 3/4 and 1/4), cut to `size`."""
    if size == 1:
        return image
    count = image.shape[axis]
    index = np.arange(size)
    near = index // 2
    far = np.clip(near + np.where(index % 2 == 0, -1, 1), 0, count - 1)
    return np.take(image, near, axis) * np.float32(0.75) + np.take(image, far, axis) * np.float32(0.25)


@lru_cache(maxsize=8)
def dirt_mask(height: int, width: int, seed: int = 7) -> NDArray[np.float32]:
    """How much light dirt scatters, (H, W), of mean 1: smears, specks with soft rims, a few hairs; the same for every size."""
    rng = np.random.default_rng(seed)
    y, x = (np.arange(height)[:, None] + 0.5) / height, (np.arange(width)[None, :] + 0.5) / height
    aspect = width / height
    mask = np.full((height, width), 0.25)
    for _ in range(6):  # smears: broad waves
        angle, waves, phase = rng.uniform(0, np.pi), rng.uniform(0.6, 2.2), rng.uniform(0, 2 * np.pi)
        mask += 0.05 * (1.0 + np.sin(2 * np.pi * waves * (x * np.cos(angle) + y * np.sin(angle)) + phase))
    for _ in range(90):  # specks
        radius = 0.004 + 0.05 * rng.uniform() ** 4
        cx, cy, depth = rng.uniform(0, aspect), rng.uniform(), rng.uniform(0.4, 2.5)
        far = np.hypot(x - cx, (y - cy)) / radius
        rim = 0.55 + 0.45 * np.clip(far, 0.0, 1.0) ** 4
        mask += depth * rim * np.clip((1.15 - far) / 0.3, 0.0, 1.0)
    for _ in range(5):  # hairs: arcs
        cx, cy, radius = rng.uniform(-0.5, aspect + 0.5), rng.uniform(-0.5, 1.5), rng.uniform(0.3, 1.2)
        start, span = rng.uniform(-np.pi, np.pi), rng.uniform(0.2, 0.6)
        along = np.abs((np.arctan2(y - cy, x - cx) - start + np.pi) % (2 * np.pi) - np.pi)
        off = np.abs(np.hypot(x - cx, y - cy) - radius)
        mask += 1.2 * np.clip(1.0 - off / 0.0025, 0.0, 1.0) * (along < span)
    return (mask / mask.mean()).astype(np.float32)
