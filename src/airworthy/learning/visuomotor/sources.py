"""Where frozen features come from: the shipped policy's image network, random numbers, or a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from airworthy.core.arrays import ArrayF32
from airworthy.core.errors import AssetError
from airworthy.core.files import read_bytes
from airworthy.pilots.svnet.contract import read_policy, shipped_policy
from airworthy.pilots.svnet.variants import backbone_shapes

__all__ = ["trunk_weights"]

_TRUNK = "features."
_POLICY = "vision.backbone."
# Ours: thirteen times the 5 MB of SqueezeNet 1.1; a larger file is something else.
_LIMIT_BYTES = 64 << 20


def trunk_weights(features: str, seed: int = 0) -> dict[str, ArrayF32]:
    """Return the tensors `features.*` of SqueezeNet 1.1.

    Args:
        features: "hall", of the policy that comes with the package; "random", by He's rule; or a .safetensors file with
            torchvision's names.
        seed: Of random ones.

    Raises:
        AssetError: There is no such file, or it holds no SqueezeNet 1.1.
    """
    shapes = {name: shape for name, shape in backbone_shapes().items() if name.startswith(_TRUNK)}
    if features == "hall":
        _, tensors = read_policy(shipped_policy("hall"))
        return {name: tensors[_POLICY + name] for name in shapes}
    if features == "random":
        return _random(shapes, seed)
    return _read(Path(features), shapes)


def _random(shapes: dict[str, tuple[int, ...]], seed: int) -> dict[str, ArrayF32]:
    """Return weights that let a signal neither fade nor grow (He et al., 2015); biases of 0."""
    rng = np.random.default_rng([seed, len(shapes)])
    found: dict[str, ArrayF32] = {}
    for name, shape in shapes.items():
        bound = np.sqrt(6.0 / np.prod(shape[1:])) if len(shape) > 1 else 0.0
        found[name] = rng.uniform(-bound, bound, shape).astype(np.float32)
    return found


def _read(path: Path, shapes: dict[str, tuple[int, ...]]) -> dict[str, ArrayF32]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    if path.suffix.lower() != ".safetensors":
        raise AssetError(f"Features are 'hall', 'random' or a .safetensors file of SqueezeNet 1.1; got {str(path)!r}.")
    try:
        found = load(read_bytes(path, _LIMIT_BYTES))
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise AssetError(f"{str(path)!r} is not a usable safetensors file: {str(error).splitlines()[0][:200]}.") from error
    for name, shape in shapes.items():
        if name not in found or found[name].shape != shape:
            there = f"has shape {found[name].shape}, expected {shape}" if name in found else "is missing"
            raise AssetError(f"{str(path)!r} holds no SqueezeNet 1.1: the tensor {name!r} {there}.")
        if not np.issubdtype(found[name].dtype, np.floating) or not np.isfinite(found[name]).all():
            raise AssetError(f"{str(path)!r} cannot be used: the tensor {name!r} holds values that are not finite numbers.")
    return {name: np.asarray(found[name], np.float32) for name in shapes}
