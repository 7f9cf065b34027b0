"""Writing captures: transforms.json as Nerfstudio reads it, PNG images, masks, points as PLY."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.capture.record import CaptureImages
from airworthy.core import frames
from airworthy.core.arrays import ArrayAny, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.core.files import make_folder, staged_folder, write_bytes, write_json
from airworthy.scenes.formats import Points, write_points_ply

__all__ = ["frame_entry", "png_bytes", "transforms_table", "write_capture"]

IMAGES, MASKS, POINTS, TRANSFORMS = "images", "masks", "points.ply", "transforms.json"
_PLAIN = re.compile(r"[^A-Za-z0-9_\-]+")


def write_capture(images: CaptureImages, folder: str | Path) -> Path:
    """Write posed images as a folder that `read_capture` and Nerfstudio read; an older capture there
    is replaced as a whole or not at all.

    Args:
        images: The capture.
        folder: Made where it is missing.

    Returns:
        The path of the transforms.json.

    Raises:
        AirworthyError: It is empty, or cannot be written.
    """
    if not len(images):
        raise AirworthyError("A capture without images cannot be written.")
    with staged_folder(folder, lambda name: name in (IMAGES, MASKS, POINTS, TRANSFORMS), TRANSFORMS) as staged:
        root = staged.path
        make_folder(root / IMAGES)
        names = file_names(images.names)
        for name, pixels, mask in zip(names, images.rgb, images.masks, strict=True):
            write_bytes(root / IMAGES / f"{name}.png", png_bytes(pixels))
            if mask is not None:
                make_folder(root / MASKS)
                write_bytes(root / MASKS / f"{name}.png", png_bytes(mask.astype(np.uint8) * np.uint8(255)))
        if images.points is not None:
            write_points_ply(root / POINTS, Points(images.points.astype(np.float32), images.colors))
        write_json(root / TRANSFORMS, transforms_table(images, names))
        for inside in (IMAGES, MASKS):
            staged.carry(inside)
    return Path(folder) / TRANSFORMS


def transforms_table(images: CaptureImages, names: list[str]) -> dict[str, Any]:
    """Return what goes into transforms.json, for images written under these names."""
    entries = []
    for k, name in enumerate(names):
        entry = frame_entry(f"{IMAGES}/{name}.png", images.position[k], images.attitude[k])
        entry |= camera_entry(images.sizes[k], images.intrinsics[k])
        if images.masks[k] is not None:
            entry["mask_path"] = f"{MASKS}/{name}.png"
        entries.append(entry)
    table: dict[str, Any] = {"camera_model": "PINHOLE", "metric": images.metric, "up": "z"}
    held = np.asarray(images.held_out)
    if held.any():
        table["train_filenames"] = [entries[k]["file_path"] for k in images.training]
        table["test_filenames"] = [entries[k]["file_path"] for k in images.held_out_ids]
    if images.points is not None:
        table["ply_file_path"] = POINTS
    return table | {"frames": entries}


def frame_entry(path: str, position: ArrayAny, attitude: ArrayAny) -> dict[str, Any]:
    """Return an image and its pose, camera to world, OpenGL's axes.

    Args:
        path: Of the image, from the file that names it.
        position: Of the camera [m], world frame, (3,).
        attitude: Of the optical frame in the world, quaternion x, y, z, w, (4,).
    """
    # Writers of such files look along -z with y up; ours look along z with y down.
    matrix = np.eye(4)
    matrix[:3, :3] = frames.to_matrix(frames.opengl_attitude(attitude))
    matrix[:3, 3] = position
    return {"file_path": path, "transform_matrix": matrix}


def camera_entry(size: ArrayAny, intrinsics: ArrayAny) -> dict[str, Any]:
    """Intrinsics of an image."""
    fx, fy, cx, cy = map(float, intrinsics)
    return {"w": int(size[0]), "h": int(size[1]), "fl_x": fx, "fl_y": fy, "cx": cx, "cy": cy}


def file_names(names: tuple[str, ...]) -> list[str]:
    """Names of files, without folders and endings and each once."""
    plain = [_PLAIN.sub("_", Path(name.replace("\\", "/")).stem)[:80] or "image" for name in names]
    if len(set(plain)) < len(plain):
        plain = [f"{k:05d}_{name}" for k, name in enumerate(plain)]
    return plain


def png_bytes(pixels: ArrayU8) -> bytes:
    """PNG of grey (h, w) or coloured (h, w, 3) pixels, the same bytes for the same pixels."""
    from PIL import Image

    held = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(held, "PNG", compress_level=6)
    return held.getvalue()
