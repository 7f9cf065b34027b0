"""The network of a navigation policy in flight, on NumPy: the same bits alone and in any batch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.pilots.navigation_policy.contract import NavigationContract, read_navigation_folder
from airworthy.pilots.task_policy.network import network_output, recurrent_output

__all__ = ["NavigationPolicy", "read_navigation_policy"]


class NavigationPolicy:
    """Decides.

    Args:
        contract: What its numbers mean.
        weights: Tensors by the names of `NavigationContract.shapes`.

    Raises:
        AirworthyError: A tensor is missing, or of another shape.
    """

    def __init__(self, contract: NavigationContract, weights: Mapping[str, ArrayAny]):
        self.contract = contract
        held = {name: np.asarray(x, np.float32) for name, x in weights.items()}
        for name, shape in contract.shapes().items():
            if name not in held or held[name].shape != shape:
                raise AirworthyError(f"A navigation policy lacks the tensor {name!r} of shape {shape}.")
        self._shift, self._scale = held["seen.mean"], held["seen.deviation"]

        def layer(name: str) -> list[ArrayF32]:
            return [held[f"{name}.weight"], held[f"{name}.bias"]]

        layers = [layer(f"layers.{k}") for k in range(len(contract.hidden))]
        # With a memory the last layer before it goes with it: `recurrent_output` is a layer, a GRU and a layer.
        tail = [*layers.pop(), *layer("input"), *layer("memory")] if contract.recurrent else []
        self._first = [x for pair in layers for x in pair]
        self._last = [*tail, *layer("action")]

    def begin(self, count: int) -> ArrayF32:
        """Return the memory of new flights, (n, recurrent)."""
        return np.zeros((count, self.contract.recurrent), np.float32)

    def act(self, observation: ArrayF32, memory: ArrayF32) -> tuple[ArrayF32, ArrayF32]:
        """Return actions (n, actions) within [-1, 1], and the memory behind them.

        Args:
            observation: (n, 17 + numbers).
            memory: (n, recurrent).
        """
        x = (np.asarray(observation, np.float32) - self._shift) / self._scale
        if not self.contract.recurrent:
            return network_output([*self._first, *self._last], x), memory
        if self._first:
            x = network_output(self._first, x)
        return recurrent_output(self._last, x, memory)


def read_navigation_policy(folder: str | Path) -> NavigationPolicy:
    """Return the policy of a folder that `airworthy train depth_navigation` or `lidar_navigation` wrote.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    return NavigationPolicy(*read_navigation_folder(folder))
