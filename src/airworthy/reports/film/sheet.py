"""The contact sheet of a film: evenly spaced frames with their times, and the path in plan view with where they were taken."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayU8
from airworthy.core.files import write_bytes
from airworthy.core.frames import rotate_inverse
from airworthy.reports.film.flight_track import FlightTrack, font

if TYPE_CHECKING:
    from airworthy.scenes import Scene
    from airworthy.scenes.viewpoints import Viewpoint

__all__ = ["contact_sheet", "label_places", "plan_view", "write_sheet"]


COLUMNS = 4
FRAME_WIDTH = 400
"""Of each frame [px]."""
GAP, EDGE = 14, 36
_CAPTION, _HEAD = 30, 74
PAGE, INK, MUTED, FLOWN = (255, 255, 255), (27, 36, 49), (95, 105, 123), (255, 92, 40)
_FINER = 2
MARK = 11
"""Radius of a numbered mark [px]."""
_DOT = 4
"""Radius of the dot that stands where a number has been moved away from [px]."""
_RINGS, _TURNS = 12, 24
"""How far a number is moved at most, in steps of a mark's diameter, and the directions that are tried at each step."""


@dataclass(frozen=True)
class _Cell:
    """A place on the sheet [px]."""

    x: int
    y: int
    width: int
    height: int


def write_sheet(
    path: str | Path, stills: Sequence[ArrayU8], times: Array, track: FlightTrack, scene: Scene, vehicle: str
) -> Path:
    """Write the contact sheet of a film as a PNG, whole or not at all; see `contact_sheet`.

    Args:
        path: Of the PNG.
        stills: RGB, each (height, width, 3).
        times: Of the stills [s].
        track: The flight.
        scene: The scene, for its plan.
        vehicle: Its name.
    """
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(contact_sheet(stills, times, track, scene, vehicle)).save(buffer, "PNG", optimize=True)
    return write_bytes(path, buffer.getvalue())


def contact_sheet(stills: Sequence[ArrayU8], times: Array, track: FlightTrack, scene: Scene, vehicle: str) -> ArrayU8:
    """Return the plan and the frames on one page, (height, width, 3).

    Args:
        stills: Frames (h, w, 3) of one size.
        times: Of each [s], (k,).
        track: The flight.
        scene: The scene, for the plan.
        vehicle: Name of who flew.
    """
    from PIL import Image, ImageDraw

    high = round(FRAME_WIDTH * stills[0].shape[0] / stills[0].shape[1])
    plan, cells, size = _cells(len(stills), high)
    page = Image.new("RGB", size, PAGE)
    draw = ImageDraw.Draw(page)
    summary = _summary(track)
    room = size[0] - 3 * EDGE - draw.textlength(summary, font=font(16))
    title = shortened(f"{vehicle} in {scene.name}", lambda text: draw.textlength(text, font=font(24, True)) <= room)
    draw.text((EDGE, EDGE + 16), title, font=font(24, True), fill=INK, anchor="lm")
    draw.text((size[0] - EDGE, EDGE + 16), summary, font=font(16), fill=MUTED, anchor="rm")
    taken, _, _ = track.pose(times)
    picture = plan_view(scene, track, taken, (plan.width, plan.height))
    page.paste(Image.fromarray(picture), (plan.x, plan.y))
    text = "The path from above; numbers mark the frames"
    draw.text((plan.x, plan.y + plan.height + 8), text, font=font(15), fill=MUTED, anchor="lt")
    for number, (cell, still, time) in enumerate(zip(cells, stills, times, strict=True), 1):
        small = Image.fromarray(still).resize((cell.width, cell.height), Image.Resampling.LANCZOS)
        page.paste(small, (cell.x, cell.y))
        below = cell.y + cell.height + 8
        draw.text((cell.x, below), str(number), font=font(15, True), fill=INK, anchor="lt")
        draw.text((cell.x + cell.width, below), f"{time:.1f} s", font=font(15), fill=MUTED, anchor="rt")
    return np.asarray(page)


def shortened(text: str, fits: Callable[[str], bool]) -> str:
    """Return words that fit, with an ellipsis where their end had to go."""
    if fits(text):
        return text
    return next((cut for n in range(len(text) - 1, 0, -1) if fits(cut := text[:n].rstrip() + "\u2026")), "")


def _summary(track: FlightTrack) -> str:
    steps = np.linalg.norm(np.diff(track.position, axis=0), axis=1)
    speed = float(np.linalg.norm(track.velocity, axis=1).max())
    return f"{track.duration:.1f} s   {float(steps[~track.jumps].sum()):.1f} m   up to {speed:.1f} m/s"


def _cells(count: int, high: int) -> tuple[_Cell, list[_Cell], tuple[int, int]]:
    """Return the plan's cell, two frames wide and high, at the upper left; the frames' cells from left to right round it; the
    page.
    """
    step_x, step_y = FRAME_WIDTH + GAP, high + _CAPTION + GAP
    free = [(column, row) for row in range(2) for column in range(2, COLUMNS)]
    free += [(k % COLUMNS, 2 + k // COLUMNS) for k in range(max(0, count - len(free)))]
    top = EDGE + _HEAD - 24
    cells = [_Cell(EDGE + column * step_x, top + row * step_y, FRAME_WIDTH, high) for column, row in free[:count]]
    plan = _Cell(EDGE, top, 2 * FRAME_WIDTH + GAP, 2 * high + _CAPTION + GAP)
    rows = max(2, 1 + max(row for _, row in free[: max(count, 1)]))
    return plan, cells, (2 * EDGE + COLUMNS * step_x - GAP, top + rows * step_y - GAP + EDGE - 12)


def plan_view(scene: Scene, track: FlightTrack, marks: Array, size: tuple[int, int]) -> ArrayU8:
    """Return the scene from above without its roof, with the path and numbered marks (k, 3) on it.

    Args:
        scene: The scene.
        track: The flight.
        marks: Where frames were taken, world [m].
        size: Width and height [px].
    """
    from PIL import Image, ImageDraw

    from airworthy.geometry import RayTable
    from airworthy.optics.tone import to_8bit
    from airworthy.rendering.images import render
    from airworthy.rendering.shading import ShadingOptions
    from airworthy.scenes import SceneBatch
    from airworthy.scenes.viewpoints import roofless, view

    camera = _holding(view(scene, "top"), track.position)
    rays = RayTable(*camera.rays(*size), axis=(0.0, 0.0, 1.0))
    batch = SceneBatch(roofless(scene), 1)
    rendered = render(batch, rays, camera.position[None], camera.attitude[None], [0], ("rgb",), ShadingOptions(samples=4))
    image = Image.fromarray(_pale(to_8bit(rendered["rgb"])[0]))
    image = image.resize((_FINER * size[0], _FINER * size[1]), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(image)
    scale = _FINER / max(camera.span[0] / size[0], camera.span[1] / size[1])

    def pixels(points: Array) -> Array:
        flat = rotate_inverse(camera.attitude, points - camera.position)[:, :2]
        return np.asarray(scale * flat + 0.5 * _FINER * np.asarray(size))

    _draw_path(draw, pixels(track.position), track.jumps)
    places = pixels(marks)
    labels = label_places(places, _FINER * np.asarray(size, float), MARK * _FINER)
    shown = [number for number, label in enumerate(labels) if np.isfinite(label).all()]
    for number in shown:
        draw.line([(float(u), float(v)) for u, v in (places[number], labels[number])], fill=FLOWN, width=_FINER)
    for point in places:
        _draw_mark(draw, point)
    for number in shown:
        _draw_mark(draw, labels[number], number + 1)
    return np.asarray(image.resize(size, Image.Resampling.LANCZOS))


def _holding(camera: Viewpoint, path: Array) -> Viewpoint:
    """Return a view from above that shows the whole path too, round the same middle."""
    flat = np.abs(rotate_inverse(camera.attitude, path - camera.position))[:, :2].max(axis=0)
    span = np.maximum(camera.span, 2.1 * flat)
    return replace(camera, span=(float(span[0]), float(span[1])))


def _pale(picture: ArrayU8) -> ArrayU8:
    """Half as strong, on white: what lies under a drawing."""
    return np.rint(0.45 * picture.astype(np.float32) + 0.55 * 255.0).astype(np.uint8)


def _draw_path(draw: Any, line: Array, jumps: ArrayBool) -> None:
    cuts = [0, *(np.flatnonzero(jumps) + 1).tolist(), len(line)]
    for first, last in pairwise(cuts):
        points = [(float(u), float(v)) for u, v in line[first:last]]
        if len(points) > 1:
            draw.line(points, fill=PAGE, width=4 * _FINER, joint="curve")
            draw.line(points, fill=FLOWN, width=round(2.2 * _FINER), joint="curve")


def label_places(points: Array, size: Array, radius: float) -> Array:
    """Return middles of the numbers (k, 2) of marked points: at the point where there is room, else as near to it as there is.

    No two numbers overlap, and all lie in the picture. A number that lies on its own point comes first; the others are moved
    round, in rings of growing size, and keep off every other point as long as they can.

    Args:
        points: Where the marks are [px], (k, 2).
        size: Of the picture [px], (2,).
        radius: Of a number's ring [px].

    Returns:
        (k, 2) [px]; NaN for a number that has no room within reach.
    """
    angles = 2.0 * np.pi * np.arange(_TURNS) / _TURNS
    ring = np.stack([np.cos(angles), np.sin(angles)], 1)
    steps = np.concatenate([np.zeros((1, 2)), *(2.0 * radius * (1.0 + 0.5 * k) * ring for k in range(2 * _RINGS))])
    found = np.full(points.shape, np.nan)
    done = np.zeros(len(points), bool)

    def place(number: int, tried: Array, others: Array) -> None:
        free = ((tried >= radius) & (tried <= size - radius)).all(1)
        for taken, room in ((found[done], 2.0 * radius), (others, radius)):
            free &= (np.linalg.norm(tried[:, None] - taken[None], axis=-1) >= room - 1e-9).all(1)
        if free.any():
            found[number], done[number] = tried[int(np.argmax(free))], True

    for number, point in enumerate(points):
        place(number, point[None], points[:0])
    for others in (points, points[:0]):
        for left in np.flatnonzero(~done).tolist():
            place(left, np.clip(points[left], radius, size - radius) + steps, others)
    return found


def _draw_mark(draw: Any, point: Array, number: int = 0) -> None:
    """Draw a dot, or a ring with a number in it."""
    radius = (MARK if number else _DOT) * _FINER
    u, v = float(point[0]), float(point[1])
    draw.ellipse((u - radius, v - radius, u + radius, v + radius), fill=PAGE, outline=FLOWN, width=round(1.5 * _FINER))
    if number:
        draw.text((u, v), str(number), font=font(round(1.1 * radius), True), fill=INK, anchor="mm")
