"""A scene as a file for other tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from airworthy.core.errors import unknown_name
from airworthy.scenes.formats._parts import Writable
from airworthy.scenes.formats.sampling import sample_points
from airworthy.scenes.formats.write_dae import write_dae
from airworthy.scenes.formats.write_glb import write_glb
from airworthy.scenes.formats.write_obj import write_obj
from airworthy.scenes.formats.write_plain import write_pcd, write_ply, write_points_ply, write_stl
from airworthy.scenes.formats.write_sdf import write_sdf


def _write_cloud_pcd(path: str | Path, thing: Writable) -> Path:
    return write_pcd(path, sample_points(thing))


def _write_cloud_ply(path: str | Path, thing: Writable) -> Path:
    return write_points_ply(path, sample_points(thing))


EXPORTS: dict[str, Callable[[str | Path, Writable], Path]] = {
    "glb": write_glb,
    "obj": write_obj,
    "stl": write_stl,
    "ply": write_ply,
    "dae": write_dae,
    "sdf": write_sdf,
    "pcd": _write_cloud_pcd,
    "cloud.ply": _write_cloud_ply,
}
"""What `export_scene` can write: pcd and cloud.ply hold points, the others triangles."""


def export_scene(scene: Writable, path: str | Path, format: str = "") -> Path:  # noqa: A002
    """Write a scene for other tools, in world coordinates with z up (glTF: y up, as it demands).

    Args:
        scene: The scene, or a model or mesh; actors stand where they begin.
        path: The file. Images and meshes that a format keeps apart go beside it under names that begin with its own.
        format: A key of `EXPORTS`; "": by the name of the file.

    Returns:
        The path written.

    Raises:
        UnknownNameError: There is no such format.
        AirworthyError: An instance names a missing shape, or a file cannot be written.
    """
    chosen = format or _format_of(Path(path).name.lower())
    if chosen not in EXPORTS:
        raise unknown_name("export format", chosen, EXPORTS)
    return EXPORTS[chosen](path, scene)


def _format_of(name: str) -> str:
    if name.endswith(".cloud.ply"):
        return "cloud.ply"
    return "sdf" if name.endswith(".world") else name.rpartition(".")[2]
