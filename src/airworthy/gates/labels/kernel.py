"""Builds and runs the kernel that flies rollouts: 16 at a time on a CPU, one per thread on a GPU, from one text.

Rollouts as rows of numbers: the two segments, the gates and the drawn vehicle of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import comb
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayInt, ArrayLike
from airworthy.core.native_kernel import CPU_LANES, native_kernel, quiet_launch, quiet_warp, shared_source, thread_limit
from airworthy.core.random import Stream
from airworthy.core.threads import share
from airworthy.core.tracing import TracedBlock, trace
from airworthy.gates.labels.controller_model import DT, ControllerModel, hover
from airworthy.gates.labels.equations import LANE_SIZE, NOISE_SIZE, REFERENCE_SIZE, STATE_SIZE, flight_step, reference_at
from airworthy.gates.labels.options import SearchOptions
from airworthy.gates.labels.situations import RolloutDraws, corners
from airworthy.trajectories.polynomial import septic_coasting

__all__ = [
    "EXTRA",
    "FOUND",
    "PARTS",
    "ROWS",
    "RolloutLanes",
    "flight_blocks",
    "flight_kernel",
    "flight_source",
    "fly_lanes",
    "make_lanes",
    "step_counts",
]


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
    """Return rollouts of situations, shape (k, 8), each with one speed [m/s] and two durations [s], shapes (k,).

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
    """Return coefficients of powers of sigma = tau - 1/2, shape (..., 8); summed in a fixed order, so equal whatever the
    batch."""
    shift = _shift()
    total = np.zeros_like(coefficients)
    for k in range(8):
        total += coefficients[..., k : k + 1] * shift[:, k]
    return total


ROWS = 90
"""Numbers of a rollout."""
FOUND = 5
"""Numbers of its result."""
# Ours: flights end at different times, and small parts let threads that are done early take more.
PARTS = 8
"""Parts of a launch per thread of a CPU."""


@cache
def flight_blocks(controller_model: ControllerModel) -> tuple[TracedBlock, ...]:
    """Return the equations as native code, for one controller model."""
    inputs = {"state": STATE_SIZE, "reference": REFERENCE_SIZE, "noise": NOISE_SIZE, "lane": LANE_SIZE}
    found = {"next": STATE_SIZE, "error": None, "touching": None, "within": None}
    return (
        trace(reference_at, "reference_at", {"sigma": None, "coefficients": 24, "pace": None}, {"out": 9}),
        trace(flight_step, "flight_step", inputs, found, constants={"controller_model": controller_model}),
    )


def flight_source(controller_model: ControllerModel, prefix: str = "") -> str:
    """Return the native text of the kernel."""
    blocks = "".join(block.source for block in flight_blocks(controller_model))
    names = {"STATE_SIZE": STATE_SIZE, "LANE_SIZE": LANE_SIZE, "REFERENCE_SIZE": REFERENCE_SIZE, "NOISE_SIZE": NOISE_SIZE}
    numbers = "enum { " + ", ".join(f"{name} = {number}" for name, number in names.items()) + " };"
    constants = f"const float STEP = {DT}f; const unsigned int DISTURBANCE = {int(Stream.DISTURBANCE)}u;"
    fly = files("airworthy.gates.labels").joinpath("native", "fly.cpp").read_text()
    parts = [prefix, shared_source("prelude.h", "random.h"), numbers, constants, f"struct Flight {{\n{blocks}}};", fly]
    return "\n".join(parts)


_ARGUMENTS = """
    lanes: float32[]  # (ROWS, stride)
    keys: uint32[]  # (4, stride)
    # output
    found: float32[]  # (FOUND, stride)
    stride: int
    noisy: int
    force: float
    thrust: float
    ramp_share: float
    command_rate: float
    command_share: float
"""


@cache
def flight_kernel(controller_model: ControllerModel, prefix: str = "") -> Any:
    """Return the Warp kernel; with `#define SCALAR_PATH` as prefix, a CPU runs the form of a GPU."""
    return native_kernel("gate_flight", flight_source(controller_model, prefix), _ARGUMENTS, "block")


def fly_lanes(
    lanes: RolloutLanes,
    controller_model: ControllerModel,
    options: SearchOptions,
    limit: np.ndarray,
    device: str = "cpu",
    prefix: str = "",
) -> tuple[np.ndarray, ...]:
    """Fly rollouts.

    They are flown in order of their length, so that neighbours end together.

    Args:
        lanes: The rollouts.
        controller_model: What flies.
        options: Noise, commands and yaw.
        limit: Mean error [m] above which a flight is given up, shape (k,).
        device: cpu or cuda:0.
        prefix: As of `flight_kernel`.

    Returns:
        Sum of errors [m], steps flown, steps counted, crashed, gate i passed, given up; shapes (k,).
    """
    count = len(lanes)
    order = np.argsort(lanes.total, kind="stable")
    stride = -(-max(count, 1) // CPU_LANES) * CPU_LANES
    rows = np.zeros((ROWS, stride), np.float32)
    rows[:, :count] = _rows(lanes, limit)[:, order]
    keys = np.zeros((4, stride), np.uint32)
    keys[:, :count] = lanes.draws.keys.T[:, order]
    found = _launch(
        flight_kernel(controller_model, prefix), rows, keys, options, device, 1 if prefix or device != "cpu" else CPU_LANES
    )
    back = np.empty((FOUND, count), np.float64)
    back[:, order] = found[:, :count]
    total, flown, counted, mark, passed = back
    return total, flown.astype(np.int64), counted.astype(np.int64), mark == 1.0, passed > 0.0, mark == 2.0


def _launch(kernel: Any, rows: np.ndarray, keys: np.ndarray, options: SearchOptions, device: str, lanes: int) -> np.ndarray:
    wp = quiet_warp()
    stride = rows.shape[1]
    held = [wp.array(rows.ravel(), dtype=wp.float32, device=device), wp.array(keys.ravel(), dtype=wp.uint32, device=device)]
    found = wp.zeros(FOUND * stride, dtype=wp.float32, device=device)
    law = options.randomisation
    rate = options.command_rate if options.command_rate < 1.0 / DT else 0.0
    numbers = [stride, int(law.force > 0.0 or law.thrust > 0.0), law.force, law.thrust]
    arguments = [*held, found, *numbers, 1.0 / max(options.yaw_ramp, 1e-9), rate, rate * DT]
    blocks = stride // lanes
    if device != "cpu":
        quiet_launch(kernel, blocks, [*arguments, 0], device)
    else:
        _launch_split(kernel, blocks, arguments)
    return np.asarray(found.numpy(), np.float32).reshape(FOUND, stride)


def _launch_split(kernel: Any, blocks: int, arguments: list[Any]) -> None:
    """On the threads that there are, in parts that each takes as it gets free: flights differ in length, the longest first."""
    threads = min(thread_limit(), blocks)
    if threads == 1:
        quiet_launch(kernel, blocks, [*arguments, 0], "cpu")
        return
    edges = sorted({blocks * k // (PARTS * threads) for k in range(PARTS * threads + 1)})
    parts = [quiet_launch(kernel, b - a, [*arguments, a], "cpu", record=True) for a, b in pairwise(edges)]
    share(lambda part: part.launch(), reversed(parts), threads, "airworthy-gates")


def _rows(lanes: RolloutLanes, limit: np.ndarray) -> np.ndarray:
    """Numbers of rollouts as the kernel reads them, shape (ROWS, k)."""
    count = len(lanes)
    # The next number above: a flight is given up only where it has lost, whatever is rounded.
    budget = np.nextafter(np.minimum(limit * lanes.scored, 1e30).astype(np.float32), np.float32(np.inf)).astype(np.float64)
    parts = (
        lanes.times,
        1.0 / lanes.times,
        lanes.headings.reshape(count, 4),
        budget[:, None],
        lanes.start,
        lanes.constant,
        centred(lanes.coefficients).reshape(count, 48),
        lanes.scored[:, None],
        lanes.total[:, None],
    )
    return np.concatenate(parts, axis=1).T.astype(np.float32)
