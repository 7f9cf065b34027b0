"""`transforms.json` as instant-ngp, Nerfstudio and the Blender sets have it: reading it, and writing captures with it."""

from __future__ import annotations

import io
import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.capture._gate import CaptureFolder
from airworthy.capture.cameras import MODELS, CapturedFrame, Listing, Rational, SourceCamera
from airworthy.capture.record import AS_READ, CaptureImages
from airworthy.core import files, frames
from airworthy.core.arrays import Array, ArrayAny, ArrayU8
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import make_folder, shown, staged_folder, write_bytes, write_json
from airworthy.optics.distortion import AnglePolynomial, PlumbBob
from airworthy.scenes.formats import FileLimits, Points, read_points, write_points_ply
from airworthy.scenes.splats import SourceFrame

__all__ = ["TRANSFORMS", "frame_entry", "list_transforms", "png_bytes", "transforms_table", "write_capture"]


SOURCE = "capture_to_place"
ALIGNMENT = "alignment.json"
"""What `airworthy capture video` leaves beside a model of COLMAP, whose frame stays its own."""
"""Key of the similarity from the frame of the set that this one came from."""
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
    source = images.source
    if (source.rotation, source.translation, source.scale) != (AS_READ.rotation, AS_READ.translation, AS_READ.scale):
        # Of our own: Nerfstudio passes over it. Its applied_transform would lead its exports back to the capture's frame.
        table[SOURCE] = {
            "scale": source.scale,
            "rotation_xyzw": list(source.rotation),
            "translation": list(source.translation),
        }
    if images.rendered:
        table["rendered"] = True
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
    """Return intrinsics of an image."""
    fx, fy, cx, cy = map(float, intrinsics)
    return {"w": int(size[0]), "h": int(size[1]), "fl_x": fx, "fl_y": fy, "cx": cx, "cy": cy}


def file_names(names: tuple[str, ...]) -> list[str]:
    """Return names of files, without folders and endings and each once."""
    plain = [_PLAIN.sub("_", Path(name.replace("\\", "/")).stem)[:80] or "image" for name in names]
    if len(set(plain)) < len(plain):
        plain = [f"{k:05d}_{name}" for k, name in enumerate(plain)]
    return plain


def png_bytes(pixels: ArrayU8) -> bytes:
    """Return PNG of grey (h, w) or coloured (h, w, 3) pixels, the same bytes for the same pixels."""
    from PIL import Image

    held = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(held, "PNG", compress_level=6)
    return held.getvalue()


Table = dict[str, Any]
# Of the Blender sets (Mildenhall et al.: NeRF, 2020).
SPLITS = ("transforms_train.json", "transforms_test.json", "transforms_val.json")
# Ours: files carry rotations of a few digits; what is farther from one is a mistake.
_ROTATION_ERROR = 1e-2
_SIZE = ("w", "h")
_MODELS = (*MODELS, "PERSPECTIVE")


class _Skipped(Exception):
    """Why an image cannot be used."""


def list_transforms(gate: CaptureFolder, name: str = TRANSFORMS) -> Listing:
    """Return images of one file, or of the files of a split where `name` is the first of these.

    Raises:
        AssetError: A file is missing, damaged or lists nothing.
    """
    if name != SPLITS[0]:
        return _list(gate, name, None)
    held = next((test for test in SPLITS[1:] if gate.locate(test) is not None), None)
    result = _list(gate, name, False)
    if held is not None:
        other = _list(gate, held, True)
        result.frames += other.frames
        for reason, count in other.missing.items():
            result.missing[reason] += count
            result.examples.setdefault(reason, other.examples[reason])
        result.split = True
    return result


def _list(gate: CaptureFolder, name: str, held_out: bool | None) -> Listing:
    root = _object(gate, name)
    entries = root.get("frames")
    if not isinstance(entries, list) or not entries:
        gate.refuse(f"its {name} has no list of frames")
    gate.at_most(len(entries), gate.limits.frames, f"frames in {name}")
    result = Listing(name, metric=root.get("metric") is True, up="z" if root.get("metric") is True else _up(root))
    result.rendered = root.get("rendered") is True
    tests = _names(root, "test_filenames") | _names(root, "val_filenames")
    trains = _names(root, "train_filenames")
    result.split = bool(held_out is None and tests)
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("file_path"), str):
            gate.refuse(f"frame {number} of its {name} is no object with a file_path")
        path: str = entry["file_path"]
        held = bool(held_out) or path in tests
        if result.split and trains and not held and path not in trains:
            result.skip(path, "it is in no part of the split")
            continue
        try:
            # What a frame says of its camera counts more than what the file says of all.
            result.frames.append(_frame(gate, {**root, **entry}, path, held))
        except _Skipped as reason:
            result.skip(path, str(reason))
        except AirworthyError as error:
            if isinstance(error, AssetError):
                raise
            result.skip(path, str(error))
    result.source = _source(root, result, name)
    if "applied_transform" in root:
        result.notes.append("poses and points hold the applied_transform of the file already")
    _take_points(gate, root, result)
    return result


def list_alignment(gate: CaptureFolder, result: Listing) -> None:
    """Note the way to the place that a file beside the set tells, where there is one; raises AssetError where it is damaged."""
    if gate.locate(ALIGNMENT) is None:
        return
    root = _object(gate, ALIGNMENT)
    result.alignment = _source(root, result, ALIGNMENT)
    result.aligned_metric = result.alignment is not None and root.get("metric") is True


def _source(root: Table, result: Listing, name: str) -> SourceFrame | None:
    """Return the frame of the set that this one came from, and the similarity from there."""
    given = root.get(SOURCE)
    if given is None:
        return None
    try:
        scale, rotation = float(given["scale"]), np.array(given["rotation_xyzw"], np.float64)
        # An alignment says its unit, a set has one of its own.
        translation = np.array(given["translation_m" if name == ALIGNMENT else "translation"], np.float64)
        sound = rotation.shape == (4,) and translation.shape == (3,) and 1e-9 < scale < 1e9
        sound = (
            sound and bool((np.abs(translation) < 1e9).all()) and abs(float(np.linalg.norm(rotation)) - 1.0) < _ROTATION_ERROR
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        sound = False
    if not sound:
        where = f" in {ALIGNMENT}" if name == ALIGNMENT else ""
        result.notes.append(f"its {SOURCE}{where} is no scale, rotation and translation, and is passed over")
        return None
    (x, y, z, w), (a, b, c) = rotation.tolist(), translation.tolist()
    return SourceFrame("z", "", (x, y, z, w), (a, b, c), scale)


def _object(gate: CaptureFolder, name: str) -> Table:
    path = gate.locate(name)
    if path is None:
        gate.refuse(f"it has no file {name}")
    value = files.read_json(path, gate.limits.json_bytes)
    if not isinstance(value, dict):
        gate.refuse(f"its {name} is no JSON object")
    return value


def _up(root: Table) -> str:
    return "z" if root.get("up") == "z" else ""


def _names(root: Table, key: str) -> set[str]:
    value = root.get(key, [])
    return {name for name in value if isinstance(name, str)} if isinstance(value, list) else set()


def _frame(gate: CaptureFolder, fields: Table, path: str, held: bool) -> CapturedFrame:
    matrix = _matrix(fields.get("transform_matrix"))
    if not np.isfinite(matrix).all() or np.abs(matrix).max() > gate.limits.coordinate:
        raise _Skipped("its pose is not finite, or no matrix of 3 or 4 rows of 4 numbers")
    rotation = matrix[:, :3]
    if np.abs(rotation @ rotation.T - np.eye(3)).max() > _ROTATION_ERROR or np.linalg.det(rotation) < 0.0:
        raise _Skipped("its pose holds no rotation")
    attitude = frames.opengl_attitude(frames.from_matrix(rotation))
    mask = fields.get("mask_path", "")
    camera, angle = _camera(fields)
    return CapturedFrame(path, camera, matrix[:, 3], attitude, mask if isinstance(mask, str) else "", angle, held)


def _matrix(value: Any) -> Array:
    """(3, 4), of NaN where it is not one."""
    rows = value if isinstance(value, list) and len(value) in (3, 4) else []
    if not rows or not all(isinstance(row, list) and len(row) == 4 for row in rows):
        return np.full((3, 4), np.nan)
    return np.array([[_number(item) for item in row] for row in rows[:3]])


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _camera(fields: Table) -> tuple[SourceCamera | None, float]:
    """Return the camera; or None and a field of view where the size is not given."""
    given = {key: _number(fields[key]) for key in ("fl_x", "fl_y", "cx", "cy", "w", "h") if key in fields}
    angles = {key: _number(fields[key]) for key in ("camera_angle_x", "camera_angle_y") if key in fields}
    if not all(math.isfinite(value) for value in (*given.values(), *angles.values())):
        raise _Skipped("its camera holds what is not a number")
    wide = angles.get("camera_angle_x", 0.0)
    if "fl_x" not in given and not 0.0 < wide < math.pi:
        raise _Skipped("it has neither fl_x nor a camera_angle_x between 0 and pi")
    lens = _lens(fields)
    if "w" not in given or "h" not in given:
        if "fl_x" in given or lens != PlumbBob():
            raise _Skipped("it has a focal length or a distortion, and no w and h")
        return None, wide
    width, height = given["w"], given["h"]
    if not (1.0 <= width < 1e6 and 1.0 <= height < 1e6):
        raise _Skipped(f"its camera has {width:.6g} x {height:.6g} pixels")
    # The Blender sets give the angle across alone: square pixels, and the axis through the middle.
    fx = given["fl_x"] if "fl_x" in given else 0.5 * width / math.tan(0.5 * wide)
    tall = angles.get("camera_angle_y", 0.0)
    fy = given.get("fl_y", 0.5 * height / math.tan(0.5 * tall) if "fl_x" not in given and 0.0 < tall < math.pi else fx)
    centre = given.get("cx", 0.5 * width), given.get("cy", 0.5 * height)
    return SourceCamera(int(width), int(height), fx, fy, *centre, lens), 0.0


def _lens(fields: Table) -> PlumbBob | Rational | AnglePolynomial:
    model = fields.get("camera_model", "OPENCV_FISHEYE" if fields.get("is_fisheye") is True else "OPENCV")
    if model not in _MODELS:
        raise _Skipped(f"its camera model is {shown(str(model))}")
    keys = ("k1", "k2", "k3", "k4", "k5", "k6", "p1", "p2")
    given = {key: _number(fields[key]) for key in keys if key in fields}
    if not all(math.isfinite(value) for value in given.values()):
        raise _Skipped("its distortion holds what is not a number")
    if "PINHOLE" in model:
        return PlumbBob()
    kind: Any = AnglePolynomial if "FISHEYE" in model else Rational if model == "FULL_OPENCV" else PlumbBob
    known = kind.__dataclass_fields__
    if any(value for key, value in given.items() if key not in known):
        raise _Skipped(f"it has distortion coefficients that {model} has not")
    lens: PlumbBob | Rational | AnglePolynomial = kind(**{key: value for key, value in given.items() if key in known})
    return lens


def _take_points(gate: CaptureFolder, root: Table, result: Listing) -> None:
    name = root.get("ply_file_path")
    if not isinstance(name, str):
        return
    path = gate.locate(name)
    if path is None:
        result.notes.append(f"there is no file {shown(name)} of points")
        return
    limits = FileLimits(vertices=gate.limits.points, coordinate=gate.limits.coordinate, file_bytes=gate.limits.model_bytes)
    found = read_points(path, limits)
    result.points, result.colors = found.positions.astype(np.float64), found.colors
    result.notes += found.warnings
