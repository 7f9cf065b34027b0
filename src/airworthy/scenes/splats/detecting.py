"""Whether a file holds splats: by its name, and where that does not tell, by its first bytes."""

from __future__ import annotations

import re
from pathlib import Path

from airworthy.scenes.splats.nerfstudio import CHECKPOINTS

__all__ = ["SPLAT_ONLY", "holds_splats"]

SPLAT_ONLY = (".sog", ".spz", ".splat", ".ksplat", ".zip", *CHECKPOINTS)
"""Endings of files that hold nothing but splats; checkpoints are refused by the reader, which says what to do."""
SETS = ("meta.json", "lod-meta.json")
_PLY_HEAD = 65536
_GLTF_HEAD = 2 * 1024 * 1024
_CHUNK = re.compile(r"[0-9]+_[0-9]+")


def holds_splats(path: str | Path) -> bool:
    """Whether `read_splats` is the reader for a path, which may be a folder of SOG; no where the file cannot be read."""
    path = Path(path)
    suffix = path.suffix.lower()
    if path.is_dir():
        return any((path / name).is_file() for name in SETS) or any(_CHUNK.fullmatch(item.name) for item in path.iterdir())
    if suffix in SPLAT_ONLY or path.name in SETS:
        return True
    if suffix == ".ply":
        head = _head(path, _PLY_HEAD).partition(b"end_header")[0]
        return b" f_dc_0" in head or b" packed_position" in head or (b" rot_0" in head and b" scale_0" in head)
    return suffix in (".glb", ".gltf") and b"KHR_gaussian_splatting" in _head(path, _GLTF_HEAD)


def _head(path: Path, size: int) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(size)
    except OSError:  # whoever reads it says why
        return b""
