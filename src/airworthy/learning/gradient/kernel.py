"""The fused kernel: a window of flights with a policy, forwards and backwards, traced for one form of vehicles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayIndex, Vector
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import CPU_LANES, Launcher, native_kernel, quiet_warp, shared_source
from airworthy.core.ops import where
from airworthy.core.tracing import Graph, adjoint, needed_inputs, trace
from airworthy.dynamics.state import padded_rotor_count
from airworthy.learning.gradient.dynamics import BODY, Form, Surrogate, vehicle_step
from airworthy.learning.gradient.hover import OBSERVATION, HoverCost, hover_command, hover_cost, hover_observation
from airworthy.learning.network_source import network_source
from airworthy.simulation.family import parameter_layout

__all__ = ["HIDDEN_SIZES", "FlightWindow", "WindowShape", "hover_step", "observe", "vehicle_record"]

HIDDEN_SIZES = (16, 32, 64)
"""Widths of the two hidden layers that kernels are built for; ours: beyond it the network, not the flight, takes the time."""


@dataclass(frozen=True)
class WindowShape:
    """What is known when a kernel is built."""

    form: Form
    step_s: float
    """Of the policy [s]."""
    hidden: int
    """Width of both hidden layers."""
    history: int
    """Past actions that the policy sees, and by how many steps a command may come late at most."""
    cost: HoverCost
    pushed: bool = False
    """Whether a force and a moment act from outside, constant in a flight."""

    @property
    def actions(self) -> int:
        """One per rotor."""
        return self.form.rotor_count

    @property
    def state(self) -> int:
        """Rows: body, rotors, past actions, the newest first."""
        return BODY + self.actions * (1 + self.history)

    @property
    def observed(self) -> int:
        """Inputs of the network."""
        return OBSERVATION + self.actions * self.history


def observe(state: Vector, shape: WindowShape) -> Vector:
    """Return the inputs of the network: those of the task, then past actions."""
    return (*hover_observation(state), *state[BODY + shape.actions :])


def hover_step(state: Vector, action: Vector, p: Any, shape: WindowShape) -> Vector:
    """Next state, its observation, and the cost of the step.

    Args:
        state: `WindowShape.state` scalars.
        action: In [-1, 1], one per rotor.
        p: Parameters of the vehicle, and `hover` (actions of hover), `delay` (by how many steps commands come late) and `push`
            (force in the world [N], moment in the body [N m]).
        shape: Of the window.
    """
    n = shape.actions
    past = state[BODY + n :]
    late = action
    for k in range(shape.history):
        held = past[k * n : (k + 1) * n]
        late = tuple(_where_late(p.delay, k, h, a) for h, a in zip(held, late, strict=True))
    # What acts may be late, while the cost is of the action taken now: the late one was paid for in its own step.
    wrench = (p.push[:3], p.push[3:]) if shape.pushed else None
    body = vehicle_step(state[: BODY + n], hover_command(late, p), p, shape.form, shape.step_s, wrench)
    after = (*body, *((*action, *past)[: n * shape.history]))
    return (*after, *observe(after, shape), hover_cost(body, action, p.hover, shape.cost))


def _where_late(delay: Any, k: int, held: Any, newer: Any) -> Any:
    # Delays are whole numbers in float32: half between two of them is safe from rounding.
    return where(delay > k + 0.5, held, newer)


class _Parameters:
    """Which parameter rows the traced step reads, so that no other is loaded."""

    def __init__(self, shape: WindowShape):
        self.layout = parameter_layout(padded_rotor_count(shape.form.rotor_count))
        self.push = self.layout.size + shape.actions + 1
        """First of the six rows of a push, behind actions of hover and delay."""
        graph = Graph()
        inputs = [[graph.input(f"{name}{i}") for i in range(k)] for name, k in (("s", shape.state), ("a", shape.actions))]
        rows: dict[int, int] = {}

        def read(row: int) -> Any:
            value = graph.input(f"p{row}")
            rows[value.index] = row
            return value

        results = hover_step(tuple(inputs[0]), tuple(inputs[1]), self.record(read, shape), shape)
        self.used = sorted(rows[i] for i in needed_inputs(graph, results) if i in rows)

    def record(self, read: Callable[[int], Any], shape: WindowShape) -> SimpleNamespace:
        """Return the record of the step: vehicle's rows, then those of the task."""
        record = Surrogate(shape.form, shape.step_s, self.layout, np.zeros((0, 0))).parameters(read)
        first = self.layout.size
        record.hover = tuple(read(first + i) for i in range(shape.actions))
        record.delay = read(first + shape.actions)
        record.push = tuple(read(self.push + i) for i in range(6))
        return record


@cache
def _parameters(shape: WindowShape) -> _Parameters:
    return _Parameters(shape)


@cache
def _kernel(shape: WindowShape) -> Any:
    return native_kernel("policy_gradient", window_source(shape), KERNEL_ARGUMENTS)


def window_source(shape: WindowShape) -> str:
    """Return the kernel's native text."""
    parameters = _parameters(shape)
    place = {row: k for k, row in enumerate(parameters.used)}
    results = shape.state + shape.observed + 1

    def step(s: Vector, a: Vector, p: Vector) -> Vector:
        record = parameters.record(lambda row: p[place[row]] if row in place else 0.0, shape)
        return hover_step(s, a, record, shape)

    def step_adjoint(s: Vector, a: Vector, p: Vector, b: Vector) -> list[Any]:
        flat = (*s, *a)
        return adjoint(lambda *x: step(x[: shape.state], x[shape.state :], p), flat, b)[1]

    sizes: dict[str, int | None] = {"s": shape.state, "a": shape.actions, "p": len(parameters.used)}
    blocks = [
        trace(lambda s: observe(s, shape), "observe", {"s": shape.state}, {"out": shape.observed}),
        trace(step, "step", sizes, {"out": results}),
        trace(step_adjoint, "step_adjoint", {**sizes, "b": results}, {"out": shape.state + shape.actions}),
    ]
    # Once per step and large: inlined it would only push the rest out of the instruction cache.
    blocks[2].source = blocks[2].source.replace("static INLINE", "static SEPARATE", 1)
    numbers = {
        "STATE": shape.state,
        "ACTIONS": shape.actions,
        "OBSERVED": shape.observed,
        "HIDDEN": shape.hidden,
        "PARAMETERS": len(parameters.used),
    }
    text = files("airworthy.learning.gradient").joinpath("native", "policy_gradient.h").read_text()
    text = text.replace("TRACED_BLOCKS", "".join(b.source for b in blocks))
    enumerators = ", ".join(f"{name} = {value}" for name, value in numbers.items())
    return "\n".join([shared_source("prelude.h"), f"enum {{ {enumerators} }};", network_source(), text])


_ROWS = ("inputs", "slopes")

KERNEL_ARGUMENTS = """
    weights: float32[]     # as packed by `FlightWindow.run`
    parameters: float32[]  # (used rows, env)
    state: float32[]       # (state rows, env): read, and left as after the window
    inputs: float32[]      # (block, row, step, lane); on a GPU (row, step, env)
    slopes: float32[]      # alike
    cost: float32[]        # (env,): summed over the window
    gradient: float32[]    # (block, weights): of each block's own flights; not on a GPU
    env_count: int
    steps: int
    seed: float            # weight of each step's cost
    keep: float            # share of the state's slope that a step hands back
"""


def vehicle_record(shape: WindowShape, rows: Mapping[int, Any]) -> SimpleNamespace:
    """Return the record that `hover_step` reads.

    Args:
        shape: Of the window.
        rows: Parameters by row, as `FlightWindow.parameters`; rows that the step does not read may be left out.
    """
    return _parameters(shape).record(lambda row: rows.get(row, 0.0), shape)


class FlightWindow:
    """Flights of many environments over a window of policy steps, and the gradient of their cost by a policy's weights.

    Args:
        shape: Of vehicles, network and task.
        env_count: Environments, a multiple of 16.
        steps: Of a window.
        device: A Warp device.

    Raises:
        AirworthyError: A number that no kernel is built for.
    """

    def __init__(self, shape: WindowShape, env_count: int, steps: int, device: str = "cpu"):
        if env_count < 1 or env_count % CPU_LANES:
            raise AirworthyError(f"{env_count} environments learn at once; expected a multiple of {CPU_LANES}.")
        if shape.hidden not in HIDDEN_SIZES:
            raise AirworthyError(f"Hidden layers are {shape.hidden} wide; expected one of {', '.join(map(str, HIDDEN_SIZES))}.")
        self.shape, self.env_count, self.steps = shape, env_count, steps
        self._parameters = _parameters(shape)
        rows = shape.observed + 2 * shape.hidden + shape.actions
        wp = quiet_warp()
        self._blocks = env_count // CPU_LANES if device == "cpu" else 1
        weights = sum((b + 1) * a for a, b in self._matrices)
        sizes = {
            "weights": weights + sum(a * b for a, b in self._matrices),
            "parameters": len(self._parameters.used) * env_count,
            "state": shape.state * env_count,
            "inputs": (rows + shape.state) * steps * env_count,
            "slopes": (2 * shape.hidden + shape.actions) * steps * env_count,
            "cost": env_count,
            "gradient": self._blocks * weights,
        }
        self._numpy = {name: np.zeros(size, np.float32) for name, size in sizes.items()}
        self._arrays = [wp.array(x, device=device, copy=False) for x in self._numpy.values()]
        self.state: ArrayF32 = self._numpy["state"].reshape(shape.state, env_count)
        """(state rows, env): where the next window begins."""
        self._launchers: dict[tuple[float, float], Launcher] = {}
        self._device = device
        self._lanes = CPU_LANES if device == "cpu" else 1

    @property
    def _matrices(self) -> list[tuple[int, int]]:
        s = self.shape
        return [(s.hidden, s.observed), (s.hidden, s.hidden), (s.actions, s.hidden)]

    @property
    def parameters(self) -> dict[int, ArrayF32]:
        """Parameters in force by row, each (env,)."""
        return dict(zip(self._parameters.used, self._numpy["parameters"].reshape(-1, self.env_count), strict=True))

    def set_vehicles(self, rows: Array, hover: Array, delay: Array) -> None:
        """Set whose flights these are.

        Args:
            rows: Parameter rows of the simulator, (rows, env).
            hover: Actions of hover, (n, env).
            delay: Steps by which commands come late, (env,), at most the history.
        """
        # Nothing pushes until `set_push` says so.
        whole = np.concatenate([rows, hover, delay[None], np.zeros((6, self.env_count))])
        self._numpy["parameters"].reshape(-1, self.env_count)[:] = whole[self._parameters.used]

    def set_push(self, flights: ArrayIndex, push: Array) -> None:
        """Set what acts on flights from outside, of a shape that is `pushed`.

        Args:
            flights: Which environments.
            push: Force (world) [N], moment (body) [N m]; (6, flights).
        """
        rows = self.parameters
        for k, values in enumerate(push):
            rows[self._parameters.push + k][flights] = values

    def prepare(self, keep: float = 1.0) -> None:
        """Build the kernel, where no run has: the first takes no longer than others then.

        Args:
            keep: As of `run`.
        """
        self._launcher(keep)

    def run(self, weights: Sequence[ArrayF32], keep: float = 1.0) -> tuple[ArrayF32, list[ArrayF32]]:
        """Fly a window from `state`, which moves on, and derive its mean cost per step by the weights.

        Args:
            weights: w1 (hidden, observed), b1, w2, b2, w3 (actions, hidden), b3.
            keep: Share of the state's slope that each step hands back; below 1 distant consequences count less.

        Returns:
            Cost of each environment over the window, (env,); NaN or infinite where a flight left the numbers, which then
            adds nothing. And the gradient, shaped as the weights.
        """
        # Matrices also transposed: the way back reads their columns, which would lie apart.
        parts = [*weights, *(w.T for w in weights[::2])]
        np.concatenate([np.ravel(part) for part in parts], out=self._numpy["weights"])
        self._launcher(keep).launch()
        if self._lanes == 1:
            return self._numpy["cost"], self._host_gradient()
        # In one order, whatever the number of threads: a training has the same bits on each of them.
        whole = self._numpy["gradient"].reshape(self._blocks, -1).sum(axis=0)
        parts = np.split(whole, np.cumsum([n for a, b in self._matrices for n in (a * b, a)])[:-1])
        return self._numpy["cost"], [g.reshape(w.shape) for g, w in zip(parts, weights, strict=True)]

    def _host_gradient(self) -> list[ArrayF32]:
        s = self.shape
        layers, slopes = (self._numpy[name].reshape(-1, self.steps * self.env_count) for name in _ROWS)
        ends = np.cumsum([0, s.observed, s.hidden, s.hidden]), np.cumsum([0, s.hidden, s.hidden, s.actions])
        gradient: list[ArrayF32] = []
        for k in range(3):
            x, d = (rows[a[k] : a[k + 1]] for rows, a in zip((layers, slopes), ends, strict=True))
            gradient += [d @ x.T, d.sum(axis=1)]
        return gradient

    def _launcher(self, keep: float) -> Launcher:
        # A mean over flights and steps: `clip` and learning rate mean the same for every size of window.
        seed = 1.0 / (self.steps * self.env_count)
        if (seed, keep) not in self._launchers:
            numbers = [self.env_count, self.steps, seed, keep]
            blocks = self.env_count // self._lanes
            self._launchers[seed, keep] = Launcher(_kernel(self.shape), blocks, [*self._arrays, *numbers], self._device)
        return self._launchers[seed, keep]
