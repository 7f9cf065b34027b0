"""Lights and skies as rows of numbers, and what light a sky gives."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.scenes.record import Light, PointLight, Scene, Sky, SpotLight, Sun

LIGHT_COLUMNS = 16
"""Kind, position (3), direction of travel (3), colour times strength (3), range, cosines of inner and outer angle, 3 spare."""
LIGHT_SUN, LIGHT_POINT, LIGHT_SPOT = 0, 1, 2
SKY_STEPS = 33
"""Entries of the table of sky irradiance, from the normal pointing down to pointing up, equal steps of its z."""
SKY_COLUMNS = 12 + 3 * SKY_STEPS
"""Zenith, horizon, ground (radiance times intensity), 3 spare, then irradiance by the normal's z."""
HAZE = 0.06
"""The ground's colour is reached this far (sine) below the horizon."""

Floats = NDArray[np.float32]


def sky_radiance(sky: Sky, direction: ArrayLike) -> NDArray[np.float64]:
    """Radiance (..., 3) from unit directions (..., 3): from the horizon to the zenith with the root of the elevation's sine,
    and to the ground's colour within a thin band of haze."""
    z = np.asarray(direction, np.float64)[..., 2:3]
    zenith, horizon, ground = (np.array(c, float) * sky.intensity for c in (sky.zenith, sky.horizon, sky.ground))
    up, down = np.sqrt(np.maximum(z, 0.0)), np.clip(-z / HAZE, 0.0, 1.0)
    return np.asarray(np.where(z >= 0.0, horizon + (zenith - horizon) * up, horizon + (ground - horizon) * down))


def sky_irradiance(sky: Sky, normal_z: ArrayLike) -> NDArray[np.float64]:
    """Irradiance (..., 3) of an open surface whose unit normal has this z: the hemisphere's radiance times cosine, integrated.

    Over a circle of elevation the clamped cosine has the closed form 2 (a c + b sin c), where n.d = a + b cos(azimuth).
    """
    nz = np.atleast_1d(np.asarray(normal_z, np.float64))[:, None]
    # Midpoints in the square root of |z|, where the radiance is smooth.
    half = (np.arange(512) + 0.5) / 512
    z = np.concatenate([-(half[::-1] ** 2), half**2])
    width = np.concatenate([2 * half[::-1], 2 * half]) / 512
    a, b = nz * z, np.sqrt(np.maximum(1 - nz**2, 0.0)) * np.sqrt(1 - z**2)
    reach = np.arccos(np.clip(-a / np.maximum(b, 1e-300), -1.0, 1.0))
    weight = 2.0 * (a * reach + b * np.sin(reach)) * width
    radiance = sky_radiance(sky, np.stack([0 * z, 0 * z, z], -1))
    return np.asarray((weight @ radiance).reshape(*np.shape(normal_z), 3))


def sky_rows(skies: Sequence[Sky]) -> Floats:
    """(sky, SKY_COLUMNS)"""
    table = np.zeros((len(skies), SKY_COLUMNS), np.float32)
    for row, sky in zip(table, skies, strict=True):
        row[:9] = np.concatenate([sky.zenith, sky.horizon, sky.ground]) * sky.intensity
        row[12:] = sky_irradiance(sky, np.linspace(-1.0, 1.0, SKY_STEPS)).reshape(-1)
    return table


def light_rows(scenes: Sequence[Scene]) -> tuple[Floats, NDArray[np.int32]]:
    """(light, LIGHT_COLUMNS), scene by scene, at least one row; and (scene, 2): where a scene's begin, how many it has."""
    rows = [_row(light) for scene in scenes for light in scene.lights]
    counts = np.array([len(scene.lights) for scene in scenes], np.int32)
    spans = np.stack([np.cumsum(counts) - counts, counts], -1).astype(np.int32)
    return np.array(rows or [[0.0] * LIGHT_COLUMNS], np.float32), spans


def _row(light: Light) -> list[float]:
    if isinstance(light, Sun):
        return [LIGHT_SUN, 0, 0, 0, *_unit(light.direction), *(c * light.irradiance for c in light.color), *[0.0] * 6]
    strength = [c * light.intensity for c in light.color]
    if isinstance(light, PointLight):
        return [LIGHT_POINT, *light.position, 0, 0, -1, *strength, light.range, *[0.0] * 5]
    assert isinstance(light, SpotLight)
    inner = min(light.inner_angle, light.outer_angle - 1e-3)
    cosines = [math.cos(max(inner, 0.0)), math.cos(light.outer_angle)]
    return [LIGHT_SPOT, *light.position, *_unit(light.direction), *strength, light.range, *cosines, 0.0, 0.0, 0.0]


def _unit(v: Sequence[float]) -> list[float]:
    length = math.sqrt(sum(x * x for x in v)) or 1.0
    return [x / length for x in v]
