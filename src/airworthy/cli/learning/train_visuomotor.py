"""`airworthy train visuomotor`: a policy that sees, for a place and a course, in minutes."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from airworthy.cli.common import emit_json, option_fields, run_tyro, show_table
from airworthy.cli.learning.seed_trainings import until_stopped
from airworthy.core.jobs.progress import command_line
from airworthy.core.keyword_messages import raises_in_options
from airworthy.core.schema import Bound
from airworthy.learning.machine import THREADS_MAX
from airworthy.learning.timed_training import Trained
from airworthy.learning.visuomotor.config import VisuomotorOptions, VisuomotorProtocol

_begun = time.perf_counter()

__all__ = ["main"]

PROG = "airworthy train visuomotor"
_DESCRIPTION = (
    "Learn to fly a course in a place by sight, from nothing, in minutes: an expert flies from many states with many drones,"
    " small heads on frozen features of images imitate it, and then the policy flies itself, in rounds, while the expert says"
    " at each decision what it would have done. It is judged on flights that it never learnt from, and the page says whether"
    " it is fit to fly there. A stopped training goes on where it was."
)


@dataclass(frozen=True)
class TrainVisuomotorConfig(VisuomotorOptions):
    """What to learn, and where it is kept."""

    out: Path = Path("runs/visuomotor")
    """Folder for the policy, report.html, summary.json, metrics.jsonl, the expert's data, the flights that judged it."""
    judge: Annotated[VisuomotorProtocol, arg(prefix_name=True)] = field(default_factory=VisuomotorProtocol)
    """How it is judged in the end."""
    threads: Annotated[int, Bound(0, THREADS_MAX)] = 0
    """Of the CPU; 0: all it has. A training goes on with the number it began with."""
    tensorboard: bool = False
    """Write event files of TensorBoard, too, to tensorboard/ in the folder."""
    json: bool = False
    """Print JSON, and no progress."""

    def command(self) -> str:
        """Return the exact command that makes it again."""
        return command_line(PROG, self, leave_out=("json", "threads", "tensorboard"), always=("scene", "course", "out"))


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    with raises_in_options(option_fields(TrainVisuomotorConfig)):
        config = run_tyro(TrainVisuomotorConfig, argv, PROG, _DESCRIPTION)
    from airworthy.cli.learning.train import load_torch

    load_torch()
    from airworthy.learning.visuomotor.run import train_visuomotor

    options = VisuomotorOptions(**{item.name: getattr(config, item.name) for item in fields(VisuomotorOptions)})
    told = {"threads": config.threads, "tensorboard": config.tensorboard, "quiet": config.json}
    return until_stopped(
        config.out,
        lambda: [
            train_visuomotor(config.out, options, config.judge, command=config.command(), begun=_begun, **told)  # type: ignore[arg-type]
        ],
        lambda done: _say(config, done[0]),
        early="before anything was learnt; finished roll-outs of the expert are kept, and the same command goes on from there",
    )


def _say(config: TrainVisuomotorConfig, done: Trained) -> None:
    if config.json:
        emit_json({"folder": str(done.folder), "finished": done.finished, "iterations": done.iteration, **done.figures})
        return
    found = done.figures
    columns = ("course", "condition", "family", "succeeded", "95 % interval [%]", "error [m]", "within 0.3 m [%]")
    rows = [
        (
            row["course"], row["condition"], row["family"], f"{row['successes']} of {row['flights']}",
            "{:.0f} to {:.0f}".format(*row["interval_percent"]), row["tracking_error_m"], row["proximity_percent"],
        )
        for row in found["conditions"]
    ]  # fmt: skip
    minutes = (found["training_wall_s"] + found["seconds"]["evaluate_s"]) / 60.0
    show_table(f"{found['pairs']:,} pairs, {found['rounds']} rounds, {minutes:.1f} min", columns, rows)
    print(f"Fit to fly here: {found['verdict']}")
    print(f"Policy: {done.folder}, to fly with --pilot {shlex.quote(f'svnet:{done.folder}')}; report: {done.report}")
