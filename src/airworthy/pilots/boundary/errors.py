"""How far a prediction of speed and time is from its label, and on which side; NumPy alone.

Two quantities that must not be mixed up (spec/boundary_predictor.md, section 7). Labels and predictions are (..., 2): speed
through the gate, time to it.

* `safe_error` (eq. 8) is what is learnt by: positive is safe for both, too slow or too long.
* `percent_error` is what is plotted: (predicted - label) / label. Safe is negative for the speed and positive for the time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError

__all__ = ["SAFE_SIGNS", "Skew", "loss_minimum", "loss_of", "percent_error", "safe_error", "unsafe_percent"]

Array = NDArray[np.float64]
SAFE_SIGNS = (1.0, -1.0)
"""Of label - prediction, speed and time: with it safe is positive for both."""


@dataclass(frozen=True)
class Skew:
    """Numbers of the loss (eq. 8 and 9); defaults are the published ones.

    Raises:
        AirworthyError: If a number is out of range.
    """

    safe: float = 0.8
    """W_S, weight of safe errors."""
    unsafe: float = 2.0
    """W_U, weight of unsafe ones; equal to the other one, the loss is symmetric."""
    alpha: float = 10.0
    """Steepness of the change from one to the other."""
    eps: float = 0.1
    """Added to a label before it divides, of scaled outputs: 0.1 is 0.2 m/s and 0.2 s."""

    def __post_init__(self) -> None:
        for name in ("safe", "unsafe", "alpha", "eps"):
            if not 0.0 < getattr(self, name) <= 1e6:
                raise AirworthyError(f"The loss has {name} {getattr(self, name)}; expected above 0, up to 1,000,000.")


def safe_error(label: ArrayLike, predicted: ArrayLike, eps: float = 0.1) -> Array:
    """Eq. 8, (..., 2): (y - yh) / (y + eps) of the speed, its negative of the time; above zero is safe.

    Args:
        label: (..., 2) scaled to [0, 1].
        predicted: (..., 2) scaled alike.
        eps: See `Skew`.
    """
    y, told = np.asarray(label, np.float64), np.asarray(predicted, np.float64)
    return np.asarray(SAFE_SIGNS) * (y - told) / (y + eps)


def percent_error(label: ArrayLike, predicted: ArrayLike) -> Array:
    """100 (yh - y) / y, (..., 2) [%], for plots; NaN where the label is zero: the paper leaves those out.

    Args:
        label: (..., 2) speed and time, scaled or not.
        predicted: (..., 2) alike.
    """
    y, told = np.asarray(label, np.float64), np.asarray(predicted, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(y == 0.0, np.nan, 100.0 * (told - y) / y)


def unsafe_percent(percent: ArrayLike) -> Array:
    """How far on the unsafe side, (..., 2) [%]: speeds too high and times too low are above zero."""
    return np.asarray(SAFE_SIGNS) * np.asarray(percent, np.float64)


def loss_of(error: ArrayLike, skew: Skew | None = None) -> Array:
    """Eq. 9 of each safe error, any shape: s W_S e - (1 - s) W_U e with s = 1 / (1 + exp(-alpha e))."""
    k, e = skew or Skew(), np.asarray(error, np.float64)
    # tanh, not exp: it does not overflow, and 1 - s loses no digits.
    half = 0.5 * np.tanh(0.5 * k.alpha * e)
    return ((0.5 + half) * k.safe - (0.5 - half) * k.unsafe) * e


def loss_minimum(skew: Skew | None = None) -> tuple[float, float, float]:
    """Where the loss is least, what it is there, and where it is zero again.

    It is not at zero where the weights differ: the slope there is (W_S - W_U) / 2, so that the loss by itself asks for an error
    on the safe side, and may be negative. As published: 0.0443, -0.01306 and 0.0916.

    Returns:
        Safe error at the minimum, loss at the minimum, the other safe error of loss zero (both zero where W_S = W_U).
    """
    k = skew or Skew()
    # The loss divided by e is zero where s W_S = (1 - s) W_U.
    crossing = float(np.log(k.unsafe / k.safe) / k.alpha)
    low, high = min(0.0, crossing), max(0.0, crossing)
    for _ in range(200):  # bisection on the slope, which rises between the two zeros
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _slope(middle, k) < 0.0 else (low, middle)
    return high, float(loss_of(high, k)), crossing


def _slope(e: float, k: Skew) -> float:
    half = 0.5 * float(np.tanh(0.5 * k.alpha * e))
    bell = 0.25 - half * half  # s (1 - s)
    return (0.5 + half) * k.safe - (0.5 - half) * k.unsafe + k.alpha * bell * (k.safe + k.unsafe) * e
