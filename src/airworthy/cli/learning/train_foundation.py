"""`airworthy train foundation`: from nothing to one policy that commands the rotors of any quadrotor."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from airworthy.cli.common import option_fields, run_tyro
from airworthy.core.jobs.progress import command_line
from airworthy.core.keyword_messages import raises_in_options

_begun = time.perf_counter()

from airworthy.cli.learning import seed_trainings  # noqa: E402
from airworthy.learning.foundation.config import FoundationConfig  # noqa: E402 - behind the clock: how long loading takes is told
from airworthy.learning.foundation.run import train_foundation, train_foundation_seeds  # noqa: E402
from airworthy.learning.timed_training import Trained  # noqa: E402

_import_s = time.perf_counter() - _begun

__all__ = ["main"]

PROG = "airworthy train foundation"
_DESCRIPTION = (
    "Learn one policy that commands the rotors of any quadrotor and holds a place, by the gradient of flights of quadrotors"
    " that are drawn from nothing. Then fly every quadrotor of the catalogue with it, none of which it has seen. A stopped"
    " training goes on where it was, to the same bits as one that was not stopped."
)


@dataclass(frozen=True)
class TrainFoundationConfig(seed_trainings.SeedOptions, FoundationConfig):
    """How it learns, and where it is kept."""

    out: Path = Path("runs/foundation")
    """Folder for the policy, report.html, summary.json, metrics.jsonl."""

    def command(self) -> str:
        """Return the exact command that makes it again."""
        return command_line(PROG, self, leave_out=seed_trainings.NOT_REPEATED, always=("out",))


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    with raises_in_options(option_fields(TrainFoundationConfig)):
        config = run_tyro(TrainFoundationConfig, argv, PROG, _DESCRIPTION)
    told = {"import_s": _import_s, **config.told}

    def train() -> list[Trained]:
        if config.seeds == 1:
            options = config.options(config.seed)
            return [train_foundation(config.out, options, config.protocol, command=config.command(), **told)]
        plain = FoundationConfig(**{item.name: getattr(config, item.name) for item in fields(FoundationConfig)})
        return train_foundation_seeds(
            config.out, plain, config.seeds, commands=seed_trainings.seed_commands(config, config.out), **told
        )

    return seed_trainings.until_stopped(config.out, train, lambda done: _say(config, done))


def _say(config: TrainFoundationConfig, done: list[Trained]) -> None:
    if config.json:
        seed_trainings.trained_rows(config, config.out, done)
        return
    tour = ("fly the tour",) if config.tour_flights else ()
    columns = ("seed", "learning [s]", "processor [s]", "quadrotors", "held", *tour, "worst median error [cm]")
    rows: list[tuple[Any, ...]] = []
    for f in (one.figures for one in done if one.finished):
        worst = f["worst_median_error_m"]
        counts = f["quadrotors"], f["held"], *((f.get("tour_flown"),) if tour else ())
        rows.append((f["seed"], f["training_wall_s"], f["training_cpu_s"], *counts, None if worst is None else 100.0 * worst))
    seed_trainings.say_trained("One policy for all quadrotors", columns, rows, done, _lines)


def _lines(item: Trained) -> Iterator[str]:
    missed = [row["vehicle"] for row in item.figures["vehicles"] if not row["held"]]
    yield f"Not held: {', '.join(missed)}." if missed else "Every quadrotor of the catalogue is held."
    yield seed_trainings.how_to_fly(item.folder, item.report, vehicle="--vehicle ANY-quadrotor")
