"""Whole buildings: four façades and a roof, as one mesh."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from airworthy.scenes.buildings.facade import Facade
from airworthy.scenes.buildings.grammar import Piece, derived
from airworthy.scenes.buildings.patches import PatchMesh
from airworthy.scenes.buildings.relief import PAINT, ROOF, SLOTS, TRIM, WALL, FacadeRelief
from airworthy.scenes.buildings.styles import BuildingStyle, building_style, drawn_style, facade_rules
from airworthy.scenes.record import SpotLight, Vector3

__all__ = ["House", "door_lights", "drawn_house", "house_materials", "house_patches"]

SIDES = ("front", "right", "back", "left")
"""Of a house whose front looks along -y, seen from above counter-clockwise."""
_PARAPET = 0.85
_LAMP = 0.016
"""Of lamps over doors: some 630 cd, in the unit of 39.3 klx."""
_TRIM_TINT = (0.96, 0.95, 0.92)


@dataclass(frozen=True)
class House:
    """Which house."""

    size: tuple[float, float, float]
    """Along x and y, and height to the eaves [m]; its middle is the origin, its foot z = 0."""
    style: str
    seed: int = 0
    grounds: tuple[str, str, str, str] = ("door", "blank", "windows", "blank")
    """What is on the ground of front (-y), right (+x), back, left; "": that side is not built."""
    roof: float = 6.0
    """How much room there is over the eaves [m]; 0: a flat top."""
    swell: float = 0.0
    """How far its walls stand outside of its size [m]."""


def house_materials(house: House) -> tuple[str, ...]:
    """Return the surfaces of a house's mesh, in the order of its faces' numbers."""
    style = building_style(house.style)
    walls = style.wall
    wall = walls[house.seed % len(walls)]
    base = wall if style.base == style.wall[0] else style.base
    return (wall, base, style.trim, *SLOTS[3:7], style.roof, *SLOTS[8:])


def house_patches(
    house: House, relief: FacadeRelief, rng: np.random.Generator, lamps: list[tuple[float, float, float]] | None = None
) -> PatchMesh:
    """Return a house.

    Args:
        house: Which.
        relief: How deep its façades are.
        rng: Draws its colours, rooms, doors and what stands on its roof.
        lamps: Takes where lamps over its doors are, in the house's frame [m].
    """
    style = building_style(house.style)
    patches = PatchMesh()
    tint = style.tints[int(rng.random() * len(style.tints))]
    frame = style.frames[int(rng.random() * len(style.frames))]
    balconies = bool(rng.random() < style.balcony)
    (x, y, high), swell = house.size, house.swell
    hx, hy = 0.5 * x + swell, 0.5 * y + swell
    corners = [np.array(c) for c in ([-hx, -hy, 0.0], [hx, -hy, 0.0], [hx, hy, 0.0], [-hx, hy, 0.0])]
    for side in range(4):
        ground = house.grounds[side]
        if not ground:
            continue
        a, b = corners[side], corners[(side + 1) % 4]
        width = float(np.linalg.norm(b - a))
        rules = facade_rules(style, width, high, ground, balconies and side == 0)
        facade = Facade(patches, a, (b - a) / width, style, relief, tint, frame, rng)
        facade.build(derived(rules, Piece("facade", 0.0, width, 0.0, high)))
        if ground != "blank" and style.name != "curtain":
            facade.rain_pipe(width, high - style.cornice)
        if lamps is not None:
            lamps += facade.lamps
    _roof(patches, house, style, tint, (hx, hy), rng, relief)
    return patches


def _roof(
    patches: PatchMesh,
    house: House,
    style: BuildingStyle,
    tint: tuple[float, float, float],
    half: tuple[float, float],
    rng: np.random.Generator,
    relief: FacadeRelief,
) -> None:
    (hx, hy), high = half, house.size[2]
    rise = 0.62 * min(hx, hy)
    if house.roof >= rise + 1.5 and rng.random() < style.pitched and min(hx, hy) > 2.0:
        _pitched(patches, (hx, hy, high), rise, tint, relief, rng)
        return
    top = high + (_PARAPET if house.roof > 3.0 else 0.0)
    level = high - (0.03 if house.roof <= 3.0 else 0.0)
    _deck(patches, half, level)
    _rim(patches, half, level, max(top, high), tint)
    if house.roof > 3.0:
        _things(patches, half, level, rng)


def _deck(patches: PatchMesh, half: tuple[float, float], z: float) -> None:
    """Lay a flat roof in cells of a few metres."""
    hx, hy = half
    x, y = np.linspace(-hx, hx, max(int(hx), 1) + 1), np.linspace(-hy, hy, max(int(hy), 1) + 1)
    for i in range(len(x) - 1):
        for j in range(len(y) - 1):
            corners = [(x[i], y[j], z), (x[i + 1], y[j], z), (x[i + 1], y[j + 1], z), (x[i], y[j + 1], z)]
            patches.quad(np.array(corners), ROOF, (1.6, 1.6, 1.6))


def _rim(patches: PatchMesh, half: tuple[float, float], low: float, high: float, tint: tuple[float, float, float]) -> None:
    """Stand a parapet around a roof: outside as the wall, a coping on top."""
    hx, hy = half
    wide = 0.3
    ring = [np.array(c) for c in ([-hx, -hy, 0.0], [hx, -hy, 0.0], [hx, hy, 0.0], [-hx, hy, 0.0])]
    inner = [c - wide * np.sign(c) for c in ring]
    up = np.array([0.0, 0.0, 1.0])
    for k in range(4):
        a, b, c, d = ring[k], ring[(k + 1) % 4], inner[(k + 1) % 4], inner[k]
        patches.quad([a + high * up, b + high * up, c + high * up, d + high * up], TRIM, _TRIM_TINT)
        patches.quad([c + low * up, d + low * up, d + high * up, c + high * up], WALL, tint)
        if high > low + 0.2:
            patches.quad([a + low * up, b + low * up, b + high * up, a + high * up], WALL, tint)


def _pitched(
    patches: PatchMesh,
    size: tuple[float, float, float],
    rise: float,
    tint: tuple[float, float, float],
    relief: FacadeRelief,
    rng: np.random.Generator,
) -> None:
    """Stand a gabled roof, its ridge along the longer side, and chimneys."""
    hx, hy, z = size
    turned = hy > hx
    a, b = (hy, hx) if turned else (hx, hy)

    def at(s: float, t: float, h: float) -> np.ndarray:
        return np.array([-t, s, h]) if turned else np.array([s, t, h])

    over = max(relief.cornice + 0.1, 0.0)
    slope = rise / b
    low, out = z - slope * over, b + over
    cells = np.linspace(-a, a, max(int(a), 1) + 1)
    for s0, s1 in itertools.pairwise(cells):
        for half in ((0.0, 0.5), (0.5, 1.0)):
            t0, t1 = (out * (1.0 - h) for h in half)
            h0, h1 = (low + (z + rise - low) * h for h in half)
            patches.quad([at(s0, -t0, h0), at(s1, -t0, h0), at(s1, -t1, h1), at(s0, -t1, h1)], ROOF)
            patches.quad([at(s1, t0, h0), at(s0, t0, h0), at(s0, t1, h1), at(s1, t1, h1)], ROOF)
    for s, sign in ((-a, -1.0), (a, 1.0)):
        corners = [at(s, -sign * -b, z), at(s, -sign * b, z), at(s, 0.0, z + rise)]
        points = np.array(corners)
        normal = at(sign, 0.0, 0.0)
        order = (
            np.array([[0, 1, 2]])
            if np.dot(np.cross(points[1] - points[0], points[2] - points[0]), normal) > 0
            else np.array([[0, 2, 1]])
        )
        patches.add(points, order, np.repeat(normal[None], 3, 0), WALL, tint)
    for _ in range(1 + int(rng.random() * 2)):
        s, t = a * (1.4 * rng.random() - 0.7), (0.3 + 0.2 * rng.random()) * b * (1.0 if rng.random() < 0.5 else -1.0)
        middle = at(s, t, z)
        top = z + rise + 0.9
        patches.box((middle[0] - 0.45, middle[1] - 0.35, z), (middle[0] + 0.45, middle[1] + 0.35, top), WALL, tint, False)
        for k in (-0.22, 0.22):
            patches.tube(
                np.array([[middle[0] + k, middle[1], top], [middle[0] + k, middle[1], top + 0.4]]),
                0.11,
                PAINT,
                (0.34, 0.14, 0.08),
                8,
            )
    for _ in range(int(rng.random() * 4)):  # windows in the roof
        s, h, side = a * (1.4 * rng.random() - 0.7), 0.35 + 0.2 * rng.random(), 1.0 if rng.random() < 0.5 else -1.0
        lift = 0.05
        t0, t1 = out * (1.0 - h), out * (1.0 - h - 0.22)
        h0, h1 = (low + (z + rise - low) * k + lift for k in (h, h + 0.22))
        corners = [
            at(s - side * -0.4, side * t0, h0),
            at(s - side * 0.4, side * t0, h0),
            at(s - side * 0.4, side * t1, h1),
            at(s - side * -0.4, side * t1, h1),
        ]
        patches.quad(corners, SLOTS.index("window glass"), (0.03, 0.04, 0.05))


def _things(patches: PatchMesh, half: tuple[float, float], z: float, rng: np.random.Generator) -> None:
    """Stand on a flat roof what stands there: the stairs' head, boxes of machines, pipes, an aerial."""
    hx, hy = half[0] - 1.2, half[1] - 1.2
    if min(hx, hy) < 1.0:
        return
    x, y = hx * (rng.random() - 0.5), hy * (rng.random() - 0.5)
    patches.box((x - 1.2, y - 1.0, z), (x + 1.2, y + 1.0, z + 2.3), WALL, (0.9, 0.9, 0.88), False)
    for _ in range(1 + int(rng.random() * 4)):
        x, y = hx * (2.0 * rng.random() - 1.0), hy * (2.0 * rng.random() - 1.0)
        w, h = 0.35 + 0.5 * rng.random(), 0.6 + 0.7 * rng.random()
        patches.box((x - w, y - 0.4, z), (x + w, y + 0.4, z + h), PAINT, (0.42, 0.43, 0.43), False)
    for _ in range(int(rng.random() * 3)):
        x, y = hx * (2.0 * rng.random() - 1.0), hy * (2.0 * rng.random() - 1.0)
        patches.tube(np.array([[x, y, z], [x, y, z + 0.9]]), 0.12, PAINT, (0.30, 0.30, 0.31), 8)
    if rng.random() < 0.6:
        x, y = hx * (2.0 * rng.random() - 1.0), hy * (2.0 * rng.random() - 1.0)
        patches.tube(np.array([[x, y, z], [x, y, z + 3.2]]), 0.025, PAINT, (0.3, 0.3, 0.3), 6)
        for k in range(5):
            patches.box(
                (x - 0.5, y - 0.01, z + 2.2 + 0.2 * k), (x + 0.5, y + 0.01, z + 2.22 + 0.2 * k), PAINT, (0.35, 0.35, 0.35)
            )


def drawn_house(
    size: tuple[float, float, float], grounds: tuple[str, str, str, str], roof: float, swell: float, rng: np.random.Generator
) -> House:
    """Return a house of a size, its style and seed drawn; a side that is "street" becomes shops or a door by its style."""
    style = drawn_style(rng, size[2])
    shops = rng.random() < style.shop
    chosen = tuple(("shop" if shops else "door") if side == "street" else side for side in grounds)
    return House(size, style.name, int(rng.random() * 1000), chosen, roof, swell)  # type: ignore[arg-type]


def door_lights(places: list[Vector3], apart: float) -> tuple[SpotLight, ...]:
    """Return lights of lamps over doors and shops, none near another; they burn from dusk on.

    Args:
        places: Of all lamps, world [m].
        apart: Least distance of two that burn [m].
    """
    kept: list[Vector3] = []
    for place in places:
        if all(np.hypot(place[0] - other[0], place[1] - other[1]) > apart for other in kept):
            kept.append(place)
    return tuple(
        SpotLight(place, (0.0, 0.0, -1.0), 0.9, 1.7, (1.0, 0.78, 0.50), _LAMP, 22.0, radius=0.06, from_dusk=True)
        for place in kept
    )
