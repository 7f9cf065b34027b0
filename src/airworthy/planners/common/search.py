"""A* between two points over the inflated cells: `shortest_grid_path` readable, `find_paths` compiled, for many flights.

The cells of a search are a cube of 100 x 100 x 100 of the map's resolution, centred between the two points. All 26 neighbours
cost their distance; the heuristic is the diagonal distance times 1.0001, which settles ties towards the goal; the budget
counts expansions. An end inside an obstacle is pushed outwards along the line through both. Source: spec/planners section 3.4.
(`geometry.grid_path` searches whole grids, and forbids cutting corners; this one, as published, does not.)

Builds the kernel of the searches between points, and gives its texts to kernels of planners.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayLike, ArrayU8, NDArray
from airworthy.core.native_kernel import native_kernel, quiet_launch, quiet_warp, shared_source
from airworthy.planners.common.interface import Maps, Mission

__all__ = [
    "EXPANSIONS",
    "ITEM_SIZE",
    "NODE_SIZE",
    "PATH_MAX",
    "SIDE",
    "WAITING",
    "CellTable",
    "Cells",
    "SearchMemory",
    "SearchPath",
    "find_paths",
    "planning_source",
    "search_kernel",
    "shortest_grid_path",
]


# Source: spec/planners 3.4: A* on 100^3 cells centred between the two control points.
SIDE = 100
"""Cells along each edge of a search."""
NODE_SIZE, ITEM_SIZE = 2, 2
"""Doubles per cell, and per entry of the open set, of work memory."""
WAITING = 1 << 21
"""Ours: most entries of the open set, twice the cells there are; a search that needs more has failed."""
PATH_MAX = 20_000
"""Ours: longest way that is handed over [cells], two hundred times the side of a search."""


def planning_source(*names: str) -> str:
    """Return `prelude.h` and the named headers of `planning/native`, joined: `cells.h`, `search.h`, `bspline.h`,
    `polynomial.h`."""
    folder = files("airworthy.planners.common").joinpath("native")
    texts = (folder.joinpath(name).read_text().replace("SEARCH_WAITING", str(WAITING)) for name in names)
    return "\n".join([shared_source("prelude.h"), *texts])


_BODY = f"""
SearchSpace space = {{(SearchNode*)nodes.data, (SearchItem*)heap.data, stamp.data}};
Cells cells((const unsigned long long*)address.data, numbers.data, sizes.data, rows.data[task]);
int* path = paths.data + (long long)task * {PATH_MAX};
result.data[2 * task] = space.search(cells, ends.data + 6 * task, ends.data + 6 * task + 3, budget, path, {PATH_MAX});
result.data[2 * task + 1] = (int)space.expansions;
"""


_ARGUMENTS = """
    address: uint64[]  # of the cells of each row
    numbers: float64[]  # lower corner, box, resolution (row, 10)
    sizes: int32[]  # cells along each axis, bytes between them (row, 6)
    rows: int32[]  # which cells each search takes
    ends: float64[]  # start, goal (search, 2, 3)
    # output
    paths: int32[]  # (search, PATH_MAX)
    result: int32[]  # cells of the way, expansions (search, 2)
    # work
    nodes: float64[]
    heap: float64[]
    stamp: int32[]
    budget: int
"""


@cache
def search_kernel() -> Any:
    """Return the searches as a Warp kernel for a CPU, one after the other in one memory; compiled at first launch, then
    cached.
    """
    return native_kernel("search_ways", planning_source("cells.h", "search.h") + _BODY, _ARGUMENTS, first=False)


# -----------------------------------------------------------------------------------------------------------------------------
# The cells in which planners search: one flight's, readable; many flights', as compiled planners take them.


@dataclass(frozen=True, eq=False)
class Cells:
    """Inflated cells around one vehicle and the box in which it may fly; the twin of `native/cells.h`."""

    data: ArrayU8
    """1 where occupied, (nx, ny, nz)."""
    lower: Array
    """Lower corner of the first cell [m], (3,)."""
    resolution: float
    """Edge of a cell [m]."""
    box_lower: Array
    """Corner of the box [m], (3,)."""
    box_upper: Array
    """Opposite corner [m], (3,)."""

    def taken(self, points: ArrayLike) -> ArrayBool:
        """Tell whether points (..., 3) are occupied: outside the box they are, outside the cells (unknown) they are not."""
        p = np.asarray(points, np.float64)
        outside = ~np.all((p >= self.box_lower) & (p < self.box_upper), axis=-1)
        scaled = np.floor((p - self.lower) * (1.0 / self.resolution))
        known = np.all((scaled >= 0.0) & (scaled < self.data.shape), axis=-1)
        index = np.where(known[..., None], scaled, 0.0).astype(np.int64)
        there = self.data[index[..., 0], index[..., 1], index[..., 2]] != 0
        return np.asarray(outside | (known & there))


class CellTable:
    """The cells of some flights, as arguments of kernels: addresses, corners, sizes. It keeps the arrays alive.

    Args:
        maps: The flights' maps.
        mission: Their boxes.
        flights: Which flights, by their number in the batch.
        resolution: Edge of a cell [m], as in the maps' settings.

    Attributes:
        address: Of the first cell of each row, (k,) uint64.
        numbers: Lower corner, box, resolution of each row, (k, 10).
        sizes: Cells along x, y, z of each row, and bytes from one to the next, (k, 6) int32.
    """

    def __init__(self, maps: Maps, mission: Mission, flights: Sequence[int] | ArrayInt, resolution: float):
        count = len(flights)
        self.cells: list[Cells] = []
        self.address = np.zeros(count, np.uint64)
        self.numbers = np.zeros((count, 10))
        self.sizes = np.zeros((count, 6), np.int32)
        for row, flight in enumerate(flights):
            data, lower = maps.inflated(int(flight))
            held = np.asarray(data, np.uint8)
            corner = np.asarray(lower, np.float64)
            self.cells.append(Cells(held, corner, resolution, mission.lower[flight], mission.upper[flight]))
            self.address[row] = held.ctypes.data
            self.numbers[row] = (*corner, *mission.lower[flight], *mission.upper[flight], resolution)
            self.sizes[row] = (*held.shape, *held.strides)

    def __len__(self) -> int:
        return len(self.cells)


# -----------------------------------------------------------------------------------------------------------------------------

# Ours, for the original's 0.2 s (spec/planners 3.4): a budget in work gives the same flight on every machine.
EXPANSIONS = 200_000
_MIDDLE = SIDE // 2
_STEPS = np.stack(np.meshgrid(*3 * [[-1, 0, 1]], indexing="ij"), -1).reshape(27, 3)
# Lengths of steps by how many axes they change.
_KIND = (0.0, 1.0, 1.4142135623730951, 1.7320508075688772)


@dataclass(frozen=True, eq=False)
class SearchPath:
    """What a search found."""

    points: Array
    """From start to goal [m], (k, 3); empty where there is no way within the budget."""
    expansions: int
    """Cells taken from the open set: the work."""


class SearchMemory:
    """Work memory of one compiled search at a time: 16 MB of cells, 32 MB of open set; what is not used is never touched."""

    def __init__(self) -> None:
        wp = quiet_warp()
        self.arrays = (np.zeros(NODE_SIZE * SIDE**3), np.zeros(ITEM_SIZE * WAITING), np.zeros(1, np.int32))
        self.arguments: list[Any] = [wp.array(a, device="cpu", copy=False) for a in self.arrays]


def find_paths(
    table: CellTable, rows: ArrayLike, start: ArrayLike, goal: ArrayLike, *, budget: int = EXPANSIONS, memory: SearchMemory
) -> list[SearchPath]:
    """Search between pairs of points (k, 3), pair i in the cells of row `rows[i]` of the table.

    Args:
        table: Cells of several maps.
        rows: Row of the table of each pair, (k,).
        start: (k, 3) [m], world.
        goal: (k, 3) [m], world.
        budget: Most expansions of one search.
        memory: Work memory, kept from call to call.
    """
    wp = quiet_warp()
    which, ends = np.asarray(rows, np.int32), np.stack([np.asarray(start, float), np.asarray(goal, float)], axis=1)
    path, result = np.zeros((len(which), PATH_MAX), np.int32), np.zeros((len(which), 2), np.int32)
    work = [table.address, table.numbers.reshape(-1), table.sizes.reshape(-1), which, ends.reshape(-1)]
    arrays = [wp.array(a, device="cpu", copy=False) for a in [*work, path.reshape(-1), result.reshape(-1)]]
    if len(which):
        quiet_launch(search_kernel(), len(which), [*arrays, *memory.arguments, budget], "cpu")
    middles = ends.mean(axis=1)
    return [
        SearchPath(_points(path[i, : result[i, 0]], middles[i], table.cells[which[i]].resolution), int(result[i, 1]))
        for i in range(len(which))
    ]


def _points(cells: NDArray[np.int32], middle: Array, resolution: float) -> Array:
    index = np.stack(np.unravel_index(cells, (SIDE, SIDE, SIDE)), -1)
    return np.asarray(middle + (index - _MIDDLE) * resolution)


def shortest_grid_path(cells: Cells, start: ArrayLike, goal: ArrayLike, budget: int = EXPANSIONS) -> SearchPath:
    """Return the same search, readable.

    Args:
        cells: Inflated occupancy.
        start: (3,) [m], world.
        goal: (3,) [m], world.
        budget: Most expansions.
    """
    ends = [np.array(start, np.float64), np.array(goal, np.float64)]
    middle = (ends[0] + ends[1]) / 2.0
    first = _push_out(cells, ends[0], ends[1], middle)
    last = None if first is None else _push_out(cells, ends[1], ends[0], middle)
    if first is None or last is None:
        return SearchPath(np.zeros((0, 3)), 0)
    closed: set[int] = set()
    cost, came = {first: 0.0}, {first: first}
    queue = [(0.0, first)]
    while queue and len(closed) < budget:
        _, cell = heapq.heappop(queue)
        if cell in closed:
            continue
        closed.add(cell)
        if cell == last:
            return SearchPath(_points(_trace(came, first, last), middle, cells.resolution), len(closed))
        for following, step in _neighbours(cells, cell, middle):
            through = cost[cell] + step
            if following not in closed and through < cost.get(following, 1e300):
                cost[following], came[following] = through, cell
                heapq.heappush(queue, (through + 1.0001 * _diagonal(following, last), following))
    return SearchPath(np.zeros((0, 3)), len(closed))


def _push_out(cells: Cells, p: Array, q: Array, middle: Array) -> int | None:
    """Move p away from q until its cell is free; None where that leads out of the cube."""
    while True:
        cell = _cell(p, middle, cells.resolution)
        if cell is None:
            return None
        if not cells.taken(_points(np.array([cell]), middle, cells.resolution)[0]):
            return cell
        away = p - q
        length = np.sqrt(away[0] * away[0] + away[1] * away[1] + away[2] * away[2])
        if not length > 0.0:
            return None
        p += away / length * cells.resolution


def _cell(point: Array, middle: Array, resolution: float) -> int | None:
    index = np.floor((point - middle) / resolution + 0.5).astype(np.int64) + _MIDDLE
    if (index < 0).any() or (index >= SIDE).any():
        return None
    return int(np.ravel_multi_index(tuple(index), (SIDE, SIDE, SIDE)))


def _neighbours(cells: Cells, cell: int, middle: Array) -> list[tuple[int, float]]:
    around = np.array(np.unravel_index(cell, (SIDE, SIDE, SIDE))) + _STEPS
    inside = np.all((around >= 0) & (around < SIDE), axis=1)
    inside[13] = False
    free = inside & ~cells.taken(middle + (around - _MIDDLE) * cells.resolution)
    kinds = np.sum(_STEPS != 0, axis=1)
    return [(int((around[d, 0] * SIDE + around[d, 1]) * SIDE + around[d, 2]), _KIND[kinds[d]]) for d in np.flatnonzero(free)]


def _diagonal(cell: int, goal: int) -> float:
    shape = (SIDE, SIDE, SIDE)
    gaps = np.abs(np.array(np.unravel_index(cell, shape)) - np.array(np.unravel_index(goal, shape)))
    w, v, u = (int(g) for g in np.sort(gaps))
    return _KIND[3] * w + _KIND[2] * (v - w) + (u - v)


def _trace(came: dict[int, int], first: int, last: int) -> NDArray[np.int32]:
    path = [last]
    while path[-1] != first:
        path.append(came[path[-1]])
    return np.array(path[::-1], np.int32)
