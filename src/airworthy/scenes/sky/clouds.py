"""Clouds of a sky by daylight: heaps on one layer and wisps on a higher one. The float64 twin of `Clouds` in native/clouds.h.

All skies share one tile of noise that repeats without a seam, from which a threshold makes as much cloud as is asked for, so
that a cloudy sky costs one row of numbers. A heap stands on the layer's base and is as high as its noise exceeds the
threshold; a ray goes through it in a few steps, each with what cloud is left towards the sun. Wisps are one thin sheet. Far
clouds fade into the sky, and layers bend with the Earth, so that they end at the horizon.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from airworthy.core import random
from airworthy.core.arrays import Array, ArrayLike
from airworthy.scenes.record import Sky
from airworthy.scenes.sky.atmosphere import sun_irradiance
from airworthy.scenes.sky.stars import night_numbers, night_radiance

__all__ = [
    "CLOUD_COLUMNS",
    "CLOUD_NUMBERS",
    "TILE_SIDE",
    "cloud_noise",
    "cloud_numbers",
    "cloud_tile",
    "has_clouds",
    "over_clouds",
]

TILE_SIDE = 256
"""Of the tile of noise [texels]."""
CLOUD_COLUMNS = 28
"""Of a row: rows to the tile; cover of heaps and of wisps; base of the heaps [m]; wind (2) [m/s]; drift (2) [m]; direction to
the sun (3); its irradiance above the clouds (3); radiance of the light from all sides (3); 1 over the distance at which
clouds fade [1/m]; wetness, puddles and rate of the rain (`scenes.sky.wetness`); stars and moon
(`scenes.sky.stars`), 5; cover of snow (`scenes.sky.snow`); 1 spare."""
CLOUD_NUMBERS: dict[str, float] = {
    "CLOUD_TILE": 11000.0,  # side of the tile on the layer of heaps [m]
    "CLOUD_DEPTH": 1100.0,  # height of the highest heaps [m]
    "CLOUD_WISPS": 7500.0,  # how much higher than the heaps' base the wisps are [m]
    "CLOUD_RADIUS": 6.371e6,  # of the Earth [m]
    "CLOUD_STEEP": 0.55,  # what noise must exceed the threshold by for the highest heaps
}
"""Ours: sizes of clouds that look like those of fair weather."""
CLOUD_STEPS = 5
"""Of a ray through a heap."""


def has_clouds(sky: Sky) -> bool:
    """Tell whether a sky has clouds with a shape, which only the sky by daylight can have."""
    return sky.model == "daylight" and max(sky.cumulus, sky.cirrus) > 0.0


# ---- The tile ---------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def cloud_tile() -> Array:
    """Return the tile, (TILE_SIDE, TILE_SIDE), even between 0 and 1 and seamless: round heaps of several sizes.

    Each size takes the distance to the nearest of points, one in each cell of a grid (Worley, 1996), so that there are domes
    with creases between them, and hills of an interpolated grid (Perlin, 1985) move whole groups of them up and down.
    """
    total = np.zeros((TILE_SIDE, TILE_SIDE))
    for octave, (cells, weight) in enumerate(((4, 0.5), (8, 0.34), (16, 0.22), (32, 0.12))):
        total += weight * (_domes(cells, octave) + 1.1 * _hills(cells, octave + 8))
    order = np.empty(total.size)
    order[np.argsort(total.reshape(-1), kind="stable")] = (np.arange(total.size) + 0.5) / total.size
    return order.reshape(total.shape)


def _drawn(cells: int, number: int, count: int) -> Array:
    key = random.flight_key(0, number)
    return random.uniforms(key, 0, random.Stream.CLOUDS, cells * cells * count).reshape(cells, cells, count)


def _domes(cells: int, number: int) -> Array:
    points = _drawn(cells, number, 2)
    x = (np.arange(TILE_SIDE) + 0.5) * (cells / TILE_SIDE)
    cell, share = np.floor(x).astype(int), x - np.floor(x)
    nearest = np.full((TILE_SIDE, TILE_SIDE), np.inf)
    for i in (-1, 0, 1):
        for j in (-1, 0, 1):
            point = points[np.ix_((cell + i) % cells, (cell + j) % cells)]
            square = (point[..., 0] + i - share[:, None]) ** 2 + (point[..., 1] + j - share) ** 2
            nearest = np.minimum(nearest, square)
    return np.asarray(1.0 - np.minimum(np.sqrt(nearest), 1.0))


def _hills(cells: int, number: int) -> Array:
    level = _drawn(cells, number, 1)[..., 0]
    x = (np.arange(TILE_SIDE) + 0.5) * (cells / TILE_SIDE)
    cell, share = np.floor(x).astype(int), x - np.floor(x)
    smooth, after = share * share * (3.0 - 2.0 * share), (cell + 1) % cells
    rows = level[cell] + (level[after] - level[cell]) * smooth[:, None]
    return np.asarray(rows[:, cell] + (rows[:, after] - rows[:, cell]) * smooth)


# ---- What a ray sees --------------------------------------------------------------------------------------------------------


def cloud_numbers(sky: Sky, level: Array) -> Array:
    """Return the row of a sky's clouds, (CLOUD_COLUMNS,), in the order that `CLOUD_COLUMNS` tells.

    Args:
        sky: With clouds.
        level: Irradiance of a level surface under the same sky without them, (3,).
    """
    row = np.zeros(CLOUD_COLUMNS)
    flat = math.cos(sky.elevation)
    row[1:8] = sky.cumulus, sky.cirrus, sky.cloud_base, *sky.wind, *sky.drift
    row[8:11] = flat * math.cos(sky.azimuth), flat * math.sin(sky.azimuth), math.sin(sky.elevation)
    row[11:14] = sun_irradiance(sky.elevation, sky.turbidity) * ((1.0 - sky.cover) * sky.intensity)
    row[14:17] = level / math.pi
    row[17] = sky.turbidity / 7e4
    row[21:26] = night_numbers(sky)
    return row


def cloud_noise(x: Array, y: Array) -> Array:
    """Return the tile's value at points in sides of the tile, bilinear with smooth shares."""
    tile = cloud_tile()
    found = []
    for value in (x, y):
        place = (value - np.floor(value)) * TILE_SIDE
        whole = np.minimum(np.floor(place), TILE_SIDE - 1.0)
        share = place - whole
        found.append((whole.astype(int), share * share * (3.0 - 2.0 * share)))
    (i, a), (j, b) = found
    k, m = (i + 1) % TILE_SIDE, (j + 1) % TILE_SIDE
    low, high = tile[j, i] + (tile[j, k] - tile[j, i]) * a, tile[m, i] + (tile[m, k] - tile[m, i]) * a
    return np.asarray(low + (high - low) * b)


def _way(rise: Array, height: float) -> Array:
    """Return the way from the ground to a layer [m]: the root of the circle's equation that loses no digits."""
    over = 2.0 * height + height * height / CLOUD_NUMBERS["CLOUD_RADIUS"]
    return np.asarray(over / (rise + np.sqrt(rise * rise + over / CLOUD_NUMBERS["CLOUD_RADIUS"])))


def over_clouds(row: Array, direction: ArrayLike, radiance: ArrayLike, time: float = 0.0) -> tuple[Array, Array]:
    """Return the radiance (..., 3) of a sky with its clouds, and the share (...) of the light from behind that passes them.

    Args:
        row: Of the clouds, `cloud_numbers`.
        direction: Unit, from the eye, (..., 3).
        radiance: Of the sky without them, (..., 3).
        time: Since which the wind has moved them [s].
    """
    d, sky = np.asarray(direction, np.float64), np.asarray(radiance, np.float64)
    rise = np.maximum(d[..., 2], 0.0)
    moved = row[6:8] + row[4:6] * time
    cosine = np.einsum("...k,k->...", d, row[8:11])
    passed, out = np.ones(d.shape[:-1]), sky
    if row[21] > 0.0 or row[25] > 0.0:
        out = out + night_radiance(row[21:26], row[8:11], d)[..., None]
    for layer in (_wisps, _heaps):
        light, left = layer(row, d, rise, cosine, moved)
        left = np.where(d[..., 2] > 0.0, left, 1.0)
        out = light * (1.0 - left[..., None]) + out * left[..., None]
        passed = passed * left
    return np.asarray(out), np.asarray(passed)


def _fade(way: Array, rate: float) -> Array:
    """Return what air leaves of a cloud's contrast; near ones keep all, so that a thick one hides the sun."""
    return np.asarray(np.exp(-np.clip((way - 4000.0) * rate, 0.0, 80.0)))


def _forward(cosine: Array) -> Array:
    """Return how much more light a thin cloud sends on near the sun: Henyey and Greenstein's law with 0.75, over 4 pi."""
    return np.asarray(0.4375 / np.maximum(1.5625 - 1.5 * cosine, 1e-4) ** 1.5)


def _wisps(row: Array, d: Array, rise: Array, cosine: Array, moved: Array) -> tuple[Array, Array]:
    way = _way(rise, row[3] + CLOUD_NUMBERS["CLOUD_WISPS"])
    scale = 1.0 / (4.0 * CLOUD_NUMBERS["CLOUD_TILE"])
    x, y = (d[..., 0] * way + moved[0]) * scale, (d[..., 1] * way + moved[1]) * scale
    # Combed along one direction: three times as long as wide, and bent by coarser noise.
    bent = cloud_noise(x * 0.5 + 0.37, y * 0.5 + 0.11) * 0.35
    along, across = (x + y) * 0.45, (y - x) * 1.6 + bent
    noise = 0.65 * cloud_noise(along + 0.21, across) + 0.35 * cloud_noise(along * 4.0, across * 5.0 + 0.4)
    thick = np.clip((noise - (0.95 - 0.85 * row[2])) * 1.6, 0.0, 1.0) * (row[2] > 0.0)
    fade = _fade(0.5 * way, row[17])
    left = 1.0 - 0.75 * thick * thick * (3.0 - 2.0 * thick) * fade
    light = row[14:17] * 0.9 + row[11:14] * (0.16 + 0.05 * np.minimum(_forward(cosine), 6.0))[..., None]
    return light, left


def _heaps(row: Array, d: Array, rise: Array, cosine: Array, moved: Array) -> tuple[Array, Array]:
    numbers = CLOUD_NUMBERS
    scale, depth = 1.0 / numbers["CLOUD_TILE"], numbers["CLOUD_DEPTH"]
    way = _way(rise, row[3])
    begin = (d[..., 0] * way + moved[0]) * scale, (d[..., 1] * way + moved[1]) * scale
    step = depth / (CLOUD_STEPS * np.maximum(rise, 0.22)) * scale
    # Towards the sun, as far as where its light has climbed a third of a cloud.
    reach = 0.35 * depth * scale / max(row[10], 0.25)
    # Finer noise than a pixel shows would only flicker.
    near, middle = np.clip(1.2 - way * 1e-4, 0.0, 1.0), np.clip(1.2 - way * 4e-5, 0.2, 1.0)
    fine = 0.14 * near * (cloud_noise(begin[0] * 21.0, begin[1] * 21.0) - 0.5)
    edge = 1.0 - row[1] + 0.02
    through, light, weight = np.ones_like(rise), np.zeros_like(rise), np.zeros_like(rise)
    for k in range(CLOUD_STEPS):
        height = (k + 0.5) / CLOUD_STEPS
        x, y = begin[0] + d[..., 0] * step * (k + 0.5), begin[1] + d[..., 1] * step * (k + 0.5)
        noise = cloud_noise(x, y) + 0.26 * middle * (cloud_noise(x * 5.0 + 0.3, y * 5.0 + 0.7) - 0.5) + fine
        inside = noise - edge - numbers["CLOUD_STEEP"] * height * height
        dense = np.clip(inside * 8.0, 0.0, 1.0)
        towards = cloud_noise(x + row[8] * reach, y + row[9] * reach) - edge - numbers["CLOUD_STEEP"] * (height + 0.3) ** 2
        shade = np.exp(-5.0 * np.maximum(towards, 0.0) - 3.0 * np.maximum(inside, 0.0))
        taken = through * (1.0 - np.exp(-2.2 * dense))
        light += taken * shade
        weight += taken * (0.45 + 0.3 * height + 0.35 * shade)
        through = through - taken
    share = np.maximum(1.0 - through, 1e-6)
    fade = _fade(way, row[17])
    left = 1.0 - (1.0 - through) * fade * (row[1] > 0.0)
    # What is thin passes light on, most of it forwards.
    lining = through * np.minimum(_forward(cosine), 8.0) * 0.06
    sun = 0.30 * light / share + 0.04 + lining
    return row[14:17] * (weight / share)[..., None] + row[11:14] * sun[..., None], left
