"""Lettering of a hall: signs over gates and racks, labels on goods, screens of machines, in one picture of sixteen bands."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from airworthy.core.arrays import Array, ArrayU8
from airworthy.scenes.generators.seeding import generator
from airworthy.scenes.materials.canvas import Canvas
from airworthy.scenes.materials.decals import lettering
from airworthy.scenes.materials.layers import encoded
from airworthy.scenes.record import Material, Texture
from airworthy.scenes.warehouses.parts import LABEL_ROWS

__all__ = ["LABEL_NUMBERS", "label_material"]

_PIXELS = 1024
_WHITE, _BLACK = (0.72, 0.72, 0.70), (0.02, 0.02, 0.022)
_GREEN, _RED, _BLUE, _YELLOW = (0.012, 0.17, 0.07), (0.42, 0.018, 0.016), (0.016, 0.07, 0.26), (0.72, 0.44, 0.02)
_SIGNS: tuple[tuple[str, tuple[float, float, float], tuple[float, float, float]], ...] = (
    ("EXIT", _GREEN, _WHITE),
    ("DOCK 1", _YELLOW, _BLACK),
    ("DOCK 2", _YELLOW, _BLACK),
    ("DOCK 3", _YELLOW, _BLACK),
    ("FIRE POINT", _RED, _WHITE),
    ("KEEP CLEAR", _YELLOW, _BLACK),
    ("FRAGILE", _WHITE, _RED),
    ("THIS SIDE UP", _WHITE, _BLACK),
    ("A", _BLUE, _WHITE),
    ("B", _BLUE, _WHITE),
    ("C", _BLUE, _WHITE),
    ("D", _BLUE, _WHITE),
    ("", _WHITE, _BLACK),
    ("", _BLACK, _WHITE),
    ("GOODS IN", _BLUE, _WHITE),
    ("CELL 4", _WHITE, _BLACK),
)
LABEL_NUMBERS = {
    "exit": 0,
    "dock": 1,
    "fire": 4,
    "clear": 5,
    "fragile": 6,
    "up": 7,
    "rack": 8,
    "code": 12,
    "screen": 13,
    "in": 14,
}
"""First band of a kind of label."""


class _LabelBand:
    """Rows of a canvas; columns are counted half as far, so that letters come out in their own proportions."""

    def __init__(self, canvas: Canvas, rows: slice) -> None:
        self.tile, self.size = canvas.tile, canvas.size
        self.row, self.column = canvas.row[rows], 0.5 * canvas.column[rows] + 0.25


@lru_cache(maxsize=1)
def label_material() -> tuple[Material, Texture]:
    """Return the material of labels and its texture, the same in every hall."""
    texture = Texture(_picture(), wrap="clamp")
    texture.pixels.setflags(write=False)
    return Material((1.0, 1.0, 1.0, 1.0), roughness=0.5, base_color_map="labels"), texture


def _picture() -> ArrayU8:
    canvas = Canvas("hall labels", 0, _PIXELS, 1.0, 0.3)
    image = np.ones((_PIXELS, _PIXELS, 3))
    for number, (text, ground, ink) in enumerate(_SIGNS):
        band = slice(number * _PIXELS // LABEL_ROWS, (number + 1) * _PIXELS // LABEL_ROWS)
        if number == LABEL_NUMBERS["code"]:
            image[band] = _codes()
        elif number == LABEL_NUMBERS["screen"]:
            image[band] = _screen()
        else:
            part = _LabelBand(canvas, band)
            drawn = lettering(part, text, ((number + 0.5) / LABEL_ROWS, 0.5), 0.56 / LABEL_ROWS, 0.085)  # type: ignore[arg-type]
            image[band] = np.array(ground) + (np.array(ink) - np.array(ground)) * drawn[..., None]
    return encoded(image)


def _codes() -> Array:
    """Return eight slips of paper with bars and lines, side by side."""
    high = _PIXELS // LABEL_ROWS
    image = np.full((high, _PIXELS, 3), 0.70)
    rng = generator("hall labels", "codes")
    side = _PIXELS // 8
    for k in range(8):
        x = k * side + 8
        while x < (k + 1) * side - 10:
            wide = 1 + int(rng.random() * 4)
            image[high // 2 : high - 8, x : x + wide] = 0.02
            x += wide + 1 + int(rng.random() * 4)
        for row in range(8, high // 2 - 4, 7):
            image[row : row + 3, k * side + 8 : k * side + 20 + int(rng.random() * (side - 40))] = 0.05
    return image


def _screen() -> Array:
    """Return a panel: a screen with curves on the left, keys on the right."""
    high = _PIXELS // LABEL_ROWS
    image = np.full((high, _PIXELS, 3), 0.05)
    rng = generator("hall labels", "screen")
    image[5:-5, 12:500] = (0.02, 0.05, 0.09)
    for k in range(5):
        x = np.arange(24, 24 + int(120 + 200 * rng.random()))
        image[12 + 9 * k : 15 + 9 * k, x] = (0.10, 0.45, 0.42) if k % 2 else (0.5, 0.5, 0.45)
    image[14:50, 380:480] = (0.04, 0.20, 0.10)
    for k in range(24):
        row, column = divmod(k, 12)
        tone = ((0.45, 0.45, 0.44), (0.5, 0.3, 0.02), (0.02, 0.25, 0.06), (0.4, 0.02, 0.02))[int(rng.random() * 6) % 4]
        image[8 + 27 * row : 28 + 27 * row, 530 + 40 * column : 560 + 40 * column] = tone
    return image
