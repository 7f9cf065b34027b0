"""A boundary network's folder: where it lies, how it is written and read. See `airworthy.pilots.network_files`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AssetError
from airworthy.core.files import read_json
from airworthy.pilots import network_files
from airworthy.pilots.boundary.contract import Contract, contract_of, contract_table, tensor_shapes
from airworthy.pilots.network_files import CONTRACT_FILE, CONTRACT_LIMIT_BYTES, WEIGHTS_FILE, read_weights, write_network_files

__all__ = [
    "CONTRACT_FILE",
    "WEIGHTS_FILE",
    "network_folder",
    "read_network",
    "shipped_networks",
    "tensor_bytes",
    "write_network",
]

Floats = NDArray[np.float32]
WEIGHTS_LIMIT_BYTES = 2 * 1024 * 1024
"""Three times what the tensors take."""


def shipped_networks() -> dict[str, Path]:
    """Name -> folder of the networks that come with the package."""
    assets = Path(str(files("airworthy.pilots.boundary"))) / "assets"
    if not assets.is_dir():
        return {}
    return {path.name: path for path in sorted(assets.iterdir()) if (path / CONTRACT_FILE).is_file()}


def network_folder(where: str | Path) -> Path:
    """Where a network lies.

    Args:
        where: A folder; or, where there is no such folder, the name of a network that comes with the package.

    Raises:
        AssetError: There is neither.
    """
    folder = Path(where)
    if os.path.isdir(folder):
        return folder
    shipped = shipped_networks()
    if str(where) in shipped:
        return shipped[str(where)]
    names = f", or one that comes with the package: {', '.join(shipped)}" if shipped else ""
    raise AssetError(f"{str(where)!r} is no folder; expected what `airworthy train boundary` wrote{names}.")


def write_network(folder: str | Path, contract: Contract, weights: Mapping[str, NDArray[Any]]) -> Path:
    """Write a network's folder, the contract last, so that a folder with one is whole; returns the folder.

    Args:
        folder: Made where it is missing.
        contract: What the numbers mean.
        weights: Tensors by the names of `contract.tensor_shapes`.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    return write_network_files(folder, tensor_bytes(weights), lambda file: contract_table(contract, file))


def read_network(folder: str | Path) -> tuple[Contract, dict[str, Floats]]:
    """Contract and tensors of a network's folder.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    path = Path(folder) / CONTRACT_FILE
    if os.path.isdir(folder) and not os.path.lexists(path):
        raise AssetError(f"{str(folder)!r} does not hold a network: there is no {CONTRACT_FILE} in it.")
    contract, digest = contract_of(read_json(path, CONTRACT_LIMIT_BYTES), str(path))
    data = read_weights(folder, digest, WEIGHTS_LIMIT_BYTES)
    return contract, network_files.checked_tensors(
        data, tensor_shapes(), " of a boundary network", str(Path(folder) / WEIGHTS_FILE)
    )


def tensor_bytes(weights: Mapping[str, NDArray[Any]]) -> bytes:
    """A safetensors file in alphabetical order: equal tensors are equal bytes.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    return network_files.tensor_bytes(weights, tensor_shapes())
