"""Policies of random weights and observations made by hand, for tests of pilots that fly what was learnt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.tracing.program import Program, record_program
from airworthy.pilots.avoid_policy.contract import AvoidContract, tensor_shapes
from airworthy.pilots.avoid_policy.pilot import AvoidPolicy
from airworthy.pilots.navigation_policy.contract import NavigationContract
from airworthy.pilots.navigation_policy.network import NavigationPolicy
from airworthy.pilots.pilot import Observation
from airworthy.pilots.task_policy.contract import TaskContract, program_inputs
from airworthy.pilots.task_policy.pilot import TaskPolicy
from airworthy.simulation.sensor_state import Sample

ENVS = 5


def drawn(shapes: Mapping[str, tuple[int, ...]], seed: int = 5) -> dict[str, ArrayF32]:
    """Tensors of a spread that leaves layers unsaturated."""
    rng = np.random.default_rng(seed)
    return {name: rng.normal(0.0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}


def navigation_policy(**fields: Any) -> NavigationPolicy:
    contract = NavigationContract(**({"hidden": (12, 8), "recurrent": 6} | fields))
    weights = drawn(contract.shapes())
    weights["seen.deviation"] = np.abs(weights["seen.deviation"]) + np.float32(0.5)
    return NavigationPolicy(contract, weights)


def avoid_policy(**fields: Any) -> AvoidPolicy:
    contract = AvoidContract(**({"hidden": 9, "margin": 0.35} | fields))
    return AvoidPolicy(contract, drawn(tensor_shapes(contract)))


def task_policy(**fields: Any) -> TaskPolicy:
    """A policy whose programs touch everything that they may read."""
    rotors, actions = 4, 3
    memory, path = fields.pop("memory", (0.5, -0.25)), fields.pop("path", ())
    level = fields.pop("level", "velocity")
    sizes = program_inputs(rotors, actions, len(memory), len(path))
    wanted = {"velocity": 4, "rotor_speed": rotors, "rate_thrust": 4}[level]
    reads = fields.pop("reads_rotors", True)

    def observe(state: Any, past: Any, memory: Any, age: Any, points: Any, **_: Any) -> list[Any]:
        return [*state[: 13 + (rotors if reads else 0)], *past, *memory, 0.01 * age[0], *points]

    def command(action: Any, state: Any, **_: Any) -> list[Any]:
        return [2.0 * action[0] + 0.1 * state[0], action[1], action[2] - 0.5 * state[2], action[0] * action[1]][:wanted]

    def remember(before: Any, state: Any, action: Any, memory: Any, **_: Any) -> list[Any]:
        return [0.9 * m + action[0] + state[0] - before[0] for m in memory]

    programs: dict[str, Program] = {
        name: record_program(function, sizes)
        for name, function in (("observe", observe), ("command", command), ("remember", remember))
    }
    given: dict[str, Any] = {"task": "own", "vehicle": "bench", "level": level, "limits": ((0.0, 900.0),) * rotors}
    given |= {"hover": (0.1, -0.2, 0.3), "memory": memory, "path": path, "hidden": (7, 6), "rate": 50.0}
    contract = TaskContract(**(given | programs | fields))
    shapes = [part for a, b in zip(contract.widths[:-1], contract.widths[1:], strict=True) for part in ((b, a), (b,))]
    return TaskPolicy(contract, tuple(drawn({str(k): shape for k, shape in enumerate(shapes)}).values()))


def at_rest(place: Array, **changes: Any) -> Observation:
    """Level vehicles that stand still at places (n, 3), with nothing in front of any camera."""
    count = len(place)
    still = np.zeros((count, 3))
    fields = {"position": place, "velocity": still, "attitude": np.tile([0.0, 0.0, 0.0, 1.0], (count, 1)), "rate": still}
    fields["rotor_speed"] = np.full((count, 4), 450.0)
    time, number = changes.pop("time", np.zeros(count)), changes.pop("number", np.zeros(count, np.int64))
    return Observation(time, fields | changes, _samples(time, number, np.full((count, 48, 64), np.inf)))


def flight(ticks: int = 12, period: float = 0.02, seed: int = 2) -> Iterator[Observation]:
    """Observations of `ENVS` flights: one begins anew, one has no image yet, one gets an image every other tick only."""
    rng = np.random.default_rng(seed)
    place, velocity = rng.normal(0.0, 2.0, (ENVS, 3)), rng.normal(0.0, 1.0, (ENVS, 3))
    for k in range(ticks):
        time = np.full(ENVS, k * period)
        number = np.full(ENVS, k)
        time[3], number[3] = (time[3], k) if k < 5 else ((k - 5) * period, k - 5)
        number[1] = k // 2
        number[2] = k - 3 if k >= 3 else -1
        place = place + period * 5.0 * velocity
        depth = rng.uniform(-0.5, 20.0, (ENVS, 48, 64))
        depth[rng.random(depth.shape) < 0.05] = np.nan
        quaternions = rng.normal(size=(ENVS, 4))
        fields = {
            "position": place,
            "velocity": velocity + 0.1 * rng.normal(size=(ENVS, 3)),
            "attitude": quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True),
            "rate": rng.normal(size=(ENVS, 3)),
            "rotor_speed": rng.uniform(0.0, 900.0, (ENVS, 4)),
        }
        yield Observation(time, fields, _samples(time, number, depth))


def _samples(time: Array, number: Any, depth: Array) -> dict[str, Sample]:
    """Of both cameras; that of navigation has 36 rows."""
    count = len(time)

    def one(rows: int) -> Sample:
        pose = np.zeros((count, 3)), np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))
        number_ = np.asarray(number, np.int64)
        return Sample(time, number_, number_, number_ >= 0, *pose, {"depth": depth[:, :rows].astype(np.float32)})

    return {"policy_depth": one(48), "navigation_depth": one(36)}
