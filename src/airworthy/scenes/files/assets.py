"""What lies beside a scene.toml: meshes, skeletons and images, read through a gate and written without loss.

Meshes and skeletons of a written scene lie in safetensors files, which hold arrays bit for bit and are checked against the
bytes that are there; scenes written by people name model files (glTF, OBJ, STL, PLY) instead.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayU8
from airworthy.core.errors import AirworthyError, AssetError, unknown_name
from airworthy.core.files import parse_json, read_bytes, write_bytes
from airworthy.core.table_schema import TableSchema, short
from airworthy.geometry import Mesh
from airworthy.scenes.formats.model import Clip, FileLimits, Skeleton, Track

Arrays = dict[str, ArrayAny]
ARRAYS = ".safetensors"
SCHEMA = TableSchema(entries_max=100_000, list_max=100_000, number_max=1e15)
"""Of a scene.toml: a scene may hold that many instances."""

_PARTS = ("vertices", "faces", "normals", "uv", "colors", "face_material")
_JOINTS = ("parents", "position", "attitude", "scale", "inverse_bind")
_KINDS = ("translation", "rotation", "scale")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass
class Folder:
    """The folder of a scene file: every file that the scene names is found through here.

    Raises:
        AssetError: A name is absolute, remote or leads out of the folder; or the files together exceed the limits.
    """

    root: Path
    limits: FileLimits = field(default_factory=FileLimits)
    taken: int = 0
    """Bytes read so far."""

    def path(self, name: str, where: str) -> Path:
        """Return the path of a file by its name in the scene file."""
        if not name or "\x00" in name or name.startswith(("/", "\\")) or _SCHEME.match(name):
            raise AssetError(
                f"{where} is {short(name)!r}; expected the name of a file beside the scene file, not a remote or absolute one."
            )
        root = os.path.realpath(self.root)
        # Resolved before it is compared: links and ".." lead out only where they lead.
        found = os.path.realpath(os.path.join(root, name.replace("\\", "/")))
        # By parts, not by letters: "/scene2" begins with "/scene".
        if os.path.commonpath([found, root]) != root:
            raise AssetError(f"{where} is {short(name)!r}, which leads out of the scene's folder; put the file beside it.")
        return Path(found)

    def read(self, name: str, where: str) -> bytes:
        """Return bytes of a file; all of them together are bounded."""
        data = read_bytes(self.path(name, where), max(self.limits.file_bytes - self.taken, 0))
        self.taken += len(data)
        return data


# ---- arrays -------------------------------------------------------------------------------------------------------------


def read_arrays(data: bytes, where: str) -> Arrays:
    """Return arrays of a safetensors file; raises AssetError where it is damaged."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return load(data)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise AssetError(f"{where} is not a usable safetensors file: {short(str(error))}.") from None


def write_arrays(path: Path, arrays: Mapping[str, ArrayAny]) -> None:
    """Write arrays bit for bit, in alphabetical order, so that equal content is equal bytes."""
    from safetensors.numpy import save

    write_bytes(path, save({name: np.ascontiguousarray(arrays[name]) for name in sorted(arrays)}))


def mesh_arrays(name: str, mesh: Mesh) -> Arrays:
    """Return a mesh as named arrays: "vertices:NAME" and so on."""
    arrays = {f"{part}:{name}": getattr(mesh, part) for part in _PARTS if getattr(mesh, part) is not None}
    arrays.update({f"channel.{quote(channel, safe='')}:{name}": value for channel, value in mesh.channels.items()})
    return arrays


def mesh_from_arrays(arrays: Arrays, name: str, where: str) -> Mesh:
    """Return the mesh of a name; raises AssetError where it is not there or not a mesh.

    Args:
        arrays: By `part:mesh`, of an arrays file.
        name: Of the mesh.
        where: Names the file in messages.
    """
    mine = {key.partition(":")[0]: value for key, value in arrays.items() if key.partition(":")[2] == name}
    if "vertices" not in mine or "faces" not in mine:
        raise unknown_asset("mesh", name, {key.partition(":")[2] for key in arrays if key.startswith("vertices:")}, where)
    # Quoted, since a user's name may hold the colon that parts names from parts.
    channels = {unquote(key.removeprefix("channel.")): value for key, value in mine.items() if key.startswith("channel.")}
    try:
        return Mesh(**{part: mine.get(part) for part in _PARTS}, channels=channels)  # type: ignore[arg-type]
    except (AirworthyError, ValueError, TypeError, IndexError) as error:
        raise AssetError(f"{where}: mesh {short(name)!r} is damaged: {short(str(error))}") from None


def unknown_asset(kind: str, name: str, known: Any, where: str) -> AssetError:
    """Return the error for a name that a file does not hold.

    Args:
        kind: What it would be, in a word: mesh, texture.
        name: That was asked for.
        known: Names that the file holds.
        where: Names the file in messages.
    """
    return AssetError(f"{where}: {unknown_name(kind, name, known)}")


def skeleton_arrays(skeleton: Skeleton) -> Arrays:
    """Return a skeleton as named arrays; names and kinds of interpolation as JSON bytes under "about"."""
    arrays: Arrays = {part: getattr(skeleton, part) for part in _JOINTS}
    about: dict[str, Any] = {"names": list(skeleton.names), "shapes": list(skeleton.joints), "clips": []}
    for index, shape in enumerate(skeleton.joints):
        arrays[f"joints.{index}"], arrays[f"weights.{index}"] = skeleton.joints[shape], skeleton.weights[shape]
    for index, (name, clip) in enumerate(skeleton.clips.items()):
        tracks = []
        for kind in _KINDS:
            for joint, track in getattr(clip, kind).items():
                key = f"clip.{index}.{kind}.{joint}"
                arrays[f"{key}.times"], arrays[f"{key}.values"] = track.times, track.values
                tracks.append([kind, joint, track.interpolation])
        about["clips"].append({"name": name, "duration": float(clip.duration), "tracks": tracks})
    # One file instead of two: names cannot get lost from their arrays.
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    return arrays


def skeleton_from_arrays(arrays: Arrays, where: str) -> Skeleton:
    """Return the skeleton of a file; raises AssetError where it is damaged."""
    try:
        about = parse_json(arrays["about"].tobytes().decode("utf-8"), where)
        names = tuple(str(name) for name in about["names"])
        bound = list(map(str, about["shapes"]))
        skeleton = Skeleton(
            names=names,
            **{part: arrays[part] for part in _JOINTS},
            joints={shape: arrays[f"joints.{index}"] for index, shape in enumerate(bound)},
            weights={shape: arrays[f"weights.{index}"] for index, shape in enumerate(bound)},
            clips={str(item["name"]): _clip(arrays, index, item) for index, item in enumerate(about["clips"])},
        )
        _check_skeleton(skeleton)
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise AssetError(f"{where} is not a usable skeleton: {short(str(error)) or type(error).__name__}.") from None
    return skeleton


def _clip(arrays: Arrays, index: int, item: dict[str, Any]) -> Clip:
    clip = Clip(float(item["duration"]))
    for kind, joint, interpolation in item["tracks"]:
        if kind not in _KINDS or interpolation not in ("linear", "step", "cubic"):
            raise ValueError(f"a track of kind {kind!r} and interpolation {interpolation!r}")
        key = f"clip.{index}.{kind}.{int(joint)}"
        getattr(clip, kind)[int(joint)] = Track(arrays[f"{key}.times"], arrays[f"{key}.values"], interpolation)
    return clip


def _check_skeleton(skeleton: Skeleton) -> None:
    """Shapes and ranges that evaluation relies on; raises ValueError."""
    count = len(skeleton.names)
    for part, tail in zip(_JOINTS, ((), (3,), (4,), (3,), (4, 4)), strict=True):
        array = getattr(skeleton, part)
        if array.shape != (count, *tail) or not np.isfinite(array).all():
            raise ValueError(f"{part} has shape {array.shape}, or is not finite")
    # Parents first also means that there is no ring.
    if (skeleton.parents >= np.arange(count)).any() or (skeleton.parents < -1).any():
        raise ValueError("a parent comes after its child")
    for shape, joints in skeleton.joints.items():
        weights = skeleton.weights[shape]
        if joints.ndim != 2 or joints.shape[1:] != (4,) or weights.shape != joints.shape:
            raise ValueError(f"weights of {shape!r} have shape {weights.shape}")
        if joints.size and (joints.min() < 0 or joints.max() >= count):
            raise ValueError(f"{shape!r} is bound to a joint that is not there")
    for clip in skeleton.clips.values():
        for kind in _KINDS:
            for joint, track in getattr(clip, kind).items():
                _check_track(track, 4 if kind == "rotation" else 3)
                if not 0 <= joint < count:
                    raise ValueError(f"a clip moves joint {joint} of {count}")


def _check_track(track: Track, width: int) -> None:
    keys = len(track.times)
    shape = (keys, 3, width) if track.interpolation == "cubic" else (keys, width)
    if track.times.shape != (keys,) or keys == 0 or track.values.shape != shape:
        raise ValueError(f"a track has {track.times.shape} times and {track.values.shape} values")
    if not np.isfinite(track.times).all() or not np.isfinite(track.values).all() or (np.diff(track.times) < 0.0).any():
        raise ValueError("a track's times do not rise, or a number is not finite")


# ---- images -------------------------------------------------------------------------------------------------------------


def read_image(data: bytes, limits: FileLimits, where: str) -> ArrayU8:
    """Return pixels (h, w, 1, 3 or 4) of a PNG or JPEG; raises AssetError where it is damaged or too large.

    Args:
        data: The file's bytes.
        limits: Bounds on pixels and memory, held against the header before anything is decoded.
        where: Names the file in messages.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
            if image.width * image.height > min(limits.texture_pixels, limits.memory_bytes * 2):
                raise AssetError(
                    f"{where} has {image.width} x {image.height} pixels; at most {limits.texture_pixels:,} are accepted."
                )
            # Palettes may have a colour that is see-through.
            clear = "A" in image.getbands() or "transparency" in image.info
            mode = image.mode if image.mode in ("L", "RGB", "RGBA") else "RGBA" if clear else "RGB"
            pixels = np.asarray(image if image.mode == mode else image.convert(mode), np.uint8)
    except AssetError:
        raise
    except Exception as error:  # decoders raise whatever they like on damaged files; all of it is the file's fault
        raise AssetError(f"{where} is not a usable PNG or JPEG image: {short(str(error))}.") from None
    return np.ascontiguousarray(pixels if pixels.ndim == 3 else pixels[:, :, None])


def write_png(path: Path, pixels: ArrayU8) -> None:
    """Write pixels (h, w, 1, 3 or 4) as a PNG."""
    from PIL import Image

    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] not in (1, 3, 4):
        raise AirworthyError(f"An image has shape {pixels.shape} of {pixels.dtype}; expected (h, w, 1, 3 or 4) of uint8.")
    held = io.BytesIO()
    Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).save(held, "PNG", compress_level=6)
    write_bytes(path, held.getvalue())
