"""The tensors of a policy in safetensors: compared with their variant before and after they are in a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.pilots.svnet.variants import tensor_shapes

__all__ = ["checked_tensors", "tensor_bytes"]

Floats = NDArray[np.float32]


def tensor_bytes(weights: Mapping[str, NDArray[Any]], name: str) -> bytes:
    """A safetensors file of a variant's tensors, in alphabetical order: equal tensors are equal bytes.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    from safetensors.numpy import save

    with np.errstate(over="ignore"):
        arrays = {key: np.ascontiguousarray(weights[key], np.float32) for key in sorted(weights)}
    if fault := _fault(arrays, name):
        raise AirworthyError(f"The weights of variant {name!r} cannot be written: {fault}.")
    return save(arrays)


def checked_tensors(data: bytes, name: str, where: str) -> dict[str, Floats]:
    """Tensors of a safetensors file, which the caller has bounded.

    Raises:
        AssetError: It is damaged, or its tensors are not the variant's.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(data)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        reason = (str(error).splitlines() or [""])[0][:200]
        raise AssetError(f"{where!r} is not a usable safetensors file: {reason}.") from None
    if fault := _fault(arrays, name):
        raise AssetError(f"{where!r} does not hold the weights of variant {name!r}: {fault}.")
    return arrays


def _fault(arrays: Mapping[str, NDArray[Any]], name: str) -> str:
    """What is wrong with tensors, as half a sentence; empty where they fit."""
    shapes = tensor_shapes(name)
    if missing := sorted(set(shapes) - set(arrays)):
        return f"the tensor {missing[0]!r} is missing"
    if extra := sorted(set(arrays) - set(shapes)):
        return f"the tensor {extra[0][:80]!r} does not belong there"
    for key, shape in shapes.items():
        array = arrays[key]
        if array.shape != shape:
            return f"the tensor {key!r} has shape {array.shape}, expected {shape}"
        if array.dtype != np.float32:
            return f"the tensor {key!r} is of {array.dtype}, expected float32"
        if not np.isfinite(array).all():
            return f"the tensor {key!r} holds values that are not finite"
    return ""
