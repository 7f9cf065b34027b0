"""How much of the hemisphere over its vertices a mesh itself leaves open: shade that is too fine for probes of light."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayF32
from airworthy.geometry import GeometryBatch, Mesh, Placement, bounds, cast
from airworthy.rendering.directions import attitudes_towards, hemisphere_table, parts
from airworthy.scenes.appearance import OPEN_CHANNEL
from airworthy.scenes.record import Scene

__all__ = ["scene_occlusion", "vertex_normals", "vertex_occlusion"]


def scene_occlusion(scene: Scene, rays: int, distance: float, vertices_max: int) -> dict[str, ArrayF32]:
    """Return, of every mesh in use, the share of the hemisphere over each vertex that the mesh itself leaves open, (V,).

    Args:
        scene: With its meshes.
        rays: Per vertex; 0: only those are found that knew their shade without baking, and shall no more.
        distance: How far is looked, at the scale of the mesh's first instance [m].
        vertices_max: Meshes with more vertices are left out.
    """
    scales: dict[str, float] = {}
    cut: set[str] = set()
    for item in (*scene.instances, *scene.looks, *(part for actor in scene.actors for part in actor.parts)):
        # The first instance stands for all: occlusion belongs to a mesh, not to its copies.
        scales.setdefault(item.shape, item.scale)
        if any(scene.materials[name].alpha_cutoff > 0.0 for name in item.materials if name in scene.materials):
            cut.add(item.shape)
    found = {}
    for name, scale in scales.items():
        mesh = scene.shapes[name]
        # Sheets of leaves are holes for the most part. The volume of probes, whose rays go through holes, has the shade in a
        # crown; here it would be twice.
        if isinstance(mesh, Mesh) and OPEN_CHANNEL in mesh.channels:
            # It knew its shade without baking; now probes do, and its own would darken it twice.
            found[name] = np.ones(len(mesh.vertices), np.float32)
        elif rays and name not in cut and isinstance(mesh, Mesh) and 0 < len(mesh.vertices) <= vertices_max and len(mesh.faces):
            found[name] = vertex_occlusion(mesh, rays, distance / scale)
    return found


def vertex_occlusion(mesh: Mesh, rays: int, distance: float) -> ArrayF32:
    """Return the share of the cosine-weighted hemisphere over each vertex that the mesh leaves open within a distance [m],
    (V,).

    Args:
        mesh: V vertices.
        rays: Per vertex or node.
        distance: How far is looked [m].
    """
    normals = vertex_normals(mesh)
    lower, upper = bounds(mesh)
    lift = 1e-3 * float(np.linalg.norm(upper - lower))
    # The mesh alone: what other things hide changes with where they stand, and is left to probes and maps.
    batch = GeometryBatch([mesh], [Placement.of(0)])
    table = hemisphere_table(rays)
    open_share = np.ones(len(mesh.vertices), np.float32)
    positions, attitude = mesh.vertices.astype(np.float64) + normals * lift, attitudes_towards(normals)
    for part in parts(len(positions), rays, "", True):
        count = part.stop - part.start
        hits = cast(batch, table, positions[part], attitude[part], np.zeros(count, np.int32), ("range",), max_range=distance)
        open_share[part] = np.isinf(hits["range"][:, 0]).mean(1)
    return open_share


def vertex_normals(mesh: Mesh) -> Array:
    """Return the mesh's own vertex normals, or means of its faces' weighted by area, (V, 3)."""
    if mesh.normals is not None:
        normals = mesh.normals.astype(np.float64)
    else:
        p = mesh.vertices.astype(np.float64)[mesh.faces]
        # Not brought to unit length: a cross product is as long as its face is large, which weights it.
        face = np.repeat(np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]), 3, axis=0)
        corner, count = mesh.faces.reshape(-1), len(mesh.vertices)
        normals = np.stack([np.bincount(corner, face[:, k], count) for k in range(3)], -1)
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    return np.where(length > 0.0, normals / np.maximum(length, 1e-300), np.array([0.0, 0.0, 1.0]))
