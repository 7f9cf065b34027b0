"""Kinodynamic A*: `KinoSearch(settings).run(problems, windows)`, many flights in one launch.

States are positions and velocities of a double integrator; from each, 125 accelerations are held for a while. One node is
kept per cell of position. The readable twin is search_twin.py. Source: spec/planners section 4.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.planners.fast.records import FOUND, NODE_BYTES, PROBLEM, SEARCH_SETTINGS, Outcome
from airworthy.planners.fast.settings import KinoSettings
from airworthy.planners.fast.windows import MapWindows
from airworthy.planners.fast.work import PlannerWork, PlanTask

__all__ = ["KinoPath", "KinoSearch", "connection", "cost_of_time", "least_cost", "path_of", "problem"]

# -----------------------------------------------------------------------------------------------------------------------------
# The double integrator between two states at least cost: the heuristic of the search and its connection with the goal.
#
# Cost: the integral of |a|^2 + weight over time. Twin of native/boundary.h. Source: spec/planners section 4.1.

State = tuple[float, ...]


def _terms(start: State, end: State) -> tuple[float, float, float, float]:
    """Squared way, (v0 + v1).dp, v0.v0 + v0.v1 + v1.v1, and the largest component of the way."""
    far = along = motion = reach = 0.0
    for k in range(3):
        d, a, b = end[k] - start[k], start[k + 3], end[k + 3]
        far += d * d
        along += (a + b) * d
        motion += a * a + a * b + b * b
        reach = max(reach, abs(d))
    return far, along, motion, reach


def cost_of_time(start: State, end: State, weight: float, t: float) -> float:
    """Return the least cost of going from state to state, each (position, velocity), in exactly t [s].

    Args:
        start: State (position [m], velocity [m/s]), world.
        end: State (position [m], velocity [m/s]), world.
        weight: Cost of a second, w_time [m^2/s^4].
        t: Duration [s].
    """
    far, along, motion, _ = _terms(start, end)
    return weight * t + 4.0 * motion / t - 12.0 * along / t**2 + 12.0 * far / t**3


def least_cost(start: State, end: State, weight: float, speed: float) -> tuple[float, float]:
    """Return the least cost over all times, and that time [s].

    Times in which the way cannot be flown at half of `speed` per axis are left out: T >= max |dp| / (0.5 speed).

    Args:
        start: State (position [m], velocity [m/s]), world.
        end: State (position [m], velocity [m/s]), world.
        weight: Cost of a second, w_time [m^2/s^4].
        speed: Limit per axis [m/s].
    """
    far, along, motion, reach = _terms(start, end)
    p, q, r = -4.0 * motion / weight, 24.0 * along / weight, -36.0 * far / weight
    least = reach / (0.5 * speed)
    times = ([least] if least > 1e-9 else []) + [t for t in _stationary(p, q, r) if t >= least and t > 1e-9]
    best, when = math.inf, 0.0
    for t in times:
        s = weight / t
        cost = weight * t - p * s - 0.5 * q * s / t - r * s / (3.0 * t * t)
        if cost < best:
            best, when = cost, t
    return (best, when) if when > 0.0 else (0.0, 0.0)


def _stationary(p: float, q: float, r: float) -> list[float]:
    """Real roots of T^4 + p T^2 + q T + r with r <= 0: Ferrari's factors, each root polished by Newton's steps."""
    m = _resolvent(p, q, r)
    if m <= 1e-12 * (abs(p) + math.sqrt(abs(r))):
        inside = 0.25 * p * p - r
        factors = [(0.0, 0.5 * p - (math.sqrt(inside) if inside > 0.0 else 0.0))]
    else:
        s = math.sqrt(2.0 * m)
        factors = [(-s, 0.5 * p + m + 0.5 * q / s), (s, 0.5 * p + m - 0.5 * q / s)]
    roots = []
    for b, c in factors:
        inside = 0.25 * b * b - c
        if inside >= 0.0:
            width = math.sqrt(inside)
            roots += [_polished(-0.5 * b + width, p, q, r), _polished(-0.5 * b - width, p, q, r)]
    return roots


def _polished(t: float, p: float, q: float, r: float) -> float:
    for _ in range(3):
        slope = (4.0 * t * t + 2.0 * p) * t + q
        if slope != 0.0:
            t -= (((t * t + p) * t + q) * t + r) / slope
    return t


def _resolvent(p: float, q: float, r: float) -> float:
    """Largest root of m^3 + p m^2 + (p^2 / 4 - r) m - q^2 / 8, never below zero."""
    a = -p * p / 12.0 - r
    b = -p * p * p / 108.0 + p * r / 3.0 - q * q / 8.0
    inside = 0.25 * b * b + a * a * a / 27.0
    if inside >= 0.0:
        u = float(np.cbrt(-0.5 * b + (-math.sqrt(inside) if b > 0.0 else math.sqrt(inside))))
        t = u - a / (3.0 * u) if u != 0.0 else 0.0
    else:
        size = math.sqrt(-a / 3.0)
        angle = min(1.0, max(-1.0, -0.5 * b / (size * size * size)))
        t = 2.0 * size * math.cos(math.acos(angle) / 3.0)
    return max(t - p / 3.0, 0.0)


def connection(start: State, end: State, t: float) -> Array:
    """Return the cubics from state to state in t [s]: ascending coefficients, (3, 4). They keep no limit.

    Args:
        start: State (position [m], velocity [m/s]), world.
        end: State (position [m], velocity [m/s]), world.
        t: Duration [s].
    """
    p0, v0 = np.array(start[:3]), np.array(start[3:])
    left, gain = np.array(end[:3]) - p0 - v0 * t, np.array(end[3:]) - v0
    second = 0.5 * (6.0 / (t * t) * left - 2.0 / t * gain)
    third = (-12.0 / (t * t * t) * left + 6.0 / (t * t) * gain) / 6.0
    return np.stack([p0, v0, second, third], axis=1)


# -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class KinoPath:
    """Accelerations held one after the other, then, perhaps, a cubic to the goal."""

    outcome: Outcome
    states: Array
    """Where each step begins, (k, 6): position [m] and velocity [m/s]."""
    inputs: Array
    """Acceleration of each step [m/s^2], (k, 3)."""
    durations: Array
    """Of each step [s], (k,)."""
    curve: Array
    """Ascending coefficients of the connection, (3, 4)."""
    curve_time: float
    """[s]; 0 without a connection."""
    expansions: int
    """Nodes taken from the open set, of all attempts."""
    nodes: int
    """Nodes made, of all attempts."""

    @property
    def duration(self) -> float:
        """[s]"""
        return float(self.durations.sum()) + self.curve_time

    def sample(self, times: Array) -> Array:
        """Return positions [m] at times (m,) since its beginning [s], (m, 3)."""
        ends = np.cumsum(self.durations)
        total = float(ends[-1]) if len(ends) else 0.0
        points = np.empty((len(times), 3))
        on_curve = (times >= total) & (self.curve_time > 0.0) if len(ends) else np.ones(len(times), bool)
        u = (times[on_curve] - total)[:, None]
        c = self.curve.T
        points[on_curve] = ((c[3] * u + c[2]) * u + c[1]) * u + c[0]
        if len(ends):
            t = times[~on_curve]
            step = np.minimum(np.searchsorted(ends, t, side="right"), len(ends) - 1)
            u = (t - (ends - self.durations)[step])[:, None]
            state = self.states[step]
            points[~on_curve] = state[:, :3] + state[:, 3:] * u + 0.5 * self.inputs[step] * u * u
        return points

    def boundary(self) -> Array:
        """Return velocities at start and end, then accelerations, (2, 2, 3)."""
        t, c = self.curve_time, self.curve
        first = self.states[0, 3:] if len(self.states) else c[:, 1]
        first_acceleration = self.inputs[0] if len(self.states) else 2.0 * c[:, 2]
        if t > 0.0:
            last = (3.0 * c[:, 3] * t + 2.0 * c[:, 2]) * t + c[:, 1]
            last_acceleration = 6.0 * c[:, 3] * t + 2.0 * c[:, 2]
        else:
            last_acceleration = self.inputs[-1]
            last = self.states[-1, 3:] + last_acceleration * self.durations[-1]
        return np.array([[first, last], [first_acceleration, last_acceleration]])


class KinoSearch:
    """Searches of many flights; owns the work memory.

    Args:
        settings: See `KinoSettings`.
    """

    def __init__(self, settings: KinoSettings):
        self.settings = settings
        record = np.zeros(1, SEARCH_SETTINGS)
        for name in SEARCH_SETTINGS.names or ():
            record[name] = getattr(settings, name)
        self._work = PlannerWork(settings.capacity * (NODE_BYTES + 4), 1 << (2 * settings.capacity - 1).bit_length(), record)

    def run(self, problems: ArrayAny, windows: MapWindows) -> list[KinoPath]:
        """Search for every flight: `records.PROBLEM` (k,), with what is known around each."""
        found = np.zeros(len(problems), FOUND)
        self._work.launch(PlanTask.SEARCH, windows, problems, found)
        return [path_of(row) for row in found]


def path_of(row: Any) -> KinoPath:
    """Return the path that compiled code has written down, the last step first."""
    steps = row["path"].reshape(-1, 10)[: row["steps"]][::-1]
    outcome = Outcome(int(row["status"]))
    joined = outcome is Outcome.REACH_END
    return KinoPath(
        outcome,
        steps[:, :6].copy(),
        steps[:, 6:9].copy(),
        steps[:, 9].copy(),
        row["curve"].reshape(3, 4).copy() if joined else np.zeros((3, 4)),
        float(row["curve_time"]) if joined else 0.0,
        int(row["expansions"]),
        int(row["nodes"]),
    )


def problem(
    start: Array, velocity: Array, acceleration: Array, goal: Array, speed: float, most: float, held: bool = True
) -> ArrayAny:
    """Return one problem, (1,): states of start and goal (at rest), limits per component, whether to begin with
    `acceleration`.

    Args:
        start: Position (3,) [m], world.
        velocity: (3,) [m/s].
        acceleration: (3,) [m/s^2], held on at first where `held` is set.
        goal: Position (3,) [m], reached at rest.
        speed: Limit per axis [m/s].
        most: Limit of acceleration per axis [m/s^2].
        held: Begin with `acceleration` instead of any input.
    """
    record = np.zeros(1, PROBLEM)
    record["start"][0] = np.concatenate([start, velocity])
    record["acceleration"], record["goal"][0, :3] = acceleration, goal
    record["speed"], record["most"], record["held"] = speed, most, held
    return record
