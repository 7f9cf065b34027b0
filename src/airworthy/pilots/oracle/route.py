"""A safe way through a known place: a shortest path with room to spare, pulled tight into few straight legs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from airworthy.geometry.grid_path import shortest_path

__all__ = ["CLEARANCES", "pulled_tight", "safe_way"]

Array = NDArray[np.float64]

CLEARANCES = (0.7, 0.6, 0.5, 0.45, 0.4, 0.35, 0.3)
"""Of cells' middles from occupied cells' middles, the widest first [m]."""
DETOUR = 1.25
"""A wider way may be so much longer than the shortest of all."""
HEADROOM = 3.0
"""Above start and goal no way is looked for [m]: places are wide, and the search's memory is not endless."""
_STEP = 0.05
"""Between two looks along a leg [m]."""


def safe_way(
    field: NDArray[np.float32], lower: Array, resolution: float, start: Array, goal: Array, band: tuple[float, float]
) -> tuple[Array | None, int]:
    """Corners (k, 3) of a way from start to goal [m], and the cells that were looked at; None where there is none.

    Args:
        field: Distances (nx, ny, nz) to what is occupied, at the middles of cells [m].
        lower: Corner of the first cell (3,) [m].
        resolution: Edge of a cell [m].
        start: (3,) [m]
        goal: (3,) [m]
        band: Least and largest height [m]; the floor is no cell.
    """
    high = max(start[2], goal[2]) + HEADROOM
    field = field[:, :, : int((high - lower[2]) / resolution) + 1]
    shortest, best, work = np.inf, None, 0
    for clearance in reversed(CLEARANCES):
        free = _free(field, lower, resolution, clearance, band, (start, goal))
        path = shortest_path(~free, resolution, start, goal, lower=lower)
        if path is None or path.length > DETOUR * shortest:
            break
        shortest, work = min(shortest, path.length), work + path.expansions
        best = (np.vstack([start, path.points[1:-1], goal]), free)
    if best is None:
        return None, work
    return pulled_tight(best[0], best[1], lower, resolution), work


def pulled_tight(points: Array, free: NDArray[np.bool_], lower: Array, resolution: float) -> Array:
    """Corners left when each leads straight to the farthest point of a path (k, 3) that is reached through free cells."""
    corners, at, last = [0], 0, len(points) - 1
    while at < last:
        reach = next(k for k in range(last, at, -1) if k == at + 1 or _visible(points[at], points[k], free, lower, resolution))
        corners.append(reach)
        at = reach
    return points[corners]


def _free(
    field: NDArray[np.float32],
    lower: Array,
    resolution: float,
    clearance: float,
    band: tuple[float, float],
    ends: tuple[Array, Array],
) -> NDArray[np.bool_]:
    free = field >= clearance - 1e-6
    height = lower[2] + resolution * (np.arange(field.shape[2]) + 0.5)
    free &= (height >= band[0]) & (height <= band[1])
    for end in ends:  # they are where they are
        cell = np.clip(((end - lower) / resolution).astype(int), 0, np.array(field.shape) - 1)
        near = tuple(slice(max(c - 3, 0), c + 4) for c in cell)
        free[near] |= field[near] >= min(CLEARANCES)
    return free


def _visible(a: Array, b: Array, free: NDArray[np.bool_], lower: Array, resolution: float) -> bool:
    count = int(np.linalg.norm(b - a) / _STEP) + 2
    cells = ((a + np.linspace(0.0, 1.0, count)[:, None] * (b - a) - lower) / resolution).astype(int)
    cells = np.clip(cells, 0, np.array(free.shape) - 1)
    return bool(free[tuple(cells.T)].all())
