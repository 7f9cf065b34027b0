"""A policy step of any learning task with its adjoint, as one kernel: what a network of one's own is derived through.

A flight's rows are those of its body and rotors (13 + n), its last action, what its task remembers, and its age in decisions.
A step reads them, an action and the vehicle's parameters, and gives the next rows, what the policy then sees, and the cost:
minus the task's reward. The adjoint flies the physics of the step once more inside the launch instead of keeping it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, Vector, aligned_zeros
from airworthy.core.native_kernel import CPU_LANES, Launcher, native_kernel, quiet_warp, shared_source
from airworthy.core.ops import ops_of
from airworthy.core.tracing import Graph, adjoint, evaluate, trace, vector_jacobian
from airworthy.core.tracing.graph import as_value
from airworthy.learning.environments.kernel import EnvironmentParameters, EnvironmentShape, parameters_of

__all__ = ["FLAGS", "DerivedStep", "StepEquations", "StepTwin"]

FLAGS = ("cost", "terminated", "success", "sound")
"""Rows of what a step tells beside state and observation. A flight that leaves the numbers is not `sound`: its cost is 0, what
is seen of it are zeros, its rows are NaN from then on, and nothing flows back through it."""


@dataclass(frozen=True)
class StepEquations:
    """The three parts of a policy step as functions of scalars: command, a step of physics, what is made of where it led.

    Inputs are named: `a` action, `w` what it commands, `x` body and rotors, `s` the same before the step, `p` parameters as of
    `EnvironmentParameters.used`, `b` the action before, `m` memory, `h` age.
    """

    shape: EnvironmentShape

    @property
    def parameters(self) -> EnvironmentParameters:
        """Rows that are read."""
        return parameters_of(self.shape)

    @property
    def rows(self) -> int:
        """Of a flight."""
        return self.shape.state + self.shape.actions + self.parameters.memory + 1

    def record(self, p: Any, b: Vector, m: Vector, h: Any) -> Any:
        """Return the record that the task reads.

        Args:
            p: Parameters.
            b: Action before.
            m: Memory.
            h: Age.
        """
        curriculum = self.shape.traits.curriculum
        # As hard as it gets: who wants it easier gives the task itself easier options.
        return self.parameters.of(p, b, (h, float(curriculum.most) if curriculum else 0.0), m)

    def command(self, a: Vector, p: Any, b: Vector, m: Vector, h: Any) -> Vector:
        """Return what an action asks of the controller, or of the rotors.

        Args:
            a: Action.
            p: Parameters, and so on, as of the class.
            b: Action before.
            m: Memory.
            h: Age.
        """
        return tuple(self.shape.task.command(a, self.record(p, b, m, h)))

    def physics(self, x: Vector, w: Vector, p: Any, b: Vector, m: Vector, h: Any) -> Vector:
        """Return body and rotors a step of physics later.

        Args:
            x: Body and rotors.
            w: What is commanded.
            p: Parameters, and so on, as of the class.
            b: Action before.
            m: Memory.
            h: Age.
        """
        record = self.record(p, b, m, h)
        rotors = w if self.shape.traits.by_rotor else self._controlled(x, w, record)
        return tuple(self.shape.physics(x, rotors, record))

    def _controlled(self, x: Vector, wanted: Vector, p: Any) -> Vector:
        law = self.shape.controller
        wrench = law.wrench(x, wanted, p)
        exact = law.exact(wrench, p)[0]
        if not law.bounded:
            return law.rotors(x, exact, p)
        within = law.within(wrench, p)
        if law.count <= 4:
            return law.rotors(x, within, p)
        # More rotors than four share what saturates by a search, which has no slope: it is taken from the pseudo-inverse, of
        # which the search is a copy wherever no rotor saturates.
        ops = ops_of(*exact, *within)
        held = tuple(ops.known_slope(e, lambda _, t=t: t, lambda *_: 1.0) for e, t in zip(exact, within, strict=True))
        return law.rotors(x, held, p)

    def finish(self, s: Vector, x: Vector, a: Vector, p: Any, b: Vector, m: Vector, h: Any) -> Vector:
        """Return rows of the flight after a step but its age, what is seen, cost, terminated, success.

        Args:
            s: Body and rotors before it.
            x: After it.
            a: Action that was taken.
            p: Parameters.
            b: Action before.
            m: Memory before.
            h: Age before.
        """
        record = self.record(p, b, m, h)
        judged = self.shape.judged(s, x, a, record)
        memory = self.shape.traits.remember(s, x, a, record)
        cost: Any = 0.0
        for term in judged.terms.values():
            cost = cost - term
        seen = self.seen(x, p, a, memory, h + 1.0)
        return (*x, *a, *memory, *seen, cost, judged.terminated, judged.success)

    def seen(self, x: Vector, p: Any, b: Vector, m: Vector, h: Any) -> Vector:
        """Return what the policy sees, without noise.

        Args:
            x: Body and rotors.
            p: Parameters, and so on, as of the class.
            b: Action before.
            m: Memory.
            h: Age.
        """
        return tuple(self.shape.task.observe(x, (0.0,) * 16, self.record(p, b, m, h)))

    def parts(self) -> dict[str, tuple[Callable[..., Vector], dict[str, int | None], int]]:
        """Return the parts by name: the function, the lengths of its inputs, and how many of its results have a slope."""
        state, wide, p = self.shape.state, self.shape.actions, self.parameters
        about: dict[str, int | None] = {"p": len(p.used), "b": wide, "m": p.memory, "h": None}
        finished = self.rows - 1 + p.observed + 1
        return {
            "command": (self.command, {"a": wide, **about}, self.wanted),
            "physics": (self.physics, {"x": state, "w": self.wanted, **about}, state),
            "finish": (self.finish, {"s": state, "x": state, "a": wide, **about}, finished),
        }

    @property
    def wanted(self) -> int:
        """Numbers of a command."""
        return _wanted(self)


@cache
def _wanted(equations: StepEquations) -> int:
    graph, p = Graph(), equations.parameters

    def some(count: int) -> Vector:
        return tuple(graph.input(f"x{k}") for k in range(count))

    wide = equations.shape.actions
    return len(equations.command(some(wide), some(len(p.used)), some(wide), some(p.memory), some(1)[0]))


# ---- the kernel ----------------------------------------------------------------------------------------------------

_ARGUMENTS = """
    state: float32[]       # (rows, env)
    actions: float32[]     # (actions, env)
    parameters: float32[]  # (used rows, env)
    flags: float32[]       # (FLAGS, env): written forwards, read backwards
    seeds: float32[]       # (rows + observed + 1, env): slope of what is asked for by next rows, observation, cost
    # output
    after: float32[]       # (rows + observed, env)
    slopes: float32[]      # (rows + actions, env), and the used rows of parameters where they are asked for
    env_count: int
    back: int              # 0: forwards; 1: the adjoint
    keep: float            # share of the slope by the state that is handed back
"""


def step_source(equations: StepEquations, by_parameters: bool) -> str:
    """Return the kernel's native text.

    Args:
        equations: Of the step.
        by_parameters: Whether slopes by parameters are asked for.
    """
    p, shape, blocks = equations.parameters, equations.shape, ""
    for name, (function, sizes, results) in equations.parts().items():
        told = 2 if name == "finish" else 0
        blocks += trace(function, name, sizes, {"out": results + told}).source
        back = _adjoint_of(function, sizes, results, by_parameters)
        found = sum(length for k, length in sizes.items() if length is not None and (k != "p" or by_parameters))
        # Once per step and large: inlined it would only push the rest out of the instruction cache.
        blocks += trace(back, f"{name}_adjoint", {**sizes, "seed": results}, {"out": found}).source.replace(
            "static INLINE", "static SEPARATE", 1
        )
    seen = {"x": shape.state, "p": len(p.used), "b": shape.actions, "m": p.memory, "h": None}
    blocks += trace(equations.seen, "seen", seen, {"out": p.observed}).source
    numbers = {
        "STATE": shape.state,
        "ACTIONS": shape.actions,
        "MEMORY": p.memory,
        "ROWS": equations.rows,
        "OBSERVED": p.observed,
        "PARAMETERS": len(p.used),
        "WANTED": equations.wanted,
        "SUBSTEPS": shape.substeps,
        "SLOPED": len(p.used) if by_parameters else 0,
    }
    enumerators = ", ".join(f"{name} = {value}" for name, value in numbers.items())
    text = files("airworthy.learning.gradient").joinpath("native", "derived_step.h").read_text()
    return "\n".join([shared_source("prelude.h"), f"enum {{ {enumerators} }};", text.replace("TRACED_BLOCKS", blocks)])


def _adjoint_of(
    function: Callable[..., Vector], sizes: Mapping[str, int | None], results: int, by_parameters: bool
) -> Callable[..., list[Any]]:
    """Return the function that gives the slopes by each input, one behind the other; not by age."""
    names = [name for name, length in sizes.items() if length is not None]
    ends = np.cumsum([0, *(sizes[name] or 0 for name in names)]).tolist()

    def back(seed: Vector, **given: Any) -> list[Any]:
        def called(*flat: Any) -> Vector:
            cut = {name: flat[a:b] for name, (a, b) in zip(names, pairwise(ends), strict=True)}
            return tuple(function(**{**given, **cut}))[:results]

        flat = [x for name in names for x in given[name]]
        found = adjoint(called, flat, seed)[1]
        wanted = [found[a:b] for name, (a, b) in zip(names, pairwise(ends), strict=True) if name != "p" or by_parameters]
        return [x for part in wanted for x in part]

    return back


@cache
def _kernel(equations: StepEquations, by_parameters: bool) -> Any:
    return native_kernel("derived_step", step_source(equations, by_parameters), _ARGUMENTS)


class DerivedStep:
    """Steps of many flights, forwards and backwards, on memory of its own.

    Args:
        equations: Of the step.
        env_count: Flights.
        by_parameters: Whether slopes by parameters are asked for.
        threads: Most threads.
    """

    def __init__(self, equations: StepEquations, env_count: int, by_parameters: bool = False, threads: int | None = None):
        p, wide = equations.parameters, equations.shape.actions
        # Whole vectors: lanes behind the last flight are computed, and nobody looks at them.
        padded = -(-env_count // CPU_LANES) * CPU_LANES
        slopes = equations.rows + wide + (len(p.used) if by_parameters else 0)
        sizes = {
            "state": equations.rows,
            "actions": wide,
            "parameters": len(p.used),
            "flags": len(FLAGS),
            "seeds": equations.rows + p.observed + 1,
            "after": equations.rows + p.observed,
            "slopes": slopes,
        }
        self._whole = {name: aligned_zeros((rows, padded)) for name, rows in sizes.items()}
        # Numbers that a division can bear, in lanes that nobody looks at.
        self._whole["parameters"][:] = 1.0
        self.arrays: dict[str, ArrayF32] = {name: x[:, :env_count] for name, x in self._whole.items()}
        """By names of the kernel's arguments, (rows, env)."""
        self._kernel, self._padded, self._threads = _kernel(equations, by_parameters), padded, threads
        self._launchers: dict[tuple[int, float], Launcher] = {}

    def forward(self) -> None:
        """Fill `after` and `flags` from `state`, `actions` and `parameters`."""
        self._launch(0, 1.0)

    def backward(self, keep: float = 1.0) -> None:
        """Fill `slopes` from `seeds`, `flags` and what the step began with.

        Args:
            keep: Share of the slope by the state that is handed back.
        """
        self._launch(1, keep)

    def _launch(self, back: int, keep: float) -> None:
        if (back, keep) not in self._launchers:
            wp = quiet_warp()
            arrays = [wp.array(x.ravel(), device="cpu", copy=False) for x in self._whole.values()]
            arguments = [*arrays, self._padded, back, keep]
            blocks = self._padded // CPU_LANES
            self._launchers[back, keep] = Launcher(self._kernel, blocks, arguments, "cpu", self._threads)
        self._launchers[back, keep].launch()


# ---- the twin ----------------------------------------------------------------------------------------------------


class StepTwin:
    """The readable twin of the kernel, on float64 NumPy.

    Args:
        equations: Of the step.
    """

    def __init__(self, equations: StepEquations):
        self.equations = equations
        self._slopes = {name: _TwinAdjoint(*part) for name, part in equations.parts().items()}

    def _split(self, state: Array) -> tuple[Vector, dict[str, Any]]:
        shape = self.equations.shape
        ends = np.cumsum([shape.state, shape.actions, self.equations.parameters.memory])
        x, b, m, h = np.split(state, ends)
        return tuple(x), {"b": tuple(b), "m": tuple(m), "h": h[0]}

    def _flown(self, state: Array, action: Array, parameters: Array) -> tuple[list[Vector], dict[str, Any], Vector, Vector]:
        x, about = self._split(state)
        about["p"], a = tuple(parameters), tuple(np.clip(action, -1.0, 1.0))
        wanted = self.equations.command(a, **about)
        path = [x]
        for _ in range(self.equations.shape.substeps):
            path.append(self.equations.physics(path[-1], wanted, **about))
        return path, about, a, wanted

    def forward(self, state: Array, action: Array, parameters: Array) -> tuple[Array, Array, Array]:
        """Return the next rows (rows, env), what is seen (observed, env), and `FLAGS` (4, env).

        Args:
            state: Rows of flights, (rows, env).
            action: (actions, env); beyond -1 and 1 it is clipped.
            parameters: (used rows, env).
        """
        with np.errstate(all="ignore"):
            path, about, a, _ = self._flown(state, action, parameters)
            found = _stacked(self.equations.finish(path[0], path[-1], a, **about), state.shape[1])
        rows = self.equations.rows
        after = np.concatenate([found[: rows - 1], state[-1:] + 1.0])
        seen, cost, told = found[rows - 1 : -3], found[-3], found[-2:]
        sound = np.isfinite(after).all(axis=0) & np.isfinite(seen).all(axis=0) & np.isfinite(cost)
        sound &= np.isfinite(action).all(axis=0)
        flags = np.stack([np.where(sound, cost, 0.0), *np.where(sound, told, [[1.0], [0.0]]), sound.astype(float)])
        return np.where(sound, after, np.nan), np.where(sound, seen, 0.0), flags

    def backward(
        self, state: Array, action: Array, parameters: Array, seeds: Array, sound: Array, keep: float = 1.0
    ) -> tuple[Array, Array, Array]:
        """Return slopes by state (rows, env), action (actions, env), and parameters (used rows, env).

        Args:
            state: As of `forward`.
            action: As of `forward`.
            parameters: As of `forward`.
            seeds: Slope of what is asked for by next rows, observation and cost, (rows + observed + 1, env).
            sound: 1 where the flight stayed within the numbers, (env,).
            keep: Share of the slope by the state that is handed back.
        """
        with np.errstate(all="ignore"):
            path, about, a, wanted = self._flown(state, action, parameters)
            # The age has no slope.
            seeds = np.delete(seeds, self.equations.rows - 1, axis=0)
            found = self._slopes["finish"](seeds, s=path[0], x=path[-1], a=a, **about)
            x, by_wanted = found["x"], np.zeros((self.equations.wanted, state.shape[1]))
            for before in reversed(path[:-1]):
                more = self._slopes["physics"](x, x=before, w=wanted, **about)
                x, by_wanted = more["x"], by_wanted + more["w"]
                found = {name: slope + more[name] if name in ("p", "b", "m") else slope for name, slope in found.items()}
            more = self._slopes["command"](by_wanted, a=a, **about)
        found = {name: slope + more.get(name, 0.0) for name, slope in found.items()}
        by_state = keep * np.concatenate([found["s"] + x, found["b"], found["m"], np.zeros_like(sound)[None]])
        by_action = np.where(np.abs(action) <= 1.0, found["a"], 0.0)
        whole = np.concatenate([by_state, by_action, found["p"]])
        fine = (sound > 0.5) & np.isfinite(whole).all(axis=0)
        rows, wide = len(by_state), len(by_action)
        by_state, by_action, by_parameters = np.split(np.where(fine, whole, 0.0), [rows, rows + wide])
        return by_state, by_action, by_parameters

    def observe(self, state: Array, parameters: Array) -> Array:
        """Return what policies see of flights, (observed, env); zeros of those that left the numbers.

        Args:
            state: Rows of flights, (rows, env).
            parameters: (used rows, env).
        """
        x, about = self._split(state)
        with np.errstate(all="ignore"):
            seen = _stacked(self.equations.seen(x, tuple(parameters), **about), state.shape[1])
        return np.where(np.isfinite(state).all(axis=0) & np.isfinite(seen).all(axis=0), seen, 0.0)


class _TwinAdjoint:
    """Slopes of a function by its named inputs, on arrays: traced once, computed often."""

    def __init__(self, function: Callable[..., Vector], sizes: Mapping[str, int | None], results: int):
        self._graph = Graph()
        self._inputs: dict[str, Any] = {
            name: self._graph.input(name) if length is None else tuple(self._graph.input(f"{name}[{k}]") for k in range(length))
            for name, length in sizes.items()
        }
        self._seeds = [self._graph.input(f"seed[{k}]") for k in range(results)]
        values = [as_value(self._graph, y) for y in tuple(function(**self._inputs))[:results]]
        self._flat = [x for item in self._inputs.values() if isinstance(item, tuple) for x in item]
        self._slopes = vector_jacobian(self._graph, values, self._seeds, self._flat)

    def __call__(self, seeds: Array, **given: Any) -> dict[str, Array]:
        """Slopes by name, each (length, env)."""
        numbers: dict[int, Any] = {v.index: x for v, x in zip(self._seeds, seeds, strict=True)}
        for name, item in self._inputs.items():
            pairs = zip(item, given[name], strict=True) if isinstance(item, tuple) else [(item, given[name])]
            numbers |= {v.index: x for v, x in pairs}
        found = iter(evaluate(self._graph, self._slopes, numbers))
        count = np.shape(given["h"])[0]
        return {
            name: _stacked(tuple(next(found) for _ in item), count)
            for name, item in self._inputs.items()
            if isinstance(item, tuple)
        }


def _stacked(values: Vector, count: int) -> Array:
    if not values:
        return np.zeros((0, count))
    return np.array([np.broadcast_to(x, (count,)) for x in values], float)
