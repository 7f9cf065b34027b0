"""COLMAP's binary files: little-endian; counts are held against the bytes that are there before anything is made."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from airworthy.capture._gate import Gate
from airworthy.capture.cameras import MODELS

_NUMBERS = {
    0: "SIMPLE_PINHOLE",
    1: "PINHOLE",
    2: "SIMPLE_RADIAL",
    3: "RADIAL",
    4: "OPENCV",
    5: "OPENCV_FISHEYE",
    6: "FULL_OPENCV",
    7: "FOV",
    8: "SIMPLE_RADIAL_FISHEYE",
    9: "RADIAL_FISHEYE",
    10: "THIN_PRISM_FISHEYE",
}
_COUNTS = {"FOV": 5, "THIN_PRISM_FISHEYE": 12} | {name: len(parameters) for name, parameters in MODELS.items()}
_CAMERA, _IMAGE, _POINT = struct.Struct("<iiQQ"), struct.Struct("<i7di"), struct.Struct("<Q3d3BdQ")
_NAME_MAX = 1024
_OBSERVATION, _TRACK = 24, 8

CameraRow = tuple[int, str, int, int, tuple[float, ...]]
ImageRow = tuple[str, int, tuple[float, ...], tuple[float, ...]]


class _Reader:
    """Bytes from front to back; asking for more than there are refuses the capture."""

    def __init__(self, gate: Gate, data: bytes, name: str, smallest: int, limit: int) -> None:
        self.gate, self.data, self.name, self.at = gate, data, name, 0
        (self.count,) = self.take(struct.Struct("<Q"))
        if self.count * smallest > len(data) - self.at:
            gate.refuse(f"its {name} promises {self.count:,} entries in {len(data):,} bytes")
        gate.at_most(self.count, limit, f"entries in {name}")

    def take(self, kind: struct.Struct) -> tuple:
        """Values of a record, and on behind it."""
        if self.at + kind.size > len(self.data):
            self.gate.refuse(f"its {self.name} ends too early")
        values = kind.unpack_from(self.data, self.at)
        self.at += kind.size
        return values

    def skip(self, size: int) -> None:
        """On by so many bytes."""
        if size > len(self.data) - self.at:
            self.gate.refuse(f"its {self.name} ends too early")
        self.at += size


def binary_cameras(gate: Gate, data: bytes) -> Iterator[CameraRow]:
    """Number, model, width, height and parameters of each camera."""
    reader = _Reader(gate, data, "cameras.bin", _CAMERA.size, gate.limits.cameras)
    for _ in range(reader.count):
        number, model, width, height = reader.take(_CAMERA)
        if model not in _NUMBERS:
            gate.refuse(f"its cameras.bin has a camera of the unknown model {model}")
        name = _NUMBERS[model]
        yield number, name, width, height, reader.take(struct.Struct(f"<{_COUNTS[name]}d"))


def binary_images(gate: Gate, data: bytes) -> Iterator[ImageRow]:
    """Name, number of the camera, rotation (w, x, y, z) and translation of each image, world to camera."""
    reader = _Reader(gate, data, "images.bin", _IMAGE.size + 9, gate.limits.frames)
    for _ in range(reader.count):
        values = reader.take(_IMAGE)
        end = data.find(b"\0", reader.at, reader.at + _NAME_MAX)
        if end < 0:
            gate.refuse("its images.bin has a name without an end")
        name = data[reader.at : end].decode("utf-8", "replace")
        reader.at = end + 1
        (observed,) = reader.take(struct.Struct("<Q"))
        reader.skip(_OBSERVATION * observed)
        yield name, values[8], values[1:5], values[5:8]


def binary_points(gate: Gate, data: bytes) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Places (m, 3) and colours (m, 3) of the points."""
    reader = _Reader(gate, data, "points3D.bin", _POINT.size, gate.limits.points)
    places, colors = np.empty((reader.count, 3)), np.empty((reader.count, 3), np.uint8)
    for k in range(reader.count):
        _, x, y, z, red, green, blue, _, length = reader.take(_POINT)
        places[k], colors[k] = (x, y, z), (red, green, blue)
        reader.skip(_TRACK * length)
    return places, colors
