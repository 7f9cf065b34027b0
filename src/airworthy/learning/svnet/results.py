"""What a training leaves behind: weights with their contract, the journal, figures, a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.files import write_bytes, write_json
from airworthy.learning.svnet.data import TrainingData
from airworthy.learning.svnet.judging import history_figures, judged_commands
from airworthy.learning.svnet.options import SvNetOptions
from airworthy.learning.training_folder import FIGURES_FILE, JOURNAL_FILE, LAST_FILE, write_journal
from airworthy.pilots.svnet.contract import Contract, View, write_policy
from airworthy.pilots.svnet.features import HISTORY_TICKS
from airworthy.pilots.svnet.tensors import tensor_bytes

__all__ = [
    "FIGURES_FILE",
    "JOURNAL_FILE",
    "contract_of",
    "figures_of",
    "write_figures",
    "write_results",
]

Weights = Mapping[str, NDArray[np.float32]]


def contract_of(data: TrainingData, options: SvNetOptions, identity: Mapping[str, Any]) -> Contract:
    """What the numbers of the weights mean."""
    view = None
    if data.images is not None:
        fx, fy, cx, cy = (float(value) for value in data.images.intrinsics)
        view = View(data.images.side, data.images.side, fx, fy, cx, cy)
    return Contract(options.variant, view, history=options.form, training=dict(identity), data=data.digest)


def figures_of(
    data: TrainingData, commands: NDArray[np.float32], estimate: NDArray[np.float32] | None, notes: Mapping[str, Any]
) -> dict[str, Any]:
    """Figures of the finished weights on held-out pairs, in float32, all of one run and all of its data the same.

    Args:
        data: The pairs.
        commands: (held-out, 4) predicted.
        estimate: (held-out, 2) of the history network; None: there is none.
        notes: Of the run.
    """
    truth = data.command[data.held_out].astype(np.float64)
    spread = data.command[data.train].astype(np.float64)
    found: dict[str, Any] = {
        "pairs_trained_on": len(data.train),
        "pairs_held_out": len(data.held_out),
        "best_epoch": {name: item["epoch"] for name, item in notes["best"].items()},
        "skipped_minibatches": notes["skipped"],
        "command_mse": float(np.mean((commands - truth) ** 2)),
        "command_mse_of_mean": float(np.mean((spread.mean(axis=0) - truth) ** 2)),
        **judged_commands(data, commands),
        "by_course": {
            str(name): float(np.mean((commands[mine] - truth[mine]) ** 2))
            for name in np.unique(data.course)
            if (mine := data.course[data.held_out] == name).any()
        },
    }
    if estimate is not None:
        known = data.ticks[data.held_out] >= HISTORY_TICKS
        found["history"] = history_figures(data, estimate)
        found["history_full"] = history_figures(data, estimate, known)
    return found


def write_results(
    folder: Path,
    data: TrainingData,
    options: SvNetOptions,
    identity: Mapping[str, Any],
    chosen: Weights,
    last: Weights,
    notes: Mapping[str, Any],
) -> None:
    """The policy's folder: `weights.safetensors` and `contract.json`; the other weights and the journal beside them."""
    write_journal(folder, notes["journal"])
    write_bytes(folder / LAST_FILE, tensor_bytes(last, options.variant))
    write_policy(folder, contract_of(data, options, {**identity, "options": asdict(options)}), chosen)


def write_figures(folder: Path, figures: Mapping[str, Any]) -> Path:
    """`report.json`, last: where it lies, all is done."""
    return write_json(folder / FIGURES_FILE, figures)
