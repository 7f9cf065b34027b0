"""What maps answer, in plain NumPy: the twin of the compiled queries.

A `MapLayers` holds flat arrays of many flights (`boxes.MapBoxes`). The distance layer keeps one whole number per cell: +s where
the nearest occupied cell's centre is sqrt(s) cells away, -s inside, where the nearest free one is. Distances follow from it
without loss: D = h sqrt(s) outside; inside D+ is 0, so D = -h sqrt(s) + h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayU8
from airworthy.planners.mapping.boxes import MapBoxes

__all__ = ["FAR", "MapLayers", "distances", "metres", "occupied_cells", "slots"]

FAR = 32767
"""Squared cells: as far, or farther, than the distance layer can say (181 cells), or not known."""


@dataclass(eq=False)
class MapLayers:
    """What is kept of n flights."""

    boxes: MapBoxes
    corner: NDArray[np.int32]
    """(n, 3) first cell of each window."""
    inflated: ArrayU8
    """(total,) 1 where a vehicle may not be."""
    squared: NDArray[np.int16] | None
    """(total,) signed squared distance [cells^2]; None where none is kept."""


def slots(layers: MapLayers, flight: ArrayInt, cell: ArrayInt) -> tuple[ArrayInt, ArrayBool]:
    """Places in flat arrays of cells (k, m, 3) of flights (k,), and whether they are in the window; (k, m).

    Args:
        layers: Of the maps.
        flight: Flights (k,).
        cell: (k, m, 3), counted from the box's corner.
    """
    boxes = layers.boxes
    side, corner = (a[flight][:, None].astype(np.int64) for a in (boxes.side, layers.corner))
    kept: ArrayBool = np.all((cell >= corner) & (cell < corner + side) & (cell < boxes.cells[flight][:, None]), axis=-1)
    x, y, z = np.moveaxis(cell % side, -1, 0)
    return boxes.base[flight][:, None] + (x * side[..., 1] + y) * side[..., 2] + z, kept


def inside_box(boxes: MapBoxes, flight: ArrayInt, points: Array) -> ArrayBool:
    """Tell whether points (k, m, 3) lie in the flights' boxes; (k, m). What is not finite lies in none.

    Args:
        boxes: Of all flights.
        flight: Flights (k,).
        points: (k, m, 3) [m], world.
    """
    lower, upper = boxes.origin[flight][:, None], boxes.upper[flight][:, None]
    inside: ArrayBool = np.all((points >= lower) & (points <= upper), axis=-1)
    return inside


def occupied_cells(layers: MapLayers, flight: ArrayInt, points: Array) -> ArrayBool:
    """Tell whether points (k, m, 3) [m] of flights (k,) are in inflated cells or outside the box; (k, m).

    Args:
        layers: Of the maps.
        flight: Flights (k,).
        points: (k, m, 3) [m], world.
    """
    boxes = layers.boxes
    inside = inside_box(boxes, flight, points)
    at = np.where(inside[..., None], points, boxes.origin[flight][:, None])
    cell = np.floor((at - boxes.origin[flight][:, None]) / boxes.resolution).astype(np.int64)
    cell = np.minimum(cell, boxes.cells[flight][:, None] - 1)
    slot, kept = slots(layers, flight, cell)
    ceiling = cell[..., 2] == boxes.cells[flight][:, None, 2] - 1
    taken = layers.inflated[np.where(kept, slot, 0)] != 0
    return ~inside | np.where(kept, taken, ceiling)


def metres(squared: NDArray[np.int16], resolution: float) -> Array:
    """Distances [m] of entries of the distance layer."""
    s = squared.astype(np.float64)
    return np.where(s >= 0.0, resolution * np.sqrt(np.abs(s)), resolution - resolution * np.sqrt(np.abs(s)))


def distances(layers: MapLayers, flight: ArrayInt, points: Array) -> tuple[Array, Array]:
    """Trilinear distance (k, m) [m] and its gradient (k, m, 3) at points (k, m, 3); 0 and no gradient outside the box.

    Args:
        layers: Of the maps.
        flight: Flights (k,).
        points: (k, m, 3) [m], world.
    """
    assert layers.squared is not None
    boxes, h = layers.boxes, layers.boxes.resolution
    inside = inside_box(boxes, flight, points)
    at = np.where(inside[..., None], points, boxes.origin[flight][:, None])
    scaled = (at - boxes.origin[flight][:, None]) / h - 0.5
    base = np.floor(scaled)
    t = scaled - base
    corner = np.empty((*inside.shape, 2, 2, 2))
    for offset in np.ndindex(2, 2, 2):
        cell = np.clip(base.astype(np.int64) + np.array(offset), 0, boxes.cells[flight][:, None] - 1)
        slot, kept = slots(layers, flight, cell)
        corner[..., *offset] = metres(np.where(kept, layers.squared[np.where(kept, slot, 0)], FAR), h)
    value, gradient = trilinear(corner, t, h)
    return np.where(inside, value, 0.0), np.where(inside[..., None], gradient, 0.0)


def trilinear(corner: Array, t: Array, h: float) -> tuple[Array, Array]:
    """Value and analytic gradient between eight corners (..., 2, 2, 2) at fractions (..., 3) of cells of edge h [m].

    Args:
        corner: Values (..., 2, 2, 2) [m].
        t: Fractions (..., 3) of a cell, from the lower corner.
        h: Edge of a cell [m].
    """
    tx, ty, tz = np.moveaxis(t, -1, 0)
    along_x = (1.0 - tx)[..., None, None] * corner[..., 0, :, :] + tx[..., None, None] * corner[..., 1, :, :]
    along_y = (1.0 - ty)[..., None] * along_x[..., 0, :] + ty[..., None] * along_x[..., 1, :]
    value = (1.0 - tz) * along_y[..., 0] + tz * along_y[..., 1]
    up = (along_y[..., 1] - along_y[..., 0]) / h
    slope = along_x[..., 1, :] - along_x[..., 0, :]
    left = ((1.0 - tz) * slope[..., 0] + tz * slope[..., 1]) / h
    slope2 = corner[..., 1, :, :] - corner[..., 0, :, :]
    slope1 = (1.0 - ty)[..., None] * slope2[..., 0, :] + ty[..., None] * slope2[..., 1, :]
    ahead = ((1.0 - tz) * slope1[..., 0] + tz * slope1[..., 1]) / h
    return value, np.stack([ahead, left, up], -1)
