"""The network that says, of three gates, how fast to pass the middle one and how long to take to it. NumPy alone.

Eight numbers in, two out (spec/boundary_predictor.md, section 7). A row has the same bits whatever stands beside it: each is a
matrix-vector product of its own, over blocks that no library of linear algebra shares out among threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import check_fields
from airworthy.gates.planner.contract import FIELDS, SLOPES, WIDTHS, BoundaryContract

__all__ = ["SAFE_SIGNS", "Boundary", "Skew", "loss_minimum", "loss_of", "percent_error", "safe_error", "unsafe_percent"]

# ---- How far a prediction of speed and time is from its label, and on which side; NumPy alone -------------------------------
#
# Two quantities that must not be mixed up (spec/boundary_predictor.md, section 7). Labels and predictions are (..., 2): speed
# through the gate, time to it.
#
# * `safe_error` (eq. 8) is what is learnt by: positive is safe for both, too slow or too long.
# * `percent_error` is what is plotted: (predicted - label) / label. Safe is negative for the speed and positive for the time.

# Slower than the fastest speed and later than the least time are safe (eq. 8): the signs are opposite.
SAFE_SIGNS = (1.0, -1.0)
"""Of label - prediction, speed and time: with it safe is positive for both."""


@dataclass(frozen=True)
class Skew:
    """Numbers of the loss (eq. 8 and 9); defaults are the published ones.

    Raises:
        AirworthyError: If a number is out of range.
    """

    # Source: eq. 9 of the paper, (W_S, W_U, alpha) = (0.8, 2.0, 10); eq. 8, eps = 0.1.
    safe: float = 0.8
    """W_S, weight of safe errors."""
    unsafe: float = 2.0
    """W_U, weight of unsafe ones; equal to the other one, the loss is symmetric."""
    alpha: float = 10.0
    """Steepness of the change from one to the other."""
    eps: float = 0.1
    """Added to a label before it divides, of scaled outputs: 0.1 is 0.2 m/s and 0.2 s."""

    def __post_init__(self) -> None:
        check_fields(self, "Skew.")
        for name in ("safe", "unsafe", "alpha", "eps"):
            if not 0.0 < getattr(self, name) <= 1e6:
                raise AirworthyError(f"{name} is {getattr(self, name)}; expected above 0, up to 1,000,000.")


def safe_error(label: ArrayLike, predicted: ArrayLike, eps: float = 0.1) -> Array:
    """Return Eq. 8, (..., 2): (y - yh) / (y + eps) of the speed, its negative of the time; above zero is safe.

    Args:
        label: (..., 2) scaled to [0, 1].
        predicted: (..., 2) scaled alike.
        eps: See `Skew`.
    """
    y, prediction = np.asarray(label, np.float64), np.asarray(predicted, np.float64)
    return np.asarray(SAFE_SIGNS) * (y - prediction) / (y + eps)


def percent_error(label: ArrayLike, predicted: ArrayLike) -> Array:
    """Return 100 (yh - y) / y, (..., 2) [%], for plots; NaN where the label is zero: the paper leaves those out.

    Args:
        label: (..., 2) speed and time, scaled or not.
        predicted: (..., 2) alike.
    """
    y, prediction = np.asarray(label, np.float64), np.asarray(predicted, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(y == 0.0, np.nan, 100.0 * (prediction - y) / y)


def unsafe_percent(percent: ArrayLike) -> Array:
    """Return how far on the unsafe side, (..., 2) [%]: speeds too high and times too low are above zero."""
    return np.asarray(SAFE_SIGNS) * np.asarray(percent, np.float64)


def loss_of(error: ArrayLike, skew: Skew | None = None) -> Array:
    """Return Eq. 9 of each safe error, any shape: s W_S e - (1 - s) W_U e with s = 1 / (1 + exp(-alpha e))."""
    k, e = skew or Skew(), np.asarray(error, np.float64)
    # tanh, not exp: it does not overflow, and 1 - s loses no digits.
    half = 0.5 * np.tanh(0.5 * k.alpha * e)
    return ((0.5 + half) * k.safe - (0.5 - half) * k.unsafe) * e


def loss_minimum(skew: Skew | None = None) -> tuple[float, float, float]:
    """Return where the loss is least, what it is there, and where it is zero again.

    It is not at zero where the weights differ: the slope there is (W_S - W_U) / 2, so that the loss by itself asks for an error
    on the safe side, and may be negative. As published: 0.0443, -0.01306 and 0.0916.

    Returns:
        Safe error at the minimum, loss at the minimum, the other safe error of loss zero (both zero where W_S = W_U).
    """
    k = skew or Skew()
    # The loss divided by e is zero where s W_S = (1 - s) W_U.
    crossing = float(np.log(k.unsafe / k.safe) / k.alpha)
    low, high = min(0.0, crossing), max(0.0, crossing)
    # 200 halvings end where two neighbouring float64 are reached, whatever the weights.
    for _ in range(200):  # bisection on the slope, which rises between the two zeros
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _slope(middle, k) < 0.0 else (low, middle)
    return high, float(loss_of(high, k)), crossing


def _slope(e: float, k: Skew) -> float:
    half = 0.5 * float(np.tanh(0.5 * k.alpha * e))
    bell = 0.25 - half * half  # s (1 - s)
    return (0.5 + half) * k.safe - (0.5 - half) * k.unsafe + k.alpha * bell * (k.safe + k.unsafe) * e


# -----------------------------------------------------------------------------------------------------------------------------

ROUNDING = 1e-5
"""Share of a range by which a query may be outside of it without being counted: courses are kept with six digits."""
_BLOCK = 8192
"""Numbers of a matrix in one product; OpenBLAS shares out those of 9,216 or more among threads, which only costs."""
# Ours: the widest layer has 512 numbers, half a megabyte of float32 for so many rows.
_ROWS = 256
"""Queries at once, so that what lies between the layers stays in the cache."""


class Boundary:
    """A trained network, ready to be asked.

    Args:
        contract: What its numbers mean.
        weights: Tensors by the names of `contract.tensor_shapes`.
    """

    def __init__(self, contract: BoundaryContract, weights: Mapping[str, ArrayF32]):
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
        """Read a boundary from a folder that `airworthy train boundary` wrote, or by the name of a network that comes with the
        package.

        Raises:
            AssetError: There is none, or it is damaged.
        """
        from airworthy.gates.planner.contract import network_folder, read_network

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
        """Return the speed through the next gate [m/s] and time to it [s], (k, 2).

        Fields outside of their range are taken at its edge, and counted in `clamped` and `clamped_fields`.

        Args:
            situations: (k, 8), or (8,) for one, in the order of `contract.FIELDS` [m/s, m, rad].

        Raises:
            AirworthyError: The shape is another one, or a number is not finite.
        """
        share = self._shares(situations)
        self._count(share)
        # Clamped and counted instead of refused: the grid is not closed under its own outputs (spec/boundary_predictor section
        # 5).
        inputs = np.minimum(np.maximum(share, 0.0), 1.0).astype(np.float32)
        if len(inputs) <= _ROWS:
            return self._forward(inputs)
        return np.concatenate([self._forward(inputs[k : k + _ROWS]) for k in range(0, len(inputs), _ROWS)])

    def outside(self, situations: ArrayLike) -> Array:
        """Return how far each field is outside of its range, (k, 8) in its unit: below zero under it, above zero over it, else
        zero.

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

    def _forward(self, x: ArrayF32) -> Array:
        """(k, 8) scaled inputs -> (k, 2) physical."""
        y = x
        for (matrix, bias), slope in zip(self._layers, (*SLOPES, None), strict=True):
            # One product per query: a product over all of them would round by how many there are.
            y = np.matmul(matrix, y[:, None, :, None]).reshape(len(x), len(bias))
            y += bias
            if slope is not None:
                np.maximum(y, y * np.float32(slope), out=y)
        # Of the half angle: it does not overflow.
        return (0.5 + 0.5 * np.tanh(0.5 * y.astype(np.float64))) * self._scale


def _blocks(matrix: ArrayF32) -> ArrayF32:
    """(m, n) -> (b, m / b, n) with b a power of two, as few as keep each block small."""
    rows, columns = matrix.shape
    count = 1
    while rows * columns > count * _BLOCK and rows % (2 * count) == 0:
        count *= 2
    return np.ascontiguousarray(matrix, np.float32).reshape(count, rows // count, columns)
