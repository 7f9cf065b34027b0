"""Exact distances, rays and grids of boxes and cylinders, in float64: what generators measure their own work with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.frames import to_matrix
from airworthy.geometry import Box, Cylinder, Shape
from airworthy.scenes.record import Instance

Floats = NDArray[np.float64]
_CHUNK = 1 << 19


@dataclass(frozen=True, eq=False)
class Solids:
    """Boxes and cylinders, n of them."""

    round: NDArray[np.bool_]
    """(n,) cylinder (else box)."""
    position: Floats
    """(n, 3) world [m]."""
    rotation: Floats
    """(n, 3, 3) local to world."""
    half: Floats
    """(n, 3) half sizes [m]; of a cylinder radius, radius, half length."""

    @classmethod
    def of(cls, shapes: Mapping[str, Shape], instances: Iterable[Instance]) -> Solids:
        """The colliding instances; shapes other than boxes and cylinders are a programming mistake here."""
        items = [item for item in instances if item.collide]
        half = np.zeros((len(items), 3))
        round_ = np.zeros(len(items), bool)
        for k, item in enumerate(items):
            shape = shapes[item.shape]
            assert isinstance(shape, Box | Cylinder), shape
            round_[k] = isinstance(shape, Cylinder)
            size = shape.half_size if isinstance(shape, Box) else (shape.radius, shape.radius, shape.half_length)
            half[k] = np.array(size) * item.scale
        position = np.array([item.position for item in items], float).reshape(-1, 3)
        attitude = np.array([item.attitude for item in items], float).reshape(-1, 4)
        return cls(round_, position, to_matrix(attitude), half)

    def __len__(self) -> int:
        return len(self.half)

    def distances(self, points: ArrayLike) -> Floats:
        """Signed distance of every point to every solid [m], (m, n); negative inside."""
        p = np.asarray(points, float)
        local = np.einsum("mnk,nkl->mnl", p[:, None] - self.position, self.rotation)
        return _signed(local, self.half, self.round)

    def distance(self, points: ArrayLike) -> Floats:
        """Signed distance to the nearest solid [m], (m,); infinite where there is none."""
        p = np.asarray(points, float).reshape(-1, 3)
        if not len(self):
            return np.full(len(p), np.inf)
        step = max(1, _CHUNK // len(self))
        parts = [self.distances(p[k : k + step]).min(1) for k in range(0, len(p), step)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def half_extent(self) -> Floats:
        """Half sizes of the axis-aligned boxes around the solids [m], (n, 3)."""
        boxes = np.abs(self.rotation) @ self.half[:, :, None]
        axis = self.rotation[:, :, 2]
        flat = np.sqrt(np.maximum(1.0 - axis * axis, 0.0))
        rounds = np.abs(axis) * self.half[:, 2:] + flat * self.half[:, :1]
        return np.where(self.round[:, None], rounds, boxes[:, :, 0])

    def near(self, lower: ArrayLike, shape: tuple[int, ...], resolution: float, clearance: float) -> NDArray[np.bool_]:
        """Grid cells whose centre lies less than `clearance` from a solid, (nx, ny, nz)."""
        origin = np.asarray(lower, float)
        grid = np.zeros(shape, bool)
        reach = self.half_extent() + max(clearance, 0.0)
        first = np.floor((self.position - reach - origin) / resolution).astype(int)
        last = np.ceil((self.position + reach - origin) / resolution).astype(int)
        first, last = np.clip(first, 0, shape), np.clip(last, 0, shape)
        for k in np.flatnonzero((last > first).all(1)):
            window = tuple(slice(a, b) for a, b in zip(first[k], last[k], strict=True))
            grid[window] |= self._near(k, first[k], last[k], origin, resolution, clearance)
        return grid

    def _near(self, k: int, first: Any, last: Any, origin: Floats, resolution: float, clearance: float) -> NDArray[np.bool_]:
        """The same of one solid within its window; axis by axis, since a centre's local coordinates are sums over axes."""
        axes = [origin[a] + (np.arange(first[a], last[a]) + 0.5) * resolution - self.position[k, a] for a in range(3)]
        turn = self.rotation[k]
        x, y, z = (
            (axes[0] * turn[0, c])[:, None, None] + (axes[1] * turn[1, c])[:, None] + axes[2] * turn[2, c] for c in range(3)
        )
        a, b, c = self.half[k]
        if self.round[k]:
            beyond = (np.sqrt(x * x + y * y) - a, np.abs(z) - c)
        else:
            beyond = (np.abs(x) - a, np.abs(y) - b, np.abs(z) - c)
        if clearance <= 0.0:
            return np.logical_and.reduce([part < clearance for part in beyond])
        square = sum(np.maximum(part, 0.0) ** 2 for part in beyond)
        return np.asarray(square < clearance * clearance)

    def first_hit(self, origin: ArrayLike, direction: ArrayLike) -> Floats:
        """Range along unit rays to the nearest solid [m], (m,); infinite on a miss, 0 from inside."""
        o, d = np.asarray(origin, float), np.asarray(direction, float)
        if not len(self) or not len(o):
            return np.full(len(o), np.inf)
        step = max(1, _CHUNK // len(self))
        return np.concatenate([self._hits(o[k : k + step], d[k : k + step]) for k in range(0, len(o), step)])

    def _hits(self, o: Floats, d: Floats) -> Floats:
        start = np.einsum("mnk,nkl->mnl", o[:, None] - self.position, self.rotation)
        along = np.einsum("mk,nkl->mnl", d, self.rotation)
        with np.errstate(divide="ignore", invalid="ignore"):
            enter, leave = _slabs(start, along, self.half)
            ring = _ring(start, along, self.half[:, 0])
        low = np.where(self.round, np.maximum(enter[..., 2], ring[0]), enter.max(-1))
        high = np.where(self.round, np.minimum(leave[..., 2], ring[1]), leave.min(-1))
        return np.where((low <= high) & (high >= 0.0), np.maximum(low, 0.0), np.inf).min(1)


def _signed(local: Floats, half: Floats, round_: NDArray[np.bool_]) -> Floats:
    beyond = np.abs(local) - half
    radial = np.hypot(local[..., 0], local[..., 1]) - half[:, 0]
    beyond[..., 0] = np.where(round_, radial, beyond[..., 0])
    beyond[..., 1] = np.where(round_, -np.inf, beyond[..., 1])
    outside = np.sqrt(np.sum(np.maximum(beyond, 0.0) ** 2, axis=-1))
    return outside + np.minimum(beyond.max(-1), 0.0)


def _slabs(start: Floats, along: Floats, half: Floats) -> tuple[Floats, Floats]:
    """Where a ray enters and leaves the three slabs; a ray along a slab is always or never inside."""
    a, b = (-half - start) / along, (half - start) / along
    still, inside = along == 0.0, np.abs(start) <= half
    low = np.where(still, np.where(inside, -np.inf, np.inf), np.minimum(a, b))
    high = np.where(still, np.where(inside, np.inf, -np.inf), np.maximum(a, b))
    return low, high


def _ring(start: Floats, along: Floats, radius: Floats) -> tuple[Floats, Floats]:
    """Where a ray enters and leaves the infinite cylinder around z."""
    a = along[..., 0] ** 2 + along[..., 1] ** 2
    b = start[..., 0] * along[..., 0] + start[..., 1] * along[..., 1]
    c = start[..., 0] ** 2 + start[..., 1] ** 2 - radius**2
    root = np.sqrt(np.maximum(b * b - a * c, 0.0))
    miss, still = b * b < a * c, a < 1e-15
    low, high = (-b - root) / a, (-b + root) / a
    low = np.where(still, np.where(c <= 0.0, -np.inf, np.inf), np.where(miss, np.inf, low))
    high = np.where(still, np.where(c <= 0.0, np.inf, -np.inf), np.where(miss, -np.inf, high))
    return low, high
