"""The trajectory server: set-points from splines, with the yaw looking ahead.

Source: spec/planners section 3.9. Each flight holds the trajectory that it follows and the one that will take over.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.ego.ego_kernel import MOST
from airworthy.pilots.planning.bspline import evaluate_uniform
from airworthy.pilots.planning.interface import Setpoints

__all__ = ["SplineServer"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

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

    def hold(self, which: Bools, position: Array, yaw: Array) -> None:
        """Before the first trajectory: where flights are, and how they look."""
        self.control[which] = position[which, None]
        self._yaw[which] = yaw[which]

    def take(self, places: Ints, control: Array, count: Ints, interval: Array, begin: Array) -> None:
        """New trajectories of flights (k,), which begin and take over at times (k,)."""
        for held, new in zip(self._next, (control, count, interval), strict=True):
            held[places] = new
        self._next_begin[places] = begin

    def delay(self, places: Ints, seconds: Array) -> None:
        """Let the newest trajectories of flights (k,) begin later by (k,)."""
        self._next_begin[places] += seconds

    def advance(self, time: Array) -> None:
        """Follow those trajectories that begin by now, times (n,)."""
        due = time >= self._next_begin
        if due.any():
            for held, new in zip((self.control, self.count, self.interval), self._next, strict=True):
                held[due] = new[due]
            self.begin[due] = self._next_begin[due]
            self._next_begin[due] = np.inf

    def state(self, places: Ints, time: Array) -> Array:
        """Position, velocity, acceleration of flights (k,) at times (k,), (k, 3, 3); at rest where the trajectory is over."""
        t = (time - self.begin[places])[:, None]
        parts = [
            evaluate_uniform(self.control[places], self.interval[places], t, order, self.count[places])[:, 0]
            for order in range(3)
        ]
        over = t[:, 0] >= self.duration[places]
        parts[1][over] = parts[2][over] = 0.0
        return np.stack(parts, axis=1)

    def ahead(self, places: Ints, time: Array) -> Array:
        """Positions (k, m, 3) of flights (k,) at times (k, m) since their trajectories began."""
        return evaluate_uniform(self.control[places], self.interval[places], time, 0, self.count[places])

    def setpoints(self, time: Array) -> Setpoints:
        """What to follow at times (n,); a later time than that of the call before moves the yaw on."""
        self.advance(time)
        every = np.arange(len(time))
        state = self.state(every, time)
        self._look(state[:, 0], time)
        return Setpoints(state[:, 0], state[:, 1], state[:, 2], self._yaw.copy(), self._rate.copy())

    def _look(self, position: Array, time: Array) -> None:
        every = np.arange(len(time))
        gap = np.where(np.isnan(self._time), 0.01, time - self._time)
        moved = gap > 0.0
        over = time - self.begin >= self.duration
        way = self.ahead(every, (time - self.begin + AHEAD)[:, None])[:, 0] - position
        looks = moved & ~over & (np.linalg.norm(way, axis=1) > 0.1) & (np.hypot(way[:, 0], way[:, 1]) > 1e-9)
        wanted = np.where(looks, np.arctan2(way[:, 1], way[:, 0]), self._yaw)
        turn = np.remainder(wanted - self._yaw + np.pi, 2.0 * np.pi) - np.pi
        most = TURN * np.maximum(gap, 0.0)
        limited = np.clip(turn, -most, most)
        rate = np.where(gap > 0.0, limited / np.where(gap > 0.0, gap, 1.0), 0.0)
        # The source averages yaw with the one before only where the limit does not bind.
        step = np.where(np.abs(turn) <= most, 0.5 * limited, limited)
        self._yaw = np.where(moved, np.remainder(self._yaw + step + np.pi, 2.0 * np.pi) - np.pi, self._yaw)
        self._rate = np.where(moved, np.where(over, 0.0, 0.5 * self._rate + 0.5 * rate), self._rate)
        self._time = np.where(moved, time, self._time)
