"""The Deep Collision Encoder in flight, on NumPy, and its folder: from a depth image to a few numbers, without torch.

Specification aerial_gym, 9.2, after Kulkarni and Alexis; the structure is the published one at 36 x 64 pixels, without its last
stride. `airworthy.learning.navigation.encoder` learns it, and computes the same in torch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.schema import Bound, check_fields
from airworthy.pilots import network_files
from airworthy.pilots.navigation_policy.contract import WEIGHT_MAX
from airworthy.pilots.navigation_policy.sight import FIELD_OF_VIEW, IMAGE, INVALID, NEAREST, REACH
from airworthy.pilots.network_files import (
    ContractTable,
    contract_and_weights,
    folder_contract,
    read_weights,
    write_network_files,
)

__all__ = ["CELLS_LEFT", "HIDDEN", "EncoderContract", "encode", "encoder_shapes", "read_encoder_folder", "write_encoder"]

KIND, VERSION = "collision_encoder", 1
WEIGHTS_LIMIT_BYTES = 16 * 1024 * 1024
"""Ours: that of the published width at 36 x 64 has 7 MB."""
HIDDEN = 512
"""Between convolutions and latent, as published."""
CELLS_LEFT = (2, 2)
"""Rows and columns behind the last convolution, of 36 x 64 pixels."""
# Source: specification aerial_gym, 9.2, Deep Collision Encoder; the last stride is left out.
_CONVOLUTIONS = MappingProxyType(
    {
        "conv0": (0, 1, 5, 2, 2),
        "conv0_1": (1, 1, 3, 2, 1),
        "conv1_0": (1, 1, 5, 2, 2),
        "conv1_1": (1, 2, 3, 1, 1),
        "skip1": (1, 2, 3, 2, 1),
        "conv2_0": (2, 2, 5, 2, 2),
        "conv2_1": (2, 4, 3, 2, 1),
        "skip2": (2, 4, 5, 4, 2),
        "conv3": (4, 4, 5, 1, 2),
    }
)
"""By name: channels in and out, in units of the first layer's (0: the image's one), side of the kernel, stride, border of
zeros."""
_BLOCKS = (
    "x0 = elu(conv0_1(conv0(image)))",
    "x1 = elu(conv1_1(conv1_0(x0)) + skip1(x0))",
    "x2 = elu(conv2_1(conv2_0(x1)) + skip2(x1))",
    "hidden = elu(wide(flat(elu(conv3(x2)))))",
    "mean, log_variance = halves(latent(hidden))",
)
"""How they stand together, as `encode` computes them, for the contract."""


@dataclass(frozen=True)
class EncoderContract:
    """What an encoder learnt from, and how.

    Raises:
        AirworthyError: A number is out of range.
    """

    channels: Annotated[int, Bound(1, 64)] = 16
    """Of its first layer; published are 32, and later layers have two and four times as many."""
    latent: Annotated[int, Bound(1, 512)] = 64
    """Numbers that it gives."""
    radius: Annotated[float, Bound(0.0, 5.0, "m")] = 0.25
    """By which obstacles of its collision images were grown [m]."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """How it learnt; free."""

    def __post_init__(self) -> None:
        check_fields(self, "Contract.")


def encoder_shapes(contract: EncoderContract) -> dict[str, tuple[int, ...]]:
    """Return name and shape of every tensor; of convolutions (out, in, rows, columns)."""
    c = contract.channels
    layers: dict[str, tuple[int, ...]] = {
        name: (wide * c, max(1, deep * c), side, side) for name, (deep, wide, side, _, _) in _CONVOLUTIONS.items()
    }
    layers |= {
        "wide": (HIDDEN, 4 * c * math.prod(CELLS_LEFT)),
        # Mean and log-variance; in flight only the mean is read.
        "latent": (2 * contract.latent, HIDDEN),
    }
    return {f"{name}.{part}": x for name, shape in layers.items() for part, x in (("weight", shape), ("bias", shape[:1]))}


def encode(weights: Mapping[str, ArrayF32], image: ArrayF32) -> ArrayF32:
    """Return the mean of the latent, (n, latent): the same bits alone and in any batch.

    Args:
        weights: Tensors by the names of `encoder_shapes`.
        image: Depth over reach, `INVALID` where it is too near, (n, 36, 64).
    """

    def layer(name: str, x: ArrayF32) -> ArrayF32:
        *_, stride, border = _CONVOLUTIONS[name]
        return _convolved(x, weights[f"{name}.weight"], weights[f"{name}.bias"], stride, border)

    def dense(name: str, x: ArrayF32, rows: int | None = None) -> ArrayF32:
        # One vector at a time: how a product of matrices sums depends on how many there are.
        found = x[:, None] @ weights[f"{name}.weight"][:rows].T + weights[f"{name}.bias"][:rows]
        return np.asarray(found[:, 0])

    x0 = _elu(layer("conv0_1", layer("conv0", image[:, None])))
    x1 = _elu(layer("conv1_1", layer("conv1_0", x0)) + layer("skip1", x0))
    x2 = _elu(layer("conv2_1", layer("conv2_0", x1)) + layer("skip2", x1))
    flat = _elu(layer("conv3", x2)).reshape(len(image), -1)
    return dense("latent", _elu(dense("wide", flat)), len(weights["latent.bias"]) // 2)


def _convolved(x: ArrayF32, weight: ArrayF32, bias: ArrayF32, stride: int, border: int) -> ArrayF32:
    """Return a convolution of (n, in, rows, columns), (n, out, rows, columns), a product of matrices per image."""
    padded = np.pad(x, ((0, 0), (0, 0), (border, border), (border, border)))
    side = weight.shape[2:]
    parts = np.lib.stride_tricks.sliding_window_view(padded, side, (2, 3))[:, :, ::stride, ::stride]
    n, _, rows, columns = parts.shape[:4]
    seen = np.ascontiguousarray(parts.transpose(0, 1, 4, 5, 2, 3)).reshape(n, -1, rows * columns)
    found = weight.reshape(len(weight), -1) @ seen + bias[:, None]
    return np.asarray(found.reshape(n, len(weight), rows, columns))


def _elu(x: ArrayF32) -> ArrayF32:
    return np.where(x > 0.0, x, np.expm1(np.minimum(x, np.float32(0.0))))


# ---- Folders ----------------------------------------------------------------------------------------------------------------


def _layers() -> dict[str, Any]:
    """Return how it computes, for people and programs of others; nothing of it can be chosen."""
    return {
        "activation": "elu: x where it is positive, else exp(x) - 1",
        "convolutions": {
            name: {"kernel": [side, side], "stride": stride, "padding": border}
            for name, (_, _, side, stride, border) in _CONVOLUTIONS.items()
        },
        "weights": "of convolutions out, in, rows, columns, which are not turned over; of others out, in",
        "padded": "with zeros, on all sides",
        "blocks": list(_BLOCKS),
        "flat": "channels, of each rows, of each columns",
        "hidden": HIDDEN,
        "output": "mean; log_variance is for learning alone",
    }


def _table(contract: EncoderContract, weights: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "kind": KIND,
        "version": VERSION,
        "summary": "From a depth image to a latent that tells how far a body of the vehicle's size could go along each ray",
        "image": {
            "shape": list(IMAGE),
            "field_of_view_deg": round(math.degrees(FIELD_OF_VIEW), 6),
            "reach_m": REACH,
            "nearest_m": NEAREST,
            "invalid": INVALID,
            "input": "depth along the optical axis over reach",
        },
        "channels": contract.channels,
        "latent": contract.latent,
        "radius_m": contract.radius,
        "layers": _layers(),
        "weights": dict(weights),
        "training": dict(contract.training),
    }


def _fields(table: ContractTable) -> EncoderContract:
    contract = EncoderContract(
        channels=table.entry("channels", int),
        latent=table.entry("latent", int),
        radius=table.entry("radius_m", float),
        training=table.entry("training", dict[str, Any]),
    )
    expected = _table(contract, {})
    table.must_be("image", expected["image"])
    # Folders of earlier versions do not say it, and mean the same.
    if table.entry("layers", Any, None) is not None:
        table.must_be("layers", expected["layers"])
    return contract


def write_encoder(folder: str | Path, contract: EncoderContract, weights: Mapping[str, ArrayAny]) -> Path:
    """Write an encoder's folder: weights.safetensors, and contract.json last; returns the folder.

    Args:
        folder: Made where it is missing.
        contract: What the numbers mean.
        weights: Tensors by the names of `encoder_shapes`.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    data = network_files.tensor_bytes(weights, encoder_shapes(contract), " of a collision encoder")
    return write_network_files(folder, data, lambda file: _table(contract, file))


def read_encoder_folder(folder: str | Path) -> tuple[EncoderContract, dict[str, ArrayF32], str]:
    """Return contract, tensors and the digest of the file of weights.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    table, where = folder_contract(folder, "a collision encoder")
    contract, digest = contract_and_weights(table, where, "a contract of a collision encoder", (KIND, VERSION), _fields)
    data = read_weights(folder, digest, WEIGHTS_LIMIT_BYTES)
    tensors = network_files.checked_tensors(data, encoder_shapes(contract), " of a collision encoder", str(folder), WEIGHT_MAX)
    return contract, tensors, digest
