"""One replan of many flights: ways around what is in the way, a spline along each, the smoothest of them, refined."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.fast.descent import Fit, SplineDescent, put_control
from airworthy.pilots.fast.records import MOST_PROBES
from airworthy.pilots.fast.watching import probe
from airworthy.pilots.fast.windows import Windows
from airworthy.pilots.fast.work import Work
from airworthy.pilots.pgo.course import Course, Segment
from airworthy.pilots.pgo.guiding import (
    CollisionRange,
    collision_range,
    guided,
    path_length,
    resampled,
    squared_jerk,
    stretched,
)
from airworthy.pilots.pgo.roadmap import Question, Roadmaps
from airworthy.pilots.pgo.settings import PgoSettings
from airworthy.pilots.planning.bspline import evaluate_uniform

__all__ = ["Job", "Replanned", "Replanner"]

Array = NDArray[np.float64]

_PROBE_STEP = 0.05
"""Between points of a segment that are looked up [s]."""


@dataclass(frozen=True, eq=False)
class Job:
    """What one flight asks."""

    window: int
    """Number of its window."""
    course: Course
    begin: float
    """From when on, on the course's clock [s]."""
    collides: bool
    """The plan in force meets something."""
    speed: float
    acceleration: float
    key: NDArray[np.uint32]
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
        self._work = Work(8)

    def first(self, course: Course) -> tuple[Array, float]:
        """The first segment of a course as a spline: control points (N, 3), interval [s]."""
        _, fit = course.segment(0.0, self.settings.local_length, self.settings.spacing)
        return self._descent.fitted([fit])[0], fit.interval

    def run(self, jobs: list[Job], windows: Windows) -> list[Replanned]:
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

    def _ranges(self, jobs: list[Job], drafts: list[_Draft], windows: Windows) -> list[CollisionRange | str]:
        """Where the drafts of flights that collide are too near to something; "free" of the others."""
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
        windows: Windows,
    ) -> list[_Draft]:
        """The smoothest spline around what is in the way of each flight that collides, where there is a way."""
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

    def _guided(self, owners: list[int], paths: list[Array], fits: list[Fit]) -> list[_Draft]:
        s, drafts = self.settings, []
        for owner, path, fit, control in zip(owners, paths, fits, self._descent.fitted(fits), strict=True):
            guide = resampled(path, len(control) - 2)[2:-2]
            drafts.append(_Draft(owner, guided(control, guide, s.smooth, s.guide), fit.interval))
        return drafts

    def _refine(self, jobs: list[Job], drafts: list[_Draft], results: list[Replanned], windows: Windows) -> None:
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

    def _descend(self, jobs: list[Job], drafts: list[_Draft], results: list[Replanned], windows: Windows) -> None:
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
