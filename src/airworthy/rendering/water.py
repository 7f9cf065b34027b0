"""Water and solid glass: what a surface does that bounds a volume, and the waves of the wind on it. The float64 twin of
`native/water.h`.

Waves are a sum of sines whose slopes are the same in every octave, running within a quarter turn of the wind's way; their speed
is that of gravity and surface tension on deep water, w^2 = g k + (sigma / rho) k^3 (Lamb, Hydrodynamics, 1932, section 267).
How steep they are together is the material's (`scenes.materials.water`).
"""

from __future__ import annotations

import math

import numpy as np

from airworthy.core.arrays import Array, ArrayFloat, ArrayLike

__all__ = [
    "WAVES",
    "bent",
    "inner_reflectance",
    "interface_mirrors",
    "kept",
    "outer_reflectance",
    "wave_slopes",
]

WAVE_COUNT = 20
WAVE_LONGEST, WAVE_SHORTEST = 3.1, 0.07
"""Lengths [m]: of a pond; longer ones are swell, which needs the open sea."""
GRAVITY = 9.80665
TENSION = 7.28e-5
"""Surface tension over density of water at 20 C [m3/s2] (0.0728 N/m over 998 kg/m3, CRC Handbook)."""
GOLDEN = 0.6180339887498949


def _waves() -> Array:
    """Return (WAVE_COUNT, 5): cycles per metre along x and y, per second, phase in turns, and length [m]."""
    number = np.arange(WAVE_COUNT)
    length = WAVE_LONGEST * (WAVE_SHORTEST / WAVE_LONGEST) ** (number / (WAVE_COUNT - 1.0))
    # Even over a quarter turn to each side, denser along the wind; no two waves of like length run alike.
    spread = (number + 1) * GOLDEN % 1.0
    angle = np.arcsin(2.0 * spread - 1.0) + 0.35
    wave_number = 2.0 * math.pi / length
    often = np.sqrt(GRAVITY * wave_number + TENSION * wave_number**3) / (2.0 * math.pi)
    phase = (number + 1) ** 2 * GOLDEN % 1.0
    return np.stack([np.cos(angle) / length, np.sin(angle) / length, often, phase, length], -1)


WAVES = _waves().astype(np.float32)
"""As the kernels have them."""
WATER_SLANT = 1.19
"""Way of light from all sides through water over its depth: the mean secant below the surface, weighted by what enters."""
WAVE_SLOPE = math.sqrt(2.0 / WAVE_COUNT)
"""Amplitude of each wave's slope over the root of the mean square of all."""


def wave_slopes(point: ArrayFloat, time: float, slope: float, wide: ArrayLike = 0.0) -> tuple[Array, Array]:
    """Return slopes along x and y (..., 2), and the mean square of those that a pixel cannot show (...).

    Args:
        point: World [m], (..., 2 or 3).
        time: [s].
        slope: Root of the mean square of all slopes.
        wide: Metres that a pixel covers, (...): waves end where they are shorter than two of it.
    """
    p, table = np.asarray(point, np.float64), WAVES.astype(np.float64)
    turn = p[..., :1] * table[:, 0] + p[..., 1:2] * table[:, 1] + table[:, 3] - table[:, 2] * time
    # An eighth of a turn late, as the kernels take their cosines.
    c = np.cos(2.0 * np.pi * turn - 0.25 * np.pi)
    part = np.clip((table[:, 4] / np.maximum(np.asarray(wide, np.float64), 1e-6)[..., None] - 2.0) * 0.5, 0.0, 1.0)
    way = table[:, :2] * table[:, 4:]
    lost = np.sum(1.0 - part * part, -1) * slope**2 / WAVE_COUNT
    return (c * part) @ way * (slope * WAVE_SLOPE), np.broadcast_to(lost, c.shape[:-1])


def interface_mirrors(cosine: ArrayFloat, eta: ArrayLike) -> Array:
    """Return the share of unpolarised light that a surface mirrors, (n,), by Fresnel's equations; 1 past the critical angle.

    Args:
        cosine: Between the ray and the normal, (n,), of either sign.
        eta: Index of refraction of what lies beyond over that of where the ray runs.
    """
    c, ratio = np.abs(cosine), np.asarray(eta, np.float64)
    square = 1.0 - (1.0 - c * c) / ratio**2
    t = np.sqrt(np.maximum(square, 1e-30))
    s, p = (c - ratio * t) / (c + ratio * t), (ratio * c - t) / (ratio * c + t)
    return np.where(square > 0.0, 0.5 * (s * s + p * p), 1.0)


def bent(direction: ArrayFloat, normal: ArrayFloat, eta: ArrayLike) -> Array:
    """Return unit directions behind a surface (n, 3), by Snell's law; along the surface beyond the critical angle.

    Args:
        direction: Unit vectors (n, 3).
        normal: Unit vectors towards where the rays come from (n, 3).
        eta: As of `interface_mirrors`.
    """
    c, ratio = -np.sum(normal * direction, -1, keepdims=True), np.broadcast_to(eta, np.shape(direction)[:-1])[..., None]
    t = np.sqrt(np.maximum(1.0 - (1.0 - c * c) / ratio**2, 0.0))
    out = direction / ratio + normal * (c / ratio - t)
    return np.asarray(out / np.linalg.norm(out, axis=-1, keepdims=True))


def kept(attenuation: ArrayFloat, way: ArrayFloat) -> Array:
    """Return the share of light that is left after a way [m], (n, 3), by the law of Beer and Lambert; attenuation [1/m]."""
    return np.exp(-np.asarray(attenuation) * np.asarray(way)[..., None])


def inner_reflectance(ior: ArrayLike) -> Array:
    """Return the share of light from all sides below that a surface sends down again (fit of Egan and Hilgeman, 1979)."""
    n = np.asarray(ior, np.float64)
    return -1.4399 / n**2 + 0.7099 / n + 0.6681 + 0.0636 * n


def outer_reflectance(ior: ArrayLike) -> Array:
    """Return the share of light from all sides above that a surface mirrors: 1 - n^2 (1 - inner)."""
    n = np.asarray(ior, np.float64)
    return np.asarray(1.0 - n**2 * (1.0 - inner_reflectance(n)))


def wave_table() -> str:
    """Return `WAVES` as the kernels' text has them."""
    return "{" + ", ".join("{" + ", ".join(f"{value!r}f" for value in row) + "}" for row in WAVES.tolist()) + "}"
