"""Work memory that grows and stays."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.native_kernel import quiet_warp

_KINDS = {np.dtype(np.float32): "float32", np.dtype(np.int32): "int32", np.dtype(np.int64): "int64"}
_CONSTANTS_KEPT = 16


def as_warp(array: NDArray[Any], device: str = "cpu") -> Any:
    """An array as a flat Warp array, on the CPU sharing its memory; rows of a record as 32-bit words."""
    wp = quiet_warp()
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.names:
        flat = flat.view(np.float32)
    shared = wp.array(flat, dtype=getattr(wp, _KINDS[flat.dtype]), device="cpu", copy=False)
    return shared if device == "cpu" else shared.to(device)


class Buffers:
    """Arrays by name; one that is asked for larger than it was is made anew, its content lost."""

    def __init__(self, device: str):
        self._device = device
        self._arrays: dict[str, Any] = {}
        self._hosts: dict[str, NDArray[Any]] = {}
        self._constants: dict[Hashable, Any] = {}

    def take(self, name: str, size: int, kind: type[np.generic]) -> Any:
        """A Warp array of at least `size` numbers, its content arbitrary."""
        held = self._arrays.get(name)
        if held is None or held.size < size:
            size = max(size, 1)
            if self._device == "cpu":
                self._hosts[name] = np.empty(size, kind)
                self._arrays[name] = as_warp(self._hosts[name])
            else:
                wp = quiet_warp()
                self._arrays[name] = wp.empty(size, dtype=getattr(wp, _KINDS[np.dtype(kind)]), device=self._device)
        return self._arrays[name]

    def host(self, name: str) -> NDArray[Any]:
        """The memory of an array that was taken, as NumPy sees it; on a GPU a copy."""
        return self._hosts[name] if self._device == "cpu" else self._arrays[name].numpy()

    def constant(self, key: Hashable, make: Callable[[], NDArray[Any]]) -> Any:
        """An array that never changes, made once."""
        if key not in self._constants:
            while len(self._constants) >= _CONSTANTS_KEPT:
                self._constants.pop(next(iter(self._constants)))
            self._constants[key] = as_warp(make(), self._device)
        return self._constants[key]
