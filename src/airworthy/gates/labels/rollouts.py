"""Flights of candidates: the public call, and its float64 twin, one NumPy step at a time.

Cost (eq. 7): C = 1e6 crashes + 100 skipped gates + 4 mean tracking error + t0. A crash, contact with a frame or the floor,
ends the flight. Gate i is skipped where its plane is never crossed forwards within its opening; gate i + 1, at which the
flight stops, can only be crashed into. The error is the distance to the position commanded one step before.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.gates.labels.controller_model import DT, ControllerModel, make_controller_model
from airworthy.gates.labels.equations import flight_step
from airworthy.gates.labels.kernel import RolloutLanes, fly_lanes, make_lanes
from airworthy.gates.labels.options import SearchOptions
from airworthy.gates.labels.situations import RolloutDraws, draw, noise
from airworthy.trajectories.polynomial import differentiate, evaluate

__all__ = ["CRASH_COST", "ERROR_COST", "SKIP_COST", "Flights", "cost_of", "fly", "fly_twin", "second_duration"]


CRASH_COST, SKIP_COST, ERROR_COST = 1e6, 100.0, 4.0
"""Of eq. 7."""


@dataclass(frozen=True)
class Flights:
    """What k rollouts were, shapes (k,)."""

    error_mean: Array
    """[m]"""
    crashed: ArrayBool
    skipped: ArrayBool
    """Gate i was not passed; of a flight that crashed before it, too."""
    steps: ArrayInt
    """Flown."""
    cost: Array
    abandoned: ArrayBool
    """Given up, because it could not win any more: its cost is a lower bound."""

    def at(self, rows: ArrayLike) -> Flights:
        """Return some of them, in this order."""
        return Flights(*(getattr(self, item.name)[rows] for item in fields(self)))


def second_duration(df: ArrayLike, v: ArrayLike) -> Array:
    """Return the duration of the uniform stop over df [m] from v [m/s]; 2 df seconds from rest."""
    distance, speed = np.broadcast_arrays(np.asarray(df, dtype=np.float64), np.asarray(v, dtype=np.float64))
    # As `candidates._STILL`, so that search and flight take the same branch.
    moving = speed >= 1e-10
    return np.where(moving, 2.0 * distance / np.where(moving, speed, 1.0), 2.0 * distance)


def cost_of(crashed: ArrayBool, skipped: ArrayBool, error_mean: Array, t0: Array) -> Array:
    """Return the equation 7.

    Args:
        crashed: (k,)
        skipped: Whether gate i was not passed, (k,).
        error_mean: Mean tracking error, (k,) [m].
        t0: Duration of the first segment, (k,) [s].
    """
    return CRASH_COST * crashed + SKIP_COST * skipped + (ERROR_COST * error_mean + t0)


def fly(
    situations: ArrayLike,
    v: ArrayLike,
    t0: ArrayLike,
    options: SearchOptions | None = None,
    index: ArrayLike | None = None,
    *,
    draws: RolloutDraws | None = None,
    budget: ArrayLike | None = None,
    device: str = "cpu",
    twin: bool = False,
) -> Flights:
    """Fly candidates.

    Args:
        situations: Shape (k, 8).
        v: Speed through gate i [m/s], shape (k,).
        t0: Duration of the first segment [s], shape (k,).
        options: Vehicle, controller and randomisation.
        index: Situation numbers, from which the draws come; 0 to k - 1 by default.
        draws: Instead of those of `index`.
        budget: A flight is given up once t0 + 4 times its mean error so far exceeds it, shape (k,).
        device: cpu or cuda:0.
        twin: Fly in float64 by NumPy: slow, to compare with. It knows no budget.

    Raises:
        AirworthyError: A duration is not positive, or something of the options cannot be flown.
    """
    o = options or SearchOptions()
    controller_model = make_controller_model(o)
    e, speed, time = np.asarray(situations, np.float64), np.asarray(v, np.float64), np.asarray(t0, np.float64)
    if not (np.all(time > 0.0) and np.all(np.isfinite(e)) and np.all(np.isfinite(time)) and np.all(np.isfinite(speed))):
        raise AirworthyError("A candidate's duration must be positive, and every number of a situation finite.")
    if draws is None:
        draws = draw(controller_model, o.randomisation, o.seed, np.arange(len(e)) if index is None else index)
    lanes = make_lanes(e, speed, time, second_duration(e[:, 5], speed), draws, controller_model, o)
    if twin:
        return fly_twin(lanes, controller_model, o)
    # Lossless (spec/boundary_predictor section 6): every term is non-negative, so t0 + 4 E bounds the cost from below.
    limit = np.full(len(e), np.inf) if budget is None else (np.asarray(budget, np.float64) - time) / ERROR_COST
    return _scored(lanes, *fly_lanes(lanes, controller_model, o, limit, device))


def _scored(
    lanes: RolloutLanes, total: Array, flown: Any, counted: Any, crashed: ArrayBool, passed: ArrayBool, abandoned: ArrayBool
) -> Flights:
    # What a flight given up has cost so far, spread over all its steps, is a lower bound.
    mean = total / np.maximum(np.where(abandoned, lanes.scored, counted), 1)
    skipped = ~passed & ~abandoned
    return Flights(mean, crashed, skipped, flown, cost_of(crashed, skipped, mean, lanes.times[:, 0]), abandoned)


def fly_twin(lanes: RolloutLanes, controller_model: ControllerModel, options: SearchOptions) -> Flights:
    """Return the same in float64, every lane at once, step by step.

    Args:
        lanes: What is flown.
        controller_model: Vehicle and controller.
        options: Of the search.
    """
    count = len(lanes)
    state = _first_state(lanes)
    total, counted, flown = np.zeros(count), np.zeros(count, np.int64), np.zeros(count, np.int64)
    crashed, passed = np.zeros(count, bool), np.zeros(count, bool)
    for step in range(int(lanes.total.max(initial=0))):
        # Lanes differ in length; those that are over are computed along and not counted.
        active = (step < lanes.total) & ~crashed
        reference = reference_of(lanes, command_time(step, options.command_rate), options.yaw_ramp)
        constant = (*lanes.constant.T, np.full(count, float(step > 0)))
        stray = tuple(noise(lanes.draws.keys, step, options.randomisation).T)
        with np.errstate(all="ignore"):  # flights that have ended go on, unseen
            *state, error, touching, within = flight_step(tuple(state), reference, stray, constant, controller_model)
        scoring = active & (step < lanes.scored)
        total[scoring] += error[scoring]
        counted += scoring
        flown += active
        passed |= active & (within > 0.5)
        # Whatever is not finite has crashed.
        crashed |= active & ((touching > 0.5) | ~np.isfinite(error))
    return _scored(lanes, total, flown, counted, crashed, passed, np.zeros(count, bool))


def command_time(step: int, rate: float) -> float:
    """Return when the command was given that is in force at a step [s]."""
    # 1e-6: a step that falls on a tick belongs to it, whatever rounding says.
    return DT * step if rate >= 1.0 / DT else np.floor(DT * step * rate + 1e-6) / rate


def reference_of(lanes: RolloutLanes, time: float, yaw_ramp: float) -> tuple[Array, ...]:
    """Return position, velocity, acceleration, yaw and yaw rate at a time [s], eleven arrays (k,).

    Args:
        lanes: What is flown.
        time: Since the start [s].
        yaw_ramp: Part of a segment in which the heading turns.
    """
    second = (time >= lanes.times[:, 0]).astype(np.int64)
    rows = np.arange(len(lanes))
    duration = lanes.times[rows, second]
    elapsed = np.where(second == 1, time - lanes.times[:, 0], time)
    tau = np.minimum(elapsed / duration, 1.0)
    c = lanes.coefficients[rows, second]
    parts = [evaluate(differentiate(c, order), tau[:, None]) / duration[:, None] ** order for order in range(3)]
    begin, turn = lanes.headings[rows, second].T
    ramp = max(yaw_ramp, 1e-9) * duration
    turning = elapsed < ramp
    yaw = begin + turn * np.minimum(elapsed / ramp, 1.0)
    return (*parts[0].T, *parts[1].T, *parts[2].T, yaw, np.where(turning, turn / ramp, 0.0))


def _first_state(lanes: RolloutLanes) -> list[Array]:
    s, zero = lanes.start.T, np.zeros(len(lanes))
    still = [zero] * 3
    return [*s[:10], *still, zero, zero, s[10], *still, *still, *[zero] * 6, *[s[11]] * 4]
