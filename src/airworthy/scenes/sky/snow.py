"""Snow that lies: where, how white, how smooth. The float64 twin of `Snow` in native/clouds.h.

It lies where surfaces face the sky, fully up to 35 degrees and not beyond 65 (ours; roofs shed it between), thinner where the
noise of the clouds' tile is high, and not where a ray upwards meets something; that ray leans by noise, since snow drifts in
under what shelters. Its albedo is that of fresh snow in the visible, 0.9 (Wiscombe and Warren 1980 compute 0.95 and more for
new snow, Oke 1987 tabulates up to 0.95), a little blue as they have it for red against blue light.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from airworthy.core.arrays import Array
from airworthy.scenes.record import Scene, Snow
from airworthy.scenes.sky.clouds import cloud_noise

__all__ = ["SNOW_NUMBERS", "in_snow", "snow_lean", "snow_share", "snow_surface"]

SNOW_NUMBERS: dict[str, float] = {
    "SNOW_RED": 0.885,
    "SNOW_GREEN": 0.90,
    "SNOW_BLUE": 0.92,
    "SNOW_ROUGHNESS": 0.82,  # ours: grains shine a little against the sun, and trace no gloss
    "SNOW_STEEP": 0.4226,  # cosine of the steepest slope on which any lies: 65 degrees
    "SNOW_LEVEL": 0.8192,  # of the steepest that is fully covered: 35 degrees
    "SNOW_BROAD": 9.0,  # ours: sides of the tile [m]
    "SNOW_SMALL": 1.7,
    "SNOW_STEP": 0.06,  # over which the drifts' slope is taken [m]
    "SNOW_DRIFT": 0.09,  # height of drifts from the tile's lowest to its highest [m]
    "SNOW_SHELTER": 30.0,  # what is farther above shelters nothing [m]
    "SNOW_LEAN": 0.2,  # tangent by which the way to the sky leans at most
}


def in_snow(scene: Scene, cover: float) -> Scene:
    """Return a scene under a cover of snow: the ground below a sky's horizon whitens, and broadleaf trees are seen bare.

    Args:
        scene: The place.
        cover: As `Snow.cover`.
    """
    from airworthy.scenes.vegetation.leafless import leafless  # which brings much that few places need

    r, g, b = scene.sky.ground
    white = 0.8 * cover
    ground = (r + white * (0.86 - r), g + white * (0.88 - g), b + white * (0.90 - b))
    place = leafless(scene) if cover > 0.0 else scene
    return replace(place, snow=Snow(cover), sky=replace(scene.sky, ground=ground))


def _noise(point: Array, side: str, shift: tuple[float, float] = (0.0, 0.0)) -> Array:
    scale = SNOW_NUMBERS[side]
    return np.asarray(cloud_noise((point[..., 0] + shift[0]) / scale, (point[..., 1] + shift[1]) / scale))


def snow_share(snow: Snow, geometric: Array, point: Array) -> Array:
    """Return how much of a surface snow hides where nothing shelters it, (...).

    Args:
        snow: How much has fallen.
        geometric: Unit normals of the shapes, towards the eye, (..., 3).
        point: World [m], (..., 3).
    """
    low, high = SNOW_NUMBERS["SNOW_STEEP"], SNOW_NUMBERS["SNOW_LEVEL"]
    up = np.clip((geometric[..., 2] - low) / (high - low), 0.0, 1.0)
    slope = up * up * (3.0 - 2.0 * up)
    uneven = 0.6 * _noise(point, "SNOW_BROAD") + 0.4 * _noise(point, "SNOW_SMALL")
    return np.asarray(np.clip((1.6 * snow.cover * slope - 0.6 * uneven) * 6.0, 0.0, 1.0))


def snow_lean(point: Array) -> Array:
    """Return the way from places (..., 3) to the sky by which it is asked whether something shelters them, (..., 3) [m]."""
    reach, lean = SNOW_NUMBERS["SNOW_SHELTER"], SNOW_NUMBERS["SNOW_LEAN"]
    x, y = (2.0 * _noise(point, side) - 1.0 for side in ("SNOW_SMALL", "SNOW_BROAD"))
    return np.stack([reach * lean * x, reach * lean * y, np.full_like(x, reach)], -1)


def snow_surface(
    share: Array, albedo: Array, roughness: Array, metallic: Array, geometric: Array, normal: Array, point: Array
) -> tuple[Array, Array, Array, Array]:
    """Return albedo (..., 3), roughness (...), metallic (...) and normal (..., 3) of surfaces under snow.

    Args:
        share: Of them that it hides, (...): `snow_share`, 0 where they are sheltered.
        albedo: Without it, (..., 3).
        roughness: Without it, (...).
        metallic: Without it, (...).
        geometric: Unit normals of the shapes, towards the eye, (..., 3).
        normal: Unit normals with their relief, (..., 3).
        point: World [m], (..., 3).
    """
    white = np.array([SNOW_NUMBERS[f"SNOW_{name}"] for name in ("RED", "GREEN", "BLUE")])
    step, high = SNOW_NUMBERS["SNOW_STEP"], SNOW_NUMBERS["SNOW_DRIFT"]
    here = _noise(point, "SNOW_SMALL")
    rise = high / step
    slope = [rise * (_noise(point, "SNOW_SMALL", shift) - here) for shift in ((step, 0.0), (0.0, step))]
    drift = geometric - np.stack([slope[0], slope[1], 0.0 * here], -1)
    drift /= np.linalg.norm(drift, axis=-1, keepdims=True)
    bent = normal + (drift - normal) * share[..., None]
    made = albedo + (white - albedo) * share[..., None]
    rough = roughness + (SNOW_NUMBERS["SNOW_ROUGHNESS"] - roughness) * share
    return made, rough, metallic * (1.0 - share), np.asarray(bent / np.linalg.norm(bent, axis=-1, keepdims=True))
