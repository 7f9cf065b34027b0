"""The plans that n flights follow, and those that will hold soon; set-points of all in a few array operations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import solveh_banded

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayInt
from airworthy.planners.common.bspline import derivative, evaluate
from airworthy.planners.common.interface import Setpoints
from airworthy.planners.fast.records import MOST_POINTS

__all__ = ["FlightPlans", "SplinePlan", "YawPlan", "headings", "smoothed", "unwrapped", "yaw_plan"]

# -----------------------------------------------------------------------------------------------------------------------------
# Control points of cubic B-splines that are smooth and near to what is wanted: a banded linear system, solved exactly.
#
# Bits do not depend on how many threads linear algebra uses: the matrices are made of whole numbers, and a system of so
# narrow a band is solved by one thread.

_BAND = 3
"""Side diagonals: third differences reach so far."""


def smoothed(control: Array, wanted: Array, stencil: tuple[int, ...], first: int, *, smooth: float, weight: float) -> Array:
    """Minimise smooth * sum |third differences|^2 + weight * sum |c_i - w_i|^2 over all but the first and last three points.

    c_i is the mean of control points i + first and following with the whole numbers of `stencil` as weights: (1,) is the point
    itself, (1, 4, 1) the curve at a knot.

    Args:
        control: (N, d); the three at each end stay.
        wanted: w_i, (m, d).
        stencil: At most four numbers.
        first: Control point at which the mean of w_0 begins.
        smooth, weight: See above.
    """
    count, m = len(control), len(wanted)
    if count <= 6:
        return control.copy()
    bends, means = _grams(count, stencil, first, m)
    scale = float(sum(stencil))
    gram = smooth * bends + (weight / (scale * scale)) * means
    right = np.zeros_like(control)
    for j, share in enumerate(stencil):
        right[first + j : first + j + m] += weight / scale * share * wanted
    for end in (0, 1, 2, -3, -2, -1):
        right -= gram[:, end, None] * control[end]
    free, result = gram[3:-3, 3:-3], control.copy()
    band = np.zeros((_BAND + 1, count - 6))
    for k in range(min(_BAND + 1, count - 6)):
        band[_BAND - k, k:] = np.diagonal(free, k)
    result[3:-3] = solveh_banded(band, right[3:-3])
    return result


@lru_cache(maxsize=512)
def _grams(count: int, stencil: tuple[int, ...], first: int, m: int) -> tuple[Array, Array]:
    """Matrices (N, N) of whole numbers: of the third differences, and of the means times their scale."""
    return _gram(count, (-1, 3, -3, 1), 0, count - 3), _gram(count, stencil, first, m)


def _gram(count: int, stencil: tuple[int, ...], first: int, m: int) -> Array:
    rows = np.zeros((m, count))
    for j, share in enumerate(stencil):
        rows[np.arange(m), first + j + np.arange(m)] = share
    return rows.T @ rows


# -----------------------------------------------------------------------------------------------------------------------------
# Where the nose points along a plan: a one-dimensional cubic B-spline through headings to where the vehicle will be.
#
# Minimised are 10 times the squared third differences plus 100 times the squared misses of the way points, which is a linear
# system: it is solved exactly. Source: spec/planners section 4.5.

# Ours: a micrometre; nothing that is planned turns within it.
_LEAST_PATH = 1e-6
"""Of a vector whose direction means something [m]."""
# Ours: at the end itself the velocity may be zero, without a direction.
_BEFORE_END = 0.1
"""The direction at the end is that of the velocity so long before it [s]."""


@dataclass(frozen=True, eq=False)
class YawPlan:
    """An evenly knotted cubic of the heading."""

    control: Array
    """(N,) [rad], not wrapped."""
    interval: float
    """[s]"""


def unwrapped(before: float, angle: float) -> float:
    """Return the angle, by whole turns, within half a turn of the one before."""
    return before + (angle - before + np.pi) % (2.0 * np.pi) - np.pi


def headings(positions: Array, ahead: Array, start: float) -> Array:
    """Return directions (k,) [rad] from positions to points ahead, each (k, 3), without turns over pi; without a way, the last.

    Args:
        positions: (k, 3) [m], world.
        ahead: Points to look to, (k, 3) [m].
        start: Heading that is kept while there is no way [rad].
    """
    displacement = ahead - positions
    result, last = np.empty(len(displacement)), start
    for k, (x, y, z) in enumerate(displacement.tolist()):
        if x * x + y * y + z * z > _LEAST_PATH**2:
            last = unwrapped(last, float(np.arctan2(y, x)))
        result[k] = last
    return result


def yaw_plan(
    curve: Array,
    knots: Array,
    start: tuple[float, float, float],
    *,
    ahead: float,
    longest: float,
    smooth: float,
    points: float,
) -> YawPlan:
    """Return the heading along a plan.

    Args:
        curve: Control points of the plan, (N, 3) [m].
        knots: Of the plan, (N + 4,) [s].
        start: Yaw, its rate and its acceleration when the plan begins [rad, s].
        ahead: Each heading is towards where the plan is so much later [s].
        longest: Knot interval at most [s].
        smooth: Weight of squared third differences.
        points: Weight of squared misses of the headings.
    """
    total = float(knots[len(curve)] - knots[3])
    pieces = max(1, int(np.ceil(total / longest)))
    dt = total / pieces
    at = np.arange(pieces) * dt
    last = np.array([total - _BEFORE_END, total])
    where = evaluate(curve[None], knots[None], np.concatenate([at, np.minimum(at + ahead, total), last])[None])[0]
    wanted = headings(where[:pieces], where[pieces : 2 * pieces], start[0])
    before_end, end = where[-2:]
    final = headings(before_end[None], end[None], wanted[-1])[0]
    control = np.zeros((pieces + 3, 1))
    control[:3, 0], control[-3:, 0] = _with_state(start, dt), final
    return YawPlan(smoothed(control, wanted[:, None], (1, 4, 1), 0, smooth=smooth, weight=points)[:, 0], dt)


def _with_state(state: tuple[float, float, float], dt: float) -> Array:
    """Return the three control points that give value, rate and acceleration at a knot."""
    value, rate, bend = state
    middle = value - bend * dt * dt / 6.0
    return np.array([middle - rate * dt + 0.5 * bend * dt * dt, middle, middle + rate * dt + 0.5 * bend * dt * dt])


# -----------------------------------------------------------------------------------------------------------------------------

# Ours, because a batch is one array: twice `MOST_POINTS`.
_YAW_POINTS = 512


@dataclass(frozen=True, eq=False)
class SplinePlan:
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

    def rest(self, flights: ArrayInt, position: Array, yaw: Array, time: Array) -> None:
        """Let flights (k,) rest from times (k,) on.

        Args:
            flights: Flights (k,).
            position: (k, 3) [m], world.
            yaw: (k,) [rad].
            time: When the rest begins, (k,) [s].
        """
        for order in range(3):
            self._control[order][flights, :4] = position[:, None] if order == 0 else 0.0
        self._count[flights], self._yaw_count[flights] = 4, 4
        self._yaw[flights, :4, 0], self._yaw_interval[flights] = yaw[:, None], 1.0
        for order in range(3):
            self._knots[order][flights] = np.arange(MOST_POINTS + 4 - 2 * order)
        self.begin[flights], self.duration[flights] = time, 0.0

    def put(self, flight: int, plan: SplinePlan) -> None:
        """Let a flight follow a plan."""
        count = len(plan.control)
        control, knots = plan.control[None], plan.knots[None]
        self._count[flight] = count
        for order in range(3):
            # Behind the last knot they go on rising: nothing is ever divided by nothing.
            held, row = knots[0], self._knots[order][flight]
            row[: len(held)] = held
            row[len(held) :] = held[-1] + 1.0 + np.arange(len(row) - len(held))
            self._control[order][flight, : count - order] = control[0]
            if order < 2:
                control, knots = derivative(control, knots, 3 - order)
        yaw = plan.yaw.control[:_YAW_POINTS]
        self._yaw[flight, : len(yaw), 0], self._yaw_count[flight] = yaw, len(yaw)
        self._yaw_interval[flight], self.begin[flight] = plan.yaw.interval, plan.begin
        self.duration[flight] = plan.knots[count] - plan.knots[3]

    def spline(self, flight: int) -> tuple[Array, Array]:
        """Return control points (N, 3) and knots (N + 4,) of a flight's plan."""
        count = int(self._count[flight])
        return self._control[0][flight, :count], self._knots[0][flight, : count + 4]

    def copy_to(self, records: ArrayAny, flights: ArrayInt) -> None:
        """Write the plans of flights (k,) into records with `count`, `control` and `knots`."""
        records["count"] = self._count[flights]
        records["control"] = self._control[0][flights].reshape(len(flights), -1)
        records["knots"] = self._knots[0][flights]

    def state(self, flights: ArrayInt, time: Array) -> tuple[Array, Array, Array]:
        """Return position, velocity and acceleration (k, 3) of flights' plans at times (k,) of their clocks, clipped to the
        plans."""
        found = [self._evaluated(flights, time[:, None], order)[:, 0] for order in range(3)]
        return found[0], found[1], found[2]

    def positions(self, flights: ArrayInt, time: Array) -> Array:
        """Return positions (k, m, 3) on flights' plans at times (k, m) of their clocks."""
        return self._evaluated(flights, time, 0)

    def _evaluated(self, flights: ArrayInt, time: Array, order: int) -> Array:
        # Only as many columns as the longest of them needs.
        count = self._count[flights] - order
        width = int(count.max(initial=4))
        control, knots = self._control[order][flights, :width], self._knots[order][flights, : width + 4 - order]
        return evaluate(control, knots, time - self.begin[flights, None], count, 3 - order)

    def heading(self, flights: ArrayInt, time: Array) -> tuple[Array, Array, Array]:
        """Return yaw, rate and acceleration (k,) of flights' plans at times (k,) [rad, s], clipped to the plans."""
        dt, pieces = self._yaw_interval[flights], self._yaw_count[flights] - 3
        scaled = np.clip((time - self.begin[flights]) / dt, 0.0, pieces)
        piece = np.minimum(scaled.astype(np.int64), pieces - 1)
        u = scaled - piece
        a, b, c, d = (self._yaw[flights, piece + j, 0] for j in range(4))
        value = ((1 - u) ** 3 * a + (3 * u**3 - 6 * u**2 + 4) * b + (-3 * u**3 + 3 * u**2 + 3 * u + 1) * c + u**3 * d) / 6.0
        rate = (-((1 - u) ** 2) * a + (3 * u**2 - 4 * u) * b + (-3 * u**2 + 2 * u + 1) * c + u**2 * d) / (2.0 * dt)
        bend = ((1 - u) * a + (3 * u - 2) * b + (1 - 3 * u) * c + u * d) / (dt * dt)
        return value, rate, bend

    def setpoints(self, time: Array) -> Setpoints:
        """Return what to follow at times (n,); at the end of a plan the vehicle rests."""
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
        self._waiting: dict[int, tuple[float, SplinePlan]] = {}
        self._fresh: list[int] = []
        self._free = np.zeros(n, bool)

    def settle(self, time: Array) -> None:
        """Put in force what holds at times (n,)."""
        for flight in [p for p, (hold, _) in self._waiting.items() if time[p] >= hold]:
            self.plans.put(flight, self._waiting.pop(flight)[1])

    def begin(self, time: Array, active: ArrayBool) -> ArrayBool:
        """Begin an update at times (n,); which flights are free to think, (n,)."""
        self.settle(time)
        self._fresh = []
        self._free = active & (time >= self.busy - 1e-9)
        self.asked = np.where(self._free, time, self.asked)
        return self._free.copy()

    def offer(self, flight: int, plan: SplinePlan) -> None:
        """Offer a new plan; it holds now if nobody says otherwise. One that still waited never does."""
        self._waiting[flight] = (float(self.asked[flight]), plan)
        self._fresh.append(flight)

    def adopt(self, delay: Array) -> None:
        """Adopt the last plans: the compute of the update took `delay` (n,) seconds."""
        wait = np.where(self._free, np.maximum(np.asarray(delay, np.float64), 0.0), 0.0)
        self.busy = np.where(wait > 0.0, np.maximum(self.busy, self.asked + wait), self.busy)
        for flight in self._fresh:
            self._waiting[flight] = (float(self.asked[flight] + wait[flight]), self._waiting[flight][1])
        self._fresh = []
