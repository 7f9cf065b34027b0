"""`airworthy train KIND ...`: expert data, or a vehicle alone -> weights that fly."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from tyro.conf import OmitArgPrefixes, Positional

from airworthy.cli.common import emit_json, interrupted, option_fields, run_tyro, show_table, stopped_by_terminate
from airworthy.core.errors import AirworthyError, telling_broken, unknown_name
from airworthy.core.files import make_folder, write_json
from airworthy.core.idle_options import without_idle
from airworthy.core.jobs.progress import command_line
from airworthy.core.keyword_messages import raises_in_options
from airworthy.learning.environments.tasks import SHIPPED
from airworthy.learning.svnet import RunOptions, SvNetOptions, TrainedSvNet
from airworthy.learning.svnet.adaptation import Adaptation, AdaptationConfig, measure_adaptation
from airworthy.learning.svnet.options import IDLE_RULES, RUN_RULES
from airworthy.learning.task_training.own_tasks import is_learning_task, refuse_path
from airworthy.pilots.svnet.variants import PUBLISHED, VARIANTS

__all__ = ["STOPPED", "load_torch", "refuse_begun"]

# ---- What the commands share that train networks ----------------------------------------------------------------------------

STOPPED = "Stopped; what is learnt is kept, and the same command goes on from there."


def load_torch() -> None:
    """Load PyTorch first of all: without it there is nothing to wait for.

    Raises:
        AirworthyError: torch is installed but cannot be loaded.
        ModuleNotFoundError: torch is not installed; the extra 'learn' brings it.
    """
    # Threads that wait by spinning starve one another where the machine does other things, too: thirty times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    with telling_broken(["torch"]):
        importlib.import_module("torch")


def refuse_begun(folders: Iterable[Path]) -> None:
    """Refuse a begun training, for --no-resume: raise AirworthyError where a folder is not empty."""
    for folder in folders:
        if folder.is_dir() and any(folder.iterdir()):
            raise AirworthyError(f"{str(folder)!r} is not empty, and --no-resume was asked for: choose another folder.")


# -----------------------------------------------------------------------------------------------------------------------------

# ---- `airworthy train adaptation POLICY`: what the history network of a trained policy knows in flight ----------------------

_DESCRIPTION = (
    "Measure what the history network of a trained policy knows: the expert flies nominal drones, drones with a payload, and"
    " drones that take it on in mid-flight, and the network is asked for force of a rotor over mass at every tick."
)


@dataclass(frozen=True)
class PolicyConfig:
    """Whose history network."""

    policy: Positional[Path]
    """Folder of a policy."""


@dataclass(frozen=True)
class MeasurePolicyConfig(AdaptationConfig, PolicyConfig):
    """What to measure."""

    device: str = "cpu"
    """Of simulation and expert: cpu or cuda:0."""
    json: bool = False
    """Print JSON."""


def measure(argv: list[str], prog: str) -> int:
    """Run the command; returns the exit code."""
    config = run_tyro(MeasurePolicyConfig, argv, prog, _DESCRIPTION)
    chosen = AdaptationConfig(**{item.name: getattr(config, item.name) for item in fields(AdaptationConfig)})
    found = measure_adaptation(config.policy, chosen, config.device)
    if config.json:
        emit_json({"policy": str(config.policy), **found.described()})
    else:
        _show(found)
    return 0


def _show(found: Adaptation) -> None:
    names = ("nominal", f"{100.0 * found.config.payload:+g} % mass")
    known = zip(names, (found.nominal, found.payload), strict=True)
    rows = [(name, item.mean, item.std, item.true, 100.0 * item.error) for name, item in known]
    show_table("Force of a rotor over mass [N/kg]", ("drone", "estimated", "std", "true", "error [%]"), rows)
    share = 100.0 * found.payload_share
    print(f"Of the way to the true value under the payload: {share:.1f} % (published, on real flights: 72 %).")
    show_table(
        "A payload in mid-flight",
        ("time since then", "of the way [%]"),
        [(k, 100.0 * v) for k, v in found.response.items()],
    )


# -----------------------------------------------------------------------------------------------------------------------------

PROG = "airworthy train"
KINDS = {
    "hover": "a policy that commands motors and holds a place, for any vehicle, from nothing, in about a second",
    "foundation": "one such policy for all quadrotors, learnt on drawn ones, in about a minute",
    "distill": "one such policy of several teachers, each of one vehicle, in a minute or two",
    "race": "a pilot that flies the AlphaPilot race by its estimates, without plan or solver, in minutes",
    "motor_command": "a policy for Aerial Gym's motor-command task as published, by reward, in minutes",
    "avoid": "a policy that sees a small depth image and flies fast through obstacles, from nothing, in minutes",
    "agile_autonomy": "a student of the sampling expert: from a depth image to trajectories of one second, in half an hour",
    "depth_navigation": "a policy that flies through rooms of obstacles by a depth camera, by reward",
    "lidar_navigation": "the same by a LiDAR",
    "dce": "the Deep Collision Encoder that depth_navigation may read images by",
    "visuomotor": "a policy that flies a course by sight, in a place of one's own, from nothing, in ten minutes",
    "backbone": "convolutions that see, pre-trained on drawn places, for visuomotor --features",
    "svnet": "SV-Net, a visuomotor policy, from expert data (airworthy synthesize)",
    "boundary": "a network from gates to speeds and times, from labelled situations (airworthy synthesize gates)",
    "adaptation": "no training: what the history network of a trained SV-Net knows in flight",
}
ALL = "all"
_TRAIN_DESCRIPTION = (
    "Train SV-Net from a data set of expert roll-outs: first its history network learns the drone's parameters, then the rest"
    " learns the expert's commands. Defaults are the published values. A stopped run goes on where it was, and gives the same"
    " weights as one that was not stopped."
)


@dataclass(frozen=True)
class DataConfig:
    """What to train from."""

    data: Positional[Path]
    """Folder of a data set."""


@dataclass(frozen=True)
class TrainSvNetConfig(SvNetOptions, DataConfig):
    """What to train, and how."""

    variant: str = "sv_net"
    """sv_net, no_rma, no_pretrain, no_latent, hp_net, or all: one after the other, each in a folder of its own below --out."""
    out: Path = Path("runs/svnet")
    """Folder for weights.safetensors, contract.json, report.html, training.jsonl."""
    run: OmitArgPrefixes[RunOptions] = field(default_factory=RunOptions)
    """Where, and for how long."""
    resume: bool = True
    """Go on with a training that was stopped; --no-resume refuses a folder that holds one."""
    verify: bool = True
    """Compare every file of the data with its checksum first."""
    json: bool = False
    """Print JSON, and no progress."""

    def __post_init__(self) -> None:
        if self.variant != ALL:
            super().__post_init__()

    def options(self, name: str) -> SvNetOptions:
        """Return the options of one variant; of all, without what this one has no use for."""
        chosen = {item.name: getattr(self, item.name) for item in fields(SvNetOptions)}
        made = SvNetOptions(**{**chosen, "variant": name})
        return without_idle(made, IDLE_RULES) if self.variant == ALL else made

    def command(self, name: str, out: Path) -> str:
        """Return the exact command that makes a variant again."""
        one = replace(self, out=out, **asdict(self.options(name)))
        return command_line(f"{PROG} svnet", one, leave_out=("run", "resume", "verify", "json"), positional=("data",))


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    kind_name = argv[0] if argv and not argv[0].startswith("-") else ""
    if not kind_name:
        print(_help())
        return 0 if argv and argv[0] in ("-h", "--help") else 2
    refuse_path(kind_name)
    if kind_name not in KINDS and is_learning_task(kind_name):
        from airworthy.cli.learning.train_task import main as train_task

        return train_task(argv)
    if kind_name not in KINDS:
        raise unknown_name(
            "kind of network", kind_name, (*KINDS, *_tasks()), f"It is the first word: {PROG} svnet DATA --out FOLDER."
        )
    if kind_name == "adaptation":
        return measure(argv[1:], f"{PROG} {kind_name}")
    if kind_name == "hover":
        from airworthy.cli.learning.train_hover import main as train_hover

        return train_hover(argv[1:])
    if kind_name == "motor_command":
        from airworthy.cli.learning.train_hover import main_motor_command

        return main_motor_command(argv[1:])
    if kind_name == "foundation":
        from airworthy.cli.learning.train_foundation import main as train_foundation

        return train_foundation(argv[1:])
    if kind_name == "distill":
        from airworthy.cli.learning.train_distill import main as train_distill

        return train_distill(argv[1:])
    if kind_name == "race":
        from airworthy.cli.learning.train_race import main as train_race

        return train_race(argv[1:])
    if kind_name == "avoid":
        from airworthy.cli.learning.train_avoid import main as train_avoid

        return train_avoid(argv[1:])
    if kind_name == "agile_autonomy":
        from airworthy.cli.learning.train_agile_autonomy import main as train_agile_autonomy

        return train_agile_autonomy(argv[1:])
    if kind_name in ("depth_navigation", "lidar_navigation"):
        from airworthy.cli.learning.train_navigation import main as train_navigation

        return train_navigation(argv)
    if kind_name == "dce":
        from airworthy.cli.learning.train_navigation import main_encoder

        return main_encoder(argv[1:])
    if kind_name == "visuomotor":
        from airworthy.cli.learning.train_visuomotor import main as train_visuomotor

        return train_visuomotor(argv[1:])
    if kind_name == "backbone":
        from airworthy.cli.learning.train_backbone import main as train_backbone

        return train_backbone(argv[1:])
    if kind_name == "boundary":
        from airworthy.cli.learning.train_boundary import main as train_boundary

        return train_boundary(argv[1:])
    with raises_in_options(option_fields(TrainSvNetConfig)):
        config = run_tyro(TrainSvNetConfig, argv[1:], f"{PROG} {kind_name}", _TRAIN_DESCRIPTION)
    return _train(config)


def _tasks() -> list[str]:
    """Names of the shipped tasks that have no command of their own."""
    return [task.name for task in SHIPPED if task.name not in KINDS]


def _help() -> str:
    width = max(map(len, KINDS))
    lines = [f"  {name:{width}}  {what}" for name, what in KINDS.items()]
    usage = [
        f"usage: {PROG} hover --vehicle NAME [options]",
        f"       {PROG} foundation [options]",
        f"       {PROG} distill --teachers FOLDER... [options]",
        f"       {PROG} race [options]",
        f"       {PROG} motor_command [options]",
        f"       {PROG} avoid [options]",
        f"       {PROG} agile_autonomy [options]",
        f"       {PROG} depth_navigation [options]",
        f"       {PROG} lidar_navigation [options]",
        f"       {PROG} dce [options]",
        f"       {PROG} visuomotor --scene PLACE --course COURSE [options]",
        f"       {PROG} backbone [options]",
        f"       {PROG} svnet DATA [options]",
        f"       {PROG} boundary LABELS [options]",
    ]
    usage += [f"       {PROG} adaptation POLICY [options]", f"       {PROG} TASK [options]"]
    more = ["", f"tasks, learnt by reward: {', '.join(_tasks())}; or FILE.py:NAME of one's own"]
    return "\n".join([*usage, "", "kinds:", *lines, *more, "", f"  {PROG} KIND --help  its options"])


def _train(config: TrainSvNetConfig) -> int:
    from airworthy.learning.datasets import ExpertDataset

    load_torch()
    names = list(PUBLISHED) if config.variant == ALL else [config.variant]
    places = {name: config.out / name if config.variant == ALL else config.out for name in names}
    if not config.resume:
        refuse_begun(places.values())
    done: list[TrainedSvNet] = []
    with stopped_by_terminate() as received:
        try:
            pairs = ExpertDataset.open(config.data, verify=config.verify)
            for name in names:
                if not config.json and len(names) > 1:
                    print(f"Variant {name}: {VARIANTS[name].summary}.", file=sys.stderr)
                command = config.command(name, places[name])
                done.append(_one(config, pairs, name, places[name], command))
                if not done[-1].finished:
                    break
        except KeyboardInterrupt:
            return interrupted(received, STOPPED)
    if config.variant == ALL and len(done) == len(names) and done[-1].finished:
        make_folder(config.out)
        write_json(config.out / "ablation.json", {"variants": [_row(item) for item in done]})
    _say(config, done)
    return 0


def _one(config: TrainSvNetConfig, pairs: Any, name: str, out: Path, command: str) -> TrainedSvNet:
    from airworthy.learning.svnet import train_svnet

    options = config.options(name)
    run = without_idle(config.run, RUN_RULES, options) if config.variant == ALL else config.run
    return train_svnet(pairs, out, options, run, command, quiet=config.json)


def _row(item: TrainedSvNet) -> dict[str, Any]:
    figures, known = item.figures, item.figures.get("history_full") or {}
    explained = 1.0 - figures["command_mse"] / max(figures["command_mse_of_mean"], 1e-30)
    return {
        "variant": item.variant,
        "command_mse": figures["command_mse"],
        "variance_explained": explained,
        "ratio_error": known.get("ratio_error"),
        "ratio_error_of_mean": known.get("ratio_error_of_mean"),
        "pairs_per_second": figures["pairs_per_second"].get("command"),
        "view": figures["view"],
        "folder": str(item.folder),
    }


def _say(config: TrainSvNetConfig, done: list[TrainedSvNet]) -> None:
    last = done[-1]
    if config.json:
        whole = [item for item in done if item.finished]
        left = {} if last.finished else {"minibatches": last.minibatches, "total": last.total}
        emit_json({"finished": last.finished, **left, "variants": [_row(item) | {"figures": item.figures} for item in whole]})
        return
    rows = [_row(item) for item in done if item.finished]
    if rows:
        columns = ("variant", "held-out MSE", "explained [%]", "k/m error [%]", "of the mean k/m [%]", "pairs/s learnt")
        show_table("", columns, [_cells(row) for row in rows])
    for item in done:
        if item.finished:
            print(f"Weights: {item.folder / 'weights.safetensors'}, report: {item.folder / 'report.html'}")
    if not last.finished:
        share = 100.0 * last.minibatches / max(last.total, 1)
        print(
            f"Stopped after the minutes it was given, at {share:.1f} % of {last.variant}; the same command goes on from there."
        )


def _cells(row: dict[str, Any]) -> list[Any]:
    speed = None if row["pairs_per_second"] is None else round(row["pairs_per_second"])
    percent = [None if row[name] is None else 100.0 * row[name] for name in ("ratio_error", "ratio_error_of_mean")]
    return [row["variant"], row["command_mse"], 100.0 * row["variance_explained"], *percent, speed]
