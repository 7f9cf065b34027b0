"""Readers and writers of meshes and point clouds; the readers hold against hostile files."""

from airworthy.scenes.formats.maps import pack_metallic_roughness, read_maps
from airworthy.scenes.formats.model import Clip, Limits, Model, Points, Skeleton, Track
from airworthy.scenes.formats.read import MODEL_SUFFIXES, POINT_SUFFIXES, read_model, read_points
from airworthy.scenes.formats.tessellate import tessellate

__all__ = [
    "MODEL_SUFFIXES",
    "POINT_SUFFIXES",
    "Clip",
    "Limits",
    "Model",
    "Points",
    "Skeleton",
    "Track",
    "pack_metallic_roughness",
    "read_maps",
    "read_model",
    "read_points",
    "tessellate",
]
