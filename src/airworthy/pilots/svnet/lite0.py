"""EfficientNet-Lite0 up to its block 10 on NumPy: a stem and eleven inverted bottlenecks, a sixteenth of the image's side.

Sources: Tan and Le, EfficientNet (2019); widths, kernels and strides from tensorflow/tpu, models/official/efficientnet/lite/
efficientnet_lite_builder.py; paddings are TensorFlow's SAME. Batch normalisations are folded into the convolutions. Float32,
images with channels last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import ArrayF32

__all__ = ["BLOCKS", "CHANNELS", "SIX", "STEM", "Bottleneck", "lite0", "lite0_shapes", "lite0_side", "same_padding"]

STEM = 32
"""Channels behind the first convolution, 3 x 3 at every second pixel."""
SIX = 6.0
"""At which rectifiers end (ReLU6)."""


@dataclass(frozen=True)
class Bottleneck:
    """Expand by 1 x 1, filter each channel alone, project by 1 x 1; what went in is added where sizes allow it."""

    given: int
    expanded: int
    """Channels between; equal to `given`: nothing is expanded."""
    out: int
    kernel: int
    """Side of the depthwise filter [px]."""
    stride: int

    @property
    def adds(self) -> bool:
        """Whether what went in is added."""
        return self.stride == 1 and self.given == self.out


def _bottlenecks() -> tuple[Bottleneck, ...]:
    found, given = [], STEM
    # Repetitions, kernel, stride of the first, expansion, channels: the first five stages of the builder's list.
    for count, kernel, stride, expansion, out in (
        (1, 3, 1, 1, 16),
        (2, 3, 2, 6, 24),
        (2, 5, 2, 6, 40),
        (3, 3, 2, 6, 80),
        (3, 5, 1, 6, 112),
    ):
        for number in range(count):
            found.append(Bottleneck(given, given * expansion, out, kernel, stride if number == 0 else 1))
            given = out
    return tuple(found)


BLOCKS = _bottlenecks()
CHANNELS = BLOCKS[-1].out
"""Of what the last block gives, which is not rectified."""


def lite0_shapes(classes: int) -> dict[str, tuple[int, ...]]:
    """Return every tensor's shape, convolutions as (out, in, height, width), depthwise ones as (channels, 1, height, width).

    Args:
        classes: Channels of the classifier.
    """
    shapes: dict[str, tuple[int, ...]] = {"features.stem.weight": (STEM, 3, 3, 3)}
    for number, block in enumerate(BLOCKS):
        name = f"features.{number}"
        if block.expanded != block.given:
            shapes[f"{name}.expand.weight"] = (block.expanded, block.given, 1, 1)
        shapes[f"{name}.depthwise.weight"] = (block.expanded, 1, block.kernel, block.kernel)
        shapes[f"{name}.project.weight"] = (block.out, block.expanded, 1, 1)
    shapes["classifier.1.weight"] = (classes, CHANNELS, 1, 1)
    biases = {key.replace(".weight", ".bias"): shape[:1] for key, shape in shapes.items()}
    return dict(sorted({**shapes, **biases}.items()))


def lite0_side(side: int) -> int:
    """Return rows or columns of what the last block gives, of an image with `side` of them [px]."""
    for stride in (2, *(block.stride for block in BLOCKS)):
        side = -(-side // stride)
    return side


def same_padding(side: int, kernel: int, stride: int) -> tuple[int, int]:
    """Return zeros before and behind `side` pixels, so that every `stride`-th one is the middle of a filter (TensorFlow's
    SAME); the odd one is behind.
    """
    missing = max((-(-side // stride) - 1) * stride + kernel - side, 0)
    return missing // 2, missing - missing // 2


def lite0(images: ArrayF32, weights: Mapping[str, ArrayF32]) -> ArrayF32:
    """Return (n, h, w, classes) of normalised images (n, H, W, 3), rectified.

    Args:
        images: Red, green, blue, mean taken off and divided by the deviation of the contract.
        weights: Tensors of `lite0_shapes`, four-dimensional ones as (height, width, in, out).

    Raises:
        KeyError: A tensor is missing.
    """

    def tensors(name: str) -> tuple[ArrayF32, ArrayF32]:
        return weights[f"{name}.weight"], weights[f"{name}.bias"]

    x = np.clip(_filtered(images, *tensors("features.stem"), 2, _dense), 0.0, SIX)
    for number, block in enumerate(BLOCKS):
        name, given = f"features.{number}", x
        if block.expanded != block.given:
            x = np.clip(_pointwise(x, *tensors(f"{name}.expand")), 0.0, SIX)
        x = np.clip(_filtered(x, *tensors(f"{name}.depthwise"), block.stride, _alone), 0.0, SIX)
        x = _pointwise(x, *tensors(f"{name}.project"))
        x = x + given if block.adds else x
    return np.maximum(_pointwise(x, *tensors("classifier.1")), np.float32(0.0))


def _pointwise(x: ArrayF32, weight: ArrayF32, bias: ArrayF32) -> ArrayF32:
    return np.asarray(x @ weight[0, 0] + bias)


def _dense(x: ArrayF32, tap: ArrayF32) -> ArrayF32:
    return np.asarray(x @ tap)


def _alone(x: ArrayF32, tap: ArrayF32) -> ArrayF32:
    return np.asarray(x * tap[0])


def _filtered(
    x: ArrayF32, weight: ArrayF32, bias: ArrayF32, stride: int, by: Callable[[ArrayF32, ArrayF32], ArrayF32]
) -> ArrayF32:
    """Return a padded convolution, tap by tap; `by` says how a tap's pixels and weights become a sum's part."""
    kernel, (rows, columns) = len(weight), x.shape[1:3]
    x = np.pad(x, ((0, 0), same_padding(rows, kernel, stride), same_padding(columns, kernel, stride), (0, 0)))
    tall, wide = -(-rows // stride), -(-columns // stride)
    found = np.broadcast_to(bias, (len(x), tall, wide, len(bias))).astype(np.float32)
    for row in range(kernel):
        for column in range(kernel):
            some = x[:, row : row + stride * (tall - 1) + 1 : stride, column : column + stride * (wide - 1) + 1 : stride]
            found += by(some, weight[row, column])
    return found
