"""What Fast-Planner and PGO have in common: splines that begin when they were asked for, watched on maps with a distance field.

A subclass decides what to plan when; here are the plans in force and those that wait for their compute, set-points, the maps'
windows, the heading along a plan, and the settings of all that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.fast.plans import FlightPlans, Plan, PlanQueue
from airworthy.pilots.fast.watching import Watcher
from airworthy.pilots.fast.windows import Windows, windows_of
from airworthy.pilots.fast.yaw import yaw_plan
from airworthy.pilots.planning.interface import Maps, MapSettings, Mission, Motion, Setpoints

__all__ = ["Stage", "TimedPlanner", "TimedSettings", "headings_of"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

_WATCH_RATE = 20.0
_EARLY = 1e-6


class Stage(IntEnum):
    """What a flight's planner is about."""

    WAIT = 0
    """The last plan is flown to its end, or there is no goal any more."""
    GENERATE = 1
    """Plan from the odometry."""
    EXECUTE = 2
    REPLAN = 3
    """Plan from the plan in force."""


@dataclass(frozen=True)
class TimedSettings:
    """What both planners have a number for; where theirs differ, they say so."""

    maps: MapSettings = field(default_factory=MapSettings)
    spacing: float = 0.5
    """Distance of control points at full speed [m]."""
    smooth: float = 10.0
    """Weight of squared third differences."""
    distance: float = 5.0
    """Weight of what is nearer than `clearance`."""
    feasible: float = 0.0
    """Weight of limits exceeded."""
    clearance: float = 0.4
    """[m]"""
    evaluations: int = 300
    """Of the cost, per optimisation."""
    step_tolerance: float = 1e-5
    """An optimisation ends when no coordinate changes by more than this share of itself."""
    yaw_smooth: float = 10.0
    """Weight of squared third differences of the yaw."""
    yaw_points: float = 100.0
    """Weight of the way points of the yaw."""
    yaw_ahead: float = 2.0
    """The nose points to where the vehicle will be so much later [s]."""
    yaw_interval: float = 0.3
    """Longest knot interval of the yaw [s]."""
    safety_ahead: float = 6.0
    """How far the plan is checked against the map [m]."""


class TimedPlanner:
    """Plans, set-points and maps of n flights; what is planned is up to the subclass.

    Args:
        settings: See `TimedSettings`.
        goal_least: Goals nearer than this to something are noticed [m].

    Attributes:
        stage: What each flight's planner is about, `Stage`, (n,).
    """

    def __init__(self, settings: TimedSettings, goal_least: float):
        self._shared = settings
        self._watcher = Watcher(settings.safety_ahead, goal_least)

    @property
    def settings(self) -> MapSettings:
        """The maps that it needs."""
        return self._shared.maps

    def _begin_flights(self, mission: Mission) -> None:
        """Every flight is to be planned for, and none has a plan."""
        n = len(mission.start)
        self._mission = mission
        way = mission.goal - mission.start
        self._plans = FlightPlans(np.array(mission.start, np.float64), np.arctan2(way[:, 1], way[:, 0]))
        self._queue = PlanQueue(self._plans)
        self.stage = np.full(n, Stage.GENERATE, np.int64)
        self._watched, self._seen = np.full(n, -1, np.int64), np.zeros(n, bool)
        self._retry = np.full(n, -np.inf)

    @property
    def searching(self) -> Bools:
        """Flights (n,) that have no plan that they trust, and are about to try for one."""
        return np.asarray(np.isin(self.stage, (Stage.GENERATE, Stage.REPLAN)))

    def adopt(self, delay: Array) -> None:
        """The plans of the last update hold `delay` (n,) seconds after it."""
        self._queue.adopt(delay)

    def setpoints(self, time: Array) -> Setpoints:
        """What to follow at times (n,)."""
        self._queue.settle(np.asarray(time, np.float64))
        return self._plans.setpoints(np.asarray(time, np.float64))

    def _free(self, motion: Motion, active: Bools) -> Bools:
        """Which flights can think now, (n,). Those that are asked for the first time rest where they are, as they are turned,
        until there is a plan."""
        free = self._queue.begin(motion.time, active)
        places = np.flatnonzero(free & ~self._seen)
        if places.size:
            self._plans.rest(places, self._mission.start[places], headings_of(motion.attitude[places]), motion.time[places])
            self._seen[places] = True
        return free

    def _watchful(self, mask: Bools, motion: Motion) -> Ints:
        """Those of the flights (n,) whose plans are to be looked at now: twenty times a second."""
        tick = np.floor(motion.time * _WATCH_RATE + _EARLY).astype(np.int64)
        places = np.flatnonzero(mask & (tick > self._watched))
        self._watched[places] = tick[places]
        return places

    def _windows(self, places: Ints, maps: Maps, field: bool) -> Windows:
        lower, upper = self._mission.lower[places], self._mission.upper[places]
        return windows_of(maps, places, lower, upper, self._shared.maps.resolution, field)

    def _turned(self, control: Array, knots: Array, yaw: tuple[float, float, float], begin: float) -> Plan:
        """A plan of control points (N, 3) and knots (N + 4,) with a heading; yaw, its rate and acceleration where it begins."""
        s = self._shared
        heading = yaw_plan(
            control, knots, yaw, ahead=s.yaw_ahead, longest=s.yaw_interval, smooth=s.yaw_smooth, points=s.yaw_points
        )
        return Plan(control, knots, heading, begin)


def headings_of(attitude: Array) -> Array:
    """Headings (k,) [rad] of quaternions (k, 4)."""
    x, y, z, w = np.moveaxis(attitude, -1, 0)
    return np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
