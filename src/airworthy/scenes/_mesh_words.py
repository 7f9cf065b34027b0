"""What shading needs of a mesh beside its geometry, packed: vertex normals, tangents, coordinates, colours, occlusion; per face
its material and how dense its texture coordinates are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.geometry import Mesh
from airworthy.scenes._texels import octahedral, pack

VERTEX_WORDS = 5
"""Normal (octahedral), u, v, colour (square roots), tangent angle (15 bits), its hand (1 bit) and occlusion (16 bits)."""
FACE_WORDS = 2
"""Material of the instance, and texture repeats per metre (float bits)."""
HAS_NORMALS, HAS_UV = 1, 2

Floats = NDArray[np.float64]
Words = NDArray[np.uint32]


def mesh_flags(mesh: Mesh) -> int:
    """HAS_NORMALS, HAS_UV."""
    return HAS_NORMALS * (mesh.normals is not None) + HAS_UV * (mesh.uv is not None)


def vertex_words(mesh: Mesh, occlusion: NDArray[np.float32] | None = None) -> Words:
    """(V, VERTEX_WORDS) of a mesh; occlusion (V,): share of the hemisphere that the mesh leaves open, 1 everywhere if None."""
    count = len(mesh.vertices)
    words = np.zeros((count, VERTEX_WORDS), np.uint32)
    up = np.array([[0.0, 0.0, 1.0]], np.float32)
    normals = mesh.normals if mesh.normals is not None else np.repeat(up, count, axis=0)
    words[:, 0] = octahedral(normals)
    if mesh.uv is not None:
        words[:, 1:3] = np.ascontiguousarray(mesh.uv, np.float32).view(np.uint32)
    colors = np.ones((count, 4), np.float32) if mesh.colors is None else mesh.colors
    words[:, 3] = pack(colors, True)
    words[:, 4] = occlusion_bits(count, occlusion) | _tangent_bits(mesh, normals)
    return words


def occlusion_bits(count: int, occlusion: NDArray[np.float32] | None) -> Words:
    """Upper 16 bits of a vertex's last word."""
    open_share = np.ones(count) if occlusion is None else np.clip(np.asarray(occlusion, float), 0.0, 1.0)
    return np.asarray(np.rint(open_share * 65535.0).astype(np.uint32) << 16, np.uint32)


def basis(normals: NDArray[np.floating[Any]]) -> tuple[Floats, Floats]:
    """Two unit vectors perpendicular to each normal and to each other (Duff et al., Building an orthonormal basis, 2017)."""
    n = np.asarray(normals, np.float64)
    x, y, z = n[..., 0], n[..., 1], n[..., 2]
    sign = np.where(z < 0.0, -1.0, 1.0)
    a = -1.0 / (sign + z)
    b = x * y * a
    return np.stack([1.0 + sign * x * x * a, sign * b, -sign * x], -1), np.stack([b, sign + y * y * a, -y], -1)


def _tangent_bits(mesh: Mesh, normals: NDArray[np.floating[Any]]) -> Words:
    """Direction of growing u in the plane of the vertex normal, as an angle in `basis`, and on which side v grows."""
    count = len(mesh.vertices)
    if mesh.uv is None or not len(mesh.faces):
        return np.zeros(count, np.uint32)
    along_u, along_v, weight = _gradients(mesh)
    corner = mesh.faces.reshape(-1)

    def summed(value: Floats) -> Floats:
        spread = np.repeat(value * weight[:, None], 3, axis=0)
        return np.stack([np.bincount(corner, spread[:, k], count) for k in range(3)], -1)

    u, v = summed(along_u), summed(along_v)
    first, second = basis(normals)
    angle = np.arctan2(np.sum(u * second, -1), np.sum(u * first, -1)) % (2.0 * np.pi)
    bits = np.minimum(np.rint(angle / (2.0 * np.pi) * 32768.0), 32767).astype(np.uint32)
    flipped = np.sum(np.cross(normals, u) * v, -1) < 0.0
    return np.asarray(bits | flipped.astype(np.uint32) << 15, np.uint32)


def _gradients(mesh: Mesh) -> tuple[Floats, Floats, Floats]:
    """Per face: unit directions in which u and v grow, and the face's area."""
    p = mesh.vertices.astype(np.float64)[mesh.faces]
    assert mesh.uv is not None
    t = mesh.uv.astype(np.float64)[mesh.faces]
    e1, e2 = p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]
    (a, b), (c, d) = (t[:, 1] - t[:, 0]).T, (t[:, 2] - t[:, 0]).T
    det = a * d - b * c
    sign = np.where(det < 0.0, -1.0, 1.0)[:, None]
    along_u, along_v = sign * (d[:, None] * e1 - b[:, None] * e2), sign * (a[:, None] * e2 - c[:, None] * e1)
    area = 0.5 * np.linalg.norm(np.cross(e1, e2), axis=-1) * (np.abs(det) > 1e-20)

    def unit(x: Floats) -> Floats:
        return np.asarray(x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-30))

    return unit(along_u), unit(along_v), area


def face_words(mesh: Mesh) -> Words:
    """(F, FACE_WORDS) of a mesh."""
    words = np.zeros((len(mesh.faces), FACE_WORDS), np.uint32)
    if mesh.face_material is not None:
        words[:, 0] = mesh.face_material.astype(np.uint32)
    words[:, 1] = uv_density(mesh).astype(np.float32).view(np.uint32)
    return words


def uv_density(mesh: Mesh) -> Floats:
    """Texture repeats per metre of every face: root of the ratio of its areas in the texture and in space."""
    if mesh.uv is None:
        return np.zeros(len(mesh.faces))
    p = mesh.vertices.astype(np.float64)[mesh.faces]
    t = mesh.uv.astype(np.float64)[mesh.faces]
    area = np.linalg.norm(np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]), axis=-1)
    (a, b), (c, d) = (t[:, 1] - t[:, 0]).T, (t[:, 2] - t[:, 0]).T
    return np.asarray(np.sqrt(np.abs(a * d - b * c) / np.maximum(area, 1e-20)))
