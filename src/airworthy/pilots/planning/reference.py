"""The global reference from start to goal, and the local target on it.

Source: spec/planners sections 3.1 and 3.2 (EGO-Planner); PGO takes the same with ends of at least a second. One reference per
flight, held in arrays over flights, so that walking them costs one set of array operations for all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.pilots.planning.reference_polynomials import evaluate_polynomial, least_jerk

__all__ = ["PIECE", "References", "Targets", "local_targets"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

PIECE = 4.0
"""Longest distance between points of a reference [m]."""
_STEPS = 20
"""Steps per horizon in which a reference is walked."""


class References:
    """References of n flights; those that were never set are points.

    Args:
        count: Flights.

    Attributes:
        duration: Of each [s], (n,).
        goal: Where each ends [m], (n, 3).
    """

    def __init__(self, count: int):
        self._coefficients = np.zeros((count, 1, 6, 3))
        self._ends = np.zeros((count, 1))
        self.duration, self.goal = np.zeros(count), np.zeros((count, 3))

    def aim(
        self,
        place: int,
        start: ArrayLike,
        goal: ArrayLike,
        speed: float,
        *,
        velocity: ArrayLike | None = None,
        least: float = 0.0,
    ) -> None:
        """Set one flight's reference: the line from start to goal, cut into pieces, at rest in the end.

        Args:
            place: Which flight.
            start: [m], (3,).
            goal: [m], (3,).
            speed: On the inner pieces; the first and the last take twice their time [m/s].
            velocity: At the start [m/s], (3,); None: at rest.
            least: Shortest time of the first and the last piece [s].
        """
        a, b = np.asarray(start, np.float64), np.asarray(goal, np.float64)
        pieces = int(np.linalg.norm(b - a) // PIECE) + 1
        points = a + np.linspace(0.0, 1.0, pieces + 1)[:, None] * (b - a)
        times = np.maximum(np.linalg.norm(np.diff(points, axis=0), axis=1) / speed, 1e-3)
        for end in (0, -1):
            times[end] = max(2.0 * times[end], least)
        rest = np.zeros(3)
        before = rest if velocity is None else np.asarray(velocity, np.float64)
        self._put(place, least_jerk(points, times, np.stack([before, rest]), np.zeros((2, 3))), times)
        self.goal[place] = b

    def _put(self, place: int, coefficients: Array, times: Array) -> None:
        more = len(times) - self._ends.shape[1]
        if more > 0:
            self._coefficients = np.pad(self._coefficients, ((0, 0), (0, more), (0, 0), (0, 0)))
            self._ends = np.pad(self._ends, ((0, 0), (0, more)), mode="edge")
        self._coefficients[place, : len(times)], self._ends[place] = coefficients, np.inf
        self._ends[place, : len(times)] = np.cumsum(times)
        self.duration[place] = self._ends[place, len(times) - 1]

    def sample(self, places: ArrayLike, time: ArrayLike, order: int = 0) -> Array:
        """Positions, or derivatives, of flights (k,) at times (k, m) [s] clipped to their references; (k, m, 3)."""
        which = np.asarray(places, np.int64)
        t = np.clip(np.asarray(time, np.float64), 0.0, self.duration[which][:, None])
        ends = self._ends[which]
        piece = np.sum(ends[:, None, :] < t[..., None], axis=-1)
        piece = np.minimum(piece, ends.shape[1] - 1)
        rows = np.arange(len(which))[:, None]
        begin = np.where(piece > 0, ends[rows, np.maximum(piece - 1, 0)], 0.0)
        return evaluate_polynomial(self._coefficients[which[:, None], piece], t - begin, order)


@dataclass(frozen=True, eq=False)
class Targets:
    """Local targets of k flights."""

    position: Array
    """(k, 3) [m]"""
    velocity: Array
    """(k, 3) [m/s]"""
    progress: Array
    """Where on the reference the next walk begins [s], (k,)."""


def local_targets(
    references: References,
    places: ArrayLike,
    progress: ArrayLike,
    start: ArrayLike,
    horizon: float,
    speed: ArrayLike,
    acceleration: ArrayLike,
) -> Targets:
    """The first points of references that are `horizon` away from where the flights plan from; past the end, the goal.

    Args:
        references: Of all flights.
        places: Which flights, (k,).
        progress: From where the references are walked [s], (k,).
        start: Where the flights plan from [m], (k, 3).
        horizon: [m]
        speed: Caps (k,) [m/s].
        acceleration: Caps (k,) [m/s^2].

    Returns:
        Targets. The velocity is the reference's, zero where the goal is within the way of a stop.
    """
    which, begin, v = np.asarray(places, np.int64), np.asarray(progress, np.float64), np.asarray(speed, np.float64)
    step = horizon / _STEPS / v
    left = references.duration[which] - begin
    count = max(1, int(np.ceil(np.max(left / step, initial=0.0))) + 1)
    time = begin[:, None] + step[:, None] * np.arange(count)
    walked = time < references.duration[which][:, None]
    points = references.sample(which, time)
    away = np.where(walked, np.linalg.norm(points - np.asarray(start, np.float64)[:, None], axis=-1), np.inf)
    far: NDArray[np.bool_] = np.asarray(walked & (away >= horizon))
    found: NDArray[np.bool_] = np.asarray(np.any(far, axis=1))
    rows, at = np.arange(len(which)), np.argmax(far, axis=1)
    nearest = _nearest_before(away, np.where(found, at, count - 1))
    position = np.where(found[:, None], points[rows, at], references.goal[which])
    goal_time = np.where(found, time[rows, at], references.duration[which])
    velocity = references.sample(which, goal_time[:, None], 1)[:, 0]
    braking = v * v / (2.0 * np.asarray(acceleration, np.float64))
    stops = np.linalg.norm(references.goal[which] - position, axis=1) < braking
    return Targets(position, np.where(stops[:, None], 0.0, velocity), np.where(found, time[rows, nearest], begin))


def _nearest_before(away: Array, last: Ints) -> Ints:
    """Index of the least distance up to `last`."""
    seen = np.arange(away.shape[1]) <= last[:, None]
    return np.argmin(np.where(seen, away, np.inf), axis=1)
