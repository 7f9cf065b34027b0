"""Lap times beside a plan's, under the same limit: min-snap, dynamic programming, and a time that nothing can beat.

Source: spec/boundary_predictor section 13. A lap is from rest at the start to the centre of the last gate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.gates.planner.certificate import GridCheck, certify
from airworthy.gates.planner.window import STOP_DISTANCE
from airworthy.gates.task import judge_path
from airworthy.trajectories import Gate, Limits, Trajectory, from_waypoints, through_gates

OTHERS = {
    "trapezoid": "minimum snap, times in trapezoidal ratios, slowed as a whole to the limit",
    "minimum_snap": "one minimum-snap optimisation over all times",
    "through_gates": "speeds and times at every gate by dynamic programming, same segments",
}
"""Planners that are compared, and what they do."""
# Ours: the sums over the table are a bound at any number of speeds; with so many it is tight.
_SPEEDS = 200_001
_CHECK_RATE = 200.0


@dataclass(frozen=True)
class Lap:
    """A planner's lap and what its certificate says."""

    planner: str
    time: float
    """[s]; NaN where it found no path."""
    verdict: str
    """Of the same certificate as the plan's; empty without a path."""
    passed: bool
    """Whether the path itself passes every gate, in order, without touching."""


def baseline_laps(
    start: tuple[float, float, float], start_yaw: float, gates: Sequence[Gate], limits: Limits, clearance: float, floor: float
) -> list[Lap]:
    """Return laps of every planner of OTHERS.

    Args:
        start: [m]
        start_yaw: [rad]
        gates: Of all laps, in order.
        limits: Kept by all.
        clearance: From the path to every frame, for the certificate [m].
        floor: Least height [m].
    """
    laps = []
    for name in OTHERS:
        try:
            path = _path(name, start, start_yaw, gates, limits)
        except AirworthyError:
            laps.append(Lap(name, float("nan"), "", False))
            continue
        nothing = GridCheck(0, {}, {}, 0.0)
        verdict = certify(path, gates, limits, nothing, clearance, floor).verdict
        laps.append(Lap(name, float(path.knots[-2]), verdict, passes(path, gates)))
    return laps


def _path(name: str, start: tuple[float, float, float], start_yaw: float, gates: Sequence[Gate], limits: Limits) -> Trajectory:
    if name == "through_gates":
        return through_gates(start, start_yaw, gates, limits)
    last = np.asarray(gates[-1].position)
    points = np.array([start, *(gate.position for gate in gates), last + STOP_DISTANCE * gates[-1].normal])
    return from_waypoints(points, limits, **({"evaluations": 1} if name == "trapezoid" else {}))


def passes(path: Trajectory, gates: Sequence[Gate]) -> bool:
    """Tell whether a body that is exactly on a path passes every gate in order and touches nothing."""
    t = np.linspace(0.0, path.duration, max(2, int(path.duration * _CHECK_RATE)))
    results = judge_path(gates, t, path.sample(t).position)
    return bool(results.outcomes[0] == "success")


def least_time(points: Array, limits: Limits) -> float:
    """Return a time [s] below which no path from rest through points (n, 3) keeps the limits, whatever its shape.

    A path through the points is at least as long as the polyline, and its speed grows by at most the acceleration that the
    limit leaves at that speed: t(v) and s(v) are the integrals of 1 / a(v) and v / a(v) from 0. What curves cost is left
    out, so nothing reaches it; it says how much could be gained at most. NaN where the limits bound the thrust alone, whose
    largest acceleration depends on its direction.

    Raises:
        AirworthyError: The limits bound neither speed nor acceleration.
    """
    if limits.thrust_max is not None and limits.envelope is None and limits.acceleration is None:
        return float("nan")
    length = float(np.sum(np.linalg.norm(np.diff(np.asarray(points, dtype=np.float64), axis=0), axis=1)))
    top, push = limits.speed_max, limits.acceleration_max
    if not np.isfinite(push):
        raise AirworthyError("A least time needs a limit on the acceleration or the envelope.")
    if not np.isfinite(top):
        top = float(np.sqrt(2.0 * push * length)) * 1.001
    # Close to the top speed the acceleration vanishes: even steps of the cube of what is missing resolve it.
    v = top * (1.0 - np.linspace(1.0, 0.0, _SPEEDS)[:-1] ** 3)
    gain = np.full_like(v, push)
    if limits.envelope is not None:
        gain = np.minimum(gain, limits.envelope[0] - limits.envelope[1] * v**3)
    if limits.acceleration is not None:
        gain = np.minimum(gain, limits.acceleration)
    step = np.diff(v)
    # 1 / a rises with v: the lower sum of times over the upper sum of lengths stays a bound.
    times = np.concatenate(([0.0], np.cumsum(step / gain[:-1])))
    lengths = np.concatenate(([0.0], np.cumsum(step * v[1:] / gain[1:])))
    if length <= lengths[-1]:
        return float(np.interp(length, lengths, times))
    return float(times[-1] + (length - lengths[-1]) / top)
