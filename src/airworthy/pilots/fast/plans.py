"""The plans that n flights follow, and those that will hold soon; set-points of all in a few array operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.fast.records import MOST_POINTS
from airworthy.pilots.fast.yaw import YawPlan
from airworthy.pilots.planning.bspline import derivative, evaluate
from airworthy.pilots.planning.interface import Setpoints

__all__ = ["FlightPlans", "Plan"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

_YAW_POINTS = 512


@dataclass(frozen=True, eq=False)
class Plan:
    """What one flight is to do."""

    control: Array
    """(N, 3) [m]"""
    knots: Array
    """(N + 4,) [s]"""
    yaw: YawPlan
    begin: float
    """When it begins, on the clock of the flight [s]."""


class FlightPlans:
    """Plans of n flights in arrays; a flight without one rests.

    Args:
        position: Where each rests before its first plan [m], (n, 3).
        yaw: Its heading there [rad], (n,).

    Attributes:
        begin: When each plan began [s], (n,).
        duration: Of each [s], (n,).
    """

    def __init__(self, position: Array, yaw: Array):
        n = len(position)
        self._control = [np.zeros((n, MOST_POINTS - order, 3)) for order in range(3)]
        self._knots = [np.zeros((n, MOST_POINTS + 4 - 2 * order)) for order in range(3)]
        self._count = np.full(n, 4)
        self._yaw = np.zeros((n, _YAW_POINTS, 1))
        self._yaw_count, self._yaw_interval = np.full(n, 4), np.ones(n)
        self.begin, self.duration = np.zeros(n), np.zeros(n)
        for order in range(3):
            self._knots[order][:] = np.arange(MOST_POINTS + 4 - 2 * order)
        self.rest(np.arange(n), position, yaw, np.zeros(n))

    def rest(self, places: Ints, position: Array, yaw: Array, time: Array) -> None:
        """Let flights (k,) rest from times (k,) on."""
        for order in range(3):
            self._control[order][places, :4] = position[:, None] if order == 0 else 0.0
        self._count[places], self._yaw_count[places] = 4, 4
        self._yaw[places, :4, 0], self._yaw_interval[places] = yaw[:, None], 1.0
        for order in range(3):
            self._knots[order][places] = np.arange(MOST_POINTS + 4 - 2 * order)
        self.begin[places], self.duration[places] = time, 0.0

    def put(self, place: int, plan: Plan) -> None:
        """Let a flight follow a plan."""
        count = len(plan.control)
        control, knots = plan.control[None], plan.knots[None]
        self._count[place] = count
        for order in range(3):
            # Behind the last knot they go on rising: nothing is ever divided by nothing.
            held, row = knots[0], self._knots[order][place]
            row[: len(held)] = held
            row[len(held) :] = held[-1] + 1.0 + np.arange(len(row) - len(held))
            self._control[order][place, : count - order] = control[0]
            if order < 2:
                control, knots = derivative(control, knots, 3 - order)
        yaw = plan.yaw.control[:_YAW_POINTS]
        self._yaw[place, : len(yaw), 0], self._yaw_count[place] = yaw, len(yaw)
        self._yaw_interval[place], self.begin[place] = plan.yaw.interval, plan.begin
        self.duration[place] = plan.knots[count] - plan.knots[3]

    def spline(self, place: int) -> tuple[Array, Array]:
        """Control points (N, 3) and knots (N + 4,) of a flight's plan."""
        count = int(self._count[place])
        return self._control[0][place, :count], self._knots[0][place, : count + 4]

    def copy_to(self, records: NDArray[Any], places: Ints) -> None:
        """Write the plans of flights (k,) into records with `count`, `control` and `knots`."""
        records["count"] = self._count[places]
        records["control"] = self._control[0][places].reshape(len(places), -1)
        records["knots"] = self._knots[0][places]

    def state(self, places: Ints, time: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration (k, 3) of flights' plans at times (k,) of their clocks, clipped to the plans."""
        found = [self._evaluated(places, time[:, None], order)[:, 0] for order in range(3)]
        return found[0], found[1], found[2]

    def positions(self, places: Ints, time: Array) -> Array:
        """Positions (k, m, 3) on flights' plans at times (k, m) of their clocks."""
        return self._evaluated(places, time, 0)

    def _evaluated(self, places: Ints, time: Array, order: int) -> Array:
        # Only as many columns as the longest of them needs.
        count = self._count[places] - order
        width = int(count.max(initial=4))
        control, knots = self._control[order][places, :width], self._knots[order][places, : width + 4 - order]
        return evaluate(control, knots, time - self.begin[places, None], count, 3 - order)

    def heading(self, places: Ints, time: Array) -> tuple[Array, Array, Array]:
        """Yaw, rate and acceleration (k,) of flights' plans at times (k,) [rad, s], clipped to the plans."""
        dt, pieces = self._yaw_interval[places], self._yaw_count[places] - 3
        scaled = np.clip((time - self.begin[places]) / dt, 0.0, pieces)
        piece = np.minimum(scaled.astype(np.int64), pieces - 1)
        u = scaled - piece
        a, b, c, d = (self._yaw[places, piece + j, 0] for j in range(4))
        value = ((1 - u) ** 3 * a + (3 * u**3 - 6 * u**2 + 4) * b + (-3 * u**3 + 3 * u**2 + 3 * u + 1) * c + u**3 * d) / 6.0
        rate = (-((1 - u) ** 2) * a + (3 * u**2 - 4 * u) * b + (-3 * u**2 + 2 * u + 1) * c + u**2 * d) / (2.0 * dt)
        bend = ((1 - u) * a + (3 * u - 2) * b + (1 - 3 * u) * c + u * d) / (dt * dt)
        return value, rate, bend

    def setpoints(self, time: Array) -> Setpoints:
        """What to follow at times (n,); at the end of a plan the vehicle rests."""
        every = np.arange(len(time))
        position, velocity, acceleration = self.state(every, time)
        yaw, rate, _ = self.heading(every, time)
        going = (time >= self.begin) & (time < self.begin + self.duration)
        still = ~going[:, None]
        return Setpoints(
            position,
            np.where(still, 0.0, velocity),
            np.where(still, 0.0, acceleration),
            (yaw + np.pi) % (2.0 * np.pi) - np.pi,
            np.where(going, rate, 0.0),
        )


class PlanQueue:
    """Plans in force, and plans that hold once the compute that made them is over.

    A flight whose planner computes is busy: it thinks of nothing else until then.

    Args:
        plans: In force.

    Attributes:
        asked: Time of the last `begin` [s], (n,).
        busy: Until when each planner computes [s], (n,).
    """

    def __init__(self, plans: FlightPlans):
        n = len(plans.begin)
        self.plans = plans
        self.asked, self.busy = np.full(n, -np.inf), np.full(n, -np.inf)
        self._waiting: dict[int, tuple[float, Plan]] = {}
        self._fresh: list[int] = []
        self._free = np.zeros(n, bool)

    def settle(self, time: Array) -> None:
        """Put in force what holds at times (n,)."""
        for place in [p for p, (hold, _) in self._waiting.items() if time[p] >= hold]:
            self.plans.put(place, self._waiting.pop(place)[1])

    def begin(self, time: Array, active: Bools) -> Bools:
        """Begin an update at times (n,); which flights are free to think, (n,)."""
        self.settle(time)
        self._fresh = []
        self._free = active & (time >= self.busy - 1e-9)
        self.asked = np.where(self._free, time, self.asked)
        return self._free.copy()

    def offer(self, place: int, plan: Plan) -> None:
        """A new plan; it holds now if nobody says otherwise. One that still waited never does."""
        self._waiting[place] = (float(self.asked[place]), plan)
        self._fresh.append(place)

    def adopt(self, delay: Array) -> None:
        """The compute of the last update took `delay` (n,) seconds."""
        wait = np.where(self._free, np.maximum(np.asarray(delay, np.float64), 0.0), 0.0)
        self.busy = np.where(wait > 0.0, np.maximum(self.busy, self.asked + wait), self.busy)
        for place in self._fresh:
            self._waiting[place] = (float(self.asked[place] + wait[place]), self._waiting[place][1])
        self._fresh = []
