"""What compiled planners read of maps: where the cells of each flight lie, without a copy.

Maps of `airworthy.planners.mapping` keep a window of cells per flight as a ring in memory, and are read where they lie. Of any
other `Maps` the arrays that it gives are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayInt, ArrayU8
from airworthy.planners.common.interface import Maps
from airworthy.planners.fast.records import FAR, WINDOW
from airworthy.planners.mapping import CellMaps
from airworthy.planners.mapping.maps import trilinear

__all__ = ["MapWindows", "WindowTwin", "window_of", "windows_of"]


def address(array: ArrayAny) -> int:
    """Return where the numbers of a contiguous array lie. The caller keeps the array alive."""
    # A view with strides would be read as if it had none.
    assert array.flags.c_contiguous
    return int(array.ctypes.data)


@dataclass(frozen=True, eq=False)
class MapWindows:
    """Windows of k flights for compiled code; valid until the next image."""

    records: ArrayAny
    """`records.WINDOW`, (k,)."""
    alive: tuple[Any, ...]
    """What must not go away meanwhile."""

    def __len__(self) -> int:
        return len(self.records)

    def view(self, which: int) -> WindowTwin:
        """Return one of them, readable."""
        return WindowTwin(self.records[which], self.alive)


NO_WINDOWS = MapWindows(np.zeros(1, WINDOW), ())
"""For work that reads no map."""


def windows_of(maps: Maps, flights: ArrayInt, lower: Array, upper: Array, resolution: float, field: bool) -> MapWindows:
    """Return windows of flights `flights` (k,), whose boxes are (k, 3) each [m]; with distances where `field` is set.

    Args:
        maps: Of all flights.
        flights: Flights (k,).
        lower: Corners of the boxes, (k, 3) [m], world.
        upper: Opposite corners, (k, 3) [m].
        resolution: Edge of a cell [m].
        field: Take the distances along.
    """
    records = np.zeros(len(flights), WINDOW)
    records["lower"], records["upper"], records["resolution"] = lower, upper, resolution
    # Own maps lie as rings in one memory: the windows point into it. Of others arrays are asked, one flight at a time.
    if isinstance(maps, CellMaps):
        return MapWindows(records, _from_rings(records, maps, flights, field))
    alive: list[Any] = []
    for record, flight in zip(records, flights.tolist(), strict=True):
        cells, corner = maps.inflated(flight)
        alive.append(_put(record, cells, corner, maps.field(flight)[0] if field else None))
    return MapWindows(records, tuple(alive))


def window_of(cells: ArrayU8, corner: Array, lower: Array, upper: Array, resolution: float, field: Any = None) -> MapWindows:
    """Return one window of given cells (nx, ny, nz) and, perhaps, distances of the same shape [m].

    Args:
        cells: Inflated occupancy (nx, ny, nz), nonzero where taken.
        corner: Of the first cell, (3,) [m].
        lower: Corner of the box, (3,) [m], world.
        upper: Opposite corner, (3,) [m].
        resolution: Edge of a cell [m].
        field: Distances (nx, ny, nz) [m]; None: none.
    """
    records = np.zeros(1, WINDOW)
    records["lower"], records["upper"], records["resolution"] = lower, upper, resolution
    return MapWindows(records, (_put(records[0], cells, corner, field),))


def _put(record: Any, cells: Any, corner: Array, field: Any) -> tuple[Any, Any]:
    """Fill a record with plain arrays; they are returned to be kept."""
    plain = np.ascontiguousarray(cells, np.uint8)
    distances = None if field is None else np.ascontiguousarray(field, np.float32)
    record["cells"], record["side"], record["count"], record["corner"] = address(plain), plain.shape, plain.shape, corner
    if distances is not None:
        assert distances.shape == plain.shape
        record["field"] = address(distances)
    return plain, distances


def _from_rings(records: ArrayAny, maps: CellMaps, flights: ArrayInt, field: bool) -> tuple[Any, ...]:
    layers, boxes = maps.layers, maps.layers.boxes
    side, corner = boxes.side[flights], layers.corner[flights]
    # Unsigned, as addresses are.
    base = boxes.base[flights].astype(np.uint64)
    records["cells"] = np.uint64(address(layers.inflated)) + base
    if field:
        assert layers.squared is not None
        records["field"] = np.uint64(address(layers.squared)) + base * np.uint64(layers.squared.itemsize)
    # Maps keep signed squares of cell counts, in 16 bits; the native text takes the root where it reads.
    records["squares"] = 1
    # Cell numbers wrap: a window that moves keeps its cells where they are.
    records["side"], records["offset"] = side, corner % side
    # At the far end of the box a window is cut off.
    records["count"] = np.minimum(side, boxes.cells[flights] - corner)
    records["corner"] = boxes.origin[flights] + boxes.resolution * corner
    return (layers.inflated, layers.squared)


class WindowTwin:
    """One window in NumPy: the twin of native/window.h, for tests and rare questions."""

    def __init__(self, record: Any, alive: tuple[Any, ...]):
        self._record, self._alive = record, alive
        self.resolution, self.corner = float(record["resolution"]), record["corner"].copy()
        self.lower, self.upper = record["lower"].copy(), record["upper"].copy()

    def _read(self, name: str, kind: Any) -> ArrayAny:
        # Only the twin reads memory by its address: in Python nothing else may.
        import ctypes

        side, count, offset = (tuple(int(n) for n in self._record[k]) for k in ("side", "count", "offset"))
        size = int(np.prod(side)) * np.dtype(kind).itemsize
        raw = (ctypes.c_uint8 * size).from_address(int(self._record[name]))
        ring = np.frombuffer(raw, kind).reshape(side)
        return np.roll(ring, [-o for o in offset], (0, 1, 2))[: count[0], : count[1], : count[2]]

    @property
    def cells(self) -> ArrayU8:
        """Occupied cells of the window, (nx, ny, nz); a copy."""
        return self._read("cells", np.uint8)

    @property
    def field(self) -> Array:
        """Distances at the middles of the same cells [m]; a copy."""
        if not self._record["squares"]:
            return self._read("field", np.float32).astype(np.float64)
        s, h = self._read("field", np.int16).astype(np.float64), self.resolution
        # Inside, squares are to the nearest free cell, one at least: less a cell, so that the outermost taken have distance 0.
        return np.where(s >= 0.0, h * np.sqrt(np.abs(s)), h - h * np.sqrt(np.abs(s)))

    def _index(self, points: Array, shape: tuple[int, ...]) -> tuple[ArrayInt, ArrayBool]:
        cell = np.floor((points - self.corner) / self.resolution).astype(np.int64)
        return cell, ((cell >= 0) & (cell < shape)).all(-1)

    def _at_cells(self, values: ArrayAny, points: Array, outside: Any) -> ArrayAny:
        cell, inside = self._index(points, values.shape)
        return np.where(inside, values[tuple(np.where(inside[..., None], cell, 0).T)].T, outside)

    def blocked(self, points: Array) -> ArrayBool:
        """Tell whether points (m, 3) are occupied or outside the box, (m,)."""
        inside: ArrayBool = ((points >= self.lower) & (points <= self.upper)).all(-1)
        return ~inside | self.taken(points)

    def taken(self, points: Array) -> ArrayBool:
        """Tell whether points (m, 3) are occupied, (m,)."""
        return self._at_cells(self.cells, points, 0) != 0

    def coarse(self, points: Array) -> Array:
        """Return the distance at the cells of points (m, 3) [m], (m,)."""
        return self._at_cells(self.field, points, FAR)

    def distance(self, points: Array) -> tuple[Array, Array]:
        """Return the trilinear distance (m,) [m] and its gradient (m, 3) at points (m, 3); far where not all eight cells are
        known."""
        return trilinear_in(self.field, self.corner, self.resolution, points)


def trilinear_in(field: Array, corner: Array, resolution: float, points: Array) -> tuple[Array, Array]:
    """Return the trilinear distance (m,) [m] and gradient (m, 3) at points (m, 3) in a plain field (nx, ny, nz).

    Args:
        field: Distances (nx, ny, nz) [m].
        corner: Of the first cell, (3,) [m].
        resolution: Edge of a cell [m].
        points: (m, 3) [m], world.
    """
    scaled = (points - corner) / resolution - 0.5
    base = np.floor(scaled)
    # A value made of cells that are not known would be a slope towards nowhere.
    known = np.asarray(((base >= 0) & (base < np.array(field.shape) - 1)).all(-1))
    cell = np.where(known[:, None], base, 0).astype(np.int64)
    corners = np.empty((len(points), 2, 2, 2))
    for offset in np.ndindex(2, 2, 2):
        corners[(slice(None), *offset)] = field[tuple((cell + offset).T)]
    value, gradient = trilinear(corners, scaled - base, resolution)
    return np.where(known, value, FAR), np.where(known[:, None], gradient, 0.0)
