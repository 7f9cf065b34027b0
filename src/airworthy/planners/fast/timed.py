"""What Fast-Planner and PGO have in common: splines that begin when they were asked for, watched on maps with a distance field.

A subclass decides what to plan when; here are the plans in force and those that wait for their compute, set-points, the maps'
windows, the heading along a plan, and the settings of all that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.core.schema import check_fields
from airworthy.planners.common.bspline import duration, evaluate
from airworthy.planners.common.interface import Maps, MapSettings, Mission, Motion, Setpoints
from airworthy.planners.fast.plans import FlightPlans, PlanQueue, SplinePlan, yaw_plan
from airworthy.planners.fast.records import PROBE, WATCH
from airworthy.planners.fast.windows import MapWindows, WindowTwin, windows_of
from airworthy.planners.fast.work import PlannerWork, PlanTask

__all__ = [
    "PlanCheck",
    "PlannerStage",
    "TimedPlanner",
    "TimedSettings",
    "Watcher",
    "adjusted",
    "derivative_peaks",
    "first_meeting",
    "headings_of",
    "probe",
]

# -----------------------------------------------------------------------------------------------------------------------------
# Where plans meet what the maps show by now, and how near the goals are to something: many flights in one launch.

# Source: spec/planners 4.6: the safety check samples the trajectory every 0.02 s.
STEP = 0.02
"""Between samples of a plan [s]."""


@dataclass(frozen=True, eq=False)
class PlanCheck:
    """Of k flights."""

    hit: Array
    """Seconds until the plan meets something; -1: it does not."""
    distance: Array
    """From where the plan is now to there [m]."""
    goal_near: ArrayBool
    """The goal is not farther from something than it should be."""


class Watcher:
    """Walks along plans.

    Args:
        ahead: How far from where each plan is now [m].
        goal_least: How far goals should be from what is occupied [m].
    """

    def __init__(self, ahead: float, goal_least: float):
        self._ahead, self._goal_least, self._work = ahead, goal_least, PlannerWork(8)

    def check(self, plans: FlightPlans, flights: ArrayInt, time: Array, goal: Array, windows: MapWindows) -> PlanCheck:
        """Look along the plans of flights (k,) from times (k,) on; goals (k, 3).

        Args:
            plans: Of all flights.
            flights: Flights (k,).
            time: Now, (k,) [s].
            goal: (k, 3) [m], world.
            windows: Of these flights, with distances.
        """
        records = np.zeros(len(flights), WATCH)
        plans.copy_to(records, flights)
        records["window"], records["goal"], records["goal_least"] = np.arange(len(flights)), goal, self._goal_least
        records["now"], records["ahead"] = np.clip(time - plans.begin[flights], 0.0, plans.duration[flights]), self._ahead
        self._work.launch(PlanTask.WATCH, windows, records)
        return PlanCheck(records["hit"].copy(), records["distance"].copy(), records["goal_near"] != 0)


def probe(work: PlannerWork, which: list[int], points: list[Array], windows: MapWindows) -> list[Array]:
    """Return distances (m,) [m] at the cells of points (m, 3), m up to `MOST_PROBES`, in the windows of those numbers.

    Args:
        work: Work memory and workers.
        which: Window of each set of points, by its number.
        points: (m, 3) [m] each, world.
        windows: Occupancy with distances.
    """
    records = np.zeros(len(points), PROBE)
    for record, at in zip(records, points, strict=True):
        record["count"] = len(at)
        record["points"][: at.size] = at.reshape(-1)
    records["window"] = which
    work.launch(PlanTask.PROBE, windows, records)
    return [record["distance"][: len(at)].copy() for record, at in zip(records, points, strict=True)]


def first_meeting(control: Array, knots: Array, now: float, ahead: float, view: WindowTwin) -> tuple[float, float]:
    """Return seconds from `now` until a plan first meets something, and how far away that is [m]; -1 if it does not. The twin.

    Args:
        control: (N, 3) [m], world.
        knots: (N + 4,) [s].
        now: Time on the plan [s].
        ahead: How far from its present point is looked [m].
        view: Occupancy.
    """
    whole = float(duration(knots[None])[0])
    times = now + STEP * np.arange(int((whole - now) / STEP) + 2)
    points = evaluate(control[None], knots[None], times[None])[0]
    away, taken = np.sqrt(((points - points[0]) ** 2).sum(1)), view.taken(points)
    for k in range(1, len(times)):
        if away[k - 1] >= ahead or times[k] >= whole:
            break
        if taken[k]:
            return STEP * k, float(away[k - 1])
    return -1.0, 0.0


# -----------------------------------------------------------------------------------------------------------------------------
# Knots stretched where control points break the limits: the twin of native/time_adjustment.h. Source: spec/planners 4.4.


def adjusted(control: Array, knots: Array, speed: float, most: float, sweeps: int = 3) -> Array:
    """Return knots (N + 4,) of a cubic (N, 3), made slower where its velocity or acceleration control points exceed the limits.

    A sweep visits every point once and stretches its knots by at most a tenth, so a limit may still be broken afterwards.

    Args:
        control: [m]
        knots: [s]
        speed: Limit per axis [m/s].
        most: Limit per axis [m/s^2].
        sweeps: At most so many.
    """
    u = knots.copy()
    for _ in range(sweeps):
        if _sweep(control, u, speed, most):
            break
    return u


def _velocity(q: Array, u: Array, i: int) -> Array:
    return 3.0 * (q[i + 1] - q[i]) / (u[i + 4] - u[i + 1])


def _acceleration(q: Array, u: Array, i: int) -> Array:
    return 2.0 * (_velocity(q, u, i + 1) - _velocity(q, u, i)) / (u[i + 4] - u[i + 2])


def _stretch(u: Array, first: int, last: int, longer: float) -> None:
    """Spread `longer` evenly over knots first .. last and move the later ones along."""
    share = longer / (last - first + 1)
    u[first : last + 1] += np.arange(1, last - first + 2) * share
    u[last + 1 :] += longer


def _sweep(q: Array, u: Array, speed: float, most: float) -> bool:
    kept = True
    for i in range(len(q) - 1):
        worst = float(np.abs(_velocity(q, u, i)).max())
        if worst > speed + 1e-4:
            kept = False
            ratio = min(1.1, worst / speed + 1e-4)
            _stretch(u, i + 2, i + 4, (ratio - 1.0) * (u[i + 4] - u[i + 1]))
    for i in range(len(q) - 2):
        worst = float(np.abs(_acceleration(q, u, i)).max())
        if worst > most + 1e-4:
            kept = False
            longer = (min(1.1, math.sqrt(worst / most) + 1e-4) - 1.0) * (u[i + 4] - u[i + 2])
            # At the beginning the time is put where it leaves the first acceleration as it is.
            if i in (1, 2):
                _stretch(u, 2, 5, 2.0 * longer)
            else:
                _stretch(u, i + 3, i + 4, longer)
    return kept


def derivative_peaks(control: Array, knots: Array) -> tuple[float, float]:
    """Return the largest components of the control points of velocity [m/s] and acceleration [m/s^2]."""
    fastest = max(float(np.abs(_velocity(control, knots, i)).max()) for i in range(len(control) - 1))
    hardest = max(float(np.abs(_acceleration(control, knots, i)).max()) for i in range(len(control) - 2))
    return fastest, hardest


# -----------------------------------------------------------------------------------------------------------------------------

# Source: spec/planners 4.6: state machine 100 Hz, safety 20 Hz.
_WATCH_RATE = 20.0
# Ours: share of a tick that rounding of the clock may take.
_EARLY = 1e-6


class PlannerStage(IntEnum):
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

    def __post_init__(self) -> None:
        check_fields(self, "TimedSettings.")


class TimedPlanner:
    """Plans, set-points and maps of n flights; what is planned is up to the subclass.

    Args:
        settings: See `TimedSettings`.
        goal_least: Goals nearer than this to something are noticed [m].

    Attributes:
        stage: What each flight's planner is about, `PlannerStage`, (n,).
    """

    def __init__(self, settings: TimedSettings, goal_least: float):
        self._shared = settings
        self._watcher = Watcher(settings.safety_ahead, goal_least)

    @property
    def settings(self) -> MapSettings:
        """The maps that it needs."""
        return self._shared.maps

    def _begin_flights(self, mission: Mission) -> None:
        """Begin anew: every flight is to be planned for, and none has a plan."""
        n = len(mission.start)
        self._mission = mission
        displacement = mission.goal - mission.start
        self._plans = FlightPlans(np.array(mission.start, np.float64), np.arctan2(displacement[:, 1], displacement[:, 0]))
        self._queue = PlanQueue(self._plans)
        self.stage = np.full(n, PlannerStage.GENERATE, np.int64)
        self._watched, self._observed = np.full(n, -1, np.int64), np.zeros(n, bool)
        self._retry = np.full(n, -np.inf)

    @property
    def searching(self) -> ArrayBool:
        """Flights (n,) that have no plan that they trust, and are about to try for one."""
        return np.asarray(np.isin(self.stage, (PlannerStage.GENERATE, PlannerStage.REPLAN)))

    def adopt(self, delay: Array) -> None:
        """Adopt the plans of the last update, which hold `delay` (n,) seconds after it."""
        self._queue.adopt(delay)

    def setpoints(self, time: Array) -> Setpoints:
        """Return what to follow at times (n,)."""
        self._queue.settle(np.asarray(time, np.float64))
        return self._plans.setpoints(np.asarray(time, np.float64))

    def _free(self, motion: Motion, active: ArrayBool) -> ArrayBool:
        """Return which flights can think now, (n,). Those that are asked for the first time rest where they are, as they are
        turned, until there is a plan."""
        free = self._queue.begin(motion.time, active)
        flights = np.flatnonzero(free & ~self._observed)
        if flights.size:
            self._plans.rest(flights, self._mission.start[flights], headings_of(motion.attitude[flights]), motion.time[flights])
            self._observed[flights] = True
        return free

    def _watchful(self, mask: ArrayBool, motion: Motion) -> ArrayInt:
        """Return those of the flights (n,) whose plans are to be looked at now: twenty times a second."""
        tick = np.floor(motion.time * _WATCH_RATE + _EARLY).astype(np.int64)
        flights = np.flatnonzero(mask & (tick > self._watched))
        self._watched[flights] = tick[flights]
        return flights

    def _windows(self, flights: ArrayInt, maps: Maps, field: bool) -> MapWindows:
        lower, upper = self._mission.lower[flights], self._mission.upper[flights]
        return windows_of(maps, flights, lower, upper, self._shared.maps.resolution, field)

    def _turned(self, control: Array, knots: Array, yaw: tuple[float, float, float], begin: float) -> SplinePlan:
        """Return a plan of control points (N, 3) and knots (N + 4,) with a heading; yaw, its rate and acceleration where it
        begins.
        """
        s = self._shared
        heading = yaw_plan(
            control, knots, yaw, ahead=s.yaw_ahead, longest=s.yaw_interval, smooth=s.yaw_smooth, points=s.yaw_points
        )
        return SplinePlan(control, knots, heading, begin)


def headings_of(attitude: Array) -> Array:
    """Return headings (k,) [rad] of quaternions (k, 4)."""
    x, y, z, w = np.moveaxis(attitude, -1, 0)
    return np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
