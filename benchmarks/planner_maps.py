"""Maps of known solids for demonstrations and tests of planners: everything, or what has come within sight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayInt, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.planners.common.interface import Mission


def mission(
    start: Array, goal: Array, lower: Sequence[float], upper: Sequence[float], speed: float = 2.0, acceleration: float = 3.0
) -> Mission:
    """n flights in one box."""
    n = len(start)
    boxes = [np.tile(np.asarray(c, np.float64), (n, 1)) for c in (lower, upper)]
    caps = [np.full(n, float(c)) for c in (speed, acceleration)]
    return Mission(np.asarray(start, float), np.asarray(goal, float), *caps, *boxes, np.arange(n))


def pillars(
    centres: Array, radius: float | Array, lower: Sequence[float], upper: Sequence[float], resolution: float = 0.1
) -> ArrayBool:
    """Cells (nx, ny, nz) whose middles lie in upright cylinders (k, 2)."""
    size = np.round((np.asarray(upper) - np.asarray(lower)) / resolution).astype(int)
    x, y = (lower[k] + (np.arange(size[k]) + 0.5) * resolution for k in range(2))
    radii = np.broadcast_to(np.asarray(radius, float), len(centres))
    plane = np.zeros((size[0], size[1]), bool)
    for (cx, cy), r in zip(centres, radii, strict=True):
        plane |= (x[:, None] - cx) ** 2 + (y[None] - cy) ** 2 <= r * r
    return np.repeat(plane[:, :, None], size[2], axis=2)


def inflated(cells: ArrayBool) -> ArrayBool:
    """Every cell with an occupied one among it and its 26 neighbours: the inflation of 0.099 m."""
    grown = cells.copy()
    for axis in range(3):
        grown = grown | _moved(grown, axis, 1) | _moved(grown, axis, -1)
    return grown


def _moved(cells: ArrayBool, axis: int, step: int) -> ArrayBool:
    out = np.zeros_like(cells)
    low, high = [slice(None)] * 3, [slice(None)] * 3
    low[axis], high[axis] = slice(None, -1), slice(1, None)
    out[tuple(high if step > 0 else low)] = cells[tuple(low if step > 0 else high)]
    return out


class SolidMaps:
    """Maps of n flights: the true cells, inflated, as far as they have come within `sight` of the flight.

    Args:
        cells: True where solid, one grid (nx, ny, nz) per flight.
        mission: Whose boxes the grids fill.
        sight: How far a flight sees [m]; infinite: everything, from the beginning.
    """

    def __init__(self, cells: Sequence[ArrayBool], mission: Mission, sight: float = np.inf, resolution: float = 0.1):
        self._truth = [inflated(c).astype(np.uint8) for c in cells]
        self._known = [c.copy() if np.isinf(sight) else np.zeros_like(c) for c in self._truth]
        self._mission, self._sight, self._resolution = mission, sight, resolution

    def reveal(self, position: Array) -> None:
        """Flights at (n, 3) look around."""
        for flight, p in enumerate(position):
            lower, reach = self._mission.lower[flight], int(self._sight / self._resolution) + 1
            middle = ((p - lower) / self._resolution).astype(int)
            spans = [slice(max(0, m - reach), max(0, m + reach)) for m in middle]
            window = tuple(spans)
            axes = [
                (np.arange(s.start, min(s.stop, n)) + 0.5) * self._resolution
                for s, n in zip(spans, self._truth[flight].shape, strict=True)
            ]
            away = sum((a.reshape([-1 if k == i else 1 for k in range(3)]) + lower[i] - p[i]) ** 2 for i, a in enumerate(axes))
            self._known[flight][window] |= self._truth[flight][window] & (away <= self._sight**2)

    def inflated(self, flight: int) -> tuple[ArrayU8, Array]:
        return self._known[flight], self._mission.lower[flight]

    def occupied(self, flight: ArrayInt, points: Array) -> ArrayBool:
        out = np.zeros(points.shape[:2], bool)
        for row, number in enumerate(flight):
            index = np.floor((points[row] - self._mission.lower[number]) / self._resolution).astype(int)
            inside = np.all((index >= 0) & (index < self._known[number].shape), axis=1)
            out[row] = ~inside
            out[row, inside] = self._known[number][tuple(index[inside].T)] != 0
        return out

    def distance(self, flight: ArrayInt, points: Array) -> tuple[Array, Array]:
        raise AirworthyError("These maps of known scenes keep no distance field: time a planner that reads occupancy alone.")

    def field(self, flight: int) -> tuple[ArrayF32, Array]:
        raise AirworthyError("These maps of known scenes keep no distance field: time a planner that reads occupancy alone.")
