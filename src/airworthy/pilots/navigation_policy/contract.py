"""What a navigation policy's folder holds: `weights.safetensors`, and `contract.json`, which says what the numbers mean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.schema import Bound, Length, check_fields
from airworthy.pilots import network_files
from airworthy.pilots.navigation_policy.image_contract import image_entries, is_short_image
from airworthy.pilots.navigation_policy.sight import CELLS, CLIMB, LIDAR_CELLS, RATE, SPEED, STATE_NUMBERS, YAW_RATE
from airworthy.pilots.network_files import (
    WEIGHTS_FILE,
    ContractTable,
    contract_and_weights,
    folder_contract,
    read_weights,
    write_network_files,
)

__all__ = [
    "ENCODER",
    "KIND",
    "WEIGHTS_LIMIT_BYTES",
    "WEIGHT_MAX",
    "NavigationContract",
    "navigation_contract",
    "navigation_tensors",
    "read_navigation_folder",
    "write_navigation_folder",
]

# Ours; the version rises when a folder written before would be read wrongly.
KIND, VERSION = "navigation_policy", 2
ENCODER = "encoder"
"""Folder of the encoder, in a policy's folder."""
WEIGHTS_LIMIT_BYTES = 32 * 1024 * 1024
"""Ours: the widest network that the options allow has less."""
WEIGHT_MAX = 1e4
"""Ours: weights beyond it, of a policy or an encoder, may overflow within the layers."""
_LEAST_DEVIATION = 1e-4
"""Least that a training's running moments give (`learning.native_ppo.moments`): a smaller one would blow an input up."""
_STATE = (
    ("goal_direction", 3, "1", "level"),
    ("goal_distance", 1, "m", ""),
    ("roll_pitch", 2, "rad", ""),
    ("heading_error", 1, "rad", ""),
    ("velocity", 3, "m/s", "body"),
    ("rate", 3, "rad/s", "body"),
    ("command", 4, "m/s, m/s^2 or rad/s", "level"),
)
"""Name, numbers, unit and frame of what it knows besides its image, in order."""
_COMMANDS = {
    "depth_navigation": ("velocity", "speed (a0 + 1) / 2, angle above level a1 and yaw rate a2, of whole actions"),
    "lidar_navigation": ("acceleration", "acceleration 2 m/s^2 of a0, a1, a2, and yaw rate a3 of a whole action"),
}
"""Control level by task, and what actions mean."""
_ACTIONS = {"depth_navigation": 3, "lidar_navigation": 4}
_POOLED = {"depth_navigation": math.prod(CELLS), "lidar_navigation": math.prod(LIDAR_CELLS)}


@dataclass(frozen=True)
class NavigationContract:
    """What a policy reads, and how it learnt.

    Raises:
        AirworthyError: A number is out of range.
    """

    task: Literal["depth_navigation", "lidar_navigation"] = "depth_navigation"
    """Which it learnt."""
    image: Literal["latent", "pooled"] = "pooled"
    """What it reads of an image."""
    numbers: Annotated[int, Bound(1, 4096)] = 192
    """Of its image."""
    actions: Annotated[int, Bound(1, 16)] = 3
    """Of an action."""
    hidden: Annotated[tuple[int, ...], Bound(1, 1024), Length(1, 4)] = (128, 64)
    """Widths of layers."""
    recurrent: Annotated[int, Bound(0, 1024)] = 64
    """Width of its memory; 0: none."""
    encoder: str = ""
    """SHA-256 of the weights of its encoder, in the folder `encoder`; empty without one."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """How it learnt; free."""

    def __post_init__(self) -> None:
        check_fields(self, "Contract.")
        fixed = {"actions": _ACTIONS[self.task]} | ({"numbers": _POOLED[self.task]} if self.image == "pooled" else {})
        for name, expected in fixed.items():
            if getattr(self, name) != expected:
                raise AirworthyError(
                    f"Contract.{name} is {getattr(self, name)}; a policy of {self.task} that reads {self.image} images has"
                    f" {expected}."
                )
        if self.image != "latent" and self.encoder:
            raise AirworthyError(f"Contract.encoder is {self.encoder[:12]!r}...; a policy of {self.image} images has none.")

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return name and shape of every tensor."""
        widths = (STATE_NUMBERS + self.numbers, *self.hidden)
        found: dict[str, tuple[int, ...]] = {"seen.mean": widths[:1], "seen.deviation": widths[:1]}
        found |= network_files.layer_shapes(widths)
        last = widths[-1]
        if self.recurrent:
            for name, wide in (("input", last), ("memory", self.recurrent)):
                found |= {f"{name}.weight": (3 * self.recurrent, wide), f"{name}.bias": (3 * self.recurrent,)}
            last = self.recurrent
        return found | {"action.weight": (self.actions, last), "action.bias": (self.actions,)}


def _layers(contract: NavigationContract) -> dict[str, Any]:
    """Return how its network computes, for people and programs of others; nothing of it can be chosen."""
    found = {"standardized": "(x - seen.mean) / seen.deviation", "inputs": "image behind state", "activation": "tanh"}
    if contract.recurrent:
        found |= {
            "memory": "gru",
            "gates": "reset, update, new: rows of input.* and memory.* in thirds",
            "reset_gate": "behind the product: new = tanh(input x + reset (memory h)), h = (1 - update) new + update h",
        }
    return {**found, "output": "tanh"}


def _table(contract: NavigationContract, weights: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("name", "shape", "unit", "frame")
    level, told = _COMMANDS[contract.task]
    return {
        "kind": KIND,
        "version": VERSION,
        "summary": "Flies through a room of obstacles to a target, from an image and its own state",
        "rate_hz": RATE,
        "task": contract.task,
        "image": image_entries(contract.task, contract.image, contract.numbers),
        "inputs": [dict(zip(keys, (name, [size], *rest), strict=True)) for name, size, *rest in _STATE],
        "command": {
            "level": level,
            "actions": contract.actions,
            "speed_m_s": SPEED,
            "climb_deg": round(math.degrees(CLIMB), 6),
            "yaw_rate_deg_s": round(math.degrees(YAW_RATE), 6),
            "meaning": told,
        },
        "hidden": list(contract.hidden),
        "recurrent": contract.recurrent,
        "layers": _layers(contract),
        "encoder": contract.encoder,
        "weights": dict(weights),
        "training": dict(contract.training),
    }


def _fields(table: ContractTable) -> NavigationContract:
    contract = NavigationContract(
        task=table.entry("task", str),
        image=table.entry("image.read_as", str),
        numbers=table.entry("image.numbers", int),
        actions=table.entry("command.actions", int),
        hidden=table.entry("hidden", tuple[int, ...]),
        recurrent=table.entry("recurrent", int),
        encoder=table.entry("encoder", str),
        training=table.entry("training", dict[str, Any]),
    )
    expected = _table(contract, {})
    for key in ("rate_hz", "inputs", "command"):
        table.must_be(key, expected[key])
    # Of a LiDAR's, folders of earlier versions say no more than what is read above, and mean the same.
    if not is_short_image(contract.task, table.entry("image", Any)):
        table.must_be("image", expected["image"])
    # Folders of earlier versions do not say it, and mean the same.
    if table.entry("layers", Any, None) is not None:
        table.must_be("layers", expected["layers"])
    return contract


def navigation_contract(table: Any, where: str) -> tuple[NavigationContract, str]:
    """Return contract and digest of the weights in a parsed contract.json.

    Args:
        table: The file's content.
        where: Its place, for messages.

    Raises:
        AssetError: It is not a contract of this kind, or cannot be used.
    """
    return contract_and_weights(table, where, "a contract of a navigation policy", (KIND, VERSION), _fields)


def navigation_tensors(contract: NavigationContract, data: bytes, folder: str | Path) -> dict[str, ArrayF32]:
    """Return tensors of the file of weights of a folder, by the names of `NavigationContract.shapes`.

    Args:
        contract: Gives the shapes.
        data: Of the file of weights.
        folder: That it comes from, for messages.

    Raises:
        AssetError: It is damaged, its tensors are others, or their numbers cannot be used.
    """
    place = str(Path(folder) / WEIGHTS_FILE)
    found = network_files.checked_tensors(data, contract.shapes(), " of a navigation policy", place, WEIGHT_MAX)
    # As float32, which is what a training writes.
    if (least := found["seen.deviation"].min()) < np.float32(_LEAST_DEVIATION):
        raise AssetError(
            f"{place!r} does not hold usable weights: the tensor 'seen.deviation' has {least:.3g}; no training gives less than"
            f" {_LEAST_DEVIATION:g}."
        )
    return found


def read_navigation_folder(folder: str | Path) -> tuple[NavigationContract, dict[str, ArrayF32]]:
    """Return contract and tensors of a policy's folder.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    contract, digest = navigation_contract(*folder_contract(folder, "a navigation policy"))
    return contract, navigation_tensors(contract, read_weights(folder, digest, WEIGHTS_LIMIT_BYTES), folder)


def write_navigation_folder(folder: str | Path, contract: NavigationContract, weights: Mapping[str, ArrayAny]) -> Path:
    """Write a policy's folder, the contract last, so that a folder with one is whole; returns the folder.

    Args:
        folder: Made where it is missing.
        contract: What the numbers mean.
        weights: Tensors.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    data = network_files.tensor_bytes(weights, contract.shapes(), " of a navigation policy")
    return write_network_files(folder, data, lambda file: _table(contract, file))
