"""Fast-Planner: kinodynamic search, B-spline optimisation in a distance field, time adjustment, many flights at once.

After Zhou, Gao, Wang, Liu and Shen, "Robust and Efficient Quadrotor Trajectory Generation for Fast Autonomous Flight", RA-L
2019, with the state machine of its public configuration. Source: spec/planners section 4.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayInt
from airworthy.planners.common.interface import Maps, Mission, Motion
from airworthy.planners.fast.costs import Descended, SplineDescent, put_points
from airworthy.planners.fast.records import MOST_POINTS, PROBLEM, Outcome
from airworthy.planners.fast.search import KinoPath, KinoSearch
from airworthy.planners.fast.settings import FastSettings
from airworthy.planners.fast.timed import PlannerStage, TimedPlanner, headings_of
from airworthy.planners.fast.windows import MapWindows, WindowTwin

__all__ = ["FastPlanner", "PlannerStage", "clearer_goal"]

# -----------------------------------------------------------------------------------------------------------------------------
# Goals that turn out to be inside something, or next to it, are moved. Source: spec/planners section 4.6.


def candidates(goal: Array) -> Array:
    """Return points around a goal (3,): radii 0.5 to 2.5 m, every 30 degrees, three heights; (180, 3)."""
    angles = np.radians(np.arange(-90.0, 270.0, 30.0))
    offsets = [
        (r * np.cos(a), r * np.sin(a), z) for r in (0.5, 1.0, 1.5, 2.0, 2.5) for a in angles.tolist() for z in (0.3, 0.0, -0.3)
    ]
    return goal + np.array(offsets)


def clearer_goal(goal: Array, view: WindowTwin, least: float) -> Array | None:
    """Return the candidate in the box that is farthest from everything, if that is farther than `least` [m]; the first of
    equals.

    Args:
        goal: (3,) [m], world.
        view: Distances around it.
        least: Distance that the result must exceed [m].
    """
    points = candidates(goal)
    points = points[((points >= view.lower) & (points <= view.upper)).all(1)]
    if not len(points):
        return None
    distance = view.coarse(points)
    best = int(np.argmax(distance))
    return points[best] if distance[best] > least else None


# -----------------------------------------------------------------------------------------------------------------------------

# Ours, after EGO-Planner's "give up if < 0.2 m" (spec/planners 3.3).
_CLOSE = 0.2
"""A goal nearer than this is not planned for [m]."""


class FastPlanner(TimedPlanner):
    """Plans n flights; `airworthy.planners.common.interface.Planner`.

    Args:
        settings: None: those of the public configuration.
    """

    name = "fast"

    def __init__(self, settings: FastSettings | None = None):
        s = self.config = settings or FastSettings()
        self._search = KinoSearch(s.search)
        self._descent = SplineDescent(s.smooth, s.distance, s.feasible, s.end, s.clearance, s.evaluations, s.step_tolerance)
        super().__init__(s, s.goal_distance)

    @classmethod
    def for_body(cls, radius: float) -> FastPlanner:
        """Return a planner as published, but for maps that are inflated for a body of this radius [m]."""
        plain = FastSettings()
        return cls(replace(plain, maps=plain.maps.for_body(radius)))

    def reset(self, mission: Mission) -> None:
        """Begin n flights."""
        self._begin_flights(mission)
        self.goal = np.array(mission.goal, np.float64)

    def update(self, motion: Motion, maps: Maps | None, active: ArrayBool) -> dict[str, Any]:
        """Think, at 100 Hz; see the protocol. Work: "kino_expansions" of the search and "evaluations" of the cost.

        Args:
            motion: Odometry of all flights (n, ...), world.
            maps: Of the flights, with distances.
            active: Flights that are still flown, (n,).
        """
        assert maps is not None
        free = self._free(motion, active)
        self._work = {"kino_expansions": np.zeros(len(free)), "evaluations": np.zeros(len(free))}
        replans = np.zeros(len(free), np.int64)
        asks = (self.stage == PlannerStage.GENERATE) | (self.stage == PlannerStage.REPLAN)
        flights = np.flatnonzero(free & asks & (motion.time >= self._retry))
        self._execute(free & (self.stage == PlannerStage.EXECUTE), motion)
        self._watch(free, motion, maps)
        if flights.size:
            replans[flights] = self._replan(flights, motion, maps)
        return {"work": self._work, "replans": replans, "state": self.stage.copy()}

    # ---- state machine ------------------------------------------------------------------------------------------------

    def _execute(self, mask: ArrayBool, motion: Motion) -> None:
        flights = np.flatnonzero(mask)
        if not flights.size:
            return
        begin, duration, time = self._plans.begin[flights], self._plans.duration[flights], motion.time[flights]
        here, origin = np.moveaxis(self._plans.positions(flights, np.stack([time, begin], axis=1)), 1, 0)
        over = time - begin > duration - 1e-2
        near = np.linalg.norm(self.goal[flights] - here, axis=1) < self.config.no_replan_within
        moved = np.linalg.norm(origin - here, axis=1) >= self.config.replan_after
        self.stage[flights[over]] = PlannerStage.WAIT
        self.stage[flights[~over & ~near & moved]] = PlannerStage.REPLAN

    def _watch(self, free: ArrayBool, motion: Motion, maps: Maps) -> None:
        """Look along the plans, and at the goals, twenty times a second."""
        flights = self._watchful(free & (self.stage != PlannerStage.WAIT), motion)
        if not flights.size:
            return
        windows = self._windows(flights, maps, field=False)
        watched = self._watcher.check(self._plans, flights, motion.time[flights], self.goal[flights], windows)
        executing = self.stage[flights] == PlannerStage.EXECUTE
        self.stage[flights[executing & (watched.hit >= 0.0)]] = PlannerStage.REPLAN
        for k in np.flatnonzero(watched.goal_near):
            flight, view = int(flights[k]), self._windows(flights[k : k + 1], maps, field=True).view(0)
            better = clearer_goal(self.goal[flight], view, self.config.goal_distance)
            if better is not None:
                self.goal[flight] = better
            if executing[k]:
                self.stage[flight] = PlannerStage.REPLAN

    # ---- planning -----------------------------------------------------------------------------------------------------

    def _replan(self, flights: ArrayInt, motion: Motion, maps: Maps) -> ArrayInt:
        """Plan for flights (k,); 1 where it succeeded."""
        time = motion.time[flights]
        windows = self._windows(flights, maps, field=True)
        problems, yaw = self._starts(flights, motion)
        paths = self._search.run(problems, windows)
        self._work["kino_expansions"][flights] = [p.expansions for p in paths]
        close = np.linalg.norm(problems["start"][:, :3] - problems["goal"][:, :3], axis=1) < _CLOSE
        good = np.array([p.outcome is not Outcome.NO_PATH for p in paths]) & ~close
        found = self._descend(np.flatnonzero(good), paths, problems, windows)
        for k, spline in found.items():
            flight = int(flights[k])
            self._work["evaluations"][flight] = spline.evaluations
            self._queue.offer(
                flight, self._turned(spline.control, spline.knots, (yaw[0][k], yaw[1][k], yaw[2][k]), float(time[k]))
            )
        pause = self.config.failed_pause * self._work["kino_expansions"][flights]
        self._retry[flights] = np.where(good, -np.inf, time + pause)
        self.stage[flights] = np.where(good, PlannerStage.EXECUTE, PlannerStage.GENERATE)
        return good.astype(np.int64)

    def _starts(self, flights: ArrayInt, motion: Motion) -> tuple[ArrayAny, tuple[Array, Array, Array]]:
        """Problems of the search, and the state of the yaw, of flights (k,): from the plan, or from the odometry."""
        time = motion.time[flights]
        plan, heading = self._plans.state(flights, time), self._plans.heading(flights, time)
        fresh = self.stage[flights] == PlannerStage.GENERATE
        zero = np.zeros(len(flights))
        problems = np.zeros(len(flights), PROBLEM)
        problems["start"][:, :3] = np.where(fresh[:, None], motion.position[flights], plan[0])
        problems["start"][:, 3:] = np.where(fresh[:, None], motion.velocity[flights], plan[1])
        problems["acceleration"] = np.where(fresh[:, None], 0.0, plan[2])
        problems["goal"][:, :3] = self.goal[flights]
        problems["speed"], problems["most"] = self._mission.speed[flights], self._mission.acceleration[flights]
        problems["held"] = 1
        measured = (headings_of(motion.attitude[flights]), zero, zero)
        yaw, rate, bend = (np.where(fresh, a, b) for a, b in zip(measured, heading, strict=True))
        return problems, (yaw, rate, bend)

    def _descend(self, which: ArrayInt, paths: list[KinoPath], problems: ArrayAny, windows: MapWindows) -> dict[int, Descended]:
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
