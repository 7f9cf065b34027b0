"""The global reference from start to goal, and the local target on it.

Source: spec/planners sections 3.1 and 3.2 (EGO-Planner); PGO takes the same with ends of at least a second. One reference per
flight, held in arrays over flights, so that walking them costs one set of array operations for all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayIndex, ArrayInt, ArrayLike
from airworthy.core.errors import AirworthyError

__all__ = [
    "PIECE",
    "References",
    "Targets",
    "VelocityReference",
    "evaluate_polynomial",
    "least_jerk",
    "local_targets",
    "quintic",
    "quintic_pair",
]

# ---- Quintics: one segment between two states, and chains of them with the least integral of squared jerk -------------------
#
# Coefficients ascend in powers of seconds. Source: spec/planners section 2 (where the sources call the chain "minimum snap").

# Integral of squared jerk of a quintic in (dp, dv T, da T^2), times T^5: errors of position, speed, acceleration at its end.
_JERK = np.array([[720.0, -360.0, 60.0], [-360.0, 192.0, -36.0], [60.0, -36.0, 9.0]])


def quintic(start: ArrayLike, end: ArrayLike, duration: ArrayLike) -> Array:
    """Return coefficients (..., 6, d) of the quintic between states.

    Args:
        start: Position, velocity, acceleration, shape (..., 3, d).
        end: The same at the end.
        duration: Above 0 [s], shape (...).
    """
    (p0, v0, a0), (p1, v1, a1) = (np.moveaxis(np.asarray(s, np.float64), -2, 0) for s in (start, end))
    t = np.asarray(duration, np.float64)[..., None]
    dp = p1 - p0 - v0 * t - a0 * (0.5 * t * t)
    dv = (v1 - v0 - a0 * t) * t
    da = (a1 - a0) * (t * t)
    cubed = t * t * t
    c3 = (10.0 * dp - 4.0 * dv + 0.5 * da) / cubed
    c4 = (-15.0 * dp + 7.0 * dv - da) / (cubed * t)
    c5 = (6.0 * dp - 3.0 * dv + 0.5 * da) / (cubed * t * t)
    return np.stack([p0, v0, 0.5 * a0, c3, c4, c5], axis=-2)


def quintic_pair(start: ArrayLike, middle: ArrayLike, end: ArrayLike, duration: float) -> Array:
    """Return coefficients (2, 6, d) of two quintics of equal `duration` [s] through a middle point, with the least squared
    jerk.

    Jerk and snap are continuous in the middle, which by symmetry gives its acceleration and velocity one by one.

    Args:
        start: Position, velocity, acceleration, shape (3, d).
        middle: Position, shape (d,).
        end: Position, velocity, acceleration, shape (3, d).
        duration: Of each half [s].
    """
    (p0, v0, a0), pm, (p1, v1, a1), t = np.asarray(start, float), np.asarray(middle, float), np.asarray(end, float), duration
    dp, dv, da = pm - p0 - v0 * t - a0 * (0.5 * t * t), (-v0 - a0 * t) * t, -a0 * (t * t)
    ep, ev, ea = p1 - pm, v1 * t, a1 * (t * t)
    am = (60.0 * ep - 24.0 * ev + 3.0 * ea - (60.0 * dp - 36.0 * dv + 9.0 * da)) / (18.0 * t * t)
    vm = (360.0 * dp - 192.0 * dv + 36.0 * da + 360.0 * ep - 168.0 * ev + 24.0 * ea) / (384.0 * t)
    half = np.stack([pm, vm, am])
    return np.stack([quintic(np.stack([p0, v0, a0]), half, t), quintic(half, np.stack([p1, v1, a1]), t)])


def least_jerk(points: ArrayLike, durations: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike) -> Array:
    """Return coefficients (m, 6, d) of m quintics through m + 1 points with the least integral of squared jerk.

    Args:
        points: Shape (m + 1, d).
        durations: Above 0 [s], shape (m,).
        velocity: At start and end, shape (2, d).
        acceleration: At start and end, shape (2, d).

    Raises:
        AirworthyError: Fewer than 2 points, another number of durations, or one not above 0.
    """
    p, t = np.asarray(points, np.float64), np.asarray(durations, np.float64)
    if p.ndim != 2 or len(p) < 2 or t.shape != (len(p) - 1,) or not np.all(t > 0.0):
        raise AirworthyError(f"A chain of {len(p)} points takes that many durations less one, above 0, not {t.tolist()}.")
    ends = np.asarray(velocity, np.float64), np.asarray(acceleration, np.float64)
    states = np.zeros((len(p), 3, p.shape[1]))
    states[:, 0], states[0, 1:], states[-1, 1:] = p, (ends[0][0], ends[1][0]), (ends[0][1], ends[1][1])
    if len(p) > 2:
        states[1:-1, 1:] = _free_derivatives(states, t)
    return quintic(states[:-1], states[1:], t)


def _free_derivatives(states: Array, durations: Array) -> Array:
    """Velocities and accelerations at the inner points at which the cost is stationary, (m - 1, 2, d)."""
    count = len(states)
    cost = np.zeros((3 * count, 3 * count))
    for i, t in enumerate(durations):
        left = np.array(
            [[-1.0, -t, -0.5 * t * t, 1.0, 0.0, 0.0], [0.0, -t, -t * t, 0.0, t, 0.0], [0.0, 0.0, -t * t, 0.0, 0.0, t * t]]
        )
        cost[3 * i : 3 * i + 6, 3 * i : 3 * i + 6] += left.T @ _JERK @ left / t**5
    free = np.array([3 * i + k for i in range(1, count - 1) for k in (1, 2)])
    fixed = np.setdiff1d(np.arange(3 * count), free)
    flat = states.reshape(3 * count, -1)
    solved = np.linalg.solve(cost[np.ix_(free, free)], -cost[np.ix_(free, fixed)] @ flat[fixed])
    return np.asarray(solved.reshape(count - 2, 2, -1))


# Falling factorials: by what the coefficients of a quintic are multiplied in its derivatives 0 to 3.
_FACTOR = [np.ones(6), np.arange(1.0, 6.0), np.array([2.0, 6.0, 12.0, 20.0]), np.array([6.0, 24.0, 60.0])]


def evaluate_polynomial(coefficients: Array, time: ArrayLike, order: int = 0) -> Array:
    """Return the value (..., d), or derivative up to the third, of polynomials (..., 6, d) at times (...) [s].

    Args:
        coefficients: (..., 6, d), ascending powers of time.
        time: (...) [s] since each began.
        order: 0 the value, up to 3 the jerk.
    """
    t = np.asarray(time, np.float64)[..., None]
    factors = _FACTOR[order]
    value = coefficients[..., 5, :] * factors[-1]
    for k in range(4, order - 1, -1):
        value = value * t + coefficients[..., k, :] * factors[k - order]
    return np.asarray(value)


# ---- Set-points for planners that decide on velocities ----------------------------------------------------------------------


class VelocityReference:
    """Velocities of n flights, each decided at some time and in force later, as set-points.

    From a decision on the velocity goes over to the wanted one at the acceleration allowed; the position starts at the odometry
    of the decision. So a controller is asked to hold the velocity, and errors of position do not add up to a pull. Its change
    is not fed forward: velocities are all that such planners send to a vehicle, and one that changes its mind twenty
    times a second would throw a weak one about.

    Args:
        start: Held before the first decision (n, 3) [m].
        acceleration: (n,) [m/s^2]
        height: (n,) held whatever is decided [m]; NaN: it goes by the velocity.
    """

    def __init__(self, start: Array, acceleration: Array, height: Array):
        count = len(start)
        self._acceleration, self._height = np.asarray(acceleration, float), np.asarray(height, float)
        self._old = _Leg(np.zeros(count), start.copy(), np.zeros((count, 3)), np.zeros((count, 3)))
        self._new = _Leg(np.zeros(count), start.copy(), np.zeros((count, 3)), np.zeros((count, 3)))
        self._begins = np.zeros(count)

    def decide(self, ids: ArrayIndex, time: Array, position: Array, wanted: Array) -> None:
        """Take decisions of flights (k,) at times (k,) and positions (k, 3); in force at once, unless `adopt` says later.

        Args:
            ids: Flights (k,).
            time: When it was decided, (k,) [s].
            position: Where, (k, 3) [m], world.
            wanted: Velocities (k, 3) [m/s], world.
        """
        now = np.array(self._begins)
        now[ids] = time
        take = np.zeros(len(now), bool)
        take[ids] = now[ids] >= self._begins[ids]  # one that is not in force yet is replaced and never was
        self._old.take(take, self._new)
        velocity = self._at(self._old, now)[1][ids]
        self._new.put(ids, time, position, velocity, wanted)
        self._begins[ids] = time

    def adopt(self, delay: Array) -> None:
        """Put the last decisions in force `delay` (n,) [s] after they were made."""
        self._begins = self._begins + delay

    def at(self, time: Array) -> tuple[Array, Array]:
        """Return position and velocity at times (n,), (n, 3) each."""
        first, second = self._at(self._old, time), self._at(self._new, time)
        ready = (time >= self._begins)[:, None]
        position, velocity = (np.where(ready, b, a) for a, b in zip(first, second, strict=True))
        held = ~np.isnan(self._height)
        position[held, 2] = self._height[held]
        velocity[held, 2] = 0.0
        return position, velocity

    def _at(self, leg: _Leg, time: Array) -> tuple[Array, Array]:
        change = leg.wanted - leg.velocity
        size = np.linalg.norm(change, axis=1)
        ramp = size / self._acceleration
        since = np.maximum(time - leg.time, 0.0)
        inside = np.minimum(since, ramp)
        slope = np.where((ramp > 0.0)[:, None], change / np.where(ramp > 0.0, ramp, 1.0)[:, None], 0.0)
        velocity = leg.velocity + slope * inside[:, None]
        displacement = leg.velocity * since[:, None] + slope * (0.5 * inside**2)[:, None] + change * (since - inside)[:, None]
        return leg.position + displacement, velocity


class _Leg:
    """One decision of each flight."""

    def __init__(self, time: Array, position: Array, velocity: Array, wanted: Array):
        self.time, self.position, self.velocity, self.wanted = time, position, velocity, wanted

    def put(self, ids: ArrayIndex, time: Array, position: Array, velocity: Array, wanted: Array) -> None:
        self.time[ids], self.position[ids], self.velocity[ids], self.wanted[ids] = time, position, velocity, wanted

    def take(self, mask: ArrayBool, other: _Leg) -> None:
        for name in ("time", "position", "velocity", "wanted"):
            getattr(self, name)[mask] = getattr(other, name)[mask]


# -----------------------------------------------------------------------------------------------------------------------------

# Source: spec/planners 3.1: points every <= 4 m on the line from start to goal.
PIECE = 4.0
"""Longest distance between points of a reference [m]."""
# Source: spec/planners 3.2: steps of horizon / 20 / max_vel.
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
        flight: int,
        start: ArrayLike,
        goal: ArrayLike,
        speed: float,
        *,
        velocity: ArrayLike | None = None,
        least: float = 0.0,
    ) -> None:
        """Set one flight's reference: the line from start to goal, cut into pieces, at rest in the end.

        Args:
            flight: Which flight.
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
        self._put(flight, least_jerk(points, times, np.stack([before, rest]), np.zeros((2, 3))), times)
        self.goal[flight] = b

    def _put(self, flight: int, coefficients: Array, times: Array) -> None:
        more = len(times) - self._ends.shape[1]
        if more > 0:
            self._coefficients = np.pad(self._coefficients, ((0, 0), (0, more), (0, 0), (0, 0)))
            self._ends = np.pad(self._ends, ((0, 0), (0, more)), mode="edge")
        self._coefficients[flight, : len(times)], self._ends[flight] = coefficients, np.inf
        self._ends[flight, : len(times)] = np.cumsum(times)
        self.duration[flight] = self._ends[flight, len(times) - 1]

    def sample(self, flights: ArrayLike, time: ArrayLike, order: int = 0) -> Array:
        """Return positions, or derivatives, of flights (k,) at times (k, m) [s] clipped to their references; (k, m, 3).

        Args:
            flights: Flights (k,).
            time: (k, m) [s] since the references began.
            order: 0 positions [m], 1 velocities, 2 accelerations, 3 jerks.
        """
        which = np.asarray(flights, np.int64)
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
    flights: ArrayLike,
    progress: ArrayLike,
    start: ArrayLike,
    horizon: float,
    speed: ArrayLike,
    acceleration: ArrayLike,
) -> Targets:
    """Return the first points of references that are `horizon` away from where the flights plan from; past the end, the goal.

    Args:
        references: Of all flights.
        flights: Which flights, (k,).
        progress: From where the references are walked [s], (k,).
        start: Where the flights plan from [m], (k, 3).
        horizon: [m]
        speed: Caps (k,) [m/s].
        acceleration: Caps (k,) [m/s^2].

    Returns:
        Targets. The velocity is the reference's, zero where the goal is within the way of a stop.
    """
    which, begin, v = np.asarray(flights, np.int64), np.asarray(progress, np.float64), np.asarray(speed, np.float64)
    step = horizon / _STEPS / v
    left = references.duration[which] - begin
    count = max(1, int(np.ceil(np.max(left / step, initial=0.0))) + 1)
    time = begin[:, None] + step[:, None] * np.arange(count)
    walked = time < references.duration[which][:, None]
    points = references.sample(which, time)
    away = np.where(walked, np.linalg.norm(points - np.asarray(start, np.float64)[:, None], axis=-1), np.inf)
    far: ArrayBool = np.asarray(walked & (away >= horizon))
    found: ArrayBool = np.asarray(np.any(far, axis=1))
    rows, at = np.arange(len(which)), np.argmax(far, axis=1)
    nearest = _nearest_before(away, np.where(found, at, count - 1))
    position = np.where(found[:, None], points[rows, at], references.goal[which])
    goal_time = np.where(found, time[rows, at], references.duration[which])
    velocity = references.sample(which, goal_time[:, None], 1)[:, 0]
    braking = v * v / (2.0 * np.asarray(acceleration, np.float64))
    stops = np.linalg.norm(references.goal[which] - position, axis=1) < braking
    return Targets(position, np.where(stops[:, None], 0.0, velocity), np.where(found, time[rows, nearest], begin))


def _nearest_before(away: Array, last: ArrayInt) -> ArrayInt:
    """Index of the least distance up to `last`."""
    reached = np.arange(away.shape[1]) <= last[:, None]
    return np.argmin(np.where(reached, away, np.inf), axis=1)
