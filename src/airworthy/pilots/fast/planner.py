"""Fast-Planner: kinodynamic search, B-spline optimisation in a distance field, time adjustment, many flights at once.

After Zhou, Gao, Wang, Liu and Shen, "Robust and Efficient Quadrotor Trajectory Generation for Fast Autonomous Flight", RA-L
2019, with the state machine of its public configuration. Source: spec/planners section 4.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.fast.descent import Descended, SplineDescent, put_points
from airworthy.pilots.fast.goals import clearer_goal
from airworthy.pilots.fast.plans import FlightPlans, Plan, PlanQueue
from airworthy.pilots.fast.records import MOST_POINTS, PROBLEM, Outcome
from airworthy.pilots.fast.search import KinoPath, KinoSearch
from airworthy.pilots.fast.settings import FastSettings
from airworthy.pilots.fast.watching import Watcher
from airworthy.pilots.fast.windows import Windows, windows_of
from airworthy.pilots.fast.yaw import yaw_plan
from airworthy.pilots.planning.interface import Maps, MapSettings, Mission, Motion, Setpoints

__all__ = ["FastPlanner", "Stage", "headings_of"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

_WATCH_RATE = 20.0
_EARLY = 1e-6
_CLOSE = 0.2
"""A goal nearer than this is not planned for [m]."""


class Stage(IntEnum):
    """What a flight's planner is about."""

    WAIT = 0
    """The last plan is flown to its end."""
    GENERATE = 1
    """Plan from the odometry."""
    EXECUTE = 2
    REPLAN = 3
    """Plan from the plan in force."""


class FastPlanner:
    """Plans n flights; `airworthy.pilots.planning.interface.Planner`.

    Args:
        settings: None: those of the public configuration.
    """

    name = "fast"

    def __init__(self, settings: FastSettings | None = None):
        s = self.config = settings or FastSettings()
        self._search = KinoSearch(s.search)
        self._descent = SplineDescent(s.smooth, s.distance, s.feasible, s.end, s.clearance, s.evaluations, s.step_tolerance)
        self._watcher = Watcher(s.safety_ahead, s.goal_distance)

    @property
    def settings(self) -> MapSettings:
        """The maps that it needs."""
        return self.config.maps

    def reset(self, mission: Mission) -> None:
        """Begin n flights."""
        n = len(mission.start)
        self._mission, self.goal = mission, np.array(mission.goal, np.float64)
        way = self.goal - mission.start
        self._plans = FlightPlans(np.array(mission.start, np.float64), np.arctan2(way[:, 1], way[:, 0]))
        self._queue = PlanQueue(self._plans)
        self.stage = np.full(n, Stage.GENERATE, np.int64)
        self._watched = np.full(n, -1, np.int64)
        self._retry = np.full(n, -np.inf)
        self._seen = np.zeros(n, bool)
        self._nothing = np.zeros(n)

    def update(self, motion: Motion, maps: Maps | None, active: Bools) -> dict[str, Any]:
        """Think, at 100 Hz; see the protocol. Work: "kino_expansions" of the search and "evaluations" of the cost."""
        assert maps is not None
        free = self._queue.begin(motion.time, active)
        self._rest_unseen(motion, free)
        self._work = {"kino_expansions": np.zeros(len(free)), "evaluations": np.zeros(len(free))}
        replans = np.zeros(len(free), np.int64)
        asks = (self.stage == Stage.GENERATE) | (self.stage == Stage.REPLAN)
        places = np.flatnonzero(free & asks & (motion.time >= self._retry))
        self._execute(free & (self.stage == Stage.EXECUTE), motion)
        self._watch(free, motion, maps)
        if places.size:
            replans[places] = self._replan(places, motion, maps)
        return {"work": self._work, "replans": replans, "state": self.stage.copy()}

    def adopt(self, delay: Array) -> None:
        """The plans of the last update hold `delay` (n,) seconds after it."""
        self._queue.adopt(delay)

    def setpoints(self, time: Array) -> Setpoints:
        """What to follow at times (n,)."""
        self._queue.settle(np.asarray(time, np.float64))
        return self._plans.setpoints(np.asarray(time, np.float64))

    # ---- state machine ------------------------------------------------------------------------------------------------

    def _rest_unseen(self, motion: Motion, free: Bools) -> None:
        """Flights asked for the first time rest where they are, as they are turned, until there is a plan."""
        places = np.flatnonzero(free & ~self._seen)
        if places.size:
            self._plans.rest(places, self._mission.start[places], headings_of(motion.attitude[places]), motion.time[places])
            self._seen[places] = True

    def _execute(self, mask: Bools, motion: Motion) -> None:
        places = np.flatnonzero(mask)
        if not places.size:
            return
        begin, duration, time = self._plans.begin[places], self._plans.duration[places], motion.time[places]
        here, origin = np.moveaxis(self._plans.positions(places, np.stack([time, begin], axis=1)), 1, 0)
        over = time - begin > duration - 1e-2
        near = np.linalg.norm(self.goal[places] - here, axis=1) < self.config.no_replan_within
        moved = np.linalg.norm(origin - here, axis=1) >= self.config.replan_after
        self.stage[places[over]] = Stage.WAIT
        self.stage[places[~over & ~near & moved]] = Stage.REPLAN

    def _watch(self, free: Bools, motion: Motion, maps: Maps) -> None:
        """Look along the plans, and at the goals, twenty times a second."""
        tick = np.floor(motion.time * _WATCH_RATE + _EARLY).astype(np.int64)
        places = np.flatnonzero(free & (tick > self._watched) & (self.stage != Stage.WAIT))
        if not places.size:
            return
        self._watched[places] = tick[places]
        windows = self._windows(places, maps, field=False)
        seen = self._watcher.look(self._plans, places, motion.time[places], self.goal[places], windows)
        executing = self.stage[places] == Stage.EXECUTE
        self.stage[places[executing & (seen.hit >= 0.0)]] = Stage.REPLAN
        for k in np.flatnonzero(seen.goal_near):
            place, view = int(places[k]), self._windows(places[k : k + 1], maps, field=True).view(0)
            better = clearer_goal(self.goal[place], view, self.config.goal_distance)
            if better is not None:
                self.goal[place] = better
            if executing[k]:
                self.stage[place] = Stage.REPLAN

    def _windows(self, places: Ints, maps: Maps, field: bool) -> Windows:
        lower, upper = self._mission.lower[places], self._mission.upper[places]
        return windows_of(maps, places, lower, upper, self.config.maps.resolution, field)

    # ---- planning -----------------------------------------------------------------------------------------------------

    def _replan(self, places: Ints, motion: Motion, maps: Maps) -> Ints:
        """Plan for flights (k,); 1 where it succeeded."""
        time = motion.time[places]
        windows = self._windows(places, maps, field=True)
        problems, yaw = self._starts(places, motion)
        paths = self._search.run(problems, windows)
        self._work["kino_expansions"][places] = [p.expansions for p in paths]
        close = np.linalg.norm(problems["start"][:, :3] - problems["goal"][:, :3], axis=1) < _CLOSE
        good = np.array([p.outcome is not Outcome.NO_PATH for p in paths]) & ~close
        found = self._descend(np.flatnonzero(good), paths, problems, windows)
        for k, spline in found.items():
            place = int(places[k])
            self._work["evaluations"][place] = spline.evaluations
            self._queue.offer(place, self._plan(spline, (yaw[0][k], yaw[1][k], yaw[2][k]), float(time[k])))
        pause = self.config.failed_pause * self._work["kino_expansions"][places]
        self._retry[places] = np.where(good, -np.inf, time + pause)
        self.stage[places] = np.where(good, Stage.EXECUTE, Stage.GENERATE)
        return good.astype(np.int64)

    def _starts(self, places: Ints, motion: Motion) -> tuple[NDArray[Any], tuple[Array, Array, Array]]:
        """Problems of the search, and the state of the yaw, of flights (k,): from the plan, or from the odometry."""
        time = motion.time[places]
        plan, heading = self._plans.state(places, time), self._plans.heading(places, time)
        fresh = self.stage[places] == Stage.GENERATE
        zero = np.zeros(len(places))
        problems = np.zeros(len(places), PROBLEM)
        problems["start"][:, :3] = np.where(fresh[:, None], motion.position[places], plan[0])
        problems["start"][:, 3:] = np.where(fresh[:, None], motion.velocity[places], plan[1])
        problems["acceleration"] = np.where(fresh[:, None], 0.0, plan[2])
        problems["goal"][:, :3] = self.goal[places]
        problems["speed"], problems["most"] = self._mission.speed[places], self._mission.acceleration[places]
        problems["held"] = 1
        measured = (headings_of(motion.attitude[places]), zero, zero)
        yaw, rate, bend = (np.where(fresh, a, b) for a, b in zip(measured, heading, strict=True))
        return problems, (yaw, rate, bend)

    def _descend(self, which: Ints, paths: list[KinoPath], problems: NDArray[Any], windows: Windows) -> dict[int, Descended]:
        """Splines through the paths of problems `which`, optimised and slowed down, by problem."""
        records = self._descent.fresh(len(which))
        for record, k in zip(records, which.tolist(), strict=True):
            path, speed = paths[k], float(problems["speed"][k])
            pieces = min(max(8, int(path.duration / (self.config.spacing / speed))), MOST_POINTS - 3)
            interval = path.duration / pieces
            put_points(record, path.sample(np.arange(pieces + 1) * interval), path.boundary())
            record["window"], record["interval"], record["sweeps"] = k, interval, self.config.sweeps
            record["free_end"] = path.outcome is not Outcome.REACH_END
        records["speed"], records["most"] = problems["speed"][which], problems["most"][which]
        return dict(zip(which.tolist(), self._descent.run(records, windows), strict=True))

    def _plan(self, spline: Descended, yaw: tuple[float, float, float], time: float) -> Plan:
        s = self.config
        heading = yaw_plan(
            spline.control,
            spline.knots,
            yaw,
            ahead=s.yaw_ahead,
            longest=s.yaw_interval,
            smooth=s.yaw_smooth,
            points=s.yaw_points,
        )
        return Plan(spline.control, spline.knots, heading, time)


def headings_of(attitude: Array) -> Array:
    """Headings (k,) [rad] of quaternions (k, 4)."""
    x, y, z, w = np.moveaxis(attitude, -1, 0)
    return np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
