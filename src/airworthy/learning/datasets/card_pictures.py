"""Pictures of a data set's card: all roll-outs from above, and what was seen."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayInt, ArrayU8
from airworthy.geometry import RayTable
from airworthy.learning.datasets.reader import ExpertDataset, ImageStack
from airworthy.optics.tone import to_8bit
from airworthy.rendering.images import render
from airworthy.rendering.shading import ShadingOptions
from airworthy.reports.film.flight_track import font
from airworthy.scenes import Scene, SceneBatch
from airworthy.scenes.viewpoints import Viewpoint, look_at, roofless
from airworthy.trajectories import course

__all__ = ["data_uri", "plan_picture", "sheet", "spread_pairs"]

WIDTH = 1080
# Ours: drawn at twice the size and reduced, which smooths the lines.
_FINER = 2
_ROOM = 0.8
"""Shown round the roll-outs [m]; ours, so that paths do not end at the frame."""
# The report's palette in numbers: Pillow knows no CSS variables.
PAGE, INK, FLOWN, GRID = (255, 255, 255), (27, 36, 49), (43, 108, 176), (222, 226, 232)
MANY = (255, 92, 40)


def data_uri(picture: ArrayU8, quality: int = 88) -> str:
    """Return a picture as a JPEG inside a page."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "JPEG", quality=quality, subsampling=0)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()


def plan_picture(dataset: ExpertDataset, name: str, scene: Scene | None, width: int = WIDTH) -> ArrayU8:
    """Return every roll-out of a course that was kept, from above, over the scene without its roof or over a grid of metres.

    Args:
        dataset: The roll-outs.
        name: Of the course.
        scene: Scene that is drawn below; None: a grid.
        width: Of the picture [px].
    """
    from PIL import Image, ImageDraw

    paths = dataset.of_rollouts(dataset.true[:, 1:4])[dataset.course == name]
    line = course(name).trajectory()
    wanted = line.sample(np.linspace(0.0, line.duration, 400)).position
    points = np.concatenate([paths.reshape(-1, 3), wanted])
    low, high = points.min(axis=0) - _ROOM, points.max(axis=0) + _ROOM
    scale = width / (high[0] - low[0])
    size = (width, int(np.clip(round(scale * (high[1] - low[1])), 120, 1400)))
    base = _from_above(scene, low, high, size) if scene is not None else np.full((size[1], size[0], 3), PAGE[0], np.uint8)
    image = Image.fromarray(base).resize((_FINER * size[0], _FINER * size[1]), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(image, "RGBA")

    def pixels(path: Array) -> list[tuple[float, float]]:
        u, v = _FINER * scale * (path[:, 0] - low[0]), _FINER * (size[1] - scale * (path[:, 1] - low[1]))
        return list(zip(u.tolist(), v.tolist(), strict=True))

    _draw_grid(draw, low, high, pixels)
    # The more paths, the fainter each: their density shows where flights were.
    strength = int(np.clip(30000 / max(len(paths), 1), 10, 200))
    for path in paths:
        draw.line(pixels(path), fill=(*(MANY if scene is not None else FLOWN), strength), width=_FINER)
    draw.line(pixels(wanted), fill=(*PAGE, 255), width=4 * _FINER, joint="curve")
    draw.line(pixels(wanted), fill=(*INK, 255), width=2 * _FINER, joint="curve")
    return np.asarray(image.resize(size, Image.Resampling.LANCZOS))


def _from_above(scene: Scene, low: Array, high: Array, size: tuple[int, int]) -> ArrayU8:
    """Return the scene between two corners, pale, x to the right."""
    top = float(max(scene.bounds.upper[2], high[2])) + 1.0
    above = np.array([0.5 * (low[0] + high[0]), 0.5 * (low[1] + high[1]), top])
    camera = Viewpoint(above, look_at(above, above - [0.0, 0.0, 1.0]), span=(float(high[0] - low[0]), float(high[1] - low[1])))
    rays = RayTable(*camera.rays(*size), axis=(0.0, 0.0, 1.0))
    where = (SceneBatch(roofless(scene), 1), rays, camera.position[None], camera.attitude[None])
    linear = render(*where, [0], ("rgb",), ShadingOptions(samples=2))["rgb"]
    pale: ArrayU8 = np.rint(0.45 * to_8bit(linear)[0].astype(np.float32) + 0.55 * 255.0).astype(np.uint8)
    return pale


def _draw_grid(draw: Any, low: Array, high: Array, pixels: Any) -> None:
    """Lines every one, two or five metres, with their numbers at the lower and left edge."""
    # At most 16 lines: more would hide the paths.
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 1000) if (high[0] - low[0]) / s <= 16)
    lettering = font(13 * _FINER)
    for axis in (0, 1):
        for k in range(int(np.ceil(low[axis] / step)), int(np.floor(high[axis] / step)) + 1):
            ends = np.array([[low[0], low[1], 0.0], [high[0], high[1], 0.0]])
            ends[:, axis] = k * step
            line = pixels(ends)
            draw.line(line, fill=(*INK, 26), width=1)
            u, v = line[0]
            at, anchor = ((u, v - 4), "mb") if axis == 0 else ((u + 6, v), "lm")
            draw.text(at, f"{k * step} m" if k == 0 else f"{k * step}", font=lettering, fill=(*INK, 190), anchor=anchor)


def spread_pairs(dataset: ExpertDataset, count: int, courses: Sequence[str] = ()) -> ArrayInt:
    """Return pairs spread evenly over the time of courses (none named: all), each of another roll-out, as far as there are so
    many.

    Args:
        dataset: The roll-outs.
        count: Pairs wanted.
        courses: Names of those that count; none: all.
    """
    names = tuple(courses) or dataset.config.courses
    share = [count // len(names) + (k < count % len(names)) for k in range(len(names))]
    return np.concatenate([_spread(dataset, name, wanted) for name, wanted in zip(names, share, strict=True)])


def _spread(dataset: ExpertDataset, name: str, count: int) -> ArrayInt:
    rollouts = np.flatnonzero(dataset.course == name)
    if not len(rollouts):
        return np.zeros(0, np.int64)
    by_time = rollouts[np.argsort(dataset.start[rollouts], kind="stable")]
    picked = by_time[np.round(np.linspace(0, len(by_time) - 1, min(count, len(by_time)))).astype(int)]
    ticks = dataset.config.ticks
    # Seven is prime to the usual numbers of ticks: neighbours are shown at different ticks of their roll-outs.
    chosen = picked * ticks + (7 * np.arange(len(picked))) % ticks
    return np.asarray(chosen[np.argsort(dataset.true[chosen, 0], kind="stable")], np.int64)


def sheet(images: ImageStack, pairs: ArrayInt, labels: Sequence[str], columns: int, width: int = 2 * WIDTH) -> ArrayU8:
    """Return images beside and below each other, each with a word on it.

    Args:
        images: Of the data set.
        pairs: Which of them, (k,).
        labels: One per pair.
        columns: Images beside each other.
        width: Of one image on the sheet [px].
    """
    from PIL import Image, ImageDraw

    height, wide = images.shape[1:3]
    gap = 8
    cell = (width - (columns - 1) * gap) // columns
    size = (cell, max(1, round(cell * height / wide)))
    rows = -(-len(pairs) // columns)
    page = Image.new("RGB", (width, rows * (size[1] + gap) - gap), PAGE)
    draw = ImageDraw.Draw(page, "RGBA")
    letters = font(max(12, cell // 14))
    for k, (index, label) in enumerate(zip(pairs.tolist(), labels, strict=True)):
        x, y = (k % columns) * (cell + gap), (k // columns) * (size[1] + gap)
        page.paste(Image.fromarray(images[index]).resize(size, Image.Resampling.BICUBIC), (x, y))
        box = draw.textbbox((x + 10, y + size[1] - 8), label, font=letters, anchor="lb")
        draw.rectangle((box[0] - 6, box[1] - 4, box[2] + 6, box[3] + 4), fill=(0, 0, 0, 120))
        draw.text((x + 10, y + size[1] - 8), label, font=letters, fill=(255, 255, 255, 255), anchor="lb")
    return np.asarray(page)
