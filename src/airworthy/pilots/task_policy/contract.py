"""What a task policy's folder holds: `weights.safetensors`, and `contract.json`, which says what the numbers mean.

What the policy sees, what it remembers and what its actions command stand there as programs (`core.tracing.program`), made of
the task's own functions and the vehicle's numbers: whoever flies it needs neither the task nor its file. Both files come from
strangers, perhaps: whatever does not fit is refused in one sentence. See `airworthy.pilots.network_files`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from airworthy.control.levels import MODES, ControlConfig, command_fields
from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import Bound, Length, check_fields
from airworthy.core.tracing.program import Program
from airworthy.pilots import network_files
from airworthy.pilots.motor_policy.contract import check_rotors
from airworthy.pilots.network_files import (
    WEIGHTS_FILE,
    ContractTable,
    contract_and_weights,
    folder_contract,
    layer_shapes,
    read_weights,
    write_network_files,
)
from airworthy.vehicles import Vehicle

__all__ = [
    "KIND",
    "TaskContract",
    "check_task_vehicle",
    "read_task_folder",
    "task_contract",
    "task_tensors",
    "write_task_folder",
]

# Ours; the version rises when a folder written before would be read wrongly.
KIND, VERSION = "task_policy", 1
# Ours: 4 MB are layers of a thousand neurons.
WEIGHTS_LIMIT_BYTES = 4 * 1024 * 1024
_MAGNITUDE = 1e6
_WIDTH_MAX, _LAYERS_MAX, _OBSERVED_MAX, _MEMORY_MAX = 1024, 4, 1024, 512
_WEIGHT_SHARE = 0.2
"""Ours: by more another vehicle's weight may not differ where thrusts in newtons are commanded."""
FRAMES = (
    "state: position and velocity relative to the target's, world turned to the target's heading; attitude body to that frame"
    " x y z w; body rate; rotor states. Of a path: world, and points of the reference ahead"
)
JOINTED_FRAMES = (
    FRAMES + ". Of a vehicle with joints: of its root's own centre of mass; behind the rotors joint angles, joint rates"
)
_JOINTS_MAX = 24
"""As of vehicles."""


@dataclass(frozen=True)
class TaskContract:
    """What a policy reads and gives, and where it comes from.

    Raises:
        AirworthyError: If a number is out of range, or programs do not fit.
    """

    task: str
    """Name of the learning task."""
    vehicle: str
    """Name of the vehicle that it learnt to fly."""
    level: str
    """Control level of its commands: "rotor_speed" or one of `airworthy.control.levels.MODES`."""
    limits: Annotated[tuple[tuple[float, float], ...], Bound(-_MAGNITUDE, _MAGNITUDE), Length(1, 16)]
    """Least and largest state of each rotor of that vehicle."""
    hover: Annotated[tuple[float, ...], Bound(-_MAGNITUDE, _MAGNITUDE), Length(1, 64)]
    """Action that stands for the past one when a flight begins."""
    observe: Program
    """From state, past, memory, age and points to what the network sees."""
    command: Program
    """From these and `action` to the command of the level."""
    remember: Program
    """From these, `action` and the state `before` to what is remembered after a decision."""
    memory: Annotated[tuple[float, ...], Bound(-_MAGNITUDE, _MAGNITUDE), Length(0, _MEMORY_MAX)] = ()
    """What is remembered at a start; what a training draws there is taken at its middle."""
    path: Annotated[tuple[float, ...], Bound(-1e3, 1e3, "s"), Length(0, 64)] = ()
    """Times ahead [s] of the points of the reference that are seen; empty: the task is to hold a target."""
    joints: Annotated[int, Bound(0, _JOINTS_MAX)] = 0
    """Joints of that vehicle, whose angles and rates stand in the state behind the rotors; a command then may have, behind that
    of the level, a rate for each [rad/s]."""
    motor_state: Literal["speed", "thrust"] = "speed"
    """What a rotor's state is: a speed [rad/s], or a thrust [N]."""
    weight: Annotated[float, Bound(0.0, _MAGNITUDE, "N")] = 0.0
    """Of that vehicle [N]."""
    digest: str = ""
    """SHA-256 of the vehicle's record."""
    gains: str = "auto"
    """Of the controller between command and rotors, as `ControlConfig.gains`."""
    acceleration_frame: Literal["vehicle", "world"] = "vehicle"
    """Frame of commanded accelerations."""
    rate: Annotated[float, Bound(1.0, 10_000.0, "Hz")] = 100.0
    """Decisions per second."""
    hidden: Annotated[tuple[int, ...], Bound(1, _WIDTH_MAX), Length(1, _LAYERS_MAX)] = (64, 64)
    """Widths of its hidden layers."""
    activation: Literal["tanh", "elu", "relu"] = "tanh"
    """Behind hidden layers."""
    output: Literal["tanh", "clip"] = "tanh"
    """Behind the last layer."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the task; free."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """How it learnt; free."""
    notes: str = ""
    """A sentence or two for people."""

    def __post_init__(self) -> None:
        check_fields(self, "Contract.")
        if self.level != "rotor_speed" and self.level not in MODES:
            raise AirworthyError(f"Contract.level is {self.level!r}; expected rotor_speed or one of {', '.join(MODES)}.")
        sizes = program_inputs(len(self.limits), self.actions, len(self.memory), len(self.path), self.joints)
        for name, fits in (
            ("observe", range(1, _OBSERVED_MAX + 1)),
            ("command", (self.wanted, self.wanted + self.joints)),
            ("remember", (len(self.memory),)),
        ):
            program: Program = getattr(self, name)
            if dict(program.inputs) != sizes or len(program.results) not in fits:
                raise AirworthyError(f"Contract.{name} does not fit rotors, actions, memory and level of the contract.")

    @property
    def actions(self) -> int:
        """Numbers of an action."""
        return len(self.hover)

    @property
    def wanted(self) -> int:
        """Numbers of a command of the level."""
        return len(command_fields(self.level, len(self.limits)))

    @property
    def moves_joints(self) -> bool:
        """Whether rates of joints are commanded."""
        return len(self.command.results) > self.wanted

    @property
    def control(self) -> ControlConfig:
        """Controller between command and rotors."""
        return ControlConfig(gains=self.gains, acceleration_frame=self.acceleration_frame)

    @property
    def widths(self) -> tuple[int, ...]:
        """Inputs, neurons of each hidden layer, actions."""
        return (len(self.observe.results), *self.hidden, self.actions)

    @property
    def reads_rotors(self) -> bool:
        """Whether rotor states, or joints, are read."""
        return any(p.reads(name, 13) for p in (self.observe, self.command, self.remember) for name in ("state", "before"))


def program_inputs(rotors: int, actions: int, memory: int, points: int, joints: int = 0) -> dict[str, int]:
    """Return names and lengths of what programs read.

    Args:
        rotors: Of the vehicle.
        actions: Numbers of an action.
        memory: Numbers that are remembered.
        points: Of a path that are seen.
        joints: Of the vehicle.
    """
    state = 13 + rotors + 2 * joints
    sizes = {"state": state, "before": state, "action": actions, "past": actions, "memory": memory, "age": 1}
    return {**sizes, "points": 3 * points}


def check_task_vehicle(contract: TaskContract, vehicle: Vehicle) -> None:
    """Refuse a vehicle to which the same commands would mean something else.

    Raises:
        AirworthyError: Of motor commands: other rotors; where thrusts are commanded in newtons: another weight; where a gain
            set by name stands between: another vehicle.
    """
    joints = sum(link.joint is not None for link in vehicle.links)
    if joints != contract.joints:
        raise AirworthyError(
            f"The policy learnt to fly {contract.vehicle!r}, which has {contract.joints} joints; the vehicle"
            f" {vehicle.name!r} has {joints}: train one for it."
        )
    if contract.level == "rotor_speed":
        check_rotors(contract.limits, contract.motor_state, contract.vehicle, vehicle)
        return
    weight = vehicle.mass * vehicle.gravity
    if "thrust" in contract.level and abs(weight / max(contract.weight, 1e-9) - 1.0) > _WEIGHT_SHARE:
        raise AirworthyError(
            f"The policy learnt to command thrusts of {contract.vehicle!r}, which weighs {contract.weight:.3g} N; the vehicle"
            f" {vehicle.name!r} weighs {weight:.3g} N: train one for it."
        )
    if contract.gains != "auto" and vehicle.name != contract.vehicle:
        raise AirworthyError(
            f"The policy flies through a controller with the gains {contract.gains!r} of {contract.vehicle!r}; they are not"
            f" those of the vehicle {vehicle.name!r}: train one for it."
        )


# ---- contract.json ---------------------------------------------------------------------------------------------------


def _table(c: TaskContract, weights: Mapping[str, Any]) -> dict[str, Any]:
    """Content of contract.json."""
    return {
        "kind": KIND,
        "version": VERSION,
        "summary": f"A policy of the learning task {c.task}",
        "task": {"name": c.task, "options": dict(c.options)},
        "vehicle": {
            "name": c.vehicle,
            "sha256": c.digest,
            "weight_n": c.weight,
            "rotor_state": c.motor_state,
            "limits": [{"low": low, "high": high} for low, high in c.limits],
            **({"joints": c.joints} if c.joints else {}),
        },
        "level": c.level,
        "command": [
            *command_fields(c.level, len(c.limits)),
            *(f"joint_rate_{k}" for k in range(c.joints if c.moves_joints else 0)),
        ],
        "control": {"gains": c.gains, "acceleration_frame": c.acceleration_frame},
        "rate_hz": c.rate,
        "frames": JOINTED_FRAMES if c.joints else FRAMES,
        "hover": list(c.hover),
        "memory": list(c.memory),
        "path_s": list(c.path),
        "layers": {"widths": list(c.widths), "activation": c.activation, "output": c.output},
        "programs": {
            name: {"lines": list(p.lines), "results": list(p.results)}
            for name, p in (("observe", c.observe), ("command", c.command), ("remember", c.remember))
        },
        "weights": dict(weights),
        "training": dict(c.training),
        "notes": c.notes,
    }


def task_contract(table: Any, where: str) -> tuple[TaskContract, str]:
    """Return contract and digest of the weights in a parsed contract.json.

    Args:
        table: The file's content.
        where: Its place, for messages.

    Raises:
        AssetError: It is not a contract of this kind, or cannot be used.
    """
    return contract_and_weights(table, where, "a contract of a task policy", (KIND, VERSION), _fields)


def _fields(table: ContractTable) -> TaskContract:
    limits = tuple((row.entry("low", float), row.entry("high", float)) for row in table.rows("vehicle.limits"))
    hover, memory = table.entry("hover", tuple[float, ...]), table.entry("memory", tuple[float, ...])
    path = table.entry("path_s", tuple[float, ...])
    joints = table.entry("vehicle.joints", int, 0)
    inputs = tuple(program_inputs(len(limits), len(hover), len(memory), len(path), joints).items())

    def program(name: str) -> Program:
        lines = table.entry(f"programs.{name}.lines", tuple[str, ...])
        return Program(inputs, lines, table.entry(f"programs.{name}.results", tuple[int, ...]))

    contract = TaskContract(
        task=table.entry("task.name", str),
        vehicle=table.entry("vehicle.name", str),
        level=table.entry("level", str),
        limits=limits,
        hover=hover,
        observe=program("observe"),
        command=program("command"),
        remember=program("remember"),
        memory=memory,
        path=path,
        joints=joints,
        motor_state=table.entry("vehicle.rotor_state", Literal["speed", "thrust"]),
        weight=table.entry("vehicle.weight_n", float),
        digest=table.entry("vehicle.sha256", str),
        gains=table.entry("control.gains", str),
        acceleration_frame=table.entry("control.acceleration_frame", Literal["vehicle", "world"]),
        rate=table.entry("rate_hz", float),
        hidden=table.entry("layers.widths", tuple[Any, ...])[1:-1],
        activation=table.entry("layers.activation", Literal["tanh", "elu", "relu"]),
        output=table.entry("layers.output", Literal["tanh", "clip"]),
        options=table.entry("task.options", dict[str, Any]),
        training=table.entry("training", dict[str, Any]),
        notes=table.entry("notes", str),
    )
    expected = _table(contract, {})
    for key in ("frames", "command", "layers"):
        table.must_be(key, expected[key])
    return contract


# ---- folders ---------------------------------------------------------------------------------------------------------


def task_tensors(contract: TaskContract, data: bytes, folder: str | Path) -> list[ArrayF32]:
    """Return weight and bias of each layer, first to last, of the file of weights of a folder.

    Args:
        contract: Gives the shapes.
        data: Of the file of weights.
        folder: That it comes from, for messages.

    Raises:
        AssetError: It is damaged, its tensors are others, or their numbers too large.
    """
    where = str(Path(folder) / WEIGHTS_FILE)
    shapes = layer_shapes(contract.widths)
    found = network_files.checked_tensors(data, shapes, " of a task policy", where, _MAGNITUDE)
    return [found[name] for name in shapes]


def write_task_folder(folder: str | Path, contract: TaskContract, weights: Sequence[ArrayAny]) -> Path:
    """Write a policy's folder, the contract last, so that a folder with one is whole; returns the folder.

    Args:
        folder: Made where it is missing.
        contract: What the numbers mean.
        weights: Weight (rows, columns) and bias (rows,) of each layer, first to last.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite or beyond 1e6.
    """
    shapes = layer_shapes(contract.widths)
    if len(weights) != len(shapes):
        raise AirworthyError(f"A policy of {len(shapes) // 2} layers has {len(weights)} arrays; expected {len(shapes)}.")
    data = network_files.tensor_bytes(dict(zip(shapes, weights, strict=True)), shapes, " of a task policy")
    if any(np.abs(w).max() > _MAGNITUDE for w in weights):
        raise AirworthyError(f"The weights of a policy cannot be written: they have numbers beyond {_MAGNITUDE:g}.")
    return write_network_files(folder, data, lambda file: _table(contract, file))


def read_task_folder(folder: str | Path) -> tuple[TaskContract, list[ArrayF32]]:
    """Return the contract of a policy's folder, and weight and bias of each layer.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    contract, digest = task_contract(*folder_contract(folder, "a policy"))
    return contract, task_tensors(contract, read_weights(folder, digest, WEIGHTS_LIMIT_BYTES), folder)
