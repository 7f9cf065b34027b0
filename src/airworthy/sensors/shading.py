"""Colours: what rays through a `SceneBatch` see, as linear radiance, albedo and shading normals.

Surfaces are metallic-roughness (Lambert and GGX); the sun and lamps cast hard shadows by rays; light from all sides comes from
the sky, or from what was baked. `airworthy.sensors.capture.render` is the one call that joins this with the geometric channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.geometry import RayTable
from airworthy.scenes.batch import SceneBatch
from airworthy.sensors.pixel_rays import supersampled
from airworthy.sensors.shading_launch import APPEARANCE_CHANNELS, HIT_CHANNELS, launch
from airworthy.sensors.shading_options import DEFAULT_OPTIONS, Cameras, ShadingOptions

__all__ = ["APPEARANCE_CHANNELS", "DEFAULT_OPTIONS", "HIT_CHANNELS", "Cameras", "ShadingOptions", "shade", "shade_channels"]

Arrays = dict[str, NDArray[Any]]


def shade(
    batch: SceneBatch,
    table: RayTable,
    position: ArrayLike,
    attitude: ArrayLike,
    env: ArrayLike | None = None,
    options: ShadingOptions = DEFAULT_OPTIONS,
) -> NDArray[np.float32]:
    """Colours of c cameras.

    Args:
        batch: The scenes.
        table: Rays in the camera's frame.
        position: World [m], (c, 3).
        attitude: Camera to world, (c, 4).
        env: (c,) environment of each; None: camera k is in environment k, or all are in the only one.
        options: How.

    Returns:
        Linear radiance (c, H, W, 3), in units in which a white surface under an irradiance of pi has 1.
    """
    cameras = Cameras.of(batch, table, position, attitude, env)
    return shade_channels(batch, table, cameras, ("rgb",), options)["rgb"]


def shade_channels(
    batch: SceneBatch,
    table: RayTable,
    cameras: Cameras,
    channels: Sequence[str],
    options: ShadingOptions = DEFAULT_OPTIONS,
    hits: Arrays | None = None,
) -> Arrays:
    """Channels of `APPEARANCE_CHANNELS`, and "hits": the channels of `HIT_CHANNELS` and "back" (a back face is seen).

    Args:
        batch: The scenes.
        table: The rays.
        cameras: Poses.
        channels: What to give.
        options: How.
        hits: What `geometry.cast` found for these rays (`HIT_CHANNELS`); None: rays are traced. Not used where samples are
            taken beside the middles of pixels.
    """
    tables = supersampled(table, options.samples)
    colored = [name for name in channels if name in APPEARANCE_CHANNELS]
    total: Arrays = {}
    for index, one in enumerate(tables):
        given = hits if len(tables) == 1 else None
        found = launch(batch, one, cameras, channels if index == 0 else colored, options, given)
        if not total:
            total = found
            continue
        for name in colored:
            total[name] += found[name]
    if len(tables) > 1:
        for name in colored:
            total[name] *= np.float32(1.0 / len(tables))
    if len(tables) > 1 and "normal" in colored:
        length = np.linalg.norm(total["normal"], axis=-1, keepdims=True)
        total["normal"] = np.where(length > 1e-3, total["normal"] / np.maximum(length, 1e-3), 0.0).astype(np.float32)
    return total
