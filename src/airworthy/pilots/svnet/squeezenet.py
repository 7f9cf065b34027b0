"""SqueezeNet 1.1 on NumPy: no more than matrix products, which NumPy hands to its BLAS.

Iandola et al.: SqueezeNet (2016), version 1.1 of the authors' repository, with the names of torchvision's tensors, so that
published ImageNet weights (converted to safetensors) load as they are. Float32, images with channels last.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AssetError

__all__ = ["FIRES", "backbone_shapes", "least_size", "squeezenet"]

Array = NDArray[np.float32]

FIRES: dict[str, tuple[int, int, int]] = {
    "3": (64, 16, 64),
    "4": (128, 16, 64),
    "6": (128, 32, 128),
    "7": (256, 32, 128),
    "9": (256, 48, 192),
    "10": (384, 48, 192),
    "11": (384, 64, 256),
    "12": (512, 64, 256),
}
"""Channels in, squeezed, and of each of the two expansions, by the number of the layer."""
POOLS = ("2", "5", "8")
CLASSES = 1000


def backbone_shapes() -> dict[str, tuple[int, ...]]:
    """Every tensor's shape, convolutions as (out, in, height, width)."""
    shapes: dict[str, tuple[int, ...]] = {"features.0.weight": (64, 3, 3, 3), "features.0.bias": (64,)}
    for number, (given, squeezed, expanded) in FIRES.items():
        for name, shape in (
            ("squeeze", (squeezed, given, 1, 1)),
            ("expand1x1", (expanded, squeezed, 1, 1)),
            ("expand3x3", (expanded, squeezed, 3, 3)),
        ):
            shapes[f"features.{number}.{name}.weight"] = shape
            shapes[f"features.{number}.{name}.bias"] = shape[:1]
    return {**shapes, "classifier.1.weight": (CLASSES, 512, 1, 1), "classifier.1.bias": (CLASSES,)}


def least_size() -> int:
    """Side of the smallest image that leaves something after three poolings [px]."""
    return 17


def squeezenet(images: Array, weights: Mapping[str, Array]) -> Array:
    """Scores (n, 1000) of normalised images (n, H, W, 3).

    Args:
        images: Red, green, blue, mean and deviation of ImageNet taken off.
        weights: Tensors of `backbone_shapes`, matrices as `prepared` lays them.

    Raises:
        AssetError: A tensor is missing.
    """
    try:
        x = _convolved(images, weights["features.0.weight"], weights["features.0.bias"], stride=2, padding=0)
        for number in (*sorted((*FIRES, *POOLS), key=int),):
            x = _pooled(x) if number in POOLS else _fire(x, weights, f"features.{number}")
        x = _convolved(x, weights["classifier.1.weight"], weights["classifier.1.bias"], stride=1, padding=0)
    except KeyError as error:
        raise AssetError(f"The weights of a SqueezeNet lack the tensor {error.args[0]!r}.") from None
    return np.asarray(x.mean(axis=(1, 2)))


def prepared(weight: Array) -> Array:
    """A convolution's weights (out, in, height, width) as matrices (height, width, in, out)."""
    return np.ascontiguousarray(np.moveaxis(weight, (2, 3, 1, 0), (0, 1, 2, 3)), np.float32)


def _fire(x: Array, weights: Mapping[str, Array], name: str) -> Array:
    def part(x: Array, layer: str, padding: int = 0) -> Array:
        return _convolved(x, weights[f"{name}.{layer}.weight"], weights[f"{name}.{layer}.bias"], 1, padding)

    squeezed = part(x, "squeeze")
    return np.concatenate([part(squeezed, "expand1x1"), part(squeezed, "expand3x3", 1)], axis=-1)


def _convolved(x: Array, weight: Array, bias: Array, stride: int, padding: int) -> Array:
    """A convolution and its rectifier; `weight` as `prepared`."""
    side, channels, out = weight.shape[0], weight.shape[2], weight.shape[3]
    if side == 1:
        y = x.reshape(-1, channels) @ weight[0, 0]
        shape = x.shape[:3]
    else:
        if padding:
            x = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(x, (side, side), axis=(1, 2))[:, ::stride, ::stride]
        shape = windows.shape[:3]
        # Windows come as (n, h, w, channel, row, column); the matrix wants row, column, channel.
        columns = np.ascontiguousarray(np.moveaxis(windows, 3, -1)).reshape(-1, side * side * channels)
        y = columns @ weight.reshape(-1, out)
    y += bias
    np.maximum(y, 0.0, out=y)
    return y.reshape(*shape, out)


def _pooled(x: Array) -> Array:
    """Largest of 3 x 3, every second pixel; a window that reaches over the edge counts what it has (ceiling mode)."""
    height, width = (-(-(side - 3) // 2) + 1 for side in x.shape[1:3])
    room = (2 * height + 1 - x.shape[1], 2 * width + 1 - x.shape[2])
    if any(r > 0 for r in room):
        x = np.pad(x, ((0, 0), (0, max(room[0], 0)), (0, max(room[1], 0)), (0, 0)), constant_values=-np.inf)
    rows = np.maximum(x[:, 0 : 2 * height : 2], x[:, 1 : 2 * height + 1 : 2])
    np.maximum(rows, x[:, 2 : 2 * height + 2 : 2], out=rows)
    found = np.maximum(rows[:, :, 0 : 2 * width : 2], rows[:, :, 1 : 2 * width + 1 : 2])
    return np.maximum(found, rows[:, :, 2 : 2 * width + 2 : 2], out=found)
