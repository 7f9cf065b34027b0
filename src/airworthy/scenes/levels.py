"""Levels of detail of whole scenes: fewer triangles, for scans that are finer than a sensor can see."""

from __future__ import annotations

from dataclasses import replace

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Mesh, Shape
from airworthy.scenes.formats.simplify import simplified
from airworthy.scenes.record import Scene

__all__ = ["coarser", "mesh_bytes"]

FACES_MIN = 64
"""Meshes of no more triangles are kept as they are."""


def coarser(scene: Scene, share: float) -> Scene:
    """A scene whose meshes have about a share of their triangles, or fewer; solids, poses and textures stay.

    Args:
        scene: The scene. A mesh that several instances use is simplified once.
        share: In (0, 1]; 1 is the scene itself.

    Raises:
        AirworthyError: The share is not in (0, 1].
    """
    if not 0.0 < share <= 1.0:
        raise AirworthyError(f"A level of detail with the share {share} was asked for; expected more than 0 and at most 1.")
    if share == 1.0:
        return scene
    bound = {name for skeleton in scene.skeletons.values() for name in skeleton.joints}  # weights belong to their vertices
    made: dict[int, Shape] = {}
    shapes = dict(scene.shapes)
    for name, shape in scene.shapes.items():
        if isinstance(shape, Mesh) and name not in bound and len(shape.faces) > FACES_MIN:
            if id(shape) not in made:
                made[id(shape)] = simplified(shape, max(FACES_MIN, int(share * len(shape.faces))))
            shapes[name] = made[id(shape)]
    return replace(scene, shapes=shapes)


def mesh_bytes(scene: Scene) -> int:
    """Bytes of the unique meshes of a scene, as its record holds them."""
    unique = {id(shape): shape for shape in scene.shapes.values() if isinstance(shape, Mesh)}
    arrays = ("vertices", "faces", "normals", "uv", "colors", "face_material")
    held = (getattr(shape, name) for shape in unique.values() for name in arrays)
    return sum(array.nbytes for array in held if array is not None)
