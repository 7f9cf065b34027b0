"""What a learned race pilot's folder holds: `weights.safetensors`, and `contract.json`, which says what the numbers mean.

It may come from a stranger: see `airworthy.pilots.network_files`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.files import sha256
from airworthy.core.schema import Bound, Length, check_fields
from airworthy.pilots.network_files import (
    WEIGHTS_FILE,
    ContractTable,
    checked_tensors,
    contract_and_weights,
    folder_contract,
    layer_shapes,
    read_weights,
    tensor_bytes,
    write_network_files,
)
from airworthy.race.learned.observing import AHEAD, TURN_MAX, observed_numbers

__all__ = ["RacePolicyContract", "course_mark", "race_policy_digest", "read_race_folder", "write_race_folder"]

# Ours; the version rises when a folder written before would be read wrongly.
KIND, VERSION = "race_policy", 1
INPUTS = (
    ("velocity", 3, "m/s", "body", "times 0.1"),
    ("gravity", 3, "1", "body", "unit vector down"),
    ("rate", 3, "rad/s", "body", "times 0.2"),
    ("corners", 12 * (AHEAD + 1), "m", "body", "c to 2 c / (8 + |c|); of the gate passed last and the next three"),
    ("sigma", 2 * AHEAD, "m", "", "over 0.5, at most 2; to the left and upwards, of the next three"),
    ("unseen", AHEAD, "s", "", "over 2, at most 1; of the next three"),
    ("number", 0, "1", "", "1 at the next gate's number, 0 elsewhere; as many as gates"),
)
"""Name, numbers, unit, frame and scale of what a policy sees, in order."""
MEANING = "thrust = thrust_max / 2 * (1 + outputs[0]); angular acceleration = turn_max * outputs[1:4], body axes"
WEIGHTS_LIMIT_BYTES = 2 * 1024 * 1024
"""Ours: the largest network this reads has 1 MB."""
_MAGNITUDE = 1e6
"""Ours: weights beyond it may overflow float32 within the layers."""
_GATES_MAX, _NAME_MAX = 64, 80


@dataclass(frozen=True)
class RacePolicyContract:
    """What a policy learnt for, and how.

    Raises:
        AirworthyError: If a number is out of range.
    """

    race: str
    """That it flies."""
    gates: Annotated[tuple[str, ...], Length(1, _GATES_MAX)]
    """Names, in the order of flight."""
    course: str
    """`course_mark` of the nominal gates and the start."""
    vehicle: str
    """That it learnt to fly."""
    thrust_max: Annotated[float, Bound(0.0, 1e6, "N", above=True)]
    """Collective thrust that its first output of 1 stands for."""
    rate: Annotated[float, Bound(1.0, 960.0, "Hz")] = 240.0
    """Decisions per second."""
    hidden: Annotated[tuple[int, ...], Bound(1, 256), Length(1, 4)] = (128, 128)
    """Widths of its hidden layers."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """How it learnt; free."""

    def __post_init__(self) -> None:
        check_fields(self, "Contract.")
        if any(not name or len(name) > _NAME_MAX for name in self.gates):
            raise AirworthyError(f"Contract.gates has a name of 0 or more than {_NAME_MAX} characters.")

    @property
    def observed(self) -> int:
        """How many numbers it sees."""
        return observed_numbers(len(self.gates))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every tensor."""
        return layer_shapes((self.observed, *self.hidden, 4))


def course_mark(corners: Array, start: Sequence[float]) -> str:
    """Return what nominal gates and a start are known by: their SHA-256 in millimetres.

    Args:
        corners: Of the openings [m], (passages, 4, 3).
        start: [m], 3 numbers.
    """
    # Millimetres: sums of corners may end in another last bit on another machine.
    rows = [*np.asarray(corners).ravel().tolist(), *start]
    return sha256(json.dumps([round(1000.0 * float(x)) for x in rows]))


def _table(contract: RacePolicyContract, weights: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("name", "count", "unit", "frame", "scale")
    return {
        "kind": KIND,
        "version": VERSION,
        "summary": "Flies a race by estimates of its own state and of the gates: thrust and angular acceleration",
        "race": contract.race,
        "gates": list(contract.gates),
        "course": contract.course,
        "vehicle": contract.vehicle,
        "rate_hz": contract.rate,
        "inputs": [dict(zip(keys, port, strict=True)) for port in INPUTS],
        "command": MEANING,
        "thrust_max_n": contract.thrust_max,
        "turn_max_rad_s2": TURN_MAX.tolist(),
        "hidden": list(contract.hidden),
        "activation": "tanh",
        "weights": dict(weights),
        "training": dict(contract.training),
    }


def _fields(table: ContractTable) -> RacePolicyContract:
    contract = RacePolicyContract(
        race=table.entry("race", str),
        gates=table.entry("gates", tuple[str, ...]),
        course=table.entry("course", str),
        vehicle=table.entry("vehicle", str),
        thrust_max=table.entry("thrust_max_n", float),
        rate=table.entry("rate_hz", float),
        hidden=table.entry("hidden", tuple[int, ...]),
        training=table.entry("training", dict[str, Any]),
    )
    expected = _table(contract, {})
    for key in ("inputs", "command", "turn_max_rad_s2", "activation"):
        table.must_be(key, expected[key])
    return contract


def _read(folder: str | Path) -> tuple[RacePolicyContract, str]:
    table, where = folder_contract(folder, "a race policy")
    return contract_and_weights(table, where, "a contract of a race policy", (KIND, VERSION), _fields)


def race_policy_digest(folder: str | Path) -> str:
    """Return what a policy's folder is known by, the SHA-256 of its weights; raises AssetError as `read_race_folder`."""
    contract, digest = _read(folder)
    _tensors(contract, digest, folder)
    return digest


def _tensors(contract: RacePolicyContract, digest: str, folder: str | Path) -> tuple[ArrayF32, ...]:
    data = read_weights(folder, digest, WEIGHTS_LIMIT_BYTES)
    place = str(Path(folder) / WEIGHTS_FILE)
    tensors = checked_tensors(data, contract.shapes, " of a race policy", place, _MAGNITUDE)
    return tuple(tensors[name] for name in contract.shapes)


def read_race_folder(folder: str | Path) -> tuple[RacePolicyContract, tuple[ArrayF32, ...]]:
    """Return contract and weights of a policy's folder: weight (out, in) and bias of each layer.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    contract, digest = _read(folder)
    return contract, _tensors(contract, digest, folder)


def write_race_folder(folder: str | Path, contract: RacePolicyContract, weights: Sequence[ArrayF32]) -> Path:
    """Write a policy's folder, the contract last, so that a folder with one is whole; returns the folder.

    Args:
        folder: Made where it is missing.
        contract: What the numbers mean.
        weights: Weight and bias of each layer.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    named = dict(zip(contract.shapes, weights, strict=True))
    data = tensor_bytes(named, contract.shapes, " of a race policy")
    return write_network_files(folder, data, lambda file: _table(contract, file))
