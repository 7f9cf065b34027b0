"""Frozen features of images: what SqueezeNet's convolutions give of each cell, through a whitening that is measured once.

Heads that read frozen features learn in seconds, where a network that learns to see takes hours: images are looked at once, and
what was seen of them is kept. Trunk and whitening become part of the policy's own tensors afterwards (`classifier`), so that
what flies is an ordinary SV-Net of variant `sv_grid`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayU8, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.pilots.svnet.features import IMAGE_MEAN, IMAGE_STD
from airworthy.pilots.svnet.network import Backbone
from airworthy.pilots.svnet.variants import VARIANTS, backbone_shapes, feature_side

__all__ = ["CELLS", "TRUNK_CHANNELS", "VARIANT", "VIEW", "FrozenTrunk", "Whitening"]

VARIANT = "sv_grid"
"""Of the policies that are learnt here: the one that is told where in the image things are."""
CELLS = VARIANTS[VARIANT].cells
CLASSES = VARIANTS[VARIANT].classes
VIEW = 112
"""Side of the images [px]: at this one the trunk gives as many cells as the variant averages over, so that a cell is a cell."""
TRUNK_CHANNELS = 512
assert feature_side(VIEW) == CELLS
_AT_ONCE = 256
"""Images that are looked at together; ours: bounds the memory of what the trunk gives, 75 kB an image."""
_SMALLEST = 1e-3
"""Of the largest variance of a channel: directions below it are noise, which dividing by their deviation would blow up."""


class FrozenTrunk:
    """SqueezeNet's convolutions as they are, in native lanes; what they give of an image depends on no other.

    Args:
        trunk: Tensors `features.*` of `variants.backbone_shapes`.
        threads: Most threads of a CPU; None: as many as the machine allows.

    Raises:
        AirworthyError: A tensor is missing or of another shape.
    """

    def __init__(self, trunk: Mapping[str, ArrayF32], threads: int | None = None):
        for name, shape in backbone_shapes(CLASSES).items():
            if name.startswith("features.") and (name not in trunk or trunk[name].shape != shape):
                found = trunk[name].shape if name in trunk else "none"
                raise AirworthyError(f"Features need the tensor {name!r} of shape {shape}; got {found}.")
        # A classifier that hands every channel on: they are rectified already, so its own rectifier changes nothing.
        same = np.eye(TRUNK_CHANNELS, dtype=np.float32)[..., None, None]
        tensors = {**trunk, "classifier.1.weight": same, "classifier.1.bias": np.zeros(TRUNK_CHANNELS, np.float32)}
        self._backbone = Backbone(tensors, (VIEW, VIEW), IMAGE_MEAN, IMAGE_STD, "cpu", threads, cells=CELLS)

    def __call__(self, images: ArrayU8, seen: Callable[[int], None] = lambda count: None) -> ArrayF32:
        """Return (n, cells^2, 512) of images (n, 112, 112, 3), cell by cell, row by row.

        Args:
            images: Of the view's size.
            seen: Called now and then with how many images are done.

        Raises:
            AirworthyError: They are of another size or kind.
        """
        found = np.empty((len(images), CELLS**2, TRUNK_CHANNELS), np.float32)
        for first in range(0, len(images), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            found[some] = self._backbone(images[some]).reshape(-1, CELLS**2, TRUNK_CHANNELS)
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
        found = np.empty((len(images), CELLS**2, whitening.count), np.float16)
        for first in range(0, len(images), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            found[some] = whitening(self(images[some]))
            seen(min(first + _AT_ONCE, len(images)))
        return found


@dataclass(frozen=True, eq=False)
class Whitening:
    """An affine map of channels to fewer ones, that have mean 0, deviation 1 and no correlation over the images it is of."""

    mean: Array
    """(512,)"""
    matrix: Array
    """(count, 512)"""

    @classmethod
    def of(cls, features: ArrayF32, count: int) -> Whitening:
        """Return that of features (n, cells^2, 512): their leading principal components.

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
        """Return (..., count) of features (..., 512)."""
        return (features - self.mean.astype(np.float32)) @ self.matrix.astype(np.float32).T

    def folded(self, weight: Array, bias: Array) -> tuple[Array, Array]:
        """Return the classifier's weight (classes, 512) and bias (classes,) that do what `weight` (classes, count) and `bias`
        do behind the whitening.
        """
        folded = weight @ self.matrix
        return folded, bias - folded @ self.mean
