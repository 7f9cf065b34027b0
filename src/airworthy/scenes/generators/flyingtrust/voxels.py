"""Clutter of cubes on a grid: exact distances, rays, and its surface as a mesh."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayLike, NDArray
from airworthy.geometry import Mesh

_WINDOW = 6
"""Distances below this many voxels are exact."""


@dataclass(frozen=True, eq=False)
class Voxels:
    """Occupied cells of a grid; outside of the grid nothing is occupied."""

    occupied: ArrayBool
    """(nx, ny, nz)"""
    lower: Array
    """Lower corner [m], (3,)."""
    size: float
    """Edge of a voxel [m]."""

    @cached_property
    def _tree(self) -> tuple[Any, Array]:
        from scipy.spatial import cKDTree

        centres = self.lower + (np.argwhere(self.occupied & ~_enclosed(self.occupied)) + 0.5) * self.size
        return cKDTree(centres), centres

    def distance(self, points: ArrayLike) -> Array:
        """Return the distance of points to the nearest voxel [m], (m,); 0 inside, infinite where there are none.

        Exact below half a metre or so; farther ones may be too large by less than half a voxel.
        """
        p = np.asarray(points, float).reshape(-1, 3)
        tree, centres = self._tree
        if not len(centres) or not len(p):
            return np.full(len(p), np.inf)
        _, nearest = tree.query(p, k=min(8, len(centres)))
        gap = np.maximum(np.abs(p[:, None] - centres[nearest.reshape(len(p), -1)]) - 0.5 * self.size, 0.0)
        found = np.sqrt((gap * gap).sum(-1)).min(1)
        rings = np.floor(found / self.size).astype(int) + 1
        for reach in range(1, _WINDOW + 1):  # no voxel outside of so many rings around a point's own is nearer than `found`
            close = np.flatnonzero(rings == reach)
            if len(close):
                found[close] = self._exact(p[close], reach)
        return np.asarray(found)

    def keeps(self, points: ArrayLike, clearance: float) -> bool:
        """Tell whether all points are at least `clearance` from all voxels."""
        return bool(self.distance(points).min() >= clearance)

    def _exact(self, p: Array, reach: int) -> Array:
        """Least distance to the voxels of `reach` rings around each point's own cell."""
        offset = np.arange(-reach, reach + 1)
        cell = np.floor((p - self.lower) / self.size).astype(int)
        gaps, index, inside = [], [], []
        for axis in range(3):
            at = cell[:, axis, None] + offset
            gap = np.maximum(np.abs(p[:, axis, None] - self.lower[axis] - (at + 0.5) * self.size) - 0.5 * self.size, 0.0)
            gaps.append(gap * gap)
            inside.append((at >= 0) & (at < self.occupied.shape[axis]))
            index.append(np.clip(at, 0, self.occupied.shape[axis] - 1))
        x, y, z = index
        full = self.occupied[x[:, :, None, None], y[:, None, :, None], z[:, None, None, :]]
        square = np.where(full, _outer(np.add, gaps), np.inf)
        square = np.where(_outer(np.logical_and, inside), square, np.inf)
        return np.asarray(np.sqrt(square.reshape(len(p), -1).min(1)))

    def near(self, lower: ArrayLike, shape: tuple[int, ...], resolution: float, clearance: float) -> ArrayBool:
        """Return grid cells of which a voxel's centre lies less than `clearance` from an occupied voxel, (nx, ny, nz).

        The grid's cells must be whole numbers of voxels, aligned with them: a larger cell counts when any of its voxels does.

        Args:
            lower: Lower corner of the grid, world [m], (3,).
            shape: Cells along x, y, z.
            resolution: Edge of a cell [m].
            clearance: Distance that must be kept [m].
        """
        factor = round(resolution / self.size)
        first = np.rint((np.asarray(lower, float) - self.lower) / self.size).astype(int)
        assert factor >= 1, resolution
        assert abs(factor * self.size - resolution) < 1e-9, resolution
        wanted = tuple(factor * n for n in shape)
        reach = int(np.ceil(clearance / self.size))
        square = np.where(self._window(first - reach, [n + 2 * reach for n in wanted]), 0.0, np.inf).astype(np.float32)
        for axis in range(3):
            square = _spread(square, axis, reach, self.size)
        grid = square < np.float32(clearance * clearance)
        blocks = grid.reshape(shape[0], factor, shape[1], factor, shape[2], factor)
        return np.asarray(blocks.any(axis=(1, 3, 5)))

    def _window(self, first: NDArray[np.integer], size: list[int]) -> ArrayBool:
        """Return a part of the occupancy, empty where it reaches beyond the grid."""
        window = np.zeros(size, bool)
        low = np.maximum(first, 0)
        high = np.minimum(first + size, self.occupied.shape)
        if (high > low).all():
            target = tuple(slice(a, b) for a, b in zip(low - first, high - first, strict=True))
            window[target] = self.occupied[tuple(slice(a, b) for a, b in zip(low, high, strict=True))]
        return window

    def first_hit(self, origin: ArrayLike, directions: ArrayLike, reach: float) -> Array:
        """Return the range along unit rays from one point to the first voxel [m], (m,), by samples half a voxel apart; infinite
        beyond.

        Args:
            origin: World [m], (3,).
            directions: Unit, world, (m, 3).
            reach: How far to look [m].
        """
        o, d = np.asarray(origin, float), np.asarray(directions, float)
        along = np.arange(0.0, reach, 0.5 * self.size)
        cells = np.floor((o + along[:, None] * d[:, None] - self.lower) / self.size).astype(np.int32)
        inside = ((cells >= 0) & (cells < self.occupied.shape)).all(-1)
        index = np.clip(cells, 0, np.array(self.occupied.shape) - 1)
        full = inside & self.occupied[index[..., 0], index[..., 1], index[..., 2]]
        return np.where(full.any(1), along[full.argmax(1)], np.inf)

    def mesh(self) -> Mesh:
        """Return the surface, two triangles per exposed face of a voxel, corners shared: closed, and nothing inside."""
        return _surface(self.occupied, self.lower, self.size)


def _outer(join: np.ufunc, parts: list[ArrayAny]) -> ArrayAny:
    """Rows of three axes, each (m, w), joined to (m, w, w, w)."""
    x, y, z = parts
    return np.asarray(join(join(x[:, :, None, None], y[:, None, :, None]), z[:, None, None, :]))


def _spread(square: ArrayF32, axis: int, reach: int, size: float) -> ArrayF32:
    """Least squared gap along one axis, for the cells `reach` inside of both ends."""
    count = square.shape[axis] - 2 * reach
    best: ArrayF32 | None = None
    for offset in range(-reach, reach + 1):
        part = [slice(None)] * 3
        part[axis] = slice(reach + offset, reach + offset + count)
        gap = max(abs(offset) - 0.5, 0.0) * size
        shifted = square[tuple(part)] + np.float32(gap * gap)
        best = shifted if best is None else np.minimum(best, shifted, out=best)
    assert best is not None
    return best


def _enclosed(occupied: ArrayBool) -> ArrayBool:
    """Occupied cells whose six neighbours are occupied too."""
    inner = np.zeros_like(occupied)
    core = occupied[1:-1, 1:-1, 1:-1].copy()
    for axis in range(3):
        for offset in (0, 2):
            part = [slice(1, -1)] * 3
            part[axis] = slice(offset, offset + occupied.shape[axis] - 2)
            core &= occupied[tuple(part)]
    inner[1:-1, 1:-1, 1:-1] = core
    return inner


_CORNERS = {
    # outward face of a voxel: its four corners, counter-clockwise seen from outside
    (0, 1): ((1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 0, 1)),
    (0, -1): ((0, 0, 0), (0, 0, 1), (0, 1, 1), (0, 1, 0)),
    (1, 1): ((0, 1, 0), (0, 1, 1), (1, 1, 1), (1, 1, 0)),
    (1, -1): ((0, 0, 0), (1, 0, 0), (1, 0, 1), (0, 0, 1)),
    (2, 1): ((0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)),
    (2, -1): ((0, 0, 0), (0, 1, 0), (1, 1, 0), (1, 0, 0)),
}


def _surface(occupied: ArrayBool, lower: Array, size: float) -> Mesh:
    padded = np.pad(occupied, 1)
    quads = []
    for (axis, side), offsets in _CORNERS.items():
        neighbour = np.roll(padded, -side, axis)
        cells = np.argwhere(padded & ~neighbour) - 1
        quads.append(cells[:, None] + np.array(offsets))
    corners = np.concatenate(quads)
    counts = np.array(occupied.shape) + 1
    keys = (corners[..., 0] * counts[1] + corners[..., 1]) * counts[2] + corners[..., 2]
    unique, index = np.unique(keys, return_inverse=True)
    grid = np.stack(np.unravel_index(unique, counts), axis=1)
    index = index.reshape(keys.shape)
    faces = np.concatenate([index[:, [0, 1, 2]], index[:, [0, 2, 3]]])
    return Mesh(lower + grid * size, faces)
