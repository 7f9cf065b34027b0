"""Closed meshes of distance fields: one vertex per cell that the surface crosses ("surface nets", Gibson 1998)."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.scenes.figures.fields import Field, gradient

__all__ = ["surface_net"]

_CORNERS = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
_EDGES = [(a, b) for a in range(8) for b in range(a + 1, 8) if np.abs(_CORNERS[a] - _CORNERS[b]).sum() == 1]
_PULLS = 3
"""Steps by which vertices are drawn to the surface."""


def surface_net(field: Field, lower: Array, upper: Array, cell: float) -> tuple[Array, ArrayInt]:
    """Return vertices (V, 3) and triangles (F, 3), counter-clockwise seen from outside, of where a field is 0.

    Args:
        field: Below 0 inside; above 0 on the box's faces, else the mesh is open there.
        lower: Corner of the box that is searched [m], (3,).
        upper: The other.
        cell: Side of a cell [m].
    """
    counts = np.maximum(np.ceil((upper - lower) / cell).astype(int), 2) + 1
    axes = [lower[k] + cell * np.arange(counts[k]) for k in range(3)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
    value = field(grid.reshape(-1, 3)).reshape(counts)
    inside = value < 0.0
    shape = counts - 1
    corner = [value[i : i + shape[0], j : j + shape[1], k : k + shape[2]] for i, j, k in _CORNERS]
    within = np.stack([c < 0.0 for c in corner])
    crossed = within.any(0) & ~within.all(0)
    where = np.argwhere(crossed)
    number = np.full(shape, -1)
    number[crossed] = np.arange(len(where))
    values = np.stack([c[crossed] for c in corner], -1)
    points = _means(values) * cell + lower + cell * where
    middle = lower + cell * (where + 0.5)
    for _ in range(_PULLS):
        moved = points - field(points)[:, None] * gradient(field, points)
        # Within its cell, a little beyond: the net stays without folds.
        points = np.clip(moved, middle - 0.6 * cell, middle + 0.6 * cell)
    return points, _faces(inside, number)


def _means(values: Array) -> Array:
    """Return the mean of the places where a cell's edges are crossed, (n, 3) in cells, of values at its corners (n, 8)."""
    total, count = np.zeros((len(values), 3)), np.zeros(len(values))
    for a, b in _EDGES:
        va, vb = values[:, a], values[:, b]
        cut = (va < 0.0) != (vb < 0.0)
        share = np.where(cut, va / np.where(cut, va - vb, 1.0), 0.0)
        total += np.where(cut[:, None], _CORNERS[a] + share[:, None] * (_CORNERS[b] - _CORNERS[a]), 0.0)
        count += cut
    return np.asarray(total / count[:, None])


def _faces(inside: ArrayBool, number: ArrayInt) -> ArrayInt:
    """Return two triangles for every edge of the grid that the surface crosses, between the four cells around it."""
    made = []
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        low = [slice(None)] * 3
        high = [slice(None)] * 3
        low[axis], high[axis] = slice(0, -1), slice(1, None)
        for side in (u, v):  # edges in the faces of the box have no four cells
            low[side] = high[side] = slice(1, -1)
        enters, leaves = inside[tuple(low)], inside[tuple(high)]
        at = np.argwhere(enters != leaves)
        out = enters[tuple(at.T)]
        at[:, u] += 1
        at[:, v] += 1
        cells = []
        for du, dv in ((0, 0), (-1, 0), (-1, -1), (0, -1)):
            cell = at.copy()
            cell[:, u] += du
            cell[:, v] += dv
            cells.append(number[tuple(cell.T)])
        a, b, c, d = cells
        for one, two, three in ((a, b, c), (a, c, d)):
            made.append(np.where(out[:, None], np.stack([one, two, three], -1), np.stack([one, three, two], -1)))
    return np.concatenate(made)
