"""Stars and the moon of a night. The float64 twin of `Night` in native/clouds.h.

Stars are not those of a catalogue but as many: a cube around the eye has 40 x 40 cells on each face, each with one star at a
place and of a brightness by chance, so that about 9,000 are as bright as the eye can see and their numbers rise by 10^0.5 per
magnitude. Each is a dot that is wider than a star, with its light. The moon is a ball that the sun of the same sky lights.
"""

from __future__ import annotations

import math

import numpy as np

from airworthy.core import random
from airworthy.core.arrays import Array, ArrayLike
from airworthy.scenes.record import Sky, Sun
from airworthy.scenes.sky.atmosphere import LUX_PER_UNIT

__all__ = ["NIGHT_NUMBERS", "STAR_CELLS", "has_night", "moonlight", "night_numbers", "night_radiance"]

STAR_CELLS = 40
"""Cells along the edge of a face of the cube."""
NIGHT_NUMBERS: dict[str, float] = {
    "STAR_RADIUS": 0.0013,  # ours: tangent of a dot's half angle, half a pixel of 640 over 90 degrees
    "MOON_RADIUS": 0.00452,  # tangent of the half angle of the moon's disc: 1737 km from 384,400 km
}
_FAINTEST = 2.54e-6 * 10.0 ** (-0.4 * 6.5)
"""Illuminance of a star of magnitude 6.5 [lx]; magnitude 0 has 2.54e-6 (Allen's Astrophysical Quantities)."""
_MOON_LUMINANCE = 2500.0
"""Of the full moon [cd/m2]."""
_FULL_MOON = 0.25
"""Illuminance of a surface that faces the full moon [lx]."""
_EXTINCTION = 0.23
"""Optical depth of clear air straight up, at which stars fade."""


def has_night(sky: Sky) -> bool:
    """Tell whether a sky shows stars or a moon."""
    return sky.model == "daylight" and (sky.stars > 0.0 or sky.moon_elevation > 0.0)


def _direction(elevation: float, azimuth: float) -> Array:
    flat = math.cos(elevation)
    return np.array([flat * math.cos(azimuth), flat * math.sin(azimuth), math.sin(elevation)])


def night_numbers(sky: Sky) -> Array:
    """Return radiance of the faintest star's dot, direction to the moon (3) and its radiance (0: none), (5,)."""
    row = np.zeros(5)
    dim = sky.intensity / LUX_PER_UNIT * (1.0 - sky.cover)
    row[0] = sky.stars * dim * _FAINTEST / (math.pi * NIGHT_NUMBERS["STAR_RADIUS"] ** 2)
    row[1:4] = _direction(sky.moon_elevation, sky.moon_azimuth)
    row[4] = _MOON_LUMINANCE * dim if sky.moon_elevation > 0.0 else 0.0
    return row


def night_radiance(row: ArrayLike, sun: ArrayLike, direction: ArrayLike) -> Array:
    """Return the radiance (...) of stars and moon along unit directions (..., 3).

    Args:
        row: `night_numbers`.
        sun: Unit direction to the sun, (3,).
        direction: Unit, from the eye, (..., 3).
    """
    d, numbers = np.asarray(direction, np.float64), np.asarray(row, np.float64)
    air = np.exp(-_EXTINCTION / np.maximum(d[..., 2] + 0.025, 0.025)) * (d[..., 2] > 0.0)
    out = _stars(d) * numbers[0] if numbers[0] > 0.0 else np.zeros(d.shape[:-1])
    if numbers[4] > 0.0:
        moon, towards = numbers[1:4], d @ numbers[1:4]
        aside = (d - towards[..., None] * moon) / NIGHT_NUMBERS["MOON_RADIUS"]
        square = np.einsum("...k,k->...", aside * aside, np.ones(3))
        normal = aside - np.sqrt(np.maximum(1.0 - square, 0.0))[..., None] * moon
        lit = np.clip((normal @ np.asarray(sun, np.float64)) * 8.0 + 0.2, 0.0, 1.0)
        out = np.where((towards > 0.0) & (square < 1.0), numbers[4] * lit, out)
    return np.asarray(out * air)


def _stars(d: Array) -> Array:
    """Return light of dots over that of the faintest."""
    size = np.abs(d)
    axis = np.where(
        (size[..., 0] >= size[..., 1]) & (size[..., 0] >= size[..., 2]), 0, np.where(size[..., 1] >= size[..., 2], 1, 2)
    )
    main = np.take_along_axis(d, axis[..., None], -1)[..., 0]
    first = np.where(axis == 0, d[..., 1], d[..., 0]) / np.abs(main)
    second = np.where(axis == 2, d[..., 1], d[..., 2]) / np.abs(main)
    x, y = (first * 0.5 + 0.5) * STAR_CELLS, (second * 0.5 + 0.5) * STAR_CELLS
    i, j = (np.clip(np.floor(value), 0, STAR_CELLS - 1) for value in (x, y))
    counter = np.zeros((*main.shape, 4), np.uint32)
    counter[..., 0] = (i + STAR_CELLS * j).astype(np.uint32)
    counter[..., 1] = int(random.Stream.STARS)
    counter[..., 2] = (axis * 2 + (main < 0.0)).astype(np.uint32)
    words = random.threefry4x32(np.zeros(4, np.uint32), counter)
    u = ((words >> np.uint32(9)).astype(np.float64) + 0.5) * 2.0**-23
    # Not at a cell's edge, where a dot would be cut; seen from the eye a cell's plane is wider than its angle.
    off = np.stack([x - i - 0.1 - 0.8 * u[..., 0], y - j - 0.1 - 0.8 * u[..., 1]], -1) * (2.0 / STAR_CELLS)
    wide = 1.0 / np.abs(main)
    near = 1.0 - np.einsum("...k,...k->...", off, off) / (NIGHT_NUMBERS["STAR_RADIUS"] * wide) ** 2
    # Numbers rise by 10^0.5 per magnitude, of 10^0.4 in light: light is u^-0.8, here by powers that lanes have.
    root = np.sqrt(np.sqrt(u[..., 2]))
    return np.asarray(np.where(near > 0.0, 2.0 * near / np.maximum(root * root * root, 0.01), 0.0))


def moonlight(sky: Sky) -> Sun | None:
    """Return the moon's light on the ground, or None where there is none: by its phase after Krisciunas and Schaefer (1991)."""
    if not (has_night(sky) and sky.moon_elevation > 0.0 and sky.elevation < -0.1):
        return None
    moon, sun = _direction(sky.moon_elevation, sky.moon_azimuth), _direction(sky.elevation, sky.azimuth)
    phase = 180.0 - math.degrees(math.acos(max(-1.0, min(1.0, float(moon @ sun)))))
    magnitudes = 0.026 * phase + 4e-9 * phase**4 + 2.5 * math.log10(math.e) * _EXTINCTION / math.sin(sky.moon_elevation)
    lux = _FULL_MOON * 10.0 ** (-0.4 * magnitudes) * sky.intensity * (1.0 - sky.cover)
    x, y, z = moon.tolist()
    return Sun((-x, -y, -z), (1.0, 0.96, 0.88), lux / LUX_PER_UNIT) if lux > 0.0 else None
