"""Weights of SqueezeNet 1.1 from a file, to begin a training with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AssetError
from airworthy.core.files import read_bytes
from airworthy.pilots.svnet.squeezenet import backbone_shapes

__all__ = ["read_backbone"]

_LIMIT_BYTES = 64 << 20
_HOW = (
    'convert it where you trust it: python -c "import sys, torch; from safetensors.torch import save_file; save_file('
    "torch.load(sys.argv[1], weights_only=True), 'squeezenet1_1.safetensors')\" FILE"
)


def read_backbone(path: str | Path) -> dict[str, NDArray[np.float32]]:
    """Tensors of SqueezeNet 1.1 by torchvision's names.

    Args:
        path: A .safetensors; torch's own .pth holds pickles, which can run code, and is not read.

    Raises:
        AssetError: It is another kind of file, damaged, or its tensors are not SqueezeNet's.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    where = Path(path)
    if where.suffix.lower() != ".safetensors":
        raise AssetError(f"{str(path)!r} is not a .safetensors file; {_HOW}.")
    try:
        found = load(read_bytes(where, _LIMIT_BYTES))
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise AssetError(f"{str(path)!r} is not a usable safetensors file: {str(error).splitlines()[0][:200]}.") from error
    for name, shape in backbone_shapes().items():
        if name not in found:
            raise AssetError(f"{str(path)!r} holds no SqueezeNet 1.1: the tensor {name!r} is missing.")
        if found[name].shape != shape:
            raise AssetError(
                f"{str(path)!r} holds no SqueezeNet 1.1: {name!r} has shape {found[name].shape}, expected {shape}."
            )
        if not np.issubdtype(found[name].dtype, np.floating) or not np.isfinite(found[name]).all():
            raise AssetError(f"{str(path)!r} cannot be used: the tensor {name!r} holds values that are not finite numbers.")
    return {name: np.asarray(found[name], np.float32) for name in backbone_shapes()}
