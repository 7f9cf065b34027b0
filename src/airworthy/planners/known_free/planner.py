"""A planner that knows its vehicle and what it has not seen: it flies only where its camera has seen free space.

A memory of the whole area, a route through what is free or unknown, trajectories in the part of it that is known to be free.
Each trajectory ends at rest in known free space, and is followed to there unless a better one is certified before: without
another thought nothing is met but what moves, or what the map has wrong. What stays unknown although it was looked at counts
as blocked. What moves is followed and foretold; who would come near it flies another way, waits, or gets out of its way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.planners.common.depth_input import recorded_costs
from airworthy.planners.common.interface import Maps, MapSettings, Mission, Motion, Setpoints, StartRoom
from airworthy.planners.common.reference import evaluate_polynomial
from airworthy.planners.known_free.candidates import StoppingCandidates, brakes, candidates, route_speeds, time_left
from airworthy.planners.known_free.config import KnownFreeSettings, KnownFreeState
from airworthy.planners.known_free.doubts import doubts_of
from airworthy.planners.known_free.evading import Evasion, rays_around
from airworthy.planners.known_free.heading import Headings, yaw_of
from airworthy.planners.known_free.known_space import MET, UNSEEN, Certifier
from airworthy.planners.known_free.limits import MotionLimits, limits_of
from airworthy.planners.known_free.memories import Memories, levels_of
from airworthy.planners.known_free.motion import StoppingPlans, StoppingTrajectory
from airworthy.planners.known_free.movers import Look, MoversSeen
from airworthy.planners.known_free.path import SPACING, eased
from airworthy.planners.known_free.retreats import Retreats
from airworthy.planners.known_free.route import RouteSearches
from airworthy.planners.known_free.routes import NEAR_POINTS, FollowedRoutes
from airworthy.planners.known_free.tracking_errors import TrackingErrors, has_room_beside

__all__ = ["KnownFreePlanner"]

_CLOSE = 0.1
"""Between points of a trajectory that are certified [m]: balls of 0.31 m so far apart cover a body of 0.306 m."""
_BATCH, _MOST = 6, 24
"""StoppingCandidates that are certified at once, and at most."""
_RELAXED = (0.97, 0.93, 0.85, 0.7, 0.5, 0.25)
"""Shares of the body's radius: where a flight is nearer to something than it should be, it may come away from there."""
_STILL, _ALIGNED, _STEP = 0.08, 0.15, 0.35
"""At rest [m/s], looking where it should [rad], with so little of its route before it [m]."""
_GAIN, _SOON, _BESIDE, _FRESH = 0.05, 0.15, 0.5, 0.09
"""A plan is followed on unless another saves so much time [s], it is over so soon [s], or it ends so far beside the route [m];
for so long at first nobody looks for another [s]."""
_STEPS = 6
"""At rest, where nothing farther is certified, so many points of the path are flown at first."""
_CROSSING = 4.0
"""Who rests so near something that moves waits for it [m]."""
_NIMBLE = 15.0
"""Jerk from which on a vehicle follows as the spare for speed supposes [m/s^3]."""


class KnownFreePlanner:
    """Plans n flights; `airworthy.planners.common.interface.Planner`.

    Args:
        settings: None: ours.
    """

    name = "known_free"

    def __init__(self, settings: KnownFreeSettings | None = None):
        self.config = settings or KnownFreeSettings()
        levels_of(self.config)
        self._searches, self._certifier = RouteSearches(self.config.route), Certifier()

    @classmethod
    def for_body(cls, radius: float, *, settings: KnownFreeSettings | None = None) -> KnownFreePlanner:
        """Return a planner for a body of this radius [m]: what its camera cannot show of a larger one reaches farther.

        Args:
            radius: Of the ball around the body [m].
            settings: All else, as it would be for a body of the radius that they name; None: the defaults.

        Raises:
            AirworthyError: There is no such body.
        """
        if not 0.0 < radius < float("inf"):
            raise AirworthyError(f"The radius of the body is {radius!r}; expected metres, above 0.")
        plain = settings or KnownFreeSettings()
        more, times = radius - plain.body, max(radius / plain.body, 1.0)
        route = replace(
            plain.route,
            near_radius=plain.route.near_radius + max(more, 0.0),
            wide_radius=plain.route.wide_radius + max(more, 0.0),
            escape_radius=plain.route.escape_radius + max(more, 0.0),
            blind_radius=plain.route.blind_radius * times,
        )
        return cls(replace(plain, body=radius, seen_at_start=plain.seen_at_start * times, route=route))

    @property
    def settings(self) -> MapSettings:
        """The local maps that fill its memory."""
        return self.config.maps

    def doubts(self, mission: Mission, room: StartRoom) -> list[tuple[ArrayBool, str]]:
        """Return which flights may fail, and why, as `airworthy.planners.common.interface.Planner` says."""
        return doubts_of(mission, room, self.config)

    @property
    def searching(self) -> ArrayBool:
        """Who is not on the way of a certified plan, (n,)."""
        return self.stage != KnownFreeState.WAITING

    def reset(self, mission: Mission) -> None:
        """Begin n flights."""
        c, n = self.config, len(mission.start)
        self._mission, self.limits = mission, limits_of(mission, c)
        side = c.body + 0.05
        lower, upper = np.array(mission.lower, float), np.array(mission.upper, float)
        box = np.stack([lower + side, upper - side], 1)
        spare = np.minimum(c.height_spare, np.maximum(0.5 * (upper - lower)[:, 2] - c.body - 0.05, 0.0))
        box[:, 0, 2], box[:, 1, 2] = lower[:, 2] + c.body + spare, upper[:, 2] - c.body - spare
        self._room = box
        self._memories = Memories(mission, c)
        self._routes = FollowedRoutes(mission.goal, box, c, self._searches)
        self.retreats = Retreats(mission.start)
        self._plans = StoppingPlans(mission.start)
        self.movers = MoversSeen(n)
        self._evasion = Evasion(self.movers, self._plans, c.body)
        away = np.asarray(mission.goal) - np.asarray(mission.start)
        self._heading = Headings(np.arctan2(away[:, 1], away[:, 0]), self.limits)
        self.stage = np.full(n, int(KnownFreeState.WAITING), np.int64)
        self.emergencies, self.late = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._idle, self._refusals, self._refused_at = np.zeros(n), np.zeros(n, np.int64), np.full((n, 3), np.inf)
        self._busy, self._asked, self._begins = np.full(n, -np.inf), np.full(n, -np.inf), np.full(n, np.inf)
        self.tracking_errors = TrackingErrors(n)

    def update(self, motion: Motion, maps: Maps | None, active: ArrayBool) -> dict[str, Any]:
        """Think, at 100 Hz, about what new images show.

        Work: "route_expansions", nodes of routes; "certificates", balls that were compared with the memory; "polynomials".

        Args:
            motion: Odometry of all flights (n, ...), world.
            maps: Of the flights.
            active: Flights that are still flown, (n,).
        """
        assert maps is not None
        n = len(active)
        work = {kind: np.zeros(n) for kind in ("route_expansions", "certificates", "polynomials")}
        replans = np.zeros(n, np.int64)
        self._plans.settle(motion.time)
        self._asked[:] = -np.inf
        self._begins[:] = np.inf
        self._memories.forget(np.flatnonzero(~active))
        free = np.flatnonzero(active & (motion.time >= self._busy - 1e-9))
        self._note_errors(free[self._memories.exist()[free]], motion)
        self._begin(free, motion)
        due = self._memories.see(free, motion.time, maps).tolist()
        for flight, source in self._memories.taken.items():
            look = Look(motion.position[flight, :2], yaw_of(motion.attitude[flight]), self.config.sight)
            self.movers.see(flight, float(motion.time[flight]), look, self._memories.of(flight), source)
        for flight in due:
            self._asked[flight] = motion.time[flight]
            replans[flight] = self._think(flight, float(motion.time[flight]), work)
        return {"work": work, "replans": replans, "state": self.stage.copy()}

    def adopt(self, delay: Array) -> None:
        """Adopt the last plans; one whose compute took longer than it was given never holds."""
        asked = np.isfinite(self._asked)
        wait = np.where(asked, np.maximum(np.asarray(delay, np.float64), 0.0), 0.0)
        self._busy = np.where(wait > 0.0, self._asked + wait, self._busy)
        for flight in np.flatnonzero(asked & (self._asked + wait > self._begins + 1e-9) & np.isfinite(self._begins)):
            self._plans.withdraw(int(flight))
            self.late[flight] += 1

    def setpoints(self, time: Array) -> Setpoints:
        """Return what to follow at times (n,)."""
        now = np.asarray(time, np.float64)
        self._plans.settle(now)
        every = np.arange(len(now))
        position, velocity, _ = self._plans.state(every, now)
        # What thrust has to be when it will have turned there: without it a plan's jerk leaves a vehicle beside it.
        acceleration = self._plans.state(every, now + self.limits.delay)[2]
        yaw, rate = self._heading.turn(now)
        return Setpoints(position, velocity, acceleration, yaw, rate)

    # ---- beginning --------------------------------------------------------------------------------------------------------

    def _note_errors(self, flights: ArrayInt, motion: Motion) -> None:
        if flights.size:
            self.tracking_errors.note(flights, motion.position[flights] - self._plans.state(flights, motion.time[flights])[0])

    def _begin(self, flights: ArrayInt, motion: Motion) -> None:
        """Begin flights where they came to rest."""
        for flight in self._memories.begin(flights, motion.position).tolist():
            self._plans.rest(flight, self._mission.start[flight])
            self._plans.begin[flight] = motion.time[flight]
            self._heading.begin(flight, motion.attitude[flight])

    # ---- thinking ------------------------------------------------------------------------------------------------------

    def _think(self, flight: int, time: float, work: dict[str, Array]) -> int:
        begin = time + self.config.lead
        here = self._state(flight, begin)
        goal = np.asarray(self._mission.goal[flight], np.float64)
        rests = float(np.linalg.norm(here[1])) < _STILL
        if rests and np.linalg.norm(here[0] - goal) < 0.25:
            self.stage[flight] = KnownFreeState.WAITING
            return 0
        self.retreats.note(flight, here[0])
        back = self.retreats.goes_back(flight)
        if back and (self.retreats.is_late(flight, time) or (rests and self._is_back(flight, here[0]))):
            back = self._go_on(flight)
        self._routes.trim(flight, here[0])
        space = self._memories.of(flight)
        if not back and self._routes.due(flight, time, space):
            work["route_expansions"][flight] += self._routes.find(flight, time, here[0], space)
            begin = time + self.config.lead + self._seconds(work, flight)
            here = self._state(flight, begin)
        path = self._routes.path(flight)[: int(self.config.horizon / SPACING)]
        unsafe, share, first, why = self._look_along(flight, time, here, path, work)
        if len(path) and first * SPACING < _STEP and first < len(path) and not back:
            path, first, why = self._ease(flight, here, path, share, (first, why), work)
        if not len(path):
            self.stage[flight] = KnownFreeState.SEARCHING
            return self._brake(flight, begin, here, work) if unsafe else 0
        self._look(flight, here[0], first - 1)
        return self._plan(flight, begin, here, path, (unsafe, share, first - 1, why), work)

    def _state(self, flight: int, time: float) -> Array:
        found = self._plans.state(np.array([flight]), np.array([time]))
        return np.stack([part[0] for part in found])

    @staticmethod
    def _seconds(work: dict[str, Array], flight: int) -> float:
        """Compute that was spent so far, by the constants of the benchmark [s], and a fifth more."""
        return 1.2 * float(work["route_expansions"][flight]) * recorded_costs()["route_expansions"]

    def _certified(
        self, flight: int, paths: list[Array], wide: Any, sure: Any, work: dict[str, Array]
    ) -> tuple[ArrayInt, ArrayInt]:
        work["certificates"][flight] += sum(len(p) for p in paths)
        return self._certifier.check(self._memories.of(flight), self._room[flight], paths, wide, sure)

    # ---- the plan ------------------------------------------------------------------------------------------------------

    def _plan(
        self, flight: int, begin: float, here: Array, path: Array, known: tuple[bool, float, int, int], work: dict[str, Array]
    ) -> int:
        unsafe, share, last, why = known
        found = None
        if last >= 1:
            kept = np.inf if unsafe else self._cost_of_plan(flight, begin, path, last)
            if np.isfinite(kept) and begin - self._plans.begin[flight] < _FRESH:
                return 0
            offered = candidates(here, path, last, self._limits_along(flight, path[: last + 1]))
            found = self._choose(flight, offered, begin, share, work, kept - _GAIN)
            if found is None and not np.isfinite(kept) and last > _STEPS and float(np.linalg.norm(here[1])) < _STILL:
                # Where there is room for hardly more than the path itself, steps along it are nearer to it.
                offered = candidates(here, path, _STEPS, self._limits_along(flight, path[: _STEPS + 1]))
                found = self._choose(flight, offered, begin, share, work)
            if found is None and np.isfinite(kept):
                self.stage[flight] = KnownFreeState.FLYING
                return 0
        if found is not None:
            self._offer(flight, found)
            if last * SPACING < _STEP:
                self._wait(flight, here, path, last, why)
            else:
                self._idle[flight] = 0.0
            self.stage[flight] = KnownFreeState.FLYING
            return 1
        if unsafe:
            return self._brake(flight, begin, here, work)
        self._wait(flight, here, path, last, why)
        return 0

    def _limits_along(self, flight: int, path: Array) -> MotionLimits:
        """Return what a flight may be asked for on a path (m, 3) [m]: gentle where something is near its first part."""
        limits, near = self.limits.of(flight), self._memories.of(flight).nearness(path[:NEAR_POINTS]) == 2
        return limits.gentle() if near.any() else limits

    def _look_along(
        self, flight: int, time: float, here: Array, path: Array, work: dict[str, Array]
    ) -> tuple[bool, float, int, int]:
        """Look along what is followed, and along the route.

        Returns:
            Whether what is followed meets something that is known by now; the share of the body's radius that can be kept; how
            many points of the path are known to be free; and why no more are.
        """
        c, plan = self.config, self._plans.of(flight)
        wide, sure = c.body + c.spare, c.body + 0.005
        ahead = plan.points(time - plan.begin, _CLOSE, float(self.limits.speed[flight]))
        first, why = self._certified(flight, [ahead, here[:1], path], (0.98 * c.body, wide, wide), (0.0, sure, sure), work)
        # Where it is already cannot be helped.
        unsafe = bool(1 < first[0] < len(ahead) and why[0] == MET) or self._evasion.is_threatened(flight, time)
        if first[1] == 1:
            return unsafe, 1.0, int(first[2]), int(why[2])
        shares = np.array(_RELAXED)
        fits = self._certified(flight, [here[:1]] * len(shares), shares * wide, shares * sure, work)[0] == 1
        share = float(shares[np.argmax(fits)]) if fits.any() else float(shares[-1])
        first, why = self._certified(flight, [path], share * wide, share * sure, work)
        return unsafe, share, int(first[0]), int(why[0])

    def _ease(
        self, flight: int, here: Array, path: Array, share: float, known: tuple[int, int], work: dict[str, Array]
    ) -> tuple[Array, int, int]:
        """Fly flatter at first where a route climbs or sinks into what the camera cannot see from so near.

        Returns:
            The path, how many of its points are known to be free, and why no more are: as given, if that shows no more.
        """
        flat, wide = eased(path, here[0]), self.config.body + self.config.spare
        first, why = self._certified(flight, [flat], share * wide, share * (self.config.body + 0.005), work)
        if int(first[0]) <= known[0]:
            return path, *known
        rest = self._routes.path(flight)[len(path) :]
        self._routes.follow(flight, np.concatenate([flat, rest]), bool(self._routes.ends[flight]))
        return flat, int(first[0]), int(why[0])

    def _cost_of_plan(self, flight: int, begin: float, path: Array, last: int) -> float:
        """Until the end of what is free would be reached, if what is followed is followed on [s]; infinite: it is over soon."""
        plan, limits = self._plans.of(flight), self.limits.of(flight)
        left = float(plan.begin + plan.duration[0] - begin)
        if left < _SOON:
            return np.inf
        end = evaluate_polynomial(plan.coefficients[1:], np.zeros(1), 0)[0]
        speed = float(np.linalg.norm(plan.coefficients[1, 1]))
        away = np.linalg.norm(path[: last + 1] - end, axis=1)
        near = int(np.argmin(away))
        if away[near] > _BESIDE:
            return np.inf
        full = route_speeds(path, limits)
        return left + float(time_left(full, np.array([near]), last, np.array([speed]), limits)[0])

    def _choose(
        self, flight: int, offered: StoppingCandidates, begin: float, share: float, work: dict[str, Array], most: float = np.inf
    ) -> StoppingTrajectory | None:
        """Return the first of the candidates that comes near nothing that moves, is certified to its rest and costs at most
        `most`."""
        work["polynomials"][flight] += offered.tried
        offered = self._evasion.spared(flight, offered, begin)
        return self._first_certified(flight, offered, begin, share, work, most)

    def _first_certified(
        self, flight: int, offered: StoppingCandidates, begin: float, share: float, work: dict[str, Array], most: float
    ) -> StoppingTrajectory | None:
        c = self.config
        # What follows slowly is farther beside its set-point at the same speed.
        slow = min(max(_NIMBLE / float(self.limits.jerk[flight]), 1.0), 2.5)
        excess = np.maximum(offered.speed - c.spare_free_speed / slow, 0.0) * slow
        late = self.tracking_errors.spare(flight) * np.minimum(excess, 1.0)
        spare = np.minimum(c.spare + c.spare_per_speed * excess, c.spare_most) + late
        count = min(int(np.searchsorted(offered.cost, most, side="right")), _MOST)
        order = np.arange(count)
        if not np.isfinite(most) and len(offered) > count:
            # Where there is little room only what is slow fits, which stands last.
            rest = count + np.argsort(offered.speed[count:], kind="stable")
            order = np.concatenate([order, rest[: 2 * _BATCH]])
        for begun in range(0, len(order), _BATCH):
            part = order[begun : begun + _BATCH].tolist()
            made = [offered.trajectory(k, begin) for k in part]
            paths = [m.points(0.0, _CLOSE, float(offered.speed[k])) for m, k in zip(made, part, strict=True)]
            wide = share * (c.body + spare[part])
            first, _ = self._certified(flight, paths, wide, share * (c.body + 0.005), work)
            for k, path in enumerate(paths):
                if first[k] == len(path) and self._has_room_beside(flight, path, share, float(spare[part[k]])):
                    return made[k]
        return None

    def _has_room_beside(self, flight: int, path: Array, share: float, spare: float) -> bool:
        """Return whether there is room on a certified path (m, 3) [m] for where the vehicle lastingly is beside it.

        The spare [m] covers what is less. One ball in 3,800 is looked at so (over the whole benchmark): no work of its own.
        """
        beside = self.tracking_errors.lasting[flight]
        if float(np.linalg.norm(beside)) <= share * spare:
            return True
        return has_room_beside(self._certifier, self._memories.of(flight), path, beside, self.config.body)

    def _brake(self, flight: int, begin: float, here: Array, work: dict[str, Array]) -> int:
        """Stop for what is met on the way: as is certified, else as hard as the vehicle can."""
        self.stage[flight] = KnownFreeState.BLOCKED
        self.emergencies[flight] += 1
        if self._evasion.is_threatened(flight, begin):
            return self._evade(flight, begin, here, work)
        limits = self.limits.of(flight)
        found = self._choose(flight, brakes(here, limits, 1.3), begin, 0.95, work)
        self._offer(flight, found or brakes(here, limits, 1.3).trajectory(0, begin))
        return 1

    def _evade(self, flight: int, begin: float, here: Array, work: dict[str, Array]) -> int:
        """Get out of the way of what moves, as far as can be; otherwise go on as before."""
        c, rays = self.config, rays_around(here[0])
        free, _ = self._certified(flight, rays, c.body + c.spare, c.body + 0.005, work)
        offered = self._evasion.ways_out(flight, begin, here, rays, free, self.limits.of(flight))
        work["polynomials"][flight] += offered.tried
        found = self._first_certified(flight, offered, begin, 0.95, work, np.inf)
        if found is not None:
            self._offer(flight, found)
        return int(found is not None)

    def _offer(self, flight: int, plan: StoppingTrajectory) -> None:
        self._plans.put(flight, plan)
        self._begins[flight] = plan.begin

    # ---- looking and waiting -------------------------------------------------------------------------------------------

    def _look(self, flight: int, here: Array, last: int) -> None:
        """Look to where the route leaves what is known, or to where it leads in a while.

        Going back, to what was not seen; with `look_back` along the way back where that is not known either: a body passed
        there, and a trail of points cuts its corners.
        """
        path = self._routes.path(flight)
        stands = last * SPACING < _STEP and last < len(path) - 1
        if self.retreats.goes_back(flight) and not (self.config.look_back and stands):
            self._heading.look(flight, self.retreats.heading(flight, here))
            return
        at = min(last + 4, int(self.config.look_ahead / SPACING))
        away = path[max(at, 0) : 40 + max(at, 0), :2] - here[:2]
        far = np.flatnonzero((away**2).sum(1) > 0.16)
        if len(far):
            ahead = float(np.arctan2(away[far[0], 1], away[far[0], 0]))
            self._heading.look(flight, self.movers.heading(flight, here, ahead))

    def _wait(self, flight: int, here: Array, path: Array, last: int, why: int) -> None:
        """At rest before what is not known to be free: after a while of looking at it go back to see it, or take it as blocked.

        What is unseen so near is looked at from farther away first, then taken as blocked, then from twice as far and so on.
        """
        self.stage[flight] = KnownFreeState.BLOCKED
        if np.linalg.norm(here[1]) > _STILL or self._heading.off(flight) > _ALIGNED:
            return
        if self.movers.near(flight, here[0], _CROSSING):
            return
        self._idle[flight] += 0.05
        if self._idle[flight] < self.config.patience:
            return
        self._idle[flight] = 0.0
        again = np.linalg.norm(self._refused_at[flight] - here[0]) < 1.0
        self._refusals[flight] = self._refusals[flight] + 1 if again else 1
        self._refused_at[flight] = here[0]
        where = path[min(max(last, 0) + 4, len(path) - 1)]
        blind = why == UNSEEN and last * SPACING < _STEP
        if self.retreats.goes_back(flight):
            self._go_on(flight)
        elif blind and self._refusals[flight] % 2 and self._go_back(flight, here[0], where):
            return
        known = why == MET or last * SPACING >= _STEP or self._refusals[flight] > 2
        radius = min(0.25 * 1.4 ** float(self._refusals[flight] - 1), 1.0)
        self._memories.of(flight).refuse(where, radius, known, here[0])
        self._routes.forget(flight)

    # ---- going back ----------------------------------------------------------------------------------------------------

    def _is_back(self, flight: int, here: Array) -> bool:
        path = self._routes.path(flight)
        if not len(path):
            return True
        return bool(np.linalg.norm(path[-1] - here) < _STEP) and self._heading.off(flight) < _ALIGNED

    def _go_back(self, flight: int, here: Array, where: Array) -> bool:
        """Let a flight go back to where it came from, looking to a point (3,); whether it came from anywhere."""
        tries = int(self._refusals[flight]) // 2
        way = self.retreats.begin(flight, float(self._memories.thought[flight]), here, where, tries)
        if len(way):
            self._routes.follow(flight, way, True)
        return bool(len(way))

    def _go_on(self, flight: int) -> bool:
        """Let a flight that went back search anew; False: it goes back no more."""
        self.retreats.end(flight)
        self._idle[flight] = 0.0
        self._routes.forget(flight)
        return False
