"""`airworthy synthesize`: expert roll-outs with what the drone sees -> a data set to train on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from tyro.conf import Positional

from airworthy.cli.common import emit_json, interrupted, run_tyro, show_table, stopped_by_terminate
from airworthy.core.errors import unknown_name
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.jobs.progress import command_line
from airworthy.learning.datasets import DatasetConfig, ExpertDataset, Made, synthesize_dataset
from airworthy.learning.datasets.config import with_preset
from airworthy.learning.datasets.dropped import dropped_of

PROG = "airworthy synthesize"
_DESCRIPTION = (
    "Fly the expert with other drones from other states along a course, render what it sees, and write a data set to train on:"
    " SOUS VIDE's Algorithm 1 with its published values. A stopped run goes on where it was. Also: airworthy synthesize check"
    " FOLDER | card FOLDER | export FOLDER; airworthy synthesize gates, which labels gate-to-gate situations."
)
GATES = "gates"


@dataclass(frozen=True)
class SynthesizeDatasetConfig(DatasetConfig):
    """What to make, and how."""

    out: Path = Path("runs/synthesize")
    """Folder of the data set."""
    workers: int = 1
    """Processes, which share the processors; the data are the same."""
    device: str = "cpu"
    """Where roll-outs and images are computed: cpu or an NVIDIA GPU (cuda:0)."""
    cluster: str | None = None
    """Make shards on a Ray cluster whose machines all see the folder: auto, local or HOST:PORT (extra 'cluster')."""
    repair: bool = False
    """Make damaged shards again, instead of refusing them."""
    preset: Literal["published", "own", "look"] = "published"
    """Values of all options that are at their defaults: as published; own, for a place and course of one's own, 35,000 small
    images of an 11 s course in varied light; look, a few dozen roll-outs to see what it looks like."""
    course_check: Literal["refuse", "warn", "none"] = "refuse"
    """Of a course on which the vehicle would meet something in the scene: refuse it with point, time and distance, warn, or
    none, which does not look."""
    card: bool = True
    """Write card.html: what is in it, to look at."""
    json: bool = False
    """Print JSON, and no progress."""

    def dataset(self) -> DatasetConfig:
        """Return the part that the data depend on."""
        chosen = DatasetConfig(**{field.name: getattr(self, field.name) for field in fields(DatasetConfig)})
        return with_preset(chosen, self.preset)

    def command(self) -> str:
        """Return the exact command that makes the data set again."""
        return command_line(PROG, self, leave_out=("json", "repair", "course_check"))


PLACE_RULES = (
    IdleRule(("course_check",), lambda config: config.view == "none", "with --view none, where there is no place to check"),
    IdleRule(
        ("preset",),
        lambda config: config.dataset() == replace(config, preset="published").dataset(),
        "beside the other options, which say all that it would",
    ),
)
"""Options of `airworthy synthesize` alone that change nothing beside the others."""


@dataclass(frozen=True)
class FolderConfig:
    """Which data set."""

    folder: Positional[Path]
    """Of a finished data set."""
    json: bool = False
    """Print JSON."""


@dataclass(frozen=True)
class ExportDatasetConfig(FolderConfig):
    """What to export, and how."""

    out: Path = Path("runs/lerobot")
    """Folder to write; it must be empty or not there."""
    images: str = "png"
    """How images are kept: png (lossless, inside the tables) or video (mp4, smaller, not exact; extra 'video')."""


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    commands: dict[str, tuple[type, Callable[[Any], int], str]] = {
        "make": (SynthesizeDatasetConfig, _make, _DESCRIPTION),
        "check": (FolderConfig, _check, "Compare every file of a data set with its checksum."),
        "card": (FolderConfig, _card, "Write the card of a data set again."),
        "export": (ExportDatasetConfig, _export, "Write a data set in the layout of LeRobot v3.0."),
    }
    subcommand = argv[0] if argv and not argv[0].startswith("-") else ""
    if not subcommand:
        return _make(run_tyro(SynthesizeDatasetConfig, argv, PROG, _DESCRIPTION))
    if subcommand == GATES:
        from airworthy.cli.learning.synthesize_gates import main as synthesize_gates

        return synthesize_gates(argv[1:])
    if subcommand not in commands:
        raise unknown_name(f"'{PROG}' subcommand", subcommand, [*commands, GATES])
    kind, run, description = commands[subcommand]
    return run(run_tyro(kind, argv[1:], f"{PROG} {subcommand}", description))


def _make(config: SynthesizeDatasetConfig) -> int:
    from airworthy.learning.datasets.job import write_run

    refuse_idle(config, PLACE_RULES)
    with stopped_by_terminate() as received:
        try:
            made = synthesize_dataset(
                config.dataset(),
                config.out,
                workers=config.workers,
                device=config.device,
                cluster=config.cluster,
                repair=config.repair,
                course_check=config.course_check,
                quiet=config.json,
            )
            run = write_run(made, config.command(), config.workers)
            card = None
            if config.card and made.complete and not made.interrupted:
                card = _written_card(made.folder)
        except KeyboardInterrupt:  # before the first shard, or while the card is made
            return interrupted(received, "Interrupted: what is finished is kept; the same command goes on from there.")
    if config.json:
        emit_json({"folder": str(made.folder), **run, "card": None if card is None else str(card)})
    else:
        _show(made, run, card)
        _explain(made)
    if made.interrupted:
        left = made.shard_count - len(made.shards)
        return interrupted(received, f"Interrupted: finished shards are kept; the same command makes the other {left}.")
    _warn(config, made)
    return 0


def _warn(config: SynthesizeDatasetConfig, made: Made) -> None:
    """Say what makes a data set that cannot be trained on."""
    courses = {item.course for item in made.shards}
    if not made.total("pairs"):
        print(
            "Nothing was kept: there is nothing to train on; raise --keep-within, or begin nearer the course.", file=sys.stderr
        )
    elif made.shard_count == len(courses):
        print(
            f"All of it is held out, since the last shard of a course is: make --shard smaller than {config.shard}, or more"
            " roll-outs, to have something to train on.",
            file=sys.stderr,
        )


def _show(made: Made, run: dict[str, Any], card: Path | None) -> None:
    flown = made.total("rollouts")
    rows: list[tuple[str, Any, str]] = [
        ("shards", len(made.shards), f"of {made.shard_count}, {made.new['shards']} of them new"),
        ("roll-outs kept", made.total("kept"), f"of {flown:,} flown, {100.0 * made.total('kept') / max(flown, 1):.2f} %"),
        ("pairs", made.total("pairs"), ""),
        ("this run [s]", made.seconds, f"{run['pairs_per_second']:,.0f} pairs/s" if made.new["pairs"] else ""),
    ]
    total = sum(made.stages.values()) or 1.0
    rows += [(f"  {name} [s]", seconds, f"{100.0 * seconds / total:.0f} %") for name, seconds in run["stages_s"].items()]
    show_table("", ("", "", ""), rows)
    print(f"Data set: {made.folder}" if card is None else f"Data card: {card}")


def _explain(made: Made) -> None:
    """Say why roll-outs were not kept, and what would keep more."""
    if not made.complete or made.total("kept") == made.total("rollouts"):
        return
    dataset = ExpertDataset.open(made.folder, verify=False)
    drone = dataset.vehicle
    for item in dropped_of(dataset.config, dataset.flown, drone.rotor_count, drone.gravity):
        for line in item.lines(dataset.config):
            print(line)


def _check(config: FolderConfig) -> int:
    dataset = ExpertDataset.open(config.folder)
    facts = {"rollouts": dataset.rollouts, "pairs": dataset.count, "shards": len(dataset.shards), "sha256": dataset.digest}
    if config.json:
        emit_json({"folder": str(config.folder), **facts})
    else:
        print(f"Whole: {dataset.count:,} pairs of {dataset.rollouts:,} roll-outs in {len(dataset.shards)} shards.")
    return 0


def _card(config: FolderConfig) -> int:
    card = _written_card(config.folder)
    if config.json:
        emit_json({"card": str(card)})
    else:
        print(f"Data card: {card}")
    return 0


def _written_card(folder: Path) -> Path:
    from airworthy.learning.datasets.card import write_card

    return write_card(ExpertDataset.open(folder, verify=False))


def _export(config: ExportDatasetConfig) -> int:
    from airworthy.learning.datasets.lerobot import export_lerobot

    done = export_lerobot(ExpertDataset.open(config.folder), config.out, config.images, quiet=config.json)
    if config.json:
        emit_json(done)
    else:
        print(f"LeRobot {done['codebase_version']}: {done['episodes']:,} episodes, {done['frames']:,} frames in {config.out}")
    return 0
