"""`airworthy train depth_navigation`, `lidar_navigation` and `dce`: policies that navigate by sight, and their encoder."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from tyro.conf import OmitArgPrefixes, Suppress

from airworthy.cli.common import emit_json, interrupted_training, option_fields, run_tyro, show_table, stopped_by_terminate
from airworthy.cli.learning.train import load_torch
from airworthy.core.jobs.progress import command_line
from airworthy.core.keyword_messages import raises_in_options
from airworthy.learning.navigation.encoder_options import EncoderOptions
from airworthy.learning.navigation.options import NavigationOptions, NavigationRunOptions, RoomsProtocol

__all__ = ["main", "main_encoder"]

PROG = "airworthy train"
_DESCRIPTION = (
    "Learn to fly through rooms of obstacles to a target, from images and the vehicle's own state, by the reward of flights"
    " whose rooms grow more cluttered with success. Then judge the policy in rooms that it has not seen, in the simulator, too."
    " A stopped training goes on where it was, to the same bits as one that was not stopped."
)
_ENCODER_DESCRIPTION = (
    "Learn a Deep Collision Encoder: from a depth image to a latent that tells how far a body of the vehicle's size could go"
    " along each ray. Then judge it on images of rooms that it has not seen. A stopped training goes on where it was."
)
_KEPT = "what is learnt lies"


@dataclass(frozen=True)
class TrainNavigationConfig(NavigationOptions):
    """What to learn, and how."""

    task: Suppress[str] = "depth_navigation"  # type: ignore[assignment]
    out: Path = Path("runs/navigation")
    """Folder for the policy, summary.json, metrics.jsonl, report.html."""
    encoder: Path | None = None
    """Folder of `airworthy train dce`, for --image latent."""
    flights: int = 500
    """Of each level, on which it is judged."""
    levels: tuple[int, ...] = ()
    """At which it is judged; none: the first of the curriculum, 30, the training's last, and the last of the curriculum."""
    run: OmitArgPrefixes[NavigationRunOptions] = field(default_factory=NavigationRunOptions)
    """For how long."""
    json: bool = False
    """Print JSON, and no progress."""

    def options(self) -> NavigationOptions:
        """Return the options of the training."""
        return NavigationOptions(**{item.name: getattr(self, item.name) for item in fields(NavigationOptions)})


@dataclass(frozen=True)
class TrainEncoderConfig(EncoderOptions):
    """What to learn, and how."""

    out: Path = Path("runs/dce")
    """Folder for the encoder, summary.json, metrics.jsonl, report.html."""
    run: OmitArgPrefixes[NavigationRunOptions] = field(default_factory=NavigationRunOptions)
    """For how long."""
    json: bool = False
    """Print JSON, and no progress."""

    def options(self) -> EncoderOptions:
        """Return the options of the training."""
        return EncoderOptions(**{item.name: getattr(self, item.name) for item in fields(EncoderOptions)})


def main(argv: list[str]) -> int:
    """Run `train TASK`; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    with raises_in_options(option_fields(TrainNavigationConfig)):
        return _asked(argv[0], argv[1:])


def main_encoder(argv: list[str]) -> int:
    """Run `train dce`; returns the exit code, as `main`."""
    with raises_in_options(option_fields(TrainEncoderConfig)):
        return _asked_encoder(argv)


def _asked(task: str, argv: list[str]) -> int:
    config = replace(run_tyro(TrainNavigationConfig, argv, f"{PROG} {task}", _DESCRIPTION), task=task)
    load_torch()
    from airworthy.learning.navigation.run import train_navigation

    command = command_line(f"{PROG} {task}", config, leave_out=("task", "run", "json"), always=("out",))
    protocol = RoomsProtocol(flights=config.flights, levels=config.levels)
    with stopped_by_terminate() as received:
        try:
            done = train_navigation(
                config.out,
                config.options(),
                protocol,
                config.run.training_run,
                encoder=config.encoder,
                command=command,
                quiet=config.json,
            )
        except KeyboardInterrupt:
            return interrupted_training(received, config.out, _KEPT)
    if not _said(config.json, done):
        return 0
    columns = ("where", "level", "flights", "success [%]", "touched [%]", "late [%]")
    rows: list[tuple[Any, ...]] = []
    for where in ("launch", "simulator"):
        for row in done.figures[where]:
            shares = [100.0 * row[name] / row["flights"] for name in ("success", "crashed", "late")]
            rows.append((where, row["level"], row["flights"], *shares))
    minutes = done.figures["training_wall_s"] / 60.0
    show_table(f"{task}, level {done.figures['level']} after {minutes:.1f} min of training", columns, rows)
    print(f"Policy: {done.folder}, to fly with --pilot {shlex.quote(f'navigation:{done.folder}')}")
    return 0


def _asked_encoder(argv: list[str]) -> int:
    config = run_tyro(TrainEncoderConfig, argv, f"{PROG} dce", _ENCODER_DESCRIPTION)
    load_torch()
    from airworthy.learning.navigation.run import train_encoder

    command = command_line(f"{PROG} dce", config, leave_out=("run", "json"))
    with stopped_by_terminate() as received:
        try:
            done = train_encoder(config.out, config.options(), config.run.training_run, command=command, quiet=config.json)
        except KeyboardInterrupt:
            return interrupted_training(received, config.out, _KEPT)
    if not _said(config.json, done):
        return 0
    show_table("On images of unseen rooms", ("figure", "value"), list(done.figures["unseen"].items()))
    print(f"Encoder: {done.folder}, to learn with --image latent --encoder {done.folder}")
    return 0


def _said(as_json: bool, done: Any) -> bool:
    """Say what there is to say of any training; returns whether its figures are still to be told."""
    if as_json:
        emit_json({"folder": str(done.folder), "finished": done.finished, "iterations": done.iteration, **done.figures})
        return False
    if not done.finished:
        print(f"Stopped after the minutes it was given, at step {done.iteration:,}; the same command goes on from there.")
        return False
    return True
