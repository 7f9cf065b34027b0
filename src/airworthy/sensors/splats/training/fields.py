"""A cloud in training: the numbers that are moved, with their moments, and how they lie in the renderer's blocks."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.native_kernel import CPU_LANES
from airworthy.scenes.splats.record import Splats
from airworthy.sensors.splats.cloud import Cloud, make_cloud
from airworthy.sensors.splats.training.rows import FIRST, LOGIT, MOVED, RAW_ROWS, SCALE, SEEN, SHIFT, TURN

Array = NDArray[np.float32]
MOST_LOGIT = 9.0
"""Opacities stay within 1.2e-4 of 0 and 1, where their derivative has not vanished."""


@dataclass(frozen=True, eq=False)
class Fields:
    """Gaussians as they are moved, one per row."""

    position: Array
    """(n, 3) [m]"""
    raw: Array
    """(n, RAW_ROWS), see `rows`."""
    harmonics: Array
    """(n, k, 3)"""
    moments: Array
    """(n, 2 * MOVED) first and second moments of mean, logarithms of scales, quaternion, logit."""
    shade_moments: Array
    """(n, 2, k, 3) of the harmonics."""
    number: NDArray[np.int64]
    """(n,) which of the first cloud's Gaussians it was; -1: made since."""

    def __len__(self) -> int:
        return len(self.position)

    def taken(self, which: NDArray[Any]) -> Fields:
        """Some of them, in that order."""
        return Fields(*(getattr(self, field.name)[which] for field in fields(self)))

    def joined(self, other: Fields) -> Fields:
        """These and then others."""
        return Fields(*(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)))

    def widened(self, coefficients: int) -> Fields:
        """With more harmonics, those of higher degree zero."""
        n, more = len(self), coefficients - self.harmonics.shape[1]
        harmonics = np.concatenate([self.harmonics, np.zeros((n, more, 3), np.float32)], axis=1)
        moments = np.concatenate([self.shade_moments, np.zeros((n, 2, more, 3), np.float32)], axis=2)
        return replace(self, harmonics=harmonics, shade_moments=moments)

    def splats(self) -> Splats:
        """As a cloud."""
        scale, opacity = np.exp(self.raw[:, SCALE : SCALE + 3].astype(np.float64)), opacities(self.raw)
        return Splats(self.position, self.raw[:, TURN : TURN + 4], scale, opacity, self.harmonics)


def opacities(raw: Array) -> NDArray[np.float64]:
    """(n,) in (0, 1)."""
    return np.asarray(1.0 / (1.0 + np.exp(-raw[:, LOGIT].astype(np.float64))))


def logits(opacity: NDArray[np.floating[Any]]) -> Array:
    """Their inverse, kept within what training holds."""
    p = np.clip(np.asarray(opacity, np.float64), 1e-9, 1.0 - 1e-9)
    return np.clip(np.log(p / (1.0 - p)), -MOST_LOGIT, MOST_LOGIT).astype(np.float32)


def fields_of(splats: Splats) -> Fields:
    """A cloud that has not moved yet."""
    n, k = splats.harmonics.shape[:2]
    raw = np.zeros((n, RAW_ROWS), np.float32)
    raw[:, SCALE : SCALE + 3] = np.log(np.maximum(splats.scale.astype(np.float64), 1e-12))
    raw[:, TURN : TURN + 4] = splats.rotation
    raw[:, LOGIT] = logits(splats.opacity)
    raw[:, [FIRST, SECOND_ROW]] = 1.0
    moments = np.zeros((n, 2 * MOVED), np.float32)
    shades = np.zeros((n, 2, k, 3), np.float32)
    return Fields(splats.position.copy(), raw, splats.harmonics.copy(), moments, shades, np.arange(n))


SECOND_ROW = FIRST + 1


def forgotten(some: Fields) -> Fields:
    """Without moments, as if they had never moved."""
    raw = some.raw.copy()
    raw[:, [FIRST, SECOND_ROW]], raw[:, [SHIFT, SEEN]] = 1.0, 0.0
    return replace(some, raw=raw, moments=np.zeros_like(some.moments), shade_moments=np.zeros_like(some.shade_moments))


@dataclass(frozen=True, eq=False)
class Packed:
    """Gaussians side by side in blocks of 16 and chunks of 512, as the kernels read and write them."""

    cloud: Cloud
    """What the renderer reads."""
    raw: Array
    """(block, RAW_ROWS, 16)"""
    moments: Array
    """(block, 2 * MOVED, 16)"""
    shade_moments: Array
    """(block, 2 * 3 * k, 16)"""
    number: NDArray[np.int64]

    def fields(self) -> Fields:
        """One per row, in the order of their places."""
        n, width = len(self.number), self.shade_moments.shape[1] // 2
        harmonics = rows_of(self.cloud.harmonics.reshape(-1, width, CPU_LANES), n)
        shades = rows_of(self.shade_moments, n)
        return Fields(
            rows_of(self.cloud.geometry[:, :3], n),
            rows_of(self.raw, n),
            harmonics.reshape(n, -1, 3),
            rows_of(self.moments, n),
            shades.reshape(n, 2, -1, 3),
            self.number,
        )


def pack(found: Fields) -> Packed:
    """Lay Gaussians out in their order; places up to a whole chunk are filled with ones that nobody sees."""
    n = len(found)
    cloud = make_cloud([found.splats()], [np.arange(n)])
    room = len(cloud.geometry) * CPU_LANES
    rows = (found.raw, found.moments, found.shade_moments.reshape(n, -1))
    raw, moments, shades = (blocks_of(part, room) for part in rows)
    return Packed(cloud, raw, moments, shades, found.number)


def rows_of(blocks: Array, count: int) -> Array:
    """(block, width, 16) -> (count, width)"""
    return np.ascontiguousarray(blocks.swapaxes(1, 2)).reshape(-1, blocks.shape[1])[:count]


def blocks_of(rows: Array, room: int) -> Array:
    """(n, width) -> (room / 16, width, 16), zeros behind the last."""
    width = rows.shape[1]
    full = np.zeros((room, width), np.float32)
    full[: len(rows)] = rows
    return np.ascontiguousarray(full.reshape(-1, CPU_LANES, width).swapaxes(1, 2))
