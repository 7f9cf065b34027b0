"""Where the tensors of a backbone come from: the shipped one, the shipped policy's, random numbers, or a file. No torch."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np

from airworthy.core.arrays import ArrayF32
from airworthy.core.errors import AssetError
from airworthy.core.files import read_bytes
from airworthy.learning.backbone import efficientnet
from airworthy.learning.backbone.contract import WEIGHTS_LIMIT_BYTES, read_backbone, trunk_shapes, trunk_tensors
from airworthy.pilots.svnet.contract import read_policy, shipped_policy

__all__ = ["WORDS", "backbone_weights", "shipped_backbone"]

WORDS = {
    "own": "the backbone that comes with the package, pre-trained on drawn places",
    "hall": "the image network of the policy that comes with the package, learnt in the hall",
    "random": "random weights, of a seed",
    efficientnet.WORD: "EfficientNet-Lite0 learnt on ImageNet, from a package of others",
}
_POLICY = "vision.backbone."


def shipped_backbone() -> Path:
    """Return the folder of the backbone that comes with the package.

    Raises:
        AssetError: It is not where it was installed.
    """
    folder = Path(str(files("airworthy.learning.backbone").joinpath("assets", "own")))
    if not folder.is_dir():
        raise AssetError("The backbone is missing from the installation: install airworthy again.")
    return folder


def backbone_weights(word: str, seed: int = 0) -> dict[str, ArrayF32]:
    """Return the tensors `features.*` of SqueezeNet 1.1, or of EfficientNet-Lite0 where it is named.

    Args:
        word: One of `WORDS`; a folder of `airworthy train backbone`; or a .safetensors file with torchvision's names, with or
            without classifier.
        seed: Of random ones.

    Raises:
        AssetError: There is nothing of this name, it holds no SqueezeNet 1.1, or the package of the weights is missing.
    """
    if word == efficientnet.WORD:
        return efficientnet.efficientnet_lite0()
    if word == "own":
        return read_backbone(shipped_backbone())[1]
    if word == "hall":
        _, tensors = read_policy(shipped_policy("hall"))
        return {name: tensors[_POLICY + name] for name in trunk_shapes()}
    if word == "random":
        return _random(seed)
    path = Path(word)
    if path.is_dir():
        return read_backbone(path)[1]
    if path.suffix.lower() != ".safetensors":
        raise AssetError(
            f"There is no backbone {word[:200]!r}; expected {', '.join(WORDS)}, a folder of `airworthy train backbone`, or a"
            " .safetensors file of SqueezeNet 1.1."
        )
    return trunk_tensors(read_bytes(path, WEIGHTS_LIMIT_BYTES), str(path))


def _random(seed: int) -> dict[str, ArrayF32]:
    """Return weights that let a signal neither fade nor grow (He et al., 2015); biases of 0."""
    shapes = trunk_shapes()
    rng = np.random.default_rng([seed, len(shapes)])
    found: dict[str, ArrayF32] = {}
    for name, shape in shapes.items():
        bound = np.sqrt(6.0 / np.prod(shape[1:])) if len(shape) > 1 else 0.0
        found[name] = rng.uniform(-bound, bound, shape).astype(np.float32)
    return found
