"""A planner that knows its vehicle and what it has not seen: it flies only where its camera has seen free space.

A memory of the whole area, a route through what is free or unknown, trajectories in the part of it that is known to be free.
Each trajectory ends at rest in known free space, and is followed to there unless a better one is certified before: without
another thought nothing is met but what moves, or what the map has wrong. What stays unknown although it was looked at counts
as blocked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.planners.common.depth_input import recorded_costs
from airworthy.planners.common.interface import Maps, MapSettings, Mission, Motion, Setpoints
from airworthy.planners.common.reference import evaluate_polynomial
from airworthy.planners.known_free.candidates import StoppingCandidates, brakes, candidates, time_left
from airworthy.planners.known_free.config import KnownFreeSettings, KnownFreeState
from airworthy.planners.known_free.heading import Headings
from airworthy.planners.known_free.known_space import (
    MET,
    UNSEEN,
    CellSource,
    Certifier,
    KnownSpace,
    ball_cells,
    merge,
    ring_nodes,
)
from airworthy.planners.known_free.limits import MotionLimits, limits_of
from airworthy.planners.known_free.motion import StoppingPlans, StoppingTrajectory
from airworthy.planners.known_free.path import SPACING, eased, near_path
from airworthy.planners.known_free.route import Route, RouteSearches
from airworthy.planners.known_free.trails import Trails
from airworthy.planners.mapping.boxes import UNIT, Rules, logit, map_boxes

__all__ = ["KnownFreePlanner"]

_CLOSE = 0.1
"""Between points of a trajectory that are certified [m]: balls of 0.31 m so far apart cover a body of 0.306 m."""
_BATCH, _MOST = 6, 24
"""StoppingCandidates that are certified at once, and at most."""
_RELAXED = (0.97, 0.93, 0.85, 0.7, 0.5, 0.25)
"""Shares of the body's radius: where a flight is nearer to something than it should be, it may come away from there."""
_THINK = 0.1
"""Without new images a flight thinks this often [s]."""
_STILL, _ALIGNED, _STEP = 0.08, 0.15, 0.35
"""At rest [m/s], looking where it should [rad], with so little of its route before it [m]."""
_GAIN, _SOON, _BESIDE, _FRESH = 0.05, 0.15, 0.5, 0.09
"""A plan is followed on unless another saves so much time [s], it is over so soon [s], or it ends so far beside the route [m];
for so long at first nobody looks for another [s]."""
_ON = 15
"""So many points of a route are near: from there on it is compared with another; along them things decide how gently it is flown."""
_BACK, _BACK_MOST, _BACK_TIME = 2.0, 12.0, 8.0
"""Who stands before what its camera cannot show from there goes back so far, the second time at a place twice as far and so on, at
most so far [m]; for so long at most [s]."""
_NIMBLE = 15.0
"""Jerk from which on a vehicle follows as the spare for speed supposes [m/s^3]."""
_FREE_LEVEL = -1.0
"""Log-odds at which a cell that was occupied is free again."""


class KnownFreePlanner:
    """Plans n flights; `airworthy.planners.common.interface.Planner`.

    Args:
        settings: None: ours.
    """

    name = "known_free"

    def __init__(self, settings: KnownFreeSettings | None = None):
        self.config = settings or KnownFreeSettings()
        rules = Rules.of(self.config.maps)
        self._levels = rules.least, round(_FREE_LEVEL * UNIT), rules.occupied
        self._searches, self._certifier = RouteSearches(self.config.route), Certifier()
        if self._levels[1] < rules.least or logit(self.config.maps.hit) + logit(self.config.maps.least) <= logit(0.5):
            raise AirworthyError(
                "The maps' probabilities leave no room between free and occupied: raise `hit` or lower `least`."
            )

    @classmethod
    def for_body(cls, radius: float) -> KnownFreePlanner:
        """Return a planner for a body of this radius [m]."""
        return cls(replace(KnownFreeSettings(), body=radius))

    @property
    def settings(self) -> MapSettings:
        """The local maps that fill its memory."""
        return self.config.maps

    @property
    def searching(self) -> ArrayBool:
        """Who is not on the way of a certified plan, (n,)."""
        return self.stage != KnownFreeState.WAITING

    def reset(self, mission: Mission) -> None:
        """Begin n flights."""
        c, n = self.config, len(mission.start)
        self._mission, self.limits = mission, limits_of(mission, c)
        self._boxes = map_boxes(mission, c.maps)
        side = c.body + 0.05
        lower, upper = np.array(mission.lower, float), np.array(mission.upper, float)
        box = np.stack([lower + side, upper - side], 1)
        spare = np.minimum(c.height_spare, np.maximum(0.5 * (upper - lower)[:, 2] - c.body - 0.05, 0.0))
        box[:, 0, 2], box[:, 1, 2] = lower[:, 2] + c.body + spare, upper[:, 2] - c.body - spare
        self._room = box
        self._ball = ball_cells(c.body, c.maps.resolution)
        self._ring = ring_nodes(c.route.near_radius, c.route.wide_radius, c.maps.resolution)
        self._spaces: list[KnownSpace | None] = [None] * n
        self._plans = StoppingPlans(mission.start)
        away = np.asarray(mission.goal) - np.asarray(mission.start)
        self._heading = Headings(np.arctan2(away[:, 1], away[:, 0]), self.limits)
        self.stage = np.full(n, int(KnownFreeState.WAITING), np.int64)
        self.emergencies, self.late = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._path, self._ends = [np.zeros((0, 3)) for _ in range(n)], np.zeros(n, bool)
        self._images, self._thought = np.full(n, -1, np.int64), np.full(n, -np.inf)
        self._routed, self._idle = np.full(n, -np.inf), np.zeros(n)
        self._refusals, self._refused_at = np.zeros(n, np.int64), np.full((n, 3), np.inf)
        self._trails, self._back_until = Trails(mission.start), np.full(n, -np.inf)
        self._faced = np.zeros((n, 3))
        self._busy, self._asked, self._begins = np.full(n, -np.inf), np.full(n, -np.inf), np.full(n, np.inf)
        self._errors = np.zeros(n)

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
        for flight in np.flatnonzero(~active):
            self._spaces[flight] = None
        free = np.flatnonzero(active & (motion.time >= self._busy - 1e-9))
        self._note_errors(free, motion)
        due = self._see(free, motion, maps)
        for flight in due.tolist():
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
        position, velocity, acceleration = self._plans.state(np.arange(len(now)), now)
        yaw, rate = self._heading.turn(now)
        return Setpoints(position, velocity, acceleration, yaw, rate)

    # ---- seeing --------------------------------------------------------------------------------------------------------

    def _note_errors(self, flights: ArrayInt, motion: Motion) -> None:
        """How far vehicles are from where they should be, falling with a time constant of a second."""
        known = np.array([self._spaces[f] is not None for f in flights.tolist()], bool)
        flights = flights[known]
        if flights.size:
            wanted = self._plans.state(flights, motion.time[flights])[0]
            off = np.linalg.norm(motion.position[flights] - wanted, axis=1)
            self._errors[flights] = np.maximum(off, 0.99 * self._errors[flights])

    def _see(self, flights: ArrayInt, motion: Motion, maps: Maps) -> ArrayInt:
        """Put new images into the memories; flights that have something to think about."""
        known, least, most = self._levels
        due, spaces, sources = [], [], []
        for flight in flights.tolist():
            space = self._spaces[flight]
            if space is None:
                space = self._begin(flight, motion)
            late = motion.time[flight] - self._thought[flight] >= _THINK - 1e-9
            source, images = self._source(maps, flight, late)
            fresh = images != self._images[flight]
            if source is not None and (fresh or images < 0):
                spaces.append(space)
                sources.append(source)
            self._images[flight] = images
            if (fresh or late) and images != 0:
                due.append(flight)
                self._thought[flight] = motion.time[flight]
        merge(spaces, sources, known, least, most)
        return np.array(due, np.int64)

    def _begin(self, flight: int, motion: Motion) -> KnownSpace:
        """Give a flight a memory of nothing but the ball in which it came to rest."""
        c, boxes = self.config, self._boxes
        space = KnownSpace(boxes.origin[flight], boxes.cells[flight], boxes.resolution, self._ball, self._ring)
        self._spaces[flight] = space
        here = motion.position[flight]
        self._plans.rest(flight, self._mission.start[flight])
        self._plans.begin[flight] = motion.time[flight]
        self._heading.begin(flight, motion.attitude[flight])
        known, least, most = self._levels
        merge([space], [space.source_of_ball(here, c.seen_at_start, known)], known, least, most)
        return space

    def _source(self, maps: Any, flight: int, late: bool) -> tuple[CellSource | None, int]:
        """Return what a map shows, and how many images are in it.

        By its own arrays where it gives them, else, when it is time to think, by its view; -1 where it counts no images.
        """
        known, _, most = self._levels
        if hasattr(maps, "touched"):
            odds, side, first, last, images = maps.touched(flight)
            return CellSource(odds, side, np.zeros(3, np.int32), first, last), images
        if not late:
            return None, int(self._images[flight])
        view = maps.view(flight)
        source = CellSource.of_view(view, self._boxes.origin[flight], self._boxes.cells[flight], (known, most + 1))
        return source, view.images or -1

    # ---- thinking ------------------------------------------------------------------------------------------------------

    def _think(self, flight: int, time: float, work: dict[str, Array]) -> int:
        space = self._spaces[flight]
        assert space is not None
        begin = time + self.config.lead
        here = self._state(flight, begin)
        goal = np.asarray(self._mission.goal[flight], np.float64)
        rests = float(np.linalg.norm(here[1])) < _STILL
        if rests and np.linalg.norm(here[0] - goal) < 0.25:
            self.stage[flight] = KnownFreeState.WAITING
            return 0
        self._trails.note(flight, here[0])
        if self._goes_back(flight) and (time >= self._back_until[flight] or (rests and self._is_back(flight, here[0]))):
            self._end_retreat(flight)
        if self._needs_route(flight, time, here[0]):
            self._find_route(flight, time, here[0], work)
            begin = time + self.config.lead + self._seconds(work, flight)
            here = self._state(flight, begin)
        path = self._path[flight][: int(self.config.horizon / SPACING)]
        unsafe, share, first, why = self._look_along(flight, time, here, path, work)
        if len(path) and first * SPACING < _STEP and first < len(path) and not self._goes_back(flight):
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
        space = self._spaces[flight]
        assert space is not None
        work["certificates"][flight] += sum(len(p) for p in paths)
        return self._certifier.check(space, self._room[flight], paths, wide, sure)

    # ---- the route -----------------------------------------------------------------------------------------------------

    def _needs_route(self, flight: int, time: float, here: Array) -> bool:
        self._trim(flight, here)
        if self._goes_back(flight):
            return False
        path, space = self._path[flight], self._spaces[flight]
        assert space is not None
        since = time - self._routed[flight]
        if since >= self.config.route_every:
            return True
        if not len(path) or since < _THINK - 1e-9:
            return False
        return bool((~space.has_room(path[4:])).any()) or (len(path) * SPACING < 3.0 and not self._ends[flight])

    def _trim(self, flight: int, here: Array) -> None:
        """Let the path begin where the flight is."""
        path = self._path[flight]
        if not len(path):
            return
        near = int(np.argmin(((path[:40] - here) ** 2).sum(1)))
        self._path[flight] = path[near:]

    def _find_route(self, flight: int, time: float, here: Array, work: dict[str, Array]) -> None:
        c, space, goal = self.config, self._spaces[flight], np.asarray(self._mission.goal[flight], np.float64)
        assert space is not None
        self._routed[flight] = time
        room = bool(space.has_room(goal[None])[0])
        found = self._search(flight, here, room, work)
        if not len(found.nodes):
            # Dead ends may not have been ones: all that was only refused is tried again.
            space.pardon()
            self._path[flight] = np.zeros((0, 3))
            return
        path, ends = near_path(space, found.nodes, here, goal, c.horizon + 2.0, room)
        self._path[flight], self._ends[flight] = self._flown_on(flight, path, found.cost, room, work) or (path, ends)

    def _search(self, flight: int, start: Array, room: bool, work: dict[str, Array]) -> Route:
        space, goal = self._spaces[flight], np.asarray(self._mission.goal[flight], np.float64)
        assert space is not None
        found = self._searches.find(space, start, goal, self._room[flight], 0.15 if room else 1.5)
        work["route_expansions"][flight] += found.expansions
        return found

    def _flown_on(self, flight: int, path: Array, cost: float, room: bool, work: dict[str, Array]) -> tuple[Array, bool] | None:
        """Return the route that is flown, gone on with, and whether it ends; None where a path (m, 3) is the same or much better.

        Who turns round for every guess about what nobody has seen flies all of them.
        """
        c, space, flown = self.config, self._spaces[flight], self._path[flight]
        assert space is not None
        if len(flown) <= _ON or np.linalg.norm(path[: 2 * _ON] - flown[_ON], axis=1).min() < _BESIDE:
            return None
        if not space.has_room(flown[4 : _ON + 1]).all():
            return None
        found = self._search(flight, flown[_ON], room, work)
        if not len(found.nodes) or cost + c.route.loyalty < _ON * SPACING + found.cost:
            return None
        goal = np.asarray(self._mission.goal[flight], np.float64)
        on, ends = near_path(space, found.nodes, flown[_ON], goal, c.horizon + 2.0 - _ON * SPACING, room)
        return np.concatenate([flown[:_ON], on]), ends

    # ---- the plan ------------------------------------------------------------------------------------------------------

    def _plan(
        self, flight: int, begin: float, here: Array, path: Array, known: tuple[bool, float, int, int], work: dict[str, Array]
    ) -> int:
        unsafe, share, last, why = known
        found = None
        if last >= 1:
            ends = bool(self._ends[flight]) and last == len(self._path[flight]) - 1
            kept = np.inf if unsafe else self._cost_of_plan(flight, begin, path, last)
            if np.isfinite(kept) and begin - self._plans.begin[flight] < _FRESH:
                return 0
            offered = candidates(here, path, last, self._limits_along(flight, path[: last + 1]), ends)
            found = self._choose(flight, offered, begin, share, work, kept - _GAIN)
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
        space, limits = self._spaces[flight], self.limits.of(flight)
        assert space is not None
        return limits.gentle() if (space.nearness(path[:_ON]) == 2).any() else limits

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
        unsafe = bool(1 < first[0] < len(ahead) and why[0] == MET)
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
        whole = self._path[flight]
        self._path[flight] = np.concatenate([flat, whole[len(path) :]])
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
        return left + float(time_left(np.array([(last - near) * SPACING]), np.array([speed]), limits)[0])

    def _choose(
        self, flight: int, offered: StoppingCandidates, begin: float, share: float, work: dict[str, Array], most: float = np.inf
    ) -> StoppingTrajectory | None:
        """Return the first of the candidates that is certified to its rest and costs no more than `most`."""
        c = self.config
        work["polynomials"][flight] += offered.tried
        # What follows slowly is farther beside its set-point at the same speed.
        slow = min(max(_NIMBLE / float(self.limits.jerk[flight]), 1.0), 2.5)
        excess = np.maximum(offered.speed - c.spare_free_speed / slow, 0.0) * slow
        late = min(0.5 * max(self._errors[flight] - 0.08, 0.0), 0.1)
        spare = np.minimum(c.spare + c.spare_per_speed * excess, c.spare_most) + late * np.minimum(excess, 1.0)
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
                if first[k] == len(path):
                    return made[k]
        return None

    def _brake(self, flight: int, begin: float, here: Array, work: dict[str, Array]) -> int:
        """Stop for what is met on the way: as is certified, else as hard as the vehicle can."""
        self.emergencies[flight] += 1
        limits = self.limits.of(flight)
        found = self._choose(flight, brakes(here, limits, 1.3), begin, 0.95, work)
        self._offer(flight, found or brakes(here, limits, 1.3).trajectory(0, begin))
        self.stage[flight] = KnownFreeState.BLOCKED
        return 1

    def _offer(self, flight: int, plan: StoppingTrajectory) -> None:
        self._plans.put(flight, plan)
        self._begins[flight] = plan.begin

    # ---- looking and waiting -------------------------------------------------------------------------------------------

    def _look(self, flight: int, here: Array, last: int) -> None:
        """Look to where the route leaves what is known, or to where it leads in a while; going back, to what was not seen."""
        if self._goes_back(flight):
            away = self._faced[flight] - here
            self._heading.look(flight, float(np.arctan2(away[1], away[0])))
            return
        path = self._path[flight]
        at = min(last + 4, int(self.config.look_ahead / SPACING))
        ways = path[max(at, 0) : 40 + max(at, 0), :2] - here[:2]
        far = np.flatnonzero((ways**2).sum(1) > 0.16)
        if len(far):
            self._heading.look(flight, float(np.arctan2(ways[far[0], 1], ways[far[0], 0])))

    def _wait(self, flight: int, here: Array, path: Array, last: int, why: int) -> None:
        """At rest before what is not known to be free: after a while of looking at it, go back to see it, or take it as blocked."""
        self.stage[flight] = KnownFreeState.BLOCKED
        if np.linalg.norm(here[1]) > _STILL or self._heading.off(flight) > _ALIGNED:
            return
        self._idle[flight] += 0.05
        if self._idle[flight] < self.config.patience:
            return
        space = self._spaces[flight]
        assert space is not None
        self._idle[flight] = 0.0
        again = np.linalg.norm(self._refused_at[flight] - here[0]) < 1.0
        self._refusals[flight] = self._refusals[flight] + 1 if again else 1
        self._refused_at[flight] = here[0]
        where = path[min(max(last, 0) + 4, len(path) - 1)]
        if self._goes_back(flight):
            self._end_retreat(flight)
        elif why == UNSEEN and last * SPACING < _STEP and self._refusals[flight] % 2 and self._go_back(flight, here[0], where):
            return
        known = why == MET or last * SPACING >= _STEP or self._refusals[flight] > 2
        space.refuse(where, min(0.25 * 1.4 ** float(self._refusals[flight] - 1), 1.0), known, here[0])
        self._forget_route(flight)

    # ---- going back ----------------------------------------------------------------------------------------------------

    def _goes_back(self, flight: int) -> bool:
        return bool(np.isfinite(self._back_until[flight]))

    def _is_back(self, flight: int, here: Array) -> bool:
        path = self._path[flight]
        return not len(path) or bool(np.linalg.norm(path[-1] - here) < _STEP) and self._heading.off(flight) < _ALIGNED

    def _go_back(self, flight: int, here: Array, where: Array) -> bool:
        """Let a flight go back to where it came from, looking to a point (3,); whether it came from anywhere."""
        length = min(_BACK * 2.0 ** float(self._refusals[flight] // 2), _BACK_MOST)
        way = self._trails.back(flight, here, length)
        if not len(way):
            return False
        self._path[flight], self._ends[flight] = way, True
        self._back_until[flight], self._faced[flight] = self._thought[flight] + _BACK_TIME, where
        return True

    def _end_retreat(self, flight: int) -> None:
        self._back_until[flight] = -np.inf
        self._idle[flight] = 0.0
        self._forget_route(flight)

    def _forget_route(self, flight: int) -> None:
        self._path[flight], self._routed[flight] = np.zeros((0, 3)), -np.inf
