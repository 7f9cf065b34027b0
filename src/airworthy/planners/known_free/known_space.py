"""What n flights know of their whole areas: unknown, free, occupied; filled from their local maps, never forgotten.

A cell is free only where a ray of the depth camera passed through it. Cells lie where those of the local maps do. Kept
besides, with every change: how many occupied cells are nearer to a cell's middle than the body's radius; of nodes of 2 x 2 x 1
cells how many are blocked, free and occupied, how many occupied nodes are near, and how many are above or below. `KnownSpace`
is the memory of one flight; `known_space_twin` works out the same from the states alone.
"""

from __future__ import annotations

import math
import mmap
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayInt, ArrayLike, NDArray
from airworthy.core.native_kernel import native_kernel, quiet_launch, quiet_warp, shared_source
from airworthy.planners.common.interface import FREE, OCCUPIED, UNKNOWN, MapView

__all__ = [
    "MET",
    "OUTSIDE",
    "UNSEEN",
    "CellSource",
    "Certifier",
    "KnownSpace",
    "ball_cells",
    "merge",
    "ring_nodes",
]

STATES = (UNKNOWN, FREE, OCCUPIED)
"""By the number that a cell holds in its two lowest bits: 0, 1, 2."""
_STATE, _WAS_FREE, _ENTERED, _COUNT = 3, 4, 8, 16
BLOCKED, KNOWN, TAKEN, REFUSED = 0, 3, 6, 1 << 9
"""Where a node holds its counts of blocked, free and occupied cells, three bits each; the bit of one that is refused."""
FLOOR = 2
"""Layers at the bottom of an area that hold its floor: what stands on it is more than they."""
ENTERED_ROOM = 512
"""Cells into which something came that one image can tell of: a column 3 m high and 0.6 m wide enters 200 at a time."""
HOLE = 18
"""Free neighbours of 26 that make an unknown cell free, where none is occupied: a ray's width, never a surface's."""
UNSEEN, MET, OUTSIDE = 2, 3, 4
"""Why a ball is not free: something unknown is in it, something occupied, or its middle is outside of the box."""


def known_space_source() -> str:
    """Return the native text of `struct KnownSpace`."""
    folder = files("airworthy.planners.known_free").joinpath("native")
    text = folder.joinpath("known_space.h").read_text()
    numbers = f"enum {{ UNSEEN = {UNSEEN}, MET = {MET}, OUTSIDE = {OUTSIDE}, FLOOR = {FLOOR} }};"
    return "\n".join([shared_source("prelude.h"), numbers, text])


def task_source(name: str) -> str:
    """Complete native source of a task of this room, by its file's name."""
    return known_space_source() + files("airworthy.planners.known_free").joinpath("native", name).read_text()


_MERGE = """
    address: uint64[]  # (k, 5) cells, nodes, crowds, columns, log-odds
    sizes: int32[]  # (k, 16) cells; sides, shift of the log-odds; first and last cell to look at; whether it follows what moves
    numbers: float64[]  # (k, 4) lower corner, edge of a cell [m]
    ball: int32[]  # (b, 3)
    ring: int32[]  # (r, 4)
    ball_count: int
    ring_count: int
    known: int  # log-odds: seen at all
    least: int  # free
    most: int  # occupied
    hole: int  # free neighbours that make an unknown cell free
    seen_through: int  # whether what is free was seen to be
    room: int  # r, entered cells that can be told
    # output
    result: int32[]  # (k,) cells that changed
    entered: int32[]  # (k, 1 + 3 r) how many were entered, and which
"""

_CERTIFY = """
    address: uint64[]  # (4,) of the memory
    sizes: int32[]  # (3,) its cells
    numbers: float64[]  # (4,) its corner, edge of a cell [m]
    box: float64[]  # (6,) where middles may be
    begin: int32[]  # (k + 1,) first point of each
    points: float64[]  # (all, 3) [m]
    wide: float64[]  # (k,) radius within which nothing is occupied [m]
    sure: float64[]  # and nothing unknown [m]
    # output
    result: int32[]  # (k, 2) first point that fails, why
"""


@cache
def merge_kernel() -> Any:
    """Return the update as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("known_space_merge", task_source("merge_task.h"), _MERGE, first=False)


@cache
def certify_kernel() -> Any:
    """Return the certificate as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("known_space_certify", task_source("certify_task.h"), _CERTIFY, first=False)


def ball_cells(radius: float, resolution: float) -> NDArray[np.int32]:
    """Return the cells (k, 3), counted from one, that reach within a radius [m] of its middle.

    Args:
        radius: [m]
        resolution: Edge of a cell [m].
    """
    reach = math.ceil(radius / resolution + 0.5)
    steps = np.arange(-reach, reach + 1)
    gap = np.maximum(np.abs(steps) - 0.5, 0.0) * resolution
    square = gap[:, None, None] ** 2 + gap[None, :, None] ** 2 + gap[None, None, :] ** 2
    return np.ascontiguousarray(np.argwhere(square < radius**2 - 1e-9) - reach, np.int32)


def ring_nodes(near: float, wide: float, resolution: float) -> NDArray[np.int32]:
    """Return nodes (k, 4), counted from one, whose middles are within `wide` [m], and 1 for those within `near` [m].

    Args:
        near: [m]
        wide: [m]
        resolution: Edge of a cell, half that of a node along x and y [m].
    """
    flat, high = math.ceil(wide / (2.0 * resolution)), math.ceil(wide / resolution)
    x, y, z = np.meshgrid(np.arange(-flat, flat + 1), np.arange(-flat, flat + 1), np.arange(-high, high + 1), indexing="ij")
    square = (4 * (x * x + y * y) + z * z) * resolution**2
    kept = square < wide**2
    return np.ascontiguousarray(np.stack([x[kept], y[kept], z[kept], square[kept] < near**2], 1), np.int32)


def _pages(count: int, kind: Any) -> ArrayAny:
    """Return zeros that take memory only where they are touched: NumPy would ask for pages of 2 MB, and most is never seen."""
    return np.frombuffer(mmap.mmap(-1, max(count, 1) * np.dtype(kind).itemsize), kind)


@dataclass(frozen=True, eq=False)
class CellSource:
    """Log-odds of one flight's local map, and which of them an image touched; all in cells of the area."""

    odds: NDArray[np.int16]
    """Flat, (side) with z fastest."""
    side: NDArray[np.int32]
    """(3,) of that array."""
    shift: NDArray[np.int32]
    """(3,) cell i lies at (i + shift) modulo side."""
    first: NDArray[np.int32]
    """(3,) first cell to look at."""
    last: NDArray[np.int32]
    """(3,) and the one behind the last."""
    hit: int = (1 << 15) - 2
    """Log-odds that no cell has any more that a ray has passed since it was last hit."""
    free: int = 0
    """At or below it a cell is free."""
    time: float = math.nan
    """Of the newest image [s]; NaN where nobody said."""

    @classmethod
    def of_view(cls, view: MapView, origin: Array, cells: NDArray[np.int32], levels: tuple[int, int]) -> CellSource:
        """Return what any map shows of itself.

        Args:
            view: Of the map.
            origin: Lower corner of the area's first cell, (3,) [m].
            cells: Of the area, (3,).
            levels: Log-odds that stand for free and for occupied.
        """
        first = np.round((view.origin - origin) / view.resolution).astype(np.int32)
        odds = np.full(view.cells.shape, -(1 << 15), np.int16)
        odds[view.cells == FREE], odds[view.cells == OCCUPIED] = levels
        side = np.array(view.cells.shape, np.int32)
        low, high = np.maximum(first, 0), np.minimum(first + side, cells)
        return cls(odds.reshape(-1), side, (-first % side).astype(np.int32), low, high)


class KnownSpace:
    """What one flight knows.

    Args:
        origin: Lower corner of the first cell [m], (3,).
        cells: Along x, y, z, (3,).
        resolution: Edge of a cell [m].
        ball: Cells that an occupied one blocks; see `ball_cells`.
        ring: Nodes that it crowds; see `ring_nodes`.
    """

    def __init__(
        self, origin: Array, cells: NDArray[np.int32], resolution: float, ball: NDArray[np.int32], ring: NDArray[np.int32]
    ):
        self.origin, self.resolution = np.array(origin, np.float64), float(resolution)
        self.cells = np.array(cells, np.int32)
        self.nodes = np.array([-(-self.cells[0] // 2), -(-self.cells[1] // 2), self.cells[2]], np.int32)
        self.ball, self.ring = ball, ring
        count, nodes = int(np.prod(self.cells, dtype=np.int64)), int(np.prod(self.nodes, dtype=np.int64))
        self._cell, self._node, self._crowd = _pages(count, np.uint16), _pages(nodes, np.uint16), _pages(nodes, np.uint32)
        self._column = _pages(int(self.nodes[0]) * int(self.nodes[1]), np.uint16)
        self.entered = np.zeros((0, 3), np.int32)
        """Cells into which the last image saw something come, (k, 3)."""
        self.follows = False
        """Whether what comes is followed by somebody else, and no part of the memory."""
        arrays = (self._cell, self._node, self._crowd, self._column)
        self.address = np.array([a.ctypes.data for a in arrays], np.uint64)
        self.numbers = np.array([*self.origin, self.resolution])

    @property
    def state(self) -> ArrayInt:
        """`UNKNOWN`, `FREE` or `OCCUPIED` of every cell, (nx, ny, nz)."""
        return np.array(STATES)[self._cell.reshape(self.cells) & _STATE]

    @property
    def blocking(self) -> ArrayInt:
        """How many occupied cells are too near to the middle of each, (nx, ny, nz)."""
        return (self._cell.reshape(self.cells) // _COUNT).astype(np.int64)

    @property
    def node(self) -> ArrayInt:
        """Counts of every node, by bits; (mx, my, mz)."""
        return self._node.reshape(self.nodes).astype(np.int64)

    @property
    def crowd(self) -> ArrayInt:
        """Occupied nodes near each (lowest 16 bits) and in a wider circle (the others), (mx, my, mz)."""
        return self._crowd.reshape(self.nodes).astype(np.int64)

    @property
    def column(self) -> ArrayInt:
        """Occupied nodes above one another, without the floor, (mx, my)."""
        return self._column.reshape(self.nodes[:2]).astype(np.int64)

    def cell_at(self, points: Array) -> ArrayInt:
        """Return cells (..., 3) of points (..., 3) [m], held inside of the area."""
        return np.clip(np.floor((points - self.origin) / self.resolution).astype(np.int64), 0, self.cells - 1)

    def flat(self, cell: ArrayInt) -> ArrayInt:
        """Return numbers (...) of cells (..., 3)."""
        return (cell[..., 0] * int(self.cells[1]) + cell[..., 1]) * int(self.cells[2]) + cell[..., 2]

    def has_room(self, points: Array) -> ArrayBool:
        """Tell whether nothing known is too near to the middles of the cells of points (k, 3) [m]; (k,)."""
        return self._cell[self.flat(self.cell_at(points))] < _COUNT

    def node_numbers(self, points: Array) -> ArrayInt:
        """Return numbers (k,) of the nodes of points (k, 3) [m]."""
        cell = self.cell_at(points)
        return (cell[:, 0] // 2 * int(self.nodes[1]) + cell[:, 1] // 2) * int(self.nodes[2]) + cell[:, 2]

    def nearness(self, points: Array) -> ArrayInt:
        """Return 2 where something is near the nodes of points (k, 3) [m], 1 where it is in the wider circle, else 0; (k,)."""
        crowd = self._crowd[self.node_numbers(points)]
        return np.where(crowd & 0xFFFF, 2, crowd > 0).astype(np.int64)

    def refuse(self, middle: Array, radius: float, known: bool, spared: Array | None = None) -> int:
        """Let no route through nodes around a point (3,) [m] until they have been seen to be free; how many were added.

        Args:
            middle: (3,) [m]
            radius: [m]
            known: Also those that were seen to be free, but turned out not to be flown.
            spared: Not those within 0.3 m of this point (3,) [m], where the flight is itself.
        """
        reach = np.arange(-np.ceil(radius / self.resolution), np.ceil(radius / self.resolution) + 1) * self.resolution
        grid = np.stack(np.meshgrid(reach, reach, reach, indexing="ij"), -1).reshape(-1, 3)
        # From the middle of a cell: on their faces rounding would leave some out.
        centre = self.origin + (self.cell_at(middle) + 0.5) * self.resolution
        points = centre + grid[np.linalg.norm(grid, axis=1) <= radius + 1e-9]
        if spared is not None:
            points = points[np.linalg.norm(points - spared, axis=1) > 0.3]
        number = np.unique(self.node_numbers(points))
        held = self._node[number]
        chosen = number[((held & REFUSED) == 0) & (known | ((held >> KNOWN & 7) < 4))]
        self._node[chosen] |= REFUSED
        return len(chosen)

    def pardon(self) -> int:
        """Forget all that was refused; how many nodes it were."""
        refused = np.flatnonzero(self._node & REFUSED)
        self._node[refused] &= ~np.uint16(REFUSED)
        return len(refused)

    def room_of_nodes(self, number: ArrayInt) -> Array:
        """Return points (k, 3) [m] in nodes by their number (k,): the middle of those of their cells that have room."""
        k = number % int(self.nodes[2])
        j, i = number // int(self.nodes[2]) % int(self.nodes[1]), number // int(self.nodes[2]) // int(self.nodes[1])
        cells = np.stack([2 * i, 2 * j, k], 1)[:, None] + np.array([[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]])
        cells = np.minimum(cells, self.cells - 1)
        room = (self._cell[self.flat(cells)] < _COUNT).astype(np.float64)
        room[room.sum(1) == 0.0] = 1.0
        centre = (room[..., None] * (cells + 0.5)).sum(1) / room.sum(1)[:, None]
        return np.asarray(self.origin + centre * self.resolution)

    def free_entered(self, middle: Array, radius: float) -> None:
        """Take what came into a circle on the ground plan, (2,) [m] and [m], out of the memory: somebody else follows it."""
        cells = self._column_of(middle, radius)
        held = self._cell[self.flat(cells)]
        self._put(cells[(held & _ENTERED > 0) & (held & _STATE == STATES.index(OCCUPIED))], False)

    def block_around(self, middle: Array, radius: float) -> None:
        """Let stand what came into a circle on the ground plan, (2,) [m] and [m], and was not seen to leave again."""
        cells = self._column_of(middle, radius)
        self.block_entered(cells[self._cell[self.flat(cells)] & _ENTERED > 0])

    def block_entered(self, cells: ArrayInt | NDArray[np.int32]) -> None:
        """Let stand what came into cells (k, 3)."""
        self._put(np.asarray(cells, np.int64), True)

    def _column_of(self, middle: Array, radius: float) -> ArrayInt:
        low = self.cell_at(np.array([*(middle - radius), self.origin[2]]))
        high = self.cell_at(np.array([*(middle + radius), self.origin[2] + self.cells[2] * self.resolution])) + 1
        x, y, z = np.meshgrid(*(np.arange(a, b) for a, b in zip(low, high, strict=True)), indexing="ij")
        cells = np.stack([x, y, z], -1).reshape(-1, 3)
        points = self.origin[:2] + (cells[:, :2] + 0.5) * self.resolution
        return np.asarray(cells[np.linalg.norm(points - middle, axis=1) < radius])

    def _put(self, cells: ArrayInt, occupied: bool) -> None:
        """Make cells (k, 3) occupied or free, whatever images say of them."""
        if not len(cells):
            return
        low, high = cells.min(0), cells.max(0) + 1
        odds = np.full(high - low, -(1 << 15), np.int16)
        odds[tuple((cells - low).T)] = 1 if occupied else 0
        side = np.array(odds.shape, np.int32)
        source = CellSource(odds.reshape(-1), side, (-low % side).astype(np.int32), low.astype(np.int32), high.astype(np.int32))
        follows, told, self.follows = self.follows, self.entered, False
        merge([self], [source], 0, 0, 0, 27, False)
        self.follows, self.entered = follows, told
        self._cell[self.flat(cells)] &= np.uint16(~_ENTERED & 0xFFFF)

    def source_of_ball(self, middle: Array, radius: float, level: int) -> CellSource:
        """Return those cells of a ball that were not seen yet, as seen with some log-odds.

        Args:
            middle: (3,) [m]
            radius: [m]
            level: Log-odds.
        """
        low = self.cell_at(middle - radius)
        high = self.cell_at(middle + radius) + 1
        grid = np.stack(np.meshgrid(*(np.arange(a, b) for a, b in zip(low, high, strict=True)), indexing="ij"), -1)
        away = np.linalg.norm(self.origin + (grid + 0.5) * self.resolution - middle, axis=-1)
        fresh = (self._cell[self.flat(grid)] & _STATE) == 0
        odds = np.where((away < radius) & fresh, level, -(1 << 15)).astype(np.int16)
        side = np.array(odds.shape, np.int32)
        return CellSource(odds.reshape(-1), side, (-low % side).astype(np.int32), low.astype(np.int32), high.astype(np.int32))


def _send(array: ArrayAny) -> Any:
    return quiet_warp().array(np.ascontiguousarray(array).reshape(-1), device="cpu", copy=False)


def merge(
    spaces: list[KnownSpace],
    sources: list[CellSource],
    known: int,
    least: int,
    most: int,
    hole: int = HOLE,
    seen_through: bool = True,
) -> ArrayInt:
    """Put what local maps say into the memories of k flights; how many cells changed, (k,).

    Of each memory `entered` becomes what came into space that rays had passed before.

    Args:
        spaces: Memories.
        sources: Local maps, one for each.
        known: Log-odds from which a cell was seen.
        least: At or below it is free.
        most: Above it is occupied; in between it stays what it was.
        hole: Free neighbours of 26 that make an unknown cell free; 27: holes stay.
        seen_through: Whether what is free was seen to be, not supposed.
    """
    if not spaces:
        return np.zeros(0, np.int64)
    address = np.stack([np.append(s.address, np.uint64(c.odds.ctypes.data)) for s, c in zip(spaces, sources, strict=True)])
    sizes = [
        np.concatenate([s.cells, c.side, c.shift % c.side, c.first, c.last, [s.follows]])
        for s, c in zip(spaces, sources, strict=True)
    ]
    result = np.zeros(len(spaces), np.int32)
    ball, ring = spaces[0].ball, spaces[0].ring
    arrays: list[ArrayAny] = [address, np.array(sizes, np.int32), np.stack([s.numbers for s in spaces]), ball, ring]
    entered = np.zeros((len(spaces), 1 + 3 * ENTERED_ROOM), np.int32)
    numbers = [len(ball), len(ring), known, least, most, hole, int(seen_through), ENTERED_ROOM]
    output = [_send(result), _send(entered)]
    quiet_launch(merge_kernel(), len(spaces), [*(_send(a) for a in arrays), *numbers, *output], "cpu")
    for space, found in zip(spaces, entered, strict=True):
        space.entered = found[1 : 1 + 3 * found[0]].reshape(-1, 3)
    return result.astype(np.int64)


class Certifier:
    """Tells of paths how far they are known to be free; its arrays are made once, since that takes longer than most answers."""

    def __init__(self) -> None:
        self._room = 0
        self._grow(4096)

    def check(
        self, space: KnownSpace, box: Array, paths: list[Array], wide: ArrayLike, sure: ArrayLike
    ) -> tuple[ArrayInt, ArrayInt]:
        """Return, of each of k paths, its first point around which a ball is not known to be free (its length: none), and why.

        Args:
            space: Memory of the flight.
            box: Where middles may be, (2, 3) [m].
            paths: Points (m, 3) [m] each.
            wide: Radius within which nothing may be occupied, (k,) or one [m].
            sure: And within which nothing may be unknown, (k,) or one [m].
        """
        count = len(paths)
        ends = np.cumsum([len(p) for p in paths])
        total = int(ends[-1]) if count else 0
        self._grow(max(total, count + 1))
        held = self._arrays
        held["address"][:], held["sizes"][:], held["numbers"][:] = space.address, space.cells, space.numbers
        held["box"][:] = np.asarray(box).reshape(-1)
        held["begin"][1 : count + 1] = ends
        for path, end in zip(paths, ends.tolist(), strict=True):
            held["points"][3 * (end - len(path)) : 3 * end] = path.reshape(-1)
        held["wide"][:count], held["sure"][:count] = wide, sure
        if count:
            self._command.set_dim(count)
            self._command.launch()
        result = held["result"][: 2 * count].reshape(count, 2).astype(np.int64)
        return result[:, 0], result[:, 1]

    def _grow(self, room: int) -> None:
        if room <= self._room:
            return
        self._room = 2 * room
        sizes = {"points": 3 * self._room, "result": 2 * self._room}
        kinds = {"address": np.uint64, "sizes": np.int32, "begin": np.int32, "result": np.int32}
        small = {"address": 4, "sizes": 3, "numbers": 4, "box": 6}
        names = ("address", "sizes", "numbers", "box", "begin", "points", "wide", "sure", "result")
        self._arrays = {
            name: np.zeros(small.get(name, sizes.get(name, self._room + 1)), kinds.get(name, np.float64)) for name in names
        }
        sent = [_send(self._arrays[name]) for name in names]
        # Recorded: packing arguments anew takes longer than most answers.
        self._command = quiet_launch(certify_kernel(), self._room, sent, "cpu", record=True)
