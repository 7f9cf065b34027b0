"""A task's own functions and a vehicle's numbers as the programs of a policy's contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from types import SimpleNamespace
from typing import Any

from airworthy.core.arrays import Vector
from airworthy.core.files import json_text, parse_json
from airworthy.core.tracing.program import Program, record_program
from airworthy.learning.environments import LearningTask, VectorTask
from airworthy.learning.environments.traits import traits_of
from airworthy.pilots.motor_policy.contract import vehicle_digest
from airworthy.pilots.task_policy.contract import TaskContract, program_inputs

__all__ = ["NetworkForm", "contract_of_task", "task_options", "without_noise"]

_MIDDLE = (0.5,) * 16
"""Uniform numbers of a flight outside of training: nothing is drawn there."""


@dataclass(frozen=True)
class NetworkForm:
    """What a policy's network is made of."""

    hidden: tuple[int, ...]
    """Widths of its hidden layers."""
    activation: str = "tanh"
    """Behind hidden layers: tanh, elu, relu."""
    output: str = "tanh"
    """Behind the last: tanh, or clip to within [-1, 1]."""


def task_options(task: LearningTask) -> dict[str, Any]:
    """Return options of a task as JSON gives them back; empty of one that is no dataclass."""
    if not is_dataclass(task) or isinstance(task, type):
        return {}
    found: dict[str, Any] = parse_json(json_text(asdict(task)), "options of a task")
    return found


def contract_of_task(
    environments: VectorTask, network: NetworkForm, training: Mapping[str, Any], rate: float | None = None, notes: str = ""
) -> TaskContract:
    """Return the contract of a policy that was learnt in environments.

    Args:
        environments: In which; task, vehicle and controller are theirs.
        network: Its form.
        training: How it learnt; free.
        rate: Decisions per second in flight [Hz]; None: as in training.
        notes: A sentence or two for people.
    """
    task, vehicle, traits = environments.task, environments.vehicle, traits_of(environments.task)
    control = traits.control(vehicle)
    flown = FlownTask(environments)
    return TaskContract(
        task=task.name,
        vehicle=vehicle.name,
        level=traits.level,
        limits=tuple((float(rotor.speed_min), float(rotor.speed_max)) for rotor in vehicle.rotors),
        hover=tuple(map(float, environments.hover_action)),
        observe=flown.observe,
        command=flown.command,
        remember=flown.remember,
        memory=flown.memory,
        path=flown.path,
        joints=flown.joints,
        motor_state=vehicle.motor_state,
        weight=float(vehicle.mass * vehicle.gravity),
        digest=vehicle_digest(vehicle),
        gains="auto" if traits.by_rotor else control.gains,
        acceleration_frame=control.acceleration_frame,
        rate=task.rate if rate is None else rate,
        hidden=network.hidden,
        activation=network.activation,  # type: ignore[arg-type]
        output=network.output,  # type: ignore[arg-type]
        options=task_options(task),
        training=dict(training),
        notes=notes,
    )


class FlownTask:
    """A task's functions over the numbers of its vehicle as recorded, without noise, as programs.

    Args:
        environments: Of the task.
    """

    def __init__(self, environments: VectorTask):
        self._environments, self._task = environments, without_noise(environments.task)
        self._traits = traits_of(environments.task)
        path = getattr(environments.task, "path_ahead", ())
        self.path: tuple[float, ...] = tuple(map(float, path))
        """Times ahead of the points of a path that are seen [s]."""
        rotors = environments.vehicle.rotor_count
        self.joints = sum(link.joint is not None for link in environments.vehicle.links) if self._traits.jointed else 0
        """Of the vehicle, of which a state has angles and rates."""
        hover = tuple(map(float, environments.hover_action))
        self.memory = self._begun(hover)
        """Remembered at a start where nothing is drawn."""
        sizes = program_inputs(rotors, len(hover), len(self.memory), len(self.path), self.joints)
        self.observe = self._program(self._observed, sizes)
        """From what a pilot reads to what the network sees."""
        self.command = self._program(lambda p, given: self._task.command(given["action"], p), sizes)
        """To the command of the level."""
        self.remember = self._program(self._remembered, sizes)
        """To what is remembered after a decision."""

    def _record(self, past: Vector, age: Any, memory: Vector) -> SimpleNamespace:
        """Parameters of the vehicle as recorded, its curriculum at its end."""
        column = tuple(map(float, self._environments.nominal))
        curriculum = self._traits.curriculum
        return self._environments.parameters_of_flight(column, past, (age, curriculum.most if curriculum else 0.0), memory)

    def _begun(self, hover: Vector) -> tuple[float, ...]:
        p = self._record(hover, 0.0, ())
        state = self._traits.goal(p)
        # A path is the course's in flight: what a training draws of it is not read.
        return tuple(float(x) for x in self._traits.begin(_MIDDLE, state, p)) if not self.path else ()

    def _program(self, function: Any, sizes: Mapping[str, int]) -> Program:
        def traced(**given: Vector) -> Sequence[Any]:
            return tuple(function(self._record(given["past"], given["age"][0], given["memory"]), given))

        return record_program(traced, sizes)

    def _observed(self, p: SimpleNamespace, given: Mapping[str, Vector]) -> Sequence[Any]:
        silent = (0.0,) * 16
        if not self.path:
            return self._task.observe(given["state"], silent, p)
        points = [given["points"][3 * k : 3 * k + 3] for k in range(len(self.path))]
        task: Any = self._task
        return tuple(task.observe_path(points, given["state"], p))

    def _remembered(self, p: SimpleNamespace, given: Mapping[str, Vector]) -> Sequence[Any]:
        return self._traits.remember(given["before"], given["state"], given["action"], p) if self.memory else ()


def without_noise(task: Any) -> Any:
    """Return the task without noise of observations, where that is an option of it."""
    has = is_dataclass(task) and any(item.name == "noise" for item in fields(task))
    return replace(task, noise=False) if has and not isinstance(task, type) else task
