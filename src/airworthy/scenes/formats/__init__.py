"""Readers and writers of meshes and point clouds; the readers hold against hostile files."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.scenes.formats.export import EXPORTS, export_scene, write_dae, write_sdf
    from airworthy.scenes.formats.gltf.writer import write_glb
    from airworthy.scenes.formats.losses import export_losses
    from airworthy.scenes.formats.meshes.sampling import sample_points
    from airworthy.scenes.formats.meshes.simplify import levels_of_detail, simplified, weld
    from airworthy.scenes.formats.meshes.solids import tessellate
    from airworthy.scenes.formats.model import Clip, FileLimits, Model, Points, Skeleton, Track
    from airworthy.scenes.formats.obj.maps import pack_metallic_roughness, read_maps
    from airworthy.scenes.formats.obj.writer import write_obj
    from airworthy.scenes.formats.read import MODEL_SUFFIXES, POINT_SUFFIXES, read_model, read_points
    from airworthy.scenes.formats.write_plain import write_pcd, write_ply, write_points_ply, write_stl
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "EXPORTS",
    "MODEL_SUFFIXES",
    "POINT_SUFFIXES",
    "Clip",
    "FileLimits",
    "Model",
    "Points",
    "Skeleton",
    "Track",
    "export_losses",
    "export_scene",
    "levels_of_detail",
    "pack_metallic_roughness",
    "read_maps",
    "read_model",
    "read_points",
    "sample_points",
    "simplified",
    "tessellate",
    "weld",
    "write_dae",
    "write_glb",
    "write_obj",
    "write_pcd",
    "write_ply",
    "write_points_ply",
    "write_sdf",
    "write_stl",
]
