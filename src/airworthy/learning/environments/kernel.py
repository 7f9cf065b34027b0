"""The kernel of one policy step, traced for one task and one form of vehicles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

import numpy as np

from airworthy.core.arrays import Vector
from airworthy.core.layout import Layout
from airworthy.core.native_kernel import native_kernel, shared_source
from airworthy.core.random import Stream
from airworthy.core.tracing import Graph, needed_inputs, trace
from airworthy.dynamics.state import padded_rotor_count
from airworthy.learning.environments.drawn import drawn_rows
from airworthy.learning.environments.task import LearningTask
from airworthy.learning.gradient.dynamics import BODY, Form, Surrogate, vehicle_step
from airworthy.simulation.config import Randomization
from airworthy.simulation.family import parameter_layout

__all__ = [
    "KERNEL_ARGUMENTS",
    "RESULTS",
    "START_DRAWS",
    "STREAM",
    "EnvironmentShape",
    "environment_kernel",
    "environment_parts",
    "parameters_of",
]

RESULTS = ("reward", "return", "terminated", "truncated", "success", "diverged", "length", "last_return")
"""Rows of what a step tells of each environment; named terms of the reward follow."""
START_DRAWS = 32
"""Uniform numbers of a new flight: 16 of its start, 16 of its vehicle."""
STREAM = Stream.RESET
"""Of those, at step 0 with index 0 to 7, and of the noise of observations, at each step with index 8 to 11."""


@dataclass(frozen=True)
class EnvironmentShape:
    """What is known when a kernel is built."""

    task: LearningTask
    form: Form
    spread: Randomization
    least_thrust_to_weight: float

    @property
    def state(self) -> int:
        """Rows of a state."""
        return BODY + self.form.rotor_count

    @property
    def actions(self) -> int:
        """One per rotor."""
        return self.form.rotor_count

    def step(self, state: Vector, action: Vector, past: Vector, p: Any) -> tuple[Vector, dict[str, Any], Any, Any]:
        """Take one step.

        Args:
            state: Before it.
            action: Within [-1, 1].
            past: The action before.
            p: Parameters.

        Returns:
            Next state, terms of the reward, terminated, success.
        """
        after = vehicle_step(state, self.task.command(action, p), p, self.form, 1.0 / self.task.rate)
        judged = self.task.judge(state, after, action, past, p)
        return after, judged.terms, judged.terminated, judged.success


class EnvironmentParameters:
    """Which parameter rows a task and its vehicles read, and in which order they are kept."""

    def __init__(self, shape: EnvironmentShape):
        self.shape = shape
        self.layout: Layout = parameter_layout(padded_rotor_count(shape.form.rotor_count))
        n, size = shape.form.rotor_count, self.layout.size
        self.extra = {"hover": slice(size, size + n), "hover_action": slice(size + n, size + 2 * n)}
        self.weight_row = size + 2 * n
        graph = Graph()
        rows: dict[int, int] = {}

        def read(row: int) -> Any:
            value = graph.input(f"p{row}")
            rows[value.index] = row
            return value

        def some(name: str, count: int) -> Vector:
            return tuple(graph.input(f"{name}{i}") for i in range(count))

        p = self.record(read)
        after, terms, terminated, success = shape.step(some("s", shape.state), some("a", n), some("b", n), p)
        noises = some("n", 16)
        seen = shape.task.observe(after, noises, p)
        start = shape.task.start(some("u", 16), p)
        self.terms, self.observed = tuple(terms), len(seen)
        results = (*after, *terms.values(), terminated, success, *seen, *start)
        needed = {rows[i] for i in needed_inputs(graph, results) if i in rows}
        # And what drawing asks for besides; every action of hover, with which flights begin.
        needed |= {self.layout.offsets[name] for name in ("gravity", "mass_inverse")}
        needed |= {self.layout.offsets["rotor_max"] + i for i in range(n)} | set(range(size + n, size + 2 * n))
        self.used = sorted(needed)
        self.place = {row: k for k, row in enumerate(self.used)}

    def record(self, read: Callable[[int], Any]) -> SimpleNamespace:
        """Return the record that task and vehicles read."""
        form = self.shape.form
        # A step of 0.0 s, since none is taken: rows are read alike whatever it is.
        record = Surrogate(form, 0.0, self.layout, np.zeros((0, 0))).parameters(read)
        record.hover = tuple(read(row) for row in range(self.extra["hover"].start, self.extra["hover"].stop))
        record.nominal_weight = read(self.weight_row)
        return record

    def of(self, values: Any) -> SimpleNamespace:
        """Return the record over values in the order of `used`."""
        return self.record(lambda row: values[self.place[row]] if row in self.place else 0.0)

    def drawn(self, uniforms: Vector, nominal: Vector) -> Vector:
        """Return the rows of a new flight's vehicle, in the order of `used`."""
        rows: Mapping[int, Any] = dict(zip(self.used, nominal, strict=True))
        s = self.shape
        drawn = drawn_rows(rows, uniforms, self.layout, s.form.rotor_count, s.spread, s.least_thrust_to_weight)
        return tuple(drawn[row] for row in self.used)


@cache
def parameters_of(shape: EnvironmentShape) -> EnvironmentParameters:
    """Return the parameters of a shape, found by tracing it once."""
    return EnvironmentParameters(shape)


@cache
def environment_kernel(shape: EnvironmentShape) -> Any:
    """Return the Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel(f"environment_{shape.task.name}", environment_source(shape), KERNEL_ARGUMENTS)


def environment_source(shape: EnvironmentShape) -> str:
    """Return the kernel's native text."""
    numbers, text = environment_parts(shape)
    enumerators = ", ".join(f"{name} = {value}" for name, value in numbers.items())
    return "\n".join([shared_source("prelude.h"), f"enum {{ {enumerators} }};", shared_source("random.h"), text])


def environment_parts(shape: EnvironmentShape) -> tuple[dict[str, int], str]:
    """Return enumerators of a step and its native text, which other kernels may take into theirs, behind random.h."""
    parameters = parameters_of(shape)
    count, n = len(parameters.used), shape.actions

    def step(s: Vector, a: Vector, b: Vector, p: Vector) -> list[Any]:
        after, terms, terminated, success = shape.step(s, a, b, parameters.of(p))
        return [*after, *terms.values(), terminated, success]

    # Parameters are inputs, not constants: one kernel serves every vehicle of a form (specification, 6.1).
    blocks = [
        trace(
            step,
            "step",
            {"s": shape.state, "a": n, "b": n, "p": count},
            {"out": shape.state + len(parameters.terms) + 2},
        ),
        trace(
            lambda s, noises, p: shape.task.observe(s, noises, parameters.of(p)),
            "observe",
            {"s": shape.state, "noises": 16, "p": count},
            {"out": parameters.observed},
        ),
        trace(parameters.drawn, "draw_vehicle", {"uniforms": 16, "nominal": count}, {"out": count}),
        trace(lambda u, p: shape.task.start(u, parameters.of(p)), "start", {"u": 16, "p": count}, {"out": shape.state}),
    ]
    numbers = {
        "STATE": shape.state,
        "ACTIONS": n,
        "OBSERVED": parameters.observed,
        "PARAMETERS": count,
        "TERMS": len(parameters.terms),
        "HOVER_ACTION": parameters.place[parameters.extra["hover_action"].start],
        "NOISE": int(shape.task.noise),
        "STREAM": int(STREAM),
        **{f"R_{name.upper()}": k for k, name in enumerate((*RESULTS, "terms"))},
    }
    text = files("airworthy.learning.environments").joinpath("native", "environment_step.h").read_text()
    return numbers, text.replace("TRACED_BLOCKS", "".join(b.source for b in blocks))


KERNEL_ARGUMENTS = """
    parameters: float32[]         # (used rows, env): of the present flight's vehicle
    nominal: float32[]            # alike: from which vehicles are drawn
    state: float32[]              # (state rows + actions, env): state, then the action before
    keys: uint32[]                # (5, env): seed low and high, flight, episode; age in policy steps
    actions: float32[]            # (env, actions)
    mask: int32[]                 # (env,): whose flight begins anew, where nothing is stepped
    result: float32[]             # (len(RESULTS) + terms, env)
    observation: float32[]        # (env, observed)
    final_observation: float32[]  # (env, observed): written where a flight ended
    env_count: int
    stepping: int                 # 1: a policy step; 0: new flights where `mask` says
    episode_steps: int
"""
