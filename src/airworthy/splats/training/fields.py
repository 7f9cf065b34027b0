"""A cloud in training: the numbers that are moved, with their moments, and how they lie in the renderer's blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayFloat, ArrayInt
from airworthy.core.native_kernel import CPU_LANES
from airworthy.core.random import Stream
from airworthy.scenes.splats.record import Splats
from airworthy.splats.cloud import Cloud, make_cloud

# -----------------------------------------------------------------------------------------------------------------------------
# Rows of training's arrays: what a Gaussian holds beside what the renderer reads, and the numbers of a step.

RAW_ROWS = 12
"""Logarithms of scales (3), quaternion x, y, z, w (4), logit of the opacity, powers of the two decays (how often it has moved),
sum of the lengths of its derivatives in the image, in how many images it was."""
SCALE, TURN, LOGIT, FIRST, SECOND, SHIFT, RENDERED = 0, 3, 7, 8, 9, 10, 11
MOVED = 11
"""Numbers of a Gaussian that have moments, harmonics aside: mean (3), logarithms of scales (3), quaternion (4), logit."""

SETTINGS = (
    "first_decay",
    "second_decay",
    "epsilon",
    "place_rate",
    "place_share",
    "scale_rate",
    "turn_rate",
    "opacity_rate",
    "color_rate",
    "rest_rate",
    "opacity_pull",
    "scale_pull",
    "noise",
    "least_scale",
    "most_scale",
    "most_logit",
    "flat_pull",
    "needle_pull",
)
# Source: reference code of Kheradmand et al. (2024): a sigmoid that lets only what is nearly transparent wander.
NOISE_STEEPNESS, NOISE_MIDDLE = 100.0, 0.005
NOISE_STREAM = int(Stream.SPLATS)
NEEDLE = math.log(10.0)
"""Logarithm of the ratio of the longest to the middle standard deviation beyond which a Gaussian is a needle. Source:
PhysGaussian (Xie et al., 2024) limits the ratio so; 10 is what SplatFacto takes (`max_gauss_ratio`)."""
# Source: Wang et al., Image quality assessment (2004): K1 and K2, squared, for a range of 1.
SSIM = (0.01**2, 0.03**2)
"""Constants of the structural similarity of values in [0, 1]."""


def step_numbers() -> str:
    """Return the same for the native texts."""
    whole = {"RAW_ROWS": RAW_ROWS, "MOVED": MOVED, "NOISE_STREAM": f"{NOISE_STREAM}u"}
    whole |= {"RAW_SCALE": SCALE, "RAW_TURN": TURN, "RAW_LOGIT": LOGIT, "RAW_FIRST": FIRST, "RAW_SECOND": SECOND}
    whole |= {"RAW_SHIFT": SHIFT, "RAW_RENDERED": RENDERED}
    whole |= {f"SET_{name.upper()}": index for index, name in enumerate(SETTINGS)}
    real = {"NOISE_STEEPNESS": NOISE_STEEPNESS, "NOISE_MIDDLE": NOISE_MIDDLE, "SSIM_1": SSIM[0], "SSIM_2": SSIM[1]}
    real["NEEDLE"] = NEEDLE
    lines = [f"#define {name} {value}" for name, value in whole.items()]
    return "\n".join([*lines, *(f"#define {name} ({value!r}f)" for name, value in real.items())])


def window() -> list[float]:
    """Return eleven weights of a Gaussian of 1.5 px that sum to 1 (Wang et al., Image quality assessment, 2004)."""
    weights = [math.exp(-0.5 * ((k - 5) / 1.5) ** 2) for k in range(11)]
    return [weight / sum(weights) for weight in weights]


# -----------------------------------------------------------------------------------------------------------------------------

MOST_LOGIT = 9.0
"""Opacities stay within 1.2e-4 of 0 and 1, where their derivative has not vanished."""


@dataclass(frozen=True, eq=False)
class GaussianFields:
    """Gaussians as they are moved, one per row."""

    position: ArrayF32
    """(n, 3) [m]"""
    raw: ArrayF32
    """(n, RAW_ROWS), see `rows`."""
    harmonics: ArrayF32
    """(n, k, 3)"""
    moments: ArrayF32
    """(n, 2 * MOVED) first and second moments of mean, logarithms of scales, quaternion, logit."""
    shade_moments: ArrayF32
    """(n, 2, k, 3) of the harmonics."""
    number: ArrayInt
    """(n,) which of the first cloud's Gaussians it was; -1: made since."""

    def __len__(self) -> int:
        return len(self.position)

    def taken(self, which: ArrayAny) -> GaussianFields:
        """Return some of them, in that order."""
        return GaussianFields(*(getattr(self, field.name)[which] for field in fields(self)))

    def joined(self, other: GaussianFields) -> GaussianFields:
        """Return these and then others."""
        return GaussianFields(*(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)))

    def widened(self, coefficients: int) -> GaussianFields:
        """Return the fields with more harmonics, those of higher degree zero."""
        n, more = len(self), coefficients - self.harmonics.shape[1]
        harmonics = np.concatenate([self.harmonics, np.zeros((n, more, 3), np.float32)], axis=1)
        moments = np.concatenate([self.shade_moments, np.zeros((n, 2, more, 3), np.float32)], axis=2)
        return replace(self, harmonics=harmonics, shade_moments=moments)

    def splats(self) -> Splats:
        """Return the gaussians as a cloud."""
        scale, opacity = np.exp(self.raw[:, SCALE : SCALE + 3].astype(np.float64)), opacities(self.raw)
        return Splats(self.position, self.raw[:, TURN : TURN + 4], scale, opacity, self.harmonics)


def opacities(raw: ArrayF32) -> Array:
    """Return (n,) in (0, 1)."""
    return np.asarray(1.0 / (1.0 + np.exp(-raw[:, LOGIT].astype(np.float64))))


def logits(opacity: ArrayFloat) -> ArrayF32:
    """Return their inverse, kept within what training holds."""
    # Opacities of exactly 0 and 1 have no logit.
    p = np.clip(np.asarray(opacity, np.float64), 1e-9, 1.0 - 1e-9)
    return np.clip(np.log(p / (1.0 - p)), -MOST_LOGIT, MOST_LOGIT).astype(np.float32)


def fields_of(splats: Splats) -> GaussianFields:
    """Return a cloud that has not moved yet."""
    n, k = splats.harmonics.shape[:2]
    raw = np.zeros((n, RAW_ROWS), np.float32)
    raw[:, SCALE : SCALE + 3] = np.log(np.maximum(splats.scale.astype(np.float64), 1e-12))
    raw[:, TURN : TURN + 4] = splats.rotation
    raw[:, LOGIT] = logits(splats.opacity)
    # Powers of the decays after no move at all.
    raw[:, [FIRST, SECOND_ROW]] = 1.0
    moments = np.zeros((n, 2 * MOVED), np.float32)
    shades = np.zeros((n, 2, k, 3), np.float32)
    return GaussianFields(splats.position.copy(), raw, splats.harmonics.copy(), moments, shades, np.arange(n))


SECOND_ROW = FIRST + 1


def forgotten(some: GaussianFields) -> GaussianFields:
    """Return the fields without moments, as if they had never moved."""
    raw = some.raw.copy()
    raw[:, [FIRST, SECOND_ROW]], raw[:, [SHIFT, RENDERED]] = 1.0, 0.0
    return replace(some, raw=raw, moments=np.zeros_like(some.moments), shade_moments=np.zeros_like(some.shade_moments))


@dataclass(frozen=True, eq=False)
class Packed:
    """Gaussians side by side in blocks of 16 and chunks of 512, as the kernels read and write them."""

    cloud: Cloud
    """What the renderer reads."""
    raw: ArrayF32
    """(block, RAW_ROWS, 16)"""
    moments: ArrayF32
    """(block, 2 * MOVED, 16)"""
    shade_moments: ArrayF32
    """(block, 2 * 3 * k, 16)"""
    number: ArrayInt

    def fields(self) -> GaussianFields:
        """Return one per row, in the order of their places."""
        n, width = len(self.number), self.shade_moments.shape[1] // 2
        harmonics = rows_of(self.cloud.harmonics.reshape(-1, width, CPU_LANES), n)
        shades = rows_of(self.shade_moments, n)
        return GaussianFields(
            rows_of(self.cloud.geometry[:, :3], n),
            rows_of(self.raw, n),
            harmonics.reshape(n, -1, 3),
            rows_of(self.moments, n),
            shades.reshape(n, 2, -1, 3),
            self.number,
        )


def pack(found: GaussianFields) -> Packed:
    """Lay Gaussians out in their order; places up to a whole chunk are filled with ones that nobody sees."""
    n = len(found)
    cloud = make_cloud([found.splats()], [np.arange(n)])
    room = len(cloud.geometry) * CPU_LANES
    rows = (found.raw, found.moments, found.shade_moments.reshape(n, -1))
    raw, moments, shades = (blocks_of(part, room) for part in rows)
    return Packed(cloud, raw, moments, shades, found.number)


def rows_of(blocks: ArrayF32, count: int) -> ArrayF32:
    """Return (block, width, 16) -> (count, width)"""
    return np.ascontiguousarray(blocks.swapaxes(1, 2)).reshape(-1, blocks.shape[1])[:count]


def blocks_of(rows: ArrayF32, room: int) -> ArrayF32:
    """Return (n, width) -> (room / 16, width, 16), zeros behind the last."""
    width = rows.shape[1]
    full = np.zeros((room, width), np.float32)
    full[: len(rows)] = rows
    return np.ascontiguousarray(full.reshape(-1, CPU_LANES, width).swapaxes(1, 2))
