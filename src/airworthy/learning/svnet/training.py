"""Training of SV-Net from expert roll-outs, stopped and gone on with at any time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from airworthy.core.checkpoints import Checkpoints
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import lock_folder, read_json, write_json
from airworthy.core.progress import progress
from airworthy.core.stopping import stoppable
from airworthy.evaluation.folder_kinds import refuse_foreign
from airworthy.learning.svnet.beginning import beginning_digests
from airworthy.learning.svnet.curves import Curves
from airworthy.learning.svnet.data import ExpertPairs, TrainingData, training_data
from airworthy.learning.svnet.machine import Machine, computing, machine_for
from airworthy.learning.svnet.options import RunOptions, SvNetOptions
from airworthy.learning.svnet.outcome import TrainedSvNet
from airworthy.learning.svnet.report import write_training_report
from airworthy.learning.svnet.results import FIGURES_FILE, figures_of, write_figures, write_journal, write_results
from airworthy.learning.svnet.run import SvNetRun
from airworthy.learning.svnet.stages import CommandStage, stage_names
from airworthy.pilots.svnet.contract import CONTRACT_FILE, read_policy
from airworthy.pilots.svnet.variants import variant

__all__ = ["train"]

IDENTITY_FILE, CHECKPOINTS, CURVES = "training.json", "checkpoints", "tensorboard"
SCHEMA_VERSION = 1
_AGAIN = "This training was finished and is not whole any more: delete its folder, and the same command learns again."


def train(
    pairs: ExpertPairs, out: str | Path, options: SvNetOptions, run: RunOptions, command: str = "", quiet: bool = False
) -> TrainedSvNet:
    """See `airworthy.learning.svnet.train_svnet`."""
    refuse_foreign(out, IDENTITY_FILE, CONTRACT_FILE)
    data = training_data(pairs, variant(options.variant), options.form, options.view)
    identity = _identity(options, data)
    with lock_folder(out) as folder:
        before = _known(folder, options, identity)
        if os.path.lexists(folder / FIGURES_FILE):
            return _finished(folder)
        machine = machine_for(run, options, before.get("machine") if before else None)
        with computing(machine) as device:
            # First of all: what cannot begin must not hold the folder for options that never worked.
            work = SvNetRun(data, options, device, machine.precision, run.resident)
            _announce(folder, before, identity, machine, quiet)
            kept = Checkpoints(folder / CHECKPOINTS, "minibatch")
            saved = kept.newest()
            if saved is not None:
                work.restore(saved)
                _say(quiet, f"Going on after minibatch {work.number:,} of {work.total:,}.")
            about = {"machine": asdict(machine), **identity}
            if not _learnt(work, folder, kept, about, run, quiet):
                return TrainedSvNet(folder, options.variant, finished=False, minibatches=work.number, total=work.total)
            figures = _written(work, folder, about, command)
        kept.clear()
        return TrainedSvNet.of(folder, figures)


def _finished(folder: Path) -> TrainedSvNet:
    """What a training left that was finished before.

    Raises:
        AssetError: It is not whole any more.
    """
    try:
        read_policy(folder)
        return TrainedSvNet.of(folder, read_json(folder / FIGURES_FILE))
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{str(folder / FIGURES_FILE)!r} does not hold the figures of a training."
        raise AssetError(f"{reason} {_AGAIN}") from error
    except AssetError as error:
        raise AssetError(f"{error} {_AGAIN}") from error


def _identity(options: SvNetOptions, data: TrainingData) -> dict[str, Any]:
    begun_with = beginning_digests(options)
    return {"schema_version": SCHEMA_VERSION, "options": asdict(options), "data": data.digest, **begun_with}


def _known(folder: Path, options: SvNetOptions, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """How this training began before; None: it did not. Refuses a folder of another."""
    path = folder / IDENTITY_FILE
    if not path.is_file():
        if any((folder / name).exists() for name in (CHECKPOINTS, FIGURES_FILE, CONTRACT_FILE)):
            raise AirworthyError(f"{str(folder)!r} holds a policy but no {IDENTITY_FILE}: choose another folder.")
        return None
    before = read_json(path)
    if not isinstance(before, dict) or not isinstance(before.get("options"), dict):
        raise AirworthyError(f"{str(path)!r} does not describe a training: choose another folder.")
    changed = options.differences(before["options"])
    if before.get("data") != identity["data"]:
        changed.append("its data were others")
    if not changed and any(before.get(key) != value for key, value in identity.items()):
        changed.append("the weights it began with, or its version, were others")
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


def _learnt(work: SvNetRun, folder: Path, kept: Checkpoints, about: Mapping[str, Any], run: RunOptions, quiet: bool) -> bool:
    """Learn what is left, saving now and then, and when asked to stop; False: it is not finished, as was asked."""
    begun = saved = time.monotonic()
    told = len(work.notes["journal"])
    with ExitStack() as stack:
        curves = stack.enter_context(Curves(folder / CURVES, work.notes["journal"])) if run.tensorboard else None
        stopped = stack.enter_context(stoppable())
        for _ in progress(work.minibatches(), "Training", work.total - work.number, quiet=quiet):
            now = time.monotonic()
            late = bool(run.minutes) and now - begun > 60.0 * run.minutes
            if len(work.notes["journal"]) > told:
                told = len(work.notes["journal"])
                _tell(work, folder, curves, quiet)
            # At the end, too: whoever stops it while the report is made has learnt everything.
            if work.finished or stopped() or late or now - saved > 60.0 * run.checkpoint_minutes:
                kept.save(work.save(), about)
                saved = now
                if stopped() or (late and not work.finished):
                    break
    return work.finished


def _tell(work: SvNetRun, folder: Path, curves: Curves | None, quiet: bool) -> None:
    journal = work.notes["journal"]
    write_journal(folder, journal)
    row = journal[-1]
    if curves is not None:
        curves.add(row)
    seconds, pairs = (work.notes[key].get(row["stage"], 0.0) for key in ("seconds", "pairs"))
    loss = " ".join(
        f"{name} {row[key]:.5g}" for name, key in (("loss", "train_loss"), ("held out", "held_out_loss")) if row.get(key)
    )
    more = f", ratio error {100.0 * row['ratio_error']:.2f} %" if row.get("ratio_error") is not None else ""
    _say(quiet, f"{row['stage']} epoch {row['epoch']}: {loss}{more}, {pairs / max(seconds, 1e-9):,.0f} pairs/s")


def _written(work: SvNetRun, folder: Path, about: Mapping[str, Any], command: str) -> dict[str, Any]:
    data, o = work.data, work.options
    chosen, last = work.weights(o.keep), work.weights("last")
    commands, estimate = _predicted(work, chosen)
    found = figures_of(data, commands, estimate, work.notes)
    speed = {name: round(work.notes["pairs"][name] / max(work.notes["seconds"][name], 1e-9), 1) for name in work.notes["pairs"]}
    figures = {
        "variant": o.variant,
        "minibatches": work.number,
        **found,
        "seconds": {name: round(value, 1) for name, value in work.notes["seconds"].items()},
        "pairs_per_second": speed,
        "view": data.images.side if data.images is not None else None,
        "command": command,
        **about,
    }
    write_results(folder, data, o, {"machine": about["machine"]}, chosen, last, work.notes)
    write_training_report(folder, data, figures, work.notes["journal"], commands, estimate)
    write_figures(folder, figures)
    return figures


def _predicted(work: SvNetRun, weights: Mapping[str, Any]) -> tuple[Any, Any]:
    """Commands and estimates of the held-out pairs, in float32."""
    model, held = work.model, work.data.held_out
    model.load_state_dict({key: torch.from_numpy(value) for key, value in weights.items()})
    model.precision = torch.float32
    commands = CommandStage(model, work.feed, replace(work.options, compile="none")).judged(held)[1]
    if "history" not in stage_names(work.options, model):  # its estimate means nothing
        return commands, None
    with torch.no_grad():
        estimate = model.history(work.feed.numbers(held, "history"))[1].cpu().numpy()
    return commands, np.asarray(estimate)


def _say(quiet: bool, text: str) -> None:
    if not quiet:
        print(text, file=sys.stderr, flush=True)
