"""The oracle: plans once, on maps that know the whole scene, and flies from corner to corner, at rest at each.

It is privileged and slow where it may be, so that its failures are those of layouts and protocol: what it cannot fly, nobody
can be blamed for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.geometry.grid_path import shortest_path
from airworthy.planners.common.interface import Maps, MapSettings, Mission, Motion, Setpoints
from airworthy.trajectories.polynomial import differentiate, evaluate

__all__ = ["CLEARANCES", "Oracle", "pulled_tight", "safe_path"]

# -----------------------------------------------------------------------------------------------------------------------------
# A safe way through a known scene: a shortest path with room to spare, pulled tight into few straight legs.

# Ours: from comfortable down to a body of 0.3 m; the first through which a way leads is taken.
CLEARANCES = (0.7, 0.6, 0.5, 0.45, 0.4, 0.35, 0.3)
"""Of cells' middles from occupied cells' middles, the widest first [m]."""
# Ours: room is worth a quarter more length, not more.
DETOUR = 1.25
"""A wider way may be so much longer than the shortest of all."""
HEADROOM = 3.0
"""Above start and goal no way is looked for [m]: places are wide, and the search's memory is not endless."""
# Ours: half the edge of a usual cell, so that none is stepped over along an axis.
_STEP = 0.05
"""Between two looks along a leg [m]."""


def safe_path(
    field: ArrayF32, lower: Array, resolution: float, start: Array, goal: Array, band: tuple[float, float]
) -> tuple[Array | None, int]:
    """Return corners (k, 3) of a way from start to goal [m], and the cells that were looked at; None where there is none.

    Args:
        field: Distances (nx, ny, nz) to what is occupied, at the middles of cells [m].
        lower: Corner of the first cell (3,) [m].
        resolution: Edge of a cell [m].
        start: (3,) [m]
        goal: (3,) [m]
        band: Least and largest height [m]; the floor is no cell.
    """
    high = max(start[2], goal[2]) + HEADROOM
    field = field[:, :, : int((high - lower[2]) / resolution) + 1]
    shortest, best, work = np.inf, None, 0
    for clearance in reversed(CLEARANCES):
        free = _free(field, lower, resolution, clearance, band, (start, goal))
        path = shortest_path(~free, resolution, start, goal, lower=lower)
        if path is None or path.length > DETOUR * shortest:
            break
        shortest, work = min(shortest, path.length), work + path.expansions
        best = (np.vstack([start, path.points[1:-1], goal]), free)
    if best is None:
        return None, work
    return pulled_tight(best[0], best[1], lower, resolution), work


def pulled_tight(points: Array, free: ArrayBool, lower: Array, resolution: float) -> Array:
    """Return corners left when each leads straight to the farthest point of a path (k, 3) that is reached through free cells.

    Args:
        points: Path (k, 3) [m], world.
        free: Cells (nx, ny, nz) that may be flown.
        lower: Corner of the first cell, (3,) [m].
        resolution: Edge of a cell [m].
    """
    corners, at, last = [0], 0, len(points) - 1
    while at < last:
        reach = next(k for k in range(last, at, -1) if k == at + 1 or _visible(points[at], points[k], free, lower, resolution))
        corners.append(reach)
        at = reach
    return points[corners]


def _free(
    field: ArrayF32,
    lower: Array,
    resolution: float,
    clearance: float,
    band: tuple[float, float],
    ends: tuple[Array, Array],
) -> ArrayBool:
    free = field >= clearance - 1e-6
    height = lower[2] + resolution * (np.arange(field.shape[2]) + 0.5)
    free &= (height >= band[0]) & (height <= band[1])
    for end in ends:  # they are where they are
        cell = np.clip(((end - lower) / resolution).astype(int), 0, np.array(field.shape) - 1)
        near = tuple(slice(max(c - 3, 0), c + 4) for c in cell)
        free[near] |= field[near] >= min(CLEARANCES)
    return free


def _visible(a: Array, b: Array, free: ArrayBool, lower: Array, resolution: float) -> bool:
    count = int(np.linalg.norm(b - a) / _STEP) + 2
    cells = ((a + np.linspace(0.0, 1.0, count)[:, None] * (b - a) - lower) / resolution).astype(int)
    cells = np.clip(cells, 0, np.array(free.shape) - 1)
    return bool(free[tuple(cells.T)].all())


# -----------------------------------------------------------------------------------------------------------------------------

# Ours, because a bound keeps its distance by the field, and cells that are made thicker would cost it twice.
MAP_SETTINGS = MapSettings(inflation=0.0, field=True)
# Ours, because a bound on what is possible should not fail by flying harder than it must.
SHARES = (0.2, 0.35, 0.5, 0.7, 1.0)
"""Of the mission's acceleration; the gentlest that arrives in time is flown."""
# Ours: leaves the controller a tenth for catching up.
SPEED_SHARE = 0.9
"""Of the mission's speed."""
# Ours: 10 s are left for what tracking adds.
IN_TIME = 80.0
"""Of a protocol's 90 s, for a way [s]."""
# The classic quintic of least jerk (Flash and Hogan 1985).
STEP = np.array([0.0, 0.0, 0.0, 10.0, -15.0, 6.0])
"""From rest to rest in least integrated squared jerk, ascending coefficients of normalised time: at the same peak acceleration
it takes 12 % less time than the least snap, which in a maze of sixty legs is ten seconds."""
# Maxima of its derivatives 30 s^2 (1 - s)^2, at s = 1/2, and 60 s (1 - s) (1 - 2 s), at s = (3 - sqrt(3)) / 6.
PEAK_SPEED, PEAK_ACCELERATION = 1.875, 10.0 / np.sqrt(3.0)
"""Of that step over length L in time T, in units of L / T and L / T^2."""
FLOOR, CEILING = 0.45, 0.3
"""Least height, and least distance from the ceiling [m]."""


class Oracle:
    """Knows the whole scene; see the module."""

    name = "oracle"
    settings: MapSettings | None = MAP_SETTINGS

    def reset(self, mission: Mission) -> None:
        """Begin n flights."""
        count = len(mission.start)
        self._mission = mission
        self._corners: list[Array | None] = [None] * count
        self._times: list[Array] = [np.zeros(1)] * count
        self._begun, self._found = np.zeros(count, bool), np.zeros(count, bool)
        self._asked = np.zeros(count, bool)
        self._start = np.zeros(count)
        displacement = mission.goal - mission.start
        self._yaw = np.arctan2(displacement[:, 1], displacement[:, 0])

    def update(self, motion: Motion, maps: Maps | None, active: ArrayBool) -> dict[str, Any]:
        """Plan, once per flight.

        Args:
            motion: Odometry of all flights (n, ...), world.
            maps: Of the whole scenes, with distances.
            active: Flights that are still flown, (n,).
        """
        if maps is None:
            raise AirworthyError("The oracle needs maps.")
        new = np.flatnonzero(active & ~self._begun)
        work = np.zeros(len(active), np.int64)
        self._asked = np.zeros(len(active), bool)
        for flight in new:
            work[flight] = self._plan(int(flight), maps, motion.position[flight])
            self._start[flight] = motion.time[flight]
        self._begun[new] = self._asked[new] = True
        return {"work": {"expansions": work}, "replans": self._asked & self._found, "state": self._found.astype(np.int64)}

    @property
    def searching(self) -> ArrayBool:
        """Flights (n,) that found no way."""
        return self._begun & ~self._found

    def adopt(self, delay: Array) -> None:
        """Begin a plan when it is there."""
        self._start[self._asked] += delay[self._asked]

    def setpoints(self, time: Array) -> Setpoints:
        """Return set-points along the legs."""
        legs = [self._leg(flight, float(t)) for flight, t in enumerate(time)]
        corner, displacement = (np.array([leg[k] for leg in legs]) for k in range(2))
        span, share = (np.array([leg[k] for leg in legs])[:, None] for k in range(2, 4))
        h, h1, h2 = (np.asarray(evaluate(c, share)) for c in _STEPS)
        position, velocity, acceleration = corner + h * displacement, (h1 / span) * displacement, (h2 / span**2) * displacement
        return Setpoints(position, velocity, acceleration, self._yaw.copy(), np.zeros(len(time)))

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _plan(self, flight: int, maps: Maps, start: Array) -> int:
        mission, resolution = self._mission, MAP_SETTINGS.resolution
        field, lower = maps.field(flight)
        band = (mission.lower[flight, 2] + FLOOR, mission.upper[flight, 2] - CEILING)
        corners, work = safe_path(field, lower, resolution, start, mission.goal[flight], band)
        if hasattr(maps, "forget"):  # of a whole scene it is large, and it is never asked for again
            maps.forget(flight)
        self._found[flight] = corners is not None
        self._corners[flight] = start[None] if corners is None else corners
        if corners is not None:
            self._times[flight] = _times(corners, float(mission.speed[flight]), float(mission.acceleration[flight]))
        return work

    def _leg(self, flight: int, time: float) -> tuple[Array, Array, float, float]:
        """Corner and way of the leg that a flight is on, its time, and the share of it that has passed; at rest, no way."""
        corners = self._corners[flight]
        if corners is None:
            return self._mission.start[flight], np.zeros(3), 1.0, 0.0
        since, ends = time - self._start[flight], self._times[flight]
        if since <= 0.0 or len(corners) == 1:
            return corners[0], np.zeros(3), 1.0, 0.0
        if since >= ends[-1]:
            return corners[-1], np.zeros(3), 1.0, 0.0
        leg = int(np.searchsorted(ends, since, side="right")) - 1
        span = float(ends[leg + 1] - ends[leg])
        return corners[leg], corners[leg + 1] - corners[leg], span, (since - float(ends[leg])) / span


_STEPS = (STEP, differentiate(STEP), differentiate(STEP, 2))


def _times(corners: Array, speed: float, acceleration: float) -> Array:
    """Return when each corner is reached (k,) [s]: the gentlest acceleration that is in time, at rest at each corner."""
    length = np.linalg.norm(np.diff(corners, axis=0), axis=1)
    for share in SHARES:
        bound = np.sqrt(PEAK_ACCELERATION * length / (share * acceleration))
        span = np.maximum(np.maximum(PEAK_SPEED * length / (SPEED_SHARE * speed), bound), 1e-3)
        if span.sum() <= IN_TIME:
            break
    return np.concatenate([[0.0], np.cumsum(span)])
