"""Many tracking problems at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from airworthy.control.mpc.stage import INPUT_SIZE, STATE_SIZE, TRIANGLE, MpcConfig, stage_blocks
from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayInt, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import CPU_LANES, Launcher, native_kernel, quiet_warp, shared_source

__all__ = ["MpcReference", "MpcSolution", "MpcSolver", "mpc_kernel", "mpc_source", "work_rows"]


# ---- Builds the kernel that solves tracking problems: 16 at a time on a CPU, one per thread on a GPU, from one text -------

# Ours: more than the four inputs that can reach a bound one after the other.
_ROUNDS = 6
"""Changes of the set of inputs at a bound, at most, in a stage; then the last is taken, and the line search judges."""


def work_rows(horizon: int) -> int:
    """Return numbers of work memory per problem."""
    return 2 * (horizon + 1) * STATE_SIZE + horizon * INPUT_SIZE * (STATE_SIZE + 2)


def mpc_source(prefix: str = "") -> str:
    """Return the native text of the kernel."""
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
    result: float32[]  # cost, iterations, whether it was cut off (3, stride)
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


# ---------------------------------------------------------------------------------------------------------------------------

# Source: spec/sousvide section 2, eq. 1.
GRAVITY = 9.81
_SINGLE = "#define SCALAR_PATH\n"


@dataclass(frozen=True, eq=False)
class MpcReference:
    """What is to be followed: one table of rows at the problem's rate, of one path or of several, one behind the other."""

    states: Array
    """(rows, 10): position, velocity (world, z up), quaternion x, y, z, w, its sign continuous along a path."""
    thrust: Array
    """(rows,) acceleration by thrust [m/s^2]; each drone's own share of full command follows from it."""
    rates: Array
    """(rows, 3) body rates [rad/s]."""

    def __post_init__(self) -> None:
        count = len(self.states)
        shapes = (np.shape(self.states), np.shape(self.thrust), np.shape(self.rates))
        # The kernel reads rows by number without looking: what does not fit must not come so far.
        if shapes != ((count, STATE_SIZE), (count,), (count, 3)) or not count:
            raise AirworthyError(
                f"An MPC reference has shapes {shapes}; expected (rows, 10), (rows,) and (rows, 3), a row or more."
            )
        if not all(np.isfinite(part).all() for part in (self.states, self.thrust, self.rates)):
            raise AirworthyError("An MPC reference holds values that are not finite.")

    def __len__(self) -> int:
        return len(self.states)

    def rows(self) -> Array:
        """Return (rows, 14) as the kernel reads them."""
        return np.concatenate([self.states, self.thrust[:, None], self.rates], axis=1)


@dataclass(frozen=True, eq=False)
class MpcSolution:
    """Of every problem; views of the solver's memory, valid until its next call."""

    inputs: ArrayF32
    """(n, N, 4): thrust command in [0, 1] and body rates [rad/s]."""
    states: ArrayF32
    """(n, N + 1, 10) that they lead to."""
    cost: ArrayF32
    """(n,)"""
    iterations: ArrayInt
    """(n,)"""
    failed: ArrayBool
    """(n,) where no finite solution was found; the inputs are then the reference's."""
    cut_off: ArrayBool
    """(n,) where the last iteration allowed still lowered the cost by more than `tolerance`: the inputs are the best so far,
    not the optimum."""


class MpcSolver:
    """Solves n problems of one horizon, each with its own drone, start and piece of the reference.

    Every call starts from the inputs of the last one (`shift` moves them on by a step); at first from the reference's. A
    problem's result does not depend on the others.

    Args:
        count: Problems n.
        reference: What is to be followed.
        config: Weights, bounds, iterations.
        device: `cpu`, or a CUDA device of Warp.
        threads: Most threads of a CPU; None: as many as the machine allows.
        single: Run the form of a GPU on a CPU, one problem after the other (tests).

    Raises:
        AirworthyError: If there are no problems.
    """

    def __init__(
        self,
        count: int,
        reference: MpcReference,
        config: MpcConfig | None = None,
        device: str = "cpu",
        threads: int | None = None,
        single: bool = False,
    ):
        if count < 1:
            raise AirworthyError(f"An MPC solver was asked for {count} problems; expected 1 or more.")
        self.config = config or MpcConfig()
        self.count, self.device = count, device
        self.reference = reference
        horizon = self.config.horizon
        self._lanes = 1 if single or device != "cpu" else CPU_LANES
        # Whole blocks of lanes: the problems that fill up the last block are solved, too, and nobody reads them.
        self._stride = -(-count // CPU_LANES) * CPU_LANES
        shapes = {"start": (STATE_SIZE,), "params": (2,), "inputs": (horizon, INPUT_SIZE)}
        shapes |= {"states": (horizon + 1, STATE_SIZE), "result": (3,)}
        self._host: dict[str, Any] = {name: np.zeros((*shape, self._stride), np.float32) for name, shape in shapes.items()}
        self._host["window"] = np.zeros((2, self._stride), np.int32)
        self._host["weights"] = _weights(self.config)
        self._host["reference"] = reference.rows().astype(np.float32)
        self._host["work"] = np.empty(work_rows(horizon) * self._stride, np.float32)
        # What fills up the last block is level, with thrust of twice its weight, as any problem might be.
        self._host["start"][-1] = 1.0
        self._host["params"][0], self._host["params"][1] = 2.0 * GRAVITY, GRAVITY
        self._warp = {name: _shared(array, device) for name, array in self._host.items()}
        self._fresh = np.ones(count, bool)
        self._launcher = self._launch(threads, single)

    def _launch(self, threads: int | None, single: bool) -> Launcher:
        config = self.config
        names = ("start", "params", "window", "reference", "weights", "inputs", "states", "result", "work")
        numbers = [
            self._stride,
            config.horizon,
            work_rows(config.horizon),
            config.iterations,
            1.0 / config.rate,
            config.tolerance,
        ]
        arguments = [*(self._warp[name] for name in names), *numbers]
        return Launcher(mpc_kernel(_SINGLE if single else ""), self._stride // self._lanes, arguments, self.device, threads)

    def solve(
        self,
        start: ArrayLike,
        full: ArrayLike,
        row: ArrayLike,
        last: ArrayLike | None = None,
        gravity: ArrayLike = GRAVITY,
        which: ArrayBool | None = None,
    ) -> MpcSolution:
        """Solve all problems.

        Args:
            start: (n, 10) state now.
            full: (n,) or one: thrust at full command over mass [m/s^2].
            row: (n,) or one: row of the reference that is wanted now.
            last: (n,) or one: row at which the path ends, and which then is wanted on; None: the table's last.
            gravity: (n,) or one [m/s^2].
            which: (n,) whose solution counts; the others' inputs stay as they were. None: all.

        Raises:
            AirworthyError: If a shape does not fit, or a row is not of the table. States that are not finite are contained:
                these problems fail.
        """
        resting = np.flatnonzero(~which) if which is not None else np.zeros(0, np.intp)
        # All are solved, for lanes go together; what rests gets back what it had, also whether it is fresh.
        kept = self._host["inputs"][..., resting]
        fresh = self._fresh[resting]
        self._fill(start, full, row, last, gravity)
        self._send("start", "params", "window", "inputs")
        self._launcher.launch()
        if self.device != "cpu":
            for name in ("inputs", "states", "result"):
                self._host[name][...] = self._warp[name].numpy().reshape(self._host[name].shape)
        self._host["inputs"][..., resting], self._fresh[resting] = kept, fresh
        return self._found()

    def shift(self, which: ArrayBool | None = None) -> None:
        """Move on by a step of the horizon: the next call starts from the shifted inputs, the last one held.

        Args:
            which: (n,) of which problems; None: all.
        """
        inputs = self._host["inputs"]
        if which is None or which.all():
            # A copy: rows are moved within one array.
            inputs[:-1] = inputs[1:].copy()
        else:
            ids = np.flatnonzero(which)
            inputs[:-1, :, ids] = inputs[1:, :, ids]

    def reset(self, ids: ArrayLike | None = None) -> None:
        """Forget the inputs of problems (None: all): their next call starts from the reference's."""
        self._fresh[slice(None) if ids is None else np.asarray(ids)] = True

    def _fill(self, start: ArrayLike, full: ArrayLike, row: ArrayLike, last: ArrayLike | None, gravity: ArrayLike) -> None:
        n, host = self.count, self._host
        state = np.asarray(start, np.float64)
        if state.shape != (n, STATE_SIZE):
            raise AirworthyError(f"The MPC got states of shape {state.shape}; expected ({n}, {STATE_SIZE}).")
        host["start"][:, :n] = state.T
        host["params"][0, :n], host["params"][1, :n] = _column("full", full, n), _column("gravity", gravity, n)
        if not (host["params"][0] > 0.0).all():
            raise AirworthyError("The MPC got a drone without thrust: `full` must be above 0.")
        rows = np.broadcast_to(np.asarray(row, np.int64), n)
        ends = np.broadcast_to(np.asarray(len(self.reference) - 1 if last is None else last, np.int64), n)
        if n and not (
            rows.min() >= 0 and rows.max() <= len(self.reference) - 1 and ends.min() >= 0 and ends.max() < len(self.reference)
        ):
            raise AirworthyError(f"The MPC got a row outside its reference of {len(self.reference)} rows.")
        host["window"][0, :n], host["window"][1, :n] = rows, ends
        # What is not finite takes the reference's input, in the kernel.
        host["inputs"][:, :, :n][:, :, self._fresh] = np.nan
        self._fresh[:] = False

    def _send(self, *names: str) -> None:
        if self.device != "cpu":
            for name in names:
                self._warp[name].assign(self._host[name].reshape(-1))

    def _found(self) -> MpcSolution:
        n, host = self.count, self._host
        cost = host["result"][0, :n]
        inputs, states = (np.moveaxis(host[name][..., :n], -1, 0) for name in ("inputs", "states"))
        counted, cut = host["result"][1, :n].astype(np.int64), host["result"][2, :n] > 0.0
        return MpcSolution(inputs, states, cost, counted, ~np.isfinite(cost), cut)


def _weights(config: MpcConfig) -> ArrayF32:
    parts = (config.state_weights, config.input_weights, config.terminal_weights, config.lower, config.upper)
    return np.concatenate(parts).astype(np.float32)


def _column(name: str, value: ArrayLike, count: int) -> Array:
    given = np.asarray(value, np.float64)
    if given.shape not in ((), (count,)) or not np.isfinite(given).all():
        raise AirworthyError(f"The MPC got {name!r} of shape {given.shape}; expected one finite number or ({count},).")
    return np.broadcast_to(given, (count,))


def _shared(array: ArrayAny, device: str) -> Any:
    wp = quiet_warp()
    kind = wp.int32 if array.dtype == np.int32 else wp.float32
    # On a CPU the very memory, so that filling it is all the sending there is.
    shared = wp.array(array.reshape(-1), dtype=kind, device="cpu", copy=False)
    return shared if device == "cpu" else shared.to(device)
