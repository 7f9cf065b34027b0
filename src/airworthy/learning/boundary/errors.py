"""Errors and loss (eq. 8 and 9): those of `airworthy.pilots.boundary.errors`, and the loss in torch."""

from __future__ import annotations

from typing import Any

from airworthy.pilots.boundary.errors import (
    SAFE_SIGNS,
    Skew,
    loss_minimum,
    loss_of,
    percent_error,
    safe_error,
    unsafe_percent,
)

__all__ = [
    "SAFE_SIGNS",
    "Skew",
    "loss_minimum",
    "loss_of",
    "percent_error",
    "safe_error",
    "torch_loss",
    "unsafe_percent",
]


def torch_loss(label: Any, predicted: Any, signs: Any, skew: Skew) -> Any:
    """Mean of eq. 9 over items and both outputs, a tensor; may be negative.

    Args:
        label: Tensor (n, 2), scaled.
        predicted: Tensor (n, 2), scaled.
        signs: Tensor (2,) of `SAFE_SIGNS`.
        skew: Numbers of the loss.
    """
    error = signs * (label - predicted) / (label + skew.eps)
    share = (skew.alpha * error).sigmoid()
    return ((share * (skew.safe + skew.unsafe) - skew.unsafe) * error).mean()
