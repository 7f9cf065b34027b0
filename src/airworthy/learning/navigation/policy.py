"""A navigation policy as it is written down, and as it decides: NumPy alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32
from airworthy.core.schema import Bound, Length, check_fields
from airworthy.learning.navigation.tasks import STATE_NUMBERS
from airworthy.pilots import network_files
from airworthy.pilots.network_files import (
    ContractTable,
    contract_and_weights,
    folder_contract,
    read_weights,
    write_network_files,
)

__all__ = ["NavigationContract", "NavigationPolicy", "read_navigation_policy", "write_navigation_policy"]

KIND, VERSION = "navigation_policy", 1
WEIGHTS_LIMIT_BYTES = 32 * 1024 * 1024
"""Ours: the widest network that the options allow has less."""


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


class NavigationPolicy:
    """Decides.

    Args:
        contract: What its numbers mean.
        weights: Tensors by the names of `NavigationContract.shapes`.
    """

    def __init__(self, contract: NavigationContract, weights: Mapping[str, ArrayAny]):
        self.contract = contract
        self._w = {name: np.asarray(x, np.float32) for name, x in weights.items()}

    def begin(self, count: int) -> ArrayF32:
        """Return the memory of new flights, (n, recurrent)."""
        return np.zeros((count, self.contract.recurrent), np.float32)

    def act(self, observation: ArrayF32, memory: ArrayF32) -> tuple[ArrayF32, ArrayF32]:
        """Actions (n, actions) within [-1, 1], and the memory behind them.

        Args:
            observation: (n, 17 + numbers).
            memory: (n, recurrent).
        """
        w, n = self._w, self.contract.recurrent
        x = (observation - w["seen.mean"]) / w["seen.deviation"]
        for k in range(len(self.contract.hidden)):
            x = np.tanh(x @ w[f"layers.{k}.weight"].T + w[f"layers.{k}.bias"])
        if n:
            new = x @ w["input.weight"].T + w["input.bias"]
            old = memory @ w["memory.weight"].T + w["memory.bias"]
            # Gates in torch's order: reset, update, candidate.
            reset, update = (1.0 / (1.0 + np.exp(-(new[:, k * n : (k + 1) * n] + old[:, k * n : (k + 1) * n]))) for k in (0, 1))
            candidate = np.tanh(new[:, 2 * n :] + reset * old[:, 2 * n :])
            memory = x = (candidate + update * (memory - candidate)).astype(np.float32)
        action: Array = np.tanh(x @ w["action.weight"].T + w["action.bias"])
        return action.astype(np.float32), memory


def _table(contract: NavigationContract, weights: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "kind": KIND,
        "version": VERSION,
        "summary": "Flies through a room of obstacles to a target, from an image and its own state",
        "rate_hz": 10.0,
        "task": contract.task,
        "inputs": [
            {"name": "state", "shape": [STATE_NUMBERS], "meaning": "airworthy.learning.navigation.tasks, observe"},
            {"name": contract.image, "shape": [contract.numbers], "meaning": "airworthy.learning.navigation.eyes"},
        ],
        "actions": contract.actions,
        "hidden": list(contract.hidden),
        "recurrent": contract.recurrent,
        "encoder": contract.encoder,
        "weights": dict(weights),
        "training": dict(contract.training),
    }


def _fields(table: ContractTable) -> NavigationContract:
    inputs = table.rows("inputs")
    return NavigationContract(
        task=table.entry("task", str),
        image=inputs[-1].entry("name", str),
        numbers=inputs[-1].entry("shape", tuple[int, ...])[0],
        actions=table.entry("actions", int),
        hidden=table.entry("hidden", tuple[int, ...]),
        recurrent=table.entry("recurrent", int),
        encoder=table.entry("encoder", str),
        training=table.entry("training", dict[str, Any]),
    )


def write_navigation_policy(folder: str | Path, contract: NavigationContract, weights: Mapping[str, ArrayAny]) -> Path:
    """Write a policy's folder, the contract last; returns the folder.

    Args:
        folder: Made where it is missing.
        contract: What the numbers mean.
        weights: Tensors.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    data = network_files.tensor_bytes(weights, contract.shapes(), " of a navigation policy")
    return write_network_files(folder, data, lambda file: _table(contract, file))


def read_navigation_policy(folder: str | Path) -> NavigationPolicy:
    """Return the policy of a folder.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    table, where = folder_contract(folder, "a navigation policy")
    contract, digest = contract_and_weights(table, where, "a contract of a navigation policy", (KIND, VERSION), _fields)
    data = read_weights(folder, digest, WEIGHTS_LIMIT_BYTES)
    return NavigationPolicy(contract, network_files.checked_tensors(data, contract.shapes(), " of a policy", str(folder)))
