"""The network that says, of three gates, how fast to pass the middle one and how long to take to it. NumPy alone.

Eight numbers in, two out (spec/boundary_predictor.md, section 7). A row has the same bits whatever stands beside it: each is a
matrix-vector product of its own, over blocks that no library of linear algebra shares out among threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.pilots.boundary.contract import FIELDS, SLOPES, WIDTHS, Contract

__all__ = ["Boundary"]

Array = NDArray[np.float64]
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
ROUNDING = 1e-5
"""Share of a range by which a query may be outside of it without being counted: courses are kept with six digits."""
_BLOCK = 8192
"""Numbers of a matrix in one product; OpenBLAS shares out those of 9,216 or more among threads, which only costs."""
_ROWS = 256
"""Queries at once, so that what lies between the layers stays in the cache."""


class Boundary:
    """A trained network, ready to be asked.

    Args:
        contract: What its numbers mean.
        weights: Tensors by the names of `contract.tensor_shapes`.
    """

    def __init__(self, contract: Contract, weights: Mapping[str, Floats]):
        self.contract = contract
        ranges = np.asarray(contract.ranges, np.float64)
        self._low, self._span = ranges[:, 0], ranges[:, 1] - ranges[:, 0]
        self._scale = np.asarray(contract.scales, np.float64)
        self._layers = [
            (_blocks(weights[f"layers.{k}.weight"]), np.asarray(weights[f"layers.{k}.bias"], np.float32))
            for k in range(len(WIDTHS) - 1)
        ]
        self.reset_counts()

    @classmethod
    def read(cls, where: str | Path) -> Boundary:
        """From a folder that `airworthy train boundary` wrote, or by the name of a network that comes with the package.

        Raises:
            AssetError: There is none, or it is damaged.
        """
        from airworthy.pilots.boundary.weights import network_folder, read_network

        return cls(*read_network(network_folder(where)))

    @property
    def ranges(self) -> Array:
        """Lowest and highest value of each field that it has learnt from, (8, 2)."""
        return np.asarray(self.contract.ranges, np.float64)

    def reset_counts(self) -> None:
        """Begin to count anew."""
        self.queries = 0
        """Rows asked for."""
        self.clamped = 0
        """Rows of which a field was outside of its range and was taken at its edge."""
        self.clamped_fields: dict[str, int] = dict.fromkeys(FIELDS, 0)
        """The same by field."""

    def predict(self, situations: ArrayLike) -> Array:
        """Speed through the next gate [m/s] and time to it [s], (k, 2).

        Fields outside of their range are taken at its edge, and counted in `clamped` and `clamped_fields`.

        Args:
            situations: (k, 8), or (8,) for one, in the order of `contract.FIELDS` [m/s, m, rad].

        Raises:
            AirworthyError: The shape is another one, or a number is not finite.
        """
        share = self._shares(situations)
        self._count(share)
        inputs = np.minimum(np.maximum(share, 0.0), 1.0).astype(np.float32)
        if len(inputs) <= _ROWS:
            return self._forward(inputs)
        return np.concatenate([self._forward(inputs[k : k + _ROWS]) for k in range(0, len(inputs), _ROWS)])

    def outside(self, situations: ArrayLike) -> Array:
        """How far each field is outside of its range, (k, 8) in its unit: below zero under it, above zero over it, else zero.

        Raises:
            AirworthyError: As `predict`.
        """
        share = self._shares(situations)
        beyond = share - np.clip(share, 0.0, 1.0)
        return np.where(np.abs(beyond) > ROUNDING, beyond, 0.0) * self._span

    def _shares(self, situations: ArrayLike) -> Array:
        """Of the ranges, (k, 8)."""
        rows = np.asarray(situations, np.float64)
        rows = rows[None] if rows.ndim == 1 else rows
        if rows.ndim != 2 or rows.shape[1] != len(FIELDS):
            raise AirworthyError(f"The network was asked about an array of shape {rows.shape}; expected (k, {len(FIELDS)}).")
        share = (rows - self._low) / self._span
        if not np.isfinite(share).all():
            raise AirworthyError("The network was asked about a situation with a number that is not finite.")
        return share

    def _count(self, share: Array) -> None:
        beyond = (share < -ROUNDING) | (share > 1.0 + ROUNDING)
        self.queries += len(share)
        if beyond.any():
            self.clamped += int(np.count_nonzero(beyond.any(axis=1)))
            for name, count in zip(FIELDS, np.count_nonzero(beyond, axis=0), strict=True):
                self.clamped_fields[name] += int(count)

    def _forward(self, x: Floats) -> Array:
        """(k, 8) scaled inputs -> (k, 2) physical."""
        y = x
        for (matrix, bias), slope in zip(self._layers, (*SLOPES, None), strict=True):
            y = np.matmul(matrix, y[:, None, :, None]).reshape(len(x), len(bias))
            y += bias
            if slope is not None:
                np.maximum(y, y * np.float32(slope), out=y)
        # Of the half angle: it does not overflow.
        return (0.5 + 0.5 * np.tanh(0.5 * y.astype(np.float64))) * self._scale


def _blocks(matrix: Floats) -> Floats:
    """(m, n) -> (b, m / b, n) with b a power of two, as few as keep each block small."""
    rows, columns = matrix.shape
    count = 1
    while rows * columns > count * _BLOCK and rows % (2 * count) == 0:
        count *= 2
    return np.ascontiguousarray(matrix, np.float32).reshape(count, rows // count, columns)
