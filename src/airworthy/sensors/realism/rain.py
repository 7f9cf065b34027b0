"""Falling rain in an image, and drops on the lens.

Streaks: drops near the camera, by the sizes of Marshall and Palmer (1948) and the speeds of Atlas and others (1973), each of
which covers a pixel for a part of the exposure and shows what a wide piece of the surroundings sends (Garg and Nayar, "Vision
and rain", 2007). What is farther off than a streak can be seen is the haze of `scenes.sky.wetness`. Drops on the lens are
caps that show what is before the camera upside down, out of focus.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core import random
from airworthy.core.arrays import Array, ArrayF32, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import check_fields
from airworthy.scenes.sky.wetness import DROPS, drop_slope

__all__ = ["DropView", "RainDrops", "RainStreaks", "fall_speed", "lens_drops", "rain_cover", "with_streaks"]

NEAR, FAR = 0.25, 4.0
"""Between which depths drops are drawn one by one [m]."""
SMALLEST = 0.8
"""Diameter of the smallest that is drawn [mm]: what is smaller hides no thousandth of a pixel."""
FAINTEST = 0.002
"""Share of a pixel's exposure below which a streak is not drawn."""
DROPS_MAX = 40_000
"""Of an image; where more would be before the camera, each counts for more."""
BRIGHT = 0.94
"""Share of the surroundings' mean light that a drop sends on (Garg and Nayar, 2007)."""


@dataclass(frozen=True)
class RainStreaks:
    """Streaks of rain where it falls in the scene (`Scene.rain`), by the time for which the shutter is open.

    Raises:
        AirworthyError: If a number is out of range.
    """

    exposure: float = 0.008
    """[s]"""
    seed: int = 11
    """Of the drops; each image has its own."""

    def __post_init__(self) -> None:
        check_fields(self, "RainStreaks.")
        if not 1e-5 <= self.exposure <= 10.0:
            raise AirworthyError(f"RainStreaks.exposure is {self.exposure} s; expected a number from 1e-05 to 10.")


@dataclass(frozen=True)
class DropView:
    """How a camera sees drops.

    Raises:
        AirworthyError: A number is not above 0.
    """

    focal: float
    """[px]"""
    exposure: float = 0.008
    """For which the shutter is open [s]."""

    def __post_init__(self) -> None:
        if not (self.focal > 0.0 and self.exposure > 0.0):
            raise AirworthyError(f"Rain is seen at {self.focal} px for {self.exposure} s; expected both above 0.")


def fall_speed(diameter: ArrayLike) -> Array:
    """Return the speed at which drops of a diameter [mm] fall [m/s]: 9.65 - 10.3 exp(-0.6 D) (Atlas and others, 1973)."""
    return np.maximum(9.65 - 10.3 * np.exp(-0.6 * np.asarray(diameter, np.float64)), 0.1)


def rain_cover(
    rate: float, view: DropView, depth: Array, motion: ArrayLike, down: ArrayLike, seed: int = 0, frame: int = 0
) -> ArrayF32:
    """Return the share of the exposure for which drops cover each pixel, (H, W).

    Args:
        rate: Of the rain [mm/h].
        view: Focal length, about the image's middle, and exposure.
        depth: Along the axis, of what stands before the sky, (H, W) [m]; infinite where nothing does.
        motion: Of the air less the camera, optical frame, (3,) [m/s].
        down: Unit vector in the optical frame, (3,).
        seed: Of the drops.
        frame: Number of the image: each has its own drops.
    """
    height, width = depth.shape
    cover = np.zeros(height * width)
    if rate <= 0.0:
        return cover.reshape(height, width).astype(np.float32)
    slope, half = drop_slope(rate), 0.5 * np.array([width, height]) / view.focal
    # A third wider than the image, so that streaks come in from its sides.
    volume = 4.0 * half[0] * half[1] * 1.33**2 * (FAR**3 - NEAR**3) / 3.0
    wanted = DROPS / slope * np.exp(-slope * SMALLEST) * volume
    count = min(round(wanted), DROPS_MAX)
    if count == 0:
        return cover.reshape(height, width).astype(np.float32)
    u = random.uniforms(random.flight_key(seed, np.arange(count)), frame, random.Stream.RAIN, 8)
    z = (NEAR**3 + (FAR**3 - NEAR**3) * u[:, 0]) ** (1.0 / 3.0)
    middle = (2.0 * u[:, 1:3] - 1.0) * half * 1.33 * z[:, None]
    diameter = SMALLEST - np.log(u[:, 3]) / slope
    speed = fall_speed(diameter)[:, None] * np.asarray(down, np.float64) + np.asarray(motion, np.float64)
    ends = [np.column_stack([middle, z]) + side * view.exposure * speed for side in (-0.5, 0.5)]
    wide = 1e-3 * diameter * view.focal / z
    flat = [end[:, :2] / np.maximum(end[:, 2:], 0.5 * NEAR) * view.focal for end in ends]
    length = np.linalg.norm(flat[1] - flat[0], axis=-1)
    # Of a pixel's exposure it takes what its disc takes of the streak's area, spread over as much as it is drawn on.
    mass = (0.25 * np.pi * wide**2) * (wanted / count)
    points = np.clip(np.ceil(1.5 * np.maximum(length, 1.0) * np.maximum(wide, 1.0)), 1, 400).astype(int)
    # What no image of 8 bits would show is left out.
    faint = mass < FAINTEST * np.maximum(length, 1.0) * np.maximum(wide, 1.0)
    points = np.where(faint | (flat[0][:, 0] > width) | (flat[0][:, 0] < -width), 0, points)
    drop = np.repeat(np.arange(count), points)
    along = (np.arange(len(drop)) - np.repeat(np.cumsum(points) - points, points) + 0.5) / points[drop]
    across = (np.modf((along + u[drop, 4]) * 97.0)[0] - 0.5) * np.maximum(wide[drop] - 1.0, 0.0)
    line = (flat[1] - flat[0]) / np.maximum(length, 1e-9)[:, None]
    x = flat[0][drop, 0] + (flat[1] - flat[0])[drop, 0] * along - line[drop, 1] * across + 0.5 * width - 0.5
    y = flat[0][drop, 1] + (flat[1] - flat[0])[drop, 1] * along + line[drop, 0] * across + 0.5 * height - 0.5
    weight, behind = mass[drop] / points[drop], z[drop]
    i, j = np.floor(x).astype(int), np.floor(y).astype(int)
    a, b = x - i, y - j
    for di, dj, part in ((0, 0, (1 - a) * (1 - b)), (1, 0, a * (1 - b)), (0, 1, (1 - a) * b), (1, 1, a * b)):
        column, row = i + di, j + dj
        inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
        at = row[inside] * width + column[inside]
        seen = behind[inside] < depth.reshape(-1)[at]
        cover += np.bincount(at[seen], (weight * part)[inside][seen], height * width)
    return np.asarray(1.0 - np.exp(-cover), np.float32).reshape(height, width)


def with_streaks(image: ArrayF32, cover: ArrayF32, around: ArrayLike) -> ArrayF32:
    """Return linear colours (H, W, 3) with drops before them.

    Args:
        image: Without them.
        cover: `rain_cover`.
        around: Mean radiance of the surroundings, (3,).
    """
    light = np.asarray(BRIGHT * np.asarray(around, np.float64), np.float32)
    return np.asarray(image + (light - image) * cover[..., None], np.float32)


# ---- Drops on the lens ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RainDrops:
    """Drops of water that sit on the lens.

    Raises:
        AirworthyError: If a number is out of range.
    """

    # Ours: a lens that has been out in moderate rain for a minute.
    count: int = 14
    size: float = 0.035
    """Median radius, of the image's height."""
    seed: int = 3

    def __post_init__(self) -> None:
        check_fields(self, "RainDrops.")
        if not (0 <= self.count <= 500 and 0.0 < self.size <= 0.5):
            raise AirworthyError(f"RainDrops has {self.count} drops of {self.size}; expected 0 to 500, and more than 0 to 0.5.")


def lens_drops(image: ArrayF32, drops: RainDrops) -> ArrayF32:
    """Return linear images (..., H, W, 3) through drops on the lens: each shows the view upside down and blurred, darker at its
    rim, for it bends light from far aside.

    Args:
        image: Without them.
        drops: How many, how large, and where.
    """
    height, width = image.shape[-3:-1]
    if drops.count == 0:
        return image
    u = random.uniforms(random.flight_key(drops.seed, np.arange(drops.count)), 0, random.Stream.RAIN, 8)
    u = np.asarray(u, np.float64)
    # Sizes by a logarithmic normal law of width 0.5, from three uniform numbers.
    radius = drops.size * height * np.exp(0.5 * 2.0 * (u[:, 2] + u[:, 3] + u[:, 4] - 1.5))
    # What is out of focus behind a drop: blocks of pixels, interpolated.
    step = max(height // 14, 1)
    small = _blocks(image, step)
    out = image.copy()
    for x, y, r, squeeze in zip(u[:, 0] * width, u[:, 1] * height, radius, 0.8 + 0.3 * u[:, 5], strict=True):
        top, left = max(int(y - 1.3 * r), 0), max(int(x - 1.3 * r), 0)
        rows, columns = np.arange(top, min(int(y + 1.3 * r) + 2, height)), np.arange(left, min(int(x + 1.3 * r) + 2, width))
        if not len(rows) or not len(columns):
            continue
        across, below = (columns - x)[None, :] / (r * squeeze), (rows - y)[:, None] / r
        square = across**2 + below**2
        # From its middle outwards a cap bends ever more: it shows a third of the image, upside down.
        bend = 0.35 + 0.25 * np.minimum(square, 1.0)
        shown = _sampled(small, (0.5 - bend * below) * height / step - 0.5, (0.5 - bend * across) * width / step - 0.5)
        rim = np.clip(1.1 - 0.4 * np.clip(square, 0.0, 1.0) ** 3, 0.0, 1.0)[..., None]
        # It is out of focus itself: a soft edge.
        share = np.clip((1.2 - np.sqrt(square)) * 2.2, 0.0, 1.0)[..., None]
        part = (..., slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1), slice(None))
        out[part] = out[part] + (shown * rim - out[part]) * (0.75 * share * share * (3.0 - 2.0 * share))
    return np.asarray(out, np.float32)


def _blocks(image: ArrayF32, step: int) -> Array:
    """Return means of squares of pixels; the last rows and columns repeat, so that squares are whole."""
    height, width = image.shape[-3:-1]
    pad = [(0, 0)] * (image.ndim - 3) + [(0, -height % step), (0, -width % step), (0, 0)]
    whole = np.pad(image, pad, mode="edge").astype(np.float64)
    shape = (*image.shape[:-3], whole.shape[-3] // step, step, whole.shape[-2] // step, step, 3)
    return np.asarray(whole.reshape(shape).mean((-4, -2)))


def _sampled(image: Array, y: Array, x: Array) -> Array:
    """Return bilinear values at rows and columns (h, w), held at the edges."""
    height, width = image.shape[-3:-1]
    y, x = np.clip(y, 0.0, height - 1.001), np.clip(x, 0.0, width - 1.001)
    y, x = np.broadcast_arrays(y, x)
    i, j = y.astype(int), x.astype(int)
    a, b = (y - i)[..., None], (x - j)[..., None]
    k, m = np.minimum(i + 1, height - 1), np.minimum(j + 1, width - 1)
    low = image[..., i, j, :] * (1 - b) + image[..., i, m, :] * b
    return np.asarray(low * (1 - a) + (image[..., k, j, :] * (1 - b) + image[..., k, m, :] * b) * a)
