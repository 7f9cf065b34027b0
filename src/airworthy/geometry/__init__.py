"""Shapes, hierarchies over them, and ray, swept, distance and occupancy queries over batches of environments."""

from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.cast import CHANNELS, RayTable, cast
from airworthy.geometry.native_text import BATCH_ARGUMENTS, BATCH_INTEGERS, native_source
from airworthy.geometry.occlusion import interpolate, occluded
from airworthy.geometry.placement import Box, Capsule, Cylinder, Mesh, Placement, Shape, Sphere, bounds
from airworthy.geometry.surface_nets import surface_nets

__all__ = [
    "BATCH_ARGUMENTS", "BATCH_INTEGERS", "CHANNELS", "Box", "Capsule", "Cylinder", "GeometryBatch", "Mesh", "Placement",
    "RayTable", "Shape", "Sphere", "bounds", "cast", "interpolate", "native_source", "occluded", "surface_nets",
]  # fmt: skip
