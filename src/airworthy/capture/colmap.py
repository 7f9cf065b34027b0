"""Reading the sparse models of COLMAP, binary and text: cameras, images, points3D.

Poses are world to camera with the project's camera axes (x right, y down, z forward).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from airworthy.capture._colmap_binary import binary_cameras, binary_images, binary_points
from airworthy.capture._colmap_text import text_cameras, text_images, text_points
from airworthy.capture._gate import Gate
from airworthy.capture.cameras import SourceCamera, camera_of
from airworthy.capture.listing import Frame, Listing
from airworthy.core import files, frames
from airworthy.core.errors import AirworthyError

__all__ = ["colmap_model", "list_colmap"]

PLACES = ("sparse/0", "sparse", "colmap/sparse/0", "colmap/sparse", "0", ".")
"""Where a model may lie in the folder of a capture."""
IMAGE_FOLDERS = ("images", "images_2", "images_4", "images_8", "input")
_READERS: dict[str, tuple[Callable, Callable, Callable]] = {
    ".bin": (binary_cameras, binary_images, binary_points),
    ".txt": (text_cameras, text_images, text_points),
}


def colmap_model(gate: Gate) -> tuple[str, str] | None:
    """Folder of the model in that of the capture, and the ending of its files; None where there is none."""
    for place in PLACES:
        for end in _READERS:
            if (gate.folder / place / f"images{end}").is_file():
                return place, end
    return None


def list_colmap(gate: Gate, place: str, end: str, images: str | None = None) -> Listing:
    """Images and points of a model.

    Args:
        gate: The folder of the capture.
        place: Folder of the model in it.
        end: ".bin" or ".txt".
        images: Folder of the images in it; None: the first there is of `IMAGE_FOLDERS`.

    Raises:
        AssetError: A file is missing or damaged, or there is no folder of images.
    """
    read_cameras, read_images, read_points = _READERS[end]
    result = Listing(f"COLMAP, {'binary' if end == '.bin' else 'text'}")
    cameras: dict[int, SourceCamera | str] = {}
    for number, model, width, height, parameters in read_cameras(gate, _data(gate, place, f"cameras{end}")):
        try:
            cameras[number] = camera_of(model, width, height, parameters)
        except AirworthyError as error:
            cameras[number] = str(error)
    folder = images if images is not None else _image_folder(gate)
    for name, number, rotation, translation in read_images(gate, _data(gate, place, f"images{end}")):
        camera = cameras.get(number, f"it has the camera {number}, which is not listed")
        pose = np.array([*rotation, *translation])
        if isinstance(camera, str):
            result.skip(name, camera)
        elif not (np.isfinite(pose).all() and np.abs(pose).max() < gate.limits.coordinate and np.abs(pose[:4]).max() > 1e-6):
            result.skip(name, "its pose is not finite, or its rotation zero")
        else:
            where, turn = frames.pose_from_colmap(frames.normalize(pose[:4]), pose[4:])
            result.frames.append(Frame(f"{folder}/{name}" if folder else name, camera, where, turn))
    if gate.locate(f"{place}/points3D{end}") is None:
        result.notes.append("the model has no points")
        return result
    points, colors = read_points(gate, _data(gate, place, f"points3D{end}"))
    good = (np.abs(points) < gate.limits.coordinate).all(axis=1)
    if not good.all():
        result.notes.append(f"{np.count_nonzero(~good):,} points left out that are not finite or far away")
    if good.any():
        result.points, result.colors = points[good], colors[good]
    return result


def _data(gate: Gate, place: str, name: str) -> bytes:
    path = gate.locate(f"{place}/{name}")
    if path is None:
        gate.refuse(f"its model has no file {place}/{name}")
    return files.read_bytes(path, gate.limits.model_bytes)


def _image_folder(gate: Gate) -> str:
    found = next((name for name in IMAGE_FOLDERS if (gate.folder / name).is_dir()), None)
    if found is None:
        gate.refuse(f"it has a model and no folder of images ({', '.join(IMAGE_FOLDERS)})")
    return found
