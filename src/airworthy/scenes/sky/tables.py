"""The sky by daylight as a table that shading looks up: radiance by direction, and irradiance by the normal of a surface.

A table is a flat row of numbers, for it stands behind the rows of `scenes.lights.sky_rows`. Its head says how large its parts
are; parts are grids by elevation and by azimuth from the sun, in coordinates that are fine at the horizon and near the sun and
need no more than square roots: v = sqrt(z / (1 + sqrt(1 - z))) of the elevation's sine z for the radiance, and otherwise
s / (s + c) of the sine and the cosine of half an angle, the azimuth or that of a normal with the vertical.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.scenes.record import Sky, Sun, Vector3
from airworthy.scenes.sky.atmosphere import LUX_PER_UNIT, sun_irradiance
from airworthy.scenes.sky.clouds import cloud_numbers, has_clouds, over_clouds
from airworthy.scenes.sky.scattering import ASYMMETRY, aerosol_phase, clear_sky, molecular_phase

__all__ = [
    "HORIZON_BAND",
    "TABLE_HEAD",
    "as_gradient",
    "cloud_row",
    "daylight_table",
    "overcast_luminance",
    "sky_sun",
    "table_irradiance",
    "table_radiance",
    "towards_sun",
]

TABLE_HEAD = 16
"""Numbers before the grids: direction to the sun's azimuth (2), to the sun (3), radiance of the ground (3), asymmetry of the
aerosol, 1 over the band below the horizon (sine), rows and columns of the radiance, rows and columns of the irradiance, 2
spare."""
HORIZON_BAND = 0.06
"""Sine below the horizon at which the ground's colour is reached, as in the gradient."""
RADIANCE = (48, 24)
"""Rows (elevation) and columns (azimuth) of the radiance: 3 colours of what is smooth, 3 of the aerosol without its phase."""
IRRADIANCE = (49, 33)
"""Rows (angle of the normal with the vertical) and columns of the irradiance."""
_LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
# Ours: a little blue, as pictures of nights are; its luminance is 1.
_NIGHT = np.array([0.75, 0.98, 1.55]) / (_LUMINANCE @ np.array([0.75, 0.98, 1.55]))


def towards_sun(sky: Sky) -> Vector3:
    """Return the unit direction to the sun, world."""
    flat = math.cos(sky.elevation)
    return (flat * math.cos(sky.azimuth), flat * math.sin(sky.azimuth), math.sin(sky.elevation))


def sky_sun(sky: Sky) -> Sun | None:
    """Return the sun of a sky by daylight, with the colour that the air leaves it; None where it has set or is hidden.

    Raises:
        AirworthyError: The sky is a gradient, which has no sun of its own.
    """
    if sky.model != "daylight":
        raise AirworthyError("A gradient has no sun of its own; give Sky(model='daylight', ...).")
    light = _sunlight(sky)
    peak = float(light.max())
    if not peak > 0.0:
        return None
    x, y, z = towards_sun(sky)
    red, green, blue = (light / peak).tolist()
    return Sun((-x, -y, -z), (red, green, blue), peak)


def _sunlight(sky: Sky) -> Array:
    light = sun_irradiance(sky.elevation, sky.turbidity) * ((1.0 - sky.cover) * sky.intensity)
    if has_clouds(sky) and sky.elevation > 0.0:
        # A place is smaller than a cloud: what stands before the sun at time 0 is before it everywhere.
        passed = float(over_clouds(cloud_row(sky), towards_sun(sky), np.zeros(3))[1])
        light = light * (passed if passed > 0.02 else 0.0)
    return light


def overcast_luminance(sine: ArrayLike) -> Array:
    """Return the luminance of the CIE's standard overcast sky over that of its zenith: (1 + 2 sin(elevation)) / 3 (Moon and
    Spencer, 1942)."""
    return np.asarray((1.0 + 2.0 * np.asarray(sine, np.float64)) / 3.0)


def _overcast_illuminance(sky: Sky) -> float:
    """Return the illuminance of the ground under the overcast sky [lx]: 300 + 21,000 sin(elevation) (Krochmann and Seidl,
    1974), and by dusk as the clear sky's falls."""
    sine = math.sin(sky.elevation)
    if sine >= 0.0:
        return 300.0 + 21_000.0 * sine
    return 300.0 * _clear_illuminance(sky.elevation, sky.turbidity) / _clear_illuminance(0.0, sky.turbidity)


def _clear_illuminance(elevation: float, turbidity: float) -> float:
    mu, turn = np.meshgrid(np.sqrt((np.arange(12) + 0.5) / 12), (np.arange(8) + 0.5) / 8 * np.pi, indexing="ij")
    smooth, glow = _clear(mu, turn, elevation, turbidity, 0.2)
    facing = _facing(mu, turn, elevation)
    return float(((smooth + glow * aerosol_phase(facing)[..., None]) @ _LUMINANCE).mean())


def _facing(mu: Array, turn: Array, elevation: float) -> Array:
    flat = np.sqrt(np.maximum(1.0 - mu * mu, 0.0))
    return np.asarray(mu * math.sin(elevation) + flat * np.cos(turn) * math.cos(elevation))


def _clear(mu: Array, turn: Array, elevation: float, turbidity: float, ground: float) -> tuple[Array, Array]:
    molecules, aerosol, multiple = clear_sky(mu, elevation, turbidity, ground, turn)
    return molecules * molecular_phase(_facing(mu, turn, elevation))[..., None] + multiple, aerosol


@lru_cache(maxsize=256)
def daylight_table(sky: Sky) -> Array:
    """Return the table of a sky by daylight, flat, in the order of `TABLE_HEAD`; kept for the next time.

    Raises:
        AirworthyError: The sky is a gradient.
    """
    if sky.model != "daylight":
        raise AirworthyError("A gradient needs no table; give Sky(model='daylight', ...).")
    if has_clouds(sky):
        return _under_clouds(sky)
    if sky != _cloudless(sky):
        return daylight_table(_cloudless(sky))
    rows, columns = RADIANCE
    v = np.linspace(0.0, 1.0, rows)
    mu, turn = np.meshgrid(1.0 - (1.0 - v * v) ** 2, _angles(columns), indexing="ij")
    albedo = np.clip(np.array(sky.ground, float), 0.0, 1.0)
    smooth, glow = np.zeros((*mu.shape, 3)), np.zeros((*mu.shape, 3))
    if sky.cover < 1.0:
        smooth, glow = _clear(mu, turn, sky.elevation, sky.turbidity, float(_LUMINANCE @ albedo))
    if sky.cover > 0.0:
        # Of an even white: what light the clouds let through is as blue as what they take is yellow.
        zenith = _overcast_illuminance(sky) / LUX_PER_UNIT * 9.0 / (7.0 * math.pi)
        smooth = (1.0 - sky.cover) * smooth + sky.cover * (zenith * overcast_luminance(mu))[..., None]
        glow = (1.0 - sky.cover) * glow
    smooth = (smooth + _NIGHT * (sky.night / LUX_PER_UNIT)) * sky.intensity
    # The phase's own factor goes into the table: the kernel multiplies by what depends on the angle.
    g = ASYMMETRY
    glow = glow * (sky.intensity * 3.0 / (8.0 * math.pi) * (1.0 - g * g) / (2.0 + g * g))
    sun = towards_sun(sky)
    head = np.zeros(TABLE_HEAD)
    head[:5] = [math.cos(sky.azimuth), math.sin(sky.azimuth), *sun]
    head[8:14] = [g, 1.0 / HORIZON_BAND, *RADIANCE, *IRRADIANCE]
    grid = np.concatenate([smooth, glow], -1)
    bare = np.concatenate([head, grid.reshape(-1), np.zeros(3 * IRRADIANCE[0] * IRRADIANCE[1])])
    # The ground under the sky above it and the sun, which only then sends light upwards.
    down = _integral(bare, np.array([[0.0, 0.0, 1.0]]))[0] + _sunlight(sky) * max(sun[2], 0.0)
    bare[5:8] = albedo * down / math.pi
    bare[TABLE_HEAD + grid.size :] = _integral(bare, _normals(sky)).reshape(-1)
    return bare


def _normals(sky: Sky) -> Array:
    tilt, turn = np.meshgrid(_angles(IRRADIANCE[0]), sky.azimuth + _angles(IRRADIANCE[1]), indexing="ij")
    return np.stack([np.sin(tilt) * np.cos(turn), np.sin(tilt) * np.sin(turn), np.cos(tilt)], -1).reshape(-1, 3)


def _under_clouds(sky: Sky) -> Array:
    """Return a table whose irradiance knows of the clouds; the radiance does not, for who looks it up sees them before it."""
    table, row = daylight_table(_cloudless(sky)).copy(), cloud_row(sky)
    down = _integral(table, np.array([[0.0, 0.0, 1.0]]), row)[0] + _sunlight(sky) * max(math.sin(sky.elevation), 0.0)
    table[5:8] = np.clip(np.array(sky.ground, float), 0.0, 1.0) * down / math.pi
    table[-3 * IRRADIANCE[0] * IRRADIANCE[1] :] = _integral(table, _normals(sky), row).reshape(-1)
    return table


def _cloudless(sky: Sky) -> Sky:
    # One table for all places in the pattern.
    blank = {name: getattr(_BLANK, name) for name in _SHAPED}
    return replace(sky, **blank)


_BLANK = Sky()
_SHAPED = ("cumulus", "cirrus", "cloud_base", "wind", "drift", "stars", "moon_elevation", "moon_azimuth")


@lru_cache(maxsize=256)
def cloud_row(sky: Sky) -> Array:
    """Return the row of a sky's clouds (`clouds.cloud_numbers`), lit as its table without them says; kept for the next time."""
    return cloud_numbers(sky, table_irradiance(daylight_table(_cloudless(sky)), (0.0, 0.0, 1.0)))


def _angles(count: int) -> Array:
    """Return angles from 0 to pi whose halves' s / (s + c) are evenly spaced."""
    share = np.linspace(0.0, 1.0, count)
    return np.asarray(2.0 * np.arctan2(share, 1.0 - share))


def _integral(table: Array, normal: Array, clouds: Array | None = None) -> Array:
    """Return the irradiance (n, 3) of surfaces by their unit normals (n, 3): radiance times cosine, summed over the sphere;
    with the clouds of a row."""
    turn = (np.arange(48) + 0.5) / 48 * 2.0 * math.pi + math.atan2(table[1], table[0])
    edge = 1.0 - (1.0 - np.linspace(0.0, 1.0, 41) ** 2) ** 2
    edges = np.concatenate([np.linspace(-1.0, -HORIZON_BAND, 15)[:-1], np.linspace(-HORIZON_BAND, 0.0, 7)[:-1], edge])
    z, width = 0.5 * (edges[1:] + edges[:-1]), edges[1:] - edges[:-1]
    total = np.zeros((len(normal), 3))
    for height, part in zip(z, width, strict=True):
        flat = math.sqrt(1.0 - height * height)
        direction = np.stack([flat * np.cos(turn), flat * np.sin(turn), np.full_like(turn, height)], -1)
        facing = np.maximum(np.einsum("nk,dk->nd", normal, direction), 0.0)
        radiance = table_radiance(table, direction)
        if clouds is not None and height > 0.0:
            radiance = over_clouds(clouds, direction, radiance)[0]
        total += np.einsum("nd,dc->nc", facing, radiance) * (part * 2.0 * math.pi / len(turn))
    return total


# ---- Look-ups: the float64 twin of `Daylight` in native/light.h -------------------------------------------------------------


def _bilinear(grid: Array, x: Array, y: Array) -> Array:
    """Return values of a grid (rows, columns, k) at fractions (...) of its rows and columns."""
    x, y = x * (grid.shape[0] - 1), y * (grid.shape[1] - 1)
    i, j = np.minimum(x.astype(int), grid.shape[0] - 2), np.minimum(y.astype(int), grid.shape[1] - 2)
    a, b = (x - i)[..., None], (y - j)[..., None]
    low = grid[i, j] + (grid[i, j + 1] - grid[i, j]) * b
    high = grid[i + 1, j] + (grid[i + 1, j + 1] - grid[i + 1, j]) * b
    return np.asarray(low + (high - low) * a)


def _half(cosine: Array) -> Array:
    """Return s / (s + c) of half the angle that has this cosine."""
    sine, other = np.sqrt(np.clip(0.5 - 0.5 * cosine, 0.0, 1.0)), np.sqrt(np.clip(0.5 + 0.5 * cosine, 0.0, 1.0))
    return np.asarray(sine / (sine + other))


def _from_sun(table: Array, d: Array) -> Array:
    flat = np.sqrt(np.maximum(d[..., 0] ** 2 + d[..., 1] ** 2, 1e-12))
    return _half((d[..., 0] * table[0] + d[..., 1] * table[1]) / flat)


def table_radiance(table: Array, direction: ArrayLike) -> Array:
    """Return the radiance (..., 3) of a table from unit directions (..., 3)."""
    d = np.asarray(direction, np.float64)
    rows, columns = int(table[10]), int(table[11])
    grid = table[TABLE_HEAD : TABLE_HEAD + 6 * rows * columns].reshape(rows, columns, 6)
    z = np.clip(d[..., 2], 0.0, 1.0)
    found = _bilinear(grid, np.sqrt(z / (1.0 + np.sqrt(1.0 - z))), _from_sun(table, d))
    g, c = float(table[8]), np.einsum("...k,k->...", d, table[2:5])
    phase = (1.0 + c * c) / (1.0 + g * g - 2.0 * g * c) ** 1.5
    up = found[..., :3] + found[..., 3:] * phase[..., None]
    down = np.clip(-d[..., 2] * table[9], 0.0, 1.0)[..., None]
    return np.asarray(up + (table[5:8] - up) * down)


def table_irradiance(table: Array, normal: ArrayLike) -> Array:
    """Return the irradiance (..., 3) of an open surface by its unit normal (..., 3)."""
    n = np.asarray(normal, np.float64)
    rows, columns = int(table[12]), int(table[13])
    first = TABLE_HEAD + 6 * int(table[10]) * int(table[11])
    grid = table[first : first + 3 * rows * columns].reshape(rows, columns, 3)
    return _bilinear(grid, _half(n[..., 2]), _from_sun(table, n))


def as_gradient(sky: Sky) -> Sky:
    """Return a sky as a gradient, for what draws no other: colours of daylight at the zenith, around the horizon and below."""
    if sky.model != "daylight":
        return sky
    table = daylight_table(sky)
    turn = np.arange(24) / 24 * 2.0 * math.pi
    around = table_radiance(table, np.stack([np.cos(turn), np.sin(turn), np.full_like(turn, 0.02)], -1)).mean(0)
    zenith = table_radiance(table, np.array([0.0, 0.0, 1.0]))
    colors = [tuple(float(value) for value in color) for color in (zenith, around, table[5:8])]
    return Sky(colors[0], colors[1], colors[2])  # type: ignore[arg-type]
