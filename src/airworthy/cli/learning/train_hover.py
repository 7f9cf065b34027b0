"""`airworthy train hover`, `train motor_command`: a vehicle -> a policy that commands its rotors and holds a place, and the
evidence for it."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

from airworthy.cli.common import emit_json, interrupted_training, option_fields, run_tyro, show_table, stopped_by_terminate
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.keyword_messages import raises_in_options
from airworthy.core.runs.progress import command_line
from airworthy.core.schema import Bound

_begun = time.perf_counter()

from airworthy.learning.gradient.config import SEEDS_MAX, HoverConfig  # noqa: E402 - behind the clock: how long loading takes is told
from airworthy.learning.gradient.evaluation import HoverProtocol  # noqa: E402
from airworthy.learning.gradient.run import TrainedHover, train_hover, train_seeds  # noqa: E402
from airworthy.learning.native_ppo.config import MOTOR_COMMAND_REACH_M, MotorCommandConfig  # noqa: E402
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
_KEPT = "the policy as it is lies"


@dataclass(frozen=True)
class TrainHoverConfig(HoverConfig):
    """What is to hover, and how it learns."""

    vehicle: str = "tinyprop"
    """A name of the catalogue, a vehicle's TOML file, or a URDF with its --rotors."""
    rotors: Path | None = None
    """For a URDF: the TOML that says which of its links are rotors, and what they do."""
    out: Path = Path("runs/hover")
    """Folder for the policy, report.html, summary.json, metrics.jsonl."""
    seeds: Annotated[int, Bound(1, SEEDS_MAX)] = 1
    """Train so many, from --seed on, each in a folder of its own below --out; the summary there has all of them."""
    minutes: Annotated[float, Bound(0.0)] = 0.0
    """Stop after this long, with a checkpoint to go on from [min]; 0: when it is finished."""
    tensorboard: bool = False
    """Write event files of TensorBoard, too, with torch, to --out/tensorboard."""
    json: bool = False
    """Print JSON, and no progress."""

    def command(self) -> str:
        """Return the exact command that makes it again."""
        return command_line(PROG, self, leave_out=("json", "minutes", "tensorboard"))


@dataclass(frozen=True)
class TrainMotorCommandConfig(MotorCommandConfig):
    """How the motor-command task is learnt."""

    out: Path = Path("runs/motor_command")
    """Folder for the policy, report.html, summary.json, metrics.jsonl."""
    seeds: Annotated[int, Bound(1, SEEDS_MAX)] = 1
    """Train so many, from --seed on, each in a folder of its own below --out; the summary there has all of them."""
    minutes: Annotated[float, Bound(0.0)] = 0.0
    """Stop after this long, with a checkpoint to go on from [min]; 0: when it is finished."""
    tensorboard: bool = False
    """Write event files of TensorBoard, too, with torch, to --out/tensorboard."""
    json: bool = False
    """Print JSON, and no progress."""

    def command(self) -> str:
        """Return the exact command that makes it again."""
        return command_line(MOTOR_COMMAND_PROG, self, leave_out=("json", "minutes", "tensorboard"))


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
    told: dict[str, Any] = {
        "import_s": _import_s,
        "minutes": config.minutes,
        "device": config.device,
        "tensorboard": config.tensorboard,
        "quiet": config.json,
    }
    with stopped_by_terminate() as received:
        try:
            if config.seeds == 1:
                options = config.options(config.seed)
                done = [train_hover(vehicle, config.out, options, protocol, command=config.command(), **told)]
            else:
                commands = [
                    replace(config, seeds=1, seed=config.seed + k, out=config.out / f"seed_{config.seed + k}").command()
                    for k in range(max(0, config.seeds))
                ]
                done = train_seeds(vehicle, config.out, plain, config.seeds, protocol, commands=commands, **told)
        except KeyboardInterrupt:
            return interrupted_training(received, config.out, _KEPT)
    _say(config, done)
    return 0


def _say(config: TrainHoverConfig | TrainMotorCommandConfig, done: list[TrainedHover]) -> None:
    if config.json:
        rows = [
            {"folder": str(item.folder), "finished": item.finished, "iterations": item.iteration, **item.figures}
            for item in done
        ]
        emit_json(rows[0] if config.seeds == 1 else {"folder": str(config.out), "seeds": rows})
        return
    columns = ("seed", "learning [s]", "processor [s]", "kept [%]", "median error [cm]", "95 % [cm]", "M steps/s")
    rows_: list[tuple[Any, ...]] = []
    for item in (one for one in done if one.finished):
        f = item.figures
        errors = [None if f[name] is None else 100.0 * f[name] for name in ("median_error_m", "p95_error_m")]
        times = f["training_wall_s"], f["training_cpu_s"]
        rows_.append((f["seed"], *times, f["kept_percent"], *errors, 1e-6 * f["env_steps_per_s"]))
    if rows_:
        show_table(f"{done[0].figures['vehicle']}", columns, rows_)
    last = done[-1]
    if not last.finished:
        print(f"Stopped after the minutes it was given, at iteration {last.iteration:,}; the same command goes on from there.")
        return
    for item in done:
        for beside in item.figures["baselines"]:
            print(beside.get("verdict") or f"No {beside['name']} beside it: {beside['reason']}")
        print(f"Policy: {item.folder}, to fly with --pilot policy:{item.folder}; report: {item.report}")
