"""How good a network is on pairs it did not learn from. NumPy alone.

Mass and force of a rotor cannot be told from motion, only their ratio can (the acceleration at full command is four times
the force over the mass): so the history network is judged by the ratio of its two outputs as well, against who always says
the mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayFloat, ArrayLike
from airworthy.learning.svnet.data import TrainingData
from airworthy.pilots.svnet.features import HISTORY_TICKS

__all__ = ["command_metrics", "history_figures", "history_metrics", "ratio_of"]


def ratio_of(parameters: ArrayLike) -> Array:
    """Return the force of one rotor over mass (..., ) [N/kg] of (..., 2): mass, force."""
    given = np.asarray(parameters, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return given[..., 1] / given[..., 0]


def history_metrics(data: TrainingData, estimate: ArrayFloat) -> dict[str, float | None]:
    """Return the root mean square of the ratio's relative error, held out, where the history is full, and that of the mean
    predictor."""
    known = data.ticks[data.held_out] >= HISTORY_TICKS
    found = history_figures(data, estimate, known)
    return {"ratio_error": found["ratio_error"], "ratio_error_of_mean": found["ratio_error_of_mean"]}


def history_figures(data: TrainingData, estimate: ArrayFloat, which: ArrayBool | None = None) -> dict[str, Any]:
    """Return errors of estimates (held-out, 2) of mass and force, beside those of the mean of what was trained on.

    Args:
        data: The pairs.
        estimate: Of the held-out ones.
        which: (held-out,) pairs that count; None: all.
    """
    some = np.ones(len(data.held_out), bool) if which is None else which
    truth, predicted = data.parameters[data.held_out][some].astype(np.float64), np.asarray(estimate, np.float64)[some]
    mean = data.parameters[data.train].astype(np.float64).mean(axis=0)
    typical = ratio_of(data.parameters[data.train]).mean()
    ratio = ratio_of(truth)
    off, off_mean = ratio_of(predicted) / ratio - 1.0, typical / ratio - 1.0
    parts = {
        "ratio_error": _rms(off),
        "ratio_error_of_mean": _rms(off_mean),
        "ratio_bias": _number(np.mean(off)) if len(off) else None,
        "ratio_error_median": _number(np.median(np.abs(off))) if len(off) else None,
    }
    for index, name in enumerate(("mass_kg", "force_N")):
        parts |= {
            f"{name}_rms": _rms(predicted[:, index] - truth[:, index]),
            f"{name}_rms_of_mean": _rms(mean[index] - truth[:, index]),
        }
    return parts


def command_metrics(data: TrainingData, command: ArrayFloat) -> dict[str, Any]:
    """Return root mean square errors (4) of thrust share and body rates [rad/s], held out."""
    off = np.asarray(command, np.float64) - data.command[data.held_out]
    return {"command_rms": [_rms(off[:, k]) for k in range(off.shape[1])]}


def _rms(off: ArrayFloat) -> float | None:
    return _number(np.sqrt(np.mean(off**2))) if len(off) else None


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
