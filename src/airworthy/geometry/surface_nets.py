"""The closed surface on which a field on a grid is zero: naive surface nets.

Source: Gibson: Constrained elastic surface nets (1998), without the relaxation: one vertex in every cube of eight samples that
the surface crosses, at the mean of its crossings of the cube's edges, and one quad for every edge of the grid that it crosses.
Against marching cubes: half as many triangles, no slivers, and edges are each passed once in either direction, so that the
result bounds a volume.
"""

from __future__ import annotations

import math

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.geometry.placement import Mesh

__all__ = ["surface_nets"]

_LEAST = 1e-3
"""A sample is kept this far from zero, over the largest of all: a vertex on a sample would make triangles without area."""


def surface_nets(field: ArrayLike, lower: ArrayLike, resolution: float) -> Mesh:
    """Return the surface of what is negative in a field, closed, counter-clockwise seen from where the field is positive.

    Samples lie in the middles of cells. What lies beyond the grid is positive: the surface closes there, too.

    Args:
        field: (nx, ny, nz), finite; negative inside.
        lower: Lower corner of the grid [m], (3,).
        resolution: Edge of a cell [m].

    Returns:
        A mesh; one without triangles where nothing is negative.

    Raises:
        AirworthyError: If the field is no finite grid, or the resolution is not above 0.
    """
    grid = np.asarray(field, np.float64)
    if grid.ndim != 3 or not grid.size or not np.isfinite(grid).all():
        raise AirworthyError(f"`field` is an array of shape {grid.shape}; expected finite numbers, (nx, ny, nz).")
    if not (resolution > 0.0 and math.isfinite(resolution)):
        raise AirworthyError(f"`resolution` is {resolution}; expected the edge of a cell in metres, above 0.")
    size = max(float(np.abs(grid).max()), 1e-300)
    grid = np.pad(grid, 1, constant_values=size)
    grid = np.where(grid < 0.0, np.minimum(grid, -_LEAST * size), np.maximum(grid, _LEAST * size))
    inside = grid < 0.0
    crossed = _crossed(inside)
    number = np.full(crossed.shape, -1, np.int64)
    number[crossed] = np.arange(np.count_nonzero(crossed))
    quads = np.concatenate([_quads(inside, number, axis) for axis in range(3)])
    # Sample 1 of the padded grid is the middle of the first cell.
    vertices = np.asarray(lower, np.float64) + resolution * (_vertices(grid, crossed) - 0.5)
    return Mesh(vertices, quads[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3))


def _crossed(inside: ArrayBool) -> ArrayBool:
    """Tell which cubes of eight samples hold both kinds, (nx - 1, ny - 1, nz - 1)."""
    corners = [inside[_corner(inside.shape, k)] for k in range(8)]
    some, every = corners[0].copy(), corners[0].copy()
    for corner in corners[1:]:
        some |= corner
        every &= corner
    return some & ~every


def _corner(shape: tuple[int, ...], k: int) -> tuple[slice, ...]:
    return tuple(slice(k >> axis & 1, n - 1 + (k >> axis & 1)) for axis, n in enumerate(shape))


def _vertices(grid: Array, crossed: ArrayBool) -> Array:
    """Return the mean of the crossings of each crossed cube's twelve edges (n, 3), in samples."""
    base = np.argwhere(crossed)
    total, count = np.zeros((len(base), 3)), np.zeros((len(base), 1))
    steps = np.eye(3, dtype=np.int64)
    for axis in range(3):
        u, v = steps[(axis + 1) % 3], steps[(axis + 2) % 3]
        for offset in (0 * u, u, v, u + v):
            begin = base + offset
            first, second = grid[tuple(begin.T)], grid[tuple((begin + steps[axis]).T)]
            meets = ((first < 0.0) != (second < 0.0))[:, None]
            share = np.where(meets[:, 0], first / np.where(meets[:, 0], first - second, 1.0), 0.0)
            total += meets * (begin + share[:, None] * steps[axis])
            count += meets
    return np.asarray(total / count)


def _quads(inside: ArrayBool, number: ArrayInt, axis: int) -> ArrayInt:
    """Return the quads (m, 4) of the edges along an axis that are crossed, by numbers of vertices."""
    ends = [slice(None)] * 3
    begins = list(ends)
    begins[axis], ends[axis] = slice(None, -1), slice(1, None)
    before, after = inside[tuple(begins)], inside[tuple(ends)]
    u, v = np.eye(3, dtype=np.int64)[[(axis + 1) % 3, (axis + 2) % 3]]
    parts = []
    # Around an edge lie four cubes; seen from its positive end counter-clockwise, or the other way round.
    for edges, ring in ((before & ~after, (-u - v, -v, 0 * u, -u)), (after & ~before, (-u - v, -u, 0 * u, -v))):
        at = np.argwhere(edges)
        parts.append(np.stack([number[tuple((at + step).T)] for step in ring], axis=1).reshape(-1, 4))
    return np.concatenate(parts)
