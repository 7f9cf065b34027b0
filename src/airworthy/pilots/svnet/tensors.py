"""The tensors of a policy in safetensors: compared with their variant before and after they are in a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots import network_files
from airworthy.pilots.svnet.variants import tensor_shapes

__all__ = ["checked_tensors", "tensor_bytes"]

Floats = NDArray[np.float32]


def tensor_bytes(weights: Mapping[str, NDArray[Any]], name: str) -> bytes:
    """A safetensors file of a variant's tensors, in alphabetical order: equal tensors are equal bytes.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    return network_files.tensor_bytes(weights, tensor_shapes(name), _whose(name))


def checked_tensors(data: bytes, name: str, where: str) -> dict[str, Floats]:
    """Tensors of a safetensors file, which the caller has bounded.

    Raises:
        AssetError: It is damaged, or its tensors are not the variant's.
    """
    return network_files.checked_tensors(data, tensor_shapes(name), _whose(name), where)


def _whose(name: str) -> str:
    return f" of variant {name!r}"
