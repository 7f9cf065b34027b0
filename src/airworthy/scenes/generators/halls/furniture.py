"""The shell of a flight hall: floor, walls with windows, ceiling with beams and lights, and the rail of tracking cameras."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from airworthy.scenes.generators.halls.builder import Builder, foliage, turned_profile

# -----------------------------------------------------------------------------------------------------------------------------
# Furniture of the flight halls. Every piece is built at the builder's origin, facing its x axis, and stands on the floor.


def gate(b: Builder, opening: tuple[float, float], height: float, bar: float = 0.09) -> None:
    """Add a square frame on two feet; flown along x.

    Args:
        b: The collection.
        opening: Width and height [m].
        height: Of the opening's centre above the floor [m].
        bar: Thickness of the frame [m].
    """
    frame = b.material("gate_frame", base_color=(0.90, 0.28, 0.05, 1.0), roughness=0.45)
    stand = b.material("dark_metal", base_color=(0.05, 0.05, 0.06, 1.0), metallic=0.6, roughness=0.5)
    light = b.material("gate_light", base_color=(1.0, 1.0, 1.0, 1.0), emissive=(0.2, 1.6, 2.2))
    width, tall = opening
    side, up = 0.5 * (width + bar), 0.5 * (tall + bar)
    for sign in (-1.0, 1.0):
        b.box((0.0, sign * side, height), (bar, bar, tall), frame, "gate")
        b.box((0.0, 0.0, height + sign * up), (bar, width + 2 * bar, bar), frame, "gate")
        b.box((-0.5 * bar - 0.004, sign * side, height), (0.008, 0.02, tall), light, "gate")
        b.box((-0.5 * bar - 0.004, 0.0, height + sign * up), (0.008, width, 0.02), light, "gate")
        post = height - up - 0.5 * bar
        b.box((0.0, sign * side, 0.5 * post), (0.05, 0.05, post), stand, "gate")
        b.box((0.0, sign * side, 0.015), (0.6, 0.08, 0.03), stand, "gate")


def ladder(b: Builder, apex: float = 2.1, spread: float = 1.7, width: float = 0.5) -> None:
    """Add a double ladder that straddles the path along x: its halves lean to either side.

    Args:
        b: The collection.
        apex: Height of its top [m].
        spread: Distance of the feet of its halves, along y [m].
        width: Of the rungs, along x [m].
    """
    rail = b.material("aluminium", "metal", texture_size=0.5, metallic=0.9, roughness=0.35)
    tread = b.material("tread", base_color=(0.10, 0.10, 0.11, 1.0), roughness=0.9)
    cap = b.material("ladder_cap", base_color=(0.85, 0.10, 0.08, 1.0), roughness=0.5)
    steps = 6
    for side in (-1.0, 1.0):
        for end in (-1.0, 1.0):
            x = 0.5 * end * width
            b.beam((1.15 * x, side * 0.5 * spread, 0.0), (0.8 * x, side * 0.07, apex), 0.065, 0.028, rail, "ladder")
            b.box((1.15 * x, side * 0.5 * spread, 0.02), (0.09, 0.06, 0.04), tread, "ladder")
        for step in range(1, steps + 1):
            share = step / (steps + 0.6)
            y, z = side * ((1 - share) * 0.5 * spread + share * 0.07), share * apex
            b.box((0.0, y, z), (width * (1.15 - 0.35 * share) - 0.03, 0.09, 0.03), tread, "ladder")
    b.box((0.0, 0.0, apex + 0.02), (0.8 * width + 0.06, 0.26, 0.05), cap, "ladder")


def monitor(b: Builder, height: float = 1.0, diagonal: float = 1.1, seed: int = 0) -> None:
    """Add a screen on a stand with a foot, facing +x.

    Args:
        b: The collection.
        height: Of its centre above the floor [m].
        diagonal: Of the screen [m].
        seed: Of the picture on it.
    """
    body = b.material("monitor_body", base_color=(0.03, 0.03, 0.035, 1.0), roughness=0.35)
    picture = b.material(f"screen_{seed}", "screen", seed=seed, emissive=(0.9, 0.9, 0.9), emissive_map=_texture("screen", seed))
    # Sides of a 16:9 screen.
    wide, tall = round(0.872 * diagonal, 3), round(0.49 * diagonal, 3)
    b.box((-0.03, 0.0, height), (0.05, wide + 0.03, tall + 0.03), body, "monitor")
    b.wrapped((0.0, 0.0, height), (0.012, wide, tall), picture, "monitor")
    b.upright((-0.09, 0.0, 0.03), 0.03, height - 0.03, body, "monitor")
    b.box((-0.06, 0.0, height), (0.04, 0.2, 0.2), body, "monitor")
    b.box((-0.09, 0.0, 0.02), (0.5, 0.6, 0.04), body, "monitor")


def _texture(kind: str, seed: int) -> str:
    return f"{kind}_{seed}" if seed else kind


def pillar(b: Builder, height: float, side: float = 0.35) -> None:
    """Add a square column with plinth, capital and a warning band.

    Args:
        b: The collection.
        height: [m].
        side: Of the section [m].
    """
    stone = b.material("pillar_concrete", "concrete", seed=3, texture_size=1.2, roughness=0.85)
    band = b.material("warning", "stripes", texture_size=0.4, roughness=0.6)
    b.box((0.0, 0.0, 0.5 * height), (side, side, height), stone, "pillar")
    b.box((0.0, 0.0, 0.06), (side + 0.08, side + 0.08, 0.12), stone, "pillar")
    # A little wider than the column: two faces in one plane would flicker.
    b.box((0.0, 0.0, 0.55), (side + 0.012, side + 0.012, 0.22), band, "pillar")


def padded_pillar(b: Builder, height: float, radius: float = 0.17) -> None:
    """Add a round column wrapped in blue padding up to 1.8 m.

    Args:
        b: The collection.
        height: [m].
        radius: Padding included [m].
    """
    stone = b.material("pillar_paint", base_color=(0.80, 0.80, 0.78, 1.0), roughness=0.7)
    pad = b.material("padding", "fabric", texture_size=0.6, base_color=(0.10, 0.22, 0.55, 1.0), roughness=0.9)
    strap = b.material("strap", base_color=(0.04, 0.04, 0.05, 1.0), roughness=0.8)
    b.upright((0.0, 0.0, 0.0), radius - 0.03, height, stone, "pillar")
    b.upright((0.0, 0.0, 0.0), radius, 1.8, pad, "pillar")
    for z in (0.25, 0.9, 1.55):
        b.upright((0.0, 0.0, z), radius + 0.006, 0.05, strap, "pillar")


def table(b: Builder, size: tuple[float, float, float] = (0.8, 1.6, 0.74)) -> None:
    """Add a workbench: wooden top, steel legs, a shelf below."""
    top = b.material("table_top", "wood", texture_size=1.0, roughness=0.5)
    leg = b.material("table_leg", base_color=(0.30, 0.32, 0.34, 1.0), metallic=0.7, roughness=0.5)
    deep, wide, high = size
    b.box((0.0, 0.0, high - 0.02), (deep, wide, 0.04), top)
    for x in (-1.0, 1.0):
        for y in (-1.0, 1.0):
            b.box((x * (0.5 * deep - 0.05), y * (0.5 * wide - 0.05), 0.5 * (high - 0.04)), (0.05, 0.05, high - 0.04), leg)
    b.box((0.0, 0.0, 0.22), (deep - 0.12, wide - 0.12, 0.025), top)


def chair(b: Builder, color: tuple[float, float, float] = (0.10, 0.12, 0.15)) -> None:
    """Add an office chair on five castors."""
    cloth = b.material(f"seat_{_color_key(color)}", "fabric", texture_size=0.3, base_color=(*color, 1.0), roughness=0.95)
    metal = b.material("dark_metal", base_color=(0.05, 0.05, 0.06, 1.0), metallic=0.6, roughness=0.5)
    b.box((0.0, 0.0, 0.47), (0.48, 0.48, 0.09), cloth)
    b.box((-0.25, 0.0, 0.80), (0.07, 0.44, 0.55), cloth)
    b.upright((0.0, 0.0, 0.10), 0.03, 0.34, metal)
    for k in range(5):
        angle = 2.0 * math.pi * k / 5.0
        x, y = 0.28 * math.cos(angle), 0.28 * math.sin(angle)
        b.beam((0.0, 0.0, 0.10), (x, y, 0.07), 0.05, 0.04, metal)
        b.ball((x, y, 0.03), 0.03, metal)


def _color_key(color: tuple[float, float, float]) -> str:
    return "_".join(f"{round(100 * value):02d}" for value in color)


def shelf(b: Builder, seed: int, size: tuple[float, float, float] = (0.45, 1.5, 2.0), levels: int = 5) -> None:
    """Add an open rack with boxes and bins on it; its back is at -x.

    Args:
        b: The collection.
        seed: Of what lies on it.
        size: Depth along x, width along y, height [m].
        levels: Boards.
    """
    # Its own generator: what lies on one rack does not depend on what else is built.
    rng = np.random.default_rng([11, seed])
    frame = b.material("rack", base_color=(0.07, 0.16, 0.36, 1.0), metallic=0.2, roughness=0.5)
    board = b.material("rack_board", "plywood", texture_size=1.0)
    deep, wide, high = size
    for x in (-1.0, 1.0):
        for y in (-1.0, 1.0):
            b.box((x * (0.5 * deep - 0.02), y * (0.5 * wide - 0.02), 0.5 * high), (0.04, 0.04, high), frame)
    pitch = (high - 0.15) / (levels - 1)
    for level in range(levels):
        z = 0.1 + level * pitch
        b.box((0.0, 0.0, z), (deep - 0.02, wide - 0.06, 0.03), board)
        y = -0.5 * wide + 0.08
        while y < 0.5 * wide - 0.2:
            w, h = float(rng.choice([0.18, 0.24, 0.30, 0.36])), float(rng.choice([0.14, 0.20, 0.26]))
            if y + w > 0.5 * wide - 0.06:
                break
            if rng.random() < 0.8 and (level < levels - 1 or rng.random() < 0.5):
                _stored(b, rng, (float(rng.uniform(-0.03, 0.03)), y + 0.5 * w, z + 0.015), w, h, deep)
            y += w + float(rng.choice([0.02, 0.05, 0.12]))


def _stored(
    b: Builder, rng: np.random.Generator, base: tuple[float, float, float], width: float, height: float, deep: float
) -> None:
    """Add one thing on a shelf: a cardboard box or a plastic bin."""
    x, y, z = base
    if rng.random() < 0.5:
        box = b.material("cardboard", "cardboard", roughness=0.9)
        b.wrapped((x, y, z + 0.5 * height), (round(deep - 0.1, 3), width, height), box)
        return
    colors = ((0.55, 0.07, 0.05), (0.05, 0.22, 0.50), (0.75, 0.50, 0.05), (0.06, 0.33, 0.14), (0.35, 0.36, 0.38))
    k = int(rng.integers(len(colors)))
    bin_color = b.material(f"bin_{k}", base_color=(*colors[k], 1.0), roughness=0.4)
    b.box((x, y, z + 0.5 * height), (deep - 0.1, width, height), bin_color)
    b.box(
        (x + 0.5 * deep - 0.048, y, z + 0.6 * height),
        (0.004, 0.6 * width, 0.3 * height),
        b.material("label", base_color=(0.9, 0.9, 0.86, 1.0)),
    )


def crate(b: Builder, side: float, z: float = 0.0, yaw: float = 0.0) -> None:
    """Add a wooden crate.

    Args:
        b: The collection.
        side: [m].
        z: Of its underside, above the floor [m].
        yaw: [rad].
    """
    b.wrapped((0.0, 0.0, z + 0.5 * side), (side, side, side), b.material("crate", "crate", roughness=0.8), "object", yaw)


def carton(b: Builder, size: tuple[float, float, float], z: float = 0.0, yaw: float = 0.0) -> None:
    """Add a cardboard box.

    Args:
        b: The collection.
        size: Along x, y, z [m].
        z: Of its underside, above the floor [m].
        yaw: [rad].
    """
    material = b.material("cardboard", "cardboard", roughness=0.9)
    b.wrapped((0.0, 0.0, z + 0.5 * size[2]), size, material, "object", yaw)


def drum(b: Builder, color: tuple[float, float, float] = (0.06, 0.25, 0.42)) -> None:
    """Add a steel drum of 200 litres."""
    profile = [(0.0, 0.0), (0.28, 0.0), (0.29, 0.02), (0.28, 0.04), (0.28, 0.28), (0.295, 0.30), (0.28, 0.32), (0.28, 0.57)]
    profile += [(0.295, 0.59), (0.28, 0.61), (0.28, 0.84), (0.29, 0.86), (0.28, 0.88), (0.265, 0.865), (0.0, 0.865)]
    paint = b.material(f"drum_{_color_key(color)}", base_color=(*color, 1.0), metallic=0.3, roughness=0.45)
    b.mesh("drum", turned_profile(profile, 32), (0.0, 0.0, 0.0), paint, "object")


def cone(b: Builder) -> None:
    """Add a traffic cone."""
    orange = b.material("cone", base_color=(0.95, 0.26, 0.03, 1.0), roughness=0.5)
    white = b.material("cone_band", base_color=(0.92, 0.92, 0.92, 1.0), roughness=0.4)
    b.box((0.0, 0.0, 0.015), (0.34, 0.34, 0.03), orange, "object")
    b.mesh("cone", turned_profile([(0.13, 0.03), (0.035, 0.62), (0.0, 0.62)], 24), (0.0, 0.0, 0.0), orange, "object")
    b.mesh("cone_band", turned_profile([(0.099, 0.215), (0.071, 0.40)], 24), (0.0, 0.0, 0.0), white, "object", collide=False)


def plant(b: Builder, seed: int, height: float = 1.3) -> None:
    """Add a potted plant.

    Args:
        b: The collection.
        seed: Of its leaves.
        height: [m].
    """
    pot = b.material("pot", base_color=(0.60, 0.30, 0.18, 1.0), roughness=0.8)
    soil = b.material("soil", "soil", texture_size=0.4)
    leaf = b.material("leaf", "leaves", texture_size=0.0, roughness=0.6)
    stem = b.material("stem", "bark", texture_size=0.4)
    b.mesh("pot", turned_profile([(0.0, 0.0), (0.15, 0.0), (0.21, 0.34), (0.19, 0.34), (0.18, 0.30)], 28), (0.0, 0.0, 0.0), pot)
    b.upright((0.0, 0.0, 0.28), 0.18, 0.02, soil)
    b.rod((0.0, 0.0, 0.3), (0.02, 0.01, height - 0.25), 0.018, stem)
    for k, (z, radius) in enumerate(((height - 0.38, 0.30), (height - 0.12, 0.24))):
        b.mesh(f"leaves_{seed}_{k}", foliage(radius, 110, 0.2, 2 * seed + k), (0.02, 0.01, z), leaf)


def whiteboard(b: Builder, seed: int = 0) -> None:
    """Add a whiteboard on wheels, facing +x."""
    face = b.material(f"whiteboard_{seed}", "whiteboard", seed=seed, roughness=0.25)
    metal = b.material("aluminium", "metal", texture_size=0.5, metallic=0.9, roughness=0.35)
    b.wrapped((0.0, 0.0, 1.35), (0.02, 1.7, 1.05), face)
    for sign in (-1.0, 1.0):
        b.box((0.0, 0.875 * sign, 0.98), (0.05, 0.05, 1.86), metal)
        b.box((0.0, 0.875 * sign, 0.04), (0.6, 0.06, 0.06), metal)
        b.box((0.0, 0.0, 1.35 + 0.54 * sign), (0.04, 1.7, 0.03), metal)
    b.box((0.05, 0.0, 0.80), (0.08, 1.2, 0.02), metal)


def tripod_light(b: Builder, height: float = 2.1) -> None:
    """Add a studio lamp on a tripod; lights along +x, downwards."""
    metal = b.material("dark_metal", base_color=(0.05, 0.05, 0.06, 1.0), metallic=0.6, roughness=0.5)
    lamp = b.material("lamp", base_color=(1.0, 1.0, 1.0, 1.0), emissive=(6.0, 5.6, 5.0))
    b.upright((0.0, 0.0, 0.5), 0.018, height - 0.5, metal)
    for k in range(3):
        angle = 2.0 * math.pi * (k + 0.5) / 3.0
        b.rod((0.0, 0.0, 0.62), (0.45 * math.cos(angle), 0.45 * math.sin(angle), 0.0), 0.012, metal)
    b.box((0.04, 0.0, height), (0.12, 0.42, 0.30), metal)
    b.box((0.105, 0.0, height), (0.01, 0.36, 0.24), lamp)


def tracking_camera(b: Builder, z: float, yaw: float) -> None:
    """Add a motion-capture camera that hangs under a rail, looking along a heading and down.

    Args:
        b: The collection.
        z: Height of the rail [m].
        yaw: Heading in which it looks [rad].
    """
    body = b.material("camera_body", base_color=(0.03, 0.03, 0.035, 1.0), roughness=0.4)
    ring = b.material("camera_ring", base_color=(0.3, 0.0, 0.0, 1.0), emissive=(1.8, 0.08, 0.05))
    c, s = math.cos(yaw), math.sin(yaw)
    b.upright((0.0, 0.0, z - 0.10), 0.015, 0.10, body)
    b.ball((0.0, 0.0, z - 0.15), 0.065, body)
    nose, tip = (0.03 * c, 0.03 * s, z - 0.17), (0.09 * c, 0.09 * s, z - 0.21)
    b.rod(nose, tip, 0.045, body)
    b.rod(tip, (0.095 * c, 0.095 * s, z - 0.2135), 0.032, ring)


def poster(b: Builder, z: float, size: tuple[float, float], kind: str, seed: int) -> None:
    """Add a picture on a wall, facing +x.

    Args:
        b: The collection.
        z: Height of its centre [m].
        size: Width and height [m].
        kind: Of `procedural` picture.
        seed: Of the picture.
    """
    b.wrapped((0.012, 0.0, z), (0.012, *size), b.material(f"{kind}_{seed}", kind, seed=seed, roughness=0.5), "wall")


def extinguisher(b: Builder) -> None:
    """Hang one on a bracket at a wall at -x."""
    red = b.material("extinguisher", base_color=(0.75, 0.03, 0.03, 1.0), roughness=0.3)
    black = b.material("strap", base_color=(0.04, 0.04, 0.05, 1.0), roughness=0.8)
    profile = [(0.0, 0.0), (0.075, 0.0), (0.08, 0.02), (0.08, 0.40), (0.06, 0.46), (0.025, 0.49), (0.025, 0.52), (0.0, 0.52)]
    b.mesh("extinguisher", turned_profile(profile), (0.1, 0.0, 0.9), red, "wall")
    b.box((0.1, 0.0, 1.43), (0.12, 0.03, 0.05), black, "wall")


# -----------------------------------------------------------------------------------------------------------------------------

THICKNESS = 0.2
"""Of walls, floor and ceiling [m]."""


@dataclass(frozen=True)
class HallRoom:
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


def build_room(b: Builder, room: HallRoom) -> None:
    """Build everything but the furniture."""
    _floor(b, room)
    _walls(b, room)
    _ceiling(b, room)
    _rail(b, room)


def _floor(b: Builder, room: HallRoom) -> None:
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


def _walls(b: Builder, room: HallRoom) -> None:
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


def _window_wall(b: Builder, room: HallRoom, paint: str) -> None:
    """Add the wall at larger y: sill, lintel, piers, and frames with glass that is seen through but not flown through."""
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


def _ceiling(b: Builder, room: HallRoom) -> None:
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


def _rail(b: Builder, room: HallRoom) -> None:
    """Add a tube around the hall under the ceiling, with tracking cameras looking inwards."""
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
