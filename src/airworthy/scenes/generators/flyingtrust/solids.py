"""Exact distances, rays and grids of boxes and cylinders, in float64: what generators measure their own work with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
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

    def _local(self, vectors: Floats, about: bool) -> tuple[Floats, Floats, Floats]:
        """Components (m, n) in the solids' frames, of points (`about` their centres) or of directions."""
        x, y, z = vectors[:, 0, None], vectors[:, 1, None], vectors[:, 2, None]
        if about:
            x, y, z = x - self.position[:, 0], y - self.position[:, 1], z - self.position[:, 2]
        r = self.rotation
        a, b, c = (x * r[:, 0, k] + y * r[:, 1, k] + z * r[:, 2, k] for k in range(3))
        return a, b, c

    def distances(self, points: ArrayLike) -> Floats:
        """Signed distance of every point to every solid [m], (m, n); negative inside."""
        return _signed(self._local(np.asarray(points, float), True), self.half, self.round)

    def distance(self, points: ArrayLike) -> Floats:
        """Signed distance to the nearest solid [m], (m,); infinite where there is none."""
        p = np.asarray(points, float).reshape(-1, 3)
        if not len(self):
            return np.full(len(p), np.inf)
        step = max(1, _CHUNK // len(self))
        parts = [self.distances(p[k : k + step]).min(1) for k in range(0, len(p), step)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def within(self, lower: ArrayLike, upper: ArrayLike) -> Solids:
        """The solids whose bounding boxes meet a box."""
        keep = (
            np.abs(self.position - 0.5 * (np.asarray(lower) + np.asarray(upper))) <= self._extent + _half(lower, upper)
        ).all(1)
        return Solids(self.round[keep], self.position[keep], self.rotation[keep], self.half[keep])

    def keeps(self, points: ArrayLike, clearance: float) -> bool:
        """Whether all points are at least `clearance` from all solids."""
        p = np.asarray(points, float)
        near = self.within(p.min(0) - clearance, p.max(0) + clearance)
        return not len(near) or bool(near.distance(p).min() >= clearance)

    @cached_property
    def _extent(self) -> Floats:
        return self.half_extent()

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
        for k in np.flatnonzero((last > first).all(1)).tolist():
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
        flat = [np.sqrt(x * x + y * y) - a] if self.round[k] else [np.abs(x) - a, np.abs(y) - b]
        beyond = [*flat, np.abs(z) - c]
        if clearance <= 0.0:
            return np.logical_and.reduce([part < clearance for part in beyond])
        square = sum(np.maximum(part, 0.0) ** 2 for part in beyond)
        return np.asarray(square < clearance * clearance)

    def first_hit(self, origin: ArrayLike, directions: ArrayLike, reach: float) -> Floats:
        """Range along unit rays from one point to the nearest solid [m], (m,); infinite beyond `reach`, 0 from inside."""
        o, d = np.asarray(origin, float), np.asarray(directions, float)
        near = self.within(o - reach, o + reach)
        if not len(near):
            return np.full(len(d), np.inf)
        start = near._local(o[None], True)
        along = near._local(d, False)
        with np.errstate(divide="ignore", invalid="ignore"):
            slabs = [_slab(start[k], along[k], near.half[:, k]) for k in range(3)]
            ring = _ring(start, along, near.half[:, 0])
        low = np.where(near.round, ring[0], np.maximum(slabs[0][0], slabs[1][0]))
        high = np.where(near.round, ring[1], np.minimum(slabs[0][1], slabs[1][1]))
        low, high = np.maximum(low, slabs[2][0]), np.minimum(high, slabs[2][1])
        found = np.where((low <= high) & (high >= 0.0), np.maximum(low, 0.0), np.inf).min(1)
        return np.where(found <= reach, found, np.inf)


def _half(lower: ArrayLike, upper: ArrayLike) -> Floats:
    return np.asarray(0.5 * (np.asarray(upper, float) - np.asarray(lower, float)))


Parts = tuple[Floats, Floats, Floats]


def _signed(local: Parts, half: Floats, round_: NDArray[np.bool_]) -> Floats:
    x, y, z = local
    radial = np.sqrt(x * x + y * y) - half[:, 0]
    a = np.where(round_, radial, np.abs(x) - half[:, 0])
    b = np.where(round_, -np.inf, np.abs(y) - half[:, 1])
    c = np.abs(z) - half[:, 2]
    u, v, w = np.maximum(a, 0.0), np.maximum(b, 0.0), np.maximum(c, 0.0)
    return np.asarray(np.sqrt(u * u + v * v + w * w) + np.minimum(np.maximum(np.maximum(a, b), c), 0.0))


def _slab(start: Floats, along: Floats, half: Floats) -> tuple[Floats, Floats]:
    """Where a ray enters and leaves a slab; a ray along it is always or never inside."""
    a, b = (-half - start) / along, (half - start) / along
    still, inside = along == 0.0, np.abs(start) <= half
    low = np.where(still, np.where(inside, -np.inf, np.inf), np.minimum(a, b))
    high = np.where(still, np.where(inside, np.inf, -np.inf), np.maximum(a, b))
    return low, high


def _ring(start: Parts, along: Parts, radius: Floats) -> tuple[Floats, Floats]:
    """Where a ray enters and leaves the infinite cylinder around z."""
    a = along[0] ** 2 + along[1] ** 2
    b = start[0] * along[0] + start[1] * along[1]
    c = start[0] ** 2 + start[1] ** 2 - radius**2
    root = np.sqrt(np.maximum(b * b - a * c, 0.0))
    miss, still = b * b < a * c, a < 1e-15
    low, high = (-b - root) / a, (-b + root) / a
    low = np.where(still, np.where(c <= 0.0, -np.inf, np.inf), np.where(miss, np.inf, low))
    high = np.where(still, np.where(c <= 0.0, np.inf, -np.inf), np.where(miss, -np.inf, high))
    return low, high
