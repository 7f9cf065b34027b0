"""Broadleaf trees without their leaves, as colours show them in winter, over the crowns that are hit."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from airworthy.geometry import Mesh, Shape
from airworthy.scenes.extent import hidden
from airworthy.scenes.record import Instance, Scene
from airworthy.scenes.vegetation.kinds import tree_kind, tree_kinds
from airworthy.scenes.vegetation.tree import LEAVES

__all__ = ["leafless"]


def leafless(scene: Scene) -> Scene:
    """Return a place whose broadleaf trees (`Planting.tree`) are seen bare; what is hit, ranged and labelled keeps its leaves.

    Args:
        scene: The place.
    """
    bare: dict[str, Mesh] = {}
    for name, shape in scene.shapes.items():
        if isinstance(shape, Mesh) and _drops(name) and (wood := _wood(shape)) is not None:
            bare[f"bare {name}"] = wood
    if not bare:
        return scene

    def seen(item: Instance) -> Instance:
        return replace(item, shape=f"bare {item.shape}", collide=False) if f"bare {item.shape}" in bare else item

    leaved = [item for item in scene.instances if f"bare {item.shape}" in bare]
    shapes: dict[str, Shape] = {**scene.shapes, **bare}
    return replace(
        scene,
        shapes=shapes,
        instances=tuple(hidden(item) if f"bare {item.shape}" in bare else item for item in scene.instances),
        looks=(*map(seen, scene.looks), *map(seen, leaved)),
    )


def _drops(name: str) -> bool:
    """Tell whether a shape is the crown of a kind that is bare in winter, by its name."""
    part, _, rest = name.partition("/")
    kind = rest.partition("/")[0]
    return part == "crown" and kind in tree_kinds() and not tree_kind(kind).evergreen


@lru_cache(maxsize=512)
def _wood(mesh: Mesh) -> Mesh | None:
    """Return what of a crown is wood, one mesh for all places that share the crown; None where no leaves grow on it."""
    if mesh.face_material is None or not (mesh.face_material == LEAVES).any():
        return None
    left = mesh.face_material != LEAVES
    faces = mesh.faces[left]
    # Leaves come last of all parts: their vertices do, too.
    count = int(faces.max()) + 1
    normals, uv, colors = (None if table is None else table[:count] for table in (mesh.normals, mesh.uv, mesh.colors))
    return Mesh(mesh.vertices[:count], faces, normals, uv, colors, mesh.face_material[left])
