"""How good predictions are, and on which side they err. NumPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayLike
from airworthy.gates.planner.network import SAFE_SIGNS, Skew, loss_minimum, loss_of, percent_error, safe_error, unsafe_percent

__all__ = [
    "OUTPUTS",
    "SAFE_SIGNS",
    "Skew",
    "clipped",
    "kept_limit",
    "loss_minimum",
    "loss_of",
    "metrics_of",
    "percent_error",
    "safe_error",
    "torch_loss",
    "unsafe_percent",
]

# ---- Errors and loss (eq. 8 and 9): those of `airworthy.gates.planner.network`, and the loss in torch ------------------------


def torch_loss(label: Any, predicted: Any, signs: Any, skew: Skew) -> Any:
    """Return the mean of eq. 9 over items and both outputs, a tensor; may be negative.

    Args:
        label: Tensor (n, 2), scaled.
        predicted: Tensor (n, 2), scaled.
        signs: Tensor (2,) of `SAFE_SIGNS`.
        skew: Numbers of the loss.
    """
    error = signs * (label - predicted) / (label + skew.eps)
    share = (skew.alpha * error).sigmoid()
    return ((share * (skew.safe + skew.unsafe) - skew.unsafe) * error).mean()


# -----------------------------------------------------------------------------------------------------------------------------

OUTPUTS = ("v", "t0")
# Ours: the tails are what plans fail by, so that they are asked for as finely as the middle.
_QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
# Source: spec/boundary_predictor section 13: shares beyond 5 % and 10 %.
BEYOND = (0.0, 5.0, 10.0)
"""Percent on the unsafe side, whose shares are counted."""


def clipped(labels: ArrayLike, scales: tuple[float, float]) -> Array:
    """Return labels (n, 2) with times at most where the output ends."""
    return np.minimum(np.asarray(labels, np.float64), scales)


def metrics_of(
    labels: ArrayLike, predicted: ArrayLike, scales: tuple[float, float], skew: Skew | None = None
) -> dict[str, Any]:
    """Return errors by output, shares on the unsafe side, and the loss.

    Args:
        labels: (n, 2) speed [m/s] and time [s]; times are clipped here.
        predicted: (n, 2) alike.
        scales: Speed and time at which the outputs end.
        skew: Numbers of the loss.

    Returns:
        "rows", "loss", a table for "v" and for "t0", and "either_beyond": shares of rows of which one output or the other is
        unsafe by more than so many percent. Rows with a label of zero count in no percentage, and are counted.
    """
    k = skew or Skew()
    # Labels beyond what the output can say are clipped first, or every long time would count as an unsafe error.
    y, predictions = clipped(labels, scales), np.asarray(predicted, np.float64)
    percent = percent_error(y, predictions)
    unsafe = unsafe_percent(percent)
    found: dict[str, Any] = {
        "rows": len(y),
        "loss": float(loss_of(safe_error(y / scales, predictions / scales, k.eps), k).mean()),
    }
    for column, name in enumerate(OUTPUTS):
        found[name] = _of_output(y[:, column], predictions[:, column], percent[:, column], unsafe[:, column])
    # Labels of zero have no percentage: -inf lets the other output decide.
    known = np.where(np.isfinite(unsafe), unsafe, -np.inf)
    found["either_beyond"] = {f"{share:g}": float((known > share).any(axis=1).mean()) for share in BEYOND}
    return found


def _of_output(label: Array, predictions: Array, percent: Array, unsafe: Array) -> dict[str, Any]:
    some = np.isfinite(percent)
    zero = label == 0.0
    off = predictions - label
    table: dict[str, Any] = {
        "rms": float(np.sqrt(np.mean(off**2))),
        "mean": float(off.mean()),
        "zero_labels": int(zero.sum()),
        "median_at_zero_labels": float(np.median(predictions[zero])) if zero.any() else None,
    }
    if not some.any():
        return table | {"percent_mean": None, "percent_quantiles": {}, "skewness": None, "unsafe_beyond": {}}
    values = percent[some]
    table |= {
        "percent_mean": float(values.mean()),
        "percent_quantiles": {f"{q:g}": float(np.quantile(values, q)) for q in _QUANTILES},
        "skewness": _skewness(values),
        "unsafe_beyond": {f"{share:g}": float((unsafe[some] > share).mean()) for share in BEYOND},
    }
    return table


def _skewness(values: Array) -> float | None:
    """Third standardised moment; above zero the long tail is on the right."""
    spread = values.std()
    return float(np.mean(((values - values.mean()) / spread) ** 3)) if spread > 0.0 else None


def kept_limit(situations: ArrayLike, pairs: ArrayLike, limit: tuple[float, float], thrust: float | None = None) -> ArrayBool:
    """Tell whether both segments of each situation keep the acceleration limit (eq. 3) with a speed and a time, (n,).

    The joint test of the two numbers: at a fixed distance a lower speed in an unchanged time can need more acceleration.

    Args:
        situations: (n, 8)
        pairs: (n, 2) speed [m/s] and time [s].
        limit: a0 [m/s^2] and k [s^2/m^2].
        thrust: Most thrust over mass [m/s^2]; None: no bound.
    """
    from airworthy.gates.labels.candidates import segment_admissible
    from airworthy.gates.labels.options import Choices

    e, (v, t0) = np.asarray(situations, np.float64), np.asarray(pairs, np.float64).T
    choices = Choices(limit=limit, thrust=thrust)
    still = v < 1e-10
    tf = 2.0 * e[:, 5] / np.where(still, 1.0, v)
    good: ArrayBool = segment_admissible(*_leg(e[:, 2], e[:, 3], e[:, 4] - e[:, 1], e[:, 0], v), t0, choices)
    return good & segment_admissible(*_leg(e[:, 5], e[:, 6], e[:, 7] - e[:, 4], v, np.zeros_like(v)), tf, choices)


def _leg(distance: Array, turn: Array, rise: Array, begin: Array, end: Array) -> tuple[Array, Array, Array]:
    """Return a leg (n, 3) in the frame of the gate it leaves, and the horizontal velocities (n, 2) at its ends; mirrored
    alike.
    """
    out = np.stack((np.cos(turn), np.sin(turn)), axis=-1)
    leg = np.concatenate((distance[:, None] * out, rise[:, None]), axis=-1)
    return leg, np.stack((begin, np.zeros_like(begin)), axis=-1), end[:, None] * out
