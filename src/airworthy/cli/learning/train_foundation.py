"""`airworthy train foundation`: from nothing to one policy that commands the rotors of any quadrotor."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

from airworthy.cli.common import emit_json, interrupted_training, option_fields, run_tyro, show_table, stopped_by_terminate
from airworthy.core.keyword_messages import raises_in_options
from airworthy.core.runs.progress import command_line
from airworthy.core.schema import Bound

_begun = time.perf_counter()

from airworthy.learning.foundation.config import FoundationConfig  # noqa: E402 - behind the clock: how long loading takes is told
from airworthy.learning.foundation.run import TrainedFoundation, train_foundation, train_foundation_seeds  # noqa: E402
from airworthy.learning.gradient.config import SEEDS_MAX  # noqa: E402

_import_s = time.perf_counter() - _begun

__all__ = ["main"]

PROG = "airworthy train foundation"
_DESCRIPTION = (
    "Learn one policy that commands the rotors of any quadrotor and holds a place, by the gradient of flights of quadrotors"
    " that are drawn from nothing. Then fly every quadrotor of the catalogue with it, none of which it has seen. A stopped"
    " training goes on where it was, to the same bits as one that was not stopped."
)
_KEPT = "the policy as it is lies"


@dataclass(frozen=True)
class TrainFoundationConfig(FoundationConfig):
    """How it learns, and where it is kept."""

    out: Path = Path("runs/foundation")
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


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    with raises_in_options(option_fields(TrainFoundationConfig)):
        config = run_tyro(TrainFoundationConfig, argv, PROG, _DESCRIPTION)
    told: dict[str, Any] = {
        "import_s": _import_s,
        "minutes": config.minutes,
        "tensorboard": config.tensorboard,
        "quiet": config.json,
    }
    with stopped_by_terminate() as received:
        try:
            if config.seeds == 1:
                options = config.options(config.seed)
                done = [train_foundation(config.out, options, config.protocol, command=config.command(), **told)]
            else:
                plain = FoundationConfig(**{item.name: getattr(config, item.name) for item in fields(FoundationConfig)})
                each = range(config.seed, config.seed + config.seeds)
                commands = [replace(config, seeds=1, seed=k, out=config.out / f"seed_{k}").command() for k in each]
                done = train_foundation_seeds(config.out, plain, config.seeds, commands=commands, **told)
        except KeyboardInterrupt:
            return interrupted_training(received, config.out, _KEPT)
    _say(config, done)
    return 0


def _say(config: TrainFoundationConfig, done: list[TrainedFoundation]) -> None:
    if config.json:
        rows = [
            {"folder": str(item.folder), "finished": item.finished, "iterations": item.iteration, **item.figures}
            for item in done
        ]
        emit_json(rows[0] if config.seeds == 1 else {"folder": str(config.out), "seeds": rows})
        return
    columns = ("seed", "learning [s]", "processor [s]", "quadrotors", "held", "fly the tour", "worst median error [cm]")
    rows_: list[tuple[Any, ...]] = []
    for f in (one.figures for one in done if one.finished):
        worst = f["worst_median_error_m"]
        counts = f["quadrotors"], f["held"], f.get("tour_flown")
        rows_.append((f["seed"], f["training_wall_s"], f["training_cpu_s"], *counts, None if worst is None else 100.0 * worst))
    if rows_:
        show_table("One policy for all quadrotors", columns, rows_)
    last = done[-1]
    if not last.finished:
        print(f"Stopped after the minutes it was given, at iteration {last.iteration:,}; the same command goes on from there.")
        return
    for item in done:
        missed = [row["vehicle"] for row in item.figures["vehicles"] if not row["held"]]
        print(f"Not held: {', '.join(missed)}." if missed else "Every quadrotor of the catalogue is held.")
        print(f"Policy: {item.folder}, to fly with --vehicle ANY-quadrotor --pilot policy:{item.folder}; report: {item.report}")
