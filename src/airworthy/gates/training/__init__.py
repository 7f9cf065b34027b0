"""The boundary network's training from labels of the search. torch is loaded when training begins."""

from __future__ import annotations

from pathlib import Path

from airworthy.core.idle_options import refuse_idle
from airworthy.gates.training.data import LabelTable, read_labels
from airworthy.gates.training.options import IDLE_RULES, BoundaryOptions, BoundaryRunOptions, TrainedBoundary

__all__ = ["BoundaryOptions", "BoundaryRunOptions", "LabelTable", "TrainedBoundary", "read_labels", "train_boundary"]


def train_boundary(
    labels: LabelTable,
    out: str | Path,
    options: BoundaryOptions | None = None,
    run: BoundaryRunOptions | None = None,
    command: str = "",
    quiet: bool = False,
) -> TrainedBoundary:
    """Train a network, or go on with a training that was stopped.

    On a CPU the same labels, options, threads and version of torch give the same bytes, however often the run was stopped, also
    by kill -9. On SIGINT and SIGTERM everything up to the last whole epoch is saved before the process ends.

    Args:
        labels: From `read_labels`.
        out: Folder of one training, for `weights.safetensors`, `contract.json`, `report.html`, `training.jsonl` and, until it
            is finished, `checkpoints`.
        options: What is learnt, and how; None: as published.
        run: Where, and for how long.
        command: That makes it again, for the report.
        quiet: Show no progress.

    Raises:
        AirworthyError: An option changes nothing, there is nothing to train on, the folder holds another training or is in
            use, there is no such device, or numbers became infinite.
        ModuleNotFoundError: torch is not installed; the extra 'learn' brings it.
    """
    options = options or BoundaryOptions()
    refuse_idle(options, IDLE_RULES)
    # Behind the checks: what is refused is told without torch, too.
    from airworthy.gates.training.training import train

    return train(labels, out, options, run or BoundaryRunOptions(), command, quiet)
