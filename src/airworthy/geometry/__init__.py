"""Shapes, hierarchies over them, and ray, swept, distance and occupancy queries over batches of environments."""

from airworthy.geometry.shapes import Box, Capsule, Cylinder, Mesh, Shape, Sphere, bounds

__all__ = ["Box", "Capsule", "Cylinder", "Mesh", "Shape", "Sphere", "bounds"]
