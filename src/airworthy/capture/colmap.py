"""Reading the sparse models of COLMAP, binary and text: cameras, images, points3D.

Poses are world to camera with the project's camera axes (x right, y down, z forward).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NoReturn

import numpy as np

from airworthy.capture._gate import CaptureFolder
from airworthy.capture.cameras import MODELS, CapturedFrame, Listing, SourceCamera, camera_of
from airworthy.core import files, frames
from airworthy.core.arrays import Array, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.core.files import shown

__all__ = ["colmap_model", "list_colmap"]

# -----------------------------------------------------------------------------------------------------------------------------
# COLMAP's binary files: little-endian; counts are held against the bytes that are there before anything is made.

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

    def __init__(self, gate: CaptureFolder, data: bytes, name: str, smallest: int, limit: int) -> None:
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


def binary_cameras(gate: CaptureFolder, data: bytes) -> Iterator[CameraRow]:
    """Yield number, model, width, height and parameters of each camera."""
    reader = _Reader(gate, data, "cameras.bin", _CAMERA.size, gate.limits.cameras)
    for _ in range(reader.count):
        number, model, width, height = reader.take(_CAMERA)
        if model not in _NUMBERS:
            gate.refuse(f"its cameras.bin has a camera of the unknown model {model}")
        name = _NUMBERS[model]
        yield number, name, width, height, reader.take(struct.Struct(f"<{_COUNTS[name]}d"))


def binary_images(gate: CaptureFolder, data: bytes) -> Iterator[ImageRow]:
    """Yield name, number of the camera, rotation (w, x, y, z) and translation of each image, world to camera."""
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


def binary_points(gate: CaptureFolder, data: bytes) -> tuple[Array, ArrayU8]:
    """Return places (m, 3) and colours (m, 3) of the points."""
    reader = _Reader(gate, data, "points3D.bin", _POINT.size, gate.limits.points)
    positions, colors = np.empty((reader.count, 3)), np.empty((reader.count, 3), np.uint8)
    for k in range(reader.count):
        _, x, y, z, red, green, blue, _, length = reader.take(_POINT)
        positions[k], colors[k] = (x, y, z), (red, green, blue)
        reader.skip(_TRACK * length)
    return positions, colors


# ---- COLMAP's text files: a record a line, two lines per image; lines that begin with # are comments -----------------------

# COLMAP's own files keep these numbers in 32 bits.
_WIDEST = 2**31


def _lines(gate: CaptureFolder, data: bytes, name: str, limit: int) -> list[str]:
    """Lines that are no comments; empty ones too, since an image without points has one."""
    gate.at_most(data.count(b"\n"), limit, f"lines in {name}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        gate.refuse(f"its {name} is not UTF-8 text")
    return [line for line in text.split("\n") if not line.startswith("#")]


def text_cameras(gate: CaptureFolder, data: bytes) -> Iterator[CameraRow]:
    """Yield cameras as `binary_cameras`."""
    for line in _lines(gate, data, "cameras.txt", gate.limits.cameras + 100):
        tokens = line.split()
        if not tokens:
            continue
        try:
            number, width, height = int(tokens[0]), int(tokens[2]), int(tokens[3])
            parameters = tuple(map(float, tokens[4:]))
        except (IndexError, ValueError):
            _refuse(gate, "cameras.txt", line)
        if max(abs(number), abs(width), abs(height)) >= _WIDEST:
            _refuse(gate, "cameras.txt", line)
        # Cut: the name of a model goes into messages, and a stranger's may be long.
        yield number, tokens[1][:40], width, height, parameters


def text_images(gate: CaptureFolder, data: bytes) -> Iterator[ImageRow]:
    """Yield images as `binary_images`."""
    lines = _lines(gate, data, "images.txt", 2 * gate.limits.frames + 100)
    # Every second line lists an image's points, of which nothing is needed.
    for line in lines[::2]:
        tokens = line.split(maxsplit=9)
        if not tokens:
            continue
        try:
            numbers = tuple(map(float, tokens[1:8]))
            camera = int(tokens[8])
            name = tokens[9].strip()
        except (IndexError, ValueError):
            _refuse(gate, "images.txt", line)
        yield name, camera, numbers[:4], numbers[4:]


def text_points(gate: CaptureFolder, data: bytes) -> tuple[Array, ArrayU8]:
    """Return points and colours as `binary_points`."""
    lines = [line for line in _lines(gate, data, "points3D.txt", gate.limits.points + 100) if line.strip()]
    positions, colors = np.empty((len(lines), 3)), np.empty((len(lines), 3), np.uint8)
    for k, line in enumerate(lines):
        tokens = line.split(maxsplit=7)
        try:
            positions[k] = [float(token) for token in tokens[1:4]]
            colors[k] = [int(token) for token in tokens[4:7]]
        except (IndexError, ValueError, OverflowError):
            _refuse(gate, "points3D.txt", line)
    return positions, colors


def _refuse(gate: CaptureFolder, name: str, line: str) -> NoReturn:
    gate.refuse(f"its {name} has the line {shown(line)}")


# -----------------------------------------------------------------------------------------------------------------------------

MODEL_FOLDERS = ("sparse/0", "sparse", "colmap/sparse/0", "colmap/sparse", "0", ".")
"""Where a model may lie in the folder of a capture."""
MASK_FOLDER = "masks"
IMAGE_FOLDERS = ("images", "images_2", "images_4", "images_8", "input")
_READERS: dict[str, tuple[Callable, Callable, Callable]] = {
    ".bin": (binary_cameras, binary_images, binary_points),
    ".txt": (text_cameras, text_images, text_points),
}


def colmap_model(gate: CaptureFolder) -> tuple[str, str] | None:
    """Return the folder of the model in that of the capture, and the ending of its files; None where there is none."""
    for model_folder in MODEL_FOLDERS:
        for end in _READERS:
            if (gate.folder / model_folder / f"images{end}").is_file():
                return model_folder, end
    return None


def list_colmap(gate: CaptureFolder, model_folder: str, end: str, images: str | None = None) -> Listing:
    """Return images and points of a model.

    Args:
        gate: The folder of the capture.
        model_folder: Folder of the model in it.
        end: ".bin" or ".txt".
        images: Folder of the images in it; None: the first there is of `IMAGE_FOLDERS`.

    Raises:
        AssetError: A file is missing or damaged, or there is no folder of images.
    """
    read_cameras, read_images, read_points = _READERS[end]
    result = Listing(f"COLMAP, {'binary' if end == '.bin' else 'text'}")
    cameras: dict[int, SourceCamera | str] = {}
    for number, model, width, height, parameters in read_cameras(gate, _data(gate, model_folder, f"cameras{end}")):
        try:
            cameras[number] = camera_of(model, width, height, parameters)
        except AirworthyError as error:
            cameras[number] = str(error)
    folder = images if images is not None else _image_folder(gate)
    for name, number, rotation, translation in read_images(gate, _data(gate, model_folder, f"images{end}")):
        camera = cameras.get(number, f"it has the camera {number}, which is not listed")
        pose = np.array([*rotation, *translation])
        if isinstance(camera, str):
            result.skip(name, camera)
        elif not (np.isfinite(pose).all() and np.abs(pose).max() < gate.limits.coordinate and np.abs(pose[:4]).max() > 1e-6):
            result.skip(name, "its pose is not finite, or its rotation zero")
        else:
            where, turn = frames.pose_from_colmap(frames.normalize(pose[:4]), pose[4:])
            path = f"{folder}/{name}" if folder else name
            result.frames.append(CapturedFrame(path, camera, where, turn, _mask(gate, name)))
    if gate.locate(f"{model_folder}/points3D{end}") is None:
        result.notes.append("the model has no points")
        return result
    points, colors = read_points(gate, _data(gate, model_folder, f"points3D{end}"))
    good = (np.abs(points) < gate.limits.coordinate).all(axis=1)
    if not good.all():
        result.notes.append(f"{np.count_nonzero(~good):,} points left out that are not finite or far away")
    if good.any():
        result.points, result.colors = points[good], colors[good]
    return result


def _mask(gate: CaptureFolder, name: str) -> str:
    """Return the name of an image's mask, which is white where the image is to be used; empty where it has none.

    COLMAP looks for `masks/NAME.png` with the image's own ending before it; others leave that out.
    """
    names = (f"{MASK_FOLDER}/{name}.png", f"{MASK_FOLDER}/{name.rpartition('.')[0] or name}.png")
    return next((found for found in names if gate.locate(found) is not None), "")


def _data(gate: CaptureFolder, model_folder: str, name: str) -> bytes:
    path = gate.locate(f"{model_folder}/{name}")
    if path is None:
        gate.refuse(f"its model has no file {model_folder}/{name}")
    return files.read_bytes(path, gate.limits.model_bytes)


def _image_folder(gate: CaptureFolder) -> str:
    found = next((name for name in IMAGE_FOLDERS if (gate.folder / name).is_dir()), None)
    if found is None:
        gate.refuse(f"it has a model and no folder of images ({', '.join(IMAGE_FOLDERS)})")
    return found
