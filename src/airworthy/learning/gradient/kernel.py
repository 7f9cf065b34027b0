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
from airworthy.learning.gradient.dynamics import BODY, Form, vehicle_step
from airworthy.learning.gradient.hover import OBSERVATION, HoverCost, hover_command, hover_cost, hover_observation
from airworthy.learning.network_source import network_source
from airworthy.simulation.family import parameter_layout

__all__ = ["HIDDEN_SIZES", "Ahead", "FlightWindow", "WindowShape", "hover_step", "observe", "vehicle_record"]

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
    critic: bool = False
    """Whether a network tells what comes after the window, of what is seen at its end."""
    recurrent: bool = False
    """Whether the middle layer is a GRU, whose memory is the flight's own."""

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

    @property
    def matrices(self) -> list[tuple[int, int]]:
        """Rows and columns of the policy's matrices, a bias behind each; of a GRU its gates' by what comes in and by memory."""
        middle = [(3 * self.hidden, self.hidden)] * 2 if self.recurrent else [(self.hidden, self.hidden)]
        return [(self.hidden, self.observed), *middle, (self.actions, self.hidden)]

    @property
    def value_matrices(self) -> list[tuple[int, int]]:
        """Alike of the network that tells what comes after."""
        return [(self.hidden, self.observed), (self.hidden, self.hidden), (1, self.hidden)]

    @property
    def kept_rows(self) -> tuple[int, int]:
        """Numbers that a step keeps for the way back: what layers are made of, and slopes of their sums."""
        gates = 5 * self.hidden if self.recurrent else 0
        inputs = self.observed + 2 * self.hidden + self.actions + gates + self.state
        return inputs, self.hidden + self.actions + (6 if self.recurrent else 1) * self.hidden


def observe(state: Vector, shape: WindowShape) -> Vector:
    """Return the inputs of the network: those of the task, then past actions."""
    return (*hover_observation(state), *state[BODY + shape.actions :])


def hover_step(state: Vector, action: Vector, p: Any, shape: WindowShape) -> Vector:
    """Return the next state, its observation, and the cost of the step.

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
        record = shape.form.record(read)
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
        "CRITIC": int(shape.critic),
        "RECURRENT": int(shape.recurrent),
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
    memory: float32[]      # (hidden, env) of a GRU: read, and left as after the window
    value: float32[]       # of the network that tells what comes after, packed as `weights`, its last matrix once
    inputs: float32[]      # (block, step, row, lane); on a GPU (row, step, env)
    slopes: float32[]      # alike
    cost: float32[]        # (env,): summed over the window
    gradient: float32[]    # (block, weights): of each block's own flights; not on a GPU
    returns: float32[]     # (block, step, lane): what that network is to learn; NaN where a flight left the numbers
    env_count: int
    steps: int
    seed: float            # weight of each step's cost
    keep: float            # share of the state's slope that a step hands back
    discount: float        # of what comes later, per step, and
    blend: float           # lambda of the returns, with a network that tells what comes after
"""


def vehicle_record(shape: WindowShape, rows: Mapping[int, Any]) -> SimpleNamespace:
    """Return the record that `hover_step` reads.

    Args:
        shape: Of the window.
        rows: Parameters by row, as `FlightWindow.parameters`; rows that the step does not read may be left out.
    """
    return _parameters(shape).record(lambda row: rows.get(row, 0.0), shape)


@dataclass(frozen=True)
class Ahead:
    """What comes after a window, told by a network of what is seen at its end."""

    weights: Sequence[ArrayF32]
    """As of `WindowShape.value_matrices`; tanh behind the hidden layers. Its one number is (1 - discount) times the discounted
    sum of the costs to come, and so as large as one of them."""
    discount: float
    """Per step, below 1."""
    blend: float
    """Lambda of the returns that it is to learn."""


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
        wp = quiet_warp()
        self._blocks = env_count // CPU_LANES if device == "cpu" else 1
        weights = sum((b + 1) * a for a, b in shape.matrices)
        value = sum((2 * b + 1) * a for a, b in shape.value_matrices) - shape.hidden if shape.critic else 1
        inputs, slopes = shape.kept_rows
        sizes = {
            "weights": weights + sum(a * b for a, b in shape.matrices),
            "parameters": len(self._parameters.used) * env_count,
            "state": shape.state * env_count,
            # Arrays that nobody reads have one number: one of no length has no memory to share.
            "memory": shape.hidden * env_count if shape.recurrent else 1,
            "value": value,
            "inputs": inputs * steps * env_count,
            "slopes": slopes * steps * env_count,
            "cost": env_count,
            "gradient": self._blocks * weights,
            "returns": steps * env_count if shape.critic else 1,
        }
        self._numpy = {name: np.zeros(size, np.float32) for name, size in sizes.items()}
        self._arrays = [wp.array(x, device=device, copy=False) for x in self._numpy.values()]
        self.state: ArrayF32 = self._numpy["state"].reshape(shape.state, env_count)
        """(state rows, env): where the next window begins."""
        gru = self._numpy["memory"] if shape.recurrent else np.zeros(0, np.float32)
        self.memory: ArrayF32 = gru.reshape(-1, env_count)
        """(hidden, env): what a GRU remembers there."""
        self._launchers: dict[tuple[float, ...], Launcher] = {}
        self._device = device
        self._lanes = CPU_LANES if device == "cpu" else 1

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

    def prepare(self, keep: float = 1.0, ahead: Ahead | None = None) -> None:
        """Build the kernel, where no run has: the first takes no longer than others then.

        Args:
            keep: As of `run`.
            ahead: As of `run`.
        """
        self._launcher(keep, ahead)

    def run(
        self, weights: Sequence[ArrayF32], keep: float = 1.0, ahead: Ahead | None = None
    ) -> tuple[ArrayF32, list[ArrayF32]]:
        """Fly a window from `state`, which moves on, and derive its mean cost per step by the weights.

        Args:
            weights: w1 (hidden, observed), b1, w2, b2, w3 (actions, hidden), b3; of a GRU between them its gates' matrices by
                what comes in and by memory, (3 hidden, hidden) each with a bias: reset, update, new, as torch's.
            keep: Share of the state's slope that each step hands back; below 1 distant consequences count less.
            ahead: What comes after the window, of a shape with a critic.

        Returns:
            Cost of each environment over the window, (env,); NaN or infinite where a flight left the numbers, which then
            adds nothing. And the gradient, shaped as the weights.
        """
        # Matrices also transposed: the way back reads their columns, which would lie apart.
        parts = [*weights, *(w.T for w in weights[::2])]
        np.concatenate([np.ravel(part) for part in parts], out=self._numpy["weights"])
        if ahead is not None:
            told = [*ahead.weights, *(w.T for w in ahead.weights[:4:2])]
            np.concatenate([np.ravel(part) for part in told], out=self._numpy["value"])
        self._launcher(keep, ahead).launch()
        if self._lanes == 1:
            return self._numpy["cost"], self._host_gradient()
        # In one order, whatever the number of threads: a training has the same bits on each of them.
        whole = self._numpy["gradient"].reshape(self._blocks, -1).sum(axis=0)
        parts = np.split(whole, np.cumsum([n for a, b in self.shape.matrices for n in (a * b, a)])[:-1])
        return self._numpy["cost"], [g.reshape(w.shape) for g, w in zip(parts, weights, strict=True)]

    @property
    def samples(self) -> tuple[ArrayF32, ArrayF32]:
        """What a critic is to learn of the last window: what was seen, (observed, samples), and the returns, (samples,)."""
        rows, inputs = self.shape.kept_rows[0], self._numpy["inputs"]
        if self._lanes > 1:
            inputs = inputs.reshape(-1, self.steps, rows, self._lanes).transpose(2, 0, 1, 3).reshape(-1)
        return inputs.reshape(rows, -1)[: self.shape.observed], self._numpy["returns"]

    @property
    def rows_of_samples(self) -> tuple[ArrayF32, ArrayF32]:
        """The same as it lies in memory, for kernels: `inputs` and `returns`."""
        return self._numpy["inputs"], self._numpy["returns"]

    def _host_gradient(self) -> list[ArrayF32]:
        s = self.shape
        layers, slopes = (self._numpy[name].reshape(-1, self.steps * self.env_count) for name in _ROWS)
        ends = np.cumsum([0, s.observed, s.hidden, s.hidden, s.actions])
        middle = 3 * s.hidden if s.recurrent else s.hidden
        # Of each matrix: the first of its rows' slopes, and of what it was multiplied with.
        first = [(0, 0), (s.hidden, ends[1])]
        first += [(s.hidden + middle, ends[4])] if s.recurrent else []
        first += [(len(slopes) - s.actions, ends[2])]
        gradient: list[ArrayF32] = []
        for (rows, columns), (d, x) in zip(s.matrices, first, strict=True):
            slope = slopes[d : d + rows]
            gradient += [slope @ layers[x : x + columns].T, slope.sum(axis=1)]
        return gradient

    def _launcher(self, keep: float, ahead: Ahead | None) -> Launcher:
        if (ahead is not None) != self.shape.critic:
            raise AirworthyError("A window of a shape with a critic is told what comes after it, and no other.")
        # A mean over flights and steps: `clip` and learning rate mean the same for every size of window.
        numbers = (1.0 / (self.steps * self.env_count), keep, *((ahead.discount, ahead.blend) if ahead else (1.0, 0.0)))
        if numbers not in self._launchers:
            blocks = self.env_count // self._lanes
            arguments = [*self._arrays, self.env_count, self.steps, *numbers]
            self._launchers[numbers] = Launcher(_kernel(self.shape), blocks, arguments, self._device)
        return self._launchers[numbers]
