"""SV-Net and its ablations: which blocks each has and what its command network reads. No torch is needed here.

Sources: SOUS VIDE (arXiv 2412.16346), section "Experiments", for the ablations; sizes from StanfordMSL/SousVide,
configs/pilots/*.json, by way of the specification's section 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Literal

import numpy as np

from airworthy.core.arrays import ArrayF32
from airworthy.core.errors import AssetError, unknown_name
from airworthy.pilots.svnet.features import HISTORY_SIZE, OBJECTIVE_SIZE, OBSERVABLE_SIZE, VISION_SIZE
from airworthy.pilots.svnet.lite0 import lite0, lite0_shapes, lite0_side

__all__ = [
    "COMMAND",
    "ESTIMATE",
    "FIRES",
    "LATENT",
    "PUBLISHED",
    "VARIANTS",
    "Trunk",
    "Variant",
    "backbone_scores",
    "backbone_shapes",
    "cell_spans",
    "feature_side",
    "least_size",
    "parameter_count",
    "prepared",
    "squeezenet",
    "tensor_shapes",
    "variant",
]

# ---- SqueezeNet 1.1 on NumPy: no more than matrix products, which NumPy hands to its BLAS -----------------------------------
#
# Iandola et al.: SqueezeNet (2016), version 1.1 of the authors' repository, with the names of torchvision's tensors, so that
# published ImageNet weights (converted to safetensors) load as they are. Float32, images with channels last.

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
# Numbers of the layers as torchvision counts them in `features`.
POOLS = ("2", "5", "8")
# Of ImageNet; SV-Net keeps the whole classifier (spec/sousvide section 7).
CLASSES = 1000
Trunk = Literal["squeezenet", "lite0"]
"""What images are read with."""


def backbone_shapes(classes: int = CLASSES, trunk: Trunk = "squeezenet") -> dict[str, tuple[int, ...]]:
    """Return every tensor's shape, convolutions as (out, in, height, width).

    Args:
        classes: Channels of the classifier.
        trunk: Whose.
    """
    if trunk == "lite0":
        return lite0_shapes(classes)
    shapes: dict[str, tuple[int, ...]] = {"features.0.weight": (64, 3, 3, 3), "features.0.bias": (64,)}
    for number, (given, squeezed, expanded) in FIRES.items():
        for name, shape in (
            ("squeeze", (squeezed, given, 1, 1)),
            ("expand1x1", (expanded, squeezed, 1, 1)),
            ("expand3x3", (expanded, squeezed, 3, 3)),
        ):
            shapes[f"features.{number}.{name}.weight"] = shape
            shapes[f"features.{number}.{name}.bias"] = shape[:1]
    return {**shapes, "classifier.1.weight": (classes, 512, 1, 1), "classifier.1.bias": (classes,)}


def least_size() -> int:
    """Return the side of the smallest image that leaves something after three poolings [px]."""
    return 17


def backbone_scores(images: ArrayF32, weights: Mapping[str, ArrayF32], cells: int = 1, trunk: Trunk = "squeezenet") -> ArrayF32:
    """Return scores (n, classes) of normalised images (n, H, W, 3), or those of cells of the image, (n, cells^2 classes).

    Args:
        images: Red, green, blue, mean taken off and divided by the deviation.
        weights: Tensors of `backbone_shapes`, matrices as `prepared` lays them.
        cells: Rows and columns of cells over which scores are averaged, row by row.
        trunk: Whose tensors they are.

    Raises:
        AssetError: A tensor is missing.
    """
    try:
        x = lite0(images, weights) if trunk == "lite0" else squeezenet(images, weights)
    except KeyError as error:
        raise AssetError(f"The weights of an image network lack the tensor {error.args[0]!r}.") from None
    spans = [cell_spans(side, cells) for side in x.shape[1:3]]
    means = [x[:, top:bottom, left:right].mean(axis=(1, 2)) for top, bottom in spans[0] for left, right in spans[1]]
    return np.concatenate(means, axis=1)


def squeezenet(images: ArrayF32, weights: Mapping[str, ArrayF32]) -> ArrayF32:
    """Return (n, h, w, classes) of normalised images (n, H, W, 3), rectified.

    Args:
        images: Red, green, blue, mean and deviation of ImageNet taken off.
        weights: Tensors of `backbone_shapes`, matrices as `prepared` lays them.

    Raises:
        KeyError: A tensor is missing.
    """
    x = _convolved(images, weights["features.0.weight"], weights["features.0.bias"], stride=2, padding=0)
    for number in (*sorted((*FIRES, *POOLS), key=int),):
        x = _pooled(x) if number in POOLS else _fire(x, weights, f"features.{number}")
    return _convolved(x, weights["classifier.1.weight"], weights["classifier.1.bias"], stride=1, padding=0)


def cell_spans(side: int, cells: int) -> list[tuple[int, int]]:
    """Return first and last pixel (not included) of each cell along a side; where there are fewer pixels than cells, they
    share them, as in adaptive pooling.
    """
    return [(k * side // cells, -(-(k + 1) * side // cells)) for k in range(cells)]


def feature_side(side: int, trunk: Trunk = "squeezenet") -> int:
    """Return rows or columns of what the last block of a trunk gives, of an image with `side` of them [px]."""
    if trunk == "lite0":
        return lite0_side(side)
    side = (side - 3) // 2 + 1
    for _ in POOLS:
        side = -(-(side - 3) // 2) + 1
    return side


def prepared(weight: ArrayF32) -> ArrayF32:
    """Return a convolution's weights (out, in, height, width) as matrices (height, width, in, out)."""
    return np.ascontiguousarray(np.moveaxis(weight, (2, 3, 1, 0), (0, 1, 2, 3)), np.float32)


def _fire(x: ArrayF32, weights: Mapping[str, ArrayF32], name: str) -> ArrayF32:
    def part(x: ArrayF32, layer: str, padding: int = 0) -> ArrayF32:
        return _convolved(x, weights[f"{name}.{layer}.weight"], weights[f"{name}.{layer}.bias"], 1, padding)

    squeezed = part(x, "squeeze")
    return np.concatenate([part(squeezed, "expand1x1"), part(squeezed, "expand3x3", 1)], axis=-1)


def _convolved(x: ArrayF32, weight: ArrayF32, bias: ArrayF32, stride: int, padding: int) -> ArrayF32:
    """Return a convolution and its rectifier; `weight` as `prepared`."""
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


def _pooled(x: ArrayF32) -> ArrayF32:
    """Largest of 3 x 3, every second pixel; a window that reaches over the edge counts what it has (ceiling mode)."""
    height, width = (-(-(side - 3) // 2) + 1 for side in x.shape[1:3])
    room = (2 * height + 1 - x.shape[1], 2 * width + 1 - x.shape[2])
    if any(r > 0 for r in room):
        x = np.pad(x, ((0, 0), (0, max(room[0], 0)), (0, max(room[1], 0)), (0, 0)), constant_values=-np.inf)
    rows = np.maximum(x[:, 0 : 2 * height : 2], x[:, 1 : 2 * height + 1 : 2])
    np.maximum(rows, x[:, 2 : 2 * height + 2 : 2], out=rows)
    found = np.maximum(rows[:, :, 0 : 2 * width : 2], rows[:, :, 1 : 2 * width + 1 : 2])
    return np.maximum(found, rows[:, :, 2 : 2 * width + 2 : 2], out=found)


# -----------------------------------------------------------------------------------------------------------------------------

# Source of these widths: spec/sousvide section 7, table of layers.
HISTORY_HIDDEN, LATENT, ESTIMATE = (64, 32), 8, 2
"""Widths of the history network; the estimate is of mass [kg] and force of one rotor at full command [N]."""
HEAD_HIDDEN, FEATURES = (512, 256), 128
COMMAND_HIDDEN, COMMAND = (100, 100), 4
# Source: spec/sousvide section 7, HP-Net.
FULL_STATE_SIZE = 11
"""Time, position, velocity, quaternion: what the non-visual network reads."""


@dataclass(frozen=True)
class Variant:
    """One of the networks."""

    name: str
    summary: str
    vision: bool = True
    """It sees; otherwise it is told the whole state."""
    history: Literal["latent", "estimate", "none"] = "latent"
    """What of the history network the command network reads."""
    pretrained: bool = True
    """The history network learns from the true parameters first and stays as it is then."""
    classes: int = CLASSES
    """Channels of the image network's classifier."""
    cells: int = 1
    """Rows and columns of cells of the image that each class is averaged over; 1: over all of it."""
    trunk: Trunk = "squeezenet"
    """Convolutions that images go through before the classifier."""

    @property
    def scores(self) -> int:
        """Numbers that the image network gives."""
        return self.classes * self.cells**2

    @property
    def state_size(self) -> int:
        """Numbers of the state that the command network reads."""
        return OBSERVABLE_SIZE if self.vision else FULL_STATE_SIZE

    @property
    def command_input(self) -> int:
        """Numbers that the command network reads: state, objective, history, features, in this order."""
        history_size = {"latent": LATENT, "estimate": ESTIMATE, "none": 0}[self.history]
        return self.state_size + OBJECTIVE_SIZE + history_size + (FEATURES if self.vision else 0)

    @property
    def learns_history(self) -> bool:
        """Whether there is a history step."""
        return self.pretrained and self.history != "none"


VARIANTS = {
    item.name: item
    for item in (
        Variant("sv_net", "as published"),
        Variant("no_rma", "without the history network", history="none"),
        Variant("no_pretrain", "history network trained with the rest only", pretrained=False),
        Variant("no_latent", "told the history network's estimate instead of its latent", history="estimate"),
        Variant("hp_net", "told the whole state instead of seeing", vision=False),
        Variant("sv_grid", "told where in the image things are: few classes, over 6 x 6 cells", classes=32, cells=6),
        Variant("sv_lite", "the same with EfficientNet-Lite0, over 7 x 7 cells", classes=32, cells=7, trunk="lite0"),
    )
}
"""By name."""
PUBLISHED = ("sv_net", "no_rma", "no_pretrain", "no_latent", "hp_net")
"""Variants of the paper's ablation."""


def variant(name: str) -> Variant:
    """Return a variant by name.

    Raises:
        UnknownNameError: There is none of this name.
    """
    if name not in VARIANTS:
        raise unknown_name("variant of SV-Net", name, VARIANTS)
    return VARIANTS[name]


def tensor_shapes(name: str) -> dict[str, tuple[int, ...]]:
    """Return every tensor of a variant by the name it has in `weights.safetensors`; matrices are (out, in).

    Raises:
        UnknownNameError: There is no such variant.
    """
    kind = variant(name)
    shapes: dict[str, tuple[int, ...]] = {}
    if kind.history != "none":
        shapes |= _chain("history.body", (HISTORY_SIZE, *HISTORY_HIDDEN, LATENT))
        shapes |= {"history.estimate.weight": (ESTIMATE, LATENT), "history.estimate.bias": (ESTIMATE,)}
    if kind.vision:
        shapes |= {f"vision.backbone.{key}": shape for key, shape in backbone_shapes(kind.classes, kind.trunk).items()}
        shapes |= _chain("vision.head", (kind.scores + VISION_SIZE, *HEAD_HIDDEN, FEATURES))
    return shapes | _chain("command", (kind.command_input, *COMMAND_HIDDEN, COMMAND))


def parameter_count(name: str, block: str = "") -> int:
    """Return numbers that are learnt, of a variant or of one block of it ("history", "vision.backbone", "vision.head",
    "command")."""
    return sum(prod(shape) for key, shape in tensor_shapes(name).items() if key.startswith(block))


def _chain(name: str, widths: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for number, (given, out) in enumerate(pairwise(widths)):
        shapes |= {f"{name}.{number}.weight": (out, given), f"{name}.{number}.bias": (out,)}
    return shapes
