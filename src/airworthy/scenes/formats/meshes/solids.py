"""Analytic solids as triangles, with normals and texture coordinates, for files and viewers that know only meshes."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box, Cylinder, Mesh, Shape, Sphere


def tessellate(shape: Shape, segments: int = 32) -> Mesh:
    """Return triangles of a solid, counter-clockwise seen from outside; a mesh is returned as it is.

    Args:
        shape: The solid. Vertices of round ones lie on the surface, so the mesh is inside the solid.
        segments: Sides of a full circle, 3 or more; a sphere has half as many from pole to pole.

    Raises:
        AirworthyError: If `segments` is less than 3.
    """
    if segments < 3:
        raise AirworthyError(f"A circle of {segments} segments was asked for; 3 or more are needed.")
    if isinstance(shape, Mesh):
        return shape
    if isinstance(shape, Box):
        return _box(np.array(shape.half_size, float))
    if isinstance(shape, Cylinder):
        return _cylinder(shape.radius, shape.half_length, segments)
    if isinstance(shape, Sphere):
        return _capsule(shape.radius, 0.0, segments)
    return _capsule(shape.radius, shape.half_length, segments)


def _mesh(vertices: Array, faces: ArrayInt, normals: Array, uv: Array) -> Mesh:
    return Mesh(vertices.astype(np.float32), faces.astype(np.int32), normals.astype(np.float32), uv.astype(np.float32))


def _box(half: Array) -> Mesh:
    """Six faces of four vertices, each face with the whole texture; face order -x, +x, -y, +y, -z, +z."""
    corners, normals, uv = [], [], []
    square = np.array([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)])
    for axis in range(3):
        # Two axes that span the face, so that right x up points outwards; on the sides, up is world z.
        for sign in (-1.0, 1.0):
            normal = np.zeros(3)
            normal[axis] = sign
            up = np.array([0.0, 0.0, 1.0]) if axis < 2 else np.array([0.0, 1.0, 0.0])
            right = np.cross(up, normal)
            spread = (2 * square[:, :1] - 1) * right + (2 * square[:, 1:] - 1) * up + normal
            corners.append(spread * half)
            normals.append(np.repeat(normal[None], 4, 0))
            uv.append(np.stack([square[:, 0], 1 - square[:, 1]], 1))
    first = 4 * np.arange(6)[:, None, None]
    faces = (first + np.array([[0, 1, 2], [0, 2, 3]])).reshape(-1, 3)
    return _mesh(np.concatenate(corners), faces, np.concatenate(normals), np.concatenate(uv))


def _circle(segments: int) -> Array:
    """(segments + 1, 2) points of the unit circle; the last is the first again, for the seam of the texture."""
    # Modulo, so that the last point is the first to the bit, and the surface closed.
    angle = 2 * np.pi * (np.arange(segments + 1) % segments) / segments
    return np.stack([np.cos(angle), np.sin(angle)], 1)


def _grid_faces(rows: int, columns: int) -> ArrayInt:
    """Return two triangles per cell of a grid of vertices, row 0 at the bottom, columns counter-clockwise seen from above."""
    row, column = np.mgrid[0 : rows - 1, 0 : columns - 1]
    low = (row * columns + column).reshape(-1)
    high = low + columns
    return np.stack([np.stack([low, low + 1, high + 1], 1), np.stack([low, high + 1, high], 1)], 1).reshape(-1, 3)


def _cylinder(radius: float, half: float, segments: int) -> Mesh:
    circle = _circle(segments)
    count = segments + 1
    side = np.concatenate([np.column_stack([radius * circle, np.full(count, z)]) for z in (-half, half)])
    outward = np.tile(np.column_stack([circle, np.zeros(count)]), (2, 1))
    along = np.tile(np.linspace(0, 1, count), 2)
    parts = [(side, _grid_faces(2, count), outward, np.column_stack([along, np.repeat([1.0, 0.0], count)]))]
    for sign in (-1.0, 1.0):
        # Vertices of their own: a cap's normals are not those of the side.
        rim = np.column_stack([radius * circle[:-1], np.full(segments, sign * half)])
        vertices = np.vstack([rim, [0.0, 0.0, sign * half]])
        ring = np.arange(segments)
        faces = np.stack([ring, (ring + 1) % segments, np.full(segments, segments)], 1)
        normals = np.tile([0.0, 0.0, sign], (segments + 1, 1))
        uv = 0.5 + 0.5 * np.vstack([circle[:-1] * [1.0, -sign], [0.0, 0.0]])
        parts.append((vertices, faces if sign > 0 else faces[:, ::-1], normals, uv))
    starts = np.cumsum([0] + [len(part[0]) for part in parts])
    faces = np.concatenate([part[1] + start for part, start in zip(parts, starts, strict=False)])
    vertices, normals, uv = (np.concatenate([part[i] for part in parts]) for i in (0, 2, 3))
    return _mesh(vertices, faces, normals, uv)


def _capsule(radius: float, half: float, segments: int) -> Mesh:
    """Rings from the lower pole to the upper; a capsule doubles the equator."""
    rings = max(2, (segments + 1) // 4)
    quarter = np.linspace(0, np.pi / 2, rings + 1)
    latitude = np.concatenate([quarter - np.pi / 2, quarter if half else quarter[1:]])
    offset = np.where(np.arange(len(latitude)) <= rings, -half, half) if half else np.zeros(len(latitude))
    flat, height = np.cos(latitude), np.sin(latitude)
    # Exactly, where the cosine of a quarter turn leaves 6e-17.
    flat[[0, -1]] = 0.0
    circle = _circle(segments)
    normals = np.concatenate(
        [np.column_stack([f * circle, np.full(segments + 1, z)]) for f, z in zip(flat, height, strict=True)]
    )
    vertices = radius * normals
    vertices[:, 2] += np.repeat(offset, segments + 1)
    # Texture coordinates by length along the meridian: nothing is stretched at the ends.
    arc = radius * (latitude + np.pi / 2) + offset + half
    uv = np.column_stack(
        [np.tile(np.linspace(0, 1, segments + 1), len(latitude)), np.repeat(1 - arc / max(arc[-1], 1e-30), segments + 1)]
    )
    faces = _grid_faces(len(latitude), segments + 1)
    return _mesh(vertices, faces[_not_at_poles(faces, segments + 1, len(latitude))], normals, uv)


def _not_at_poles(faces: ArrayInt, columns: int, rows: int) -> ArrayBool:
    """Leave out triangles with two corners at a pole: the rows there are single points, so they have no area."""
    row = faces // columns
    return ((row == 0).sum(1) < 2) & ((row == rows - 1).sum(1) < 2)
