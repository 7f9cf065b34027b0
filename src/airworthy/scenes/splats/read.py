"""One door for every container of splats: by the suffix of the file, or by its first bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from airworthy.core.errors import AssetError
from airworthy.scenes.formats._source import Source
from airworthy.scenes.formats.model import Limits
from airworthy.scenes.splats import _sog_streamed, nerfstudio
from airworthy.scenes.splats._flat import decode_ksplat, decode_splat
from airworthy.scenes.splats._folders import read_fields
from airworthy.scenes.splats._gltf import decode_gltf
from airworthy.scenes.splats._ply import decode_ply
from airworthy.scenes.splats._raw import Decoded, Raw, checked, joined
from airworthy.scenes.splats._sog import decode_meta, decode_sog, finished
from airworthy.scenes.splats._spz import decode_spz
from airworthy.scenes.splats.loaded import SPLAT_LIMITS, LoadedSplats, SourceFrame
from airworthy.scenes.splats.transforming import transformed, up_turn

_READERS: dict[str, Callable[[Source], Decoded]] = {
    ".ply": decode_ply,
    ".spz": decode_spz,
    ".sog": decode_sog,
    ".zip": decode_sog,
    ".splat": decode_splat,
    ".ksplat": decode_ksplat,
    ".glb": decode_gltf,
    ".gltf": decode_gltf,
}
_MAGIC = ((b"ply\n", ".ply"), (b"ply\r", ".ply"), (b"\x1f\x8b", ".spz"), (b"NGSP", ".spz"), (b"PK\x03\x04", ".sog"))
SPLAT_SUFFIXES = (*_READERS, ".json")


def read_splats(
    path: str | Path,
    limits: Limits = SPLAT_LIMITS,
    *,
    up: str | None = None,
    level: int = 0,
    chunks: Sequence[int] | None = None,
    transforms: str | Path | bool | None = None,
) -> LoadedSplats:
    """Gaussians of a splat file, in the frame of a scene: z up, x as in the file where that is possible.

    Containers: PLY of 3DGS, plain and packed, binary and text; SPZ versions 2 to 4; SOG version 2 as a bundle (.sog), a folder
    or its meta.json, a streamed set (lod-meta.json), or a folder of SOGs named <level>_<chunk>; .splat; .ksplat; glTF with
    KHR_gaussian_splatting. Gaussians that are not finite, have no size, no rotation or an impossible opacity are dropped and
    counted. Nothing but the file, and files in its folder that it names, is read.

    Args:
        path: The file, or a folder of SOG.
        limits: What it may ask for.
        up: The axis of the file that points up ("y", "-y", "z", "-z", "x", "-x"); None: as the container says, else as is
            usual for it (see docs/splats.md). "z" leaves the file's coordinates as they are.
        level: Level of detail of a streamed SOG, 0 the finest.
        chunks: Only these chunks of that level.
        transforms: Of a PLY: Nerfstudio's dataparser_transforms.json, which leads back to the frame of the images; None: the
            one beside the file, where there is one; False: none. `up` then is the axis of the images' frame, z unless given.

    Raises:
        AssetError: The file is missing, damaged, hostile, too large, a training checkpoint, or of no known kind.
        AirworthyError: The level, a chunk or the axis does not exist.
    """
    path = Path(path)
    if up is not None:
        up_turn(up)
    with np.errstate(all="ignore"):  # files hold numbers that overflow; what is not finite in the end is dropped
        return _read(path, limits, up, level, chunks, transforms)


def _read(
    path: Path,
    limits: Limits,
    up: str | None,
    level: int,
    chunks: Sequence[int] | None,
    transforms: str | Path | bool | None,
) -> LoadedSplats:
    if path.suffix.lower() in nerfstudio.CHECKPOINTS:
        nerfstudio.refuse_checkpoint(path)
    if os.path.isdir(path):
        return _read_folder(path, limits, up, level, chunks)
    suffix = path.suffix.lower()
    source = Source(path, limits)
    if suffix == ".json":
        return _finish(source, _decode_json(source, level, chunks), up)
    reader = _READERS.get(suffix) or _READERS.get(next((name for magic, name in _MAGIC if source.data.startswith(magic)), ""))
    if reader is None:
        raise AssetError(f"{str(path)!r} cannot be read as splats: its name ends in none of {', '.join(SPLAT_SUFFIXES)}.")
    decoded = reader(source)
    beside = nerfstudio.transforms_beside(path, transforms) if reader is decode_ply else None
    return _finish(source, decoded, up, beside)


def _decode_json(source: Source, level: int, chunks: Sequence[int] | None) -> Decoded:
    meta = read_fields(source, source.data, "its JSON")
    if "lodLevels" in meta:
        return _sog_streamed.decode_streamed(source, meta, level, chunks)
    return decode_meta(source, meta)


def _read_folder(path: Path, limits: Limits, up: str | None, level: int, chunks: Sequence[int] | None) -> LoadedSplats:
    for name in ("lod-meta.json", "meta.json"):
        if (path / name).is_file():
            return _read(path / name, limits, up, level, chunks, None)
    files, levels = _sog_streamed.chunk_folders(path, level, chunks)
    if not files:
        raise AssetError(f"{str(path)!r} is a folder without lod-meta.json, meta.json or chunks; a splat file was expected.")
    parts: list[Raw] = []
    antialiased = False
    left = limits.vertices
    for file in files:
        source, raw, flag = _sog_streamed.decode_chunk(file, replace(limits, vertices=left))
        parts.append(raw)
        left -= len(raw.position)
        antialiased |= flag
    return _finish(source, finished(joined(parts), antialiased, "SOG version 2 in chunks", levels), up)


def _finish(source: Source, decoded: Decoded, up: str | None, transforms: Path | None = None) -> LoadedSplats:
    """Check the gaussians and bring them into the frame of the scene."""
    splats, dropped = checked(source, decoded.raw)
    frame, axis = SourceFrame("z", ""), up or decoded.up
    if transforms is not None:
        frame, axis = nerfstudio.read_transforms(transforms), up or "z"
        source.warn(f"{nerfstudio.TRANSFORMS} applied: coordinates are those of the images")
    frame = nerfstudio.followed_by(frame, up_turn(axis), axis, decoded.axes)
    if (frame.rotation, frame.translation, frame.scale) != ((0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0), 1.0):
        splats = transformed(splats, frame.rotation, frame.translation, frame.scale)
    return LoadedSplats(splats, decoded.container, frame, dropped, source.warnings, decoded.antialiased, decoded.levels)
