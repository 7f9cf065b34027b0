"""Trajectories of two polynomials: one that flies on, and one that comes to rest behind it; and proofs that limits hold.

Of a polynomial in Bernstein form the coefficients are a convex hull: no point of it is longer than the longest of them, nor
lower than the lowest. So speed, acceleration, thrust and jerk are proved for every instant, not for samples.
Source: Farouki, "The Bernstein polynomial basis: A centennial retrospective", CAGD 2012.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import comb

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.planners.common.reference import evaluate_polynomial, quintic
from airworthy.planners.known_free.limits import GRAVITY, MotionLimits

__all__ = ["StoppingPlans", "StoppingTrajectory", "hulls", "parts_within_limits", "pieces", "stopping", "within_limits"]


PARTS = 4
"""Of a polynomial, each of which is proved by itself, ours."""


@cache
def _to_bernstein(degree: int) -> Array:
    """Matrix from ascending powers on (0, 1) to Bernstein coefficients, (degree + 1, degree + 1)."""
    return np.array([[comb(i, j) / comb(degree, j) if j <= i else 0.0 for j in range(degree + 1)] for i in range(degree + 1)])


@cache
def hull_matrix() -> tuple[Array, tuple[slice, ...]]:
    """Return the matrix (18, 6) from scaled coefficients to those of the derivatives 0 to 3, and the rows of each."""
    parts = []
    for order in range(4):
        factor = np.array([np.prod(np.arange(p - order + 1, p + 1)) if p >= order else 0.0 for p in range(6)], np.float64)
        part = np.zeros((6 - order, 6))
        part[:, order:] = _to_bernstein(5 - order) * factor[order:]
        parts.append(part)
    ends = np.cumsum([0, *map(len, parts)]).tolist()
    return np.concatenate(parts), tuple(slice(a, b) for a, b in pairwise(ends))


def hulls(coefficients: Array, duration: Array) -> list[Array]:
    """Return Bernstein coefficients (k, 6 - order, 3) of derivatives 0 to 3 of polynomials (k, 6, 3) over durations (k,)."""
    matrix, rows = hull_matrix()
    powers = duration[:, None] ** np.arange(6)
    every = matrix @ (coefficients * powers[:, :, None])
    return [every[:, row] / powers[:, order, None, None] for order, row in enumerate(rows)]


def within_limits(coefficients: Array, duration: Array, limits: MotionLimits, share: float = 1.0) -> tuple[ArrayBool, Array]:
    """Tell whether polynomials (k, 6, 3) keep one flight's limits all along, (k,), and what their speed never exceeds (k,).

    Args:
        coefficients: Ascending powers of time.
        duration: (k,) [s]
        limits: Of the flight.
        share: Of limits of acceleration and jerk that is not to be exceeded.
    """
    _, velocity, pull, jerk = hulls(coefficients, duration)
    lift = pull + np.array([0.0, 0.0, GRAVITY])
    speed = _longest(velocity)
    keeps = (
        (speed <= 1.02 * limits.speed)
        & (_longest(pull) <= share * limits.acceleration)
        & (_longest(lift) <= limits.thrust)
        & (lift[..., 2].min(1) >= limits.least)
        & (_longest(jerk) <= share * limits.jerk)
    )
    return keeps, speed


def pieces(coefficients: Array, duration: Array, count: int) -> tuple[Array, Array]:
    """Cut polynomials (k, 6, 3) into equal parts, (k count, 6, 3), and their durations; hulls of parts are much tighter.

    Args:
        coefficients: Ascending powers of time.
        duration: (k,) [s]
        count: Of the parts of each.
    """
    begin = duration[:, None] * (np.arange(count) / count)
    powers = begin[..., None] ** np.arange(6)
    parts = np.zeros((*begin.shape, 6, 3))
    for power in range(6):
        for lower in range(power + 1):
            scale = comb(power, lower) * powers[..., power - lower]
            parts[:, :, lower] += scale[..., None] * coefficients[:, None, power]
    return parts.reshape(-1, 6, 3), np.repeat(duration / count, count)


def parts_within_limits(found: Array, duration: Array, limits: MotionLimits, share: float = 1.0) -> tuple[ArrayBool, Array]:
    """Tell part by part, whose hulls are tighter, what `within_limits` tells; the readable twin of `limit_proofs`.

    Args:
        found: Polynomials (k, 6, 3), ascending powers of time.
        duration: (k,) [s]
        limits: Of the flight.
        share: Of limits of acceleration and jerk that is not to be exceeded.
    """
    parts, time = pieces(found, duration, PARTS)
    keeps, most = within_limits(parts, time, limits, share)
    return np.all(keeps.reshape(-1, PARTS), axis=1), most.reshape(-1, PARTS).max(1)


def _longest(vectors: Array) -> Array:
    """Length of the longest of vectors (k, m, 3); (k,)."""
    return np.asarray(np.sqrt((vectors * vectors).sum(2).max(1)))


def stopping(position: Array, velocity: Array, limits: MotionLimits) -> tuple[Array, Array]:
    """Return polynomials (k, 6, 3) straight on from velocities (k, 3), without acceleration, to rest, and durations (k,).

    Speed falls as 1 - 3 s^2 + 2 s^3: acceleration is at most 1.5, jerk 6 speeds by duration and its square.

    Args:
        position: (k, 3) [m], world.
        velocity: (k, 3) [m/s], world.
        limits: Of the flight.
    """
    speed = np.linalg.norm(velocity, axis=1)
    duration = np.maximum(np.maximum(1.5 * speed / limits.braking, np.sqrt(6.0 * speed / limits.jerk)), 1e-3)
    found = np.zeros((len(position), 6, 3))
    found[:, 0], found[:, 1] = position, velocity
    found[:, 3] = -velocity / duration[:, None] ** 2
    found[:, 4] = 0.5 * velocity / duration[:, None] ** 3
    return found, duration


@dataclass(frozen=True, eq=False)
class StoppingTrajectory:
    """What one flight is to do: fly on, stop, rest."""

    coefficients: Array
    """(2, 6, 3) ascending powers of time since each began."""
    duration: Array
    """(2,) [s]"""
    begin: float
    """On the clock of the flight [s]."""

    def points(self, since: float, spacing: float, speed: float) -> Array:
        """Return points (m, 3) [m] from a time [s] since it began to its rest, no farther apart than `spacing` [m].

        Args:
            since: [s]
            spacing: [m]
            speed: That is never exceeded [m/s].
        """
        total = float(self.duration.sum())
        left = max(total - since, 0.0)
        count = max(2, int(np.ceil(left * max(speed, 1e-3) / spacing)) + 1)
        times = np.linspace(min(since, total), total, count)
        second = times > self.duration[0]
        local = np.where(second, times - self.duration[0], times)
        return evaluate_polynomial(self.coefficients[second.astype(int)], local)


class StoppingPlans:
    """Trajectories of n flights in arrays: those in force, and those that begin soon.

    Args:
        position: Where each rests before its first [m], (n, 3).
    """

    def __init__(self, position: Array):
        n = len(position)
        self.coefficients, self.duration = np.zeros((n, 2, 6, 3)), np.zeros((n, 2))
        self.coefficients[:, :, 0] = np.asarray(position)[:, None]
        self.begin = np.zeros(n)
        self._next = [self.coefficients.copy(), self.duration.copy(), np.full(n, np.inf)]

    def rest(self, flight: int, position: Array) -> None:
        """Let a flight rest at a point (3,) [m]."""
        self.coefficients[flight], self.duration[flight] = 0.0, 0.0
        self.coefficients[flight, :, 0] = position
        self._next[2][flight] = np.inf

    def put(self, flight: int, plan: StoppingTrajectory) -> None:
        """Let a flight follow a trajectory from its begin on."""
        for held, new in zip(self._next, (plan.coefficients, plan.duration, plan.begin), strict=True):
            held[flight] = new

    def withdraw(self, flight: int) -> None:
        """Forget a trajectory that has not begun."""
        self._next[2][flight] = np.inf

    def settle(self, time: Array) -> None:
        """Put in force what begins by times (n,)."""
        due = time >= self._next[2] - 1e-9
        if due.any():
            for held, new in zip((self.coefficients, self.duration, self.begin), self._next, strict=True):
                held[due] = new[due]
            self._next[2][due] = np.inf

    def of(self, flight: int) -> StoppingTrajectory:
        """Return what a flight follows."""
        return StoppingTrajectory(self.coefficients[flight], self.duration[flight], float(self.begin[flight]))

    def state(self, flights: ArrayInt, time: Array) -> tuple[Array, Array, Array]:
        """Return position, velocity, acceleration (k, 3) of flights (k,) at times (k,), at rest behind the end."""
        since = np.maximum(time - self.begin[flights], 0.0)
        duration = self.duration[flights]
        second = since > duration[:, 0]
        local = np.where(second, np.minimum(since - duration[:, 0], duration[:, 1]), since)
        part = self.coefficients[flights, second.astype(int)]
        over = (since >= duration.sum(1))[:, None]
        found = [evaluate_polynomial(part, local, order) for order in range(3)]
        return found[0], np.where(over, 0.0, found[1]), np.where(over, 0.0, found[2])


def quintics(start: Array, end: Array, duration: Array) -> Array:
    """Return quintics (k, 6, 3) between states.

    Args:
        start: Position, velocity, acceleration, (3, 3) or (k, 3, 3).
        end: The same, (k, 3, 3).
        duration: (k,) [s]
    """
    return quintic(np.broadcast_to(start, (len(duration), 3, 3)), end, duration)
