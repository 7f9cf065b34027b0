"""Pictures of a scene for `airworthy scenes render`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import ArrayF32, ArrayU8, NDArray
from airworthy.core.errors import unknown_name
from airworthy.core.schema import check_fields
from airworthy.geometry import RayTable, cast
from airworthy.optics.exposure import LINEAR_EV, exposure_factor, metered
from airworthy.optics.tone import luminance, wide
from airworthy.rendering.still import StillOptions
from airworthy.scenes import under_sky, weather_named
from airworthy.scenes.actors import posed
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.lights import sky_irradiance
from airworthy.scenes.record import Scene
from airworthy.scenes.viewpoints import Viewpoint, roofless, view

# ---- The scene file that `airworthy scenes new` writes ----------------------------------------------------------------------

STARTER = """\
# A scene. SI units, radians, world z up; docs/howto/scenes.md explains every table.
# Check it with `airworthy scenes validate`, look at it with `airworthy scenes render`.
version = 1
name = "{name}"
description = "A yard with two crates, a mast and somebody who walks past"
source = "made with airworthy scenes new"

# To build on a generated scene, say base = "forest:3@7"; what follows is then added to it.

bounds = {{ lower = [-10.0, -10.0, 0.0], upper = [10.0, 10.0, 6.0] }}   # leaving it is out of bounds
start = {{ position = [-7.0, 0.0, 1.5], yaw = 0.0 }}
goal = {{ position = [7.0, 0.0, 1.5] }}

# What can be placed: box, sphere, cylinder, capsule (along z), or a mesh file beside this file:
#   [shapes.statue]
#   kind = "mesh"
#   file = "assets/statue.glb"
[shapes.ground]
kind = "box"
half_size = [10.0, 10.0, 0.1]
[shapes.crate]
kind = "box"
half_size = [0.5, 0.5, 0.5]
[shapes.mast]
kind = "cylinder"
radius = 0.06
half_length = 2.0

# Images: file = "assets/x.png", or a procedural kind.
[textures.concrete]
procedural = "concrete"

[materials.floor]
base_color = [0.9, 0.9, 0.9, 1.0]
base_color_map = "concrete"
texture_size = 2.0      # metres per repeat
[materials.wood]
base_color = [0.45, 0.28, 0.14, 1.0]
roughness = 0.7
[materials.steel]
base_color = [0.55, 0.56, 0.58, 1.0]
metallic = 1.0
roughness = 0.35

[[instances]]
shape = "ground"
position = [0.0, 0.0, -0.1]
materials = ["floor"]
semantic = "ground"
[[instances]]
name = "crate_low"
shape = "crate"
position = [1.0, 2.0, 0.5]
yaw = 0.3
materials = ["wood"]
[[instances]]
name = "crate_high"
shape = "crate"
position = [1.1, 1.9, 1.35]
yaw = 0.8
scale = 0.7
materials = ["wood"]
[[instances]]
name = "mast"
shape = "mast"
position = [0.0, -3.0, 2.0]
materials = ["steel"]
semantic = "thin"

# A whole model file with a pose:
#   [[models]]
#   file = "assets/chair.glb"
#   position = [3.0, 0.0, 0.0]
#   floor = true

# A captured object or place, as Gaussian splats with a pose:
#   [clouds.statue]
#   file = "assets/statue.spz"
#   [[splats]]
#   cloud = "statue"
#   position = [3.0, 0.0, 0.0]
#   solid = true          # it can be hit, too

[[lights]]
kind = "sun"
direction = [-0.4, 0.3, -0.866]

[[actors]]
name = "walker"
person = {{ height = 1.78 }}
animation = "walking"
motion = "scripted"
repeat = true
path = [
  {{ time = 0.0, position = [4.0, -6.0, 0.0], yaw = 1.571 }},
  {{ time = 9.0, position = [4.0, 6.0, 0.0], yaw = 1.571 }},
  {{ time = 10.0, position = [4.0, 6.0, 0.0], yaw = -1.571 }},
  {{ time = 19.0, position = [4.0, -6.0, 0.0], yaw = -1.571 }},
  {{ time = 20.0, position = [4.0, -6.0, 0.0], yaw = 1.571 }},
]
"""

# -----------------------------------------------------------------------------------------------------------------------------

CHANNELS = ("rgb", "matte", "depth", "semantic", "instance", "normal")
_CAST = {"depth": "depth", "semantic": "semantic_id", "instance": "instance_id", "normal": "normal_world"}
_SKY = np.array([236, 240, 244], np.uint8)


@dataclass(frozen=True)
class PictureLight:
    """How rgb is made."""

    quality: str = "standard"
    """policy, standard or high (`rendering.quality_options`)."""
    samples: int | None = None
    """Rays per pixel; None: as many as the quality has."""
    bake: bool = False
    """Whether indirect light is baked first, and kept for the next time."""
    shade: bool = False
    """Whether, under trees, the shade below them is found first, and kept; of no use with `bake` or `still`."""
    ev: float | None = LINEAR_EV
    """Exposure at ISO 100 [EV]; None: as a camera's automatic has it."""
    still: StillOptions | None = None
    """By path tracing; None: as films and training have it."""

    def __post_init__(self) -> None:
        check_fields(self, "PictureLight.")


DEFAULT_LIGHT = PictureLight()


def sky_pictures(
    scene: Scene,
    camera: str | Viewpoint,
    size: tuple[int, int],
    channels: Sequence[str],
    time: float = 0.0,
    light: PictureLight = DEFAULT_LIGHT,
    skies: Sequence[str] = (),
) -> dict[str, ArrayU8]:
    """Return images of a scene as `pictures`, rgb under one sky or several: then all of them in rows of up to three.

    Args:
        scene: The scene.
        camera: A view's name, or a camera.
        size: Width and height of each in pixels.
        channels: Some of `CHANNELS`.
        time: At which actors stand [s].
        light: Of rgb.
        skies: As `scenes.weather_named` has them; empty: the scene's own.

    Raises:
        UnknownNameError: There is no such channel, view or sky.
    """
    weathers = [weather_named(name) for name in skies]
    if not weathers or "rgb" not in channels:
        return pictures(scene, camera, size, channels, time, light)
    viewpoint = camera if isinstance(camera, Viewpoint) else view(posed(scene, time), camera)
    places = [under_sky(scene, one.sky, one.haze, one.rain, one.snow if one.snow.cover else None) for one in weathers]
    shown = [pictures(place, viewpoint, size, ("rgb",), time, light)["rgb"] for place in places]
    rest = [channel for channel in channels if channel != "rgb"]
    made = pictures(scene, viewpoint, size, rest, time, light) if rest else {}
    return {channel: _tiled(shown) if channel == "rgb" else made[channel] for channel in channels}


def _tiled(images: Sequence[ArrayU8]) -> ArrayU8:
    """Return images side by side, at most three in a row."""
    across = min(len(images), 2 if len(images) == 4 else 3)
    height, width = images[0].shape[:2]
    whole = np.zeros((-(-len(images) // across) * height, across * width, 3), np.uint8)
    for index, image in enumerate(images):
        top, left = index // across * height, index % across * width
        whole[top : top + height, left : left + width] = image
    return whole


def pictures(
    scene: Scene,
    camera: str | Viewpoint,
    size: tuple[int, int],
    channels: Sequence[str],
    time: float = 0.0,
    light: PictureLight = DEFAULT_LIGHT,
) -> dict[str, ArrayU8]:
    """Return images (h, w, 3) of a scene, by channel.

    Args:
        scene: The scene.
        camera: A view's name, or a camera.
        size: Width and height in pixels.
        channels: Some of `CHANNELS`.
        time: At which actors stand [s].
        light: Of rgb.

    Raises:
        UnknownNameError: There is no such channel or view.
    """
    for channel in channels:
        if channel not in CHANNELS:
            raise unknown_name("channel", channel, CHANNELS)
    place = posed(scene, time)
    viewpoint = camera if isinstance(camera, Viewpoint) else view(place, camera)
    if viewpoint.parallel:
        place = roofless(place)
    table = RayTable(*viewpoint.rays(*size), axis=(0.0, 0.0, 1.0))
    batch = SceneBatch(place)
    # Actors are posed already; the wind has moved the clouds.
    batch.time[:] = time
    wanted = [_CAST[channel] for channel in channels if channel in _CAST]
    wanted += [name for name in ("semantic_id", "normal_world") if "matte" in channels and name not in wanted]
    found: dict[str, Any] = (
        cast(batch.geometry, table, viewpoint.position[None], viewpoint.attitude[None], channels=wanted) if wanted else {}
    )
    made = {channel: _DRAWN[channel](found[_CAST[channel]][0]) for channel in channels if channel in _CAST}
    if "matte" in channels:
        made["matte"] = _matte(found["semantic_id"][0], found["normal_world"][0])
    if "rgb" in channels:
        made["rgb"] = _rgb(batch, table, viewpoint, light)
    return {channel: made[channel] for channel in channels}


def _rgb(batch: SceneBatch, table: RayTable, viewpoint: Viewpoint, light: PictureLight) -> ArrayU8:
    from airworthy.optics.tone import to_8bit
    from airworthy.rendering.images import render
    from airworthy.rendering.light_baking import under_trees, use_baked, use_shade
    from airworthy.rendering.shading import ShadingOptions, quality_options

    if light.bake:
        use_baked(batch, quiet=False)
    elif light.shade and not light.still and not _at_night(batch.scenes[0]):
        use_shade(batch, quiet=False)
    pose = viewpoint.position[None], viewpoint.attitude[None]
    options = ShadingOptions() if light.still else quality_options(light.quality)
    if light.samples is not None and light.still is None:
        # Textures are as sharp as the mean of so many rays can show.
        options = replace(options, samples=light.samples, texture_bias=-0.5 * math.log2(max(light.samples, 1)))
    linear = render(batch, table, *pose, channels=("rgb",), options=options, still=light.still)["rgb"]
    if batch.scenes[0].rain.rate > 0.0 and not viewpoint.parallel:
        linear = _rained(batch, table, viewpoint, linear)
    shady = (light.bake or light.shade or light.still) and not _at_night(batch.scenes[0])
    if light.ev is None and shady and under_trees(batch.scenes[0]):
        return to_8bit(linear, gain_in_shade(linear), "wide")[0]
    if light.ev == LINEAR_EV:
        return to_8bit(linear)[0]
    return to_8bit(linear, exposure_factor(_metered_ev(linear) if light.ev is None else light.ev))[0]


def _rained(batch: SceneBatch, table: RayTable, viewpoint: Viewpoint, linear: ArrayF32) -> ArrayF32:
    from airworthy.sensors.realism.rain import DropView, rain_cover, with_streaks

    scene, height, width = batch.scenes[0], table.height, table.width
    view = DropView(0.5 * max(width, height) / math.tan(0.5 * viewpoint.fov))
    pose = viewpoint.position[None], viewpoint.attitude[None]
    depth = cast(batch.geometry, table, *pose, channels=("depth",))["depth"][0].astype(np.float64)
    down = frames.rotate(frames.conjugate(viewpoint.attitude), np.array([0.0, 0.0, -1.0]))
    cover = rain_cover(scene.rain.rate, view, np.where(np.isfinite(depth), depth, np.inf), np.zeros(3), down)
    around = sky_irradiance(scene.sky, 1.0) / math.pi
    return with_streaks(linear[0], cover, around.reshape(3))[None]


def _at_night(scene: Scene) -> bool:
    """Tell whether the sun of a sky by daylight is below civil twilight: shade would be as black as it is, and show nothing."""
    return scene.sky.model == "daylight" and scene.sky.elevation < -math.radians(6.0)


def _metered_ev(linear: ArrayF32) -> float:
    """Return the EV that a camera's automatic takes, by its middle grey; nights stay dark, which it would make days of."""
    from airworthy.sensors.realism import AutoExposure
    from airworthy.sensors.realism.chain import wanted_stops

    stops = float(wanted_stops(metered(linear, "mean"), AutoExposure(limit=_STOPS))[0])
    return LINEAR_EV - stops + _KEY * max(stops - _DAY_STOPS, 0.0)


def gain_in_shade(linear: ArrayF32) -> float:
    """Return the factor with which the wide curve shows an image as bright on average as the metered one of `_metered_ev` is.

    Where a few patches lie in the sun, the curve takes of these most; what is left in the shade may be brighter for it.
    """
    gain = float(exposure_factor(_metered_ev(linear)))
    wanted = min(gain * float(metered(linear, "mean")[0]), _SHOWN)
    low, high = 0.0, _OPENED
    for _ in range(12):
        stops = 0.5 * (low + high)
        shown = float(luminance(wide(linear * np.float32(gain * 2.0**stops))).mean())
        low, high = (stops, high) if shown < wanted else (low, stops)
    return gain * 2.0 ** (0.5 * (low + high))


_SHOWN, _OPENED = 0.18, 1.0
"""Middle grey, and by how many stops at most shade is opened: ours, beyond it looks like fog."""
# Ours: by day middle grey is middle grey; at dusk and night a picture that is to look like one is darker, by a tenth of the
# stops that are missing. 22 stops under a sunny day, EV -7, is as far as a camera on a tripod goes: 30 s at f/2.8 and ISO 3200.
_STOPS, _DAY_STOPS, _KEY = 22.0, 4.0, 0.1


def _matte(classes: NDArray[np.integer], normals: NDArray[np.floating]) -> ArrayU8:
    """Colours of classes under an even light from above and the left."""
    light = np.array([-0.35, -0.55, 0.76])
    level = 0.62 + 0.38 * (np.nan_to_num(normals) @ light)
    colors = np.rint(_numbers(classes) * np.where(classes < 0, 1.0, level)[..., None])
    return np.clip(colors, 0, 255).astype(np.uint8)


def _depth(depth: NDArray[np.floating]) -> ArrayU8:
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


def _numbers(numbers: NDArray[np.integer]) -> ArrayU8:
    """Return a colour per number: hues a golden angle apart, so that neighbours in number differ most."""
    values, index = np.unique(numbers, return_inverse=True)
    hue = (values * 0.61803398875) % 1.0
    sector = (hue[:, None] * 6.0 + np.array([5.0, 3.0, 1.0])) % 6.0
    light = 0.92 - 0.18 * (values % 3)
    colors = light[:, None] * (1.0 - 0.55 * np.clip(np.minimum(sector, 4.0 - sector), 0.0, 1.0))
    palette = np.rint(colors * 255.0).astype(np.uint8)
    palette[values < 0] = _SKY
    return palette[index.reshape(numbers.shape)]


def _normal(normals: NDArray[np.floating]) -> ArrayU8:
    colors = np.rint((np.nan_to_num(normals) + 1.0) * 127.5).astype(np.uint8)
    return np.where(np.isnan(normals[..., :1]), _SKY, colors)


_DRAWN: dict[str, Callable[[Any], ArrayU8]] = {"depth": _depth, "semantic": _numbers, "instance": _numbers, "normal": _normal}
