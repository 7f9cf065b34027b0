"""Maps of n flights as planners see them: the protocol `Maps`, over layers that somebody fills.

What maps answer, in plain NumPy: the twin of the compiled queries.

A `MapLayers` holds flat arrays of many flights (`boxes.MapBoxes`). The distance layer keeps one whole number per cell: +s where
the nearest occupied cell's centre is sqrt(s) cells away, -s inside, where the nearest free one is. Distances follow from it
without loss: D = h sqrt(s) outside; inside D+ is 0, so D = -h sqrt(s) + h.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import product
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayInt, ArrayLike, ArrayU8, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import native_kernel, quiet_launch, quiet_warp, shared_source
from airworthy.planners.common.interface import FREE, OCCUPIED, MapView
from airworthy.planners.mapping.boxes import MapBoxes

__all__ = [
    "FAR",
    "CellMaps",
    "MapLayers",
    "distances",
    "lookup_source",
    "metres",
    "occupied_cells",
    "questions_kernel",
    "questions_source",
    "slots",
]


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
    """Return places in flat arrays of cells (k, m, 3) of flights (k,), and whether they are in the window; (k, m).

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
    """Return distances [m] of entries of the distance layer."""
    s = squared.astype(np.float64)
    return np.where(s >= 0.0, resolution * np.sqrt(np.abs(s)), resolution - resolution * np.sqrt(np.abs(s)))


def distances(layers: MapLayers, flight: ArrayInt, points: Array) -> tuple[Array, Array]:
    """Return the trilinear distance (k, m) [m] and its gradient (k, m, 3) at points (k, m, 3); 0 and no gradient outside the
    box.

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
    """Return value and analytic gradient between eight corners (..., 2, 2, 2) at fractions (..., 3) of cells of edge h [m].

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


# ---- Builds the kernel of the questions that maps answer: one task is a block of points -----------------------------------

POINTS_PER_TASK = 256
"""Ours, on a CPU, so that a launch costs little beside its points; one on a GPU."""


def lookup_source() -> str:
    """Return the native text of `struct Lookup`, for kernels that ask maps themselves; see `CellMaps.device_arrays`."""
    return f"enum {{ FAR = {FAR} }};\n" + files("airworthy.planners.mapping").joinpath("native", "lookup.h").read_text()


def questions_source() -> str:
    """Complete native source of the questions."""
    text = files("airworthy.planners.mapping").joinpath("native", "lookup.cpp").read_text()
    return "\n".join([shared_source("prelude.h"), lookup_source(), text])


_ARGUMENTS = """
    settings: int32[]  # points, points per flight, 0: whether occupied, 1: distance
    flight: int32[]  # (k,)
    points: float64[]  # (k, m, 3) [m]
    box_numbers: float64[]  # (n, 6) corners of the boxes [m]
    box_cells: int32[]  # (n, 9) cells, side, first cell of the window
    box_base: int64[]  # (n,) first element of each flight
    inflated: uint8[]
    squared: int16[]
    # output
    taken: uint8[]  # (k, m)
    answers: float64[]  # (k, m, 4) distance [m] and gradient
    resolution: float64
"""


@cache
def questions_kernel() -> Any:
    """Return the questions as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("map_questions", questions_source(), _ARGUMENTS)


# ---------------------------------------------------------------------------------------------------------------------------


class CellMaps:
    """Answers of maps; `airworthy.planners.common.interface.Maps`.

    Args:
        layers: What is known of n flights; on a CPU the arrays themselves are used, on another device copies.
        device: Where the layers lie and questions are answered.
    """

    def __init__(self, layers: MapLayers, device: str = "cpu") -> None:
        self.boxes, self.device, self._host = layers.boxes, device, layers
        boxes = layers.boxes
        self._numbers = self._send(np.concatenate([boxes.origin, boxes.upper], 1))
        self._base = self._send(boxes.base)
        self._integers = np.concatenate([boxes.cells, boxes.side, layers.corner], 1).astype(np.int32)
        self._inflated = self._send(layers.inflated)
        self._squared = self._send(np.zeros(1, np.int16) if layers.squared is None else layers.squared)
        self._send_corners()
        self._kept: dict[tuple[str, int], tuple[ArrayU8 | ArrayF32, Array]] = {}

    def __len__(self) -> int:
        return len(self.boxes)

    @property
    def layers(self) -> MapLayers:
        """All that is kept, as NumPy arrays: views on a CPU, copies from another device."""
        if self.device == "cpu":
            return self._host
        squared = None if self._host.squared is None else self._squared.numpy()
        return MapLayers(self.boxes, self._host.corner, self._inflated.numpy(), squared)

    @property
    def device_arrays(self) -> tuple[Any, ...]:
        """Warp arrays for kernels that ask maps themselves with `distance_kernel.lookup_source()`.

        In this order: corners of the boxes (n, 6), their cells (n, 9), first elements (n + 1,), inflated cells, squared
        distances. They stay the same arrays for the life of the maps.
        """
        return self._numbers, self._sent_integers, self._base, self._inflated, self._squared

    def occupied(self, flight: ArrayLike, points: ArrayLike) -> ArrayBool:
        """Tell whether points (k, m, 3) [m] of flights (k,) lie in inflated cells or outside the box; (k, m). Unknown is free.

        Raises:
            AirworthyError: If shapes do not fit or a flight does not exist.
        """
        number, at = self._asked(flight, points)
        taken = np.zeros(at.shape[:2], np.uint8)
        return self._ask(number, at, 0, taken, None).view(bool)

    def distance(self, flight: ArrayLike, points: ArrayLike) -> tuple[Array, Array]:
        """Return the signed distance (k, m) [m] and gradient (k, m, 3) at points (k, m, 3) [m]; 0 without gradient outside the
        box.

        Raises:
            AirworthyError: As `occupied`, and where no field is kept.
        """
        self._check_field()
        number, at = self._asked(flight, points)
        answer = self._ask(number, at, 1, None, np.zeros((*at.shape[:2], 4)))
        return answer[..., 0], answer[..., 1:]

    def inflated(self, flight: int) -> tuple[ArrayU8, Array]:
        """Return inflated cells (nx, ny, nz) of a flight's window, 1 where occupied, and the lower corner (3,) of the first
        [m].

        Valid until the next image; asked again before it, the same array is given.
        """
        return self._dense("inflated", flight)  # type: ignore[return-value]

    def field(self, flight: int) -> tuple[ArrayF32, Array]:
        """Return distances (nx, ny, nz) [m] at the middles of the same cells, and that corner; needs the field."""
        self._check_field()
        return self._dense("field", flight)  # type: ignore[return-value]

    def view(self, flight: int) -> MapView:
        """Return what is known around one flight now, as a copy that cannot be written; see `MapView`.

        Raises:
            AirworthyError: There is no such flight.
        """
        if not 0 <= flight < len(self):
            raise AirworthyError(f"Maps of {len(self)} flights were asked for flight {flight}; they count from 0.")
        grown, origin = self.inflated(flight)
        inflated = grown.astype(bool)
        cells, time, images = self._observed(flight)
        corner = np.array(origin, np.float64)
        # Who looks must not change what others fly by.
        for array in (cells, inflated, corner):
            array.flags.writeable = False
        return MapView(cells, inflated, corner, self.boxes.resolution, time, images)

    def views(self, flights: ArrayLike | None = None) -> list[MapView]:
        """Return `view` of some flights, by their numbers (k,) in the batch; None: of all."""
        chosen = range(len(self)) if flights is None else np.asarray(flights, np.int64).reshape(-1).tolist()
        return [self.view(int(flight)) for flight in chosen]

    def _observed(self, flight: int) -> tuple[NDArray[np.int8], float, int]:
        """Cells as seen, stamp of the newest image and number of images of a flight; here all is known from the start."""
        return np.where(self.inflated(flight)[0] > 0, OCCUPIED, FREE).astype(np.int8), float("nan"), 0

    def forget(self, flight: int) -> None:
        """Drop the arrays that a flight was given, which are kept otherwise; asked again, they are made again."""
        self._forget(np.array([flight]))

    # ---- inside

    def _send(self, array: ArrayAny) -> Any:
        wp = quiet_warp()
        # Kernels know no shapes: they compute where a number lies.
        flat = np.ascontiguousarray(array).reshape(-1)
        return wp.array(flat, device="cpu", copy=False) if self.device == "cpu" else wp.array(flat, device=self.device)

    def _send_corners(self) -> None:
        """Tell kernels where the windows are."""
        self._integers[:, 6:] = self._host.corner
        if not hasattr(self, "_sent_integers"):
            self._sent_integers = self._send(self._integers)
        elif self.device != "cpu":
            self._sent_integers.assign(self._integers.reshape(-1))

    def _check_field(self) -> None:
        if self._host.squared is None:
            raise AirworthyError("These maps keep no distance field; make them with `MapSettings(field=True)`.")

    def _asked(self, flight: ArrayLike, points: ArrayLike) -> tuple[NDArray[np.int32], Array]:
        number, at = np.asarray(flight), np.ascontiguousarray(points, np.float64)
        if number.ndim != 1 or at.ndim != 3 or at.shape[::2] != (len(number), 3):
            raise AirworthyError(
                f"Maps were asked for flights of shape {number.shape} and points of shape {at.shape};"
                " expected (k,) and (k, m, 3)."
            )
        if number.size and (number.min() < 0 or number.max() >= len(self)):
            raise AirworthyError(f"Maps of {len(self)} flights were asked for flight {number.max()}; they count from 0.")
        return np.ascontiguousarray(number, np.int32), at

    def _ask(self, flight: NDArray[np.int32], points: Array, kind: int, taken: ArrayU8 | None, answers: Array | None) -> Any:
        count = points.shape[0] * points.shape[1]
        wanted = taken if taken is not None else answers
        if not count:
            return wanted
        sizes = np.array([count, points.shape[1], kind], np.int32)
        given = [self._send(a) for a in (sizes, flight, points)]
        results = [self._send(a if a is not None else np.zeros(1, t)) for a, t in ((taken, np.uint8), (answers, np.float64))]
        numbers, sent_integers, base, inflated, squared = self.device_arrays
        arguments = [*given, numbers, sent_integers, base, inflated, squared, *results, self.boxes.resolution, 0]
        # A thread of a CPU takes many points, for starting a task costs as much as answering some.
        tasks = -(-count // POINTS_PER_TASK) if self.device == "cpu" else count
        quiet_launch(questions_kernel(), tasks, arguments, self.device)
        assert wanted is not None
        return wanted if self.device == "cpu" else results[kind].numpy().reshape(wanted.shape)

    def _dense(self, name: str, flight: int) -> tuple[ArrayU8 | ArrayF32, Array]:
        """Return the window of one flight in the order of its cells; kept until something changes."""
        # Unrolling a ring copies all of it: once per image, however often it is asked for.
        if (name, flight) not in self._kept:
            boxes, corner = self.boxes, self._host.corner[flight]
            side, span = boxes.side[flight], slice(int(boxes.base[flight]), int(boxes.base[flight + 1]))
            flat = self._inflated if name == "inflated" else self._squared
            ring = flat[span].numpy().reshape(side)
            count = np.minimum(side, boxes.cells[flight] - corner)
            cells = unrolled(ring, corner % side, count)
            # A table of all 65,536 values is quicker than as many roots, and gives the same bits.
            if name == "field":
                cells = self._table.take(cells.view(np.uint16))
            self._kept[name, flight] = cells, boxes.origin[flight] + boxes.resolution * corner
        return self._kept[name, flight]

    @cached_property
    def _table(self) -> ArrayF32:
        """Distance [m] by the bits of a signed squared distance, (65536,)."""
        return metres(np.arange(1 << 16).astype(np.uint16).view(np.int16), self.boxes.resolution).astype(np.float32)

    def _forget(self, flight: ArrayInt) -> None:
        for number in flight.tolist():
            self._kept.pop(("inflated", number), None)
            self._kept.pop(("field", number), None)


def unrolled(ring: ArrayAny, first: NDArray[np.int32], count: NDArray[np.int32]) -> ArrayAny:
    """Return cells (count) of a ring in their order, of which the first lies in slot `first`; a view where nothing wraps.

    Args:
        ring: (sx, sy, sz), in which indices wrap.
        first: Slot of the first cell, (3,).
        count: Cells along each axis, (3,).
    """
    side = ring.shape
    if (first + count <= side).all():
        return ring[tuple(slice(f, f + c) for f, c in zip(first, count, strict=True))]
    out = np.empty(tuple(count), ring.dtype)
    halves = [
        [(slice(f, min(f + c, s)), slice(0, min(c, s - f))), (slice(0, max(f + c - s, 0)), slice(min(c, s - f), c))]
        for f, c, s in zip(first.tolist(), count.tolist(), side, strict=True)
    ]
    for x, y, z in product(*halves):
        out[x[1], y[1], z[1]] = ring[x[0], y[0], z[0]]
    return out
