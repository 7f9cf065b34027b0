"""Pictures for the report of a run in a scene: the place with the flown paths, and what the sensors saw last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.frames import rotate_inverse
from airworthy.evaluation import pictures
from airworthy.evaluation.pictures import Picture
from airworthy.simulation import FlightTable, MountedSensors

if TYPE_CHECKING:
    from airworthy.scenes import Scene
    from airworthy.scenes.viewing import View

Floats = NDArray[np.float64]

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


def run_pictures(place: Scene, table: FlightTable, mounted: MountedSensors | None) -> dict[str, Any]:
    """What the report shows of a place: "place" and "place_note", and "seen": a list of name, note and image."""
    shown = {
        "place": pictures.data_uri(place_picture(place, table)),
        "place_note": " ".join((f"{place.name}:", place.description.rstrip(".") + ".")),
    }
    return {**shown, "seen": [] if mounted is None else sensor_pictures(mounted)}


def place_picture(place: Scene, table: FlightTable) -> Picture:
    """The scene from above or from a corner, with the flown paths over it, fainter where something hides them."""
    from airworthy.geometry import RayTable
    from airworthy.scenes import SceneBatch
    from airworthy.scenes.viewing import roofless, view
    from airworthy.sensors.capture import render
    from airworthy.sensors.shading import ShadingOptions
    from airworthy.sensors.tone import to_8bit

    camera = view(place, "orbit")
    batch = SceneBatch(roofless(place) if camera.parallel else place)
    rays = RayTable(*camera.rays(*SIZE), axis=(0.0, 0.0, 1.0))
    where = (batch, rays, camera.position[None], camera.attitude[None])
    color = to_8bit(render(*where, channels=("rgb",), options=ShadingOptions(samples=4))["rgb"])[0]
    depth = render(*where, channels=("depth",))["depth"][0]
    return _with_paths(color, depth, camera, table)


def _with_paths(color: Picture, depth: NDArray[Any], camera: View, table: FlightTable) -> Picture:
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
        pixel, seen = _projected(points, depth, camera)
        for k in range(len(pixel) - 1):
            if np.isfinite(pixel[k : k + 2]).all():
                ends = [tuple(2.0 * p) for p in pixel[k : k + 2]]
                draw.line(ends, fill=FLOWN if seen[k] and seen[k + 1] else HIDDEN, width=4)
        _mark_end(draw, pixel, int(status[-1]))
    merged = Image.alpha_composite(image, layer).convert("RGB").resize(SIZE, Image.Resampling.LANCZOS)
    return np.asarray(merged)


def _mark_end(draw: Any, pixel: Floats, status: int) -> None:
    """A dot where a flight ended before its time."""
    if status in ENDS and len(pixel) and np.isfinite(pixel[-1]).all():
        u, v = 2.0 * pixel[-1]
        draw.ellipse((u - 9, v - 9, u + 9, v + 9), fill=ENDS[status], outline=(255, 255, 255, 255), width=3)


def _projected(points: Floats, depth: NDArray[Any], camera: View) -> tuple[Floats, NDArray[np.bool_]]:
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
    """The newest sample of each sensor of one flight: name, note and image, for every channel that is an image."""
    shown: list[dict[str, str]] = []
    for name in mounted.names:
        sample, device = mounted.latest(name), mounted.sensor(name).device
        if not sample.valid[env]:
            continue
        for channel, values in sample.data.items():
            picture = _picture_of(channel, values[env], device)
            if picture is not None and len(shown) < SENSORS:
                note = f"{device.name}, {channel}, at {sample.time[env]:.2f} s"
                image = pictures.data_uri(pictures.fitted(pictures.enlarged(picture, 240), 480), picture.shape[1] > 64)
                shown.append({"name": name, "note": note, "image": image})
    return shown


def _picture_of(channel: str, values: NDArray[Any], device: Any) -> Picture | None:
    """A channel of one camera as a picture; None where it is none."""
    from airworthy.sensors.tone import to_8bit

    if channel in ("depth", "range") and values.ndim == 2:
        return pictures.distance_picture(device.limits.metres(values))
    if channel in ("true_depth", "true_range") and values.ndim == 2:
        return pictures.distance_picture(values)
    if channel in ("instance", "instance_id", "semantic_id", "face") and values.ndim == 2:
        return pictures.number_picture(values)
    if channel in ("normal_world", "normal_sensor", "normal"):
        return pictures.normal_picture(values)
    if channel == "flow":
        return pictures.flow_picture(values)
    if channel in ("rgb", "albedo"):
        return values if values.dtype == np.uint8 else to_8bit(values)
    return None
