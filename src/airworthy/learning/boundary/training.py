"""Training of the boundary network from labels, stopped and gone on with at any time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from airworthy.core.checkpoints import Checkpoints
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import lock_folder, read_json, write_json
from airworthy.core.progress import progress
from airworthy.core.stopping import stoppable
from airworthy.evaluation.folder_kinds import refuse_foreign
from airworthy.learning.boundary.data import rows_of
from airworthy.learning.boundary.options import BoundaryOptions, BoundaryRunOptions
from airworthy.learning.boundary.outcome import TrainedBoundary
from airworthy.learning.boundary.results import FIGURES_FILE, write_journal, write_results
from airworthy.learning.boundary.run import BoundaryRun
from airworthy.learning.boundary.table import LabelTable
from airworthy.learning.svnet import RunOptions, SvNetOptions
from airworthy.learning.svnet.machine import Machine, computing, machine_for
from airworthy.pilots.boundary.weights import CONTRACT_FILE, read_network

__all__ = ["train"]

IDENTITY_FILE, CHECKPOINTS = "training.json", "checkpoints"
SCHEMA_VERSION = 1
KIND = "boundary"
_AGAIN = "This training was finished and is not whole any more: delete its folder, and the same command learns again."


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
    with lock_folder(out) as folder:
        before = _known(folder, options, identity)
        if os.path.lexists(folder / FIGURES_FILE):
            return _finished(folder)
        machine = _machine(run, before)
        with computing(machine) as device:
            # First of all: what cannot begin must not hold the folder for options that never worked.
            work = BoundaryRun(rows, options, device)
            _announce(folder, before, identity, machine, quiet)
            kept = Checkpoints(folder / CHECKPOINTS, "epoch")
            saved = kept.newest()
            if saved is not None:
                work.restore(saved)
                _say(quiet, f"Going on after epoch {work.epoch:,} of at most {options.epochs:,}.")
            about = {"machine": asdict(machine), **identity}
            if not _learnt(work, folder, kept, about, run, quiet):
                return TrainedBoundary(folder, finished=False, epochs=work.epoch)
            figures = write_results(folder, labels, rows, work, about, command)
        kept.clear()
        return TrainedBoundary.of(folder, figures)


def _machine(run: BoundaryRunOptions, before: Mapping[str, Any] | None) -> Machine:
    held = before.get("machine") if before else None
    told = RunOptions(device=run.device, threads=run.threads)
    return machine_for(told, SvNetOptions(precision="float32"), held if isinstance(held, dict) else None)


def _finished(folder: Path) -> TrainedBoundary:
    """What a training left that was finished before.

    Raises:
        AssetError: It is not whole any more.
    """
    try:
        read_network(folder)
        return TrainedBoundary.of(folder, read_json(folder / FIGURES_FILE))
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{str(folder / FIGURES_FILE)!r} does not hold the figures of a training."
        raise AssetError(f"{reason} {_AGAIN}") from error
    except AssetError as error:
        raise AssetError(f"{error} {_AGAIN}") from error


def _known(folder: Path, options: BoundaryOptions, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """How this training began before; None: it did not. Refuses a folder of another."""
    path = folder / IDENTITY_FILE
    if not path.is_file():
        if any((folder / name).exists() for name in (CHECKPOINTS, FIGURES_FILE, CONTRACT_FILE)):
            raise AirworthyError(f"{str(folder)!r} holds a network but no {IDENTITY_FILE}: choose another folder.")
        return None
    before = read_json(path)
    if not isinstance(before, dict) or not isinstance(before.get("options"), dict):
        raise AirworthyError(f"{str(path)!r} does not describe a training: choose another folder.")
    if before.get("network") != KIND:
        raise AirworthyError(f"{str(folder)!r} holds the training of another network: choose another folder.")
    changed = options.differences(before["options"])
    if before.get("data") != identity["data"]:
        changed.append("its labels were others")
    if not changed and any(before.get(key) != value for key, value in identity.items()):
        changed.append("its version was another")
    if changed:
        what = "; ".join(changed)
        raise AirworthyError(f"{str(folder)!r} holds another training ({what}): choose another folder, or ask for the same.")
    return before


def _announce(
    folder: Path, before: Mapping[str, Any] | None, identity: Mapping[str, Any], machine: Machine, quiet: bool
) -> None:
    if before is None:
        write_json(folder / IDENTITY_FILE, {**identity, "machine": asdict(machine)})
        return
    changed = machine.differences(before.get("machine") or {})
    if changed:
        _say(quiet, f"It began on another machine ({'; '.join(changed)}): it goes on, but its bits are not those of one run.")


def _learnt(
    work: BoundaryRun, folder: Path, kept: Checkpoints, about: Mapping[str, Any], run: BoundaryRunOptions, quiet: bool
) -> bool:
    """Learn what is left, saving now and then, and when asked to stop; False: it is not finished, as was asked."""
    begun = saved = time.monotonic()
    with stoppable() as stopped:
        for done in progress(_epochs(work, stopped), "Training", work.options.epochs - work.epoch, quiet=quiet):
            now = time.monotonic()
            late = bool(run.minutes) and now - begun > 60.0 * run.minutes
            # At the end, too: whoever stops it while the report is made has learnt everything.
            if work.finished or not done or stopped() or late or now - saved > 60.0 * run.checkpoint_minutes:
                kept.save(work.save(), about)
                write_journal(folder, work.notes["journal"])
                _tell(work, quiet)
                saved = now
            if not done or stopped() or (late and not work.finished):
                break
    return work.finished


def _epochs(work: BoundaryRun, stopped: Any) -> Iterator[bool]:
    while not work.finished:
        yield work.learn(stopped)


def _tell(work: BoundaryRun, quiet: bool) -> None:
    if not work.notes["journal"]:
        return
    row = work.notes["journal"][-1]
    speed = work.notes["rows"] / max(work.notes["seconds"], 1e-9)
    best = f"least {work.notes['best_loss']:.5f} in epoch {work.notes['best_epoch']}"
    loss = f"loss {row['train_loss']:.5f}, held out {row['held_out_loss']:.5f} ({best})"
    _say(quiet, f"Epoch {work.epoch:,}: {loss}, {speed:,.0f} rows/s")


def _say(quiet: bool, text: str) -> None:
    if not quiet:
        print(text, file=sys.stderr, flush=True)
