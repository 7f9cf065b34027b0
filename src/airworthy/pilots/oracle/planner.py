"""The oracle: plans once, on maps that know the whole place, and flies from corner to corner, at rest at each.

It is privileged and slow where it may be, so that its failures are those of layouts and protocol: what it cannot fly, nobody
can be blamed for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.pilots.oracle.route import safe_way
from airworthy.pilots.planning.interface import Maps, MapSettings, Mission, Motion, Setpoints
from airworthy.trajectories.polynomial import differentiate, evaluate

__all__ = ["Oracle"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

MAP_SETTINGS = MapSettings(inflation=0.0, field=True)
SHARES = (0.2, 0.35, 0.5, 0.7, 1.0)
"""Of the mission's acceleration; the gentlest that arrives in time is flown."""
SPEED_SHARE = 0.9
"""Of the mission's speed."""
IN_TIME = 80.0
"""Of a protocol's 90 s, for a way [s]."""
STEP = np.array([0.0, 0.0, 0.0, 10.0, -15.0, 6.0])
"""From rest to rest in least integrated squared jerk, ascending coefficients of normalised time: at the same peak acceleration
it takes 12 % less time than the least snap, which in a maze of sixty legs is ten seconds."""
PEAK_SPEED, PEAK_ACCELERATION = 1.875, 10.0 / np.sqrt(3.0)
"""Of that step over length L in time T, in units of L / T and L / T^2."""
FLOOR, CEILING = 0.45, 0.3
"""Least height, and least distance from the ceiling [m]."""


class Oracle:
    """Knows the whole place; see the module."""

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
        way = mission.goal - mission.start
        self._yaw = np.arctan2(way[:, 1], way[:, 0])

    def update(self, motion: Motion, maps: Maps | None, active: Bools) -> dict[str, Any]:
        """Plan, once per flight."""
        if maps is None:
            raise AirworthyError("The oracle needs maps.")
        new = np.flatnonzero(active & ~self._begun)
        work = np.zeros(len(active), np.int64)
        self._asked = np.zeros(len(active), bool)
        for place in new:
            work[place] = self._plan(int(place), maps, motion.position[place])
            self._start[place] = motion.time[place]
        self._begun[new] = self._asked[new] = True
        return {"work": {"expansions": work}, "replans": self._asked & self._found, "state": self._found.astype(np.int64)}

    @property
    def searching(self) -> Bools:
        """Flights (n,) that found no way."""
        return self._begun & ~self._found

    def adopt(self, delay: Array) -> None:
        """A plan begins when it is there."""
        self._start[self._asked] += delay[self._asked]

    def setpoints(self, time: Array) -> Setpoints:
        """Along the legs."""
        legs = [self._leg(place, float(t)) for place, t in enumerate(time)]
        corner, way = (np.array([leg[k] for leg in legs]) for k in range(2))
        span, share = (np.array([leg[k] for leg in legs])[:, None] for k in range(2, 4))
        h, h1, h2 = (np.asarray(evaluate(c, share)) for c in _STEPS)
        position, velocity, acceleration = corner + h * way, (h1 / span) * way, (h2 / span**2) * way
        return Setpoints(position, velocity, acceleration, self._yaw.copy(), np.zeros(len(time)))

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _plan(self, place: int, maps: Maps, start: Array) -> int:
        mission, resolution = self._mission, MAP_SETTINGS.resolution
        field, lower = maps.field(place)
        band = (mission.lower[place, 2] + FLOOR, mission.upper[place, 2] - CEILING)
        corners, work = safe_way(field, lower, resolution, start, mission.goal[place], band)
        if hasattr(maps, "forget"):  # of a whole place it is large, and it is never asked for again
            maps.forget(place)
        self._found[place] = corners is not None
        self._corners[place] = start[None] if corners is None else corners
        if corners is not None:
            self._times[place] = _times(corners, float(mission.speed[place]), float(mission.acceleration[place]))
        return work

    def _leg(self, place: int, time: float) -> tuple[Array, Array, float, float]:
        """Corner and way of the leg that a flight is on, its time, and the share of it that has passed; at rest, no way."""
        corners = self._corners[place]
        if corners is None:
            return self._mission.start[place], np.zeros(3), 1.0, 0.0
        since, ends = time - self._start[place], self._times[place]
        if since <= 0.0 or len(corners) == 1:
            return corners[0], np.zeros(3), 1.0, 0.0
        if since >= ends[-1]:
            return corners[-1], np.zeros(3), 1.0, 0.0
        leg = int(np.searchsorted(ends, since, side="right")) - 1
        span = float(ends[leg + 1] - ends[leg])
        return corners[leg], corners[leg + 1] - corners[leg], span, (since - float(ends[leg])) / span


_STEPS = (STEP, differentiate(STEP), differentiate(STEP, 2))


def _times(corners: Array, speed: float, acceleration: float) -> Array:
    """When each corner is reached (k,) [s]: the gentlest acceleration that is in time, at rest at each corner."""
    length = np.linalg.norm(np.diff(corners, axis=0), axis=1)
    for share in SHARES:
        bound = np.sqrt(PEAK_ACCELERATION * length / (share * acceleration))
        span = np.maximum(np.maximum(PEAK_SPEED * length / (SPEED_SHARE * speed), bound), 1e-3)
        if span.sum() <= IN_TIME:
            break
    return np.concatenate([[0.0], np.cumsum(span)])
