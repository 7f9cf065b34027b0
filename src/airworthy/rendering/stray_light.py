"""Light of lamps that surfaces send on, at night: an even share of it for places whose light is not baked.

By day what is in shade is lit by the sky; at night there is next to none of it, and what no lamp reaches was black. In a real
street it is not, for pavements and walls send on what lamps give them. How much, on average over a place, some thousand rays
tell: it is added to the sky's irradiance, from all sides alike, wherever nothing is baked.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from airworthy.core.arrays import Array
from airworthy.rendering.directions import sphere_table
from airworthy.rendering.shading import Cameras, ShadingOptions, seen_by_colors, shade_channels
from airworthy.scenes.actors import stationary
from airworthy.scenes.appearance import appearance_of
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.extent import scene_box
from airworthy.scenes.lights import DUSK, is_burning
from airworthy.scenes.record import Haze, Scene, Sun

__all__ = ["needs_stray_light", "stray_irradiance", "with_stray_light"]

_COLUMNS = 9
"""Places along the longer side of the ground from which is looked. Ours: another lattice changes the mean by a tenth."""
_HEIGHTS = (2.0, 6.0)
"""Above the ground, or a third and two thirds of the way to the top where that is less [m]: on both sides of most lamps."""
_RAYS = 96
"""From each place."""
_ROUNDS = 3
"""Times that light is sent on: of grey surfaces a twentieth is left."""
_INSIDE = 0.05
"""Share of back faces beyond which a place lies within something."""
# As baking has it: what is sent on is diffuse, and its colours may be coarse.
_OPTIONS = ShadingOptions(specular=False, sun_disc=False, texture_scale=0.125, max_range=500.0, detail=0.0, baked=False)


def needs_stray_light(scene: Scene) -> bool:
    """Tell whether lamps burn in a scene under a sky without a sun to speak of."""
    if scene.sky.model != "daylight" or scene.sky.elevation >= DUSK:
        return False
    return any(not isinstance(light, Sun) and is_burning(light, scene.sky) for light in scene.lights)


def stray_irradiance(scene: Scene) -> Array:
    """Return the irradiance (3,) that surfaces send around of lamps' light and of what glows, a mean over the open places of
    a scene; 0 where none is open. What moves, and lamps on it, are left out.

    Args:
        scene: The place; `needs_stray_light`.
    """
    still = replace(stationary(scene), haze=Haze())
    batch = seen_by_colors(SceneBatch(still))
    position, table = _places(still), sphere_table(_RAYS)
    if not len(position):
        return np.zeros(3)
    attitude = np.tile([0.0, 0.0, 0.0, 1.0], (len(position), 1))
    cameras = Cameras.of(batch, table, position, attitude, np.zeros(len(position), np.int32))
    looks, found = appearance_of(batch, _OPTIONS.texture_scale), np.zeros(3)
    for _ in range(_ROUNDS):
        seen = shade_channels(batch, table, cameras, ("rgb", "hits"), _OPTIONS)
        met = seen["instance"] >= 0
        open_ = (met & (seen["back"] > 0)).mean((1, 2)) < _INSIDE
        if not open_.any():
            return np.zeros(3)
        # The sky's own light is in its table already.
        light = np.where(met[..., None], seen["rgb"], 0.0)[open_]
        found = math.pi * np.nan_to_num(light.astype(np.float64)).mean((0, 1, 2))
        looks.stray(0, found)
    return found


def _places(scene: Scene) -> Array:
    """Return a lattice (n, 3) over the ground within a scene's bounds, or around what stands in it [m]."""
    box = (np.array(scene.bounds.lower), np.array(scene.bounds.upper)) if scene.bounds else scene_box(scene)
    if box is None:
        return np.zeros((0, 3))
    lower, size = box[0], box[1] - box[0]
    step = max(float(size[:2].max()) / _COLUMNS, 1e-6)
    count = np.maximum(np.rint(size[:2] / step).astype(int), 1)
    x, y = (lower[k] + size[k] * (np.arange(count[k]) + 0.5) / count[k] for k in (0, 1))
    z = [lower[2] + min(height, share * float(size[2])) for height, share in zip(_HEIGHTS, (1 / 3, 2 / 3), strict=True)]
    return np.stack(np.meshgrid(x, y, z, indexing="ij"), -1).reshape(-1, 3)


def with_stray_light(batch: SceneBatch, texture_scale: float) -> None:
    """Give each scene of a batch that needs it its stray light, once.

    Args:
        batch: As colours see it.
        texture_scale: Of the appearance that gets it.
    """
    looks = appearance_of(batch, texture_scale)
    if looks.strayed:
        return
    looks.strayed = True
    found: dict[int, Array] = {}
    for index, scene in enumerate(batch.scenes):
        if needs_stray_light(scene):
            # A batch may name one scene many times.
            if id(scene) not in found:
                found[id(scene)] = stray_irradiance(scene)
            looks.stray(index, found[id(scene)])
