"""Plans without a solver: a smooth path through the next gates, or the stored plan moved with them, and what flying it takes.

A rigid body under thrust is flat: place, its derivatives and a heading say attitude, rates and inputs (Mellinger & Kumar 2011).
The drag D |v| v is added to the acceleration before that, so that it is met exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.core.schema import Bound, check_fields
from airworthy.race.planning.horizon import GateWindows
from airworthy.race.planning.plan import RacePlan
from airworthy.race.planning.racer import RacerModel
from airworthy.trajectories import Trajectory, yaw_spline
from airworthy.trajectories.min_snap import hermite_spline

__all__ = ["SmoothOptions", "flat_plan", "moved_plan", "smooth_plan"]

_NODES = 48
"""On each leg: steps of 0.04 s, over which a held input errs by millimetres."""
_ROUNDS = 12
"""In which legs that ask for too much are given more time; ours, changes are below a percent by then."""
_LONGER = 1.3
"""Most that a leg's time grows by in a round."""
_LEAST_S = 0.05
"""Of a piece [s]; shorter ones beside long ones cannot be solved for in double precision."""
_MOST_S = 5.0
"""Up to which a piece is given more time [s]."""
_SAMPLES = 9
"""On each piece, where what it asks for is looked at."""


@dataclass(frozen=True)
class SmoothOptions:
    """How fast a smooth path is flown."""

    speed: Annotated[float, Bound(0.1, 100.0, "m/s")] = 12.0
    """Between gates, where nothing else limits it."""
    level: Annotated[float, Bound(0.1, 1000.0, "m/s^2")] = 14.0
    """Largest acceleration along the ground."""
    upwards: Annotated[float, Bound(0.1, 1000.0, "m/s^2")] = 8.0
    """Largest acceleration up or down: no faster than free fall."""
    straight: Annotated[float, Bound(0.1, 100.0, "m")] = 2.5
    """Before and behind a narrow gate the path crosses a point on its axis."""
    wide: Annotated[float, Bound(0.0, 100.0, "m")] = 1.2
    """Half width from which on a gate is wide."""

    def __post_init__(self) -> None:
        check_fields(self, "SmoothOptions.")


def flat_plan(
    model: RacerModel, place: Array, velocity: Array, acceleration: Array, facing: Array, legs: Sequence[float]
) -> RacePlan:
    """Return the plan that flies a path.

    Args:
        model: Who flies.
        place: At nodes, equally many and equally far apart on each leg [m], (nodes + 1, 3).
        velocity: [m/s], (nodes + 1, 3).
        acceleration: [m/s^2], (nodes + 1, 3).
        facing: Where body x points as nearly as it can, (nodes + 1, 3).
        legs: Durations [s], (gates,).
    """
    speed = np.linalg.norm(velocity, axis=1, keepdims=True)
    force = model.mass * (acceleration + np.array([0.0, 0.0, model.gravity])) + model.drag * speed * velocity
    thrust = np.linalg.norm(force, axis=1)
    z = force / np.maximum(thrust, 1e-6)[:, None]
    x = facing - np.sum(facing * z, axis=1, keepdims=True) * z
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-6)
    attitude = frames.continuous(frames.from_matrix(np.stack([x, np.cross(z, x), z], axis=-1)))
    step = np.repeat(np.asarray(legs) / ((len(place) - 1) // len(legs)), (len(place) - 1) // len(legs))
    turned = frames.to_rotation_vector(frames.canonical(frames.multiply(frames.conjugate(attitude[:-1]), attitude[1:])))
    mean = turned / step[:, None]
    # Rates at nodes: the mean of those of the steps beside.
    rate = np.vstack([mean[:1], 0.5 * (mean[1:] + mean[:-1]), mean[-1:]])
    turning = np.diff(rate, axis=0) / step[:, None]
    states = np.hstack([place, velocity, attitude, rate])
    inputs = np.hstack([0.5 * (thrust[1:] + thrust[:-1])[:, None], turning])
    return RacePlan(states, inputs, np.asarray(legs, np.float64), model, "", {})


def smooth_plan(
    model: RacerModel, state: Array, acceleration: Array, gates: GateWindows, options: SmoothOptions | None = None
) -> RacePlan:
    """Return a path of least snap through gates along their axes, as fast as its accelerations allow.

    Args:
        model: Who flies.
        state: From which it flies, (13,).
        acceleration: Of the vehicle there [m/s^2], (3,).
        gates: In the order of flight; it crosses their centres.
        options: Speed and accelerations.
    """
    options = options or SmoothOptions()
    points, looks, centers = _waypoints(state, gates, options)
    gaps = np.maximum(np.linalg.norm(np.diff(points, axis=0), axis=1) / options.speed, _LEAST_S)
    # From rest it takes time to get going.
    gaps[0] += max(0.0, options.speed - float(np.linalg.norm(state[3:6]))) / options.level
    end = options.speed * gates.normal[-1]
    for _ in range(_ROUNDS):
        path = _path(points, looks, gaps, state, acceleration, end)
        at = path.sample(path.knots[:-1, None] + gaps[:, None] * np.linspace(0.0, 1.0, _SAMPLES))
        ask = np.abs(at.acceleration)
        # How it begins is given: more time for the first piece would not lessen it.
        ask[0, : _SAMPLES // 2] = 0.0
        use = np.maximum(np.hypot(ask[..., 0], ask[..., 1]) / options.level, ask[..., 2] / options.upwards).max(1)
        gaps = np.minimum(gaps * np.clip(np.sqrt(use), 1.0, _LONGER), np.maximum(gaps, _MOST_S))
    path = _path(points, looks, gaps, state, acceleration, end)
    crossed = path.knots[centers]
    legs = np.diff(np.concatenate([[0.0], crossed]))
    part = np.arange(1, _NODES + 1) / _NODES
    times = np.concatenate([[0.0], ((crossed - legs)[:, None] + legs[:, None] * part).ravel()])
    flat = path.sample(times)
    facing = np.stack([np.cos(flat.yaw), np.sin(flat.yaw), np.zeros(len(times))], axis=1)
    return flat_plan(model, flat.position, flat.velocity, flat.acceleration, facing, legs.tolist())


def _waypoints(state: Array, gates: GateWindows, options: SmoothOptions) -> tuple[Array, Array, list[int]]:
    """Points before, in and behind each gate, headings [rad] there, at a gate through it and behind it towards the next, and
    which of the points are the centres.
    """
    axes = frames.rotate(state[6:10], np.array([1.0, 0.0, 0.0]))
    points, looks, centers = [state[:3]], [float(np.arctan2(axes[1], axes[0]))], []
    for number, (center, normal) in enumerate(zip(gates.center, gates.normal, strict=True)):
        through = float(np.arctan2(normal[1], normal[0]))
        later = gates.center[number + 1] - center if number + 1 < len(gates.center) else normal
        # Along the axis of a wide gate the path would bulge out by metres: it may be crossed in any direction.
        narrow = gates.half[number, 0] <= options.wide
        if narrow:
            points.append(center - options.straight * normal)
            looks.append(through)
        centers.append(len(points))
        points.append(center)
        looks.append(through)
        if narrow or number + 1 == len(gates.center):
            points.append(center + options.straight * normal)
            looks.append(float(np.arctan2(later[1], later[0])))
    return np.array(points), np.unwrap(looks), centers


def _path(points: Array, looks: Array, gaps: Array, state: Array, acceleration: Array, end: Array) -> Trajectory:
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    values, given = np.zeros((len(points), 4, 3)), np.zeros((len(points), 4), bool)
    values[:, 0], given[:, 0] = points, True
    values[0, 1], values[0, 2], given[0, 1:3] = state[3:6], acceleration, True
    values[-1, 1], given[-1, 1] = end, True
    return Trajectory(times, hermite_spline(gaps, values, given), *yaw_spline(times, looks))


def moved_plan(plan: RacePlan, shifts: Array, stretch: float = 1.0) -> RacePlan:
    """Return a plan whose path is moved with its gates, from one gate's shift to the next's along a smooth step.

    Args:
        plan: Through all passages.
        shifts: Of the passages [m], (passages, 3).
        stretch: It is flown so many times as slowly, which leaves thrust for what the move asks.
    """
    each = len(plan.inputs) // len(plan.legs)
    part = np.arange(1, each + 1) / each
    # The step of degree five: no velocity and no acceleration at its ends.
    step = part**3 * (10.0 - 15.0 * part + 6.0 * part**2)
    speed = part**2 * (30.0 - 60.0 * part + 30.0 * part**2)
    bend = part * (60.0 - 180.0 * part + 120.0 * part**2)
    start, legs = np.zeros((1, 3)), stretch * plan.legs
    offsets, speeds, bends = [start], [start], [start]
    for old, new, leg in zip(np.vstack([start, shifts[:-1]]), shifts, legs, strict=True):
        offsets.append(old + step[:, None] * (new - old))
        speeds.append(speed[:, None] * (new - old) / leg)
        bends.append(bend[:, None] * (new - old) / leg**2)
    states = plan.states
    held = np.vstack([plan.inputs, plan.inputs[-1:]])
    slope = np.stack(plan.model.derivative(states.T, held.T)[3:6], axis=1)
    facing = frames.to_matrix(states[:, 6:10])[..., 0]
    place, velocity = states[:, :3] + np.vstack(offsets), states[:, 3:6] / stretch + np.vstack(speeds)
    return flat_plan(plan.model, place, velocity, slope / stretch**2 + np.vstack(bends), facing, legs.tolist())
