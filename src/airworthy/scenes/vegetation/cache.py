"""Meshes of plants and people on disk: made once, read by every later run; named by what they are made of and by whose code."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny
from airworthy.core.errors import AirworthyError, AssetError, AssetWarning
from airworthy.core.files import make_folder, read_bytes, sha256, write_bytes
from airworthy.geometry import Mesh

__all__ = ["cache_folder", "kept_mesh"]

_CHANNEL = "channel."
"""Before the names of a mesh's channels."""
_ARRAYS = ("vertices", "faces", "normals", "uv", "colors", "face_material")


def cache_folder() -> Path:
    """Return where plants are kept: AIRWORTHY_CACHE, else XDG_CACHE_HOME/airworthy, else ~/.cache/airworthy."""
    given = os.environ.get("AIRWORTHY_CACHE", "")
    if given:
        return Path(given) / "plants"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "airworthy" / "plants"


def kept_mesh(
    text: str, make: Callable[[], Mesh], folder: str | Path | None = None, package: str = "airworthy.scenes.vegetation"
) -> Mesh:
    """Return a mesh from the cache, or made and kept there: the same bits either way.

    Args:
        text: Everything that the mesh is a function of, but the code.
        make: Makes it.
        folder: The cache; None: `cache_folder()`.
        package: Whose code makes it.
    """
    path = Path(folder or cache_folder()) / f"{sha256(f'{text} {_code(package)}')[:32]}.safetensors"
    if path.is_file():
        try:
            return _read(path)
        except AirworthyError:  # damaged: it is only a cache, and is made anew
            pass
    mesh = make()
    try:
        make_folder(path.parent)
        write_bytes(path, _packed(mesh))
    except AirworthyError as error:
        warnings.warn(f"A plant ({text}) could not be kept and will grow again: {error}", AssetWarning, stacklevel=3)
    return mesh


@cache
def _code(package: str) -> str:
    """Return a digest of what makes meshes: those of before a change are not those of after it."""
    folder = files(package)
    sources = sorted(item.name for item in folder.iterdir() if item.name.endswith((".py", ".toml")))
    return sha256("\n".join(folder.joinpath(name).read_text("utf-8") for name in sources))


def _packed(mesh: Mesh) -> bytes:
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(value) for name in _ARRAYS if (value := getattr(mesh, name)) is not None}
    arrays |= {f"{_CHANNEL}{name}": np.ascontiguousarray(value) for name, value in mesh.channels.items()}
    return save(arrays, metadata={"sha256": _digest(arrays)})


def _digest(arrays: dict[str, ArrayAny]) -> str:
    return sha256(b"".join(name.encode() + np.ascontiguousarray(arrays[name]).tobytes() for name in sorted(arrays)))


def _read(path: Path) -> Mesh:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    data = read_bytes(path)
    try:
        arrays: dict[str, Any] = load(data)
        head = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        if head["__metadata__"]["sha256"] != _digest(arrays):
            raise ValueError("its digest is another")
        channels = {name.removeprefix(_CHANNEL): arrays.pop(name) for name in list(arrays) if name.startswith(_CHANNEL)}
        return Mesh(**arrays, channels=channels)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise AssetError(f"{str(path)!r} holds no plant ({error}); it grows again.") from error
