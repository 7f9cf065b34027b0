"""`airworthy train TASK`: any learning task -> a policy that flies, learnt by reward, and the evidence for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from airworthy.cli.common import option_fields, run_tyro
from airworthy.cli.learning import seed_trainings
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.jobs.progress import command_line
from airworthy.core.keyword_messages import raises_in_options
from airworthy.learning.task_training.config import TaskConfig
from airworthy.learning.task_training.run import train_task, train_task_seeds
from airworthy.learning.timed_training import Trained
from airworthy.vehicles import Vehicle, named_vehicle

__all__ = ["TASK_RULES", "main"]

PROG = "airworthy train"
_DESCRIPTION = (
    "Learn a task by its reward (PPO on thousands of flights at once), from nothing. Then judge the policy by the task's own"
    " judgement in the simulator, beside known controllers. `airworthy tasks` lists the tasks. A stopped training goes on where"
    " it was, to the same bits as one that was not stopped."
)
TASK_RULES = (
    IdleRule(
        ("rotors",),
        lambda config: config.vehicle is None or not config.vehicle.lower().endswith(".urdf"),
        "for a vehicle that is no URDF, whose record says what its rotors do",
        "name one with --vehicle FILE.urdf",
    ),
)


@dataclass(frozen=True)
class TaskName:
    """Which task."""

    task: Positional[str]
    """Name of a learning task, or FILE.py:NAME of one's own, whose file the folder keeps."""


@dataclass(frozen=True)
class TrainTaskConfig(seed_trainings.SeedOptions, TaskConfig, TaskName):
    """Which task is learnt, and how."""

    vehicle: str | None = None
    """A name of the catalogue, a vehicle's TOML file, or a URDF with its --rotors; left out: the task's own."""
    rotors: Path | None = None
    """For a URDF: the TOML that says which of its links are rotors, and what they do."""
    out: Path | None = None
    """Folder for the policy, report.html, summary.json, metrics.jsonl; left out: runs/TASK."""

    @property
    def folder(self) -> Path:
        """Where it goes."""
        return self.out or Path("runs") / self.task.rpartition(":")[2].lower()

    def command(self) -> str:
        """Return the exact command that makes it again."""
        return command_line(
            PROG, replace(self, out=self.folder), leave_out=seed_trainings.NOT_REPEATED, positional=("task",), always=("out",)
        )


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    # What does not fit is told by the parts that the options are made into, some of them when it begins.
    with raises_in_options(option_fields(TrainTaskConfig)):
        return _asked(argv)


def _asked(argv: list[str]) -> int:
    # The usage line says the whole command: the first word is the task.
    config = run_tyro(TrainTaskConfig, argv, f"{PROG} {argv[0]}", _DESCRIPTION)
    refuse_idle(config, TASK_RULES)
    plain = TaskConfig(**{item.name: getattr(config, item.name) for item in fields(TaskConfig)})
    if config.option:
        plain.check_options(config.task)
    vehicle: Vehicle | None = None if config.vehicle is None else named_vehicle(config.vehicle, config.rotors)
    if config.trainer == "ppo":
        from airworthy.cli.learning.train import load_torch  # the others learn without torch

        load_torch()

    def train() -> list[Trained]:
        if config.seeds == 1:
            options = plain.training(config.task, config.seed)
            return [train_task(options, config.folder, vehicle, plain.protocol, command=config.command(), **config.told)]
        each = [plain.training(config.task, k) for k in range(config.seed, config.seed + max(0, config.seeds))]
        commands = seed_trainings.seed_commands(config, config.folder)
        return train_task_seeds(each, config.folder, vehicle, plain.protocol, commands=commands, **config.told)

    return seed_trainings.until_stopped(config.folder, train, lambda done: _say(config, done))


def _say(config: TrainTaskConfig, done: list[Trained]) -> None:
    if config.json:
        seed_trainings.trained_rows(config, config.folder, done)
        return
    columns = ("seed", "learning [s]", "processor [s]", "success [%]", "kept [%]", "median error [cm]", "M steps/s")
    rows: list[tuple[Any, ...]] = []
    for f in (one.figures for one in done if one.finished):
        error = f.get("median_error_m")
        times = f["training_wall_s"], f["training_cpu_s"]
        rates = f["success_percent"], f["kept_percent"], None if error is None else 100.0 * error
        rows.append((f["seed"], *times, *rates, 1e-6 * f["env_steps_per_s"]))
    title = f"{done[0].figures['task']}, {done[0].figures['vehicle']}" if rows else ""
    seed_trainings.say_trained(title, columns, rows, done, _lines)


def _lines(item: Trained) -> Iterator[str]:
    if quiet := item.figures.get("without_noise"):
        error = quiet.get("median_error_m")
        said = "" if error is None else f", median error {100.0 * error:.2f} cm"
        yield f"Without the noise of observations: success {quiet['success_percent']:.1f} %{said}."
    yield from seed_trainings.drawn_lines(item)
    for beside in item.figures["baselines"]:
        yield beside.get("verdict") or f"No {beside['name']} beside it: {beside['reason']}"
    yield seed_trainings.how_to_fly(item.folder, item.report)
