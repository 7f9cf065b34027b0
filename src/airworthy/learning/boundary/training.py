"""Training of the boundary network from labels, stopped and gone on with at any time."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from airworthy.core.files import lock_folder
from airworthy.evaluation.folder_kinds import refuse_foreign
from airworthy.learning.boundary.data import rows_of
from airworthy.learning.boundary.options import BoundaryOptions, BoundaryRunOptions
from airworthy.learning.boundary.outcome import TrainedBoundary
from airworthy.learning.boundary.results import write_results
from airworthy.learning.boundary.run import BoundaryRun
from airworthy.learning.boundary.table import LabelTable
from airworthy.learning.machine import computing, machine_for
from airworthy.learning.training_folder import IDENTITY_FILE, Named, TrainingFolder, say, write_journal
from airworthy.pilots.boundary.weights import CONTRACT_FILE, read_network

__all__ = ["train"]

SCHEMA_VERSION = 1
KIND = "boundary"
_NAMED = Named("a network", "its labels were others", "its version was another", "epoch")


def train(
    labels: LabelTable,
    out: str | Path,
    options: BoundaryOptions,
    run: BoundaryRunOptions,
    command: str = "",
    quiet: bool = False,
) -> TrainedBoundary:
    """See `airworthy.learning.boundary.train_boundary`."""
    refuse_foreign(out, IDENTITY_FILE, CONTRACT_FILE)
    rows = rows_of(labels, options)
    identity = {"schema_version": SCHEMA_VERSION, "network": KIND, "options": asdict(options), "data": labels.digest}
    with lock_folder(out) as where:
        folder = TrainingFolder(where, identity, options, _NAMED, quiet)
        if folder.done:
            return folder.outcome(read_network, TrainedBoundary.of)
        machine = machine_for(run, before=folder.machine)
        with computing(machine) as device:
            # First of all: what cannot begin must not hold the folder for options that never worked.
            work = BoundaryRun(rows, options, device)
            if folder.begin(work, machine):
                say(quiet, f"Going on after epoch {work.epoch:,} of at most {options.epochs:,}.")
            if not _learnt(work, folder, run, quiet):
                return TrainedBoundary(where, finished=False, epochs=work.epoch)
            figures = write_results(where, labels, rows, work, folder.about, command)
        folder.clear()
        return TrainedBoundary.of(where, figures)


def _learnt(work: BoundaryRun, folder: TrainingFolder, run: BoundaryRunOptions, quiet: bool) -> bool:
    """Learn what is left; False: it is not finished, as was asked."""

    def saved() -> None:
        write_journal(folder.folder, work.notes["journal"])
        _tell(work, quiet)

    return folder.learn(work, work.epochs, work.options.epochs - work.epoch, run, saved=saved)


def _tell(work: BoundaryRun, quiet: bool) -> None:
    if not work.notes["journal"]:
        return
    row = work.notes["journal"][-1]
    speed = work.notes["rows"] / max(work.notes["seconds"], 1e-9)
    best = f"least {work.notes['best_loss']:.5f} in epoch {work.notes['best_epoch']}"
    loss = f"loss {row['train_loss']:.5f}, held out {row['held_out_loss']:.5f} ({best})"
    say(quiet, f"Epoch {work.epoch:,}: {loss}, {speed:,.0f} rows/s")
