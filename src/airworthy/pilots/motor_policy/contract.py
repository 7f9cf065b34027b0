"""What a motor policy's folder holds: `weights.safetensors`, and `contract.json`, which says what the numbers mean.

Both come from strangers, perhaps: sizes are bounded before anything is read, every tensor is compared with its layers, and
whatever does not fit is refused in one sentence. See `airworthy.pilots.network_files`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.files import sha256
from airworthy.core.schema import Bound, Length, check_fields
from airworthy.pilots import network_files
from airworthy.pilots.motor_policy.quadrotor import QuadrotorTerms
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
from airworthy.vehicles.files import vehicle_text

__all__ = [
    "ACTIONS",
    "INPUTS",
    "OBSERVED",
    "WIDTH_MAX",
    "MotorContract",
    "check_rotors",
    "check_vehicle",
    "commanded_states",
    "layer_widths",
    "motor_contract",
    "motor_shapes",
    "motor_tensors",
    "read_motor_folder",
    "vehicle_digest",
    "write_motor_folder",
]

# Ours; the version rises when a folder written before would be read wrongly.
KIND, VERSION = "motor_policy", 1
INPUTS = (
    ("position_error", 3, "m", "target", 1.0, "position minus the target's"),
    ("velocity_error", 3, "m/s", "target", 0.5, "velocity minus the target's"),
    ("rotation", 9, "1", "body to target", 1.0, "rotation matrix by columns: body axes x, y, z"),
    ("rate", 3, "rad/s", "body", 0.1, "angular velocity of the body"),
)
"""Name, numbers, unit, frame, scale by which the quantity is multiplied, and meaning of what a policy sees, in order; past
actions follow."""
OBSERVED = sum(port[1] for port in INPUTS)
"""Numbers of an observation before past actions."""
FRAMES = "target: origin at the target, x along its heading, z up; body: x forward, y left, z up, origin at the centre of mass"
ACTIONS = {
    "state": "rotor state = (low + high) / 2 + (high - low) / 2 * action, of each rotor in the record's order",
    "square": "rotor state = sqrt((low^2 + high^2) / 2 + (high^2 - low^2) / 2 * action), of each rotor in the record's order",
}
"""What actions are affine in: the rotor's state, or its square, and so the thrust of a rotor that goes with the square."""
UNITS = {"speed": "rad/s", "thrust": "N"}
"""Of a rotor's state, by what it is."""
# Ours: the largest network this reads has 1 MB; what is larger is refused unread.
WEIGHTS_LIMIT_BYTES = 2 * 1024 * 1024
WIDTH_MAX = 256
"""Of a hidden layer."""
_ROTORS_MAX, _LAYERS_MAX = 16, 4
# Ours: weights and limits beyond it may overflow float32 within the layers.
_MAGNITUDE = 1e6
# Ours: as a share of a rotor's range; a record that was written and read back is equal to much less.
_SAME = 1e-6


@dataclass(frozen=True)
class MotorContract:
    """What a policy reads and gives, and where it comes from.

    Raises:
        AirworthyError: If a number is out of range.
    """

    vehicle: str
    """Name of the vehicle that it learnt to fly."""
    limits: Annotated[tuple[tuple[float, float], ...], Bound(-_MAGNITUDE, _MAGNITUDE), Length(1, _ROTORS_MAX)]
    """Least and largest state of each rotor, in the unit of `motor_state`: actions of -1 and 1."""
    hover: Annotated[tuple[float, ...], Bound(-1.0, 1.0)]
    """Actions of hover, which stand for past ones when a flight begins."""
    motor_state: Literal["speed", "thrust"] = "speed"
    """What a rotor's state is: a speed [rad/s], or a thrust [N]."""
    digest: str = ""
    """SHA-256 of the vehicle's record."""
    rate: Annotated[float, Bound(1.0, 10_000.0, "Hz")] = 100.0
    """Decisions per second."""
    history: Annotated[int, Bound(0, 8)] = 0
    """Past actions that it sees, the newest first."""
    hidden: Annotated[tuple[int, ...], Bound(1, WIDTH_MAX), Length(1, _LAYERS_MAX)] = (32, 32)
    """Widths of its hidden layers."""
    memory: Literal["", "gru"] = ""
    """Of what its second hidden layer is made, if it remembers: the two have one width then."""
    action: Literal["state", "square"] = "state"
    """What actions command, see `ACTIONS`."""
    family: Literal["", "quadrotor"] = ""
    """Where it flies every vehicle of a family: which; `limits` are then shares of the states of hover, and axes and rotors
    those of `QuadrotorTerms`."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """How it learnt; free."""
    notes: str = ""
    """A sentence or two for people."""

    def __post_init__(self) -> None:
        check_fields(self, "Contract.")
        if len(self.hover) != self.actions:
            raise AirworthyError(
                f"Contract.hover is of {len(self.hover)} rotors; expected {self.actions}, as many as Contract.limits."
            )
        if self.family and (self.action != "state" or len(set(self.limits)) != 1 or self.actions != 4 or self.band <= 0.0):
            raise AirworthyError("Contract.family needs four equal Contract.limits around 1, and actions of the state.")
        if self.memory and (len(self.hidden) != 2 or len(set(self.hidden)) != 1):
            raise AirworthyError(
                f"Contract.memory is {self.memory!r} with hidden layers {self.hidden}; expected two of one width."
            )
        if self.action == "square" and min(low for low, _ in self.limits) < 0.0:
            raise AirworthyError(
                "Contract.action is 'square', but a rotor of Contract.limits turns backwards; expected 'state', or speeds of"
                " at least 0."
            )
        for index, (low, high) in enumerate(self.limits):
            if not high - low >= _SAME:
                raise AirworthyError(f"Contract.limits[{index}] is {low:g} to {high:g}; expected low below high.")

    @property
    def actions(self) -> int:
        """One per rotor."""
        return len(self.limits)

    @property
    def band(self) -> float:
        """Of a family: share of hover's states off which rotors are commanded."""
        return 0.5 * (self.limits[0][1] - self.limits[0][0])

    @property
    def unit(self) -> str:
        """Of a rotor's state."""
        return "hover" if self.family else UNITS[self.motor_state]

    @property
    def observed(self) -> int:
        """Inputs of the network."""
        return OBSERVED + self.history * self.actions


def commanded_states(action: Array, low: Array, high: Array, law: str) -> Array:
    """Return rotor states that actions command.

    Args:
        action: Within [-1, 1], (..., rotors).
        low: Of each rotor at -1, (rotors,).
        high: At 1, alike.
        law: Of `ACTIONS`.
    """
    if law == "square":
        return np.asarray(np.sqrt(0.5 * (low**2 + high**2) + 0.5 * (high**2 - low**2) * action))
    return np.asarray(0.5 * (low + high) + 0.5 * (high - low) * action)


def layer_widths(contract: MotorContract) -> tuple[int, ...]:
    """Return how many inputs, neurons of each hidden layer, and actions a network has."""
    return (contract.observed, *contract.hidden, contract.actions)


def motor_shapes(contract: MotorContract) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor by name, in the order of `MotorPolicy.weights`; gates of a GRU as torch's: reset, update,
    new."""
    plain = layer_shapes(layer_widths(contract))
    if not contract.memory:
        return plain
    width = contract.hidden[0]
    kinds = (("weight", (3 * width, width)), ("bias", (3 * width,)))
    gates = {f"layers.1.{kind}_{way}": shape for way in ("ih", "hh") for kind, shape in kinds}
    named = list(plain.items())
    return {**dict(named[:2]), **gates, **dict(named[4:])}


def vehicle_digest(vehicle: Vehicle) -> str:
    """Return the SHA-256 of a vehicle's record, as a run's record has it."""
    return sha256(vehicle_text(vehicle))


def check_vehicle(contract: MotorContract, vehicle: Vehicle) -> None:
    """Refuse a vehicle whose rotors are others than those that a policy commands; another mass or inertia is no reason.

    Raises:
        AirworthyError: It has another number of rotors, other limits, or another kind of rotor state; or is not of the family
            that the policy flies.
    """
    if contract.family:
        QuadrotorTerms.of(vehicle, contract.band)
        return
    # A policy that was fitted to a vehicle keeps to a band of its rotors' states; of another record it would not be hover's.
    ours = [(rotor.speed_min, rotor.speed_max) for rotor in vehicle.rotors]
    same = len(ours) == contract.actions and vehicle.motor_state == contract.motor_state
    inside = same and all(a[0] <= b[0] and b[1] <= a[1] for a, b in zip(ours, contract.limits, strict=True))
    if not (inside and contract.digest == vehicle_digest(vehicle)):
        check_rotors(contract.limits, contract.motor_state, contract.vehicle, vehicle)


def check_rotors(limits: Sequence[tuple[float, float]], motor_state: str, learnt: str, vehicle: Vehicle) -> None:
    """Refuse a vehicle whose rotors are not those that a policy commands.

    Args:
        limits: Least and largest state of each rotor that it commands.
        motor_state: What a rotor's state is.
        learnt: Name of the vehicle that it learnt with.
        vehicle: That is to fly.

    Raises:
        AirworthyError: They differ in number, limits or kind.
    """
    ours = [(rotor.speed_min, rotor.speed_max) for rotor in vehicle.rotors]
    same = len(ours) == len(limits) and vehicle.motor_state == motor_state
    if same and all(_close(a, b) for a, b in zip(ours, limits, strict=True)):
        return
    wanted, found = _range(limits, UNITS[motor_state]), _range(ours, UNITS[vehicle.motor_state])
    raise AirworthyError(
        f"The policy learnt to command {wanted} of {learnt!r}; the vehicle {vehicle.name!r} has {found}: train one for it."
    )


def _close(a: tuple[float, float], b: tuple[float, float]) -> bool:
    size = _SAME * (b[1] - b[0])
    return abs(a[0] - b[0]) <= size and abs(a[1] - b[1]) <= size


def _range(limits: Sequence[tuple[float, float]], unit: str) -> str:
    ranges = ", ".join(dict.fromkeys(f"{low:.6g} to {high:.6g}" for low, high in limits))
    return f"{len(limits)} rotors of {ranges} {unit}"


# ---- tensors ---------------------------------------------------------------------------------------------------------


def motor_tensors(contract: MotorContract, data: bytes, folder: str | Path) -> list[ArrayF32]:
    """Return weight and bias of each layer, first to last, of the file of weights of a folder.

    Args:
        contract: Gives the shapes.
        data: Of the file of weights.
        folder: That it comes from, for messages.

    Raises:
        AssetError: It is damaged, its tensors are others, or their numbers too large.
    """
    where = str(Path(folder) / WEIGHTS_FILE)
    shapes = motor_shapes(contract)
    found = network_files.checked_tensors(data, shapes, " of a motor policy", where, _MAGNITUDE)
    return [found[name] for name in shapes]


# ---- contract.json ---------------------------------------------------------------------------------------------------


def _table(contract: MotorContract, weights: Mapping[str, Any]) -> dict[str, Any]:
    """Content of contract.json."""
    return {
        "kind": KIND,
        "version": VERSION,
        "summary": "Commands rotors to hold a target, from position, velocity, attitude and body rate",
        "vehicle": {
            "name": contract.vehicle,
            "sha256": contract.digest,
            "rotor_count": contract.actions,
            "rotor_state": {"is": contract.motor_state, "unit": contract.unit},
            "limits": [{"low": low, "high": high} for low, high in contract.limits],
            **({"family": contract.family} if contract.family else {}),
        },
        "rate_hz": contract.rate,
        "frames": FRAMES,
        "inputs": _inputs(contract),
        "outputs": _outputs(contract),
        "history": contract.history,
        "hover": list(contract.hover),
        # Folders that were written before there was a memory do not name it.
        "layers": {
            "widths": list(layer_widths(contract)),
            "activation": "tanh",
            **({"memory": contract.memory} if contract.memory else {}),
        },
        "weights": dict(weights),
        "training": dict(contract.training),
        "notes": contract.notes,
    }


def _inputs(contract: MotorContract) -> list[dict[str, Any]]:
    keys = ("name", "shape", "unit", "frame", "scale", "meaning")
    ports = [dict(zip(keys, (name, [size], *rest), strict=True)) for name, size, *rest in INPUTS]
    if contract.history:
        meaning = "own actions, the newest first, each of all rotors; hover's before a flight's first"
        size = contract.history * contract.actions
        ports.append(dict(zip(keys, ("past_actions", [size], "1", "rotors", 1.0, meaning), strict=True)))
    return ports


def _outputs(contract: MotorContract) -> list[dict[str, Any]]:
    port = {"name": "action", "shape": [contract.actions], "unit": "1", "low": -1.0, "high": 1.0}
    # Folders that were written before there was another kind do not name it.
    kind = {} if contract.action == "state" else {"affine_in": contract.action}
    return [{**port, **kind, "meaning": ACTIONS[contract.action]}]


def motor_contract(table: Any, where: str) -> tuple[MotorContract, str]:
    """Return contract and digest of the weights in a parsed contract.json.

    Args:
        table: The file's content.
        where: Its place, for messages.

    Raises:
        AssetError: It is not a contract of this kind, or cannot be used.
    """
    return contract_and_weights(table, where, "a contract of a motor policy", (KIND, VERSION), _fields)


def _fields(table: ContractTable) -> MotorContract:
    table.must_be("layers.activation", "tanh")
    outputs = table.rows("outputs")
    contract = MotorContract(
        vehicle=table.entry("vehicle.name", str),
        limits=tuple((row.entry("low", float), row.entry("high", float)) for row in table.rows("vehicle.limits")),
        hover=table.entry("hover", tuple[float, ...]),
        motor_state=table.entry("vehicle.rotor_state.is", Literal["speed", "thrust"]),
        digest=table.entry("vehicle.sha256", str),
        family=table.entry("vehicle.family", Literal["", "quadrotor"], ""),
        rate=table.entry("rate_hz", float),
        history=table.entry("history", int),
        action=outputs[0].entry("affine_in", Literal["state", "square"], "state") if outputs else "state",
        memory=table.entry("layers.memory", Literal["", "gru"], ""),
        hidden=table.entry("layers.widths", tuple[Any, ...])[1:-1],
        training=table.entry("training", dict[str, Any]),
        notes=table.entry("notes", str),
    )
    table.must_be("vehicle.rotor_count", contract.actions)
    table.must_be("vehicle.rotor_state.unit", contract.unit)
    expected = _table(contract, {})
    for key in ("inputs", "outputs", "layers", "frames"):
        # What people wrote about a port is not compared: it may be said in other words one day.
        table.must_be(key, expected[key], free="meaning")
    return contract


# ---- folders ---------------------------------------------------------------------------------------------------------


def write_motor_folder(folder: str | Path, contract: MotorContract, weights: Sequence[ArrayAny]) -> Path:
    """Write a policy's folder, the contract last, so that a folder with one is whole; returns the folder.

    Args:
        folder: Made where it is missing.
        contract: What the numbers mean.
        weights: Weight (rows, columns) and bias (rows,) of each layer, first to last.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite or beyond 1e6.
    """
    shapes = motor_shapes(contract)
    if len(weights) != len(shapes):
        raise AirworthyError(
            f"A motor policy of {len(layer_widths(contract)) - 1} layers has {len(weights)} arrays; expected {len(shapes)}."
        )
    data = network_files.tensor_bytes(dict(zip(shapes, weights, strict=True)), shapes, " of a motor policy")
    if any(np.abs(w).max() > _MAGNITUDE for w in weights):
        raise AirworthyError(f"The weights of a motor policy cannot be written: they have numbers beyond {_MAGNITUDE:g}.")
    return write_network_files(folder, data, lambda file: _table(contract, file))


def read_motor_folder(folder: str | Path) -> tuple[MotorContract, list[ArrayF32]]:
    """Return the contract of a policy's folder, and weight and bias of each layer.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    contract, digest = motor_contract(*folder_contract(folder, "a policy"))
    return contract, motor_tensors(contract, read_weights(folder, digest, WEIGHTS_LIMIT_BYTES), folder)
