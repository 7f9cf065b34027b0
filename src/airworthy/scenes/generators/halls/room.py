"""The shell of a flight hall: floor, walls with windows, ceiling with beams and lights, and the rail of tracking cameras."""

from __future__ import annotations

import math
from dataclasses import dataclass

from airworthy.scenes.generators.halls.builder import Builder
from airworthy.scenes.generators.halls.furniture import tracking_camera

THICKNESS = 0.2
"""Of walls, floor and ceiling [m]."""


@dataclass(frozen=True)
class Room:
    """Inner faces of a rectangular hall [m]; the floor is z = 0."""

    x: tuple[float, float]
    y: tuple[float, float]
    height: float
    wall: str = "plaster"
    """Texture of the walls."""
    floor: str = "epoxy"
    mats: tuple[float, float, float, float] | None = None
    """x0, y0, x1, y1 of the area laid out with foam mats."""
    window_sill: float = 1.2
    window_top: float = 3.2
    window_count: int = 5
    """In the wall at larger y; 0: none."""


def build_room(b: Builder, room: Room) -> None:
    """Everything but the furniture."""
    _floor(b, room)
    _walls(b, room)
    _ceiling(b, room)
    _rail(b, room)


def _floor(b: Builder, room: Room) -> None:
    (x0, x1), (y0, y1) = room.x, room.y
    floor = b.material("floor", room.floor, texture_size=3.0, roughness=0.45)
    b.box(_middle(x0, x1, y0, y1, -0.5 * THICKNESS), (x1 - x0 + 0.4, y1 - y0 + 0.4, THICKNESS), floor, "ground", name="floor")
    outside = b.material("lawn", "grass", texture_size=4.0, roughness=1.0)
    b.box(_middle(x0, x1, y0, y1, -0.35), (60.0, 60.0, 0.1), outside, "ground", name="outside", collide=False)
    if room.mats is not None:
        mx0, my0, mx1, my1 = room.mats
        mats = b.material("mats", "foam", texture_size=2.0, roughness=0.95)
        b.box(_middle(mx0, mx1, my0, my1, 0.005), (mx1 - mx0, my1 - my0, 0.01), mats, "ground", name="mats")


def _middle(x0: float, x1: float, y0: float, y1: float, z: float) -> tuple[float, float, float]:
    return (0.5 * (x0 + x1), 0.5 * (y0 + y1), z)


def _walls(b: Builder, room: Room) -> None:
    (x0, x1), (y0, y1), height = room.x, room.y, room.height
    paint = b.material("wall", room.wall, texture_size=2.4, roughness=0.9)
    accent = b.material("wall_accent", "plaster", seed=5, base_color=(0.25, 0.42, 0.55, 1.0), texture_size=2.4, roughness=0.9)
    skirting = b.material("skirting", base_color=(0.12, 0.12, 0.13, 1.0), roughness=0.6)
    long, wide, half = x1 - x0, y1 - y0, 0.5 * THICKNESS
    b.box(
        (x0 - half, 0.5 * (y0 + y1), 0.5 * height),
        (THICKNESS, wide + 2 * THICKNESS, height),
        accent,
        "back_wall",
        name="back_wall",
    )
    b.box(
        (x1 + half, 0.5 * (y0 + y1), 0.5 * height),
        (THICKNESS, wide + 2 * THICKNESS, height),
        paint,
        "front_wall",
        name="front_wall",
    )
    b.box((0.5 * (x0 + x1), y0 - half, 0.5 * height), (long, THICKNESS, height), paint, "right_wall", name="right_wall")
    _window_wall(b, room, paint)
    for y in (y0 + 0.01, y1 - 0.01):
        b.box((0.5 * (x0 + x1), y, 0.05), (long, 0.02, 0.10), skirting, "wall")
    for x in (x0 + 0.01, x1 - 0.01):
        b.box((x, 0.5 * (y0 + y1), 0.05), (0.02, wide, 0.10), skirting, "wall")


def _window_wall(b: Builder, room: Room, paint: str) -> None:
    """The wall at larger y: sill, lintel, piers, and frames with glass that is seen through but not flown through."""
    (x0, x1), y, count = room.x, room.y[1] + 0.5 * THICKNESS, room.window_count
    long, center = x1 - x0, 0.5 * (x0 + x1)
    if not count:
        b.box((center, y, 0.5 * room.height), (long, THICKNESS, room.height), paint, "left_wall", name="left_wall")
        return
    sill, top = room.window_sill, room.window_top
    b.box((center, y, 0.5 * sill), (long, THICKNESS, sill), paint, "left_wall", name="left_wall")
    b.box((center, y, 0.5 * (top + room.height)), (long, THICKNESS, room.height - top), paint, "left_wall")
    frame = b.material("window_frame", base_color=(0.85, 0.86, 0.88, 1.0), roughness=0.4)
    board = b.material("sill", "wood", texture_size=1.0, roughness=0.4)
    pitch = long / count
    pier, tall, middle = 0.22 * pitch, top - sill, 0.5 * (sill + top)
    for k in range(count + 1):
        width = pier if 0 < k < count else 0.5 * pier
        x = x0 + k * pitch + (0.25 * pier if k == 0 else -0.25 * pier if k == count else 0.0)
        b.box((x, y, middle), (width, THICKNESS, tall), paint, "left_wall")
    for k in range(count):
        x, glass = x0 + (k + 0.5) * pitch, pitch - pier
        for offset in (-0.5 * glass + 0.03, 0.0, 0.5 * glass - 0.03):
            b.box((x + offset, y, middle), (0.06, 0.07, tall), frame, "wall")
        for z in (sill + 0.03, middle + 0.2 * tall, top - 0.03):
            b.box((x, y, z), (glass, 0.07, 0.06), frame, "wall")
        b.box((x, y - 0.16, sill - 0.02), (glass + 0.1, 0.14, 0.04), board, "wall")
        b.box((x, y, middle), (glass, 0.02, tall), frame, "wall", visible=False, name=f"glass_{k}")


def _ceiling(b: Builder, room: Room) -> None:
    (x0, x1), (y0, y1), height = room.x, room.y, room.height
    panel = b.material("ceiling", "ceiling", texture_size=1.2, roughness=0.95)
    steel = b.material("steel", base_color=(0.55, 0.57, 0.60, 1.0), metallic=0.5, roughness=0.5)
    tube = b.material("light_panel", base_color=(1.0, 1.0, 1.0, 1.0), emissive=(5.0, 4.9, 4.6))
    long, wide = x1 - x0, y1 - y0
    b.box(
        _middle(x0, x1, y0, y1, height + 0.5 * THICKNESS),
        (long + 0.4, wide + 0.4, THICKNESS),
        panel,
        "top_wall",
        name="ceiling",
    )
    beams = max(2, round(long / 3.0))
    for k in range(beams):
        x = x0 + (k + 0.5) * long / beams
        b.box((x, 0.5 * (y0 + y1), height - 0.14), (0.12, wide, 0.02), steel, "top_wall")
        b.box((x, 0.5 * (y0 + y1), height - 0.02), (0.12, wide, 0.02), steel, "top_wall")
        b.box((x, 0.5 * (y0 + y1), height - 0.08), (0.012, wide, 0.12), steel, "top_wall")
    rows = max(2, round(wide / 4.0))
    columns = max(2, round(long / 4.5))
    for i in range(columns):
        for j in range(rows):
            x, y = x0 + (i + 0.5) * long / columns, y0 + (j + 0.5) * wide / rows
            b.box((x, y, height - 0.19), (1.24, 0.34, 0.05), steel, "top_wall")
            b.box((x, y, height - 0.218), (1.18, 0.28, 0.008), tube, "top_wall", collide=False)
    lamps = max(1, columns // 2)
    for i in range(lamps):
        for j in range(rows):
            x, y = x0 + (i + 0.5) * long / lamps, y0 + (j + 0.5) * wide / rows
            b.lamp((x, y, height - 0.3), 34.0 * (height / 4.0) ** 2)


def _rail(b: Builder, room: Room) -> None:
    """A tube around the hall under the ceiling, with tracking cameras looking inwards."""
    steel = b.material("steel", base_color=(0.55, 0.57, 0.60, 1.0), metallic=0.5, roughness=0.5)
    (x0, x1), (y0, y1) = room.x, room.y
    z, inset = room.height - 0.55, 0.25
    a, c, d, e = x0 + inset, x1 - inset, y0 + inset, y1 - inset
    for start, end in (((a, d), (c, d)), ((a, e), (c, e)), ((a, d), (a, e)), ((c, d), (c, e))):
        b.rod((*start, z), (*end, z), 0.03, steel, "wall")
    center = (0.5 * (x0 + x1), 0.5 * (y0 + y1))
    spots = [(a + k * (c - a) / 4.0, y) for k in (0.5, 2.0, 3.5) for y in (d, e)] + [(a, center[1]), (c, center[1])]
    for x, y in spots:
        tracking_camera(b.at(x, y), z, math.atan2(center[1] - y, center[0] - x))
