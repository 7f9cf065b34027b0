"""Shortest paths on an occupancy grid: `shortest_path(occupied, resolution, start, goal) -> GridPath | None`.

Cells are those of `occupancy.voxelize`: cell (i, j, k) spans `lower + resolution * (i, j, k)` to one cell further. Inflate the
occupancy by the clearance wanted (`voxelize(..., radius=clearance)`) and the path keeps it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayInt, ArrayLike, ArrayU8, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import native_kernel, quiet_launch, quiet_warp, shared_source

# ---- Builds the kernel of the grid search: one task, one search -----------------------------------------------------------

UNSEEN, CLOSED = -1, -2
"""Marks in `heap_index`: never in the open set, already expanded."""


def grid_path_source() -> str:
    """Complete native source of the search."""
    text = files("airworthy.geometry").joinpath("native", "grid_path.h").read_text()
    return "\n".join([shared_source("prelude.h"), f"enum {{ UNSEEN = {UNSEEN}, CLOSED = {CLOSED} }};", text])


_ARGUMENTS = """
    occupied: uint8[]  # 1 where no vehicle may be, (nx * ny * nz)
    cost: float64[]  # length of the best way found [cells], infinite before
    estimate: float64[]  # cost + least way still to go [cells]
    heap: int32[]  # open cells
    heap_index: int32[]  # where in the heap a cell is, UNSEEN or CLOSED
    # output
    came: uint8[]  # step (0..26) by which a cell was reached
    result: int32[]  # found, expansions, cells left in the open set
    nx: int
    ny: int
    nz: int
    start: int
    goal: int
    most: int
"""


@cache
def grid_path_kernel() -> Any:
    """Return the search as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("grid_path", grid_path_source(), _ARGUMENTS, "", first=False)


# ---------------------------------------------------------------------------------------------------------------------------

MAX_CELLS = 1 << 25
"""Largest grid searched: 25 bytes of work memory per cell."""

_STEPS = np.stack(np.meshgrid(*3 * [[-1, 0, 1]], indexing="ij"), -1).reshape(27, 3)


@dataclass(frozen=True, eq=False)
class GridPath:
    """A shortest 26-connected path."""

    cells: NDArray[np.int32]
    """Cells from start to goal, (k, 3)."""
    points: Array
    """Their centres [m], (k, 3), in the frame of `lower`."""
    length: float
    """Sum of the distances between successive centres [m]."""
    expansions: int
    """Cells taken from the open set: a measure of the work."""


def shortest_path(
    occupied: ArrayLike,
    resolution: float,
    start: ArrayLike,
    goal: ArrayLike,
    *,
    lower: ArrayLike = (0.0, 0.0, 0.0),
    max_expansions: int | None = None,
) -> GridPath | None:
    """Return the shortest path between two points through free cells (A*, deterministic).

    A step leads to one of the 26 neighbours; a diagonal one only where every cell of the box that it crosses is free, so that
    the straight segments between the points of the path never touch the inside of an occupied cell.

    Args:
        occupied: True where the vehicle may not be, (nx, ny, nz).
        resolution: Edge of a cell [m].
        start: Point inside the grid [m], (3,).
        goal: Point inside the grid [m], (3,).
        lower: Lower corner of the grid [m], (3,).
        max_expansions: Give up after so many cells; None: never.

    Returns:
        The path, or None where there is none: start or goal is occupied, or no free way connects them.

    Raises:
        AirworthyError: If the grid is not 3D or too large, the resolution is not positive, a point lies outside, or the search
            gave up.
    """
    grid = _grid(occupied, resolution)
    origin = np.asarray(lower, np.float64)
    cells = [cell_of(name, p, grid.shape, resolution, origin) for name, p in (("start", start), ("goal", goal))]
    if grid[tuple(cells[0])] or grid[tuple(cells[1])]:
        return None
    # Flat numbers: the kernel keeps its heap and its parents by cell.
    first, last = (int(np.ravel_multi_index(tuple(c), grid.shape)) for c in cells)
    most = grid.size if max_expansions is None else max_expansions
    (found, expansions, waiting), came = _search(grid, first, last, most)
    if found:
        return _path(came, first, last, grid.shape, resolution, origin, expansions)
    if waiting:
        raise AirworthyError(
            f"The path search gave up after {expansions} of {grid.size} cells; raise max_expansions or use larger cells."
        )
    return None


def cell_of(name: str, point: ArrayLike, shape: tuple[int, ...], resolution: float, lower: Array) -> ArrayInt:
    """Return the cell in which a point lies, (3,); a point on the upper face counts to the last cell.

    Args:
        name: Of the argument, for the error's sentence.
        point: World [m], (3,).
        shape: Cells along x, y, z.
        resolution: Edge of a cell [m].
        lower: Lower corner of the grid, world [m], (3,).

    Raises:
        AirworthyError: If the point is not inside the grid.
    """
    at = np.asarray(point, np.float64)
    if at.shape != (3,) or not np.isfinite(at).all():
        raise AirworthyError(f"`{name}` is {point!r}; expected three finite coordinates in metres.")
    scaled, size = (at - lower) / resolution, np.array(shape)
    if (scaled < 0.0).any() or (scaled > size).any():
        low, high = (np.round(corner, 6).tolist() for corner in (lower, lower + resolution * size))
        raise AirworthyError(f"`{name}` {at.tolist()} lies outside the grid {low} to {high} [m].")
    # The upper face has no cell of its own.
    return np.minimum(scaled.astype(np.int64), size - 1)


def _grid(occupied: ArrayLike, resolution: float) -> ArrayU8:
    # A view, since Warp has no arrays of truth values over NumPy's memory.
    grid = np.ascontiguousarray(occupied, bool).view(np.uint8)
    if grid.ndim != 3 or not 0 < grid.size <= MAX_CELLS:
        raise AirworthyError(f"`occupied` has shape {grid.shape}; expected (nx, ny, nz) with 1 to {MAX_CELLS} cells.")
    if not (resolution > 0.0 and math.isfinite(resolution)):
        raise AirworthyError(f"`resolution` is {resolution}; expected the edge of a cell in metres, above 0.")
    return grid


def _search(grid: ArrayU8, start: int, goal: int, most: int) -> tuple[list[int], ArrayU8]:
    wp = quiet_warp()
    count = grid.size
    came, result = np.zeros(count, np.uint8), np.zeros(3, np.int32)
    # Plain arrays of the whole grid, not a map: most of it is visited where a search is hard.
    work: list[ArrayAny] = [
        grid.reshape(-1),
        np.full(count, np.inf),
        np.zeros(count),
        np.zeros(count, np.int32),
        np.full(count, UNSEEN, np.int32),
        came,
        result,
    ]
    arrays = [wp.array(a, device="cpu", copy=False) for a in work]
    quiet_launch(grid_path_kernel(), 1, [*arrays, *grid.shape, start, goal, most], "cpu")
    return result.tolist(), came


def _path(
    came: ArrayU8,
    start: int,
    goal: int,
    shape: tuple[int, ...],
    resolution: float,
    lower: Array,
    expansions: int,
) -> GridPath:
    strides = np.array([shape[1] * shape[2], shape[2], 1])
    cells = [goal]
    while cells[-1] != start:
        # Backwards: each cell knows only by which step it was reached.
        cells.append(cells[-1] - int(_STEPS[came[cells[-1]]] @ strides))
    grid = np.stack(np.unravel_index(cells[::-1], shape), -1).astype(np.int32)
    points = lower + resolution * (grid + 0.5)
    length = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
    return GridPath(grid, points, length, expansions)
