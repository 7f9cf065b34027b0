"""One door for every format: by the suffix of the file."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from airworthy.core.errors import AssetError
from airworthy.scenes.formats.model import DEFAULT_LIMITS, FileLimits, Model, Points

# Suffix to the file beside this one and its function: who reads a mesh need not load the reader of USD stages.
_MODELS = {
    ".glb": ("gltf.reader", "read_gltf"),
    ".gltf": ("gltf.reader", "read_gltf"),
    ".obj": ("obj.reader", "read_obj"),
    ".stl": ("stl", "read_stl"),
    ".ply": ("ply", "read_ply"),
    ".dae": ("dae", "read_dae"),
    ".sdf": ("worlds", "read_sdf"),
    ".world": ("worlds", "read_sdf"),
    ".urdf": ("worlds", "read_urdf_scene"),
    ".usd": ("usd", "read_usd"),
    ".usda": ("usd", "read_usd"),
    ".usdc": ("usd", "read_usd"),
    ".usdz": ("usd", "read_usd"),
}
_POINTS = {".ply": ("ply", "read_ply_points"), ".pcd": ("pcd", "read_pcd")}
MODEL_SUFFIXES = tuple(_MODELS)
POINT_SUFFIXES = tuple(_POINTS)


def read_model(path: str | Path, limits: FileLimits = DEFAULT_LIMITS) -> Model:
    """Return meshes, materials, textures, instances, lights and skeletons of a .glb, .gltf, .obj, .stl, .ply or .dae file, or
    of an SDF world, URDF or USD stage (extra `usd`).

    glTF is turned from y up to z up, COLLADA and USD as they say; the other formats do not say what is up, and are taken as
    they are. What was dropped or mended stands in the model's warnings.

    Args:
        path: The file.
        limits: What it may ask for.

    Raises:
        AssetError: The suffix is none of these, or the file is missing, damaged, hostile or too large.
    """
    model: Model = _reader(path, _MODELS, "a model")(path, limits)
    return model


def read_points(path: str | Path, limits: FileLimits = DEFAULT_LIMITS) -> Points:
    """Return the point cloud of a .ply or .pcd file; raises AssetError as `read_model`."""
    points: Points = _reader(path, _POINTS, "a point cloud")(path, limits)
    return points


def _reader(path: str | Path, readers: Mapping[str, tuple[str, str]], what: str) -> Any:
    # By the ending here, by content within a reader: most formats have no mark that tells them from text.
    suffix = Path(path).suffix.lower()
    if suffix not in readers:
        raise AssetError(f"{str(path)!r} cannot be read as {what}: its name ends in none of {', '.join(readers)}.")
    module, function = readers[suffix]
    return getattr(import_module(f"airworthy.scenes.formats.{module}"), function)
