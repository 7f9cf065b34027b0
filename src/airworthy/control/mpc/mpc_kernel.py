"""Builds the kernel that solves tracking problems: 16 at a time on a CPU, one per thread on a GPU, from one text."""

# No postponed annotations here: Warp reads them.

from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.control.mpc.stage import INPUT_SIZE, STATE_SIZE, TRIANGLE, stage_blocks
from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp, shared_source

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


@cache
def mpc_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; with `#define SCALAR_PATH` as prefix, a CPU runs the form of a GPU."""
    wp = quiet_warp()

    @wp.func_native(mpc_source(prefix))
    def native_mpc(
        start: wp.array[wp.float32],
        params: wp.array[wp.float32],
        window: wp.array[wp.int32],
        reference: wp.array[wp.float32],
        weights: wp.array[wp.float32],
        inputs: wp.array[wp.float32],
        states: wp.array[wp.float32],
        result: wp.array[wp.float32],
        work: wp.array[wp.float32],
        stride: int,
        horizon: int,
        work_rows: int,
        iterations: int,
        dt: float,
        tolerance: float,
        block: int,
    ): ...

    def airworthy_mpc(
        start: wp.array[wp.float32],  # (10, stride)
        params: wp.array[wp.float32],  # thrust at full command over mass, gravity (2, stride)
        window: wp.array[wp.int32],  # first and last row of the reference (2, stride)
        reference: wp.array[wp.float32],  # (row, 14)
        weights: wp.array[wp.float32],  # Q, R, Q_N, lower, upper
        inputs: wp.array[wp.float32],  # guess, then solution (horizon, 4, stride)
        # output
        states: wp.array[wp.float32],  # (horizon + 1, 10, stride)
        result: wp.array[wp.float32],  # cost, iterations (2, stride)
        work: wp.array[wp.float32],
        stride: int,
        horizon: int,
        work_rows: int,
        iterations: int,
        dt: float,
        tolerance: float,
        first: int,
    ):
        native_mpc(
            start,
            params,
            window,
            reference,
            weights,
            inputs,
            states,
            result,
            work,
            stride,
            horizon,
            work_rows,
            iterations,
            dt,
            tolerance,
            first + wp.tid(),
        )

    return wp.kernel(airworthy_mpc, module="unique", module_options=MODULE_OPTIONS)
