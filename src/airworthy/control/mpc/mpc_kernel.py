"""Builds the kernel that solves tracking problems: 16 at a time on a CPU, one per thread on a GPU, from one text."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.control.mpc.stage import INPUT_SIZE, STATE_SIZE, TRIANGLE, stage_blocks
from airworthy.core.native_kernel import native_kernel, shared_source

# Ours: more than the four inputs that can reach a bound one after the other.
_ROUNDS = 6
"""Changes of the set of inputs at a bound, at most, in a stage; then the last is taken, and the line search judges."""


def work_rows(horizon: int) -> int:
    """Numbers of work memory per problem."""
    return 2 * (horizon + 1) * STATE_SIZE + horizon * INPUT_SIZE * (STATE_SIZE + 2)


def mpc_source(prefix: str = "") -> str:
    """Native text of the kernel."""
    folder = files("airworthy.control.mpc").joinpath("native")
    stage = folder.joinpath("stage.h").read_text().replace("TRACED_BLOCKS", "".join(block.source for block in stage_blocks()))
    names = {"NX": STATE_SIZE, "NU": INPUT_SIZE, "TRIANGLE": TRIANGLE, "ROUNDS": _ROUNDS}
    numbers = "enum { " + ", ".join(f"{name} = {number}" for name, number in names.items()) + " };"
    return "\n".join([prefix, shared_source("prelude.h"), numbers, stage, folder.joinpath("solve.cpp").read_text()])


_ARGUMENTS = """
    start: float32[]  # (10, stride)
    params: float32[]  # thrust at full command over mass, gravity (2, stride)
    window: int32[]  # first and last row of the reference (2, stride)
    reference: float32[]  # (row, 14)
    weights: float32[]  # Q, R, Q_N, lower, upper
    inputs: float32[]  # guess, then solution (horizon, 4, stride)
    # output
    states: float32[]  # (horizon + 1, 10, stride)
    result: float32[]  # cost, iterations (2, stride)
    work: float32[]
    stride: int
    horizon: int
    work_rows: int
    iterations: int
    dt: float
    tolerance: float
"""


@cache
def mpc_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; with `#define SCALAR_PATH` as prefix, a CPU runs the form of a GPU."""
    return native_kernel("mpc", mpc_source(prefix), _ARGUMENTS, "block")
