"""Rain and what it leaves: drops by size, how much of the sight they take, and wet surfaces with puddles. The float64 twin of
`Wet` in native/clouds.h.

What light does below a film of water is Angstrom's law of 1925: part of what a rough surface sends back is mirrored down again
by the film, and again. Puddles lie on level ground where the noise of the clouds' tile, a few metres wide, is high.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.scenes.record import Haze, Rain
from airworthy.scenes.sky.clouds import cloud_noise

__all__ = ["WET_NUMBERS", "drop_slope", "in_rain", "rain_extinction", "soaked", "wet_surface"]

WET_NUMBERS: dict[str, float] = {
    "WET_INDEX2": 1.333**2,  # square of the index of refraction of water
    "WET_ROUGHNESS": 0.32,  # ours: of a film that follows the grain below it
    "PUDDLE_BROAD": 23.0,  # ours: sides of the tile on the ground [m]
    "PUDDLE_SMALL": 7.0,
}
DROPS = 8000.0
"""Drops per volume and diameter of vanishing size [1/(m3 mm)] (Marshall and Palmer, 1948)."""


def drop_slope(rate: float) -> float:
    """Return how fast drops become rarer with their diameter at a rate of rain [mm/h], [1/mm]: 4.1 R^-0.21 (Marshall and
    Palmer, 1948)."""
    return 4.1 * rate**-0.21


def rain_extinction(rate: float) -> float:
    """Return the share of light that a metre of rain takes [1/m]: twice the drops' cross-section, which is large against the
    wavelength, summed over Marshall and Palmer's sizes."""
    if rate <= 0.0:
        return 0.0
    return math.pi * DROPS / drop_slope(rate) ** 3 * 1e-6


def in_rain(haze: Haze, rain: Rain) -> Haze:
    """Return a haze with what falling rain takes of the sight; the same up to the clouds."""
    more = rain_extinction(rain.rate)
    if more == 0.0:
        return haze
    return replace(haze, density=haze.density + more, height=max(haze.height, 1000.0) if haze.density == 0.0 else haze.height)


def soaked(albedo: ArrayLike) -> Array:
    """Return the albedo below a film of water: a / (n^2 (1 - a) + a) (Angstrom, 1925)."""
    a, square = np.asarray(albedo, np.float64), WET_NUMBERS["WET_INDEX2"]
    return np.asarray(a / (square * (1.0 - a) + a))


def wet_surface(
    rain: Rain, albedo: Array, roughness: Array, metallic: Array, leaf: Array, geometric: Array, normal: Array, point: Array
) -> tuple[Array, Array, Array]:
    """Return albedo (..., 3), roughness (...) and normal (..., 3) of wet surfaces.

    Args:
        rain: How wet.
        albedo: Of dry ones, (..., 3).
        roughness: Of dry ones, (...).
        metallic: Metals are not darker when they are wet, (...).
        leaf: Cut-out sheets, which are wet on both sides, (...).
        geometric: Unit normals of the shapes, towards the eye, (..., 3).
        normal: Unit normals with their relief, (..., 3).
        point: World [m], (..., 3).
    """
    up = np.clip((geometric[..., 2] + 0.2) / 1.2, 0.0, 1.0)
    share = up * up * (3.0 - 2.0 * up)
    share = np.where(leaf, np.maximum(share, 0.5), share) * rain.wetness
    under, dark = soaked(albedo), (share * (1.0 - metallic))[..., None]
    made = albedo + (under - albedo) * dark
    rough = roughness + (np.minimum(roughness, WET_NUMBERS["WET_ROUGHNESS"]) - roughness) * share
    if rain.puddles == 0.0:
        return made, rough, normal
    level = np.where(leaf, 0.0, np.clip((geometric[..., 2] - 0.97) * 50.0, 0.0, 1.0))
    broad, small = (
        cloud_noise(point[..., 0] / WET_NUMBERS[name], point[..., 1] / WET_NUMBERS[name])
        for name in ("PUDDLE_BROAD", "PUDDLE_SMALL")
    )
    water = np.clip((0.65 * broad + 0.35 * small - (0.85 - 0.7 * rain.puddles)) * 10.0, 0.0, 1.0) * level
    made = made + (0.6 * under - made) * water[..., None]
    rough = rough + ((0.12 if rain.rate > 0.0 else 0.04) - rough) * water
    flat = normal + (geometric - normal) * water[..., None]
    return made, rough, np.asarray(flat / np.linalg.norm(flat, axis=-1, keepdims=True))
