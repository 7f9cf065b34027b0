"""Frozen features of images: what convolutions give of each cell, through a whitening that is measured once.

Heads that read frozen features learn in seconds, where a network that learns to see takes hours: images are looked at once, and
what was seen of them is kept. Trunk and whitening become part of the policy's own tensors afterwards (`classifier`), so that
what flies is an ordinary SV-Net of variant `sv_grid`, or `sv_lite` where EfficientNet-Lite0 sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayU8, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.learning.backbone import efficientnet
from airworthy.pilots.svnet.features import IMAGE_MEAN, IMAGE_STD
from airworthy.pilots.svnet.network import Backbone
from airworthy.pilots.svnet.variants import VARIANTS, backbone_shapes, feature_side, variant

__all__ = ["CLASSES", "VARIANT", "VIEW", "FrozenTrunk", "Whitening", "image_scale", "variant_of"]

VARIANT = "sv_grid"
"""Of the policies that are learnt here: the one that is told where in the image things are."""
LITE_VARIANT = "sv_lite"
"""The same with EfficientNet-Lite0."""
CLASSES = VARIANTS[VARIANT].classes
VIEW = 112
"""Side of the images [px]: at this one trunks give as many cells as their variants average over, so that a cell is a cell."""
assert all(feature_side(VIEW, kind.trunk) == kind.cells for kind in (VARIANTS[VARIANT], VARIANTS[LITE_VARIANT]))
# Source: efficientnet_lite_builder.py of tensorflow/tpu: 127 taken off 8-bit colours, which are then divided by 128.
_LITE_MEAN, _LITE_STD = (127.0 / 255.0,) * 3, (128.0 / 255.0,) * 3
_AT_ONCE = 256
"""Images that are looked at together; ours: bounds the memory of what the trunk gives, 75 kB an image."""
_SMALLEST = 1e-3
"""Of the largest variance of a channel: directions below it are noise, which dividing by their deviation would blow up."""


def variant_of(features: str) -> str:
    """Return the variant whose trunk `--features` names."""
    return LITE_VARIANT if features == efficientnet.WORD else VARIANT


def image_scale(name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and deviation by which a variant's trunk learnt to read red, green, blue in [0, 1]."""
    return (_LITE_MEAN, _LITE_STD) if name == LITE_VARIANT else (IMAGE_MEAN, IMAGE_STD)


class FrozenTrunk:
    """Convolutions as they are, in native lanes; what they give of an image depends on no other.

    Args:
        trunk: Tensors `features.*` of `variants.backbone_shapes`.
        threads: Most threads of a CPU; None: as many as the machine allows.
        name: Of the variant whose trunk it is.

    Raises:
        AirworthyError: A tensor is missing or of another shape.
    """

    def __init__(self, trunk: Mapping[str, ArrayF32], threads: int | None = None, name: str = VARIANT):
        kind = variant(name)
        shapes = backbone_shapes(CLASSES, kind.trunk)
        for name, shape in shapes.items():
            if name.startswith("features.") and (name not in trunk or trunk[name].shape != shape):
                found = trunk[name].shape if name in trunk else "none"
                raise AirworthyError(f"Features need the tensor {name!r} of shape {shape}; got {found}.")
        self.cells, self.channels = kind.cells**2, shapes["classifier.1.weight"][1]
        # A classifier that hands every channel on. Its rectifier takes nothing from SqueezeNet's, which are rectified already;
        # of others the negative part is handed on beside the positive one.
        same = np.eye(self.channels, dtype=np.float32)
        self._signed = kind.trunk != "squeezenet"
        rows = np.concatenate([same, -same]) if self._signed else same
        tensors = {**trunk, "classifier.1.weight": rows[..., None, None], "classifier.1.bias": np.zeros(len(rows), np.float32)}
        scale = image_scale(kind.name)
        self._backbone = Backbone(tensors, (VIEW, VIEW), *scale, "cpu", threads, cells=kind.cells, trunk=kind.trunk)

    def __call__(self, images: ArrayU8, seen: Callable[[int], None] = lambda count: None) -> ArrayF32:
        """Return (n, cells^2, channels) of images (n, 112, 112, 3), cell by cell, row by row.

        Args:
            images: Of the view's size.
            seen: Called now and then with how many images are done.

        Raises:
            AirworthyError: They are of another size or kind.
        """
        found = np.empty((len(images), self.cells, self.channels), np.float32)
        for first in range(0, len(images), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            given = self._backbone(images[some]).reshape(len(images[some]), self.cells, -1)
            found[some] = given[..., : self.channels] - given[..., self.channels :] if self._signed else given
            seen(min(first + _AT_ONCE, len(images)))
        return found

    def whitened(
        self, images: ArrayU8, whitening: Whitening, seen: Callable[[int], None] = lambda count: None
    ) -> NDArray[np.float16]:
        """Return (n, cells^2, count) of images, in half precision.

        Args:
            images: (n, 112, 112, 3).
            whitening: Of what the trunk gives.
            seen: Told now and then how many images are done.
        """
        found = np.empty((len(images), self.cells, whitening.count), np.float16)
        for first in range(0, len(images), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            found[some] = whitening(self(images[some]))
            seen(min(first + _AT_ONCE, len(images)))
        return found


@dataclass(frozen=True, eq=False)
class Whitening:
    """An affine map of channels to fewer ones, that have mean 0, deviation 1 and no correlation over the images it is of."""

    mean: Array
    """(channels,)"""
    matrix: Array
    """(count, channels)"""

    @classmethod
    def of(cls, features: ArrayF32, count: int) -> Whitening:
        """Return that of features (n, cells^2, channels): their leading principal components.

        Args:
            features: Of images of the place, all cells alike.
            count: Channels that are kept.

        Raises:
            AirworthyError: The features are not finite.
        """
        rows = features.reshape(-1, features.shape[-1]).astype(np.float64)
        if not np.isfinite(rows).all():
            raise AirworthyError("The frozen features of the images are not finite: the trunk's weights are of no use.")
        mean = rows.mean(axis=0)
        spread, axes = np.linalg.eigh((rows - mean).T @ (rows - mean) / len(rows))
        # Largest first; a sign that depends on nothing but the axis itself, as `eigh` may give either.
        axes, spread = axes[:, ::-1][:, :count].T, spread[::-1][:count]
        axes *= np.sign(axes[np.arange(count), np.abs(axes).argmax(axis=1)])[:, None]
        least = max(_SMALLEST * float(spread[0]), np.finfo(float).tiny)
        return cls(mean, axes / np.sqrt(np.maximum(spread, least))[:, None])

    @property
    def count(self) -> int:
        """Channels that are kept."""
        return len(self.matrix)

    def __call__(self, features: ArrayF32) -> ArrayF32:
        """Return (..., count) of features (..., channels)."""
        return (features - self.mean.astype(np.float32)) @ self.matrix.astype(np.float32).T

    def folded(self, weight: Array, bias: Array) -> tuple[Array, Array]:
        """Return the classifier's weight (classes, channels) and bias (classes,) that do what `weight` (classes, count) and
        `bias` do behind the whitening.
        """
        folded = weight @ self.matrix
        return folded, bias - folded @ self.mean
