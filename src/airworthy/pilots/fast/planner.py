"""Fast-Planner: kinodynamic search, B-spline optimisation in a distance field, time adjustment, many flights at once.

After Zhou, Gao, Wang, Liu and Shen, "Robust and Efficient Quadrotor Trajectory Generation for Fast Autonomous Flight", RA-L
2019, with the state machine of its public configuration. Source: spec/planners section 4.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.fast.descent import Descended, SplineDescent, put_points
from airworthy.pilots.fast.goals import clearer_goal
from airworthy.pilots.fast.records import MOST_POINTS, PROBLEM, Outcome
from airworthy.pilots.fast.search import KinoPath, KinoSearch
from airworthy.pilots.fast.settings import FastSettings
from airworthy.pilots.fast.timed import Stage, TimedPlanner, headings_of
from airworthy.pilots.fast.windows import Windows
from airworthy.pilots.planning.interface import Maps, Mission, Motion

__all__ = ["FastPlanner", "Stage"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

_CLOSE = 0.2
"""A goal nearer than this is not planned for [m]."""


class FastPlanner(TimedPlanner):
    """Plans n flights; `airworthy.pilots.planning.interface.Planner`.

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
        """As published, but for maps that are inflated for a body of this radius [m]."""
        plain = FastSettings()
        return cls(replace(plain, maps=plain.maps.for_body(radius)))

    def reset(self, mission: Mission) -> None:
        """Begin n flights."""
        self._begin_flights(mission)
        self.goal = np.array(mission.goal, np.float64)

    def update(self, motion: Motion, maps: Maps | None, active: Bools) -> dict[str, Any]:
        """Think, at 100 Hz; see the protocol. Work: "kino_expansions" of the search and "evaluations" of the cost."""
        assert maps is not None
        free = self._free(motion, active)
        self._work = {"kino_expansions": np.zeros(len(free)), "evaluations": np.zeros(len(free))}
        replans = np.zeros(len(free), np.int64)
        asks = (self.stage == Stage.GENERATE) | (self.stage == Stage.REPLAN)
        places = np.flatnonzero(free & asks & (motion.time >= self._retry))
        self._execute(free & (self.stage == Stage.EXECUTE), motion)
        self._watch(free, motion, maps)
        if places.size:
            replans[places] = self._replan(places, motion, maps)
        return {"work": self._work, "replans": replans, "state": self.stage.copy()}

    # ---- state machine ------------------------------------------------------------------------------------------------

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
        places = self._watchful(free & (self.stage != Stage.WAIT), motion)
        if not places.size:
            return
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
            self._queue.offer(
                place, self._turned(spline.control, spline.knots, (yaw[0][k], yaw[1][k], yaw[2][k]), float(time[k]))
            )
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
