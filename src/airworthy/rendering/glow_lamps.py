"""What glows, as lamps that baking aims at: points on it, as dense as the light that it gives.

A small panel is met by few of a node's directions. So its light is taken from points of it, and from the directions that meet
it, each in proportion to how often it would have found the place (balance heuristic: Veach and Guibas, Optimally combining
sampling techniques, 1995): near a panel the directions count, far from it the points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, NDArray
from airworthy.geometry import Box, GeometryBatch, Mesh, Placement, Shape, Sphere, occluded
from airworthy.optics.tone import luminance
from airworthy.scenes.batch import SceneBatch

__all__ = ["GlowLamps", "glow_lamps"]

LAMP_POINTS = 64
"""Points that every node looks at."""
FLAT, TRIANGLE, ROUND = 0, 1, 2


@dataclass(frozen=True, eq=False)
class GlowLamps:
    """Faces that glow evenly, world; those with a map of their glow are met by chance alone."""

    kind: NDArray[np.int64]
    """(face,)"""
    corner: Array
    """(face, 3) [m]; of spheres the centre."""
    edges: Array
    """(face, 2, 3) [m]; of spheres the radius, first."""
    radiance: Array
    """(face, 3)"""
    density: Array
    """(face,) share of the light per area [1/m^2]."""
    first: NDArray[np.int64]
    """Of each instance its first face, -1: none."""

    def __len__(self) -> int:
        return len(self.kind)

    def points(self, count: int = LAMP_POINTS) -> tuple[NDArray[np.int64], Array, Array]:
        """Return faces (s,), points on them (s, 3) and their normals (s, 3): a sequence, evenly by light."""
        k = np.arange(count)
        share = self.density * self._areas()
        face = np.minimum(np.searchsorted(np.cumsum(share), (k + 0.5) / count * share.sum()), len(self) - 1)
        # The plastic number's sequence: even over the square, however many of its points fall to a face.
        u, v = (0.5 + k * 0.7548776662466927) % 1.0, (0.5 + k * 0.5698402909980532) % 1.0
        kind, edges = self.kind[face], self.edges[face]
        root = np.sqrt(u)
        a, b = np.where(kind == TRIANGLE, root * (1.0 - v), u), np.where(kind == TRIANGLE, root * v, v)
        flat = self.corner[face] + edges[:, 0] * a[:, None] + edges[:, 1] * b[:, None]
        z, turn = 1.0 - 2.0 * u, 2.0 * np.pi * v
        ring = np.sqrt(np.maximum(1.0 - z * z, 0.0))
        outward = np.stack([ring * np.cos(turn), ring * np.sin(turn), z], -1)
        ball = self.corner[face] + outward * edges[:, 0, :1]
        round_ = (kind == ROUND)[:, None]
        return face, np.where(round_, ball, flat), np.where(round_, outward, self._normals()[face])

    def _normals(self) -> Array:
        cross = np.cross(self.edges[:, 0], self.edges[:, 1])
        return np.asarray(cross / np.maximum(np.linalg.norm(cross, axis=-1, keepdims=True), 1e-30))

    def _areas(self) -> Array:
        cross = np.linalg.norm(np.cross(self.edges[:, 0], self.edges[:, 1]), axis=-1)
        ball = 4.0 * np.pi * self.edges[:, 0, 0] ** 2
        return np.where(self.kind == FLAT, cross, np.where(self.kind == TRIANGLE, 0.5 * cross, ball))

    def arriving(self, geometry: GeometryBatch, position: Array, normal: Array | None) -> tuple[Array, Array, Array]:
        """Return what points of what glows send: directions (n, s, 3), irradiance across them (n, s, 3) and how densely they
        lie there (n, s) [1/sr].

        Args:
            geometry: What hides them.
            position: (n, 3) [m].
            normal: Of surfaces there, (n, 3); None: light from all sides is wanted.
        """
        face, point, outward = self.points()
        way = point[None] - position[:, None]
        far = np.maximum(np.linalg.norm(way, axis=-1), 1e-6)
        direction = way / far[..., None]
        # Flat faces glow to both sides, as they do for every ray.
        cosine = -np.einsum("nsk,sk->ns", direction, outward)
        cosine = np.where(self.kind[face] == ROUND, np.maximum(cosine, 0.0), np.abs(cosine))
        density = len(face) * self.density[face] * far**2 / np.maximum(cosine, 1e-6)
        wanted = cosine > 1e-6
        if normal is not None:
            wanted &= np.einsum("nsk,nk->ns", direction, normal) > 0.0
        node, lamp = np.nonzero(wanted)
        end = position[node] + direction[node, lamp] * (far[node, lamp] * (1.0 - 1e-4) - 1e-3)[:, None]
        seen = np.zeros(wanted.shape, bool)
        if len(node):
            seen[node, lamp] = ~occluded(geometry, position[node], end, np.zeros(len(node), np.int32))
        return direction, self.radiance[face] * (seen / density)[..., None], density

    def taken(self, instance: NDArray[np.int32], face: NDArray[np.int32], point: Array, ray: Array, rays: Array) -> Array:
        """Return the light that rays which meet something are to leave to the points, (m, 3).

        Args:
            instance: Met, (m,); -1: nothing.
            face: Of it, (m,).
            point: Where, world [m], (m, 3).
            ray: From the node to it [m], (m, 3).
            rays: Density of the node's rays there, (m,) [1/sr].
        """
        out = np.zeros((len(instance), 3))
        first = np.where(instance >= 0, self.first[np.maximum(instance, 0)], -1)
        met = np.flatnonzero(first >= 0)
        if not len(met):
            return out
        row = first[met]
        row = row + np.where(self.kind[row] == ROUND, 0, face[met])
        square = np.maximum((ray[met] ** 2).sum(-1), 1e-12)
        ball = (point[met] - self.corner[row]) / np.maximum(self.edges[row, 0, :1], 1e-30)
        outward = np.where((self.kind[row] == ROUND)[:, None], ball, self._normals()[row])
        cosine = np.abs((outward * ray[met]).sum(-1)) / np.sqrt(square)
        of_points = LAMP_POINTS * self.density[row] * square / np.maximum(cosine, 1e-6)
        out[met] = self.radiance[row] * (of_points / np.maximum(of_points + rays[met], 1e-30))[:, None]
        return out


def glow_lamps(batch: SceneBatch) -> GlowLamps:
    """Return what glows evenly among the static instances of a batch's first environment."""
    geometry = batch.geometry
    placement = geometry.layout(0)
    first = np.full(max(len(placement), 1), -1, np.int64)
    parts: list[tuple[NDArray[np.int64], Array, Array, Array]] = []
    count = 0
    for index in range(len(placement)):
        shape = geometry.shapes[placement.shape[index]]
        glow = _radiances(batch, shape, placement, index)
        if glow is None:
            continue
        first[index] = count
        parts.append((*_faces(shape, placement, index), glow))
        count += len(glow)
    if not parts:
        return GlowLamps(np.zeros(0, np.int64), np.zeros((0, 3)), np.zeros((0, 2, 3)), np.zeros((0, 3)), np.zeros(0), first)
    kind, corner, edges, radiance = (np.concatenate([part[k] for part in parts]) for k in range(4))
    found = GlowLamps(kind, corner, edges, radiance, np.zeros(len(kind)), first)
    bright = np.asarray(luminance(radiance), np.float64)
    whole = float((found._areas() * bright).sum())
    return GlowLamps(kind, corner, edges, radiance, bright / max(whole, 1e-30), first)


def _radiances(batch: SceneBatch, shape: Shape, placement: Placement, index: int) -> Array | None:
    """Return what each face of an instance sends (face, 3); None where nothing glows that points could be chosen on."""
    if not placement.visible[index] or not isinstance(shape, Box | Sphere | Mesh):
        return None
    start, faces = int(placement.material[index]), {Box: 6, Sphere: 1}.get(type(shape), 0)
    which = np.zeros(faces, np.int64)
    if isinstance(shape, Mesh):
        which = np.zeros(len(shape.faces), np.int64) if shape.face_material is None else shape.face_material.astype(np.int64)
    if not len(which):
        return None
    rows, where = np.unique(which, return_inverse=True)
    glow = np.array([_evenly(batch, start + int(row)) for row in rows])[where]
    return glow if glow.any() else None


def _evenly(batch: SceneBatch, row: int) -> tuple[float, float, float]:
    """Return a material's own light; none where a map says where it glows."""
    material = batch.material(row)[0]
    if material.emissive_map or material.alpha_cutoff > 0.0:
        return (0.0, 0.0, 0.0)
    red, green, blue = material.emissive
    return (float(red), float(green), float(blue))


def _faces(shape: Shape, placement: Placement, index: int) -> tuple[NDArray[np.int64], Array, Array]:
    """Return kinds, corners and edges of an instance's faces, world."""
    scale, turn, at = float(placement.scale[index]), placement.attitude[index], placement.position[index]
    if isinstance(shape, Sphere):
        edges = np.zeros((1, 2, 3))
        edges[0, 0, 0] = shape.radius * scale
        return np.array([ROUND]), np.asarray(at, np.float64)[None].copy(), edges
    if isinstance(shape, Mesh):
        p = shape.vertices.astype(np.float64)[shape.faces]
        corner, local = p[:, 0], np.stack([p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]], 1)
        kind = TRIANGLE
    else:
        assert isinstance(shape, Box)
        half, kind = np.array(shape.half_size, np.float64), FLAT
        corner, local = np.zeros((6, 3)), np.zeros((6, 2, 3))
        for face in range(6):
            axis = face >> 1
            b, c = [k for k in range(3) if k != axis]
            corner[face] = -half
            corner[face, axis] = half[axis] if face & 1 else -half[axis]
            local[face, 0, b], local[face, 1, c] = 2.0 * half[b], 2.0 * half[c]
    world = frames.rotate(turn, corner * scale) + at
    return np.full(len(corner), kind, np.int64), world, frames.rotate(turn, local * scale)
