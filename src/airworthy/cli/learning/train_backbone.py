"""`airworthy train backbone`: convolutions that see, pre-trained on drawn places for policies that learn on frozen features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tyro.conf import OmitArgPrefixes

from airworthy.cli.common import emit_json, option_fields, run_tyro, show_table
from airworthy.cli.learning import seed_trainings
from airworthy.cli.learning.train import load_torch
from airworthy.core.jobs.progress import command_line
from airworthy.core.keyword_messages import raises_in_options
from airworthy.learning.backbone.config import BackboneOptions
from airworthy.learning.navigation.options import NavigationMachineOptions, NavigationRunOptions
from airworthy.learning.timed_training import Trained

__all__ = ["main"]

PROG = "airworthy train backbone"
_DESCRIPTION = (
    "Pre-train the convolutions of an image network on images of halls that are drawn as it goes: features from which little is"
    " needed to tell pose, depth and points of a place. Then probe them in places that they have not seen, beside those of the"
    " shipped policy and of random weights. A stopped training goes on where it was, to the same bits."
)


@dataclass(frozen=True)
class TrainBackboneConfig(seed_trainings.StopOptions, BackboneOptions):
    """What to learn, and how."""

    out: Path = Path("runs/backbone")
    """Folder for the backbone, summary.json, metrics.jsonl, report.html."""
    run: OmitArgPrefixes[NavigationMachineOptions] = field(default_factory=NavigationMachineOptions)
    """On what."""

    def options(self) -> BackboneOptions:
        """Return the options of the training."""
        return BackboneOptions(**{item.name: getattr(self, item.name) for item in fields(BackboneOptions)})


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    with raises_in_options(option_fields(TrainBackboneConfig)):
        config = run_tyro(TrainBackboneConfig, argv, PROG, _DESCRIPTION)
    load_torch()
    from airworthy.learning.backbone.run import train_backbone

    command = command_line(PROG, config, leave_out=("run", *seed_trainings.NOT_REPEATED), always=("out",))
    machine = config.run
    run = NavigationRunOptions(machine.threads, machine.checkpoint_minutes, config.minutes, config.tensorboard).training_run
    return seed_trainings.until_stopped(
        config.out,
        lambda: [train_backbone(config.out, config.options(), run=run, command=command, quiet=config.json)],
        lambda done: _say(config, done[0]),
        "what is learnt lies",
    )


def _say(config: TrainBackboneConfig, done: Trained) -> None:
    if config.json:
        emit_json({"folder": str(done.folder), "finished": done.finished, "iterations": done.iteration, **done.figures})
        return
    if not done.finished:
        print(f"Stopped after the minutes it was given, at step {done.iteration:,}; the same command goes on from there.")
        return
    columns, rows = _rows(done.figures["probe"])
    show_table("Median errors of linear maps in unseen places, mean over places", columns, rows)
    print(f"Backbone: {done.folder}, to learn on with --features {done.folder}; report: {done.report}")


def _rows(probe: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    from airworthy.learning.backbone.report import COLUMNS, probe_means

    means = {name: probe_means(rows) for name, rows in probe.items()}
    return ("features of", *COLUMNS.values()), [(name, *(row[key] for key in COLUMNS)) for name, row in means.items()]
