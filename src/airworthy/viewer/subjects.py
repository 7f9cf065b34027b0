"""What is looked at: a scene, a splat file, or the folder of a flight, told apart by what it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from airworthy.core.errors import AssetError
from airworthy.scenes import scene
from airworthy.scenes.record import Scene
from airworthy.scenes.splats import SPLAT_SUFFIXES, Splats, read_splats
from airworthy.simulation.flights import FLIGHT_FILE, META_FILE
from airworthy.viewer.flights import ShownFlight, load_flight

__all__ = ["Subject", "load_subject"]

_SHARED = {".ply": (b"f_dc_0", b"packed_position"), ".glb": (b"KHR_gaussian_splatting",), ".gltf": (b"KHR_gaussian_splatting",)}
"""Suffixes of meshes and of splats alike, and what stands near the beginning of a file of splats."""
_HEAD = 1 << 20


@dataclass(frozen=True, eq=False)
class Subject:
    """What to show."""

    title: str
    scene: Scene | None = None
    splats: Splats | None = None
    """In the scene's slot, or alone in the world."""
    flight: ShownFlight | None = None


def load_subject(name: str, scene_name: str | None = None) -> Subject:
    """Find and read what a name means.

    Args:
        name: The folder of a flight, a splat file, or a scene as `airworthy.scenes.scene` takes it.
        scene_name: Of a flight: show it in this scene, instead of the one that its record names.

    Raises:
        AirworthyError: There is none of this name, or it is damaged.
    """
    path = Path(name)
    if (path / FLIGHT_FILE).is_file() or ((path / META_FILE).is_file() and not _is_splats(path)):
        flight = load_flight(path)
        where = scene_name or flight.scene
        found, splats = (None, None) if where is None else _scene(where)
        return Subject(path.name or name, found, splats, flight)
    if _is_splats(path):
        return Subject(path.name, None, read_splats(path).splats)
    if not path.exists() and path.suffix.lower() in SPLAT_SUFFIXES and path.suffix.lower() not in _SHARED:
        raise AssetError(f"There is no file {name!r}.")
    found, splats = _scene(name)
    return Subject(found.name, found, splats)


def _scene(name: str) -> tuple[Scene, Splats | None]:
    found = scene(name)
    return found, None if found.splat is None else read_splats(_slot_path(found.splat.path, name)).splats


def _slot_path(path: str, scene_name: str) -> Path:
    """The file of a slot: beside the scene's file, or as it stands."""
    home = Path(scene_name)
    beside = (home if home.is_dir() else home.parent) / path
    return beside if beside.exists() else Path(path)


def _is_splats(path: Path) -> bool:
    """Whether a file or folder holds splats; a folder of streamed ones has a meta.json too, which says "means"."""
    if path.is_dir():
        meta = path / META_FILE
        return (path / "lod-meta.json").is_file() or (meta.is_file() and b'"means"' in _head(meta))
    suffix = path.suffix.lower()
    if suffix not in SPLAT_SUFFIXES or not path.is_file():
        return False
    return suffix not in _SHARED or any(mark in _head(path) for mark in _SHARED[suffix])


def _head(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_HEAD)
    except OSError as error:
        raise AssetError(f"Could not read {str(path)!r}: {error.strerror or error}.") from error
