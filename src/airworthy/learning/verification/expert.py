"""The expert: item 3 of SOUS VIDE's acceptance list (specification, sections 4 and 12)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.control.mpc import MpcConfig, MpcReference, MpcSolver
from airworthy.control.mpc.stage import step
from airworthy.core.files import read_json
from airworthy.evaluation.verification.figure import Figure, below, zero
from airworthy.learning.verification.flying import FULL_FORCE, MASS
from airworthy.pilots.expert_reference import expert_reference
from airworthy.pilots.svnet.features import to_command, z_down
from airworthy.trajectories import course

__all__ = ["expert_figures", "warm_figures"]

Array = NDArray[np.float64]
PROBLEMS, WARM_TICKS, CHECKED, JUDGED = 1_000, 20, 10, 256
"""Problems of one call; ticks of the closed loop, the one whose solutions are judged, and how many of them."""
LEAST_COST = 0.01
"""Below it a drone is on its course, the cost vanishes, and float32 keeps few digits of it: it is not compared."""


def expert_figures(path: Path | None) -> Iterator[Figure]:
    """Published optima, and many problems in one call.

    Args:
        path: Of `mpc_reference.json`; None: there is none.
    """
    if path is not None:
        yield from _optima(path)
    yield from _one_call()
    yield from warm_figures()


def _optima(path: Path) -> Iterator[Figure]:
    problems = read_json(path)["problems"]
    start, cost, first = (np.array([problem[name] for problem in problems], np.float64) for name in ("x0", "cost", "u0"))
    found = MpcSolver(len(start), _line()).solve(z_down(start), FULL_FORCE / MASS, 0)
    error = float(np.abs(found.cost / cost - 1.0).max())
    yield below(f"SOUS VIDE 3, {len(start)} published MPC problems: cost off the optimum, worst, relative", error, 1e-4)
    off = float(np.abs(found.inputs[:, 0] - to_command(first)).max())
    yield below(f"SOUS VIDE 3, {len(start)} published MPC problems: first command off, worst", off, 1e-2)


def _line() -> MpcReference:
    """Along x at 1 m/s, 1 m up, level."""
    states = np.tile([0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (41, 1))
    states[:, 0] = np.arange(41) * 0.05
    return MpcReference(states, np.full(41, 9.81), np.zeros((41, 3)))


@dataclass(frozen=True, eq=False)
class _Problems:
    """Drones of +-30 % off the course."""

    reference: MpcReference
    state: Array
    full: Array
    row: NDArray[np.int64]


def _problems(count: int) -> _Problems:
    reference, rng = expert_reference(course("robustness")).table, np.random.default_rng(0)
    row = rng.integers(0, len(reference) - WARM_TICKS - 1, count)
    state = reference.states[row] + rng.uniform(-1.0, 1.0, (count, 10)) * np.repeat([0.4, 0.2], [6, 4])
    state[:, 6:] /= np.linalg.norm(state[:, 6:], axis=1, keepdims=True)
    full = FULL_FORCE / MASS * rng.uniform(0.7, 1.3, count) / rng.uniform(0.7, 1.3, count)
    return _Problems(reference, state, full, row)


def _one_call() -> Iterator[Figure]:
    some = _problems(PROBLEMS)
    found = MpcSolver(PROBLEMS, some.reference).solve(some.state, some.full, some.row)
    together = {name: np.array(getattr(found, name)) for name in ("inputs", "cost", "iterations", "failed")}
    yield zero(f"SOUS VIDE 3, {PROBLEMS:,} MPC problems in one call: without a solution", int(together["failed"].sum()))
    alone, other = MpcSolver(1, some.reference), 0
    for k in range(PROBLEMS):
        alone.reset()
        one = alone.solve(some.state[k : k + 1], some.full[k : k + 1], some.row[k : k + 1])
        other += any(np.asarray(getattr(one, name))[0].tobytes() != together[name][k].tobytes() for name in together)
    yield zero(f"SOUS VIDE 3, {PROBLEMS:,} MPC problems in one call: solved otherwise one at a time", other)
    limit = MpcConfig().iterations
    most = int(together["iterations"].max())
    label = f"SOUS VIDE 3, {PROBLEMS:,} MPC problems in one call: iterations, most"
    yield Figure(label, most, f"under {limit}, where it stops", most < limit)


def warm_figures(drones: int = 1_024) -> Iterator[Figure]:
    """The closed loop of the expert: shifted starts, as `benchmarks/mpc.py` flies them for longer."""
    some = _problems(drones)
    solver = MpcSolver(drones, some.reference)
    _closed_loop(solver, some)  # compiles, and finds out how to share the work
    solver.reset()
    flown = _closed_loop(solver, some)
    warm, cold = float(np.mean(flown["iterations"][1:])), flown["iterations"][0]
    label = f"SOUS VIDE 3, closed loop of {drones:,} drones: iterations of a warm solve, mean"
    yield Figure(label, warm, f"under {cold:.3g}, those of the first", warm < cold)
    cost, first = _off_the_optimum(some, flown)
    yield below(f"SOUS VIDE 3, closed loop, tick {CHECKED}: cost off one iterated to the end, worst, relative", cost, 1e-4)
    yield below(f"SOUS VIDE 3, closed loop, tick {CHECKED}: first command off one iterated to the end, worst", first, 1e-2)
    rate = drones * (WARM_TICKS - 1) / sum(flown["seconds"][1:])
    yield Figure("SOUS VIDE 3, closed loop: warm solves of 40 steps", rate, "over 10,000", rate > 1e4, "1/s")


def _closed_loop(solver: MpcSolver, some: _Problems) -> dict[str, Any]:
    state, seconds, iterations, kept = some.state, [], [], {}
    for tick in range(WARM_TICKS):
        begun = time.perf_counter()
        found = solver.solve(state, some.full, some.row + tick)
        seconds.append(time.perf_counter() - begun)
        iterations.append(float(found.iterations.mean()))
        first = np.array(found.inputs[:, 0], np.float64)
        if tick == CHECKED:
            kept = {"state": state, "cost": np.array(found.cost), "first": first}
        begun = time.perf_counter()
        solver.shift()
        seconds[-1] += time.perf_counter() - begun
        state = np.stack(step(tuple(state.T), tuple(first.T), some.full, 9.81, 0.05), axis=-1)
        state[:, 6:] /= np.linalg.norm(state[:, 6:], axis=1, keepdims=True)
    return {"seconds": seconds, "iterations": iterations, **kept}


def _off_the_optimum(some: _Problems, flown: dict[str, Any]) -> tuple[float, float]:
    """Worst relative cost and first command off those that are iterated to the end from the reference's inputs."""
    few = slice(0, JUDGED)
    count = len(flown["cost"][few])
    end = MpcSolver(count, some.reference, MpcConfig(iterations=100, tolerance=0.0))
    done = end.solve(flown["state"][few], some.full[few], some.row[few] + CHECKED)
    judged = done.cost > LEAST_COST
    cost = np.abs(flown["cost"][few] / done.cost - 1.0)[judged].max()
    return float(cost), float(np.abs(flown["first"][few] - done.inputs[:, 0]).max())
