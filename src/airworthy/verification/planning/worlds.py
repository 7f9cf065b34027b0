"""Small worlds of pillars and walls, what of them has come within sight, and flights that follow set-points exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayInt, ArrayU8
from airworthy.geometry.distance import distance_field
from airworthy.planners.common.interface import MapView, Mission, Motion, Planner
from airworthy.planners.fast.records import FAR
from airworthy.planners.fast.windows import MapWindows, trilinear_in, window_of
from airworthy.planners.mapping.scene import grown

__all__ = ["CELL", "FlightOutcomes", "SightMaps", "World", "follow", "forest", "mission_of", "signed_distances"]


CELL = 0.1
"""Edge of a cell [m]."""
TICK, LOOK_EVERY = 0.01, 5
"""Planners think and are followed at 100 Hz [s], and look around at every so many-th tick: 20 Hz."""
SIGHT = 4.5
"""How far a flight sees, along each axis [m]."""
FURTHEST = 100.0
"""No world is longer [m]."""
THERE = 0.5
"""From the goal [m]."""


def signed_distances(cells: ArrayBool) -> ArrayF32:
    """Return the specification's field of cells: D+, less D- and plus one cell inside [m]."""
    outside, inside = distance_field(cells, CELL).values, distance_field(~cells, CELL).values
    values = np.where(inside > 0.0, outside - inside + CELL, outside)
    return np.where(np.isfinite(values), values, FAR).astype(np.float32)


@dataclass(frozen=True, eq=False)
class World:
    """What stands from floor to ceiling in a box around the origin, inflated by one cell as planners see it."""

    size: tuple[float, float, float]
    """Length, width and height [m]."""
    pillars: Array
    """x, y and radius of each, (k, 3) [m]."""
    wall: tuple[float, float, float] | None = None
    """Across the length: where, and from which y to which one it has its gap [m]."""

    @property
    def lower(self) -> Array:
        """Corner of the box [m]."""
        return np.array([-0.5 * self.size[0], -0.5 * self.size[1], 0.0])

    @property
    def upper(self) -> Array:
        """The opposite corner [m]."""
        return self.lower + np.array(self.size)

    @cached_property
    def cells(self) -> ArrayBool:
        """True where occupied, (nx, ny, nz); the first and the last layer are floor and ceiling."""
        shape = np.rint(np.array(self.size) / CELL).astype(int)
        x, y = ((np.arange(n) + 0.5) * CELL - 0.5 * s for n, s in zip(shape[:2], self.size[:2], strict=True))
        flat = np.zeros(shape[:2], bool)
        for a, b, r in self.pillars:
            flat |= (x[:, None] - a) ** 2 + (y[None] - b) ** 2 < r * r
        if self.wall is not None:
            at, low, high = self.wall
            flat |= (np.abs(x - at) < 0.2)[:, None] & ((y < low) | (y > high))[None]
        solid = grown(np.repeat(flat[:, :, None], shape[2], axis=2), 1)
        solid[..., 0] = solid[..., -1] = True
        return solid

    def window(self) -> MapWindows:
        """Return all of it, known, with its distances."""
        return window_of(self.cells.astype(np.uint8), self.lower, self.lower, self.upper, CELL, signed_distances(self.cells))

    def clearance(self, points: Array) -> float:
        """Return the least distance of points (k, 3) from the pillars [m]; below 0 inside one."""
        away = np.hypot(*(points[:, None, :2] - self.pillars[None, :, :2]).transpose(2, 0, 1)) - self.pillars[:, 2]
        return float(away.min(initial=np.inf))


def forest(
    seed: int, size: tuple[float, float, float], count: int, spacing: float = 0.0, clear: float = 1.0
) -> tuple[World, Array, Array]:
    """Return pillars 0.5 to 0.7 m wide, drawn one by one; start and goal 1 m inside the short edges on the centre line.

    Args:
        seed: Of the draw.
        size: Of the box [m].
        count: Of pillars.
        spacing: Least distance of two axes [m].
        clear: Least distance of a surface from start and goal [m].
    """
    draw = np.random.default_rng(seed)
    goal = np.array([0.5 * size[0] - 1.0, 0.0, 1.0])
    start = goal * (-1.0, 1.0, 1.0)
    found = np.zeros((0, 3))
    half = 0.5 * np.array(size[:2])
    while len(found) < count:
        pillar = np.array([*draw.uniform(-half, half), draw.uniform(0.25, 0.35)])
        ends = min(np.hypot(*(pillar[:2] - p[:2])) for p in (start, goal)) - pillar[2]
        if ends > clear and np.hypot(*(found[:, :2] - pillar[:2]).T).min(initial=np.inf) >= spacing:
            found = np.vstack([found, pillar])
    return World(size, found), start, goal


class SightMaps:
    """`Maps` of what came within sight of each flight; distances are made when they are asked for."""

    def __init__(self, worlds: Sequence[World], sight: float = SIGHT):
        self._worlds, self._reach = worlds, int(min(sight, FURTHEST) / CELL)
        self._known = [np.zeros_like(world.cells) for world in worlds]
        self._window: list[tuple[slice, ...]] = [()] * len(worlds)
        self._fields: dict[int, ArrayF32] = {}

    def see(self, position: Array) -> None:
        """Let flights at (n, 3) look around."""
        for k, (world, known) in enumerate(zip(self._worlds, self._known, strict=True)):
            cell = np.floor((position[k] - world.lower) / CELL).astype(int)
            near, wide = (tuple(slice(max(c - r, 0), max(c + r + 1, 0)) for c in cell) for r in (self._reach, self._reach + 20))
            known[near] = world.cells[near]
            self._window[k] = wide
        self._fields.clear()

    def inflated(self, flight: int) -> tuple[ArrayU8, Array]:
        """Return cells around a flight, and the corner of the first."""
        window = self._window[flight]
        corner = self._worlds[flight].lower + CELL * np.array([s.start for s in window])
        return self._known[flight][window].astype(np.uint8), corner

    def view(self, flight: int) -> MapView:
        """Return all of it; what has not come within sight counts as free."""
        cells, corner = self.inflated(flight)
        return MapView(cells.astype(np.int8), cells.astype(bool), corner, CELL, float("nan"), 0)

    def field(self, flight: int) -> tuple[ArrayF32, Array]:
        """Return distances at their middles."""
        cells, corner = self.inflated(flight)
        if flight not in self._fields:
            self._fields[flight] = signed_distances(cells != 0)
        return self._fields[flight], corner

    def occupied(self, flight: ArrayInt, points: Array) -> ArrayBool:
        """Tell whether points (k, m, 3) of flights (k,) are; outside of the box they are."""
        out = np.zeros(points.shape[:2], bool)
        for row, number in enumerate(flight):
            known = self._known[int(number)]
            index = np.floor((points[row] - self._worlds[int(number)].lower) / CELL).astype(int)
            inside = ((index >= 0) & (index < known.shape)).all(1)
            out[row] = ~inside
            out[row, inside] = known[tuple(index[inside].T)]
        return out

    def distance(self, flight: ArrayInt, points: Array) -> tuple[Array, Array]:
        """Return the distance of points (k, m, 3), and its gradient."""
        found = []
        for row, number in enumerate(flight):
            field, corner = self.field(int(number))
            found.append(trilinear_in(field.astype(np.float64), corner, CELL, points[row]))
        return np.array([value for value, _ in found]), np.array([slope for _, slope in found])


@dataclass(frozen=True, eq=False)
class FlightOutcomes:
    """What became of n flights."""

    paths: Array
    """(n, ticks, 3) [m]"""
    time: Array
    """When each was at its goal at less than 0.5 m/s, (n,) [s]; NaN: never."""


def mission_of(worlds: Sequence[World], start: Array, goal: Array, speed: float, acceleration: float) -> Mission:
    """Return a flight per world, from (n, 3) to (n, 3), with these caps.

    Args:
        worlds: A world for each of the n flights.
        start: [m], (n, 3).
        goal: [m], (n, 3).
        speed: Most of all flights [m/s].
        acceleration: Most of all flights [m/s^2].
    """
    n, lower, upper = len(worlds), np.array([w.lower for w in worlds]), np.array([w.upper for w in worlds])
    return Mission(start, goal, np.full(n, speed), np.full(n, acceleration), lower, upper, np.arange(n))


def follow(planner: Planner, worlds: Sequence[World], mission: Mission, limit: float) -> FlightOutcomes:
    """Fly, every vehicle being where its set-point is, until all have arrived or `limit` [s] is over.

    Args:
        planner: Is reset first.
        worlds: A world for each of the n flights.
        mission: Of the n flights.
        limit: [s]
    """
    planner.reset(mission)
    n, maps = len(worlds), SightMaps(worlds)
    position, velocity, displacement = mission.start.copy(), np.zeros((n, 3)), mission.goal - mission.start
    yaw, time, path = np.arctan2(displacement[:, 1], displacement[:, 0]), np.full(n, np.nan), [mission.start.copy()]
    for tick in range(round(limit / TICK)):
        if tick % LOOK_EVERY == 0:
            maps.see(position)
        now, flying = np.full(n, tick * TICK), np.isnan(time)
        turned = np.stack([0.0 * yaw, 0.0 * yaw, np.sin(0.5 * yaw), np.cos(0.5 * yaw)], axis=1)
        planner.update(Motion(now, position, velocity, turned), maps, flying)
        planner.adopt(np.zeros(n))
        wanted = planner.setpoints(now + TICK)
        position = np.where(flying[:, None], wanted.position, position)
        velocity, yaw = wanted.velocity, wanted.yaw
        path.append(position)
        near = (np.linalg.norm(position - mission.goal, axis=1) < THERE) & (np.linalg.norm(velocity, axis=1) < THERE)
        time = np.where(flying & near, now + TICK, time)
        if not np.isnan(time).any():
            break
    return FlightOutcomes(np.stack(path, axis=1), time)
