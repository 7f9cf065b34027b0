"""Plans without a solver, for when something went wrong: the path in force flown more and more slowly, and a way back."""

from __future__ import annotations

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.race.planning.guess import TimedPlan
from airworthy.race.planning.horizon import GateWindows
from airworthy.race.planning.racer import RacerModel
from airworthy.race.planning.smooth import flat_plan
from airworthy.trajectories import Trajectory, yaw_spline
from airworthy.trajectories.min_snap import hermite_spline

__all__ = ["BEFORE_M", "braked_plan", "return_plan"]

_NODES = 24
"""On each leg, as `RacePlanOptions.nodes`."""
_FINE = 0.005
"""Step in which the clock of a braked plan is slowed down [s]."""
_SLOWEST = 0.2
"""A braked plan is flown no more slowly than this share of its speed: it would stand before it braked."""
_BESIDE = 1.8
"""Beside the edge of its opening a gate is flown back round so far off [m]: its tube, the vehicle, and what a turn errs."""
_BEFORE = 5.0
"""So far before the gate the turn ends [m]: it is seen whole from there."""
_BACK, _TURNED, _THROUGH = 6.0, 5.0, 8.0
"""Speeds back beside the gate, behind the turn and through the gate [m/s]. Ours."""
_LEVEL, _UPWARDS = 16.0, 8.0
"""Largest accelerations of the way back, along the ground and upwards [m/s^2]: half of the thrust; less than free fall."""
_TIMES, _SAMPLES = np.geomspace(0.3, 8.0, 60), 21
"""Durations of a piece that are tried [s], and where on it its accelerations are looked at."""
BEFORE_M = 3.0
"""So far before its gate a racer that returned is planned for again [m]; nearer plans would lead through the frame."""


def braked_plan(flown: TimedPlan, time: float, passages: range, speed: float, braking: float) -> TimedPlan | None:
    """Return the rest of a plan, on the same path, slowed down.

    With the path p of the plan's own clock s, and r = ds/dt: velocity r p', acceleration r^2 p'' + (dr/dt) p'; r falls by
    braking / |p'| a second until the speed is reached, and never rises again.

    Args:
        flown: The plan in force.
        time: Now [s since arming].
        passages: That lie ahead; those that the plan does not reach are left out.
        speed: At most, at last [m/s].
        braking: Along the path [m/s^2].

    Returns:
        None where the plan reaches no passage that lies ahead.
    """
    crossed = np.array([flown.crossing(passage) for passage in passages])
    crossed = crossed[: int(np.argmin(np.append(crossed > time, False)))]
    if not len(crossed):
        return None
    clock = np.append(np.arange(time, crossed[-1], _FINE), crossed[-1])
    states, inputs = flown.plan.at(clock - flown.begun)
    fast = np.maximum(np.linalg.norm(states[:, 3:6], axis=1), 1e-3)
    rate, slowing, passed = np.ones(len(clock)), np.zeros(len(clock)), np.full(len(clock), time)
    for k in range(len(clock) - 1):
        step = clock[k + 1] - clock[k]
        slowing[k] = -braking / fast[k] if rate[k] * fast[k] > speed and rate[k] > _SLOWEST else 0.0
        passed[k + 1] = passed[k] + step / rate[k]
        rate[k + 1] = max(rate[k] + slowing[k] * step / rate[k], min(rate[k], _SLOWEST))
    ends = np.interp(crossed, clock, passed)
    legs = np.diff(np.concatenate([[time], ends]))
    part = np.arange(1, _NODES + 1) / _NODES
    times = np.concatenate([[time], ((ends - legs)[:, None] + legs[:, None] * part).ravel()])
    slope = np.stack(flown.plan.model.derivative(states.T, inputs.T)[3:6], axis=1)
    facing = frames.to_matrix(states[:, 6:10])[..., 0]
    rows = np.hstack(
        [
            states[:, :3],
            rate[:, None] * states[:, 3:6],
            rate[:, None] ** 2 * slope + slowing[:, None] * states[:, 3:6],
            facing,
        ]
    )
    place, velocity, acceleration, looks = np.split(
        np.stack([np.interp(times, passed, column) for column in rows.T], axis=1), 4, axis=1
    )
    plan = flat_plan(flown.plan.model, place, velocity, acceleration, looks, legs.tolist())
    return TimedPlan(plan, time, passages.start)


def return_plan(model: RacerModel, state: Array, gates: GateWindows, number: int, time: float) -> TimedPlan:
    """Return the way back round a gate that was missed, on the side where it was, and then through it, looking at it.

    Args:
        model: Who flies.
        state: From which it flies, (13,).
        gates: All passages, with whole openings.
        number: Of the gate.
        time: Now [s since arming].
    """
    center, left, normal = gates.center[number], gates.left[number], gates.normal[number]
    side = 1.0 if float((state[:3] - center) @ left) >= 0.0 else -1.0
    beside = center + side * (gates.half[number, 0] + _BESIDE) * left
    points = np.stack([state[:3], beside, center - _BEFORE * normal, center])
    speeds = np.stack([state[3:6], -_BACK * normal, _TURNED * normal, _THROUGH * normal])
    gaps = np.array([_shortest(points[k : k + 2], speeds[k : k + 2]) for k in range(3)])
    path = _path(points, speeds, gaps)
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    part = np.arange(1, _NODES + 1) / _NODES
    flat = path.sample(np.concatenate([[0.0], (times[:-1, None] + gaps[:, None] * part).ravel()]))
    # Towards the gate, and near it through it.
    facing = center + 2.0 * normal - flat.position
    facing[:, 2] = 0.0
    plan = flat_plan(model, flat.position, flat.velocity, flat.acceleration, facing, gaps.tolist())
    # Its third leg ends at the gate.
    return TimedPlan(plan, time, number - 2)


def _path(points: Array, speeds: Array, gaps: Array) -> Trajectory:
    """Return the path of least snap with places and velocities given, and no acceleration there: its pieces do not depend on
    each other.
    """
    count = len(points)
    values, given = np.zeros((count, 4, 3)), np.zeros((count, 4), bool)
    values[:, 0], values[:, 1], given[:, :3] = points, speeds, True
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    return Trajectory(times, hermite_spline(gaps, values, given), *yaw_spline(times, np.zeros(count)))


def _shortest(points: Array, speeds: Array) -> float:
    """Return the shortest time of a piece that keeps its accelerations; where none does, the one that asks for least [s].

    Args:
        points: Its ends [m], (2, 3).
        speeds: There [m/s], (2, 3).
    """
    asked = []
    for gap in _TIMES:
        at = _path(points, speeds, np.array([gap])).sample(gap * np.linspace(0.0, 1.0, _SAMPLES))
        use = np.hypot(at.acceleration[:, 0], at.acceleration[:, 1]) / _LEVEL
        asked.append(float(np.max(np.maximum(use, np.abs(at.acceleration[:, 2]) / _UPWARDS))))
        if asked[-1] <= 1.0:
            return float(gap)
    return float(_TIMES[int(np.argmin(asked))])
