"""A network's folder: `weights.safetensors`, and `contract.json`, which says what the numbers mean and vouches for them.

Both may come from strangers: sizes are bounded before anything is read, every tensor is compared with its shape, and whatever
does not fit is refused in one sentence.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import json_text, make_folder, read_bytes, read_json, sha256, write_bytes, write_json
from airworthy.pilots.boundary.contract import Contract, contract_of, contract_table, tensor_shapes

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
CONTRACT_FILE, WEIGHTS_FILE = "contract.json", "weights.safetensors"
CONTRACT_LIMIT_BYTES = 256 * 1024
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
    where = make_folder(folder)
    data = tensor_bytes(weights)
    table = contract_table(contract, {"file": WEIGHTS_FILE, "sha256": sha256(data), "bytes": len(data)})
    if (size := len(json_text(table).encode())) > CONTRACT_LIMIT_BYTES:
        raise AirworthyError(
            f"The contract would have {size:,} bytes, more than {CONTRACT_LIMIT_BYTES:,}: note less in `training`."
        )
    (where / CONTRACT_FILE).unlink(missing_ok=True)
    write_bytes(where / WEIGHTS_FILE, data)
    write_json(where / CONTRACT_FILE, table)
    return where


def read_network(folder: str | Path) -> tuple[Contract, dict[str, Floats]]:
    """Contract and tensors of a network's folder.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    path, table = Path(folder) / WEIGHTS_FILE, Path(folder) / CONTRACT_FILE
    if os.path.isdir(folder) and not os.path.lexists(table):
        raise AssetError(f"{str(folder)!r} does not hold a network: there is no {CONTRACT_FILE} in it.")
    contract, digest = contract_of(read_json(table, CONTRACT_LIMIT_BYTES), str(table))
    data = read_bytes(path, WEIGHTS_LIMIT_BYTES)
    if (found := sha256(data)) != digest:
        raise AssetError(
            f"{str(path)!r} has the SHA-256 {found[:12]}..., its contract says {digest[:12]}...: it was changed or damaged."
        )
    return contract, _tensors(data, str(path))


def tensor_bytes(weights: Mapping[str, NDArray[Any]]) -> bytes:
    """A safetensors file in alphabetical order: equal tensors are equal bytes.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    from safetensors.numpy import save

    with np.errstate(over="ignore"):
        arrays = {key: np.ascontiguousarray(weights[key], np.float32) for key in sorted(weights)}
    if fault := _fault(arrays):
        raise AirworthyError(f"The weights cannot be written: {fault}.")
    return save(arrays)


def _tensors(data: bytes, where: str) -> dict[str, Floats]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(data)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        reason = (str(error).splitlines() or [""])[0][:200]
        raise AssetError(f"{where!r} is not a usable safetensors file: {reason}.") from None
    if fault := _fault(arrays):
        raise AssetError(f"{where!r} does not hold the weights of a boundary network: {fault}.")
    return arrays


def _fault(arrays: Mapping[str, NDArray[Any]]) -> str:
    """What is wrong with tensors, as half a sentence; empty where they fit."""
    shapes = tensor_shapes()
    if missing := sorted(set(shapes) - set(arrays)):
        return f"the tensor {missing[0]!r} is missing"
    if extra := sorted(set(arrays) - set(shapes)):
        return f"the tensor {extra[0][:80]!r} does not belong there"
    for key, shape in shapes.items():
        array = arrays[key]
        if array.shape != shape:
            return f"the tensor {key!r} has shape {array.shape}, expected {shape}"
        if array.dtype != np.float32:
            return f"the tensor {key!r} is of {array.dtype}, expected float32"
        if not np.isfinite(array).all():
            return f"the tensor {key!r} holds values that are not finite"
    return ""
