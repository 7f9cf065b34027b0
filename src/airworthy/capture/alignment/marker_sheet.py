"""Markers to print: the square, in words which one it is and how large, and a bar to hold a ruler against."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.capture.alignment.markers import DICTIONARIES, DICTIONARY, SIDE, dictionary_cells, opencv
from airworthy.core.arrays import ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.core.files import make_folder, write_atomic

__all__ = ["NOTE", "draw_marker", "draw_marker_sheet", "marker_words", "write_marker_sheet"]

NOTE = "airworthy.marker"
"""Name of the text in the PNG that says what the sheet holds, as JSON."""
SIDE_RANGE = 0.01, 5.0
"""Of a marker that is drawn [m]."""
_ZERO = ("1011", "0101", "0011", "0010")
"""Marker 0 of the dictionary 4x4_50: white cells are 1; around them a black cell. Drawn without OpenCV."""
_CELL = 120
"""Pixels of a cell on the sheet: at 0.16 m as fine as printers print, 4,500 to the metre."""
_MARGIN = 0.75
"""Cells of white around the square on the sheet: 0.2 m across at 0.16 m, which printers do not shrink to fit A4."""
_TEXT = 0.32 * _CELL
_BARS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Lengths of the bar [m]: the longest that is no longer than the square."""


def draw_marker(cell: int = 100, number: int = 0, dictionary: str = DICTIONARY) -> ArrayU8:
    """Return a marker to print: its black square, and a white cell around it.

    Args:
        cell: Pixels of a cell.
        number: Of the marker.
        dictionary: A name in `DICTIONARIES`.

    Returns:
        (n cell, n cell) grey, n the cells of the square and two.

    Raises:
        AirworthyError: There is no such marker; or it is not the first of 4x4_50, and OpenCV is not installed.
    """
    across, count = dictionary_cells(dictionary), DICTIONARIES[dictionary][2]
    if not 0 <= number < count:
        raise AirworthyError(f"The dictionary {dictionary} has the markers 0 to {count - 1}; {number} is none of them.")
    if (dictionary, number) == (DICTIONARY, 0):
        square = np.pad(np.array([[255 * int(bit) for bit in row] for row in _ZERO], np.uint8), 1)
    else:
        aruco = opencv().aruco
        words = aruco.getPredefinedDictionary(getattr(aruco, DICTIONARIES[dictionary][0]))
        square = aruco.generateImageMarker(words, number, across)
    return np.kron(np.pad(square, 1, constant_values=255), np.ones((cell, cell), np.uint8)).astype(np.uint8)


def marker_words(side: float = SIDE, number: int = 0, dictionary: str = DICTIONARY) -> str:
    """Return what is printed beside a marker."""
    return f"dictionary {dictionary}, number {number}, side of the black square {1e3 * side:g} mm ({side:g} m)"


def draw_marker_sheet(side: float = SIDE, number: int = 0, dictionary: str = DICTIONARY) -> tuple[ArrayU8, float]:
    """Return a sheet (h, w) grey to print, and its pixels per metre.

    Args:
        side: Of the black square [m].
        number: Of the marker.
        dictionary: A name in `DICTIONARIES`.

    Raises:
        AirworthyError: As `draw_marker`, or the side is out of range.
    """
    from PIL import Image, ImageDraw, ImageFont

    if not SIDE_RANGE[0] <= side <= SIDE_RANGE[1]:
        raise AirworthyError(f"A marker of {side} m cannot be drawn; expected {SIDE_RANGE[0]} to {SIDE_RANGE[1]:g} m.")
    cut = int((1.0 - _MARGIN) * _CELL)
    marker = draw_marker(_CELL, number, dictionary)[cut:-cut, cut:-cut]
    density = dictionary_cells(dictionary) * _CELL / side
    bar = max((length for length in _BARS if length <= side), default=_BARS[0])
    lines = [
        f"Marker: {marker_words(side, number, dictionary)}.",
        "Print at 100 % (no fitting to the page). Lay it flat, with this white margin.",
        f"This bar is {1e3 * bar:g} mm long. If yours is not: measure the black square, and say --side.",
    ]
    width = marker.shape[1]
    sheet = Image.new("L", (width, width + int(1.9 * _CELL)), 255)
    sheet.paste(Image.fromarray(marker), (0, 0))
    draw, left = ImageDraw.Draw(sheet), _MARGIN * _CELL
    # Words of long names are set smaller, so that they end within the sheet.
    longest = max(ImageFont.load_default(_TEXT).getlength(line) for line in lines)
    font = ImageFont.load_default(_TEXT * min(1.0, (width - 2.0 * left) / longest))
    for row, line in enumerate(lines):
        draw.text((left, width + (0.42 * row - 0.3) * _CELL), line, 0, font)
    _draw_bar(draw, left, width + 1.25 * _CELL, bar * density)
    return np.asarray(sheet), density


def _draw_bar(draw: Any, left: float, top: float, length: float) -> None:
    """Draw a bar in ten black and white parts, with ticks at its ends."""
    high = 0.2 * _CELL
    draw.rectangle((left, top, left + length - 1, top + high), 255, 0, 3)
    for part in range(0, 10, 2):
        draw.rectangle((left + 0.1 * part * length, top, left + 0.1 * (part + 1) * length - 1, top + high), 0)
    for end in (left, left + length - 1):
        draw.line((end, top - 0.5 * high, end, top + 1.5 * high), 0, 3)


def write_marker_sheet(path: str | Path, side: float = SIDE, number: int = 0, dictionary: str = DICTIONARY) -> dict[str, Any]:
    """Write a sheet as PNG with its size on paper, and what it holds as text in it.

    Returns:
        Dictionary, number and side [m], as in the file.

    Raises:
        AirworthyError: As `draw_marker_sheet`, the name does not end in .png, or it cannot be written.
    """
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    out = Path(path)
    if out.suffix.lower() != ".png":
        raise AirworthyError(f"A marker cannot be written to {str(out)!r}: expected a name that ends in .png.")
    pixels, density = draw_marker_sheet(side, number, dictionary)
    held = {"dictionary": dictionary, "number": number, "side_m": side}
    note, inches = PngInfo(), density * 0.0254
    note.add_text(NOTE, json.dumps(held))
    picture = Image.fromarray(pixels)
    make_folder(out.parent)
    write_atomic(out, lambda part: picture.save(part, "PNG", dpi=(inches, inches), pnginfo=note))
    return held
