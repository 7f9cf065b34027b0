"""Pixels of a table of rays: how wide they are, and rays beside their middles."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from airworthy.geometry import RayTable

__all__ = ["SUPERSAMPLES", "ray_steps", "spreads", "supersampled"]

SUPERSAMPLES: dict[int, tuple[tuple[float, float], ...]] = {
    1: ((0.0, 0.0),),
    2: ((0.25, 0.25), (-0.25, -0.25)),
    4: ((-0.125, -0.375), (0.375, -0.125), (0.125, 0.375), (-0.375, 0.125)),
    8: tuple(((2 * k + 1) / 16 - 0.5, ((5 * k + 2) % 8 * 2 + 1) / 16 - 0.5) for k in range(8)),
}
"""Places of samples in a pixel, from its middle: a rotated grid, one sample per row and column."""

_SPREADS: WeakKeyDictionary[RayTable, NDArray[np.float32]] = WeakKeyDictionary()
_SUPERSAMPLED: WeakKeyDictionary[RayTable, dict[int, list[RayTable]]] = WeakKeyDictionary()


def ray_steps(table: RayTable) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Change of the direction from one column, and from one row, to the next; each (H, W, 3)."""
    rays = table.directions

    def steps(axis: int) -> NDArray[np.float64]:
        return np.gradient(rays, axis=axis) if rays.shape[axis] > 1 else np.zeros_like(rays)

    across, down = steps(1), steps(0)
    if rays.shape[1] == 1:
        across = np.cross(down, rays)
    if rays.shape[0] == 1:
        down = np.cross(rays, across)
    # A spinning scanner's last column meets its first: a step over the seam is no step.
    for step in (across, down):
        length = np.linalg.norm(step, axis=-1)
        usual = np.median(length)
        far = length > 4.0 * max(usual, 1e-9)
        step[far] *= (usual / np.maximum(length[far], 1e-12))[:, None]
    return across, down


def spreads(table: RayTable) -> NDArray[np.float32]:
    """Angle that each pixel covers [rad], as the side of a square, in the table's packets (packet, 16)."""
    found = _SPREADS.get(table)
    if found is None:
        across, down = ray_steps(table)
        area = np.linalg.norm(np.cross(across, down), axis=-1).reshape(-1)
        side = np.sqrt(np.maximum(area, 0.0)).astype(np.float32)
        found = _SPREADS[table] = np.ascontiguousarray(side[np.maximum(table.pixels, 0)])
    return found


def supersampled(table: RayTable, samples: int) -> list[RayTable]:
    """Tables whose rays pass the places of `SUPERSAMPLES` in each pixel."""
    if samples == 1:
        return [table]
    kept = _SUPERSAMPLED.setdefault(table, {})
    if samples not in kept:
        across, down = ray_steps(table)
        kept[samples] = [
            RayTable(table.directions + across * x + down * y, table.origins, table.axis) for x, y in SUPERSAMPLES[samples]
        ]
    return kept[samples]
