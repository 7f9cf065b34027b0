"""Builds and runs the kernel that flies rollouts: 16 at a time on a CPU, one per thread on a GPU, from one text."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np

from airworthy.core.native_kernel import (
    CPU_LANES,
    native_kernel,
    quiet_launch,
    quiet_warp,
    shared_source,
    thread_limit,
)
from airworthy.core.random import Stream
from airworthy.core.threads import share
from airworthy.core.tracing import TracedBlock, trace
from airworthy.gates.labels.controller_model import DT, ControllerModel
from airworthy.gates.labels.equations import LANE_SIZE, NOISE_SIZE, REFERENCE_SIZE, STATE_SIZE, flight_step, reference_at
from airworthy.gates.labels.lanes import RolloutLanes, centred
from airworthy.gates.labels.options import SearchOptions

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
    """Native text of the kernel."""
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
