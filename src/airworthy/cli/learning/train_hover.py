"""`airworthy train hover`, `train motor_command`: a vehicle -> a policy that commands its rotors and holds a place, and the
evidence for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from airworthy.cli.common import option_fields, run_tyro
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.jobs.progress import command_line
from airworthy.core.keyword_messages import raises_in_options

_begun = time.perf_counter()

from airworthy.cli.learning import seed_trainings  # noqa: E402
from airworthy.learning.gradient.config import HoverConfig  # noqa: E402 - behind the clock: how long loading takes is told
from airworthy.learning.gradient.evaluation import HoverProtocol  # noqa: E402
from airworthy.learning.gradient.run import train_hover, train_seeds  # noqa: E402
from airworthy.learning.native_ppo.config import MOTOR_COMMAND_REACH_M, MotorCommandConfig  # noqa: E402
from airworthy.learning.timed_training import Trained  # noqa: E402
from airworthy.vehicles import Vehicle, named_vehicle  # noqa: E402

_import_s = time.perf_counter() - _begun

__all__ = ["ROTORS_RULES", "main", "main_motor_command"]

PROG, MOTOR_COMMAND_PROG = "airworthy train hover", "airworthy train motor_command"
_DESCRIPTION = (
    "Learn to hold a place by motor commands, from nothing, for any vehicle: by the gradient of its flights, in about a second."
    " Then judge the policy in the simulator beside the geometric controller and the MPC, under late commands, other vehicles,"
    " wind, noise and other rates. A stopped training goes on where it was, to the same bits as one that was not stopped."
)
_MOTOR_COMMAND_DESCRIPTION = (
    "Learn the motor-command task of Aerial Gym as published, on its vehicle tinyprop, by PPO: 160 million decisions. Then"
    " judge the policy at 250 Hz, as published, in the simulator beside the geometric controller and the MPC, and under what no"
    " training said. A stopped training goes on where it was, to the same bits as one that was not stopped."
)
ROTORS_RULES = (
    IdleRule(
        ("rotors",),
        lambda config: not config.vehicle.lower().endswith(".urdf"),
        "for a vehicle that is no URDF, whose record says what its rotors do",
        "name one with --vehicle FILE.urdf",
    ),
)


@dataclass(frozen=True)
class TrainHoverConfig(seed_trainings.SeedOptions, HoverConfig):
    """What is to hover, and how it learns."""

    vehicle: str = "tinyprop"
    """A name of the catalogue, a vehicle's TOML file, or a URDF with its --rotors."""
    rotors: Path | None = None
    """For a URDF: the TOML that says which of its links are rotors, and what they do."""
    out: Path = Path("runs/hover")
    """Folder for the policy, report.html, summary.json, metrics.jsonl."""

    def command(self) -> str:
        """Return the exact command that makes it again."""
        return command_line(PROG, self, leave_out=seed_trainings.NOT_REPEATED, always=("out",))


@dataclass(frozen=True)
class TrainMotorCommandConfig(seed_trainings.SeedOptions, MotorCommandConfig):
    """How the motor-command task is learnt."""

    out: Path = Path("runs/motor_command")
    """Folder for the policy, report.html, summary.json, metrics.jsonl."""

    def command(self) -> str:
        """Return the exact command that makes it again."""
        return command_line(MOTOR_COMMAND_PROG, self, leave_out=seed_trainings.NOT_REPEATED, always=("out",))


def main(argv: list[str]) -> int:
    """Run `train hover`; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    with raises_in_options(option_fields(TrainHoverConfig)):
        config = run_tyro(TrainHoverConfig, argv, PROG, _DESCRIPTION)
        refuse_idle(config, ROTORS_RULES)
        protocol = HoverProtocol(**_counts(config))
    plain = HoverConfig(**{item.name: getattr(config, item.name) for item in fields(HoverConfig)})
    return _train(config, plain, named_vehicle(config.vehicle, config.rotors), protocol)


def main_motor_command(argv: list[str]) -> int:
    """Run `train motor_command`; exit codes alike."""
    with raises_in_options(option_fields(TrainMotorCommandConfig)):
        config = run_tyro(TrainMotorCommandConfig, argv, MOTOR_COMMAND_PROG, _MOTOR_COMMAND_DESCRIPTION)
        protocol = HoverProtocol(**_counts(config), reach_m=MOTOR_COMMAND_REACH_M)
    plain = MotorCommandConfig(**{item.name: getattr(config, item.name) for item in fields(MotorCommandConfig)})
    return _train(config, plain, named_vehicle("tinyprop"), protocol)


def _counts(config: TrainHoverConfig | TrainMotorCommandConfig) -> dict[str, Any]:
    """Of flights, by their names in the protocol."""
    return {name: getattr(config, name) for name in ("flights", "grid_flights", "mpc_flights", "film_flights")}


def _train(
    config: TrainHoverConfig | TrainMotorCommandConfig,
    plain: HoverConfig | MotorCommandConfig,
    vehicle: Vehicle,
    protocol: HoverProtocol,
) -> int:
    if config.trainer == "ppo":
        from airworthy.cli.learning.train import load_torch  # the others learn without torch

        load_torch()
    told = {"import_s": _import_s, **config.told, "device": config.device}

    def train() -> list[Trained]:
        if config.seeds == 1:
            options = config.options(config.seed)
            return [train_hover(vehicle, config.out, options, protocol, command=config.command(), **told)]
        commands = seed_trainings.seed_commands(config, config.out)
        return train_seeds(vehicle, config.out, plain, config.seeds, protocol, commands=commands, **told)

    return seed_trainings.until_stopped(config.out, train, lambda done: _say(config, done))


def _say(config: TrainHoverConfig | TrainMotorCommandConfig, done: list[Trained]) -> None:
    if config.json:
        seed_trainings.trained_rows(config, config.out, done)
        return
    columns = ("seed", "learning [s]", "processor [s]", "kept [%]", "median error [cm]", "95 % [cm]", "M steps/s")
    rows: list[tuple[Any, ...]] = []
    for f in (one.figures for one in done if one.finished):
        errors = [None if f[name] is None else 100.0 * f[name] for name in ("median_error_m", "p95_error_m")]
        times = f["training_wall_s"], f["training_cpu_s"]
        rows.append((f["seed"], *times, f["kept_percent"], *errors, 1e-6 * f["env_steps_per_s"]))
    seed_trainings.say_trained(str(done[0].figures.get("vehicle", "")), columns, rows, done, _lines)


def _lines(item: Trained) -> Iterator[str]:
    yield from seed_trainings.drawn_lines(item)
    for beside in item.figures["baselines"]:
        yield beside.get("verdict") or f"No {beside['name']} beside it: {beside['reason']}"
    yield seed_trainings.how_to_fly(item.folder, item.report)
