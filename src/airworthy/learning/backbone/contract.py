"""The folder of a backbone: `weights.safetensors`, in half precision, and `contract.json`, which vouches for them. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayF32
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.pilots.network_files import (
    WEIGHTS_FILE,
    ContractTable,
    contract_and_weights,
    folder_contract,
    read_weights,
    write_network_files,
)
from airworthy.pilots.svnet.features import IMAGE_MEAN, IMAGE_STD
from airworthy.pilots.svnet.variants import backbone_shapes

__all__ = ["WEIGHTS_LIMIT_BYTES", "read_backbone", "trunk_shapes", "trunk_tensors", "write_backbone"]

KIND, VERSION = "backbone", 1
WEIGHTS_LIMIT_BYTES = 64 << 20
"""Ours: thirteen times the 5 MB of SqueezeNet 1.1 with its classifier; a larger file is something else."""


def trunk_shapes() -> dict[str, tuple[int, ...]]:
    """Return name and shape of every tensor of the convolutions, without the classifier."""
    return {name: shape for name, shape in backbone_shapes().items() if name.startswith("features.")}


def write_backbone(folder: str | Path, weights: Mapping[str, ArrayF32], training: Mapping[str, Any]) -> Path:
    """Write a backbone's folder, in half precision; returns the folder.

    Args:
        folder: Made where it is missing.
        weights: Tensors `features.*`.
        training: How it learnt; free.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or too large for half precision.
    """
    from safetensors.numpy import save

    with np.errstate(over="ignore"):
        arrays = {name: np.ascontiguousarray(weights[name], np.float16) for name in sorted(weights)}
    extra = sorted(set(arrays) - set(trunk_shapes()))
    if fault := _fault(arrays) or (f"the tensor {extra[0]!r} does not belong there" if extra else ""):
        raise AirworthyError(f"The weights of a backbone cannot be written: {fault}.")
    return write_network_files(folder, save(arrays), lambda file: _table(file, training))


def read_backbone(folder: str | Path) -> tuple[dict[str, Any], dict[str, ArrayF32]]:
    """Return how a backbone learnt, and its tensors.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    table, where = folder_contract(folder, "a backbone")
    training, digest = contract_and_weights(table, where, "a contract of a backbone", (KIND, VERSION), _fields)
    data = read_weights(folder, digest, WEIGHTS_LIMIT_BYTES)
    return training, trunk_tensors(data, str(Path(folder) / WEIGHTS_FILE))


def trunk_tensors(data: bytes, where: str) -> dict[str, ArrayF32]:
    """Return tensors `features.*` of a safetensors file with torchvision's names; a classifier in it is left out.

    Args:
        data: The file.
        where: Its place, for messages.

    Raises:
        AssetError: It is damaged, or holds no SqueezeNet 1.1.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(data)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        reason = (str(error).splitlines() or [""])[0][:200]
        raise AssetError(f"{where!r} is not a usable safetensors file: {reason}.") from None
    if fault := _fault(arrays):
        raise AssetError(f"{where!r} holds no SqueezeNet 1.1: {fault}.")
    return {name: np.asarray(arrays[name], np.float32) for name in trunk_shapes()}


def _fault(arrays: Mapping[str, Any]) -> str:
    """Return what is wrong with the convolutions' tensors, as half a sentence; empty where they fit."""
    for name, shape in trunk_shapes().items():
        if name not in arrays:
            return f"the tensor {name!r} is missing"
        found = arrays[name]
        if found.shape != shape:
            return f"the tensor {name!r} has shape {found.shape}, expected {shape}"
        if not np.issubdtype(found.dtype, np.floating) or not np.isfinite(found).all():
            return f"the tensor {name!r} holds values that are not finite numbers"
    return ""


def _image() -> dict[str, Any]:
    return {
        "channels": "red, green, blue in [0, 1], mean taken off, divided by the standard deviation",
        "mean": list(IMAGE_MEAN),
        "std": list(IMAGE_STD),
    }


def _table(weights: Mapping[str, Any], training: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "kind": KIND,
        "version": VERSION,
        "summary": "Convolutions of SqueezeNet 1.1, pre-trained on images of drawn places; 512 channels per cell of an image",
        "image": _image(),
        "weights": {**weights, "precision": "float16"},
        "training": dict(training),
    }


def _fields(table: ContractTable) -> dict[str, Any]:
    table.must_be("image", _image())
    found: dict[str, Any] = table.entry("training", dict[str, Any])
    return found
