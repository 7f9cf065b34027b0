"""PGO: topological paths, optimisation guided by them, refinement; many flights at once.

After Zhou, Gao, Pan and Shen, "Robust Real-time UAV Replanning Using Guided Gradient-based Optimization and Topological Paths",
ICRA 2020, with the state machine of its public configuration. Source: spec/planners section 5.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.random import flight_key
from airworthy.pilots.fast.timed import Stage, TimedPlanner, headings_of
from airworthy.pilots.pgo.course import Course
from airworthy.pilots.pgo.replanning import Job, Replanner
from airworthy.pilots.pgo.settings import PgoSettings
from airworthy.pilots.planning.bspline import uniform_knots
from airworthy.pilots.planning.interface import Maps, Mission, Motion
from airworthy.pilots.planning.reference import References

__all__ = ["PgoPlanner", "Stage"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

_LEAST_TIME = 1.0
"""Of the first and the last piece of a course [s]."""


class PgoPlanner(TimedPlanner):
    """Plans n flights; `airworthy.pilots.planning.interface.Planner`.

    Args:
        settings: None: those of the public configuration.
    """

    name = "pgo"

    def __init__(self, settings: PgoSettings | None = None):
        self.config = settings or PgoSettings()
        self._replanner = Replanner(self.config)
        super().__init__(self.config, 0.0)

    @classmethod
    def for_body(cls, radius: float) -> PgoPlanner:
        """As published, but for maps that are inflated for a body of this radius [m]."""
        plain = PgoSettings()
        return cls(replace(plain, maps=plain.maps.for_body(radius)))

    def reset(self, mission: Mission) -> None:
        """Begin n flights."""
        n = len(mission.start)
        self._begin_flights(mission)
        self._references = References(n)
        self._courses: list[Course | None] = [None] * n
        self._keys = flight_key(mission.seed, np.asarray(mission.flight))
        self._set_out, self._collides, self._attempts = np.zeros(n), np.zeros(n, bool), np.zeros(n, np.int64)

    def update(self, motion: Motion, maps: Maps | None, active: Bools) -> dict[str, Any]:
        """Think, at 100 Hz; see the protocol. Work: "samples" of roadmaps and "evaluations" of the cost."""
        assert maps is not None
        n = len(active)
        free = self._free(motion, active)
        work, replans = {"samples": np.zeros(n), "evaluations": np.zeros(n)}, np.zeros(n, np.int64)
        ready = free & (motion.time >= self._retry)
        begins, again = (np.flatnonzero(ready & (self.stage == s)) for s in (Stage.GENERATE, Stage.REPLAN))
        self._execute(free & (self.stage == Stage.EXECUTE), motion)
        # A plan that is flown on because no other is found is watched as well: it stops before what it meets.
        self._watch(free & ((self.stage == Stage.EXECUTE) | (self.stage == Stage.REPLAN)), motion, maps)
        again = again[self.stage[again] == Stage.REPLAN]
        for place in begins.tolist():
            self._begin(place, motion)
            replans[place] = 1
        if again.size:
            replans[again] = self._replan(again, motion, maps, work)
        return {"work": work, "replans": replans, "state": self.stage.copy()}

    # ---- state machine ------------------------------------------------------------------------------------------------

    def _execute(self, mask: Bools, motion: Motion) -> None:
        for place in np.flatnonzero(mask).tolist():
            course, time = self._courses[place], motion.time[place]
            assert course is not None
            if time - self._set_out[place] > course.duration - 1e-2:
                self.stage[place] = Stage.WAIT
            elif time - self._plans.begin[place] > self.config.replan_after and (
                not course.reaches_goal or self._far_from_end(place, time)
            ):
                self.stage[place] = Stage.REPLAN

    def _far_from_end(self, place: int, time: float) -> bool:
        both = np.array([[time, self._plans.begin[place] + self._plans.duration[place]]])
        here, end = self._plans.positions(np.array([place]), both)[0]
        return bool(np.linalg.norm(here - end) > self.config.replan_distance)

    def _watch(self, mask: Bools, motion: Motion, maps: Maps) -> None:
        """Look along the plans twenty times a second. What is met close ahead stops the vehicle, and its mission."""
        places = self._watchful(mask, motion)
        if not places.size:
            return
        goal = self._mission.goal[places]
        seen = self._watcher.look(self._plans, places, motion.time[places], goal, self._windows(places, maps, False))
        later = places[(seen.hit >= 0.0) & (seen.distance > self.config.safety_stop)]
        self._collides[later] = True
        self.stage[later] = Stage.REPLAN
        near = places[(seen.hit >= 0.0) & (seen.distance <= self.config.safety_stop)]
        if near.size:
            here, yaw = self._plans.state(near, motion.time[near])[0], self._plans.heading(near, motion.time[near])[0]
            self._plans.rest(near, here, yaw, motion.time[near])
            self.stage[near] = Stage.GENERATE if self.config.resume else Stage.WAIT

    # ---- planning -----------------------------------------------------------------------------------------------------

    def _begin(self, place: int, motion: Motion) -> None:
        """Set out for the goal: straight, whatever is in the way."""
        start, speed = motion.position[place], float(self._mission.speed[place])
        self._references.aim(place, start, self._mission.goal[place], speed, least=_LEAST_TIME)
        course = self._courses[place] = Course(self._references, place)
        self._set_out[place] = motion.time[place]
        self._collides[place] = False
        control, interval = self._replanner.first(course)
        course.replace(control, interval, 0.0, 0.0)
        self._offer(place, control, interval, float(motion.time[place]), self._headings(place, motion, measured=True))
        self.stage[place] = Stage.EXECUTE

    def _replan(self, places: Ints, motion: Motion, maps: Maps, work: dict[str, Array]) -> Ints:
        """Plan again for flights (k,); 1 where it succeeded."""
        jobs = [self._job(k, place, motion) for k, place in enumerate(places.tolist())]
        found = self._replanner.run(jobs, self._windows(places, maps, field=True))
        done = np.zeros(len(places), np.int64)
        for k, (place, job, result) in enumerate(zip(places.tolist(), jobs, found, strict=True)):
            work["samples"][place], work["evaluations"][place] = result.samples, result.evaluations
            self._attempts[place] += result.samples > 0
            if result.control is None:
                self._retry[place] = motion.time[place] + self.config.failed_pause
                continue
            job.course.replace(result.control, result.interval, job.begin, result.later)
            yaw = self._headings(place, motion, measured=False)
            self._offer(place, result.control, result.interval, float(motion.time[place]), yaw)
            self.stage[place], self._collides[place], done[k] = Stage.EXECUTE, False, 1
        return done

    def _job(self, window: int, place: int, motion: Motion) -> Job:
        course, m = self._courses[place], self._mission
        assert course is not None
        begin = min(float(motion.time[place] - self._set_out[place]), course.duration - 1e-2)
        limits = float(m.speed[place]), float(m.acceleration[place])
        collides = bool(self._collides[place])
        return Job(window, course, begin, collides, limits[0], limits[1], self._keys[place], int(self._attempts[place]))

    def _headings(self, place: int, motion: Motion, measured: bool) -> tuple[float, float, float]:
        at = np.array([place])
        if measured:
            return float(headings_of(motion.attitude[at])[0]), 0.0, 0.0
        yaw, rate, bend = self._plans.heading(at, motion.time[at])
        return float(yaw[0]), float(rate[0]), float(bend[0])

    def _offer(self, place: int, control: Array, interval: float, time: float, yaw: tuple[float, float, float]) -> None:
        knots = uniform_knots(len(control), interval)[0]
        self._queue.offer(place, self._turned(control, knots, yaw, time))
