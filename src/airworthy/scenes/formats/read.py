"""One door for every format: by the suffix of the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from airworthy.core.errors import AssetError
from airworthy.scenes.formats.dae import read_dae
from airworthy.scenes.formats.gltf import read_gltf
from airworthy.scenes.formats.model import DEFAULT_LIMITS, FileLimits, Model, Points
from airworthy.scenes.formats.obj import read_obj
from airworthy.scenes.formats.pcd import read_pcd
from airworthy.scenes.formats.ply import read_ply, read_ply_points
from airworthy.scenes.formats.stl import read_stl
from airworthy.scenes.formats.usd import read_usd
from airworthy.scenes.formats.worlds import read_sdf, read_urdf_scene

_MODELS: dict[str, Callable[[str | Path, FileLimits], Model]] = {
    ".glb": read_gltf,
    ".gltf": read_gltf,
    ".obj": read_obj,
    ".stl": read_stl,
    ".ply": read_ply,
    ".dae": read_dae,
    ".sdf": read_sdf,
    ".world": read_sdf,
    ".urdf": read_urdf_scene,
    ".usd": read_usd,
    ".usda": read_usd,
    ".usdc": read_usd,
    ".usdz": read_usd,
}
_POINTS: dict[str, Callable[[str | Path, FileLimits], Points]] = {".ply": read_ply_points, ".pcd": read_pcd}
MODEL_SUFFIXES = tuple(_MODELS)
POINT_SUFFIXES = tuple(_POINTS)


def read_model(path: str | Path, limits: FileLimits = DEFAULT_LIMITS) -> Model:
    """Meshes, materials, textures, instances, lights and skeletons of a .glb, .gltf, .obj, .stl, .ply or .dae file, or of an
    SDF world, URDF or USD stage (extra `usd`).

    glTF is turned from y up to z up, COLLADA and USD as they say; the other formats do not say what is up, and are taken as
    they are. What was dropped or mended stands in the model's warnings.

    Args:
        path: The file.
        limits: What it may ask for.

    Raises:
        AssetError: The suffix is none of these, or the file is missing, damaged, hostile or too large.
    """
    return _reader(path, _MODELS, "a model")(path, limits)


def read_points(path: str | Path, limits: FileLimits = DEFAULT_LIMITS) -> Points:
    """Point cloud of a .ply or .pcd file; raises AssetError as `read_model`."""
    return _reader(path, _POINTS, "a point cloud")(path, limits)


def _reader(path: str | Path, readers: dict[str, Callable], what: str) -> Callable:
    suffix = Path(path).suffix.lower()
    if suffix not in readers:
        raise AssetError(f"{str(path)!r} cannot be read as {what}: its name ends in none of {', '.join(readers)}.")
    return readers[suffix]
