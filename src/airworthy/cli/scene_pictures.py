"""Pictures of a scene for `airworthy scenes render`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import unknown_name
from airworthy.geometry import RayTable, cast
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.posing import posed
from airworthy.scenes.record import Scene
from airworthy.scenes.viewing import View, roofless, view

CHANNELS = ("rgb", "matte", "depth", "semantic", "instance", "normal")
Image = NDArray[np.uint8]
_CAST = {"depth": "depth", "semantic": "semantic_id", "instance": "instance_id", "normal": "normal_world"}
_SKY = np.array([236, 240, 244], np.uint8)


def pictures(
    scene: Scene,
    camera: str | View,
    size: tuple[int, int],
    channels: Sequence[str],
    time: float = 0.0,
    samples: int = 4,
) -> dict[str, Image]:
    """Images (h, w, 3) of a scene, by channel.

    Args:
        scene: The scene.
        camera: A view's name, or a camera.
        size: Width and height in pixels.
        channels: Some of `CHANNELS`.
        time: At which actors stand [s].
        samples: Rays per pixel of rgb.

    Raises:
        UnknownNameError: There is no such channel or view.
    """
    for channel in channels:
        if channel not in CHANNELS:
            raise unknown_name("channel", channel, CHANNELS)
    still = posed(scene, time)
    seen = camera if isinstance(camera, View) else view(still, camera)
    if seen.parallel:
        still = roofless(still)
    table = RayTable(*seen.rays(*size), axis=(0.0, 0.0, 1.0))
    batch = SceneBatch(still)
    wanted = [_CAST[channel] for channel in channels if channel in _CAST]
    wanted += [name for name in ("semantic_id", "normal_world") if "matte" in channels and name not in wanted]
    found: dict[str, Any] = (
        cast(batch.geometry, table, seen.position[None], seen.attitude[None], channels=wanted) if wanted else {}
    )
    made = {channel: _DRAWN[channel](found[_CAST[channel]][0]) for channel in channels if channel in _CAST}
    if "matte" in channels:
        made["matte"] = _matte(found["semantic_id"][0], found["normal_world"][0])
    if "rgb" in channels:
        made["rgb"] = _rgb(batch, table, seen, samples)
    return {channel: made[channel] for channel in channels}


def _rgb(batch: SceneBatch, table: RayTable, seen: View, samples: int) -> Image:
    from airworthy.sensors.capture import render
    from airworthy.sensors.shading import ShadingOptions
    from airworthy.sensors.tone import to_8bit

    pose = seen.position[None], seen.attitude[None]
    return to_8bit(render(batch, table, *pose, channels=("rgb",), options=ShadingOptions(samples=samples))["rgb"])[0]


def _matte(classes: NDArray[np.integer], normals: NDArray[np.floating]) -> Image:
    """Colours of classes under an even light from above and the left."""
    light = np.array([-0.35, -0.55, 0.76])
    level = 0.62 + 0.38 * (np.nan_to_num(normals) @ light)
    colors = np.rint(_numbers(classes) * np.where(classes < 0, 1.0, level)[..., None])
    return np.clip(colors, 0, 255).astype(np.uint8)


def _depth(depth: NDArray[np.floating]) -> Image:
    """Near is bright; the scale is the logarithm of the distance between the nearest and the farthest thing."""
    from matplotlib import colormaps

    hit = np.isfinite(depth)
    if not hit.any():
        return np.broadcast_to(_SKY, (*depth.shape, 3)).copy()
    logs = np.log(np.maximum(np.where(hit, depth, 1.0), 1e-3))
    low, high = np.quantile(logs[hit], (0.01, 0.99))
    level = 1.0 - np.clip((logs - low) / max(high - low, 1e-6), 0.0, 1.0)
    colors = np.rint(colormaps["viridis"](level)[..., :3] * 255.0).astype(np.uint8)
    return np.where(hit[..., None], colors, _SKY)


def _numbers(numbers: NDArray[np.integer]) -> Image:
    """A colour per number: hues a golden angle apart, so that neighbours in number differ most."""
    values, index = np.unique(numbers, return_inverse=True)
    hue = (values * 0.61803398875) % 1.0
    sector = (hue[:, None] * 6.0 + np.array([5.0, 3.0, 1.0])) % 6.0
    light = 0.92 - 0.18 * (values % 3)
    colors = light[:, None] * (1.0 - 0.55 * np.clip(np.minimum(sector, 4.0 - sector), 0.0, 1.0))
    palette = np.rint(colors * 255.0).astype(np.uint8)
    palette[values < 0] = _SKY
    return palette[index.reshape(numbers.shape)]


def _normal(normals: NDArray[np.floating]) -> Image:
    colors = np.rint((np.nan_to_num(normals) + 1.0) * 127.5).astype(np.uint8)
    return np.where(np.isnan(normals[..., :1]), _SKY, colors)


_DRAWN: dict[str, Callable[[Any], Image]] = {"depth": _depth, "semantic": _numbers, "instance": _numbers, "normal": _normal}
