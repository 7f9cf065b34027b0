"""COLMAP's text files: a record a line, two lines per image; lines that begin with # are comments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from airworthy.capture._colmap_binary import CameraRow, ImageRow
from airworthy.capture._gate import Gate
from airworthy.core.untrusted import shown

_WIDEST = 2**31


def _lines(gate: Gate, data: bytes, name: str, limit: int) -> list[str]:
    """Lines that are no comments; empty ones too, since an image without points has one."""
    gate.at_most(data.count(b"\n"), limit, f"lines in {name}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        gate.refuse(f"its {name} is not UTF-8 text")
    return [line for line in text.split("\n") if not line.startswith("#")]


def text_cameras(gate: Gate, data: bytes) -> Iterator[CameraRow]:
    """As `binary_cameras`."""
    for line in _lines(gate, data, "cameras.txt", gate.limits.cameras + 100):
        words = line.split()
        if not words:
            continue
        try:
            number, width, height = int(words[0]), int(words[2]), int(words[3])
            parameters = tuple(map(float, words[4:]))
        except (IndexError, ValueError):
            _refuse(gate, "cameras.txt", line)
        if max(abs(number), abs(width), abs(height)) >= _WIDEST:
            _refuse(gate, "cameras.txt", line)
        yield number, words[1][:40], width, height, parameters


def text_images(gate: Gate, data: bytes) -> Iterator[ImageRow]:
    """As `binary_images`."""
    lines = _lines(gate, data, "images.txt", 2 * gate.limits.frames + 100)
    for line in lines[::2]:
        words = line.split(maxsplit=9)
        if not words:
            continue
        try:
            numbers = tuple(map(float, words[1:8]))
            camera = int(words[8])
            name = words[9].strip()
        except (IndexError, ValueError):
            _refuse(gate, "images.txt", line)
        yield name, camera, numbers[:4], numbers[4:]


def text_points(gate: Gate, data: bytes) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """As `binary_points`."""
    lines = [line for line in _lines(gate, data, "points3D.txt", gate.limits.points + 100) if line.strip()]
    places, colors = np.empty((len(lines), 3)), np.empty((len(lines), 3), np.uint8)
    for k, line in enumerate(lines):
        words = line.split(maxsplit=7)
        try:
            places[k] = [float(word) for word in words[1:4]]
            colors[k] = [int(word) for word in words[4:7]]
        except (IndexError, ValueError, OverflowError):
            _refuse(gate, "points3D.txt", line)
    return places, colors


def _refuse(gate: Gate, name: str, line: str) -> NoReturn:
    gate.refuse(f"its {name} has the line {shown(line)}")
