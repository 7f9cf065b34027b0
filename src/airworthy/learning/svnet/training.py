"""Training of SV-Net from expert roll-outs, stopped and gone on with at any time."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from airworthy.core.files import lock_folder
from airworthy.evaluation.folder_kinds import refuse_foreign
from airworthy.learning.machine import computing, machine_for
from airworthy.learning.svnet.beginning import beginning_digests
from airworthy.learning.svnet.curves import Curves
from airworthy.learning.svnet.data import ExpertPairs, TrainingData, training_data
from airworthy.learning.svnet.options import RunOptions, SvNetOptions
from airworthy.learning.svnet.outcome import TrainedSvNet
from airworthy.learning.svnet.report import write_training_report
from airworthy.learning.svnet.results import figures_of, write_figures, write_results
from airworthy.learning.svnet.run import SvNetRun
from airworthy.learning.svnet.stages import CommandStage, stage_names
from airworthy.learning.training_folder import IDENTITY_FILE, Named, TrainingFolder, say, write_journal
from airworthy.pilots.svnet.contract import CONTRACT_FILE, read_policy
from airworthy.pilots.svnet.variants import variant

__all__ = ["train"]

CURVES = "tensorboard"
SCHEMA_VERSION = 1
_NAMED = Named("a policy", "its data were others", "the weights it began with, or its version, were others", "minibatch")


def train(
    pairs: ExpertPairs, out: str | Path, options: SvNetOptions, run: RunOptions, command: str = "", quiet: bool = False
) -> TrainedSvNet:
    """See `airworthy.learning.svnet.train_svnet`."""
    refuse_foreign(out, IDENTITY_FILE, CONTRACT_FILE)
    data = training_data(pairs, variant(options.variant), options.form, options.view)
    identity = _identity(options, data)
    with lock_folder(out) as where:
        folder = TrainingFolder(where, identity, options, _NAMED, quiet)
        if folder.done:
            return folder.outcome(read_policy, TrainedSvNet.of)
        machine = machine_for(run, options.precision, folder.machine)
        with computing(machine) as device:
            # First of all: what cannot begin must not hold the folder for options that never worked.
            work = SvNetRun(data, options, device, machine.precision, run.resident)
            if folder.begin(work, machine):
                say(quiet, f"Going on after minibatch {work.number:,} of {work.total:,}.")
            if not _learnt(work, folder, run, quiet):
                return TrainedSvNet(where, options.variant, finished=False, minibatches=work.number, total=work.total)
            figures = _written(work, where, folder.about, command)
        folder.clear()
        return TrainedSvNet.of(where, figures)


def _identity(options: SvNetOptions, data: TrainingData) -> dict[str, Any]:
    begun_with = beginning_digests(options)
    return {"schema_version": SCHEMA_VERSION, "options": asdict(options), "data": data.digest, **begun_with}


def _learnt(work: SvNetRun, folder: TrainingFolder, run: RunOptions, quiet: bool) -> bool:
    """Learn what is left; False: it is not finished, as was asked."""
    told = len(work.notes["journal"])
    with ExitStack() as stack:
        curves = stack.enter_context(Curves(folder.folder / CURVES, work.notes["journal"])) if run.tensorboard else None

        def stepped() -> None:
            nonlocal told
            if len(work.notes["journal"]) > told:
                told = len(work.notes["journal"])
                _tell(work, folder.folder, curves, quiet)

        return folder.learn(work, lambda stopped: work.minibatches(), work.total - work.number, run, stepped=stepped)


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
    say(quiet, f"{row['stage']} epoch {row['epoch']}: {loss}{more}, {pairs / max(seconds, 1e-9):,.0f} pairs/s")


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
