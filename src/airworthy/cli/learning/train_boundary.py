"""`airworthy train boundary LABELS`: labels of the search -> a network that plans from gate to gate."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path

from tyro.conf import OmitArgPrefixes, Positional

from airworthy.cli.common import emit_json, interrupted, option_fields, run_tyro, show_table, stopped_by_terminate
from airworthy.cli.learning.train import STOPPED, load_torch, refuse_begun
from airworthy.core.jobs.progress import command_line
from airworthy.core.keyword_messages import raises_in_options
from airworthy.gates.training import BoundaryOptions, BoundaryRunOptions, TrainedBoundary, read_labels, train_boundary

__all__ = ["main"]

PROG = "airworthy train boundary"
_DESCRIPTION = (
    "Train the network that says, of three gates, how fast to pass the middle one and how long to take to it, from labels that"
    " airworthy synthesize gates found. Its loss prefers errors on the slow side. Defaults are the published values. A stopped"
    " run goes on where it was, and gives the same weights as one that was not stopped."
)


@dataclass(frozen=True)
class LabelsConfig:
    """What to train from."""

    labels: Positional[Path]
    """Folder of labels."""


@dataclass(frozen=True)
class TrainBoundaryConfig(BoundaryOptions, LabelsConfig):
    """What to train, and how."""

    out: Path = Path("runs/boundary")
    """Folder for weights.safetensors, contract.json, report.html, training.jsonl."""
    run: OmitArgPrefixes[BoundaryRunOptions] = field(default_factory=BoundaryRunOptions)
    """Where, and for how long."""
    resume: bool = True
    """Go on with a training that was stopped; --no-resume refuses a folder that holds one."""
    verify: bool = True
    """Compare every file of the labels with its checksum first."""
    json: bool = False
    """Print JSON, and no progress."""

    def options(self) -> BoundaryOptions:
        """Return the options of the training."""
        return BoundaryOptions(**{item.name: getattr(self, item.name) for item in fields(BoundaryOptions)})


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    with raises_in_options(option_fields(TrainBoundaryConfig)):
        config = run_tyro(TrainBoundaryConfig, argv, PROG, _DESCRIPTION)
    load_torch()
    if not config.resume:
        refuse_begun([config.out])
    command = command_line(PROG, config, leave_out=("run", "resume", "verify", "json"), positional=("labels",))
    with stopped_by_terminate() as received:
        try:
            labels = read_labels(config.labels, config.verify)
            done = train_boundary(labels, config.out, config.options(), config.run, command, quiet=config.json)
        except KeyboardInterrupt:
            return interrupted(received, STOPPED)
    _say(config, done)
    return 0


def _say(config: TrainBoundaryConfig, done: TrainedBoundary) -> None:
    if config.json:
        emit_json({"finished": done.finished, "epochs": done.epochs, "folder": str(done.folder), "figures": done.figures})
        return
    if not done.finished:
        print(f"Stopped after the minutes it was given, at epoch {done.epochs:,}; the same command goes on from there.")
        return
    rows = []
    for part in ("test", "watched", "train"):
        errors = done.figures["errors"][part]
        for name, what in (("v", "speed too high"), ("t0", "time too short")):
            table = errors[name]
            shares = [_percent(table["unsafe_beyond"].get(key)) for key in ("0", "5", "10")]
            rows.append((part, what, *shares, table["percent_quantiles"].get("0.5"), table["rms"]))
    columns = ("rows", "unsafe side", "any [%]", "over 5 % [%]", "over 10 % [%]", "median error [%]", "RMS [m/s, s]")
    show_table("", columns, rows)
    print(f"Weights: {done.folder / 'weights.safetensors'}, report: {done.folder / 'report.html'}")


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share
