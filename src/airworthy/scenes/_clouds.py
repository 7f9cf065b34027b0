"""Clouds of Gaussian splats beside a scene.toml: read from any container, written exactly, as PLY or as SPZ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_bytes
from airworthy.scenes import _assets, _schema
from airworthy.scenes._assets import Folder
from airworthy.scenes.formats.model import Limits

if TYPE_CHECKING:
    from airworthy.scenes.splats.record import Splats

CloudForm = Literal["exact", "ply", "spz"]
CLOUD_FORMS: tuple[CloudForm, ...] = get_args(CloudForm)
_PARTS = ("position", "rotation", "scale", "opacity", "harmonics")


@dataclass(frozen=True)
class CloudRow:
    """A splat file."""

    file: str
    """Beside the scene file: a container of `read_splats`, a folder of SOG, or arrays as `write_scene` leaves them."""
    up: str = ""
    """Axis of the file that points up; empty: as its container says."""
    level: int = 0
    """Level of detail of a streamed SOG, 0 the finest."""


def read_clouds(items: list[tuple[str, Any]], folder: Folder, where: str) -> dict[str, Splats]:
    """Clouds by their names in a scene file; all of them together are bounded. Raises AssetError."""
    found: dict[str, Splats] = {}
    for name, value in items:
        place = f"{where}: clouds.{_schema.short(name)}"
        row: CloudRow = _schema.record(CloudRow, value, place)
        path = folder.path(row.file, f"{place}.file")
        found[name] = _read(path, row, _left(folder.limits, found), place)
    return found


def _left(limits: Limits, found: dict[str, Splats]) -> Limits:
    """What the next cloud may ask for: splat files have limits of their own unless the reader was given some."""
    from airworthy.scenes.splats.loaded import SPLAT_LIMITS

    own = SPLAT_LIMITS if limits == Limits() else limits
    return replace(own, vertices=max(own.vertices - sum(len(cloud) for cloud in found.values()), 0))


def _read(path: Path, row: CloudRow, limits: Limits, where: str) -> Splats:
    from airworthy.scenes.splats.read import read_splats

    try:
        if row.file.endswith(_assets.ARRAYS):
            return _from_arrays(_assets.read_arrays(read_bytes(path, limits.file_bytes), where), limits)
        return read_splats(path, limits, up=row.up or None, level=row.level).splats
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None


def _from_arrays(arrays: _assets.Arrays, limits: Limits) -> Splats:
    """A cloud that was written bit for bit; whoever wrote the file, it must be sound."""
    from airworthy.scenes.splats.record import Splats

    for part in _PARTS:
        if part not in arrays or arrays[part].dtype != np.float32:
            raise AssetError(f"The arrays of a cloud lack {part!r} as float32; write the scene again.")
    if not len(arrays["position"]) <= limits.vertices:
        raise AssetError(f"A cloud has {len(arrays['position']):,} gaussians; at most {limits.vertices:,} are accepted.")
    splats = Splats(**{part: arrays[part] for part in _PARTS})
    finite = all(bool(np.isfinite(arrays[part]).all()) for part in _PARTS)
    length = np.linalg.norm(splats.rotation, axis=1)
    opaque = (splats.opacity >= 0.0) & (splats.opacity <= 1.0)
    if not (finite and (splats.scale > 0.0).all() and (np.abs(length - 1.0) < 1e-3).all() and opaque.all()):
        raise AssetError("The arrays of a cloud hold values that no gaussian has; write the scene again.")
    return splats


def write_cloud(splats: Splats, root: Path, stem: str, form: CloudForm) -> dict[str, Any]:
    """Write a cloud below a folder; the entry of the scene file that reads it."""
    if form == "exact":
        file = f"{stem}.cloud{_assets.ARRAYS}"
        _assets.write_arrays(root / file, {part: getattr(splats, part) for part in _PARTS})
        return {"file": file}
    from airworthy.scenes.splats.write import write_splats

    file = f"{stem}.{form}"
    if form == "ply":
        write_splats(splats, root / file, up="z")
        return {"file": file, "up": "z"}
    write_splats(splats, root / file)
    return {"file": file}
