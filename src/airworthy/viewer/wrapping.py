"""Texture coordinates for what is textured by size: browsers know only coordinates, the renderer wraps by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.geometry import Mesh
from airworthy.scenes.record import Material

__all__ = ["wrapped"]


def wrapped(mesh: Mesh, materials: Sequence[Material], scale: float = 1.0) -> Mesh:
    """The mesh with coordinates along the dominant axis of each face where its material has a `texture_size`.

    Args:
        mesh: Of one shape.
        materials: Of its instance, at least one.
        scale: Of its instance; textures keep their size in the world.
    """
    sizes = np.array([material.texture_size for material in materials])
    kind = np.zeros(len(mesh.faces), int) if mesh.face_material is None else np.asarray(mesh.face_material, int)
    size = sizes[np.minimum(kind, len(sizes) - 1)]
    if not (size > 0.0).any():
        return mesh
    corner = np.asarray(mesh.faces).reshape(-1)  # neighbours may be wrapped along other axes, so none share a vertex
    points = mesh.vertices[corner].reshape(-1, 3, 3).astype(np.float64)
    along = _along(points) * scale / np.where(size > 0.0, size, 1.0)[:, None, None]
    given = np.zeros_like(along) if mesh.uv is None else mesh.uv[corner].reshape(along.shape)
    uv = np.where((size > 0.0)[:, None, None], along, given).reshape(-1, 2)
    return Mesh(
        mesh.vertices[corner],
        np.arange(len(corner), dtype=np.int32).reshape(-1, 3),
        None if mesh.normals is None else mesh.normals[corner],
        uv.astype(np.float32),
        None if mesh.colors is None else mesh.colors[corner],
        mesh.face_material,
    )


def _along(points: NDArray[np.float64]) -> NDArray[Any]:
    """Coordinates (faces, 3, 2) [m] of corners (faces, 3, 3): x and y from above, sideways and down on what stands."""
    normal = np.cross(points[:, 1] - points[:, 0], points[:, 2] - points[:, 0])
    axis = np.argmax(np.abs(normal), axis=1)
    sign = np.where(np.take_along_axis(normal, axis[:, None], 1) < 0.0, -1.0, 1.0)
    x, y, z = points[..., 0], points[..., 1], points[..., 2]
    u = np.choose(axis[:, None], [y * sign, -x * sign, x])
    v = np.choose(axis[:, None], [-z, -z, -y * sign])
    return np.stack([u, v], axis=-1)
