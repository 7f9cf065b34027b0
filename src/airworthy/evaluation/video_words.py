"""What is laid over a film's pictures: the caption, and a second camera in the corner."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Layout", "font"]

Picture = NDArray[np.uint8]
Floats = NDArray[np.float32]

CORNER_SHARE = 0.3
"""Of the picture's width that the second camera takes."""
_MARGIN = 0.028
"""Of the picture's height, round what is laid over it."""
_TEXT = 0.04
"""Height of letters' lines over the picture's."""
_TEXT_MIN = 11
"""[px]"""
_FINER = 4
WHITE = (255, 255, 255)


@cache
def font(size: int, bold: bool = False) -> Any:
    """A font that is always there, at a height [px]: DejaVu Sans, which comes with matplotlib; its digits are all as wide."""
    from matplotlib import get_data_path
    from PIL import ImageFont

    name = "DejaVuSans-Bold" if bold else "DejaVuSans"
    return ImageFont.truetype(f"{get_data_path()}/fonts/ttf/{name}.ttf", size)


@dataclass(frozen=True)
class Layout:
    """Where caption and corner picture lie in a film of this size."""

    width: int
    height: int

    @property
    def margin(self) -> int:
        """[px]"""
        return max(6, round(_MARGIN * self.height))

    @property
    def corner_size(self) -> tuple[int, int]:
        """Width and height of the second camera's picture, even [px]."""
        return 2 * round(0.5 * CORNER_SHARE * self.width), 2 * round(0.5 * CORNER_SHARE * self.height)

    def with_corner(self, picture: Picture, small: Picture) -> Picture:
        """The picture with a small one in its lower right corner, in a thin bright frame."""
        cover, line = self._corner_masks(small.shape[1], small.shape[0])
        height, width = cover.shape[:2]
        top, left = self.height - self.margin - height, self.width - self.margin - width
        pad = (width - small.shape[1]) // 2
        framed = np.full((height, width, 3), 245.0, np.float32)
        framed[pad : pad + small.shape[0], pad : pad + small.shape[1]] = small
        inside = framed * (1.0 - line) + 245.0 * line
        out = picture.copy()
        under = out[top : top + height, left : left + width]
        out[top : top + height, left : left + width] = np.rint(under * (1.0 - cover) + inside * cover).astype(np.uint8)
        return out

    def with_caption(self, picture: Picture, name: str, values: list[str]) -> Picture:
        """The picture with a line of words at its lower left: white on a soft dark shade, values flush right in columns."""
        from PIL import Image, ImageDraw

        size = max(_TEXT_MIN, round(_TEXT * self.height))
        regular, bold = font(size), font(size, True)
        layer = Image.new("L", (self.width, 4 * size))
        draw = ImageDraw.Draw(layer)
        x, base = float(self.margin), 2.6 * size
        draw.text((x, base), name, font=bold, fill=255, anchor="ls")
        x += bold.getlength(name) + 0.4 * size
        for text in values:
            # As wide as the longest value of its kind, or the line would tremble as digits come and go.
            x += max(regular.getlength(text), 4.2 * size)
            draw.text((x, base), text, font=regular, fill=255, anchor="rs")
        return self._laid(picture, np.asarray(layer, np.float32) / 255.0, round(base), size)

    def _laid(self, picture: Picture, ink: Floats, base: int, size: int) -> Picture:
        """White letters and their shade over the picture, their base line at the margin."""
        from scipy.ndimage import gaussian_filter

        shade = np.clip(2.2 * gaussian_filter(ink, 0.28 * size), 0.0, 0.62)[..., None]
        top = self.height - self.margin - base - round(0.1 * size)
        skip = max(0, -top)
        rows = slice(max(top, 0), min(top + len(ink), self.height))
        part = slice(skip, skip + rows.stop - rows.start)
        out = picture.copy()
        under = out[rows].astype(np.float32) * (1.0 - shade[part])
        letters = ink[part, :, None]
        out[rows] = np.rint(under * (1.0 - letters) + 255.0 * letters).astype(np.uint8)
        return out

    def _corner_masks(self, width: int, height: int) -> tuple[Floats, Floats]:
        """How much of each pixel the corner picture covers, and how much of that is its frame; (h, w, 1) each."""
        return _rounded(width, height, max(1, round(self.height / 360)), max(3, round(0.016 * self.height)))


@cache
def _rounded(width: int, height: int, line: int, radius: int) -> tuple[Floats, Floats]:
    from PIL import Image, ImageDraw

    size = (width + 2 * line, height + 2 * line)
    masks = []
    for inset in (0, line):
        image = Image.new("L", (_FINER * size[0], _FINER * size[1]))
        low, high = _FINER * inset, (_FINER * (size[0] - inset) - 1, _FINER * (size[1] - inset) - 1)
        ImageDraw.Draw(image).rounded_rectangle((low, low, *high), _FINER * max(radius - inset, 1), fill=255)
        masks.append(np.asarray(image.reduce(_FINER), np.float32)[..., None] / np.float32(255.0))
    outer, inner = masks
    return outer, np.asarray(1.0 - inner / np.maximum(outer, 1e-6), np.float32).clip(0.0, 1.0)
