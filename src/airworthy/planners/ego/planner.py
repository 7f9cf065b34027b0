"""EGO-Planner: a local planner by gradients without a distance field, for n flights at once.

Its state machine, safety check and emergency stop are those of the specification, section 3.8; each flight has its own state,
and what several flights plan at an instant is one launch. While a flight's plan is being computed (`adopt`) it does not think:
the original plans in the thread that would. Random starts are draws keyed by seed, flight and number of the try.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayInt
from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.planners.common.bspline import evaluate_uniform
from airworthy.planners.common.interface import Maps, MapSettings, Mission, Motion, Setpoints
from airworthy.planners.common.reference import References, local_targets
from airworthy.planners.common.search import CellTable
from airworthy.planners.ego.config import EgoConfig, EgoOutcome, EgoState
from airworthy.planners.ego.tries import MOST, EgoStart, Questions, ReboundTries

__all__ = ["EgoPlanner", "SplineServer"]

# ---- The trajectory server: set-points from splines, with the yaw looking ahead ---------------------------------------------
#
# Source: spec/planners section 3.9. Each flight holds the trajectory that it follows and the one that will take over.

# Source: spec/planners 3.9: the trajectory server looks 1.0 s ahead.
AHEAD = 1.0
"""The yaw looks to where the trajectory is so much later [s]."""
TURN = np.pi
"""Fastest turn [rad/s]."""


class SplineServer:
    """Trajectories of n flights.

    Args:
        position: Where they are held before there is a trajectory [m], (n, 3).
        yaw: And how they look [rad], (n,).

    Attributes:
        control, count, interval, begin: The trajectories that are followed: (n, MOST, 3), (n,), (n,), since when (n,).
    """

    def __init__(self, position: Array, yaw: Array):
        n = len(position)
        self.control = np.repeat(np.asarray(position, float)[:, None], MOST, axis=1)
        self.count, self.interval, self.begin = np.full(n, 4), np.ones(n), np.full(n, -np.inf)
        self._next = (self.control.copy(), self.count.copy(), self.interval.copy())
        self._next_begin = np.full(n, np.inf)
        self._yaw, self._rate, self._time = np.array(yaw, float), np.zeros(n), np.full(n, np.nan)

    @property
    def duration(self) -> Array:
        """Of what is followed [s], (n,)."""
        return (self.count - 3) * self.interval

    def hold(self, which: ArrayBool, position: Array, yaw: Array) -> None:
        """Hold, before the first trajectory, where flights are and how they look.

        Args:
            which: Flights (n,).
            position: Of all flights, (n, 3) [m], world.
            yaw: Of all flights, (n,) [rad], counter-clockwise from x.
        """
        self.control[which] = position[which, None]
        self._yaw[which] = yaw[which]

    def take(self, flights: ArrayInt, control: Array, count: ArrayInt, interval: Array, begin: Array) -> None:
        """Take new trajectories of flights (k,), which begin and take over at times (k,).

        Args:
            flights: Flights (k,).
            control: Control points (k, N, 3) [m], world.
            count: How many of them are used, (k,).
            interval: Between knots, (k,) [s].
            begin: When they take over, (k,) [s].
        """
        for held, new in zip(self._next, (control, count, interval), strict=True):
            held[flights] = new
        self._next_begin[flights] = begin

    def delay(self, flights: ArrayInt, seconds: Array) -> None:
        """Let the newest trajectories of flights (k,) begin later by (k,)."""
        self._next_begin[flights] += seconds

    def advance(self, time: Array) -> None:
        """Follow those trajectories that begin by now, times (n,)."""
        due = time >= self._next_begin
        if due.any():
            for held, new in zip((self.control, self.count, self.interval), self._next, strict=True):
                held[due] = new[due]
            self.begin[due] = self._next_begin[due]
            self._next_begin[due] = np.inf

    def state(self, flights: ArrayInt, time: Array) -> Array:
        """Return position, velocity, acceleration of flights (k,) at times (k,), (k, 3, 3); at rest where the trajectory is
        over."""
        t = (time - self.begin[flights])[:, None]
        parts = [
            evaluate_uniform(self.control[flights], self.interval[flights], t, order, self.count[flights])[:, 0]
            for order in range(3)
        ]
        over = t[:, 0] >= self.duration[flights]
        parts[1][over] = parts[2][over] = 0.0
        return np.stack(parts, axis=1)

    def ahead(self, flights: ArrayInt, time: Array) -> Array:
        """Return positions (k, m, 3) of flights (k,) at times (k, m) since their trajectories began."""
        return evaluate_uniform(self.control[flights], self.interval[flights], time, 0, self.count[flights])

    def setpoints(self, time: Array) -> Setpoints:
        """Return what to follow at times (n,); a later time than that of the call before moves the yaw on."""
        self.advance(time)
        every = np.arange(len(time))
        state = self.state(every, time)
        self._turn_to_path(state[:, 0], time)
        return Setpoints(state[:, 0], state[:, 1], state[:, 2], self._yaw.copy(), self._rate.copy())

    def _turn_to_path(self, position: Array, time: Array) -> None:
        every = np.arange(len(time))
        gap = np.where(np.isnan(self._time), 0.01, time - self._time)
        moved = gap > 0.0
        over = time - self.begin >= self.duration
        displacement = self.ahead(every, (time - self.begin + AHEAD)[:, None])[:, 0] - position
        turning = (
            moved
            & ~over
            & (np.linalg.norm(displacement, axis=1) > 0.1)
            & (np.hypot(displacement[:, 0], displacement[:, 1]) > 1e-9)
        )
        wanted = np.where(turning, np.arctan2(displacement[:, 1], displacement[:, 0]), self._yaw)
        turn = np.remainder(wanted - self._yaw + np.pi, 2.0 * np.pi) - np.pi
        most = TURN * np.maximum(gap, 0.0)
        limited = np.clip(turn, -most, most)
        rate = np.where(gap > 0.0, limited / np.where(gap > 0.0, gap, 1.0), 0.0)
        # The source averages yaw with the one before only where the limit does not bind.
        step = np.where(np.abs(turn) <= most, 0.5 * limited, limited)
        self._yaw = np.where(moved, np.remainder(self._yaw + step + np.pi, 2.0 * np.pi) - np.pi, self._yaw)
        self._rate = np.where(moved, np.where(over, 0.0, 0.5 * self._rate + 0.5 * rate), self._rate)
        self._time = np.where(moved, time, self._time)


# -----------------------------------------------------------------------------------------------------------------------------

# Source: spec/planners 3.8: state machine 100 Hz, safety check 20 Hz.
_CHECKED = 5
"""The safety check runs at every so many-th call of 100 Hz."""
# Source: spec/planners 3.8: the trajectory is walked every 0.01 s.
_CHECK_STEP = 0.01
"""[s]"""
# Source: spec/planners 3.8: the emergency stop is left when speed < 0.1 m/s.
_SLOW = 0.1
"""An emergency is over below this speed [m/s]."""
# Ours: bounds the time since what never began, whose difference would be infinite [s].
_EVER = 1e9
_EPISODE = 0x45474F
"""Keeps the planner's draws apart from those of the flight itself."""


class EgoPlanner:
    """See the module.

    Args:
        config: Its numbers; None: as published.
        maps: Of the maps that it needs; None: as published.
    """

    name = "ego"

    def __init__(self, config: EgoConfig | None = None, maps: MapSettings | None = None):
        self.config, self.settings = config or EgoConfig(), maps or MapSettings()
        self._tries = ReboundTries(self.config)

    @classmethod
    def for_body(cls, radius: float) -> EgoPlanner:
        """Return a planner as published, but for maps that are inflated for a body of this radius [m]."""
        return cls(maps=MapSettings().for_body(radius))

    def reset(self, mission: Mission) -> None:
        """Begin n flights: a reference from each start to its goal."""
        n = len(mission.start)
        self._mission = mission
        self._references = References(n)
        for flight in range(n):
            self._references.aim(flight, mission.start[flight], mission.goal[flight], float(mission.speed[flight]))
        displacement = mission.goal - mission.start
        self._server = SplineServer(mission.start, np.arctan2(displacement[:, 1], displacement[:, 0]))
        self._state = np.full(n, EgoState.NEW)
        self._progress, self._busy, self._time = np.zeros(n), np.full(n, -np.inf), np.zeros(n)
        self._failures, self._drawn, self._ticks = np.zeros(n), np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._news = np.zeros(n, np.int64)
        self._begun, self._escape = np.zeros(n, bool), np.zeros(n, bool)
        self._asked = np.zeros(0, np.int64)
        self.outcomes = np.zeros((n, len(EgoOutcome)), np.int64)
        """How tries ended, by flight and `EgoOutcome`."""

    # ---- thinking ---------------------------------------------------------------------------------------------------

    def update(self, motion: Motion, maps: Maps | None, active: ArrayBool) -> dict[str, Any]:
        """Run one call of the state machine, and every fifth of the safety check.

        Args:
            motion: Odometry of all flights (n, ...), world.
            maps: Of the flights.
            active: Flights that are still flown, (n,).
        """
        assert maps is not None
        n = len(self._state)
        self._work = {"expansions": np.zeros(n, np.int64), "evaluations": np.zeros(n, np.int64)}
        self._replans, self._taken = np.zeros(n, np.int64), np.zeros(n, bool)
        self._motion, self._maps, self._time = motion, maps, np.where(active, motion.time, self._time)
        new = active & ~self._begun
        self._server.hold(new, motion.position, _yaw_of(motion.attitude))
        self._begun |= new
        self._server.advance(self._time)
        thinks = active & (self._time >= self._busy)
        planned = self._step(thinks)
        checked = thinks & ~planned & (self._ticks % _CHECKED == 0)
        self._ticks += active
        self._check(np.flatnonzero(checked & (self._state != EgoState.WAIT) & np.isfinite(self._server.begin)))
        self._asked = np.flatnonzero(self._taken)
        self._worked = thinks & (sum(self._work.values()) > 0)
        return {"work": self._work, "replans": self._replans, "state": self._state.astype(np.int64)}

    @property
    def searching(self) -> ArrayBool:
        """Flights (n,) that have no plan that they trust, and are about to try for one."""
        return np.asarray(np.isin(self._state, (EgoState.NEW, EgoState.REPLAN, EgoState.STOP)))

    def adopt(self, delay: Array) -> None:
        """Adopt plans of the last update `delay` (n,) later, and until then nothing is thought."""
        self._server.delay(self._asked, delay[self._asked])
        self._busy = np.where(self._worked, self._time + delay, self._busy)
        self._asked = np.zeros(0, np.int64)

    def setpoints(self, time: Array) -> Setpoints:
        """Return set-points from the trajectories that hold at times (n,)."""
        return self._server.setpoints(time)

    # ---- the state machine ------------------------------------------------------------------------------------------

    def _step(self, thinks: ArrayBool) -> ArrayBool:
        """Return what each flight's state asks for; which of them have planned."""
        at = self._state.copy()
        self._halt(np.flatnonzero(thinks & (at == EgoState.STOP)))
        self._follow(np.flatnonzero(thinks & (at == EgoState.FOLLOW)))
        fresh, again = (np.flatnonzero(thinks & (at == state)) for state in (EgoState.NEW, EgoState.REPLAN))
        self._fresh(fresh)
        found = self._from_trajectory(again)
        self._state[again[found]] = EgoState.FOLLOW
        planned = np.zeros(len(at), bool)
        planned[fresh] = planned[again] = True
        return planned

    def _halt(self, flights: ArrayInt) -> None:
        """In an emergency: stay where the vehicle was when it began; plan anew when it has come to rest."""
        if not len(flights):
            return
        escape = self._escape[flights]
        first = flights[escape]
        control = np.repeat(self._motion.position[first, None], MOST, axis=1)
        self._server.take(first, control, np.full(len(first), 6), np.ones(len(first)), self._time[first])
        self._server.advance(self._time)
        rest = flights[~escape]
        slow = rest[np.linalg.norm(self._motion.velocity[rest], axis=1) < _SLOW]
        self._state[slow], self._news[slow] = EgoState.NEW, 0
        self._escape[flights] = False

    def _follow(self, flights: ArrayInt) -> None:
        """Wait at the end; plan anew after some way, unless the goal is near."""
        if not len(flights):
            return
        c, server = self.config, self._server
        time, duration = self._time[flights] - server.begin[flights], server.duration[flights]
        here, began = (server.ahead(flights, t[:, None])[:, 0] for t in (np.minimum(time, duration), 0.0 * time))
        over = time > duration - 1e-2
        near = np.linalg.norm(self._mission.goal[flights] - here, axis=1) < c.goal_near
        fresh = np.linalg.norm(began - here, axis=1) < c.replan_after
        self._state[flights[over]] = EgoState.WAIT
        self._state[flights[~over & ~near & ~fresh]] = EgoState.REPLAN

    def _fresh(self, flights: ArrayInt) -> None:
        """From the odometry, with no acceleration; from the second call in a row on through random points."""
        if not len(flights):
            return
        start = np.stack([self._motion.position[flights], self._motion.velocity[flights], np.zeros((len(flights), 3))], axis=1)
        kind = np.where(self._news[flights] > 0, EgoStart.RANDOM, EgoStart.POLYNOMIAL)
        self._news[flights] += 1
        found = self._plan(flights, start, kind)
        self._state[flights[found]], self._news[flights[found]] = EgoState.FOLLOW, 0

    def _from_trajectory(self, flights: ArrayInt) -> ArrayBool:
        """From where the trajectory is now: by it, then by a polynomial, then through a random point; who found something."""
        found = np.zeros(len(flights), bool)
        if not len(flights):
            return found
        start = self._server.state(flights, self._time[flights])
        for kind in (EgoStart.WARM, EgoStart.POLYNOMIAL, EgoStart.RANDOM):
            left = np.flatnonzero(~found)
            if len(left):
                found[left] = self._plan(flights[left], start[left], np.full(len(left), kind))
        return found

    def _check(self, flights: ArrayInt) -> None:
        """Walk the trajectories ahead; where one is blocked plan at once, or stop, or keep trying."""
        if not len(flights):
            return
        hit = self._blocked(flights)
        blocked = np.flatnonzero(np.isfinite(hit))
        which = flights[blocked]
        found = self._from_trajectory(which)
        self._state[which[found]] = EgoState.FOLLOW
        lost, soon = which[~found], hit[blocked][~found] < self.config.emergency
        self._state[lost] = np.where(soon, EgoState.STOP, EgoState.REPLAN)
        self._escape[lost[soon]] = True

    def _blocked(self, flights: ArrayInt) -> Array:
        """Time until each trajectory meets an obstacle [s], (k,); infinite where it does not."""
        server = self._server
        now, duration = self._time[flights] - server.begin[flights], server.duration[flights]
        until = np.where(now < 2.0 / 3.0 * duration, 2.0 / 3.0 * duration, duration)
        count = int(np.ceil(np.max((until - now) / _CHECK_STEP, initial=0.0)))
        if count <= 0:
            return np.full(len(flights), np.inf)
        later = _CHECK_STEP * np.arange(count)
        time = now[:, None] + later
        taken = self._maps.occupied(flights, server.ahead(flights, time)) & (time < until[:, None])
        return np.where(taken.any(axis=1), later[np.argmax(taken, axis=1)], np.inf)

    # ---- plans ------------------------------------------------------------------------------------------------------

    def _plan(self, flights: ArrayInt, start: Array, kind: ArrayAny) -> ArrayBool:
        """Return one try of flights (k,); who found a trajectory, which then is the next to be followed."""
        speed, acceleration = self._mission.speed[flights], self._mission.acceleration[flights]
        target = local_targets(
            self._references, flights, self._progress[flights], start[:, 0], self.config.horizon, speed, acceleration
        )
        self._progress[flights] = target.progress
        goals = np.stack([target.position, target.velocity, np.zeros_like(target.position)], axis=1)
        server, resolution = self._server, self.settings.resolution
        asked = Questions(
            np.arange(len(flights)),
            start,
            goals,
            speed,
            acceleration,
            self._draws(flights, kind),
            self._failures[flights],
            np.asarray(kind, np.int64),
            server.control[flights],
            server.count[flights],
            server.interval[flights],
            np.minimum(self._time[flights] - server.begin[flights], _EVER),
        )
        found = self._tries.run(CellTable(self._maps, self._mission, flights, resolution), asked)
        good = found.outcome == EgoOutcome.FOUND
        self._work["expansions"][flights] += found.expansions
        self._work["evaluations"][flights] += found.evaluations
        self._failures[flights] = np.where(good, 0.0, self._failures[flights] + 1.0)
        self.outcomes[flights, found.outcome] += 1
        self._replans[flights] += good
        self._server.take(
            flights[good], found.control[good], found.count[good], found.interval[good], self._time[flights[good]]
        )
        self._taken[flights[good]] = True
        return good

    def _draws(self, flights: ArrayInt, kind: ArrayAny) -> Array:
        """Return two uniform numbers for each random try."""
        keys = flight_key(self._mission.seed, self._mission.flight[flights], _EPISODE)
        drawn = uniforms(keys, self._drawn[flights], Stream.COURSE, 2)
        self._drawn[flights] += np.asarray(kind) == EgoStart.RANDOM
        return drawn


def _yaw_of(attitude: Array) -> Array:
    """Heading of quaternions x, y, z, w (n, 4) [rad]."""
    x, y, z, w = attitude.T
    return np.asarray(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))
