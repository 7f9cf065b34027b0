"""What is seen in windows: rooms with curtains, blinds and plants behind the panes, shops with their goods, and lettering.

Each is a picture in an atlas, drawn from a seed: by day rooms are dark and curtains pale; at night those with a lamp glow. A
pane is a smooth surface with that picture, so that it mirrors the street as glass does.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayU8
from airworthy.scenes.generators.seeding import generator
from airworthy.scenes.materials.canvas import Canvas
from airworthy.scenes.materials.decals import lettering
from airworthy.scenes.materials.layers import encoded
from airworthy.scenes.record import Material, Texture

__all__ = ["GLOW", "ROOMS", "SHOPS", "WORDS", "pane_materials", "room_uv", "shop_uv", "word_uv"]

_CELLS = 8
"""Rooms along a side of the atlas; the lower half of the rows are the same rooms with their lamps lit."""
ROOMS = _CELLS * _CELLS // 2
"""Different rooms."""
SHOPS = 8
"""Different shops, in two rows of four; below them the same with their lamps lit."""
_ROOM_PIXELS, _SHOP_PIXELS = 128, 256
WORDS = (
    "BAKERY",
    "BOOKS",
    "CAFE",
    "FLOWERS",
    "WINES",
    "BICYCLES",
    "SHOES",
    "PHARMACY",
    "TAILOR",
    "FISH BAR",
    "RECORDS",
    "HOTEL",
)
"""Over shops."""
_LINES = 16
"""Rows of the atlas of words."""
GLOW = 0.0009
"""Radiance of what a lamp in a room lights well: 35 cd/m2, in the unit of 39.3 kcd/m2 in which a white surface in full sun has
about 1; nothing by day, and bright at night."""


def room_uv(number: int, lit: bool, mirrored: bool = False) -> Array:
    """Return coordinates (4, 2) of a room for the corners of a pane, from the lower left counter-clockwise."""
    return _cell(number % ROOMS, _CELLS, _CELLS, _CELLS // 2 if lit else 0, 1.5 / _ROOM_PIXELS, mirrored)


def shop_uv(number: int, lit: bool, left: float = 0.0, right: float = 1.0) -> Array:
    """Return coordinates (4, 2) of a part of a shop for a pane's corners: shares of its width from the left."""
    uv = _cell(number % SHOPS, 4, 4, 2 if lit else 0, 1.5 / _SHOP_PIXELS, False)
    u0, u1 = uv[0, 0], uv[1, 0]
    uv[[0, 3], 0], uv[[1, 2], 0] = u0 + (u1 - u0) * left, u0 + (u1 - u0) * right
    return uv


def word_uv(number: int) -> Array:
    """Return coordinates (4, 2) of a word for a board's corners; eight times as wide as high."""
    row = number % len(WORDS)
    low, high = (row + 0.94) / _LINES, (row + 0.06) / _LINES
    return np.array([[0.0, low], [1.0, low], [1.0, high], [0.0, high]])


def _cell(number: int, across: int, down: int, first_row: int, rim: float, mirrored: bool) -> Array:
    row, column = divmod(number, across)
    row += first_row
    u0, u1 = (column + rim) / across, (column + 1.0 - rim) / across
    if mirrored:
        u0, u1 = u1, u0
    v0, v1 = (row + rim) / down, (row + 1.0 - rim) / down
    return np.array([[u0, v1], [u1, v1], [u1, v0], [u0, v0]])


@lru_cache(maxsize=1)
def pane_materials() -> tuple[dict[str, Material], dict[str, Texture]]:
    """Return the materials "rooms", "shops" and "words" with their textures: the same for every building."""
    textures: dict[str, Texture] = {}
    materials: dict[str, Material] = {}
    for name, (seen, glow) in {"rooms": _rooms(), "shops": _shops()}.items():
        textures[f"{name}/seen"] = Texture(encoded(seen), wrap="clamp")
        textures[f"{name}/glow"] = Texture(encoded(glow), wrap="clamp")
        materials[name] = Material(
            (1.0, 1.0, 1.0, 1.0),
            roughness=0.05,
            emissive=(GLOW, GLOW, GLOW),
            base_color_map=f"{name}/seen",
            emissive_map=f"{name}/glow",
        )
    textures["words"] = Texture(_words(), wrap="clamp")
    materials["words"] = Material((1.0, 1.0, 1.0, 1.0), roughness=0.45, base_color_map="words")
    for texture in textures.values():
        texture.pixels.setflags(write=False)
    return materials, textures


# ---- Rooms ------------------------------------------------------------------------------------------------------------------


def _rooms() -> tuple[Array, Array]:
    """Return what is seen by day, and what glows, (1024, 1024, 3) each, linear."""
    side, half = _ROOM_PIXELS, _CELLS // 2
    seen, glow = np.zeros((2, _CELLS * side, _CELLS * side, 3))
    for number in range(ROOMS):
        day, night = _room(number, side)
        row, column = divmod(number, _CELLS)
        for block in (row, row + half):
            seen[block * side : (block + 1) * side, column * side : (column + 1) * side] = day
        lit = row + half
        glow[lit * side : (lit + 1) * side, column * side : (column + 1) * side] = night
    return seen, glow


def _grid(side: int) -> tuple[Array, Array]:
    """Return x from left to right and y from above, in (0, 1)."""
    line = (np.arange(side) + 0.5) / side
    return np.broadcast_to(line, (side, side)), np.broadcast_to(line[:, None], (side, side))


def _muted(rgb: Array) -> Array:
    """Return colours half way to their grey: things are rarely as bright as chance has it."""
    return np.asarray(0.5 * rgb + 0.5 * rgb.mean(-1, keepdims=True))


def _box_room(x: Array, y: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return colour (h, w, 3), depth in [0, 1] and light of a lamp at the ceiling, of a room seen through its window."""
    middle, wide = 0.5 + 0.12 * (rng.random() - 0.5), 0.5 * (0.42 + 0.16 * rng.random())
    top, bottom = 0.16 + 0.06 * rng.random(), 0.74 + 0.06 * rng.random()
    # How far towards the back wall a line of sight ends on ceiling, floor or a side: the nearest of them.
    to_side = np.where(x < middle, x / max(middle - wide, 1e-6), (1.0 - x) / max(1.0 - middle - wide, 1e-6))
    to_ceiling, to_floor = y / top, (1.0 - y) / (1.0 - bottom)
    depth = np.minimum(np.minimum(np.minimum(to_side, to_ceiling), to_floor), 1.0)
    wall = np.array([0.62, 0.56, 0.47]) * (0.7 + 0.5 * rng.random()) * np.exp(rng.normal(0.0, 0.10, 3))
    color = np.broadcast_to(wall, (*x.shape, 3)).copy()
    color[(to_ceiling <= depth + 1e-9) & (depth < 1.0)] = (0.72, 0.71, 0.68)
    color[(to_floor <= depth + 1e-9) & (depth < 1.0)] = np.array([0.26, 0.17, 0.10]) * (0.6 + 0.8 * rng.random())
    back = depth >= 1.0
    left, right = middle - wide, middle + wide

    def put(x0: float, x1: float, y0: float, y1: float, rgb: Array | tuple[float, float, float]) -> None:
        at = (x > left + x0 * (right - left)) & (x < left + x1 * (right - left))
        color[at & (y > top + y0 * (bottom - top)) & (y < top + y1 * (bottom - top)) & back] = rgb

    kind = int(rng.random() * 4)
    if kind == 0:  # shelves of books
        for k in range(4):
            low = 0.2 + 0.18 * k
            put(0.1, 0.62, low, low + 0.15, np.array([0.10, 0.07, 0.05]))
            for b in range(14):
                at = 0.12 + 0.035 * b
                put(at, at + 0.028, low + 0.03 + 0.04 * rng.random(), low + 0.145, 0.5 * rng.random(3) ** 1.5 + 0.03)
    elif kind == 1:  # a picture over a sofa
        put(0.25, 0.7, 0.22, 0.5, np.array([0.08, 0.06, 0.05]))
        put(0.28, 0.67, 0.25, 0.47, 0.15 + 0.5 * rng.random(3))
        put(0.1, 0.85, 0.7, 1.0, 0.05 + 0.35 * rng.random(3))
    elif kind == 2:  # a door ajar
        put(0.58, 0.82, 0.12, 1.0, np.array([0.55, 0.52, 0.47]))
        put(0.64, 0.79, 0.14, 1.0, np.array([0.04, 0.035, 0.03]))
        put(0.05, 0.4, 0.55, 1.0, np.array([0.22, 0.14, 0.08]))
    else:  # kitchen cupboards
        put(0.0, 1.0, 0.15, 0.4, 0.25 + 0.4 * rng.random(3) * np.array([1.0, 0.9, 0.75]))
        put(0.0, 1.0, 0.62, 0.66, np.array([0.08, 0.08, 0.08]))
        put(0.0, 1.0, 0.66, 1.0, np.array([0.5, 0.48, 0.44]))
    lamp_x, lamp_y = middle + 0.1 * (rng.random() - 0.5), top + 0.16
    far = np.hypot(x - lamp_x, 0.8 * (y - lamp_y))
    light = 0.30 + 0.75 / (1.0 + (far / 0.28) ** 2)
    shade = (np.abs(x - lamp_x) < 0.045 + 0.25 * (y - lamp_y + 0.03)) & (np.abs(y - lamp_y) < 0.035)
    color[shade] = (0.85, 0.78, 0.62)
    light[shade] = 2.6
    return color, depth, light


def _room(number: int, side: int) -> tuple[Array, Array]:
    """Return a room by day and by its lamp, (side, side, 3) each."""
    rng = generator("room", number)
    x, y = _grid(side)
    color, depth, light = _box_room(x, y, rng)
    # Daylight comes in from here: what is deep in the room gets little of it, and the ceiling least.
    daylight = 0.16 * np.exp(-2.2 * depth) * (0.55 + 0.45 * y) + 0.012
    warm = np.array([1.0, 0.78, 0.50]) if rng.random() < 0.7 else np.array([0.95, 0.92, 0.82])
    if rng.random() < 0.08:
        warm = np.array([0.45, 0.62, 1.0])  # a screen
    level = 0.55 + 0.6 * rng.random()
    day, night = color * daylight[..., None], level * warm * color * light[..., None]
    for cover, tone, through in _covers(x, y, rng):
        day = day * (1.0 - cover[..., None]) + cover[..., None] * tone * 0.62
        night = night * (1.0 - cover[..., None]) + cover[..., None] * tone * through * level * warm
    for place, tone in _on_the_sill(x, y, rng):
        day = np.where(place[..., None], tone, day)
        night = np.where(place[..., None], 0.25 * tone, night)
    return np.clip(day, 0.0, 0.9), np.clip(night, 0.0, 1.0)


def _covers(x: Array, y: Array, rng: np.random.Generator) -> list[tuple[ArrayAny, ArrayAny, float]]:
    """Return curtains and blinds: share that they hide (h, w), colour (h, w, 3), and how much of a lamp's light they pass."""
    found: list[tuple[ArrayAny, ArrayAny, float]] = []
    cloth = np.array([0.70, 0.68, 0.63]) if rng.random() < 0.7 else _muted(0.18 + 0.5 * rng.random(3))

    def folds(often: float, deep: float) -> Array:
        wave = np.sin(often * x + 1.2 * np.sin(7.0 * x + 6.0 * rng.random()) + 0.5 * y)
        return 1.0 - deep + deep * wave

    choice = rng.random()
    if choice < 0.30:  # net curtains over the whole width
        net = np.full_like(x, 0.62)
        found.append((net * (0.85 + 0.15 * folds(70.0, 0.5)), np.array([0.62, 0.62, 0.60]) * folds(70.0, 0.14)[..., None], 0.5))
    elif choice < 0.48:  # slats down to some height
        upto = 0.25 + 0.75 * rng.random()
        slat = 0.72 + 0.28 * np.sin(2.0 * np.pi * y * 26.0)
        tone = np.array([0.66, 0.65, 0.62]) * slat[..., None]
        found.append(((y < upto) * (0.80 + 0.20 * (slat > 0.75)), tone, 0.55))
    elif choice < 0.60:  # a roller blind
        upto = 0.15 + 0.6 * rng.random()
        found.append(
            ((y < upto) * 1.0, np.broadcast_to(cloth, (*x.shape, 3)) * (1.0 - 0.25 * (y > upto - 0.02))[..., None], 0.7)
        )
    if choice > 0.40 and rng.random() < 0.75:  # curtains at the sides
        for flip in (False, True):
            wide = 0.08 + 0.20 * rng.random()
            edge = (1.0 - x if flip else x) - 0.015 * np.sin(9.0 * y)
            found.append(((edge < wide) * 1.0, cloth * folds(95.0, 0.25)[..., None], 0.5))
    return found


def _on_the_sill(x: Array, y: Array, rng: np.random.Generator) -> list[tuple[ArrayAny, ArrayAny]]:
    """Return where plants and vases stand behind the pane, and their colours."""
    found: list[tuple[ArrayAny, ArrayAny]] = []
    if rng.random() > 0.42:
        return found
    for _ in range(1 + int(rng.random() * 3)):
        at, tall = 0.12 + 0.76 * rng.random(), 0.10 + 0.16 * rng.random()
        pot = (np.abs(x - at) < 0.045 - 0.12 * (y - 0.93)) & (y > 0.90)
        found.append((pot, np.array([0.20, 0.085, 0.05]) if rng.random() < 0.6 else np.array([0.30, 0.30, 0.31])))
        for _ in range(16):
            cx, cy = at + 0.07 * rng.normal(), 0.90 - tall * rng.random()
            leaf = ((x - cx) / (0.018 + 0.02 * rng.random())) ** 2 + ((y - cy) / 0.035) ** 2 < 1.0
            found.append((leaf, np.array([0.035, 0.075, 0.022]) * (0.5 + rng.random())))
    return found


# ---- Shops ------------------------------------------------------------------------------------------------------------------


def _shops() -> tuple[Array, Array]:
    """Return shops by day, and what glows at night, (1024, 1024, 3) each."""
    side = _SHOP_PIXELS
    seen, glow = np.zeros((2, 4 * side, 4 * side, 3))
    for number in range(SHOPS):
        day, night = _shop(number, side)
        row, column = divmod(number, 4)
        for block in (row, row + 2):
            seen[block * side : (block + 1) * side, column * side : (column + 1) * side] = day
        glow[(row + 2) * side : (row + 3) * side, column * side : (column + 1) * side] = night
    return seen, glow


def _shop(number: int, side: int) -> tuple[Array, Array]:
    """Return a shop by day and lit: a deep room with rows of goods, lamps at the ceiling, goods in the window."""
    rng = generator("shop", number)
    x, y = _grid(side)
    color, depth, _ = _box_room(x, y, rng)
    hue = 0.15 + 0.55 * rng.random(3)
    for k in range(5):  # shelves along the back and the sides, filled
        y0 = 0.26 + 0.10 * k
        row = (y > y0) & (y < y0 + 0.085) & (x > 0.04) & (x < 0.96)
        goods = _muted(rng.random((24, 3)) ** 1.4 * 0.7 * (0.4 + 0.6 * hue) + 0.04)
        index = np.minimum((x * 24).astype(int), 23)
        filled = row & (np.mod(x * 24.0, 1.0) < 0.86) & (y > y0 + 0.05 * rng.random(24)[index])
        color = np.where(filled[..., None], goods[index], np.where(row[..., None], color * 0.35, color))
    light = 0.55 + 0.25 * np.sin(2.0 * np.pi * x * 3.0) ** 2 * np.exp(-4.0 * y)
    lamp = (np.abs(y - 0.13) < 0.012) & (np.mod(x * 4.0, 1.0) > 0.2) & (np.mod(x * 4.0, 1.0) < 0.8)
    day = color * (0.14 * np.exp(-1.6 * depth) * (0.5 + 0.5 * y) + 0.035)[..., None]
    night = np.array([1.0, 0.90, 0.74]) * color * light[..., None] * 1.5
    day, night = np.where(lamp[..., None], 0.5, day), np.where(lamp[..., None], 1.0, night)
    # In the window: a stand, with things on it, and a poster.
    stand = y > 0.86
    tone = np.array([0.34, 0.27, 0.19]) * (0.7 + 0.5 * rng.random())
    day, night = np.where(stand[..., None], 0.5 * tone, day), np.where(stand[..., None], 0.8 * tone, night)
    for _ in range(9):
        at, wide, tall = 0.06 + 0.88 * rng.random(), 0.02 + 0.035 * rng.random(), 0.06 + 0.16 * rng.random()
        body = (np.abs(x - at) < wide) & (y < 0.90) & (y > 0.88 - tall)
        if rng.random() < 0.5:
            body = ((x - at) / wide) ** 2 + ((y - 0.88 + 0.5 * tall) / (0.5 * tall)) ** 2 < 1.0
        rgb = _muted(0.08 + 0.7 * rng.random(3) ** 1.3)
        round_light = 0.65 + 0.35 * np.cos(np.clip((x - at) / wide, -1.0, 1.0) * 1.3)
        day = np.where(body[..., None], 0.30 * rgb * round_light[..., None], day)
        night = np.where(body[..., None], 0.75 * rgb * round_light[..., None], night)
    if rng.random() < 0.7:
        at = 0.1 + 0.65 * rng.random()
        sheet = (x > at) & (x < at + 0.13) & (y > 0.36) & (y < 0.60)
        ink = sheet & (np.abs(np.mod(y * 34.0, 1.0) - 0.5) < 0.22) & (x > at + 0.02) & (x < at + 0.11)
        rgb = 0.35 + 0.4 * rng.random(3)
        day = np.where(sheet[..., None], 0.8 * rgb, day)
        day = np.where(ink[..., None], 0.1, day)
        night = np.where(sheet[..., None], 0.12 * rgb, night)
    return np.clip(day, 0.0, 0.9), np.clip(night, 0.0, 1.0)


# ---- Words ------------------------------------------------------------------------------------------------------------------


def _words() -> ArrayU8:
    """Return boards with words, each on a ground of its own colour, (512, 512, 3) as sRGB."""
    side = 512
    canvas = Canvas("words", 0, side, 1.0, 0.3)
    image = np.ones((side, side, 3))
    for row, word in enumerate(WORDS):
        rng = generator("word", row)
        dark = rng.random() < 0.7
        ground = 0.02 + 0.16 * rng.random(3) ** 2 if dark else 0.55 + 0.2 * rng.random(3)
        ink = np.array([0.75, 0.66, 0.42]) if rng.random() < 0.4 else np.array([0.8, 0.79, 0.76])
        ink = ink if dark else 0.05 * np.ones(3)
        band = slice(row * side // _LINES, (row + 1) * side // _LINES)
        # Letters drawn on a band alone, twice as wide as on the square: the board's sides are eight to one.
        part = _Band(canvas, band)
        drawn = lettering(part, word, ((row + 0.5) / _LINES, 0.5), 0.55 / _LINES, 0.085)  # type: ignore[arg-type]
        image[band] = ground + (ink - ground) * drawn[..., None]
    return encoded(image)


class _Band:
    """Rows of a canvas, for drawing on them alone; columns are counted twice as narrow, so that letters come out wide."""

    def __init__(self, canvas: Canvas, rows: slice) -> None:
        self.tile, self.size = canvas.tile, canvas.size
        self.row, self.column = canvas.row[rows], 0.5 * canvas.column[rows] + 0.25
