"""Fast trajectories through gates: degree-7 segments, velocity normal to each gate, speeds and durations chosen under limits.

Source: spec/boundary_predictor sections 2 to 4 and 8. Acceleration and jerk vanish at every gate, so a leg is fixed by the
speeds at its ends and its duration. Over a grid of speeds, the fastest admissible duration of every pair of speeds is found
for each leg, and dynamic programming picks the speeds of least total time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.trajectories.allocation import slow_to
from airworthy.trajectories.gates import Gate
from airworthy.trajectories.limits import TRACKING_ENVELOPE, Limits, path_usage
from airworthy.trajectories.polynomial import (
    REST_PEAK_ACCELERATION,
    REST_PEAK_JERK,
    REST_PEAK_SPEED,
    differentiate,
    evaluate,
    septic_coasting,
)
from airworthy.trajectories.trajectory import Trajectory
from airworthy.trajectories.yaw import RAMP_SHARE, turn_duration, unwrap_headings, yaw_fixed, yaw_ramp

# Ours, like the two below: grids that a second search refines around what they found.
SPEEDS = 12
"""Speeds tried at each gate."""
DURATIONS = 36
"""Durations tried for each leg and pair of speeds."""
# Source: spec/boundary_predictor section 8: max(0.8, v^2) m.
STOP_DISTANCE = 0.8
"""Least distance from the last gate to where the flight ends [m]."""
_NODES = np.linspace(0.0, 1.0, 25)
_REFINEMENTS = 8
_MARGIN = 0.999  # left for what lies between samples; the proof has the last word


@dataclass(frozen=True)
class Leg:
    """From one gate to the next: ends, and directions of flight there."""

    start: Array
    end: Array
    start_direction: Array
    end_direction: Array

    @property
    def turn(self) -> float:
        """Angle between the directions at its ends [rad]."""
        return float(np.arccos(np.clip(self.start_direction @ self.end_direction, -1.0, 1.0)))


def septic_through(
    positions: Array,
    directions: Array,
    speeds: Array,
    durations: Array,
    headings: Array | None = None,
    ramp: bool = True,
    yaw_rate: float | None = None,
    yaw_acceleration: float | None = None,
) -> Trajectory:
    """Return degree-7 segments through points at given speeds along given directions, acceleration and jerk zero at each.

    Args:
        positions: [m], shape (n + 1, 3).
        directions: Unit vectors, shape (n + 1, 3).
        speeds: [m/s], shape (n + 1,).
        durations: [s], shape (n,).
        headings: Yaw at the points [rad], shape (n + 1,); None for 0 throughout.
        ramp: Turn during the first quarter of each segment; otherwise yaw stays at the first heading.
        yaw_rate: A ramp that would be faster [rad/s] takes longer; None: never.
        yaw_acceleration: So does one that would be rougher [rad/s^2], and it is soft; None: it is even (`yaw_ramp`).
    """
    velocity = directions * speeds[:, None]
    coefficients = septic_coasting(positions[:-1], positions[1:], velocity[:-1], velocity[1:], durations[:, None])
    knots = np.concatenate(([0.0], np.cumsum(durations)))
    if headings is None or not ramp:
        yaw = yaw_fixed(knots[-1], 0.0 if headings is None else float(headings[0]))
    else:
        yaw = yaw_ramp(knots, headings, RAMP_SHARE, yaw_rate, yaw_acceleration)
    return Trajectory(knots, coefficients, *yaw)


def through_gates(
    start: tuple[float, float, float],
    start_yaw: float,
    gates: Sequence[Gate],
    limits: Limits = TRACKING_ENVELOPE,
    *,
    ramp: bool = True,
    yaw_offset: float = 0.0,
) -> Trajectory:
    """Plan a trajectory from rest, through every gate along its normal, to rest beyond the last one; the limits are proved.

    Args:
        start: [m]
        start_yaw: [rad]
        gates: In the order to be flown, each at least a centimetre from the one before.
        limits: At least one must bound the speed or the acceleration.
        ramp: Turn to each gate's heading; otherwise the first heading is kept.
        yaw_offset: Added to the heading along the gates [rad]; 0 flies nose first, -pi/2 with body y first as the paper does.

    Raises:
        AirworthyError: No gate, two gates in one place, limits that bound nothing, or a leg that no speed and duration can fly.
    """
    speed, push = _bounds(limits, gates, start)
    legs = _legs(start, start_yaw, gates)
    # From rest on: a turn that nothing else passes can still be flown by stopping in the gate.
    grids = [np.linspace(0.0, speed, SPEEDS)] * len(gates)
    speeds, durations = _search(legs, gates[-1], grids, limits, speed, push)
    # A coarse grid first: twelve speeds at each of two ends are 144 pairs a leg, thirty-six would be 1,296.
    # Once more, finer, within one step of what was found.
    around = np.linspace(-1.0, 1.0, 7) * speed / (SPEEDS - 1)
    grids = [np.clip(v + around, 0.0, speed) for v in speeds[1:-1]]
    speeds, durations = _search(legs, gates[-1], grids, limits, speed, push)
    path = [*legs, _stop_leg(gates[-1], speeds[-2], push)]
    positions = np.array([leg.start for leg in path] + [path[-1].end])
    directions = np.array([leg.start_direction for leg in path] + [path[-1].end_direction])
    headings = unwrap_headings([start_yaw, *(gate.yaw for gate in gates), gates[-1].yaw]) + yaw_offset
    soft = (None, None) if limits.yaw_acceleration is None else (_turn_rate(limits), limits.yaw_acceleration)
    path_flown = septic_through(positions, directions, speeds, durations, headings, ramp, *soft)
    return slow_to(path_flown, limits, hold_heading=False)


def _search(
    legs: Sequence[Leg], last: Gate, grids: Sequence[Array], limits: Limits, speed: float, push: float
) -> tuple[Array, Array]:
    """Speeds at start, gates and end, and leg durations, of least total time; grids are the speeds to try at each gate."""
    ends = [np.zeros(1), *grids]
    tables = [_leg_durations(leg, a, b, limits, speed, push) for leg, a, b in zip(legs, ends[:-1], ends[1:], strict=True)]
    stops = [_leg_durations(_stop_leg(last, v, push), np.array([v]), np.zeros(1), limits, speed, push) for v in grids[-1]]
    tables.append(np.concatenate(stops))
    chosen = _cheapest(tables)
    speeds = [0.0, *(float(grid[i]) for grid, i in zip(grids, chosen, strict=True)), 0.0]
    durations = [table[i, j] for table, i, j in zip(tables, [0, *chosen], [*chosen, 0], strict=True)]
    return np.array(speeds), np.array(durations)


def _bounds(limits: Limits, gates: Sequence[Gate], start: tuple[float, float, float]) -> tuple[float, float]:
    """Largest speed and acceleration worth trying [m/s, m/s^2]."""
    if not gates:
        raise AirworthyError("A gate course needs at least one gate.")
    points = np.array([start, *(gate.position for gate in gates)])
    length = float(np.sum(np.linalg.norm(np.diff(points, axis=0), axis=1)))
    speed, push = limits.speed_max, limits.acceleration_max
    if not np.isfinite(speed) and not np.isfinite(push):
        raise AirworthyError("Limits must bound the speed, the acceleration, the thrust or the envelope to fly through gates.")
    if not np.isfinite(push):
        push = speed**2 / STOP_DISTANCE
    return min(speed, float(np.sqrt(2.0 * push * length))), push


def _legs(start: tuple[float, float, float], start_yaw: float, gates: Sequence[Gate]) -> list[Leg]:
    positions = [np.array(start), *(np.array(gate.position) for gate in gates)]
    directions = [np.array([np.cos(start_yaw), np.sin(start_yaw), 0.0]), *(gate.normal for gate in gates)]
    for index, (a, b) in enumerate(pairwise(positions)):
        if np.linalg.norm(b - a) < 0.01:
            raise AirworthyError(f"Gate {index + 1} is less than 1 cm from what comes before it: move it.")
    return [Leg(*ends) for ends in zip(positions[:-1], positions[1:], directions[:-1], directions[1:], strict=True)]


def _stop_leg(gate: Gate, speed: float, push: float) -> Leg:
    """Beyond the last gate along its normal: v^2 metres under eq. 3, where push is 2 m/s^2, and never less than 0.8 m."""
    position, distance = np.array(gate.position), max(STOP_DISTANCE, 2.0 * speed**2 / push)
    return Leg(position, position + distance * gate.normal, gate.normal, gate.normal)


def _leg_durations(leg: Leg, before: Array, after: Array, limits: Limits, speed: float, push: float) -> Array:
    """Shortest tried duration that keeps the limits, per pair of speeds; infinite where none does; shape (before, after)."""
    distance = float(np.linalg.norm(leg.end - leg.start))
    # Twice as long as the slowest flight from rest to rest needs is always admissible for some pair.
    rest = [REST_PEAK_SPEED * distance / speed, np.sqrt(REST_PEAK_ACCELERATION * distance / push)]
    if limits.jerk is not None:
        rest.append((REST_PEAK_JERK * distance / limits.jerk) ** (1.0 / 3.0))
    if limits.body_rate is not None:
        rest.append((REST_PEAK_JERK * distance / (limits.body_rate * limits.gravity)) ** (1.0 / 3.0))
    rest.append(float(_ramp_usage(leg, np.ones(1), limits)[0]))
    tried = np.geomspace(0.8 * distance / speed, 2.0 * sum(rest), DURATIONS)
    used = _leg_usage(leg, before[:, None, None], after[None, :, None], tried[None, None, :], limits)
    fits = used <= _MARGIN
    first = np.argmax(fits, axis=-1)
    high, low = tried[first], tried[np.maximum(first - 1, 0)]
    # Between the first that fits and the one before, which does not.
    for _ in range(_REFINEMENTS):
        middle = 0.5 * (low + high)
        over = _leg_usage(leg, before[:, None], after[None, :], middle, limits) > _MARGIN
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return np.where(np.any(fits, axis=-1), high, np.inf)


def _ramp_usage(leg: Leg, durations: Array, limits: Limits) -> Array:
    """Part of the limits on yaw and body rate that the ramp of yaw uses."""
    least = turn_duration(leg.turn, _turn_rate(limits), limits.yaw_acceleration)
    # A soft turn takes as long as its bounds ask, up to the whole leg; an even one a share of it, as published.
    share = RAMP_SHARE if limits.yaw_acceleration is None else 1.0 - 1e-6
    return np.asarray(least / (share * durations), dtype=np.float64)


def _turn_rate(limits: Limits) -> float | None:
    return min((rate for rate in (limits.yaw_rate, limits.body_rate) if rate is not None), default=None)


def _leg_usage(leg: Leg, before: Array, after: Array, durations: Array, limits: Limits) -> Array:
    """Largest part of the limits that a leg uses, for arrays of end speeds and durations that broadcast."""
    shape = np.broadcast_shapes(before.shape, after.shape, durations.shape)
    speeds = [np.broadcast_to(v, shape)[..., None] for v in (before, after)]
    span = np.broadcast_to(durations, shape)[..., None]
    coefficients = septic_coasting(leg.start, leg.end, speeds[0] * leg.start_direction, speeds[1] * leg.end_direction, span)
    motion = [
        np.moveaxis(evaluate(differentiate(coefficients, k)[..., None, :], _NODES), -2, -1) / span[..., None] ** k
        for k in (1, 2, 3)
    ]
    return np.maximum(np.max(path_usage(limits, *motion), axis=-1), _ramp_usage(leg, durations, limits))


def _cheapest(tables: Sequence[Array]) -> list[int]:
    """Index of the speed at each gate on the cheapest way from the single start to the single end."""
    cost = tables[-1][:, 0]
    choices = []
    for table in tables[-2::-1]:
        total = table + cost[None, :]
        choices.append(np.argmin(total, axis=1))
        cost = np.min(total, axis=1)
    if not np.isfinite(cost[0]):
        raise AirworthyError("No speeds and durations fly these gates within limits: loosen the limits or spread the gates.")
    path, state = [], 0
    for choice in reversed(choices):
        state = int(choice[state])
        path.append(state)
    return path
