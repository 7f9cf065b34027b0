"""What all commands share that train one seed or several and leave a page: options, the run itself, JSON, and what is said."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from airworthy.cli.common import NOTHING_LEARNT, emit_json, interrupted_training, show_table, stopped_by_terminate
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.held_figures import telling_figures
from airworthy.learning.seeds import SEEDS_MAX
from airworthy.learning.timed_training import SUMMARY_FILE, Trained

__all__ = [
    "NOT_REPEATED", "SeedOptions", "StopOptions", "how_to_fly", "say_trained", "seed_commands", "trained_rows", "until_stopped",
]  # fmt: skip

NOT_REPEATED = ("json", "minutes", "tensorboard")
"""Options that change nothing of what is learnt: left out of the command that makes it again."""


@dataclass(frozen=True)
class StopOptions:
    """How long it learns at most, and what it writes besides."""

    minutes: Annotated[float, Bound(0.0)] = 0.0
    """Stop after this long, with a checkpoint to go on from [min]; 0: when it is finished."""
    tensorboard: bool = False
    """Write event files of TensorBoard, too, with torch, to tensorboard/ in the folder."""
    json: bool = False
    """Print JSON, and no progress."""

    def __post_init__(self) -> None:
        check_fields(self)
        # Mixed into options of a training, which have more to check.
        if more := getattr(super(), "__post_init__", None):
            more()

    @property
    def told(self) -> dict[str, Any]:
        """Keywords of the function that trains."""
        return {"minutes": self.minutes, "tensorboard": self.tensorboard, "quiet": self.json}


@dataclass(frozen=True)
class SeedOptions(StopOptions):
    """How many seeds, too."""

    seeds: Annotated[int, Bound(1, SEEDS_MAX)] = 1
    """Train so many, from --seed on, each in a folder of its own below --out; the summary there has all of them."""


def how_to_fly(folder: Path, report: Path, kind: str = "policy", what: str = "Policy", vehicle: str = "") -> str:
    """Return where a policy lies, what a shell is told to fly it, and where its page is.

    Args:
        folder: Of the policy.
        report: Of its page.
        kind: Before the folder in --pilot: "policy", "avoid".
        what: It is called.
        vehicle: The option that names who flies, where any may.
    """
    pilot = shlex.quote(f"{kind}:{folder}")
    return f"{what}: {folder}, to fly with {f'{vehicle} ' if vehicle else ''}--pilot {pilot}; report: {report}"


def seed_commands(config: Any, folder: Path) -> list[str]:
    """Return the command of each seed alone."""
    seeds = range(config.seed, config.seed + config.seeds)
    return [replace(config, seeds=1, seed=k, out=folder / f"seed_{k}").command() for k in seeds]


def until_stopped(
    folder: Path,
    train: Callable[[], list[Trained]],
    say: Callable[[list[Trained]], None],
    kept: str = "the policy as it is lies",
    early: str = NOTHING_LEARNT,
) -> int:
    """Train, and say what came of it; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate.

    Args:
        folder: Where it is kept.
        train: Does it.
        say: Says it.
        kept: What lies in the folder of a training that was stopped.
        early: Said of one that was stopped before there were weights.
    """
    with stopped_by_terminate() as received:
        try:
            done = train()
        except KeyboardInterrupt:
            return interrupted_training(received, folder, kept, early)
    held = [item.folder for item in done if item.read_back]
    # Which of several lacks a figure is seen by asking for it alone.
    with (
        telling_figures(held[0] / SUMMARY_FILE if len(held) == 1 else folder / "seed_*" / SUMMARY_FILE)
        if held
        else nullcontext()
    ):
        say(done)
    return 0


def trained_rows(config: SeedOptions, folder: Path, done: list[Trained]) -> None:
    """Print as JSON what came of one seed, or of several.

    Args:
        config: What was asked for.
        folder: Where several seeds are kept.
        done: One per seed.
    """
    rows = [
        {"folder": str(item.folder), "finished": item.finished, "iterations": item.iteration, **item.figures} for item in done
    ]
    emit_json(rows[0] if config.seeds == 1 else {"folder": str(folder), "seeds": rows})


def drawn_lines(item: Trained) -> list[str]:
    """Return what draws of an identified vehicle left out, a sentence each; none where hardly any was rejected."""
    return [told["said"] for told in item.figures.get("identified_draws", ()) if told["said"]]


def say_trained(
    title: str,
    columns: tuple[str, ...],
    rows: list[tuple[Any, ...]],
    done: list[Trained],
    lines: Callable[[Trained], Iterable[str]],
) -> None:
    """Print a table of the seeds that are finished, and lines on each, or that the last was stopped.

    Args:
        title: Of the table.
        columns: Their heads.
        rows: Of finished seeds.
        done: All.
        lines: What to say of one, before where its policy lies.
    """
    if rows:
        show_table(title, columns, rows)
    last = done[-1]
    if not last.finished:
        print(f"Stopped after the minutes it was given, at iteration {last.iteration:,}; the same command goes on from there.")
        return
    for item in done:
        for line in lines(item):
            print(line)
