"""A network's folder: `weights.safetensors`, and `contract.json`, which says what the numbers mean and vouches for them.

Both may come from strangers: sizes are bounded before anything is read, every tensor is compared with its shape, and whatever
does not fit is refused in one sentence. What a contract says is each network's own; see also `contract_fields`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import json_text, make_folder, read_bytes, sha256, write_bytes, write_json

__all__ = [
    "CONTRACT_FILE",
    "CONTRACT_LIMIT_BYTES",
    "WEIGHTS_FILE",
    "checked_tensors",
    "read_weights",
    "tensor_bytes",
    "write_network_files",
]

Floats = NDArray[np.float32]
Shapes = Mapping[str, tuple[int, ...]]
CONTRACT_FILE, WEIGHTS_FILE = "contract.json", "weights.safetensors"
CONTRACT_LIMIT_BYTES = 256 * 1024


def write_network_files(folder: str | Path, data: bytes, table: Callable[[dict[str, Any]], dict[str, Any]]) -> Path:
    """Write a network's folder, the contract last, so that a folder with one is whole.

    Args:
        folder: Made where it is missing.
        data: The file of weights, from `tensor_bytes`.
        table: From name, digest and size of that file to the content of contract.json.

    Returns:
        The folder.

    Raises:
        AirworthyError: The contract is too long, or the file system refused.
    """
    where = make_folder(folder)
    content = table({"file": WEIGHTS_FILE, "sha256": sha256(data), "bytes": len(data)})
    if (size := len(json_text(content).encode())) > CONTRACT_LIMIT_BYTES:
        raise AirworthyError(
            f"The contract would have {size:,} bytes, more than {CONTRACT_LIMIT_BYTES:,}: note less in `training`."
        )
    (where / CONTRACT_FILE).unlink(missing_ok=True)
    write_bytes(where / WEIGHTS_FILE, data)
    write_json(where / CONTRACT_FILE, content)
    return where


def read_weights(folder: str | Path, digest: str, limit_bytes: int) -> bytes:
    """Content of a folder's `weights.safetensors`.

    Args:
        folder: Of a network.
        digest: SHA-256 that its contract tells.
        limit_bytes: More is refused unread.

    Raises:
        AssetError: It is missing, too large, or not the file that the contract names.
    """
    path = Path(folder) / WEIGHTS_FILE
    data = read_bytes(path, limit_bytes)
    if (found := sha256(data)) != digest:
        raise AssetError(
            f"{str(path)!r} has the SHA-256 {found[:12]}..., its contract says {digest[:12]}...: it was changed or damaged."
        )
    return data


def tensor_bytes(weights: Mapping[str, NDArray[Any]], shapes: Shapes, whose: str = "") -> bytes:
    """A safetensors file in alphabetical order: equal tensors are equal bytes.

    Args:
        weights: Tensors by name; they become float32.
        shapes: Of all there must be.
        whose: They are, for messages (" of variant 'hp_net'").

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    from safetensors.numpy import save

    with np.errstate(over="ignore"):
        arrays = {key: np.ascontiguousarray(weights[key], np.float32) for key in sorted(weights)}
    if fault := _fault(arrays, shapes):
        raise AirworthyError(f"The weights{whose} cannot be written: {fault}.")
    return save(arrays)


def checked_tensors(data: bytes, shapes: Shapes, whose: str, where: str) -> dict[str, Floats]:
    """Tensors of a safetensors file, which the caller has bounded.

    Args:
        data: The file.
        shapes: Of all there must be.
        whose: They are, for messages (" of variant 'hp_net'").
        where: The file's place, for messages.

    Raises:
        AssetError: It is damaged, or its tensors are others.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(data)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        reason = (str(error).splitlines() or [""])[0][:200]
        raise AssetError(f"{where!r} is not a usable safetensors file: {reason}.") from None
    if fault := _fault(arrays, shapes):
        raise AssetError(f"{where!r} does not hold the weights{whose}: {fault}.")
    return arrays


def _fault(arrays: Mapping[str, NDArray[Any]], shapes: Shapes) -> str:
    """What is wrong with tensors, as half a sentence; empty where they fit."""
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
