"""Where an image of one ray per pixel is refined, and of what: pixels that differ from a neighbour.

Where they differ much, samples within the pixel are added to its first one. Where they differ little - bark, litter, leaves and
shadows of leaves, most of what differs in a wood - every second corner between pixels has one sample, which all pixels that
touch it share: fewer than one ray a pixel. Both take a little of their neighbours' first samples, as a camera's pixel does,
whose filter is wider than itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayLike, NDArray

EDGE_DARK, EDGE_GREY = 0.03, 0.18
"""Mean brightness below which edges are looked for in a brightened image, at night, as by a camera, to the second. Ours:
by day the darkest of our places, a wood, has the first, and more edges there would cost more than they show."""
STRONG = 2.5
"""Contrasts over the least one of an edge from which it has samples of its own. Ours: at 2, 2.5 and 3 times 1.5, 1.2 and 1.0
rays come to an edge in a dressed forest; a hall, whose edges are clean lines, loses 0.2, 0.35 and 0.6 dB to two rays each."""
CORNER, BESIDE = 0.2, 0.05
"""What each of two corners and of four neighbours counts where an edge is weak. Ours: nearest to eight rays per pixel, of five
places together; the rest is the pixel's own first sample."""
BESIDE_STRONG = 0.025
"""What each of four neighbours counts where an edge is strong; the rest is the mean of the pixel's own samples."""


def edge_gain(mean: ArrayLike) -> Array:
    """Return the gain with which edges are looked for in images of a mean brightness (c,): 1 by day, at night a camera's."""
    mean = np.maximum(np.asarray(mean, np.float64), 1e-9)
    return np.asarray(np.minimum(np.maximum((EDGE_DARK / mean) ** 2, 1.0), np.maximum(EDGE_GREY / mean, 1.0)))


def contrasts(radiance: ArrayF32, gain: ArrayLike = 1.0) -> ArrayF32:
    """Return by how much pixels differ from that of their four neighbours that is least alike, (c, H, W).

    Args:
        radiance: Linear, (c, H, W, 3).
        gain: On the brightness, (c,) or one number, such as a camera's exposure.

    Returns:
        Differences of square roots of brightness, clipped at 1.
    """
    # Plain sums of single products, in one order: the same bits on every machine.
    level = radiance[..., 0] * np.float32(0.25) + radiance[..., 1] * np.float32(0.5) + radiance[..., 2] * np.float32(0.25)
    level = level * np.asarray(gain, np.float32).reshape(-1, 1, 1)
    level = np.sqrt(np.clip(level, np.float32(0.0), np.float32(1.0)))
    found = np.zeros_like(level)
    across = np.abs(level[:, :, 1:] - level[:, :, :-1])
    down = np.abs(level[:, 1:] - level[:, :-1])
    for part, change in ((np.s_[:, :, 1:], across), (np.s_[:, :, :-1], across), (np.s_[:, 1:], down), (np.s_[:, :-1], down)):
        np.maximum(found[part], change, out=found[part])
    return found


def edges(radiance: ArrayF32, contrast: float, gain: ArrayLike = 1.0) -> ArrayBool:
    """Return which pixels (c, H, W) differ from one of their four neighbours by more than a contrast.

    Args:
        radiance: Linear, (c, H, W, 3).
        contrast: Difference of square roots of brightness.
        gain: On the brightness, as of `contrasts`.
    """
    return contrasts(radiance, gain) > contrast


@dataclass(frozen=True, eq=False)
class EdgePixels:
    """Pixels of images that are refined, and what they take of the first samples around them."""

    strong: ArrayBool
    """(c, H, W): with samples within the pixel."""
    corners: ArrayBool
    """(c, H, W): with a sample at the corner between them, their right and their lower neighbours."""
    mixed: NDArray[np.intp]
    """(m,) flat numbers of strong pixels that have neighbours on all sides."""
    beside: ArrayF32
    """(m, 3) first samples around these, weighed."""
    weak: tuple[tuple[NDArray[np.intp], int, int, ArrayF32], ...]
    """Of weak pixels (n,) flat numbers, how far before theirs are those whose corners they take, and what they have of first
    samples, their own and those around, (n, 3)."""

    @classmethod
    def of(cls, radiance: ArrayF32, contrast: float, gain: ArrayLike) -> EdgePixels:
        """Find them in images of one sample per pixel.

        Args:
            radiance: Linear, (c, H, W, 3).
            contrast: From which on there is an edge; `STRONG` times that is a strong one.
            gain: As of `contrasts`, (c,).
        """
        change = contrasts(radiance, gain)
        found, strong = change > contrast, change > STRONG * contrast
        # At the border of the image corners and neighbours lie outside: there, too, samples are the pixel's own.
        inner = np.zeros(found.shape[1:], bool)
        inner[1:-1, 1:-1] = True
        weak, inner_strong = found & ~strong & inner, strong & inner
        row, column = (np.arange(size) % 2 == 0 for size in found.shape[1:])
        even = row[:, None] == column
        evens, odds = weak & even, weak & ~even
        corners = evens.copy()
        # Even pixels have the corner after them and that before them, odd ones those of the left and of the upper neighbour.
        corners[:, :-1, :-1] |= evens[:, 1:, 1:]
        corners[:, :, :-1] |= odds[:, :, 1:]
        corners[:, :-1] |= odds[:, 1:]
        # What is brighter than white is white: a lamp beside a pixel does not light it.
        white = np.float32(1.0) / np.broadcast_to(np.asarray(gain, np.float32), len(radiance))
        mixed, beside = _around(radiance, inner_strong, white)
        own, width = np.float32(1.0 - 2.0 * CORNER - 4.0 * BESIDE), found.shape[2]
        groups = []
        for some, near, far in ((evens, 0, width + 1), (odds, 1, width)):
            at, around = _around(radiance, some, white)
            groups.append((at, near, far, own * _rows(radiance, at) + np.float32(BESIDE) * around))
        return cls(found & ~weak, corners, mixed, np.float32(BESIDE_STRONG) * beside, tuple(groups))

    def refine(self, radiance: ArrayF32, corners: ArrayF32) -> None:
        """Put refined pixels into images (c, H, W, 3).

        Args:
            radiance: Means of all samples within strong pixels, first samples elsewhere; changed.
            corners: Samples at corners, where these are asked for.
        """
        flat = radiance.reshape(-1, 3)
        flat[self.mixed] = np.float32(1.0 - 4.0 * BESIDE_STRONG) * _rows(radiance, self.mixed) + self.beside
        for at, near, far, first in self.weak:
            flat[at] = first + np.float32(CORNER) * (_rows(corners, at - near) + _rows(corners, at - far))


def _rows(images: ArrayF32, at: NDArray[np.intp]) -> ArrayF32:
    # Three times as fast as an index.
    return np.asarray(np.take(images.reshape(-1, 3), at, axis=0, mode="clip"))


def _around(radiance: ArrayF32, some: ArrayBool, white: ArrayF32) -> tuple[NDArray[np.intp], ArrayF32]:
    """Return flat numbers (n,) of some pixels that are not at the border, and sums over their four neighbours (n, 3), each
    clipped at its image's white, (c,)."""
    at, width = np.flatnonzero(some), some.shape[2]
    most = white[0] if (white == white[0]).all() else np.repeat(white, np.count_nonzero(some, axis=(1, 2)))[:, None]
    left, right, upper, lower = (np.minimum(_rows(radiance, at + step), most) for step in (-1, 1, -width, width))
    return at, np.asarray((left + right) + (upper + lower))
