"""The sampling expert as a planner: privileged, 15 decisions a second, each a trajectory of one second, re-timed.

Source: specification of the planners, sections 8.4 and 8.5. It is meant for maps that know the whole scene
(`airworthy.planners.mapping.maps_of_scene`): what it learns of them no sensor could tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayIndex
from airworthy.core.errors import AirworthyError
from airworthy.core.random import flight_key
from airworthy.core.schema import check_fields
from airworthy.geometry.grid_path import shortest_path
from airworthy.planners.common.interface import Maps, MapSettings, Mission, Motion, Setpoints
from airworthy.planners.sampling_expert.sampling import DEGREE, POINTS, TIMES, Goal, constrained_fit, powers, sample

__all__ = ["MAP_SETTINGS", "STATES", "Polyline", "SamplingExpert", "SamplingSettings", "find_route"]

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
            # Ours: rounding a corner may cost 30 % of the clearance that was searched with, else corners would stay corners.
            return _route(_smoothed(maps, flight, _resampled(points), 0.7 * clearance), True, work)
    return _route(_resampled(np.array([start, goal])), False, work)


def _route(points: Array, found: bool, expansions: int) -> Polyline:
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    return Polyline(points, along, found, expansions)


def _resampled(points: Array) -> Array:
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    grid = np.linspace(0.0, along[-1], max(2, round(along[-1] / SPACING) + 1))
    return np.stack([np.interp(grid, along, points[:, i]) for i in range(3)], axis=1)


def _smoothed(maps: Any, flight: int, points: Array, clearance: float) -> Array:
    """Neighbours averaged over and over; points that would come too near stay."""
    for _ in range(SMOOTHING):
        moved = points.copy()
        moved[1:-1] = 0.25 * points[:-2] + 0.5 * points[1:-1] + 0.25 * points[2:]
        away = maps.distance(np.array([flight]), moved[None])[0][0]
        points = np.where((away > clearance)[:, None], moved, points)
    return points


# -----------------------------------------------------------------------------------------------------------------------------

# Ours, because samples are judged by their distance from obstacles, which thicker cells would shorten.
MAP_SETTINGS = MapSettings(inflation=0.0, field=True)
# Source: spec/planners 8.5: 15 Hz.
RATE = 15.0
"""Decisions per second [Hz]."""
STATES = ("following", "without a sample", "arrived")
# Ours, in this order: a share of a decision's period, so that rounding of the clock loses no tick; any number, so that draws
# differ from those of other parts with the same seed; metres from the goal, and m/s^2 at which speed falls before it.
_EARLY, _TAG, _ARRIVED, _BRAKING = 0.05, 0x5A4D, 0.3, 2.0
# Ours: beyond it the fitted start would no longer be where the vehicle is.
_STRAY = 0.5
"""Farther than this from its set-point a vehicle starts anew from where it is [m]."""
# Ours: a body of 0.3 m, and the error of tracking.
_FLOOR, _CEILING = 0.5, 0.4
"""From the floor and the ceiling, which the maps do not hold [m]."""
# Ours: 25 ms apart over the horizon of a second.
_FINE = 41
"""Points of a path by which it is re-timed."""
# Source: spec/planners 8.5: fit degree 5 with 3rd-order continuity.
EXECUTED = 5
"""Degree of what is flown."""


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


@dataclass(eq=False)
class _Path:
    """What one flight follows: points by arc length, and its speed."""

    begun: float
    along: Array
    points: Array
    tangent: Array
    bend: Array
    speed: float
    target: float
    acceleration: float


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
        self._now: list[_Path | None] = [None] * count
        self._next: list[_Path | None] = [None] * count
        self._holds_from, self._decided = np.zeros(count), np.zeros(count, bool)
        displacement = mission.goal - mission.start
        self._yaw = np.arctan2(displacement[:, 1], displacement[:, 0])

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
        self._holds_from[self._decided] += delay[self._decided]

    def setpoints(self, time: Array) -> Setpoints:
        """Return set-points along the path in force."""
        rows = [self._row(flight, float(t)) for flight, t in enumerate(time)]
        position, velocity, acceleration = (np.array([row[k] for row in rows]) for k in range(3))
        # Ours, [m/s]: near rest the direction of flight is noise, and the nose would turn about.
        fast = np.hypot(velocity[:, 0], velocity[:, 1]) > 0.3
        self._yaw = np.where(fast, np.arctan2(velocity[:, 1], velocity[:, 0]), self._yaw)
        return Setpoints(position, velocity, acceleration, self._yaw.copy(), np.zeros(len(time)))

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _decide(self, ids: ArrayIndex, motion: Motion, maps: Maps, samples: Array) -> None:
        goal, cap = self._goal(ids, motion)
        far = np.linalg.norm(self._mission.goal[ids] - motion.position[ids], axis=1) > _ARRIVED
        found = sample(maps, ids, goal, self._key[ids], self._tick[ids], self.options)
        samples[ids] = found.samples
        good = np.isfinite(found.cost[:, 0])
        self._state[ids] = np.where(~far, 2, np.where(good, 0, 1))
        for k in np.flatnonzero(good):
            flight, time = int(ids[k]), float(motion.time[ids[k]])
            if self._next[flight] is not None and time >= self._holds_from[flight]:
                self._now[flight] = self._next[flight]
            self._next[flight] = self._path(flight, found.coefficients[k, 0], motion, float(cap[k]))
            self._holds_from[flight], self._decided[flight] = time, True

    def _begin(self, flight: int, motion: Motion) -> tuple[Array, Array, Array]:
        """State that a trajectory starts from: the set-point, while the vehicle is near it, else where the vehicle is.

        From odometry alone every decision would forgive the tracking error, and nothing would bring a height back.
        """
        wanted = self._row(flight, float(motion.time[flight]))
        if self._next[flight] is not None and np.linalg.norm(wanted[0] - motion.position[flight]) < _STRAY:
            return wanted
        return motion.position[flight], motion.velocity[flight], np.zeros(3)

    def _goal(self, ids: ArrayIndex, motion: Motion) -> tuple[Goal, Array]:
        """Return references by arc length at the speed that the next second may have, slower where the goal is near."""
        begun = [self._begin(int(flight), motion) for flight in ids]
        position, velocity = (np.array([row[k] for row in begun]) for k in range(2))
        highest = np.minimum(self.options.speed_max, self._mission.speed[ids])
        # Source: spec/planners 8.5: min(|v| + 1, 7 m/s).
        speed = np.minimum(np.linalg.norm(velocity, axis=1) + 1.0, highest)
        points, speeds = np.empty((len(ids), POINTS, 3)), np.empty((len(ids), POINTS, 3))
        for k, flight in enumerate(ids):
            route = self._routes[flight]
            assert route is not None
            self._progress[flight] = route.progress(position[k], self._progress[flight])
            rest = max(route.along[-1] - self._progress[flight], 0.0)
            speed[k] = min(speed[k], np.sqrt(2.0 * _BRAKING * rest))
            along = self._progress[flight] + speed[k] * TIMES
            points[k] = route.at(along)
            speeds[k] = np.gradient(np.vstack([route.at(along[:1] - speed[k] * 0.1), points[k]]), 0.1, axis=0)[1:]
        heights = np.stack([self._mission.lower[ids, 2], self._mission.upper[ids, 2]], axis=1)
        return Goal(position, velocity, points, speeds, np.add(heights, (_FLOOR, -_CEILING))), speed

    def _path(self, flight: int, coefficients: Array, motion: Motion, target: float) -> _Path:
        """Return the polynomial that is flown: from the present set-point's acceleration on, by arc length."""
        by_points, by_start = constrained_fit(EXECUTED, 3)
        start = np.stack(self._begin(flight, motion))
        chosen = by_points @ (powers(TIMES, DEGREE) @ coefficients) + by_start @ start
        grid = np.linspace(0.0, TIMES[-1], _FINE)
        points, slope, curve = (powers(grid, EXECUTED, d) @ chosen for d in range(3))
        along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
        size = np.linalg.norm(slope, axis=1, keepdims=True)
        tangent = slope / np.maximum(size, 1e-6)
        # Ours, [m/s]: the curvature of a path that begins at rest is 0 / 0, and close to it huge.
        bend = (curve - (curve * tangent).sum(axis=1, keepdims=True) * tangent) / np.maximum(size, 0.3) ** 2
        limit = float(self._mission.acceleration[flight])
        speed = float(np.linalg.norm(start[1]))
        return _Path(float(motion.time[flight]), along, points, tangent, bend, speed, target, limit)

    def _row(self, flight: int, time: float) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration of one flight: the speed goes over to its target and is constant then."""
        ready = self._next[flight] is not None and time >= self._holds_from[flight]
        path = self._next[flight] if ready else self._now[flight]
        if path is None:
            return self._mission.start[flight], np.zeros(3), np.zeros(3)
        since = max(time - path.begun, 0.0)
        change = path.target - path.speed
        ramp = abs(change) / path.acceleration
        inside = min(since, ramp)
        pull = np.sign(change) * path.acceleration
        speed = path.speed + pull * inside
        along = path.speed * inside + 0.5 * pull * inside**2 + path.target * (since - inside)
        if along >= path.along[-1]:
            return path.points[-1], np.zeros(3), np.zeros(3)
        point, tangent, bend = (
            np.array([np.interp(along, path.along, rows[:, i]) for i in range(3)])
            for rows in (path.points, path.tangent, path.bend)
        )
        return point, speed * tangent, speed**2 * bend + (pull if since < ramp else 0.0) * tangent
