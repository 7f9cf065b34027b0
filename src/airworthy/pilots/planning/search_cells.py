"""The cells in which planners search: one flight's, readable; many flights', as compiled planners take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.pilots.planning.interface import Maps, Mission

__all__ = ["CellTable", "Cells"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cells:
    """Inflated cells around one vehicle and the box in which it may fly; the twin of `native/cells.h`."""

    data: NDArray[np.uint8]
    """1 where occupied, (nx, ny, nz)."""
    lower: Array
    """Lower corner of the first cell [m], (3,)."""
    resolution: float
    """Edge of a cell [m]."""
    box_lower: Array
    """Corner of the box [m], (3,)."""
    box_upper: Array
    """Opposite corner [m], (3,)."""

    def taken(self, points: ArrayLike) -> NDArray[np.bool_]:
        """Whether points (..., 3) are occupied: outside the box they are, outside the cells (unknown) they are not."""
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
        places: Which flights, by their place in the batch.
        resolution: Edge of a cell [m], as in the maps' settings.

    Attributes:
        address: Of the first cell of each row, (k,) uint64.
        numbers: Lower corner, box, resolution of each row, (k, 10).
        sizes: Cells along x, y, z of each row, and bytes from one to the next, (k, 6) int32.
    """

    def __init__(self, maps: Maps, mission: Mission, places: Sequence[int] | NDArray[np.int64], resolution: float):
        count = len(places)
        self.cells: list[Cells] = []
        self.address = np.zeros(count, np.uint64)
        self.numbers = np.zeros((count, 10))
        self.sizes = np.zeros((count, 6), np.int32)
        for row, place in enumerate(places):
            data, lower = maps.inflated(int(place))
            held = np.asarray(data, np.uint8)
            corner = np.asarray(lower, np.float64)
            self.cells.append(Cells(held, corner, resolution, mission.lower[place], mission.upper[place]))
            self.address[row] = held.ctypes.data
            self.numbers[row] = (*corner, *mission.lower[place], *mission.upper[place], resolution)
            self.sizes[row] = (*held.shape, *held.strides)

    def __len__(self) -> int:
        return len(self.cells)
