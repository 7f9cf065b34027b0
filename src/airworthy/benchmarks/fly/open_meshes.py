"""Open meshes around a place: they bound no volume, so that nothing says whether the place is inside of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AssetWarning
from airworthy.core.frames import rotate_inverse
from airworthy.geometry import Mesh
from airworthy.geometry.query_arguments import is_closed
from airworthy.geometry.twins import winding_number
from airworthy.scenes import Scene

__all__ = ["open_meshes_around", "warn_of_open_meshes"]

# Jacobson, Kavan, Sorkine-Hornung 2013, "Robust inside-outside segmentation using generalized winding numbers": of an open mesh
# the winding number is a fraction, and a half is the best place to cut.
_INSIDE = 0.5


def open_meshes_around(scene: Scene, point: Array) -> list[str]:
    """Return the names of what stands around a place and can be hit, but whose mesh bounds no volume.

    Rooms whose faces look inwards are not meant: there, flying is inside.

    Args:
        scene: The scene.
        point: World [m], (3,).
    """
    found, closed = [], dict[str, bool]()
    for item in scene.instances:
        mesh = scene.shapes.get(item.shape)
        if not (item.collide and isinstance(mesh, Mesh)) or not len(mesh.faces):
            continue
        local = rotate_inverse(item.attitude, np.asarray(point, np.float64) - item.position) / item.scale
        vertices = np.asarray(mesh.vertices, np.float64)
        if (local < vertices.min(0)).any() or (local > vertices.max(0)).any():
            continue
        if item.shape not in closed:
            closed[item.shape] = is_closed(mesh)
        if not closed[item.shape] and winding_number(local[None], vertices[np.asarray(mesh.faces)])[0] >= _INSIDE:
            found.append(item.name or item.shape)
    return found


def warn_of_open_meshes(scene: Scene, places: Mapping[str, Array]) -> None:
    """Warn once where a start or a goal may lie inside of an open mesh, which its distance to the surface does not tell.

    Args:
        scene: The scene.
        places: World positions [m], (3,), by what they are.
    """
    around = {what: names for what, point in places.items() if (names := open_meshes_around(scene, point))}
    if not around:
        return
    names = list(dict.fromkeys(name for several in around.values() for name in several))
    count = f" ({len(names)} meshes)" if len(names) > 1 else ""
    shown = ", ".join(map(repr, names[:3])) + (" ..." if len(names) > 3 else "")
    warnings.warn(
        f"The {' and the '.join(around)} may lie inside of {shown}{count}: an open mesh bounds no volume, so that inside cannot"
        " be told, and only the distance to its surface was looked at; close it, or choose another place.",
        AssetWarning,
        stacklevel=4,
    )
