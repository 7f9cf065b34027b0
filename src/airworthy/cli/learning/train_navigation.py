"""`airworthy train depth_navigation`, `lidar_navigation` and `dce`: policies that navigate by sight, and their encoder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from tyro.conf import OmitArgPrefixes, Suppress

from airworthy.cli.common import emit_json, option_fields, run_tyro, show_table
from airworthy.cli.learning import seed_trainings
from airworthy.cli.learning.train import load_torch
from airworthy.core.jobs.progress import command_line
from airworthy.core.keyword_messages import raises_in_options
from airworthy.learning.navigation.encoder_options import EncoderOptions
from airworthy.learning.navigation.options import (
    NavigationMachineOptions,
    NavigationOptions,
    NavigationRunOptions,
    RoomsProtocol,
)
from airworthy.learning.timed_training import Trained

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
_NOT_REPEATED = ("run", *seed_trainings.NOT_REPEATED)


@dataclass(frozen=True)
class TrainNavigationConfig(seed_trainings.SeedOptions, NavigationOptions):
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
    run: OmitArgPrefixes[NavigationMachineOptions] = field(default_factory=NavigationMachineOptions)
    """On what."""

    def options(self) -> NavigationOptions:
        """Return the options of the training."""
        return NavigationOptions(**{item.name: getattr(self, item.name) for item in fields(NavigationOptions)})

    def command(self) -> str:
        """Return the exact command that makes it again."""
        return command_line(f"{PROG} {self.task}", self, leave_out=("task", *_NOT_REPEATED), always=("out",))


@dataclass(frozen=True)
class TrainEncoderConfig(seed_trainings.StopOptions, EncoderOptions):
    """What to learn, and how."""

    out: Path = Path("runs/dce")
    """Folder for the encoder, summary.json, metrics.jsonl, report.html."""
    run: OmitArgPrefixes[NavigationMachineOptions] = field(default_factory=NavigationMachineOptions)
    """On what."""

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


def _run(config: TrainNavigationConfig | TrainEncoderConfig) -> Any:
    machine = config.run
    return NavigationRunOptions(machine.threads, machine.checkpoint_minutes, config.minutes, config.tensorboard).training_run


def _asked(task: str, argv: list[str]) -> int:
    config = replace(run_tyro(TrainNavigationConfig, argv, f"{PROG} {task}", _DESCRIPTION), task=task)
    config.check_batch()  # first: torch alone takes seconds to load
    load_torch()
    from airworthy.learning.navigation.run import train_navigation, train_navigation_seeds

    told: dict[str, Any] = {
        "protocol": RoomsProtocol(flights=config.flights, levels=config.levels),
        "run": _run(config),
        "encoder": config.encoder,
        "quiet": config.json,
    }

    def train() -> list[Trained]:
        if config.seeds == 1:
            return [train_navigation(config.out, config.options(), command=config.command(), **told)]
        commands = seed_trainings.seed_commands(config, config.out)
        return train_navigation_seeds(config.out, config.options(), config.seeds, commands=commands, **told)

    return seed_trainings.until_stopped(config.out, train, lambda done: _say(config, done), _KEPT)


def _say(config: TrainNavigationConfig, done: list[Trained]) -> None:
    if config.json:
        seed_trainings.trained_rows(config, config.out, done)
        return
    finished = [one.figures for one in done if one.finished]
    told = _levels(config.task, finished[0]) if config.seeds == 1 and finished else _seeds(config.task, done)
    seed_trainings.say_trained(*told, done, _lines)


def _levels(task: str, found: Mapping[str, Any]) -> tuple[str, tuple[str, ...], list[tuple[Any, ...]]]:
    """Return title, heads and rows of a training alone: each level in either physics."""
    columns = ("where", "level", "flights", "success [%]", "touched [%]", "late [%]")
    rows: list[tuple[Any, ...]] = []
    for where in ("launch", "simulator"):
        for row in found[where]:
            shares = [100.0 * row[name] / row["flights"] for name in ("success", "crashed", "late")]
            rows.append((where, row["level"], row["flights"], *shares))
    return f"{task}, level {found['level']} after {found['training_wall_s'] / 60.0:.1f} min of training", columns, rows


def _seeds(task: str, done: list[Trained]) -> tuple[str, tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the same of several: a row per seed, its success in the simulator at the levels that all were judged at."""
    from airworthy.learning.navigation.run import shared_levels

    levels = shared_levels(done)
    columns = ("seed", "learning [min]", "processor [min]", "level reached", *(f"success at {k} [%]" for k in levels))
    rows: list[tuple[Any, ...]] = []
    for f in (one.figures for one in done if one.finished):
        rates = {row["level"]: row["success_percent"] for row in f["simulator"]}
        times = f["training_wall_s"] / 60.0, f["training_cpu_s"] / 60.0
        rows.append((f["seed"], *times, f["level"], *(rates[level] for level in levels)))
    return f"{task}, judged in the simulator", columns, rows


def _lines(item: Trained) -> Iterator[str]:
    yield seed_trainings.how_to_fly(item.folder, item.report, "navigation")


def _asked_encoder(argv: list[str]) -> int:
    config = run_tyro(TrainEncoderConfig, argv, f"{PROG} dce", _ENCODER_DESCRIPTION)
    load_torch()
    from airworthy.learning.navigation.run import train_encoder

    command = command_line(f"{PROG} dce", config, leave_out=_NOT_REPEATED)
    return seed_trainings.until_stopped(
        config.out,
        lambda: [train_encoder(config.out, config.options(), _run(config), command=command, quiet=config.json)],
        lambda done: _say_encoder(config, done[0]),
        _KEPT,
    )


def _say_encoder(config: TrainEncoderConfig, done: Trained) -> None:
    if config.json:
        emit_json({"folder": str(done.folder), "finished": done.finished, "iterations": done.iteration, **done.figures})
        return
    if not done.finished:
        print(f"Stopped after the minutes it was given, at step {done.iteration:,}; the same command goes on from there.")
        return
    show_table("On images of unseen rooms", ("figure", "value"), list(done.figures["unseen"].items()))
    print(f"Encoder: {done.folder}, to learn with --image latent --encoder {done.folder}")
