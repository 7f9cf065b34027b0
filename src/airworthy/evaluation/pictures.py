"""Pictures a person can read of what sensors measure: distances, numbers, normals, flow and points as 8-bit RGB."""

from __future__ import annotations

import base64
import io
import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Picture = NDArray[np.uint8]
"""(height, width, 3)."""

NOTHING = np.array([22, 25, 31], np.uint8)
"""Colour of pixels that measured nothing."""


@cache
def _colormap(name: str) -> NDArray[np.uint8]:
    """256 colours, from low to high."""
    import matplotlib as mpl

    table: NDArray[Any] = mpl.colormaps[name](np.arange(256))[:, :3]
    return np.rint(255.0 * table).astype(np.uint8)


def distance_picture(metres: ArrayLike, near: float = 0.0, far: float | None = None, colors: str = "turbo_r") -> Picture:
    """Depth or range: warm is near; what measured nothing is dark.

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


def number_picture(numbers: ArrayLike) -> Picture:
    """Ids: one colour per number, neighbouring numbers far apart; negative numbers are dark."""
    values = np.asarray(numbers, np.int64)
    # Steps of the golden ratio fill the circle of hues evenly, whatever their count.
    hue = (values * 0.6180339887498949) % 1.0
    light = 0.62 + 0.33 * ((values * 0.7548776662466927) % 1.0)
    picture = np.rint(255.0 * _hsv(hue, np.full_like(hue, 0.58), light)).astype(np.uint8)
    picture[values < 0] = NOTHING
    return picture


def normal_picture(normals: ArrayLike) -> Picture:
    """Unit normals as (n + 1) / 2; NaN is dark."""
    values = np.asarray(normals, float)
    missing = ~np.isfinite(values).all(axis=-1)
    picture = np.rint(np.clip(127.5 * (np.nan_to_num(values) + 1.0), 0, 255)).astype(np.uint8)
    picture[missing] = NOTHING
    return picture


def flow_picture(flow: ArrayLike, largest: float | None = None) -> Picture:
    """Optical flow: hue is the direction, saturation the length; NaN is dark.

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


def _hsv(hue: NDArray[Any], saturation: NDArray[Any], value: NDArray[Any]) -> NDArray[Any]:
    """RGB in [0, 1] of hue, saturation and value in [0, 1]."""
    sector = (hue[..., None] * 6.0 + np.array([0.0, 4.0, 2.0])) % 6.0
    full = np.clip(np.abs(sector - 3.0) - 1.0, 0.0, 1.0)
    mixed: NDArray[Any] = value[..., None] * (1.0 - saturation[..., None] * (1.0 - full))
    return mixed


def points_picture(
    points: ArrayLike,
    values: ArrayLike,
    eye: ArrayLike,
    target: ArrayLike,
    size: tuple[int, int] = (720, 360),
    fov: float = 1.0,
) -> Picture:
    """A point cloud seen from somewhere.

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


def enlarged(picture: Picture, least: int) -> Picture:
    """The picture with whole-numbered pixels, at least this wide."""
    factor = max(1, math.ceil(least / picture.shape[1]))
    return np.repeat(np.repeat(picture, factor, axis=0), factor, axis=1)


def fitted(picture: Picture, width: int) -> Picture:
    """The picture at most this wide."""
    from PIL import Image

    if picture.shape[1] <= width:
        return picture
    height = max(1, round(picture.shape[0] * width / picture.shape[1]))
    return np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.LANCZOS))


def data_uri(picture: Picture, photo: bool = True) -> str:
    """The picture for an HTML page: JPEG for photographs, PNG where edges and colours must stay exact."""
    from PIL import Image

    buffer, image = io.BytesIO(), Image.fromarray(picture)
    if photo:
        image.save(buffer, "JPEG", quality=84, optimize=True)
    else:
        image.convert("P", palette=Image.Palette.ADAPTIVE, colors=256).save(buffer, "PNG", optimize=True)
    kind = "jpeg" if photo else "png"
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"
