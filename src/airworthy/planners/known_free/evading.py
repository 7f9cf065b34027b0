"""Ways out of the way of what moves: straight on to rest, or to rest somewhere around, in space that is known to be free."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.planners.common.reference import evaluate_polynomial
from airworthy.planners.known_free.candidates import StoppingCandidates, brakes, candidates
from airworthy.planners.known_free.limits import MotionLimits
from airworthy.planners.known_free.motion import StoppingPlans
from airworthy.planners.known_free.movers import MoversSeen
from airworthy.planners.known_free.path import SPACING

__all__ = ["Evasion", "clear_of", "rays_around", "room_of", "ways"]

AHEAD = np.arange(0.0, 2.55, 0.1)
"""When it is looked whether something that moves comes near, from now on [s]; ours: at 3 m/s farther than a camera sees."""
_RAYS, _LONG = 16, 24
"""Directions in which a way out is looked for, and points of each; ours."""
_ROOM, _WORTH = 0.5, 0.02
"""More room than that is worth nothing, and for so much more of it another way is taken [m]; ours."""
_BRAKES = 1.3
"""Share of its limits with which a flight stops in need."""


def ways(coefficients: Array, duration: Array, since: Array) -> Array:
    """Return where trajectories are at times since they began, at rest behind their ends, (k, m, 3) [m].

    Args:
        coefficients: (k, 2, 6, 3) ascending powers of time.
        duration: (k, 2) [s]
        since: (m,) [s]
    """
    first = duration[:, :1]
    second = since > first
    local = np.where(second, np.minimum(since - first, duration[:, 1:]), np.maximum(since, 0.0))
    which = second.astype(np.int64)
    return evaluate_polynomial(coefficients[np.arange(len(duration))[:, None], which], local)


def clear_of(gap: Array) -> ArrayBool:
    """Return which ways, by the room that they leave at each time, (k, m) [m], come near nothing, or away from it, (k,).

    Who has too little room already may have no less, and has to have enough at the end.
    """
    least = np.minimum(gap[:, :1], 0.0)
    return np.asarray((gap >= least - 1e-9).all(1) & (gap[:, -1] >= 0.0))


def room_of(gap: Array) -> Array:
    """Return what ways are worth by the room that they leave at each time, (k, m) [m]; (k,).

    The least of it after the first moments, which nobody can change any more; and a little of the mean, for who leaves sooner.
    """
    held = np.minimum(gap, _ROOM)
    return np.asarray(held[:, 3:].min(1) + 0.3 * held.mean(1))


def rays_around(here: Array) -> list[Array]:
    """Return straight level paths from a point (3,) in all directions, (_LONG, 3) [m] each."""
    angle = 2.0 * np.pi * np.arange(_RAYS) / _RAYS
    away = np.stack([np.cos(angle), np.sin(angle), np.zeros(_RAYS)], 1)
    return [here + SPACING * np.arange(_LONG)[:, None] * direction for direction in away]


class Evasion:
    """Whether what flights follow, or may follow, comes near what moves; and ways out.

    Args:
        movers: What they see move.
        plans: What they follow.
        body: Radius of what collides [m].
    """

    def __init__(self, movers: MoversSeen, plans: StoppingPlans, body: float):
        self._movers, self._plans, self._body = movers, plans, body

    def is_threatened(self, flight: int, time: float) -> bool:
        """Return whether something that moves comes near what a flight follows, seen from a time [s]."""
        return self._movers.any(flight) and not bool(clear_of(self._gap_of_plan(flight, time))[0])

    def spared(self, flight: int, offered: StoppingCandidates, begin: float) -> StoppingCandidates:
        """Return those trajectories that come near nothing that moves.

        Args:
            flight: Whose.
            offered: To it.
            begin: When they would begin [s].
        """
        if not self._movers.any(flight):
            return offered
        return offered.only(np.flatnonzero(clear_of(self._gap(flight, offered.coefficients, offered.duration, begin, begin))))

    def ways_out(
        self, flight: int, begin: float, here: Array, rays: list[Array], free: ArrayInt, limits: MotionLimits
    ) -> StoppingCandidates:
        """Return stops straight on, and trajectories to rest along rays, that leave more room than what is followed; the most
        first.

        Args:
            flight: Whose.
            begin: When they would begin [s].
            here: Position, velocity, acceleration, (3, 3).
            rays: Paths (m, 3) [m].
            free: Of each, how many points are known to be free.
            limits: Of the flight.
        """
        offered = brakes(here, limits, _BRAKES)
        for ray, count in zip(rays, free.tolist(), strict=True):
            if count > 4:
                offered = offered.and_those(candidates(here, ray, min(count, len(ray)) - 1, limits))
        worth = room_of(self._gap(flight, offered.coefficients, offered.duration, begin, begin))
        better = np.flatnonzero(worth > room_of(self._gap_of_plan(flight, begin))[0] + _WORTH)
        return offered.only(better[np.argsort(-worth[better], kind="stable")])

    def _gap(self, flight: int, coefficients: Array, duration: Array, begin: float, time: float) -> Array:
        """Return the room that trajectories (k, ...) which begin at some time leave from a time on, (k, m) [m]."""
        return self._movers.gap(flight, ways(coefficients, duration, AHEAD + (time - begin)), AHEAD + time, self._body)

    def _gap_of_plan(self, flight: int, time: float) -> Array:
        plan = self._plans.of(flight)
        return self._gap(flight, plan.coefficients[None], plan.duration[None], plan.begin, time)
