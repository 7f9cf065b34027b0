"""Trajectories that one flight may choose from: quintics to points on its route, each with a stop behind it.

Ends lie along the part of the route that is known to be free, with speeds from which the vehicle still stops before the part
ends, and no faster than the bends behind them allow; durations are the shortest ones that its limits allow, and longer ones.
They are ranked by when the end of the part would be reached.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.planners.known_free.limit_proofs import parts_keep_limits
from airworthy.planners.known_free.limits import MotionLimits
from airworthy.planners.known_free.motion import StoppingTrajectory, quintics, stopping
from airworthy.planners.known_free.path import SPACING

__all__ = ["StoppingCandidates", "brakes", "candidates", "route_speeds", "stopping_speed", "time_left"]

# Ours: shares of the free part at which ends lie, shares of the fastest speed there, and of the shortest conceivable duration.
_PLACES = np.array([1.0, 0.8, 0.62, 0.47, 0.34, 0.24, 0.15])
_SPEEDS = np.array([1.0, 0.85, 0.65, 0.4, 0.0])
_STRETCH = np.array([1.0, 1.15, 1.35, 1.6, 2.0, 3.5])
_EVEN = np.array([0.97, 1.0, 1.08])
_AVERAGE = 0.6
"""Mean acceleration over the largest of a smooth change of speed."""
_BEND, _BENDING = 5, 0.5
"""Points to either side by which bends are measured, and the share of acceleration that they may ask for, ours."""
_LEAST = 0.1
"""Shortest way worth a plan [m]."""


@dataclass(frozen=True, eq=False)
class StoppingCandidates:
    """The best first."""

    coefficients: Array
    """(k, 2, 6, 3)"""
    duration: Array
    """(k, 2) [s]"""
    speed: Array
    """Never exceeded, (k,) [m/s]."""
    cost: Array
    """Until the end of what is free would be reached, (k,) [s]."""
    tried: int
    """Polynomials whose limits were looked at: the work."""

    def __len__(self) -> int:
        return len(self.speed)

    def only(self, which: ArrayInt) -> StoppingCandidates:
        """Return some of them (m,), in that order; the work stays what it was."""
        return StoppingCandidates(
            self.coefficients[which], self.duration[which], self.speed[which], self.cost[which], self.tried
        )

    def and_those(self, others: StoppingCandidates) -> StoppingCandidates:
        """Return these, and others behind them."""
        parts = [
            np.concatenate([getattr(self, name), getattr(others, name)])
            for name in ("coefficients", "duration", "speed", "cost")
        ]
        return StoppingCandidates(parts[0], parts[1], parts[2], parts[3], self.tried + others.tried)

    def trajectory(self, which: int, begin: float) -> StoppingTrajectory:
        """Return one of them that begins at a time [s]."""
        return StoppingTrajectory(self.coefficients[which], self.duration[which], begin)


def stopping_speed(room: Array, limits: MotionLimits) -> Array:
    """Return the fastest speeds (k,) [m/s] from which `motion.stopping` comes to rest within (k,) [m]."""
    room = np.maximum(room, 0.0)
    # The way is half of speed times duration, which is the longer of two: 1.5 v / a and sqrt(6 v / j).
    return np.minimum(np.sqrt(room * limits.braking / 0.75), (2.0 * room * np.sqrt(limits.jerk / 6.0)) ** (2.0 / 3.0))


def candidates(start: Array, path: Array, last: int, limits: MotionLimits) -> StoppingCandidates:
    """Return trajectories of one flight.

    Args:
        start: Position, velocity, acceleration, (3, 3).
        path: Points of the route, `SPACING` apart, (m, 3) [m].
        last: Of them the last that may be reached.
        limits: Of the flight.
    """
    step = np.linalg.norm(np.diff(path[: last + 1], axis=0), axis=1)
    along = np.concatenate([[0.0], np.cumsum(step)])
    free = float(along[-1])
    place = np.unique(np.searchsorted(along, _PLACES * free, side="left").clip(1, last))
    place = place[along[place] >= min(_LEAST, free)]
    tangent = path[np.minimum(place + 4, len(path) - 1)] - path[np.maximum(place - 4, 0)]
    tangent /= np.maximum(np.linalg.norm(tangent, axis=1), 1e-9)[:, None]
    reach = np.sqrt(float(start[1] @ start[1]) + 2.0 * _AVERAGE * limits.acceleration * along[place])
    full = route_speeds(path, limits)
    fastest = np.minimum.reduce([stopping_speed(free - along[place], limits), reach, full[place]])
    which, speed = np.repeat(place, len(_SPEEDS)), (fastest[:, None] * _SPEEDS).reshape(-1)
    tangent = np.repeat(tangent, len(_SPEEDS), axis=0)
    kept = np.ones(len(which), bool)
    kept[1:] = (which[1:] != which[:-1]) | (speed[1:] < speed[:-1] - 1e-3)
    which, speed, tangent = which[kept], speed[kept], tangent[kept]
    duration = _durations(start, path[which], speed, limits)
    tries = duration.shape[1]
    duration = duration.reshape(-1)
    end = np.zeros((len(which), 3, 3))
    end[:, 0], end[:, 1] = path[which], speed[:, None] * tangent
    end = np.repeat(end, tries, axis=0)
    found = quintics(start, end, duration)
    keeps, most = parts_keep_limits(found, duration, limits)
    # Of each end the three shortest that keep the limits.
    table = keeps.reshape(-1, tries)
    good = np.flatnonzero((table & (np.cumsum(table, axis=1) <= 3)).reshape(-1))
    cost = duration + np.repeat(time_left(full, which, last, speed, limits), tries)
    order = good[np.argsort(cost[good], kind="stable")]
    return _with_stops(found[order], duration[order], end[order], most[order], cost[order], limits)


def route_speeds(path: Array, limits: MotionLimits) -> Array:
    """Return how fast each point (m, 3) [m] of a route may be passed, (m,) [m/s], so that what bends behind it is flown, too.

    Args:
        path: `SPACING` apart, also what lies behind the part that may be reached.
        limits: Of the flight.
    """
    count, full = len(path), np.full(len(path), max(float(limits.speed), 1e-3))
    if count <= 2 * _BEND:
        return full
    before, after = path[_BEND:-_BEND] - path[: -2 * _BEND], path[2 * _BEND :] - path[_BEND:-_BEND]
    lengths = np.linalg.norm(before, axis=1), np.linalg.norm(after, axis=1)
    cosine = (before * after).sum(1) / np.maximum(lengths[0] * lengths[1], 1e-9)
    angle = np.arccos(np.clip(cosine, -1.0, 1.0))
    radius = 0.5 * (lengths[0] + lengths[1]) / np.maximum(angle, 1e-3)
    full[_BEND:-_BEND] = np.minimum(full[_BEND:-_BEND], np.sqrt(_BENDING * limits.acceleration * radius))
    # From the last point back: no faster than what may still be slowed down.
    slower = 2.0 * _AVERAGE * float(limits.acceleration) * SPACING
    square = full * full + slower * np.arange(count)
    return np.asarray(np.sqrt(np.minimum.accumulate(square[::-1])[::-1] - slower * np.arange(count)))


def time_left(full: Array, place: Array, last: int, speed: Array, limits: MotionLimits) -> Array:
    """Return the time (k,) [s] from points of a route to another at full speed, and what is lost until speeds are full again.

    Args:
        full: How fast each point may be passed, (m,) [m/s]; see `route_speeds`.
        place: Points (k,).
        last: The other.
        speed: At its beginning, (k,) [m/s].
        limits: Of the flight.
    """
    time = np.concatenate([[0.0], np.cumsum(SPACING / full)])
    lack = np.maximum(full[place] - speed, 0.0)
    return np.asarray(time[last] - time[place] + lack**2 / (2.0 * _AVERAGE * limits.acceleration * full[place]))


def brakes(start: Array, limits: MotionLimits, share: float = 1.0) -> StoppingCandidates:
    """Return trajectories to rest, straight on, the shortest first.

    Args:
        start: Position, velocity, acceleration, (3, 3).
        limits: Of the flight.
        share: Of its acceleration and jerk that may be asked for.
    """
    speed = float(np.linalg.norm(start[1]))
    shortest = max(1.2 * speed / (share * float(limits.acceleration)), 0.25)
    duration: Array = shortest * 1.25 ** np.arange(10, dtype=np.float64)
    end = np.zeros((len(duration), 3, 3))
    end[:, 0] = start[0] + start[1] * (0.45 * duration[:, None]) + start[2] * (0.05 * duration[:, None] ** 2)
    found = quintics(start, end, duration)
    # Nobody brakes less for being too fast already; and what is proved part by part may be asked for nearly whole.
    good, most = parts_keep_limits(found, duration, replace(limits, speed=np.array(np.inf)), share)
    order = np.concatenate([np.flatnonzero(good), np.flatnonzero(~good)[-1:]])
    return _with_stops(found[order], duration[order], end[order], most[order], duration[order], limits)


def _durations(start: Array, end: Array, speed: Array, limits: MotionLimits) -> Array:
    """Return durations (k, tries) [s] worth a try from a state to points (k, 3) with speeds (k,), rising.

    Multiples of what is roughly the shortest, and that of an even change of speed, in which nothing slows down first.
    """
    displacement = end - start[0]
    length = np.maximum(np.linalg.norm(displacement, axis=1), 1e-3)
    before = np.maximum(displacement @ start[1] / length, 0.0)
    a = _AVERAGE * limits.acceleration
    peak = np.sqrt(np.maximum(a * length + 0.5 * (before**2 + speed**2), 0.0))
    peak = np.maximum(np.minimum(peak, limits.speed), np.maximum(before, speed))
    ramps = (2.0 * peak - before - speed) / a
    cruise = (length - (2.0 * peak**2 - before**2 - speed**2) / (2.0 * a)) / np.maximum(peak, 1e-3)
    jerky = (30.0 * length / limits.jerk) ** (1.0 / 3.0)
    shortest = np.maximum(ramps + np.maximum(cruise, 0.0), np.where(before + speed < 0.5, jerky, 0.1))
    even = 2.0 * length / np.maximum(before + speed, 0.2)
    return np.sort(np.concatenate([shortest[:, None] * _STRETCH, even[:, None] * _EVEN], axis=1), axis=1)


def _with_stops(
    found: Array, duration: Array, end: Array, most: Array, cost: Array, limits: MotionLimits
) -> StoppingCandidates:
    stop, time = stopping(end[:, 0], end[:, 1], limits)
    return StoppingCandidates(np.stack([found, stop], 1), np.stack([duration, time], 1), most, cost, len(duration))
