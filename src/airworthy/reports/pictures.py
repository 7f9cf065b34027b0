"""Pictures a person can read of what sensors measure: distances, numbers, normals, flow and points as 8-bit RGB."""

from __future__ import annotations

import base64
import io
import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayLike, ArrayU8
from airworthy.core.frames import rotate_inverse
from airworthy.simulation import FlightTable, MountedSensors

if TYPE_CHECKING:
    from airworthy.scenes import Scene
    from airworthy.scenes.viewpoints import Viewpoint

NOTHING = np.array([22, 25, 31], np.uint8)
"""Colour of pixels that measured nothing."""


@cache
def _colormap(name: str) -> ArrayU8:
    """256 colours, from low to high."""
    import matplotlib as mpl

    table: ArrayAny = mpl.colormaps[name](np.arange(256))[:, :3]
    return np.rint(255.0 * table).astype(np.uint8)


def distance_picture(metres: ArrayLike, near: float = 0.0, far: float | None = None, colors: str = "turbo_r") -> ArrayU8:
    """Return the depth or range: warm is near; what measured nothing is dark.

    Args:
        metres: (height, width); not finite where there is nothing.
        near: Colours begin here [m].
        far: And end here; default: the 98th percentile.
        colors: A colormap of matplotlib.
    """
    values = np.asarray(metres, float)
    valid = np.isfinite(values) & (values >= 0.0)
    end = far if far is not None else float(np.percentile(values[valid], 98.0)) if valid.any() else 1.0
    share = np.clip((np.where(valid, values, 0.0) - near) / max(end - near, 1e-9), 0.0, 1.0)
    picture = _colormap(colors)[(255.0 * share).astype(int)]
    picture[~valid] = NOTHING
    return picture


def number_picture(numbers: ArrayLike) -> ArrayU8:
    """Return ids: one colour per number, neighbouring numbers far apart; negative numbers are dark."""
    values = np.asarray(numbers, np.int64)
    # Steps of the golden ratio fill the circle of hues evenly, whatever their count.
    hue = (values * 0.6180339887498949) % 1.0
    light = 0.62 + 0.33 * ((values * 0.7548776662466927) % 1.0)
    picture = np.rint(255.0 * _hsv(hue, np.full_like(hue, 0.58), light)).astype(np.uint8)
    picture[values < 0] = NOTHING
    return picture


def normal_picture(normals: ArrayLike) -> ArrayU8:
    """Return unit normals as (n + 1) / 2; NaN is dark."""
    values = np.asarray(normals, float)
    missing = ~np.isfinite(values).all(axis=-1)
    picture = np.rint(np.clip(127.5 * (np.nan_to_num(values) + 1.0), 0, 255)).astype(np.uint8)
    picture[missing] = NOTHING
    return picture


def flow_picture(flow: ArrayLike, largest: float | None = None) -> ArrayU8:
    """Return the optical flow: hue is the direction, saturation the length; NaN is dark.

    Args:
        flow: (height, width, 2), right and down [px].
        largest: Length of full colour [px]; default: the 98th percentile.
    """
    values = np.asarray(flow, float)
    missing = ~np.isfinite(values).all(axis=-1)
    x, y = np.nan_to_num(values[..., 0]), np.nan_to_num(values[..., 1])
    length = np.hypot(x, y)
    end = largest or (float(np.percentile(length[~missing], 98.0)) if (~missing).any() else 1.0) or 1.0
    hue = (np.arctan2(y, x) / (2.0 * math.pi)) % 1.0
    picture = np.rint(255.0 * _hsv(hue, np.clip(length / end, 0.0, 1.0), np.full_like(hue, 0.97))).astype(np.uint8)
    picture[missing] = NOTHING
    return picture


def _hsv(hue: ArrayAny, saturation: ArrayAny, value: ArrayAny) -> ArrayAny:
    """RGB in [0, 1] of hue, saturation and value in [0, 1]."""
    sector = (hue[..., None] * 6.0 + np.array([0.0, 4.0, 2.0])) % 6.0
    full = np.clip(np.abs(sector - 3.0) - 1.0, 0.0, 1.0)
    mixed: ArrayAny = value[..., None] * (1.0 - saturation[..., None] * (1.0 - full))
    return mixed


def points_picture(
    points: ArrayLike,
    values: ArrayLike,
    eye: ArrayLike,
    target: ArrayLike,
    size: tuple[int, int] = (720, 360),
    fov: float = 1.0,
) -> ArrayU8:
    """Return a point cloud seen from somewhere.

    Args:
        points: (n, 3), world [m].
        values: (n,) coloured from low to high.
        eye: Where from, (3,).
        target: Where to, (3,).
        size: Width and height [px].
        fov: Across [rad].
    """
    width, height = size
    cloud, value = np.asarray(points, float).reshape(-1, 3), np.asarray(values, float).reshape(-1)
    keep = np.isfinite(cloud).all(axis=1) & np.isfinite(value)
    cloud, value = cloud[keep], value[keep]
    picture = np.tile(NOTHING, (height, width, 1))
    if not len(cloud):
        return picture
    eye = np.asarray(eye, float)
    z = np.asarray(target, float) - eye
    z /= np.linalg.norm(z)
    x = np.cross(z, [0.0, 0.0, 1.0])
    x /= np.linalg.norm(x)
    y = np.cross(z, x)
    local = (cloud - eye) @ np.stack([x, y, z], axis=1)
    focal = 0.5 * width / math.tan(0.5 * fov)
    front = local[:, 2] > 0.1
    local, value = local[front], value[front]
    u = (0.5 * width + focal * local[:, 0] / local[:, 2]).astype(int)
    v = (0.5 * height + focal * local[:, 1] / local[:, 2]).astype(int)
    low, high = np.percentile(value, [2.0, 98.0]) if len(value) else (0.0, 1.0)
    # Turbo's darkest blues would vanish against the background.
    colors = _colormap("turbo")[(28.0 + 227.0 * np.clip((value - low) / max(high - low, 1e-9), 0.0, 1.0)).astype(int)]
    far_first = np.argsort(-local[:, 2], kind="stable")
    for du, dv in ((0, 0), (1, 0), (0, 1), (1, 1)):
        a, b = u[far_first] + du, v[far_first] + dv
        inside = (a >= 0) & (a < width) & (b >= 0) & (b < height)
        picture[b[inside], a[inside]] = colors[far_first][inside]
    return picture


def enlarged(picture: ArrayU8, least: int) -> ArrayU8:
    """Return the picture with whole-numbered pixels, at least this wide."""
    factor = max(1, math.ceil(least / picture.shape[1]))
    return np.repeat(np.repeat(picture, factor, axis=0), factor, axis=1)


def fitted(picture: ArrayU8, width: int) -> ArrayU8:
    """Return the picture at most this wide."""
    from PIL import Image

    if picture.shape[1] <= width:
        return picture
    height = max(1, round(picture.shape[0] * width / picture.shape[1]))
    return np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.LANCZOS))


def data_uri(picture: ArrayU8, photo: bool = True) -> str:
    """Return the picture for an HTML page: JPEG for photographs, PNG where edges and colours must stay exact."""
    from PIL import Image

    buffer, image = io.BytesIO(), Image.fromarray(picture)
    if photo:
        image.save(buffer, "JPEG", quality=84, optimize=True)
    else:
        image.convert("P", palette=Image.Palette.ADAPTIVE, colors=256).save(buffer, "PNG", optimize=True)
    kind = "jpeg" if photo else "png"
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"


# -----------------------------------------------------------------------------------------------------------------------------
# Pictures for the report of a run in a scene: the place with the flown paths, and what the sensors saw last.

SIZE = (1120, 560)
"""Width and height of the place's picture [px]."""
PATHS = 40
"""Most paths drawn."""
SENSORS = 12
"""Most images of sensors shown."""
FLOWN, HIDDEN = (255, 92, 40, 255), (255, 92, 40, 90)
ENDS = {2: (220, 30, 30, 255), 1: (150, 40, 200, 255), 3: (230, 170, 20, 255)}
_MARGIN = 0.12
"""A path this far behind a surface still counts as before it: it may lie on it [m]."""


def place_pictures(scene: Scene, table: FlightTable, sensor_images: list[dict[str, str]]) -> dict[str, Any]:
    """Return what the report shows of a place: "place", "place_note", and "seen", of `sensor_pictures`.

    Args:
        scene: The scene.
        table: Flights, drawn into the picture.
        sensor_images: Pictures of sensors.
    """
    shown = {
        "place": data_uri(place_picture(scene, table)),
        "place_note": f"{scene.name}: {scene.description.rstrip('.')}." if scene.description.strip() else f"{scene.name}.",
    }
    return {**shown, "seen": sensor_images}


def place_picture(scene: Scene, table: FlightTable) -> ArrayU8:
    """Return the scene from above or from a corner, with the flown paths over it, fainter where something hides them."""
    from airworthy.geometry import RayTable
    from airworthy.optics.tone import to_8bit
    from airworthy.rendering.images import render
    from airworthy.rendering.shading import ShadingOptions
    from airworthy.scenes import SceneBatch
    from airworthy.scenes.viewpoints import roofless, view

    camera = view(scene, "orbit")
    batch = SceneBatch(roofless(scene) if camera.parallel else scene)
    rays = RayTable(*camera.rays(*SIZE), axis=(0.0, 0.0, 1.0))
    where = (batch, rays, camera.position[None], camera.attitude[None])
    color = to_8bit(render(*where, channels=("rgb",), options=ShadingOptions(samples=4))["rgb"])[0]
    depth = render(*where, channels=("depth",))["depth"][0]
    return _with_paths(color, depth, camera, table)


def _with_paths(color: ArrayU8, depth: ArrayAny, camera: Viewpoint, table: FlightTable) -> ArrayU8:
    from PIL import Image, ImageDraw

    image = Image.fromarray(color).convert("RGBA").resize((2 * SIZE[0], 2 * SIZE[1]), Image.Resampling.BICUBIC)
    layer = Image.new("RGBA", image.size)
    draw = ImageDraw.Draw(layer)
    where = table.vector("position").astype(np.float64)
    for env in range(min(table.env_count, PATHS)):
        rows = slice(table.starts[env], table.starts[env + 1])
        points, status = where[rows], table.status[rows]
        flying = np.flatnonzero(status == 0)
        points = points[: flying[-1] + 2] if len(flying) else points[:1]
        pixel, visible = _projected(points, depth, camera)
        for k in range(len(pixel) - 1):
            if np.isfinite(pixel[k : k + 2]).all():
                ends = [tuple(2.0 * p) for p in pixel[k : k + 2]]
                draw.line(ends, fill=FLOWN if visible[k] and visible[k + 1] else HIDDEN, width=4)
        _mark_end(draw, pixel, int(status[-1]))
    merged = Image.alpha_composite(image, layer).convert("RGB").resize(SIZE, Image.Resampling.LANCZOS)
    return np.asarray(merged)


def _mark_end(draw: Any, pixel: Array, status: int) -> None:
    """Draw a dot where a flight ended before its time."""
    if status in ENDS and len(pixel) and np.isfinite(pixel[-1]).all():
        u, v = 2.0 * pixel[-1]
        draw.ellipse((u - 9, v - 9, u + 9, v + 9), fill=ENDS[status], outline=(255, 255, 255, 255), width=3)


def _projected(points: Array, depth: ArrayAny, camera: Viewpoint) -> tuple[Array, ArrayBool]:
    """Pixels (n, 2), NaN behind the camera, and whether nothing hides them (n,)."""
    width, height = SIZE
    x, y, z = rotate_inverse(camera.attitude, points - camera.position).T
    if camera.parallel:
        scale = 1.0 / max(camera.span[0] / width, camera.span[1] / height)
        u, v = 0.5 * width + scale * x, 0.5 * height + scale * y
    else:
        focal = 0.5 * max(width, height) / np.tan(0.5 * camera.fov)
        ahead = np.where(z > 0.05, z, np.nan)
        u, v = 0.5 * width + focal * x / ahead, 0.5 * height + focal * y / ahead
    inside = (u >= 0) & (u < width) & (v >= 0) & (v < height)
    row, column = np.where(inside, v, 0).astype(int), np.where(inside, u, 0).astype(int)
    return np.stack([u, v], axis=1), ~inside | (z <= depth[row, column] + _MARGIN)


def sensor_pictures(mounted: MountedSensors, env: int = 0) -> list[dict[str, str]]:
    """Return the newest sample of each sensor of one flight: name, note and image, for every channel that is an image."""
    shown: list[dict[str, str]] = []
    for name in mounted.names:
        sample, device = mounted.latest(name), mounted.sensor(name).device
        if not sample.valid[env]:
            continue
        for channel, values in sample.data.items():
            picture = _picture_of(channel, values[env], device)
            if picture is not None and len(shown) < SENSORS:
                note = f"{device.name}, {channel}, at {sample.time[env]:.2f} s{_scale_note(channel, values[env], device)}"
                image = data_uri(fitted(enlarged(picture, 240), 480), picture.shape[1] > 64)
                shown.append({"name": name, "note": note, "image": image})
    return shown


def _scale_note(channel: str, values: ArrayAny, device: Any) -> str:
    """Tell what the colours of a picture of distances stand for, as `distance_picture` takes them; empty for other channels."""
    if channel not in ("depth", "range", "true_depth", "true_range") or values.ndim != 2:
        return ""
    metres = np.asarray(values if channel.startswith("true_") else device.limits.metres(values), float)
    known = metres[np.isfinite(metres) & (metres >= 0.0)]
    if not known.size:
        return "; nothing measured"
    return f"; red is near, 0 m, blue is far, {np.percentile(known, 98.0):.3g} m and more; dark: nothing measured"


def _picture_of(channel: str, values: ArrayAny, device: Any) -> ArrayU8 | None:
    """Return a channel of one camera as a picture; None where it is none."""
    from airworthy.optics.tone import to_8bit

    if channel in ("depth", "range") and values.ndim == 2:
        return distance_picture(device.limits.metres(values))
    if channel in ("true_depth", "true_range") and values.ndim == 2:
        return distance_picture(values)
    if channel in ("instance", "instance_id", "semantic_id", "face") and values.ndim == 2:
        return number_picture(values)
    if channel in ("normal_world", "normal_sensor", "normal"):
        return normal_picture(values)
    if channel == "flow":
        return flow_picture(values)
    if channel in ("rgb", "albedo"):
        return values if values.dtype == np.uint8 else to_8bit(values)
    return None
