"""Small captures of every layout that is read, written by code of the tests' own."""

from __future__ import annotations

import io
import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from airworthy.core import frames

Files = dict[str, bytes]
"""Path in the folder to content."""
SIZE = (12, 8)
COLMAP_NUMBERS = {"SIMPLE_PINHOLE": 0, "PINHOLE": 1, "SIMPLE_RADIAL": 2, "RADIAL": 3, "OPENCV": 4, "OPENCV_FISHEYE": 5}
COLMAP_NUMBERS |= {"FULL_OPENCV": 6, "FOV": 7, "SIMPLE_RADIAL_FISHEYE": 8, "RADIAL_FISHEYE": 9}


def picture(seed: int = 0, size: tuple[int, int] = SIZE, kind: str = "PNG", channels: int = 3) -> bytes:
    """An image of random bytes, width and height as given."""
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], channels)).astype(np.uint8)
    held = io.BytesIO()
    Image.fromarray(pixels[..., 0] if channels == 1 else pixels).save(held, kind)
    return held.getvalue()


def poses(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Level cameras on a circle that look inwards, turned a little."""
    rng = np.random.default_rng(seed)
    turn = np.linspace(0.0, 2.0 * np.pi, count, endpoint=False)
    position = np.stack((3.0 * np.cos(turn), 3.0 * np.sin(turn), 1.0 + 0.1 * np.cos(3.0 * turn)), axis=-1)
    attitude = frames.camera_attitude(frames.from_euler(0.05 * rng.normal(size=count), 0.0, turn + np.pi))
    return position, attitude


def opengl_matrix(position: np.ndarray, attitude: np.ndarray) -> list[list[float]]:
    """Camera to world with OpenGL's axes: the columns for y and z negated, written out."""
    matrix = np.eye(4)
    matrix[:3, :3] = frames.to_matrix(attitude) * (1.0, -1.0, -1.0)
    matrix[:3, 3] = position
    return matrix.tolist()


def ply_points(points: np.ndarray) -> bytes:
    head = f"ply\nformat ascii 1.0\nelement vertex {len(points)}\n" + "".join(f"property float {a}\n" for a in "xyz")
    head += "".join(f"property uchar {a}\n" for a in ("red", "green", "blue")) + "end_header\n"
    return (head + "".join(f"{x:.6f} {y:.6f} {z:.6f} 10 20 30\n" for x, y, z in points)).encode()


def transforms(count: int = 4, **top: Any) -> Files:
    """A transforms.json in the manner of Nerfstudio, with a mask and points."""
    position, attitude = poses(count)
    frames_ = [
        {"file_path": f"images/{k}.png", "transform_matrix": opengl_matrix(position[k], attitude[k])} for k in range(count)
    ]
    frames_[0]["mask_path"] = "masks/0.png"
    table = {"w": SIZE[0], "h": SIZE[1], "fl_x": 10.0, "fl_y": 11.0, "cx": 6.25, "cy": 3.75, "camera_model": "OPENCV"}
    table |= {"k1": 0.01, "k2": -0.002, "p1": 0.001, "p2": 0.0, "aabb_scale": 4, "ply_file_path": "points.ply", **top}
    files = {"transforms.json": json.dumps({**table, "frames": frames_}).encode()}
    files |= {f"images/{k}.png": picture(k) for k in range(count)}
    files["masks/0.png"] = picture(9, channels=1)
    files["points.ply"] = ply_points(np.eye(3))
    return files


def blender(count: int = 3) -> Files:
    """A set in the manner of the synthetic scenes: two files, a field of view, names without endings, transparency."""
    files: Files = {}
    for seed, part in enumerate(("train", "test")):
        position, attitude = poses(count, seed)
        entries = [
            {"file_path": f"./{part}/r_{k}", "rotation": 0.1, "transform_matrix": opengl_matrix(position[k], attitude[k])}
            for k in range(count)
        ]
        angle = 2.0 * math.atan(0.5 * SIZE[0] / 20.0)
        files[f"transforms_{part}.json"] = json.dumps({"camera_angle_x": angle, "frames": entries}).encode()
        files |= {f"{part}/r_{k}.png": picture(10 * seed + k, channels=4) for k in range(count)}
    return files


def colmap(count: int = 4, binary: bool = True, model: str = "OPENCV", parameters: tuple[float, ...] | None = None) -> Files:
    """A sparse model with one camera, a point, and an image without observations among others with two."""
    position, attitude = poses(count)
    rotation, offset = frames.colmap_pose(position, attitude)
    values = parameters or (10.0, 11.0, 6.25, 3.75, 0.01, -0.002, 0.001, 0.0)
    files = {f"images/{k}.jpg": picture(k, kind="JPEG") for k in range(count)}
    rows = [(f"{k}.jpg", rotation[k], offset[k], 2 * (k > 0)) for k in range(count)]
    points = [(7, (0.5, -1.0, 2.0), (200, 100, 50), [(1, 0), (2, 1)]), (9, (1.0, 0.0, 0.25), (1, 2, 3), [])]
    writer = _colmap_binary if binary else _colmap_text
    return writer(model, values, rows, points) | files


def _colmap_binary(model: str, values: tuple[float, ...], rows: list, points: list) -> Files:
    cameras = struct.pack("<QiiQQ", 1, 3, COLMAP_NUMBERS[model], *SIZE) + struct.pack(f"<{len(values)}d", *values)
    images = struct.pack("<Q", len(rows))
    for k, (name, rotation, offset, observations) in enumerate(rows):
        images += struct.pack("<i7di", k + 1, *rotation, *offset, 3) + name.encode() + b"\0" + struct.pack("<Q", observations)
        images += b"".join(struct.pack("<ddq", 1.0, 2.0, -1) for _ in range(observations))
    cloud = struct.pack("<Q", len(points))
    for number, place, color, track in points:
        cloud += struct.pack("<Q3d3BdQ", number, *place, *color, 0.5, len(track))
        cloud += b"".join(struct.pack("<ii", *pair) for pair in track)
    return {"sparse/0/cameras.bin": cameras, "sparse/0/images.bin": images, "sparse/0/points3D.bin": cloud}


def _colmap_text(model: str, values: tuple[float, ...], rows: list, points: list) -> Files:
    cameras = f"# Camera list\n3 {model} {SIZE[0]} {SIZE[1]} " + " ".join(map(repr, map(float, values))) + "\n"
    images = "# Image list\n# with two lines each\n"
    for k, (name, rotation, offset, observations) in enumerate(rows):
        images += f"{k + 1} " + " ".join(repr(float(value)) for value in (*rotation, *offset)) + f" 3 {name}\n"
        images += " ".join(["1.0 2.0 -1"] * observations) + "\n"
    cloud = "# 3D points\n"
    for number, place, color, track in points:
        fields = (number, *place, *color, 0.5, *(value for pair in track for value in pair))
        cloud += " ".join(map(str, fields)) + "\n"
    return {
        f"sparse/0/{name}.txt": text.encode()
        for name, text in zip(("cameras", "images", "points3D"), (cameras, images, cloud), strict=True)
    }


def write(folder: Path, files: Files) -> Path:
    """Write the files; returns the folder."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # some file systems wait for the disk where a file is cut short and written again
        path.write_bytes(data)
    return folder
