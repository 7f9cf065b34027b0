"""The sampling expert as a planner: privileged, 15 decisions a second, each a trajectory of one second, re-timed.

Source: specification of the planners, sections 8.4 and 8.5. It is meant for maps that know the whole scene
(`airworthy.planners.mapping.maps_of_scene`): what it learns of them no sensor could tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayIndex
from airworthy.core.errors import AirworthyError
from airworthy.core.random import flight_key
from airworthy.core.schema import check_fields
from airworthy.geometry.grid_path import shortest_path
from airworthy.planners.common.interface import Maps, MapSettings, Mission, Motion, Setpoints
from airworthy.planners.sampling_expert.retimed import RetimedPaths
from airworthy.planners.sampling_expert.sampling import DEGREE, POINTS, TIMES, Goal, powers, sample

__all__ = [
    "BRAKING",
    "CEILING",
    "FLOOR",
    "MAP_SETTINGS",
    "RATE",
    "STATES",
    "FreeWay",
    "Polyline",
    "SamplingExpert",
    "SamplingSettings",
    "find_route",
    "free_way",
    "reference_goal",
    "smoothed_routes",
]

# -----------------------------------------------------------------------------------------------------------------------------
# The expert's global reference: a way without collisions from start to goal, and how far along it a vehicle is.

# Ours, as the oracle's: the widest through which a path leads.
CLEARANCES = (0.8, 0.6, 0.45, 0.3)
"""Tried one after the other [m]."""
# Ours, as the oracle's.
HEADROOM = 3.0
"""Above start and goal no way is looked for [m]."""
# Ours: points every 0.2 m, and 20 rounds of averaging neighbours, so that corners become arcs.
SPACING, SMOOTHING = 0.2, 20
# Ours: farther than is flown between two decisions at any speed here.
_WINDOW = 4.0
"""A vehicle's position is looked for so far ahead of the last one [m]."""
# Ours: m/s^2 at which speed falls before the goal.
BRAKING = 2.0
# Ours: a body of 0.3 m, and the error of tracking.
FLOOR, CEILING = 0.5, 0.4
"""From the floor and the ceiling, which the maps do not hold [m]."""


@dataclass(frozen=True, eq=False)
class Polyline:
    """A polyline by arc length."""

    points: Array
    """(k, 3) [m]"""
    along: Array
    """(k,) arc length [m]."""
    found: bool
    """Whether it is free; else it is the straight line."""
    expansions: int

    def at(self, along: Array) -> Array:
        """Return points (..., 3) at arc lengths (...)."""
        return np.stack([np.interp(along, self.along, self.points[:, i]) for i in range(3)], axis=-1)

    def progress(self, position: Array, last: float) -> float:
        """Return the arc length of the nearest point a little ahead of the last one."""
        grid = last + np.arange(0.0, _WINDOW, 0.1)
        away = np.linalg.norm(self.at(grid) - position, axis=1)
        return float(min(grid[int(away.argmin())], self.along[-1]))


def find_route(maps: Any, flight: int, start: Array, goal: Array, resolution: float) -> Polyline:
    """Return the shortest way with the largest of a few clearances, smoothed as far as it stays free.

    Args:
        maps: With a distance field.
        flight: Flight.
        start: (3,) [m]
        goal: (3,) [m]
        resolution: Of the maps [m].
    """
    field, lower = maps.field(flight)
    found = free_way(field, lower, start, goal, resolution)
    if found is None:
        return straight_route(start, goal)
    return smoothed_routes(maps, flight, [found])[0]


@dataclass(frozen=True, eq=False)
class FreeWay:
    """A way over the grid, with corners."""

    points: Array
    """(k, 3) [m]"""
    clearance: float
    """That it was looked for with [m]."""
    expansions: int


def free_way(field: Array, lower: Array, start: Array, goal: Array, resolution: float) -> FreeWay | None:
    """Return the shortest way with the largest of a few clearances; None: there is none.

    Args:
        field: Distances (nx, ny, nz) [m].
        lower: Lower corner of the first cell (3,) [m].
        start: (3,) [m]
        goal: (3,) [m]
        resolution: Edge of a cell [m].
    """
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
            return FreeWay(np.vstack([start, path.points[1:-1], goal]), clearance, work)
    return None


def straight_route(start: Array, goal: Array) -> Polyline:
    """Return the line from start to goal (3,) [m], for want of a free way."""
    return _route(_resampled(np.array([start, goal])), False, 0)


def smoothed_routes(maps: Any, flight: int, ways: Sequence[FreeWay]) -> list[Polyline]:
    """Return ways in one place with their corners rounded as far as they stay free; all at once, which costs as one.

    Args:
        maps: With a distance field.
        flight: Whose place it is.
        ways: Any number.
    """
    rows = [_resampled(way.points) for way in ways]
    longest = max(map(len, rows))
    # A point that stands at its way's end changes nothing.
    points = np.stack([np.vstack([row, np.tile(row[-1], (longest - len(row), 1))]) for row in rows])
    # Ours: rounding a corner may cost 30 % of the clearance that was searched with, else corners would stay corners.
    least = np.array([[0.7 * way.clearance] for way in ways])
    moves = np.arange(longest) < np.array([[len(row) - 1] for row in rows])
    moves[:, 0] = False
    for _ in range(SMOOTHING):
        moved = points.copy()
        moved[:, 1:-1] = 0.25 * points[:, :-2] + 0.5 * points[:, 1:-1] + 0.25 * points[:, 2:]
        away = maps.distance(np.array([flight]), moved.reshape(1, -1, 3))[0].reshape(points.shape[:2])
        points = np.where(((away > least) & moves)[..., None], moved, points)
    return [_route(row[: len(kept)], True, way.expansions) for row, kept, way in zip(points, rows, ways, strict=True)]


def _route(points: Array, found: bool, expansions: int) -> Polyline:
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    return Polyline(points, along, found, expansions)


def _resampled(points: Array) -> Array:
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    grid = np.linspace(0.0, along[-1], max(2, round(along[-1] / SPACING) + 1))
    return np.stack([np.interp(grid, along, points[:, i]) for i in range(3)], axis=1)


def reference_goal(
    mission: Mission,
    routes: Sequence[Polyline | None],
    progress: Array,
    ids: ArrayIndex,
    position: Array,
    velocity: Array,
    speed: Array,
) -> tuple[Goal, Array]:
    """Return what some flights should do over the horizon: their route by arc length, slower where the goal is near.

    Args:
        mission: Of n flights.
        routes: Their global references, n of them; those of `ids` are there.
        progress: Arc lengths come to so far [m], (n,); moved on in place.
        ids: Flights (k,).
        position: From where, world [m], (k, 3).
        velocity: How they fly there, world [m/s], (k, 3).
        speed: At most, over the horizon [m/s], (k,).

    Returns:
        The reference, and its speeds (k,) [m/s].
    """
    speed = np.array(speed, np.float64)
    points, speeds = np.empty((len(ids), POINTS, 3)), np.empty((len(ids), POINTS, 3))
    for k, flight in enumerate(ids):
        route = routes[flight]
        assert route is not None
        progress[flight] = route.progress(position[k], progress[flight])
        rest = max(route.along[-1] - progress[flight], 0.0)
        speed[k] = min(speed[k], np.sqrt(2.0 * BRAKING * rest))
        along = progress[flight] + speed[k] * TIMES
        points[k] = route.at(along)
        speeds[k] = np.gradient(np.vstack([route.at(along[:1] - speed[k] * 0.1), points[k]]), 0.1, axis=0)[1:]
    heights = np.stack([mission.lower[ids, 2], mission.upper[ids, 2]], axis=1)
    return Goal(position, velocity, points, speeds, np.add(heights, (FLOOR, -CEILING))), speed


# -----------------------------------------------------------------------------------------------------------------------------

# Ours, because samples are judged by their distance from obstacles, which thicker cells would shorten.
MAP_SETTINGS = MapSettings(inflation=0.0, field=True)
# Source: spec/planners 8.5: 15 Hz.
RATE = 15.0
"""Decisions per second [Hz]."""
STATES = ("following", "without a sample", "arrived")
# Ours, in this order: a share of a decision's period, so that rounding of the clock loses no tick; any number, so that draws
# differ from those of other parts with the same seed; metres from the goal.
_EARLY, _TAG, _ARRIVED = 0.05, 0x5A4D, 0.3


@dataclass(frozen=True)
class SamplingSettings:
    """How much is sampled, and how fast it flies."""

    samples: int = 1024
    """Trajectories per decision at most; 50 000 as published."""
    chains: int = 16
    """Walks side by side; 1 as published."""
    kept: int = 5
    """Best ones kept; it stops early when so many are good."""
    speed_max: float = 7.0
    """[m/s]; the mission's cap holds as well."""

    def __post_init__(self) -> None:
        check_fields(self, "SamplingSettings.")
        if not (self.chains >= 1 and self.samples >= self.chains and self.kept >= 1 and self.speed_max > 0.0):
            raise AirworthyError(f"The sampling expert got {self}; expected positive numbers and no more chains than samples.")


class SamplingExpert:
    """Samples around a global reference that is free of collisions.

    Args:
        settings: How much.
    """

    name = "sampling_expert"
    settings: MapSettings | None = MAP_SETTINGS

    def __init__(self, settings: SamplingSettings | None = None):
        self.options = settings or SamplingSettings()

    def reset(self, mission: Mission) -> None:
        """Begin n flights."""
        count = len(mission.start)
        self._mission, self._key = mission, flight_key(mission.seed, mission.flight, _TAG)
        self._routes: list[Polyline | None] = [None] * count
        self._progress, self._tick = np.zeros(count), np.full(count, -1, np.int64)
        self._state = np.zeros(count, np.int64)
        self._decided, self._paths = np.zeros(count, bool), RetimedPaths(mission)

    def update(self, motion: Motion, maps: Maps | None, active: ArrayBool) -> dict[str, Any]:
        """Decide where a tick of 15 Hz has passed.

        Args:
            motion: Odometry of all flights (n, ...), world.
            maps: Of the whole scenes, with distances.
            active: Flights that are still flown, (n,).
        """
        if maps is None:
            raise AirworthyError("The sampling expert needs maps.")
        count = len(active)
        tick = np.floor(motion.time * RATE + _EARLY).astype(np.int64)
        due = active & (tick > self._tick)
        self._tick[due] = tick[due]
        work = {"samples": np.zeros(count), "expansions": np.zeros(count)}
        self._decided = np.zeros(count, bool)
        ids = np.flatnonzero(due)
        for flight in ids:
            if self._routes[flight] is None:
                route = find_route(
                    maps, int(flight), motion.position[flight], self._mission.goal[flight], MAP_SETTINGS.resolution
                )
                self._routes[flight], work["expansions"][flight] = route, route.expansions
        if ids.size:
            self._decide(ids, motion, maps, work["samples"])
        return {"work": work, "replans": self._decided.astype(np.int64), "state": self._state.copy()}

    def adopt(self, delay: Array) -> None:
        """Let the last decisions hold after their compute."""
        self._paths.delay(self._decided, delay)

    def setpoints(self, time: Array) -> Setpoints:
        """Return set-points along the path in force."""
        return self._paths.setpoints(time)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _decide(self, ids: ArrayIndex, motion: Motion, maps: Maps, samples: Array) -> None:
        goal, cap = self._goal(ids, motion)
        far = np.linalg.norm(self._mission.goal[ids] - motion.position[ids], axis=1) > _ARRIVED
        found = sample(maps, ids, goal, self._key[ids], self._tick[ids], self.options)
        samples[ids] = found.samples
        good = np.isfinite(found.cost[:, 0])
        self._state[ids] = np.where(~far, 2, np.where(good, 0, 1))
        for k in np.flatnonzero(good):
            flight = int(ids[k])
            points = powers(TIMES, DEGREE) @ found.coefficients[k, 0]
            self._paths.decide(flight, points, motion, float(cap[k]))
            self._decided[flight] = True

    def _goal(self, ids: ArrayIndex, motion: Motion) -> tuple[Goal, Array]:
        """Return references at the speed that the next second may have."""
        begun = [self._paths.begin(int(flight), motion) for flight in ids]
        position, velocity = (np.array([row[k] for row in begun]) for k in range(2))
        # Source: spec/planners 8.5: min(|v| + 1, 7 m/s).
        highest = np.minimum(self.options.speed_max, self._mission.speed[ids])
        speed = np.minimum(np.linalg.norm(velocity, axis=1) + 1.0, highest)
        return reference_goal(self._mission, self._routes, self._progress, ids, position, velocity, speed)
