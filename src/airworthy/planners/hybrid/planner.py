"""A learnt policy proposes, the planner of known free space certifies.

Where a proposal is there, trajectories to where it leads are certified first, as the planner certifies its own: every ball of
the body's radius, to the rest behind the trajectory, in space that was seen free. The first that is certified is flown; where
none is, the planner's own. So a policy that errs costs time, and touches nothing that the planner would not have touched.

A certificate says that nothing is met, not that anything is reached: a proposal is only flown if it ends beside the planner's
route and, by the planner's reckoning, loses less than half of its time against the planner's best.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import Bound, check_fields
from airworthy.planners.common.interface import Mission, Motion
from airworthy.planners.hybrid.proposers import RATE, TIMES, Proposer
from airworthy.planners.hybrid.sight import MapsAndImages
from airworthy.planners.known_free.candidates import StoppingCandidates, route_speeds, time_left
from airworthy.planners.known_free.config import KnownFreeSettings
from airworthy.planners.known_free.limit_proofs import parts_keep_limits
from airworthy.planners.known_free.limits import MotionLimits
from airworthy.planners.known_free.motion import StoppingTrajectory, quintics, stopping
from airworthy.planners.known_free.planner import KnownFreePlanner

__all__ = ["COUNTS", "HybridPlanner", "HybridSettings", "proposed_trajectories"]

COUNTS = ("proposals", "proposals_flown", "plans_flown")
"""Of a flight's work: decisions in which a proposal was there, those in which one was taken, those in which a plan was."""
_EARLY = 0.05
# Ours: places of a proposal that are flown to, shares of its speed there, and of the time that it takes.
_ENDS = (9, 4)
_SPEEDS = (1.0, 0.6, 0.3)
_STRETCH = (1.0, 1.4, 2.0, 3.0)
_SHORTEST = 0.2
"""A proposal that is over so soon is none [s]."""


@dataclass(frozen=True)
class HybridSettings:
    """When a certified proposal is flown, all ours."""

    beside: Annotated[float, Bound(0.0, 100.0, "m")] = 1.5
    """It ends no farther from the planner's route."""
    loss: Annotated[float, Bound(0.0, 1e3)] = 0.5
    """Share of the time that a proposal is for by which the end of what is free may be reached later than by the planner's best
    guess of its own, or by what is flown: who stands loses all of it, and might stand for ever."""
    near_goal: Annotated[float, Bound(0.0, 100.0, "m")] = 2.0
    """Nearer to the goal the planner flies alone: policies did not learn to stop."""

    def __post_init__(self) -> None:
        check_fields(self, "HybridSettings.")


class HybridPlanner(KnownFreePlanner):
    """Plans n flights; `airworthy.planners.common.interface.Planner`.

    Args:
        proposer: Proposes.
        settings: Of the planner; None: its own.
        options: When a proposal is flown; None: as usual.
    """

    name = "hybrid"

    def __init__(self, proposer: Proposer, settings: KnownFreeSettings | None = None, options: HybridSettings | None = None):
        super().__init__(settings)
        self.proposer, self.options = proposer, options or HybridSettings()
        self._at: tuple[Array, Array, int] | None = None

    @classmethod
    def for_body(
        cls, radius: float, proposer: Proposer | None = None, *, settings: KnownFreeSettings | None = None
    ) -> HybridPlanner:
        """Return a planner for a body of this radius [m].

        Args:
            radius: [m]
            proposer: Proposes.
            settings: All else; None: the defaults.

        Raises:
            AirworthyError: Nobody proposes.
        """
        if proposer is None:
            raise AirworthyError("A hybrid needs whom it is to certify: name a folder, hybrid:FOLDER, or give `proposer`.")
        return cls(proposer, replace(settings or KnownFreeSettings(), body=radius))

    def maps_for(self, mission: Mission, scenes: Any = None) -> MapsAndImages:
        """Return what its camera fills: local maps, and images as they come.

        Args:
            mission: Of the n flights.
            scenes: Not asked: it knows nothing of them.
        """
        return MapsAndImages(self.settings, mission)

    def reset(self, mission: Mission) -> None:
        """Begin n flights."""
        super().reset(mission)
        self.proposer.reset(mission)
        count = len(mission.start)
        self._points: list[Array | None] = [None] * count
        self._made, self._tick = np.full(count, -np.inf), np.full(count, -1, np.int64)
        self.counts = {name: np.zeros(count, np.int64) for name in COUNTS}
        """By flight, see `COUNTS`."""

    def update(self, motion: Motion, maps: Any, active: ArrayBool) -> dict[str, Any]:
        """Let the network propose where an image is due, then think as the planner does.

        Work: the planner's, the network's inferences, and `COUNTS`.

        Args:
            motion: Odometry of all flights (n, ...), world.
            maps: From `maps_for`.
            active: Flights that are still flown, (n,).

        Raises:
            AirworthyError: It was given maps without images.
        """
        if not hasattr(maps, "images") or not hasattr(maps, "seen"):
            raise AirworthyError(
                f"A hybrid sees maps and images and was given {type(maps).__name__}: give PlannerPilot(...,"
                " maps=planner.maps_for(mission))."
            )
        due = self._propose(motion, maps, active)
        before = {name: count.copy() for name, count in self.counts.items()}
        report = super().update(motion, maps, active)
        counted = {name: (count - before[name]).astype(np.float64) for name, count in self.counts.items()}
        report["work"] = {**report["work"], self.proposer.work: due.astype(np.float64), **counted}
        return report

    def _propose(self, motion: Motion, maps: Any, active: ArrayBool) -> ArrayBool:
        self.proposer.update(motion)
        tick = np.floor(motion.time * RATE + _EARLY).astype(np.int64)
        due = active & (tick > self._tick) & (maps.seen > 0)
        self._tick[due] = tick[due]
        ids = np.flatnonzero(due)
        if ids.size:
            points = self.proposer.propose(ids, motion, maps.images[ids])
            for k, flight in enumerate(ids.tolist()):
                self._points[flight], self._made[flight] = points[k], motion.time[flight]
        return np.asarray(due)

    # ---- the plan ------------------------------------------------------------------------------------------------------

    def _plan(
        self, flight: int, begin: float, here: Array, path: Array, known: tuple[bool, float, int, int], work: dict[str, Array]
    ) -> int:
        self._at = here, path, known[2]
        try:
            return super()._plan(flight, begin, here, path, known, work)
        finally:
            self._at = None

    def _brake(self, flight: int, begin: float, here: Array, work: dict[str, Array]) -> int:
        # To stop in need is the planner's: nobody is asked what to do instead.
        self._at = None
        return super()._brake(flight, begin, here, work)

    def _choose(
        self,
        flight: int,
        offered: StoppingCandidates,
        begin: float,
        share: float,
        work: dict[str, Array],
        most: float = np.inf,
    ) -> StoppingTrajectory | None:
        at, self._at = self._at, None
        if at is None:
            return super()._choose(flight, offered, begin, share, work, most)
        best = min(float(offered.cost[0]) if len(offered) else np.inf, most)
        found = self._certified_proposal(flight, at, best, begin, share, work)
        if found is None:
            found = super()._choose(flight, offered, begin, share, work, most)
            self.counts["plans_flown"][flight] += found is not None
        return found

    def _certified_proposal(
        self,
        flight: int,
        at: tuple[Array, Array, int],
        best: float,
        begin: float,
        share: float,
        work: dict[str, Array],
    ) -> StoppingTrajectory | None:
        """Return the first of a flight's proposals that is certified to its rest, and comes on; None: there is none."""
        points, (here, path, last) = self._points[flight], at
        near = np.linalg.norm(np.asarray(self._mission.goal[flight]) - here[0]) < self.options.near_goal
        if points is None or near or not np.isfinite(points).all():
            return None
        self.counts["proposals"][flight] += 1
        made = proposed_trajectories(
            here, points, begin - float(self._made[flight]), path, last, self.limits.of(flight), self.options, best
        )
        found = super()._choose(flight, made, begin, share, work) if len(made) else None
        self.counts["proposals_flown"][flight] += found is not None
        return found


def proposed_trajectories(
    start: Array,
    points: Array,
    since: float,
    path: Array,
    last: int,
    limits: MotionLimits,
    options: HybridSettings,
    best: float,
) -> StoppingCandidates:
    """Return trajectories to where proposals lead, each with a stop behind it, in the order in which they are to be tried: of
    each proposal, one after the other, the quickest first.

    Args:
        start: Where the flight will be when one begins: position, velocity, acceleration, (3, 3).
        points: Proposed, the best first, (modes, 10, 3) [m].
        since: So long after they were proposed one begins [s].
        path: The route, `SPACING` apart, (m, 3) [m].
        last: Of its points the last that is known to be free.
        limits: Of the flight.
        options: What is asked of a proposal beside its certificate.
        best: When the end of what is free would be reached otherwise [s].
    """
    ends = [k for k in _ENDS if TIMES[k] - since >= _SHORTEST]
    shape = (len(points), len(ends), len(_SPEEDS), len(_STRETCH))
    where = points[:, ends]
    velocity = (where - points[:, [k - 1 for k in ends]]) / (TIMES[1] - TIMES[0])
    speed = np.linalg.norm(velocity, axis=2, keepdims=True)
    # A direction is proposed; nobody proposes to be faster than the mission and the vehicle allow.
    velocity = velocity * np.minimum(1.0, limits.speed / np.maximum(speed, 1e-9))
    every = np.zeros((*shape, 3, 3))
    every[..., 0, :] = where[:, :, None, None]
    every[..., 1, :] = velocity[:, :, None, None] * np.array(_SPEEDS)[:, None, None]
    left = np.array([TIMES[k] - since for k in ends])
    duration = np.broadcast_to(left[:, None, None] * np.array(_STRETCH), shape).reshape(-1).copy()
    end: Array = every.reshape(-1, 3, 3)
    found = quintics(start, end, duration)
    keeps, fastest = parts_keep_limits(found, duration, limits) if len(found) else (np.zeros(0, bool), np.zeros(0))
    away = np.linalg.norm(path[None, : last + 1] - end[:, None, 0], axis=2)
    nearest, full = away.argmin(1), route_speeds(path, limits)
    beside = away.min(1) / full[nearest]
    cost = duration + beside + time_left(full, nearest, last, np.linalg.norm(end[:, 1], axis=1), limits)
    mode, _, _, _ = (index.reshape(-1) for index in np.indices(shape))
    proposed = np.broadcast_to(left[:, None, None], shape).reshape(-1)
    order = np.lexsort((cost, mode))
    taken = order[(keeps & (away.min(1) <= options.beside) & (cost <= best + options.loss * proposed))[order]]
    stop, time = stopping(end[taken, 0], end[taken, 1], limits)
    both = np.stack([found[taken], stop], 1), np.stack([duration[taken], time], 1)
    return StoppingCandidates(*both, fastest[taken], cost[taken], len(found))
