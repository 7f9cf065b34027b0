"""Pictures of a scene for `airworthy scenes render`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.core.arrays import ArrayU8, NDArray
from airworthy.core.errors import unknown_name
from airworthy.geometry import RayTable, cast
from airworthy.scenes.actors import posed
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Scene
from airworthy.scenes.viewpoints import Viewpoint, roofless, view

if TYPE_CHECKING:
    from airworthy.rendering.still import StillOptions

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


def pictures(
    scene: Scene,
    camera: str | Viewpoint,
    size: tuple[int, int],
    channels: Sequence[str],
    time: float = 0.0,
    samples: int = 4,
    bake: bool = False,
    still: StillOptions | None = None,
) -> dict[str, ArrayU8]:
    """Return images (h, w, 3) of a scene, by channel.

    Args:
        scene: The scene.
        camera: A view's name, or a camera.
        size: Width and height in pixels.
        channels: Some of `CHANNELS`.
        time: At which actors stand [s].
        samples: Rays per pixel of rgb.
        bake: Bake indirect light for rgb first (kept for the next time).
        still: Make rgb by path tracing; None: as films and training have it.

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
    wanted = [_CAST[channel] for channel in channels if channel in _CAST]
    wanted += [name for name in ("semantic_id", "normal_world") if "matte" in channels and name not in wanted]
    found: dict[str, Any] = (
        cast(batch.geometry, table, viewpoint.position[None], viewpoint.attitude[None], channels=wanted) if wanted else {}
    )
    made = {channel: _DRAWN[channel](found[_CAST[channel]][0]) for channel in channels if channel in _CAST}
    if "matte" in channels:
        made["matte"] = _matte(found["semantic_id"][0], found["normal_world"][0])
    if "rgb" in channels:
        made["rgb"] = _rgb(batch, table, viewpoint, samples, bake, still)
    return {channel: made[channel] for channel in channels}


def _rgb(
    batch: SceneBatch, table: RayTable, viewpoint: Viewpoint, samples: int, bake: bool, still: StillOptions | None
) -> ArrayU8:
    from airworthy.optics.tone import to_8bit
    from airworthy.rendering.images import render
    from airworthy.rendering.light_baking import use_baked
    from airworthy.rendering.shading import ShadingOptions

    if bake:
        use_baked(batch, quiet=False)
    pose = viewpoint.position[None], viewpoint.attitude[None]
    options = ShadingOptions(samples=samples if still is None else 1)
    return to_8bit(render(batch, table, *pose, channels=("rgb",), options=options, still=still)["rgb"])[0]


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
