"""PGO: topological paths, optimisation guided by them, refinement; many flights at once.

After Zhou, Gao, Pan and Shen, "Robust Real-time UAV Replanning Using Guided Gradient-based Optimization and Topological Paths",
ICRA 2020, with the state machine of its public configuration. Source: spec/planners section 5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayU32
from airworthy.core.random import flight_key
from airworthy.planners.common.bspline import evaluate_uniform, uniform_knots
from airworthy.planners.common.interface import Maps, Mission, Motion
from airworthy.planners.common.reference import References
from airworthy.planners.fast.costs import FitPoints, SplineDescent, put_control
from airworthy.planners.fast.records import MOST_PROBES
from airworthy.planners.fast.timed import PlannerStage, TimedPlanner, headings_of, probe
from airworthy.planners.fast.windows import MapWindows
from airworthy.planners.fast.work import PlannerWork
from airworthy.planners.pgo.records import (
    CollisionRange,
    GuidePath,
    PgoSettings,
    Segment,
    collision_range,
    guided,
    path_length,
    resampled,
    squared_jerk,
    stretched,
)
from airworthy.planners.pgo.roadmap import Question, Roadmaps

__all__ = ["Job", "PgoPlanner", "PlannerStage", "Replanned", "Replanner"]

# -----------------------------------------------------------------------------------------------------------------------------
# One replan of many flights: ways around what is in the way, a spline along each, the smoothest of them, refined.

# Source: spec/planners section 5, step 2: sample the segment every 0.05 s.
_PROBE_STEP = 0.05
"""Between points of a segment that are looked up [s]."""


@dataclass(frozen=True, eq=False)
class Job:
    """What one flight asks."""

    window: int
    """Number of its window."""
    course: GuidePath
    begin: float
    """From when on, on the course's clock [s]."""
    collides: bool
    """The plan in force meets something."""
    speed: float
    acceleration: float
    key: ArrayU32
    """Of its random numbers."""
    attempt: int
    """Roadmaps that it had before."""


@dataclass(eq=False)
class Replanned:
    """What came of it."""

    control: Array | None = None
    """(N, 3); None: there is no way."""
    interval: float = 1.0
    later: float = 0.0
    """How much longer than the segment it takes [s]."""
    samples: int = 0
    evaluations: int = 0


@dataclass(eq=False)
class _Draft:
    """A spline that may be flown."""

    job: int
    control: Array
    interval: float


class Replanner:
    """Replans of many flights.

    Args:
        settings: See `PgoSettings`.
    """

    def __init__(self, settings: PgoSettings):
        s = self.settings = settings
        self._descent = SplineDescent(s.smooth, s.distance, s.feasible, 0.0, s.clearance, s.evaluations, s.step_tolerance)
        self._roadmaps = Roadmaps(s.roadmap)
        self._work = PlannerWork(8)

    def first(self, course: GuidePath) -> tuple[Array, float]:
        """Return the first segment of a course as a spline: control points (N, 3), interval [s]."""
        _, fit = course.segment(0.0, self.settings.local_length, self.settings.spacing)
        return self._descent.fitted([fit])[0], fit.interval

    def run(self, jobs: list[Job], windows: MapWindows) -> list[Replanned]:
        """Plan for every job."""
        s = self.settings
        results = [Replanned() for _ in jobs]
        parts = [j.course.segment(j.begin, s.local_length, s.spacing) for j in jobs]
        fits = [fit for _, fit in parts]
        drafts = [_Draft(k, c, f.interval) for k, (c, f) in enumerate(zip(self._descent.fitted(fits), fits, strict=True))]
        ranges = self._ranges(jobs, drafts, windows)
        # What ends inside something is left as it is: what is behind it is not known yet.
        kept = [d for d, r in zip(drafts, ranges, strict=True) if r == "ends inside"]
        refined = [d for d, r in zip(drafts, ranges, strict=True) if r == "free"]
        refined += self._detours(jobs, [p for p, _ in parts], ranges, results, windows)
        for draft in kept:
            results[draft.job].control, results[draft.job].interval = draft.control, draft.interval
        self._refine(jobs, refined, results, windows)
        return results

    def _ranges(self, jobs: list[Job], drafts: list[_Draft], windows: MapWindows) -> list[CollisionRange | str]:
        """Return where the drafts of flights that collide are too near to something; "free" of the others."""
        asked = [d for d in drafts if jobs[d.job].collides]
        times = [_probe_times((len(d.control) - 3) * d.interval) for d in asked]
        points = [_on(d, t) for d, t in zip(asked, times, strict=True)]
        found: list[CollisionRange | str] = ["free"] * len(drafts)
        distances = probe(self._work, [jobs[d.job].window for d in asked], points, windows)
        for draft, time, distance in zip(asked, times, distances, strict=True):
            safe = distance >= self.settings.roadmap.clearance
            found[draft.job] = collision_range(draft.control, draft.interval, time, safe)
        return found

    def _detours(
        self,
        jobs: list[Job],
        parts: list[Segment],
        ranges: list[CollisionRange | str],
        results: list[Replanned],
        windows: MapWindows,
    ) -> list[_Draft]:
        """Return the smoothest spline around what is in the way of each flight that collides, where there is a way."""
        which = [k for k, r in enumerate(ranges) if isinstance(r, CollisionRange)]
        questions = [_question(jobs[k], r) for k, r in enumerate(ranges) if isinstance(r, CollisionRange)]
        paths, fits, owners = [], [], []
        for k, found in zip(which, self._roadmaps.run(questions, windows), strict=True):
            results[k].samples = self.settings.roadmap.samples
            for path in found.paths:
                paths.append(path)
                owners.append(k)
                fits.append(jobs[k].course.points(parts[k], int(path_length(path) / self.settings.spacing)))
        drafts = self._guided(owners, paths, fits)
        self._descend(jobs, drafts, results, windows)
        best: dict[int, _Draft] = {}
        for draft in drafts:
            now = best.get(draft.job)
            if now is None or squared_jerk(draft.control, draft.interval) < squared_jerk(now.control, now.interval):
                best[draft.job] = draft
        return list(best.values())

    def _guided(self, owners: list[int], paths: list[Array], fits: list[FitPoints]) -> list[_Draft]:
        s, drafts = self.settings, []
        for owner, path, fit, control in zip(owners, paths, fits, self._descent.fitted(fits), strict=True):
            guide = resampled(path, len(control) - 2)[2:-2]
            drafts.append(_Draft(owner, guided(control, guide, s.smooth, s.guide), fit.interval))
        return drafts

    def _refine(self, jobs: list[Job], drafts: list[_Draft], results: list[Replanned], windows: MapWindows) -> None:
        """Bring splines near to their limits, and optimise once more."""
        fits = []
        for draft in drafts:
            job = jobs[draft.job]
            fit, later = stretched(draft.control, draft.interval, job.speed, job.acceleration, self.settings.slower)
            fits.append(fit)
            draft.interval, results[draft.job].later = fit.interval, later
        for draft, control in zip(drafts, self._descent.fitted(fits), strict=True):
            draft.control = control
        self._descend(jobs, drafts, results, windows)
        for draft in drafts:
            results[draft.job].control, results[draft.job].interval = draft.control, draft.interval

    def _descend(self, jobs: list[Job], drafts: list[_Draft], results: list[Replanned], windows: MapWindows) -> None:
        """Optimise drafts in place."""
        records = self._descent.fresh(len(drafts))
        for record, draft in zip(records, drafts, strict=True):
            job = jobs[draft.job]
            put_control(record, draft.control)
            record["window"], record["interval"] = job.window, draft.interval
            record["speed"], record["most"] = job.speed, job.acceleration
        for draft, done in zip(drafts, self._descent.run(records, windows), strict=True):
            draft.control = done.control
            results[draft.job].evaluations += done.evaluations


def _question(job: Job, found: CollisionRange) -> Question:
    return Question(job.window, found.head[-1], found.tail[0], found.head, found.tail, job.key, job.attempt)


def _probe_times(duration: float) -> Array:
    step = max(_PROBE_STEP, duration / (MOST_PROBES - 2))
    return np.arange(0.0, duration + 1e-4, step)


def _on(draft: _Draft, times: Array) -> Array:
    return evaluate_uniform(draft.control[None], np.array([draft.interval]), times[None])[0]


# -----------------------------------------------------------------------------------------------------------------------------

# Source: spec/planners section 5, step 1: first and last segment at least 1 s.
_LEAST_TIME = 1.0
"""Of the first and the last piece of a course [s]."""


class PgoPlanner(TimedPlanner):
    """Plans n flights; `airworthy.planners.common.interface.Planner`.

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
        """Return a planner as published, but for maps that are inflated for a body of this radius [m]."""
        plain = PgoSettings()
        return cls(replace(plain, maps=plain.maps.for_body(radius)))

    def reset(self, mission: Mission) -> None:
        """Begin n flights."""
        n = len(mission.start)
        self._begin_flights(mission)
        self._references = References(n)
        self._courses: list[GuidePath | None] = [None] * n
        self._keys = flight_key(mission.seed, np.asarray(mission.flight))
        self._set_out, self._collides, self._attempts = np.zeros(n), np.zeros(n, bool), np.zeros(n, np.int64)

    def update(self, motion: Motion, maps: Maps | None, active: ArrayBool) -> dict[str, Any]:
        """Think, at 100 Hz; see the protocol. Work: "samples" of roadmaps and "evaluations" of the cost.

        Args:
            motion: Odometry of all flights (n, ...), world.
            maps: Of the flights, with distances.
            active: Flights that are still flown, (n,).
        """
        assert maps is not None
        n = len(active)
        free = self._free(motion, active)
        work, replans = {"samples": np.zeros(n), "evaluations": np.zeros(n)}, np.zeros(n, np.int64)
        ready = free & (motion.time >= self._retry)
        begins, again = (np.flatnonzero(ready & (self.stage == s)) for s in (PlannerStage.GENERATE, PlannerStage.REPLAN))
        self._execute(free & (self.stage == PlannerStage.EXECUTE), motion)
        # A plan that is flown on because no other is found is watched as well: it stops before what it meets.
        self._watch(free & ((self.stage == PlannerStage.EXECUTE) | (self.stage == PlannerStage.REPLAN)), motion, maps)
        again = again[self.stage[again] == PlannerStage.REPLAN]
        for flight in begins.tolist():
            self._begin(flight, motion)
            replans[flight] = 1
        if again.size:
            replans[again] = self._replan(again, motion, maps, work)
        return {"work": work, "replans": replans, "state": self.stage.copy()}

    # ---- state machine ------------------------------------------------------------------------------------------------

    def _execute(self, mask: ArrayBool, motion: Motion) -> None:
        for flight in np.flatnonzero(mask).tolist():
            course, time = self._courses[flight], motion.time[flight]
            assert course is not None
            if time - self._set_out[flight] > course.duration - 1e-2:
                self.stage[flight] = PlannerStage.WAIT
            elif time - self._plans.begin[flight] > self.config.replan_after and (
                not course.reaches_goal or self._far_from_end(flight, time)
            ):
                self.stage[flight] = PlannerStage.REPLAN

    def _far_from_end(self, flight: int, time: float) -> bool:
        both = np.array([[time, self._plans.begin[flight] + self._plans.duration[flight]]])
        here, end = self._plans.positions(np.array([flight]), both)[0]
        return bool(np.linalg.norm(here - end) > self.config.replan_distance)

    def _watch(self, mask: ArrayBool, motion: Motion, maps: Maps) -> None:
        """Look along the plans twenty times a second. What is met close ahead stops the vehicle, and its mission."""
        flights = self._watchful(mask, motion)
        if not flights.size:
            return
        goal = self._mission.goal[flights]
        watched = self._watcher.check(self._plans, flights, motion.time[flights], goal, self._windows(flights, maps, False))
        later = flights[(watched.hit >= 0.0) & (watched.distance > self.config.safety_stop)]
        self._collides[later] = True
        self.stage[later] = PlannerStage.REPLAN
        near = flights[(watched.hit >= 0.0) & (watched.distance <= self.config.safety_stop)]
        if near.size:
            here, yaw = self._plans.state(near, motion.time[near])[0], self._plans.heading(near, motion.time[near])[0]
            self._plans.rest(near, here, yaw, motion.time[near])
            self.stage[near] = PlannerStage.GENERATE if self.config.resume else PlannerStage.WAIT

    # ---- planning -----------------------------------------------------------------------------------------------------

    def _begin(self, flight: int, motion: Motion) -> None:
        """Set out for the goal: straight, whatever is in the way."""
        start, speed = motion.position[flight], float(self._mission.speed[flight])
        self._references.aim(flight, start, self._mission.goal[flight], speed, least=_LEAST_TIME)
        course = self._courses[flight] = GuidePath(self._references, flight)
        self._set_out[flight] = motion.time[flight]
        self._collides[flight] = False
        control, interval = self._replanner.first(course)
        course.replace(control, interval, 0.0, 0.0)
        self._offer(flight, control, interval, float(motion.time[flight]), self._headings(flight, motion, measured=True))
        self.stage[flight] = PlannerStage.EXECUTE

    def _replan(self, flights: ArrayInt, motion: Motion, maps: Maps, work: dict[str, Array]) -> ArrayInt:
        """Plan again for flights (k,); 1 where it succeeded."""
        jobs = [self._job(k, flight, motion) for k, flight in enumerate(flights.tolist())]
        found = self._replanner.run(jobs, self._windows(flights, maps, field=True))
        done = np.zeros(len(flights), np.int64)
        for k, (flight, job, result) in enumerate(zip(flights.tolist(), jobs, found, strict=True)):
            work["samples"][flight], work["evaluations"][flight] = result.samples, result.evaluations
            self._attempts[flight] += result.samples > 0
            if result.control is None:
                self._retry[flight] = motion.time[flight] + self.config.failed_pause
                continue
            job.course.replace(result.control, result.interval, job.begin, result.later)
            yaw = self._headings(flight, motion, measured=False)
            self._offer(flight, result.control, result.interval, float(motion.time[flight]), yaw)
            self.stage[flight], self._collides[flight], done[k] = PlannerStage.EXECUTE, False, 1
        return done

    def _job(self, window: int, flight: int, motion: Motion) -> Job:
        course, m = self._courses[flight], self._mission
        assert course is not None
        begin = min(float(motion.time[flight] - self._set_out[flight]), course.duration - 1e-2)
        limits = float(m.speed[flight]), float(m.acceleration[flight])
        collides = bool(self._collides[flight])
        return Job(window, course, begin, collides, limits[0], limits[1], self._keys[flight], int(self._attempts[flight]))

    def _headings(self, flight: int, motion: Motion, measured: bool) -> tuple[float, float, float]:
        at = np.array([flight])
        if measured:
            return float(headings_of(motion.attitude[at])[0]), 0.0, 0.0
        yaw, rate, bend = self._plans.heading(at, motion.time[at])
        return float(yaw[0]), float(rate[0]), float(bend[0])

    def _offer(self, flight: int, control: Array, interval: float, time: float, yaw: tuple[float, float, float]) -> None:
        knots = uniform_knots(len(control), interval)[0]
        self._queue.offer(flight, self._turned(control, knots, yaw, time))
