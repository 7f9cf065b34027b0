"""Rollouts as rows of numbers: the two segments, the gates and the drawn vehicle of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from airworthy.core.arrays import Array, ArrayInt
from airworthy.gates.labels.controller_model import DT, ControllerModel, hover
from airworthy.gates.labels.options import SearchOptions
from airworthy.gates.labels.situations import RolloutDraws, corners
from airworthy.trajectories.polynomial import septic_coasting

__all__ = ["EXTRA", "RolloutLanes", "make_lanes", "step_counts"]


# Source: spec/boundary_predictor section 14, ours there: end of second segment + 0.5 s.
EXTRA = 0.5
"""A rollout goes on for this long behind its second segment [s]."""


@dataclass(frozen=True)
class RolloutLanes:
    """k rollouts; positions are relative to gate i."""

    coefficients: Array
    """Ascending powers of t / T of each segment and axis [m], shape (k, 2, 3, 8)."""
    times: Array
    """Durations [s], shape (k, 2)."""
    headings: Array
    """Yaw at the begin of each segment and its turn [rad], shape (k, 2, 2)."""
    start: Array
    """Position, velocity, attitude as quaternion (10), height integral and rotor speed, shape (k, 12)."""
    constant: Array
    """Numbers of a `Lane` but the last, shape (k, 19)."""
    scored: ArrayInt
    """Steps that count for the tracking error, shape (k,)."""
    total: ArrayInt
    """Steps to fly, shape (k,)."""
    draws: RolloutDraws

    def __len__(self) -> int:
        return len(self.scored)


def step_counts(duration: ArrayLike) -> tuple[ArrayInt, ArrayInt]:
    """Return steps whose command lies within both segments, and steps in all, of durations t0 + tf [s]."""
    time = np.asarray(duration, dtype=np.float64)
    # A duration of a whole number of steps must not gain one by rounding.
    scored = np.ceil(time / DT - 1e-9).astype(np.int64)
    return scored, np.ceil((time + EXTRA) / DT - 1e-9).astype(np.int64)


def make_lanes(
    situations: Array,
    v: Array,
    t0: Array,
    tf: Array,
    draws: RolloutDraws,
    controller_model: ControllerModel,
    options: SearchOptions,
) -> RolloutLanes:
    """Rollouts of situations, shape (k, 8), each with one speed [m/s] and two durations [s], shapes (k,).

    Args:
        situations: (k, 8) [m/s, m, rad].
        v: Speed through gate i, (k,) [m/s].
        t0: Duration of the first segment, (k,) [s].
        tf: Duration of the second, (k,) [s].
        draws: Mass, inertia and keys, (k, ...).
        controller_model: Vehicle and controller.
        options: Of the search.
    """
    positions, headings = corners(situations)
    relative = positions - positions[:, 1:2]
    out = np.stack((np.cos(headings), np.sin(headings), np.zeros_like(headings)), axis=-1)
    speeds = np.stack((situations[:, 0], v, np.zeros_like(v)), axis=-1)
    velocity = speeds[..., None] * out
    times = np.stack((t0, tf), axis=-1)
    coefficients = septic_coasting(relative[:, :2], relative[:, 1:], velocity[:, :2], velocity[:, 1:], times[..., None])
    scored, total = step_counts(t0 + tf)
    return RolloutLanes(
        coefficients,
        times,
        _headings(headings, options),
        _start(relative, velocity, headings[:, 0] + options.yaw_offset, draws, controller_model),
        _constant(situations, relative, out, draws),
        scored,
        total,
        draws,
    )


def _headings(headings: Array, options: SearchOptions) -> Array:
    yaw = headings + options.yaw_offset
    turn = np.diff(yaw, axis=1) if options.yaw_ramp else np.zeros_like(yaw[:, 1:])
    # Along the shorter arc (spec/boundary_predictor section 4, ours there).
    turn = turn - 2.0 * np.pi * np.round(turn / (2.0 * np.pi))
    begin = np.stack((yaw[:, 0], yaw[:, 0] + turn[:, 0]), axis=-1)
    return np.stack((begin, turn), axis=-1)


def _start(relative: Array, velocity: Array, yaw: Array, draws: RolloutDraws, controller_model: ControllerModel) -> Array:
    """On the reference, level (its acceleration is zero there), rotors and integral as in hover."""
    # Integral preset to hover: else its transient would dominate the tracking error (spec/boundary_predictor section 9).
    speed, integral = hover(controller_model, draws.mass)
    zero = np.zeros_like(yaw)
    attitude = np.stack((zero, zero, np.sin(0.5 * yaw), np.cos(0.5 * yaw)), axis=-1)
    return np.concatenate((relative[:, 0], velocity[:, 0], attitude, integral[:, None], speed[:, None]), axis=-1)


def _constant(situations: Array, relative: Array, out: Array, draws: RolloutDraws) -> Array:
    """In the order of `equations.Lane`."""
    mass, inertia = draws.mass[:, None], draws.inertia
    parts = (mass, 1.0 / mass, inertia, 1.0 / inertia, relative[:, 0], relative[:, 2], out[:, 1, :2], out[:, 2, :2])
    return np.concatenate((*parts, -situations[:, 4:5]), axis=-1)


@cache
def _shift() -> Array:
    """Matrix from powers of tau to powers of sigma = tau - 1/2."""
    matrix = np.array([[comb(k, j) * 0.5 ** (k - j) if k >= j else 0.0 for k in range(8)] for j in range(8)])
    matrix.setflags(write=False)
    return matrix


def centred(coefficients: Array) -> Array:
    """Coefficients of powers of sigma = tau - 1/2, shape (..., 8); summed in a fixed order, so equal whatever the batch."""
    shift = _shift()
    total = np.zeros_like(coefficients)
    for k in range(8):
        total += coefficients[..., k : k + 1] * shift[:, k]
    return total
