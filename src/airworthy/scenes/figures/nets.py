"""Closed meshes of distance fields: `geometry.surface_nets` of their samples, its vertices drawn to where the field is 0."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.geometry import surface_nets
from airworthy.scenes.figures.fields import Field, gradient

__all__ = ["field_mesh"]

_PULLS = 3
"""Steps by which vertices are drawn to the surface."""


def field_mesh(field: Field, lower: Array, upper: Array, cell: float) -> tuple[Array, ArrayInt]:
    """Return vertices (V, 3) and triangles (F, 3), counter-clockwise seen from outside, of where a field is 0.

    Args:
        field: Below 0 inside.
        lower: Corner of the box that is searched [m], (3,); the mesh closes on the box where the field is below 0 there.
        upper: The other.
        cell: Side of a cell [m].
    """
    counts = np.maximum(np.ceil((upper - lower) / cell).astype(int), 2) + 1
    grid = np.stack(np.meshgrid(*(lower[k] + cell * np.arange(counts[k]) for k in range(3)), indexing="ij"), -1)
    net = surface_nets(field(grid.reshape(-1, 3)).reshape(counts), lower - 0.5 * cell, cell)
    points = np.asarray(net.vertices, float)
    middle = lower + cell * (np.floor((points - lower) / cell) + 0.5)
    for _ in range(_PULLS):
        moved = points - field(points)[:, None] * gradient(field, points)
        # Within its cell, a little beyond: the net stays without folds.
        points = np.clip(moved, middle - 0.6 * cell, middle + 0.6 * cell)
    return points, np.asarray(net.faces)
