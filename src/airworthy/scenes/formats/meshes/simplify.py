"""Fewer triangles for the same thing: merging equal vertices, and levels of detail by clustering, of meshes and of scenes."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayInt, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Mesh, Shape
from airworthy.scenes.formats._parts import unit
from airworthy.scenes.record import Scene

_UV_CELL = 1 / 16  # vertices of one place whose texture coordinates differ by more stay apart: they lie on a seam
_STEPS = 24


def weld(mesh: Mesh) -> Mesh:
    """Return the mesh with vertices that are equal in everything merged; faces that lose their area are dropped."""
    rows = _attributes(mesh)
    _, first, number = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return _rebuilt(mesh, first, number.reshape(-1))


def levels_of_detail(mesh: Mesh, shares: tuple[float, ...] = (1.0, 0.25, 0.06)) -> tuple[Mesh, ...]:
    """Return versions of a mesh with about these shares of its triangles, or fewer; a share of 1 is the mesh itself.

    Raises:
        AirworthyError: If a share is not above 0.
    """
    if any(share <= 0 for share in shares):
        raise AirworthyError(f"Levels of detail with shares {shares} were asked for; every share must be above 0.")
    return tuple(mesh if share >= 1 else simplified(mesh, int(share * len(mesh.faces))) for share in shares)


def simplified(mesh: Mesh, face_count: int) -> Mesh:
    """Return a mesh of at most so many triangles (and at least four, if it has them), by clustering vertices on a grid.

    Vertices in one cell of the grid become one point, their mean weighted by the area around them, so the result stays within
    a cell's diagonal of the original. Seams of texture coordinates and borders between materials stay. The size of the cell
    is found by bisection.

    Args:
        mesh: The mesh.
        face_count: Triangles wanted.
    """
    if len(mesh.faces) <= max(face_count, 4):
        return mesh
    lower = mesh.vertices.min(0).astype(np.float64)
    extent = float((mesh.vertices.max(0) - lower).max())
    # Bisection of the logarithm: cells may be a hundredth or a tenth of the mesh.
    fine, coarse = extent * 1e-5, extent
    best: Mesh | None = None
    for _ in range(_STEPS):
        cell = float(np.sqrt(fine * coarse))
        trial = _clustered(mesh, lower, cell)
        if len(trial.faces) > face_count:
            fine = cell
        # Less than a tetrahedron is no body any more.
        elif len(trial.faces) < 4:
            coarse = cell
        else:
            best, coarse = trial, cell
        if coarse / fine < 1.02:
            break
    return best if best is not None else mesh


def _clustered(mesh: Mesh, lower: Array, cell: float) -> Mesh:
    # Half a cell off, so that vertices on the lower bounds lie in the middle of a cell.
    grid = np.floor((mesh.vertices - lower) / cell + 0.5).astype(np.int64)
    cell_count, cell_of = _groups(grid)
    weight = _areas(mesh)
    centre = _means(mesh.vertices, cell_of, weight, cell_count)
    keys = [cell_of]
    if mesh.uv is not None:
        keys += list(np.floor(mesh.uv.T.astype(np.float64) / _UV_CELL).astype(np.int64))
    # Vertices of one cell stay apart where their texture coordinates do: at seams.
    count, vertex_of = _groups(np.stack(keys, 1))
    position = np.empty((count, 3), np.float32)
    position[vertex_of] = centre[cell_of]
    result: dict[str, ArrayF32 | None] = {}
    for name in ("normals", "uv", "colors"):
        values = getattr(mesh, name)
        result[name] = None if values is None else _means(values, vertex_of, weight, count).astype(np.float32)
    if result["normals"] is not None:
        result["normals"] = unit(result["normals"])[0]
    channels = {name: _means(v, vertex_of, weight, count).astype(np.float32) for name, v in mesh.channels.items()}
    faces = vertex_of[mesh.faces]
    corner = cell_of[mesh.faces]
    keep = (corner[:, 0] != corner[:, 1]) & (corner[:, 1] != corner[:, 2]) & (corner[:, 2] != corner[:, 0])
    # The two sides of a thin thing fall onto each other.
    keep[keep] = _first_of_each(corner[keep])
    material = None if mesh.face_material is None else mesh.face_material[keep]
    whole = Mesh(position, faces[keep].astype(np.int32), face_material=material, channels=channels, **result)
    return _used_only(whole)


def _groups(keys: ArrayInt) -> tuple[int, ArrayInt]:
    """Return the number of different rows, and which of them each row is."""
    _, number = np.unique(keys, axis=0, return_inverse=True)
    number = number.reshape(-1)
    return (int(number.max()) + 1 if len(number) else 0), number


def _areas(mesh: Mesh) -> Array:
    """(V,) area of the faces around each vertex, and a little so that lone vertices count."""
    corners = mesh.vertices[mesh.faces].astype(np.float64)
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    total = np.bincount(mesh.faces.reshape(-1), np.repeat(area, 3), len(mesh.vertices)).astype(np.float64)
    return total + np.float64(1e-12 * max(float(total.max(initial=0.0)), 1e-12))


def _means(values: NDArray, group: ArrayInt, weight: Array, count: int) -> NDArray:
    table = values.reshape(len(values), -1).astype(np.float64)
    total = np.bincount(group, weight, count)
    result: Array = np.empty((count, table.shape[1]))
    for column in range(table.shape[1]):
        result[:, column] = np.bincount(group, weight * table[:, column], count) / total
    return result.reshape((count, *values.shape[1:]))


def _first_of_each(corner: ArrayInt) -> ArrayBool:
    """Of faces with the same three corners, in any order, only the first is kept."""
    keep = np.zeros(len(corner), bool)
    if len(corner):
        keep[np.unique(np.sort(corner, 1), axis=0, return_index=True)[1]] = True
    return keep


def _attributes(mesh: Mesh) -> ArrayF32:
    """Everything a vertex has, side by side; -0 is 0."""
    columns = [mesh.vertices, mesh.normals, mesh.uv, mesh.colors, *mesh.channels.values()]
    return np.concatenate([c.reshape(len(c), -1) for c in columns if c is not None], 1) + np.float32(0.0)


def _rebuilt(mesh: Mesh, first: ArrayInt, number: ArrayInt) -> Mesh:
    faces = number[mesh.faces].astype(np.int32)
    keep = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    picked = {name: None if (v := getattr(mesh, name)) is None else v[first] for name in ("normals", "uv", "colors")}
    material = None if mesh.face_material is None else mesh.face_material[keep]
    channels = {name: values[first] for name, values in mesh.channels.items()}
    return Mesh(mesh.vertices[first], faces[keep], face_material=material, channels=channels, **picked)


def _used_only(mesh: Mesh) -> Mesh:
    used, faces = np.unique(mesh.faces, return_inverse=True)
    picked = {name: None if (v := getattr(mesh, name)) is None else v[used] for name in ("normals", "uv", "colors")}
    channels = {name: values[used] for name, values in mesh.channels.items()}
    return dataclasses.replace(
        mesh, vertices=mesh.vertices[used], faces=faces.reshape(-1, 3).astype(np.int32), channels=channels, **picked
    )


# ---- Whole scenes: for scans that are finer than a sensor can see ------------------------------------------------------------

FACES_MIN = 64
"""Meshes of no more triangles are kept as they are."""


def coarser(scene: Scene, share: float) -> Scene:
    """Return a scene whose meshes have about a share of their triangles, or fewer; solids, poses and textures stay.

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
    """Return bytes of the unique meshes of a scene, as its record holds them."""
    unique = {id(shape): shape for shape in scene.shapes.values() if isinstance(shape, Mesh)}
    arrays = ("vertices", "faces", "normals", "uv", "colors", "face_material")
    held = (getattr(shape, name) for shape in unique.values() for name in arrays)
    return sum(array.nbytes for array in held if array is not None)
