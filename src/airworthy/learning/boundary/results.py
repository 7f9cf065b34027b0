"""What a training leaves behind: weights with their contract, the journal, figures, a report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.files import write_bytes, write_json
from airworthy.learning.boundary.data import Part, Rows
from airworthy.learning.boundary.errors import Skew, loss_minimum
from airworthy.learning.boundary.judging import clipped, judged, kept_limit
from airworthy.learning.boundary.report import write_training_report
from airworthy.learning.boundary.run import BoundaryRun
from airworthy.learning.boundary.table import LabelTable
from airworthy.learning.training_folder import FIGURES_FILE, LAST_FILE, write_journal
from airworthy.pilots.boundary.contract import Contract
from airworthy.pilots.boundary.network import Boundary
from airworthy.pilots.boundary.weights import tensor_bytes, write_network

__all__ = ["judged_part", "write_results"]

Weights = Mapping[str, NDArray[np.float32]]
_TRAIN_JUDGED = 20_000
"""Of the rows that were learnt from, at most, evenly chosen."""


def write_results(
    folder: Path, table: LabelTable, rows: Rows, work: BoundaryRun, about: Mapping[str, Any], command: str
) -> dict[str, Any]:
    """Judge the finished network and write its folder; `report.json` last: where it lies, all is done. Returns its content."""
    chosen = work.weights(work.options.keep)
    contract = _contract(table, rows, about)
    network = Boundary(contract, chosen)
    found = {
        name: judged_part(network, part, rows.scales, table.limit, work.options.skew, table.thrust)
        for name, part in _parts(rows).items()
    }
    at, value, crossing = loss_minimum(work.options.skew)
    seconds = work.notes["seconds"]
    figures = {
        "epochs": work.epoch,
        "best_epoch": work.notes["best_epoch"],
        "best_loss": work.notes["best_loss"],
        "loss_minimum": {"e": at, "value": value, "crossing": crossing},
        "rows": dict(rows.counts),
        "errors": found,
        "seconds": round(seconds, 1),
        "rows_per_second": round(work.notes["rows"] / max(seconds, 1e-9), 1),
        "command": command,
        **about,
    }
    write_journal(folder, work.notes["journal"])
    write_bytes(folder / LAST_FILE, tensor_bytes(work.weights("last")))
    write_network(folder, contract, chosen)
    test = rows.parts["test"]
    labels = clipped(test.labels, rows.scales)
    write_training_report(folder, figures, work.notes["journal"], labels, network.predict(test.situations))
    write_json(folder / FIGURES_FILE, figures)
    return figures


def judged_part(
    network: Boundary,
    part: Part,
    scales: tuple[float, float],
    limit: tuple[float, float] | None,
    skew: Skew,
    thrust: float | None = None,
) -> dict[str, Any]:
    """Errors of a network on labelled situations, and how many of its pairs keep the limit on both segments.

    Args:
        network: To be judged.
        part: Situations and labels, of a grid or off it.
        scales: Speed and time at which its outputs end.
        limit: Of the search; None: not known, or none.
        skew: Numbers of the loss.
        thrust: Most thrust over mass of the search [m/s^2]; None: none. Without both nothing is judged.
    """
    predicted = network.predict(part.situations)
    found = judged(part.labels, predicted, scales, skew)
    if limit is not None or thrust is not None:
        found["keep_limit"] = float(kept_limit(part.situations, predicted, limit or (np.inf, 0.0), thrust).mean())
    return found


def _parts(rows: Rows) -> dict[str, Part]:
    """Watched and tested rows, and some of those that were learnt from."""
    train = rows.parts["train"]
    some = np.unique(np.linspace(0, len(train.labels) - 1, min(len(train.labels), _TRAIN_JUDGED)).astype(int))
    return {**rows.parts, "train": Part(train.situations[some], train.labels[some])}


def _contract(table: LabelTable, rows: Rows, about: Mapping[str, Any]) -> Contract:
    ranges = tuple((float(low), float(high)) for low, high in table.ranges)
    training = {**about, "search": dict(table.about), "rows": dict(rows.counts)}
    return Contract(ranges, rows.scales, table.heading, training, table.digest)
