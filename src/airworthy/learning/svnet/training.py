"""Training of SV-Net from expert roll-outs, stopped and gone on with at any time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from airworthy.core.arrays import ArrayF32
from airworthy.core.files import lock_folder, write_bytes, write_json
from airworthy.core.jobs.block_job import refuse_foreign
from airworthy.learning.machine import computing, machine_for
from airworthy.learning.svnet.data import ExpertPairs, TrainingData, training_data
from airworthy.learning.svnet.metrics import command_metrics, history_figures
from airworthy.learning.svnet.model import pretrained_digests
from airworthy.learning.svnet.options import RunOptions, SvNetOptions, TrainedSvNet
from airworthy.learning.svnet.report import write_training_report
from airworthy.learning.svnet.run import SvNetRun
from airworthy.learning.svnet.stages import CommandStage, stage_names
from airworthy.learning.timed_training import tell_lost_epochs
from airworthy.learning.training_folder import (
    FIGURES_FILE,
    IDENTITY_FILE,
    LAST_FILE,
    TRAINING_LOG_FILE,
    TrainingCurves,
    TrainingFolder,
    TrainingNames,
    say,
    write_training_log,
)
from airworthy.pilots.svnet.contract import CONTRACT_FILE, PolicyContract, PolicyImage, read_policy, tensor_bytes, write_policy
from airworthy.pilots.svnet.features import HISTORY_TICKS
from airworthy.pilots.svnet.variants import variant

__all__ = [
    "FIGURES_FILE",
    "TRAINING_LOG_FILE",
    "contract_of",
    "figures_of",
    "train",
    "write_figures",
    "write_results",
]

# ---- What came of a training, in a few numbers ------------------------------------------------------------------------------


# ---- Curves for TensorBoard, where they are asked for -----------------------------------------------------------------------

_NAMES = ("train_loss", "held_out_loss", "rate", "ratio_error", "skipped")


def _scalars(row: Mapping[str, Any]) -> tuple[int, Mapping[str, float]]:
    """Step and curves of a row of the training log, an epoch."""
    found = {name: row[name] for name in _NAMES if row.get(name) is not None}
    for name, value in zip(("thrust", "rate_x", "rate_y", "rate_z"), row.get("command_rms", ()), strict=False):
        found[f"rms_{name}"] = value
    return row["epoch"], {f"{row['stage']}/{name}": value for name, value in found.items()}


# ---- What a training leaves behind: weights with their contract, the training log, figures, a report -------------------------

Weights = Mapping[str, ArrayF32]


def contract_of(data: TrainingData, options: SvNetOptions, identity: Mapping[str, Any]) -> PolicyContract:
    """Return what the numbers of the weights mean.

    Args:
        data: What was learnt from.
        options: What was learnt and how.
        identity: Of the training, which becomes part of the contract.
    """
    view = None
    if data.images is not None:
        fx, fy, cx, cy = (float(value) for value in data.images.intrinsics)
        view = PolicyImage(data.images.side, data.images.side, fx, fy, cx, cy)
    learnt = PolicyContract(options.variant, view, history=options.form, training=dict(identity), data=data.digest)
    return replace(learnt, setting=data.setting)


def figures_of(data: TrainingData, commands: ArrayF32, estimate: ArrayF32 | None, notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return figures of the finished weights on held-out pairs, in float32, all of one run and all of its data the same.

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
        **command_metrics(data, commands),
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
    """Write the policy's folder: `weights.safetensors` and `contract.json`; the other weights and the training log beside them.

    Args:
        folder: Of the policy.
        data: What was learnt from.
        options: What was learnt and how.
        identity: Of the training.
        chosen: Weights that are the policy's.
        last: Those of the last epoch.
        notes: Training log and times.
    """
    write_training_log(folder, notes["journal"])
    write_bytes(folder / LAST_FILE, tensor_bytes(last, options.variant))
    write_policy(folder, contract_of(data, options, {**identity, "options": asdict(options)}), chosen)


def write_figures(folder: Path, figures: Mapping[str, Any]) -> Path:
    """Return `report.json`, last: where it lies, all is done."""
    return write_json(folder / FIGURES_FILE, figures)


# -----------------------------------------------------------------------------------------------------------------------------

# Rises when a training begun by an earlier version must not go on.
SCHEMA_VERSION = 1
_NAMED = TrainingNames(
    "a policy", "its data were others", "the weights it began with, or its version, were others", "minibatch"
)


def train(
    pairs: ExpertPairs, out: str | Path, options: SvNetOptions, run: RunOptions, command: str = "", quiet: bool = False
) -> TrainedSvNet:
    """See `airworthy.learning.svnet.train_svnet`.

    Args:
        pairs: Of the expert.
        out: Folder of the policy.
        options: What is learnt and how.
        run: Where, and for how long.
        command: As it was called, for the report.
        quiet: Print nothing.
    """
    refuse_foreign(out, IDENTITY_FILE, CONTRACT_FILE)
    data = training_data(pairs, variant(options.variant), options.form, options.view)
    identity = _identity(options, data)
    # One process at a time: two would write each other's checkpoints.
    with lock_folder(out) as where:
        folder = TrainingFolder(where, identity, options, _NAMED, quiet)
        if folder.done:
            done = folder.outcome(read_policy, TrainedSvNet.of)
            tell_lost_epochs(where)
            return done
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
    begun_with = pretrained_digests(options)
    return {"schema_version": SCHEMA_VERSION, "options": asdict(options), "data": data.digest, **begun_with}


def _learnt(work: SvNetRun, folder: TrainingFolder, run: RunOptions, quiet: bool) -> bool:
    """Learn what is left; False: it is not finished, as was asked."""
    logged = len(work.notes["journal"])

    def stepped() -> None:
        nonlocal logged
        if len(work.notes["journal"]) > logged:
            logged = len(work.notes["journal"])
            _tell(work, folder.folder, quiet)

    curves = TrainingCurves(work.notes["journal"], _scalars)
    left = work.total - work.number
    return folder.learn(work, lambda stopped: work.minibatches(), left, run, stepped=stepped, curves=curves)


def _tell(work: SvNetRun, folder: Path, quiet: bool) -> None:
    training_log = work.notes["journal"]
    write_training_log(folder, training_log)
    row = training_log[-1]
    seconds, pairs = (work.notes[key].get(row["stage"], 0.0) for key in ("seconds", "pairs"))
    loss = " ".join(
        f"{name} {row[key]:.5g}" for name, key in (("loss", "train_loss"), ("held out", "held_out_loss")) if row.get(key)
    )
    more = f", ratio error {100.0 * row['ratio_error']:.2f} %" if row.get("ratio_error") is not None else ""
    say(quiet, f"{row['stage']} epoch {row['epoch']}: {loss}{more}, {pairs / max(seconds, 1e-9):,.0f} pairs/s")


def _written(work: SvNetRun, folder: Path, about: Mapping[str, Any], command: str) -> dict[str, Any]:
    data, o = work.data, work.options
    # Both are kept, since there is no early stopping (spec/sousvide section 13).
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
    commands = CommandStage(model, work.data_loader, replace(work.options, compile="none")).evaluated(held)[1]
    if "history" not in stage_names(work.options, model):  # its estimate means nothing
        return commands, None
    with torch.no_grad():
        estimate = model.history(work.data_loader.numbers(held, "history"))[1].cpu().numpy()
    return commands, np.asarray(estimate)
