"""The expert's global reference: a way without collisions from start to goal, and how far along it a vehicle is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.geometry.grid_path import shortest_path

__all__ = ["Route", "find_route"]

Array = NDArray[np.float64]
CLEARANCES = (0.8, 0.6, 0.45, 0.3)
"""Tried one after the other [m]."""
HEADROOM = 3.0
"""Above start and goal no way is looked for [m]."""
SPACING, SMOOTHING = 0.2, 20
_WINDOW = 4.0
"""A vehicle's place is looked for so far ahead of the last one [m]."""


@dataclass(frozen=True, eq=False)
class Route:
    """A polyline by arc length."""

    points: Array
    """(k, 3) [m]"""
    along: Array
    """(k,) arc length [m]."""
    found: bool
    """Whether it is free; else it is the straight line."""
    expansions: int

    def at(self, along: Array) -> Array:
        """Points (..., 3) at arc lengths (...)."""
        return np.stack([np.interp(along, self.along, self.points[:, i]) for i in range(3)], axis=-1)

    def progress(self, position: Array, last: float) -> float:
        """Arc length of the nearest point a little ahead of the last one."""
        grid = last + np.arange(0.0, _WINDOW, 0.1)
        away = np.linalg.norm(self.at(grid) - position, axis=1)
        return float(min(grid[int(away.argmin())], self.along[-1]))


def find_route(maps: Any, place: int, start: Array, goal: Array, resolution: float) -> Route:
    """The shortest way with the largest of a few clearances, smoothed as far as it stays free.

    Args:
        maps: With a distance field.
        place: Flight.
        start: (3,) [m]
        goal: (3,) [m]
        resolution: Of the maps [m].
    """
    field, lower = maps.field(place)
    # The search's memory is not endless, and nobody flies over a town to cross it.
    field = field[:, :, : int((max(start[2], goal[2]) + HEADROOM - lower[2]) / resolution) + 1]
    work = 0
    for clearance in CLEARANCES:
        blocked = field < clearance
        for end in (start, goal):  # the ends are where they are
            cell = np.clip(((end - lower) / resolution).astype(int), 0, np.array(field.shape) - 1)
            if field[tuple(cell)] > 0.0:
                near = tuple(slice(max(c - 4, 0), c + 5) for c in cell)
                blocked[near] &= field[near] <= 0.0
        path = shortest_path(blocked, resolution, start, goal, lower=lower)
        if path is not None:
            work += path.expansions
            points = np.vstack([start, path.points[1:-1], goal])
            return _route(_smoothed(maps, place, _resampled(points), 0.7 * clearance), True, work)
    return _route(_resampled(np.array([start, goal])), False, work)


def _route(points: Array, found: bool, expansions: int) -> Route:
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    return Route(points, along, found, expansions)


def _resampled(points: Array) -> Array:
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    grid = np.linspace(0.0, along[-1], max(2, round(along[-1] / SPACING) + 1))
    return np.stack([np.interp(grid, along, points[:, i]) for i in range(3)], axis=1)


def _smoothed(maps: Any, place: int, points: Array, clearance: float) -> Array:
    """Neighbours averaged over and over; points that would come too near stay."""
    for _ in range(SMOOTHING):
        moved = points.copy()
        moved[1:-1] = 0.25 * points[:-2] + 0.5 * points[1:-1] + 0.25 * points[2:]
        away = maps.distance(np.array([place]), moved[None])[0][0]
        points = np.where((away > clearance)[:, None], moved, points)
    return points
