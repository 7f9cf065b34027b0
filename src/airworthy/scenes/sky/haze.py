"""Haze between the eye and what it sees: how much light passes it, and what light it adds. The float64 twin of `Mist` in
native/light.h.

Its density falls with height by an exponential, so that what a straight path holds of it has a closed form. What it adds is
the airlight: as much as the sky gives a white level surface, for in thick fog light is even, and the sun's, turned by the law
of Henyey and Greenstein (1941). Neither changes along a path, so a contrast fades by the path's transmittance alone
(Koschmieder).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.scenes.record import Haze, Light, Sun

__all__ = ["HAZE_COLUMNS", "SKY_DISTANCE", "VISIBLE", "airlight", "haze_row", "haze_transmittance", "visibility", "with_haze"]

VISIBLE = 3.912
"""Optical depth at which 2 % of a contrast are left: the visibility times the extinction (Koschmieder, 1924)."""
SKY_DISTANCE = 1e5
"""Haze before the sky ends here [m]."""
HAZE_COLUMNS = 14
"""Density, 1 over the height (0: even), base, airlight (3), direction to the sun (3), its irradiance times the colour (3),
asymmetry, and where the haze before the sky ends [m]."""
_DEPTH_MAX = 80.0
"""Optical depth through which nothing passes, in single precision as well."""


def visibility(haze: Haze) -> float:
    """Return the distance at which a contrast at the haze's base is down to 2 % [m]; infinite where there is no haze."""
    return VISIBLE / haze.density if haze.density > 0.0 else math.inf


def haze_row(haze: Haze, ambient: Array, lights: Sequence[Light]) -> Array:
    """Return what shading needs of a haze, (HAZE_COLUMNS,).

    Args:
        haze: As the scene says.
        ambient: Irradiance of a level surface under the open sky, (3,).
        lights: Of the scene; the first sun glows in the haze.
    """
    row = np.zeros(HAZE_COLUMNS)
    color = np.array(haze.color)
    row[:3] = haze.density, 1.0 / haze.height if haze.height > 0.0 else 0.0, haze.base
    row[3:6] = color * ambient / math.pi
    suns = [light for light in lights if isinstance(light, Sun)]
    if suns:
        direction = -np.array(suns[0].direction, float)
        row[6:9] = direction / np.linalg.norm(direction)
        row[9:12] = color * suns[0].color * suns[0].irradiance
    row[12:] = haze.asymmetry, SKY_DISTANCE
    return row


def haze_transmittance(haze: Haze, height: ArrayLike, rise: ArrayLike, distance: ArrayLike) -> Array:
    """Return the share of light that passes haze along straight paths, (...).

    Args:
        haze: How dense.
        height: World z at which they begin [m], (...).
        rise: z of their unit directions, (...).
        distance: How long they are [m], (...); infinite: to the sky.
    """
    return _passed(haze_row(haze, np.zeros(3), ()), height, rise, distance)


def _passed(row: Array, height: ArrayLike, rise: ArrayLike, distance: ArrayLike) -> Array:
    length = np.minimum(np.asarray(distance, np.float64), SKY_DISTANCE)
    begin = np.asarray(height, np.float64)
    climb = np.asarray(rise, np.float64) * length
    # From the lower end upwards, where the exponent only falls.
    low = (np.minimum(begin, begin + climb) - row[2]) * row[1]
    fall = np.abs(climb) * row[1]
    mean = np.where(fall > 1e-6, -np.expm1(-np.maximum(fall, 1e-6)) / np.maximum(fall, 1e-6), 1.0)
    depth = row[0] * np.exp(np.minimum(-low, _DEPTH_MAX)) * length * mean
    return np.asarray(np.exp(-np.minimum(depth, _DEPTH_MAX)))


def airlight(row: Array, direction: ArrayLike) -> Array:
    """Return the radiance (..., 3) of endless haze along unit directions (..., 3) from the eye, by its row."""
    g, cosine = row[12], np.einsum("...k,k->...", np.asarray(direction, np.float64), row[6:9])
    phase = (1.0 - g * g) / (4.0 * math.pi * (1.0 + g * g - 2.0 * g * cosine) ** 1.5)
    return np.asarray(row[3:6] + phase[..., None] * row[9:12])


def with_haze(row: Array, radiance: ArrayLike, height: ArrayLike, direction: ArrayLike, distance: ArrayLike) -> Array:
    """Return radiance (..., 3) as it is seen through haze.

    Args:
        row: Of the haze, `haze_row`.
        radiance: At the far end, (..., 3).
        height: World z of the eye [m], (...).
        direction: Unit, from the eye, (..., 3).
        distance: Of the far end [m], (...); infinite: the sky.
    """
    towards = np.asarray(direction, np.float64)
    left = _passed(row, height, towards[..., 2], distance)[..., None]
    return np.asarray(np.asarray(radiance, np.float64) * left + airlight(row, towards) * (1.0 - left))
