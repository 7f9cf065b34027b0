"""What an avoiding policy's folder holds: `weights.safetensors`, and `contract.json`, which says what the numbers mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import Bound, check_fields
from airworthy.pilots import network_files
from airworthy.pilots.avoid_policy.fleet import FEATURES, HISTORY, HISTORY_ROW, IDENTIFIER_WIDTH, MIDDLE_RATIO
from airworthy.pilots.avoid_policy.sight import HALF_TANGENT, IMAGE, POOL, RATE, REACH, TILT_DEG
from airworthy.pilots.network_files import (
    WEIGHTS_FILE,
    ContractTable,
    contract_and_weights,
    folder_contract,
    read_weights,
    write_network_files,
)

__all__ = [
    "GAIN",
    "KIND",
    "OUTPUTS",
    "STATE",
    "WEIGHTS_LIMIT_BYTES",
    "AvoidContract",
    "FleetTold",
    "avoid_contract",
    "avoid_tensors",
    "read_avoid_folder",
    "tensor_shapes",
    "write_avoid_folder",
]

# Ours; the version rises when a folder written before would be read wrongly.
KIND, VERSION = "avoid_policy", 1
PIXELS = IMAGE[0] * IMAGE[1]
STATE = (
    ("velocity", 3, "m/s", "heading"),
    ("wanted_velocity", 3, "m/s", "heading"),
    ("up", 3, "1", "heading"),
    ("margin", 1, "m", ""),
)
"""Name, numbers, unit and frame of what it knows besides its image, in order."""
OUTPUTS = (("acceleration", 3, "m/s^2", "heading"), ("velocity_estimate", 3, "m/s", "heading"))
GAIN = 4.0
"""The first output times this, less the estimate of the velocity, is the acceleration that is asked for."""
MEANING = "acceleration = 4 * outputs[0:3] - outputs[3:6], net of gravity; x along the heading, y left, z up"
STATES = sum(port[1] for port in STATE)
FLEET_INPUT = ("vehicle", len(FEATURES), "1", "")
"""Behind the state, where a policy of a fleet is told or identifies its vehicle."""
_MAGNITUDE = 1e4
"""Ours: weights beyond it may overflow within the layers."""
WEIGHTS_LIMIT_BYTES = 4 * 1024 * 1024
"""Ours: the largest network this reads has 3 MB."""


@dataclass(frozen=True)
class FleetTold:
    """What a policy of a fleet knows of its vehicle.

    Raises:
        AirworthyError: If it is none of the conditions, or bounds do not fit.
    """

    condition: Literal["none", "told", "identified"]
    vehicles: str
    """On whose vehicles it learnt; "virtual", "real" or "all"."""
    least: tuple[float, ...] = (-3.0,) * len(FEATURES)
    """Of each feature in training; in flight what is told is kept within."""
    most: tuple[float, ...] = (3.0,) * len(FEATURES)

    def __post_init__(self) -> None:
        check_fields(self, "Contract.fleet.")
        if len(self.least) != len(FEATURES) or len(self.most) != len(FEATURES):
            raise AirworthyError(f"Contract.fleet has bounds of {len(self.least)} and {len(self.most)} features; expected 3.")
        if not all(-10.0 <= low <= high <= 10.0 for low, high in zip(self.least, self.most, strict=True)):
            raise AirworthyError("Contract.fleet has bounds that are no least and most between -10 and 10.")

    @property
    def sees(self) -> bool:
        """Whether the network has the features among its inputs."""
        return self.condition != "none"


@dataclass(frozen=True)
class AvoidContract:
    """What a policy learnt for, and how.

    Raises:
        AirworthyError: If a number is out of range.
    """

    hidden: Annotated[int, Bound(1, 512)] = 128
    """Width of its layers and of its memory."""
    margin: Annotated[float, Bound(0.0, 5.0, "m")] = 0.2
    """Distance from its middle that it is told to keep free: the vehicle's radius and something to spare [m]."""
    speed: Annotated[float, Bound(0.1, 50.0, "m/s")] = 12.0
    """Fastest flight it learnt [m/s]."""
    blind: bool = False
    """Learnt without an image: its image is zero in flight, too."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """How it learnt; free."""
    fleet: FleetTold | None = None
    """Of a policy of a fleet, which commands thrust as a share of the largest; None: it commands accelerations."""

    def __post_init__(self) -> None:
        check_fields(self, "Contract.")


def tensor_shapes(contract: AvoidContract) -> dict[str, tuple[int, ...]]:
    """Return name and shape of every tensor: image and state into one layer, a gated recurrent unit, outputs; of who identifies
    its vehicle, two layers for that."""
    out, hidden, fleet = sum(port[1] for port in OUTPUTS), contract.hidden, contract.fleet
    told = FLEET_INPUT[1] if fleet is not None and fleet.sees else 0
    identifier = {
        "identify.first.weight": (IDENTIFIER_WIDTH, HISTORY * HISTORY_ROW),
        "identify.first.bias": (IDENTIFIER_WIDTH,),
        "identify.second.weight": (FLEET_INPUT[1], IDENTIFIER_WIDTH),
        "identify.second.bias": (FLEET_INPUT[1],),
    }
    own = identifier if fleet is not None and fleet.condition == "identified" else {}
    return own | {
        "image.weight": (hidden, PIXELS),
        "image.bias": (hidden,),
        "state.weight": (hidden, STATES + told),
        "input.weight": (3 * hidden, hidden),
        "input.bias": (3 * hidden,),
        "memory.weight": (3 * hidden, hidden),
        "memory.bias": (3 * hidden,),
        "out.weight": (out, hidden),
        "out.bias": (out,),
    }


def _table(contract: AvoidContract, weights: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("name", "shape", "unit", "frame")
    fleet = contract.fleet
    inputs = STATE if fleet is None or not fleet.sees else (*STATE, FLEET_INPUT)
    # Without a fleet the table is what it was before there were policies of one.
    told = {} if fleet is None else {"fleet": {**asdict(fleet), **_FLEET_MEANING}}
    return {
        "kind": KIND,
        "version": VERSION,
        "summary": "Flies to a goal through obstacles by accelerations, from a small depth image and its velocity",
        "rate_hz": RATE,
        "image": {
            "shape": list(IMAGE),
            "pool": POOL,
            "half_tangent": HALF_TANGENT,
            "tilt_deg": TILT_DEG,
            "reach_m": REACH,
            "input": "3 / clip(depth, 0.3, reach) - 0.6, of the nearest return of each block of pixels",
            "blind": contract.blind,
        },
        "inputs": [dict(zip(keys, (name, [size], *rest), strict=True)) for name, size, *rest in inputs],
        "outputs": [dict(zip(keys, (name, [size], *rest), strict=True)) for name, size, *rest in OUTPUTS],
        "command": MEANING,
        **told,
        "hidden": contract.hidden,
        "margin_m": contract.margin,
        "speed_m_s": contract.speed,
        "weights": dict(weights),
        "training": dict(contract.training),
    }


_FLEET_MEANING = {
    "features": list(FEATURES),
    "middle_thrust_to_weight": MIDDLE_RATIO,
    "throttle": "thrust asked for / (9.81 * thrust to weight: of the vehicle if told, as identified, of the middle if none)",
}


def _fleet(table: ContractTable) -> FleetTold:
    for key, value in _FLEET_MEANING.items():
        table.must_be(f"fleet.{key}", value)
    return FleetTold(
        table.entry("fleet.condition", Literal["none", "told", "identified"]),
        table.entry("fleet.vehicles", str),
        table.entry("fleet.least", tuple[float, ...]),
        table.entry("fleet.most", tuple[float, ...]),
    )


def _fields(table: ContractTable) -> AvoidContract:
    contract = AvoidContract(
        hidden=table.entry("hidden", int),
        margin=table.entry("margin_m", float),
        speed=table.entry("speed_m_s", float),
        blind=table.entry("image.blind", bool),
        training=table.entry("training", dict[str, Any]),
        fleet=None if table.entry("fleet", dict[str, Any] | None, None) is None else _fleet(table),
    )
    expected = _table(contract, {})
    for key in ("rate_hz", "image", "inputs", "outputs", "command"):
        table.must_be(key, expected[key])
    return contract


def avoid_contract(table: Any, where: str) -> tuple[AvoidContract, str]:
    """Return contract and digest of the weights in a parsed contract.json.

    Args:
        table: The file's content.
        where: Its place, for messages.

    Raises:
        AssetError: It is not a contract of this kind, or cannot be used.
    """
    return contract_and_weights(table, where, "a contract of an avoiding policy", (KIND, VERSION), _fields)


def avoid_tensors(contract: AvoidContract, data: bytes, folder: str | Path) -> dict[str, ArrayF32]:
    """Return tensors of the file of weights of a folder, by the names of `tensor_shapes`.

    Args:
        contract: Gives the shapes.
        data: Of the file of weights.
        folder: That it comes from, for messages.

    Raises:
        AssetError: It is damaged, its tensors are others, or their numbers too large.
    """
    place = str(Path(folder) / WEIGHTS_FILE)
    return network_files.checked_tensors(data, tensor_shapes(contract), " of an avoiding policy", place, _MAGNITUDE)


def read_avoid_folder(folder: str | Path) -> tuple[AvoidContract, dict[str, ArrayF32]]:
    """Return contract and tensors of a policy's folder.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    contract, digest = avoid_contract(*folder_contract(folder, "a policy"))
    return contract, avoid_tensors(contract, read_weights(folder, digest, WEIGHTS_LIMIT_BYTES), folder)


def write_avoid_folder(folder: str | Path, contract: AvoidContract, weights: Mapping[str, ArrayAny]) -> Path:
    """Write a policy's folder, the contract last, so that a folder with one is whole; returns the folder.

    Args:
        folder: Made where it is missing.
        contract: What the numbers mean.
        weights: Tensors by the names of `tensor_shapes`.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    data = network_files.tensor_bytes(weights, tensor_shapes(contract), " of an avoiding policy")
    return write_network_files(folder, data, lambda file: _table(contract, file))
