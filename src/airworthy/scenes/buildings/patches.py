"""Meshes from flat patches: quads with materials, colours and coordinates, gathered and joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayFloat
from airworthy.geometry import Mesh
from airworthy.scenes.appearance import OPEN_CHANNEL

__all__ = ["WHITE", "PatchMesh"]

Rgb = tuple[float, float, float]
WHITE: Rgb = (1.0, 1.0, 1.0)
_WHOLE_UV = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
_ROUND = 16
"""Sides of what is round."""


@dataclass
class PatchMesh:
    """What a mesh is made of, in its frame [m]."""

    _points: list[Array] = field(default_factory=list)
    _normals: list[Array] = field(default_factory=list)
    _uv: list[Array] = field(default_factory=list)
    _colors: list[Array] = field(default_factory=list)
    _faces: list[Array] = field(default_factory=list)
    _slots: list[Array] = field(default_factory=list)
    _count: int = 0
    _quads: list[Any] = field(default_factory=list)
    """Wait to be joined, as the three lists below."""
    _quad_slots: list[int] = field(default_factory=list)
    _quad_colors: list[Any] = field(default_factory=list)
    _quad_uv: list[Any] = field(default_factory=list)

    def add(
        self,
        points: ArrayFloat,
        faces: Array,
        normals: ArrayFloat,
        slot: int,
        color: ArrayFloat | Sequence[float] = WHITE,
        uv: ArrayFloat | None = None,
    ) -> None:
        """Add triangles.

        Args:
            points: (n, 3) [m].
            faces: (f, 3), counter-clockwise seen from outside.
            normals: (n, 3), unit.
            slot: Number of the material.
            color: Linear RGB (3,) or (n, 3), multiplied into the material's.
            uv: (n, 2); None: metres along x and y of the frame, for materials that are laid along axes.
        """
        self._flush()
        count = len(points)
        self._points.append(np.asarray(points, float))
        self._normals.append(np.asarray(normals, float))
        self._uv.append(np.zeros((count, 2)) if uv is None else np.asarray(uv, float))
        self._colors.append(np.broadcast_to(np.asarray(color, float), (count, 3)))
        self._faces.append(np.asarray(faces) + self._count)
        self._slots.append(np.full(len(faces), slot))
        self._count += count

    def quad(
        self,
        corners: ArrayFloat | Sequence[Sequence[float] | ArrayFloat],
        slot: int,
        color: ArrayFloat | Sequence[float] = WHITE,
        uv: ArrayFloat | None = None,
    ) -> None:
        """Add a flat quad.

        Args:
            corners: (4, 3), counter-clockwise seen from outside; of an upright one from the lower left.
            slot: Number of the material.
            color: (3,), or (4, 3).
            uv: (4, 2); None: the whole of a texture, upright.
        """
        self._quads.append(corners)
        self._quad_slots.append(slot)
        self._quad_colors.append(color)
        self._quad_uv.append(_WHOLE_UV if uv is None else uv)

    def _flush(self) -> None:
        """Join the quads that wait: thousands at once, since one by one costs a hundred times as much."""
        if not self._quads:
            return
        p = np.array(self._quads, float)
        colors = np.empty((len(p), 4, 3))
        for k, color in enumerate(self._quad_colors):
            colors[k] = color
        normal = np.cross(p[:, 2] - p[:, 0], p[:, 3] - p[:, 1])
        length = np.linalg.norm(normal, axis=1)
        kept = length > 1e-9
        count = int(kept.sum())
        normal = normal[kept] / length[kept, None]
        self._points.append(p[kept].reshape(-1, 3))
        self._normals.append(np.repeat(normal, 4, axis=0))
        self._uv.append(np.array(self._quad_uv, float)[kept].reshape(-1, 2))
        self._colors.append(colors[kept].reshape(-1, 3))
        first = self._count + 4 * np.arange(count)[:, None, None]
        self._faces.append((first + np.array([[0, 1, 2], [0, 2, 3]])).reshape(-1, 3))
        self._slots.append(np.repeat(np.array(self._quad_slots)[kept], 2))
        self._count += 4 * count
        for waiting in (self._quads, self._quad_slots, self._quad_colors, self._quad_uv):
            waiting.clear()

    def box(
        self,
        low: Sequence[float],
        high: Sequence[float],
        slot: int,
        color: Sequence[float] = WHITE,
        bottom: bool = True,
    ) -> None:
        """Add the faces of a box along the axes, with or without the lower one."""
        (x0, y0, z0), (x1, y1, z1) = low, high
        c = {(i, j, k): np.array([(x0, x1)[i], (y0, y1)[j], (z0, z1)[k]]) for i in (0, 1) for j in (0, 1) for k in (0, 1)}
        sides = [
            ((0, 0, 0), (1, 0, 0), (1, 0, 1), (0, 0, 1)),
            ((1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 0, 1)),
            ((1, 1, 0), (0, 1, 0), (0, 1, 1), (1, 1, 1)),
            ((0, 1, 0), (0, 0, 0), (0, 0, 1), (0, 1, 1)),
            ((0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)),
        ]
        if bottom:
            sides.append(((0, 1, 0), (1, 1, 0), (1, 0, 0), (0, 0, 0)))
        for side in sides:
            self.quad([c[key] for key in side], slot, color)

    def tube(
        self,
        points: ArrayFloat,
        radius: float | ArrayFloat,
        slot: int,
        color: Sequence[float] = WHITE,
        sides: int = _ROUND,
        capped: bool = True,
    ) -> None:
        """Add a round bar along points (n, 3), of one radius or one at each point, smooth around."""
        p = np.asarray(points, float)
        wide = np.broadcast_to(np.asarray(radius, float), (len(p),))
        along = np.gradient(p, axis=0)
        along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-12)
        reference = np.array([0.0, 0.0, 1.0]) if abs(along[0, 2]) < 0.9 else np.array([1.0, 0.0, 0.0])
        side = np.cross(along, reference)
        side /= np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-12)
        other = np.cross(along, side)
        angle = np.linspace(0.0, 2.0 * np.pi, sides + 1)
        ring = side[:, None] * np.cos(angle)[:, None] + other[:, None] * np.sin(angle)[:, None]
        vertices = p[:, None] + ring * wide[:, None, None]
        i, j = np.meshgrid(np.arange(len(p) - 1), np.arange(sides), indexing="ij")
        a = (i * (sides + 1) + j).reshape(-1)
        b, c, d = a + 1, a + sides + 1, a + sides + 2
        faces = np.concatenate([np.stack([a, c, b], -1), np.stack([b, c, d], -1)])
        self.add(vertices.reshape(-1, 3), faces[:, ::-1], ring.reshape(-1, 3), slot, color)
        if capped:
            for end, sign in ((0, -1.0), (-1, 1.0)):
                self.disc(p[end], sign * along[end], float(wide[end]), slot, color, sides)

    def disc(
        self,
        center: ArrayFloat,
        normal: ArrayFloat | Sequence[float],
        radius: float,
        slot: int,
        color: Sequence[float] = WHITE,
        sides: int = _ROUND,
    ) -> None:
        """Add a disc that faces along a unit vector."""
        n = np.asarray(normal, float)
        first = np.cross(n, [0.0, 0.0, 1.0] if abs(n[2]) < 0.9 else [1.0, 0.0, 0.0])
        first /= np.linalg.norm(first)
        second = np.cross(n, first)
        angle = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)
        rim = np.asarray(center, float) + radius * (np.cos(angle)[:, None] * first + np.sin(angle)[:, None] * second)
        faces = np.stack([np.zeros(sides - 2, int), np.arange(1, sides - 1), np.arange(2, sides)], -1)
        uv = 0.5 + 0.5 * np.stack([np.cos(angle), -np.sin(angle)], -1)
        self.add(rim, faces, np.repeat(n[None], sides, 0), slot, color, uv)

    @property
    def triangle_count(self) -> int:
        """Triangles so far."""
        self._flush()
        return sum(len(faces) for faces in self._faces)

    def mesh(self, open_share: ArrayFloat | None = None) -> Mesh:
        """Return what was gathered as one mesh.

        Args:
            open_share: (V,) share of the sky's light that reaches a vertex; None: all of it.
        """
        self._flush()
        colors = np.concatenate(self._colors)
        rgba = np.concatenate([np.clip(colors, 0.0, 1.0), np.ones((len(colors), 1))], axis=1)
        channels = {} if open_share is None else {OPEN_CHANNEL: np.asarray(open_share, np.float32)}
        return Mesh(
            np.concatenate(self._points),
            np.concatenate(self._faces),
            np.concatenate(self._normals),
            np.concatenate(self._uv),
            rgba,
            np.concatenate(self._slots),
            channels,
        )

    def surface(self) -> tuple[Array, Array]:
        """Return points and normals of all vertices, (V, 3) each."""
        self._flush()
        return np.concatenate(self._points), np.concatenate(self._normals)
