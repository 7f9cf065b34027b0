"""`airworthy train distill`: teachers of one quadrotor each become one student."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from airworthy.cli.common import emit_json, option_fields, run_tyro, show_table
from airworthy.core.jobs.progress import command_line
from airworthy.core.keyword_messages import raises_in_options
from airworthy.core.schema import Bound

_begun = time.perf_counter()

from airworthy.cli.learning.seed_trainings import NOT_REPEATED, StopOptions, how_to_fly, until_stopped  # noqa: E402
from airworthy.learning.distill.config import DistillOptions  # noqa: E402 - behind the clock: how long loading takes is told
from airworthy.learning.distill.run import train_distill  # noqa: E402
from airworthy.learning.timed_training import Trained  # noqa: E402

_import_s = time.perf_counter() - _begun

__all__ = ["main"]

PROG = "airworthy train distill"
_DESCRIPTION = (
    "Make one small policy of several teachers, motor policies of a quadrotor each: the student flies all their vehicles,"
    " teachers say what they would have done where it comes to, and it learns of that (DAgger). Then fly student and teachers"
    " from the same starts. A stopped training goes on where it was, to the same bits as one that was not stopped."
)


@dataclass(frozen=True)
class TrainDistillConfig(StopOptions, DistillOptions):
    """Of whom it learns, how, and where it is kept."""

    teachers: tuple[str, ...] = ()
    """Folders of motor policies (airworthy train hover), one for each vehicle; FILE.toml=FOLDER where the vehicle is no name
    of the catalogue."""
    out: Path = Path("runs/distill")
    """Folder for the student, report.html, summary.json, metrics.jsonl."""
    judged: Annotated[int, Bound(1, 1_000_000)] = 1024
    """Flights of each vehicle, on which student and teacher are judged."""

    def command(self) -> str:
        """Return the exact command that makes it again."""
        return command_line(PROG, self, leave_out=NOT_REPEATED, always=("out",))


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    with raises_in_options(option_fields(TrainDistillConfig)):
        config = run_tyro(TrainDistillConfig, argv, PROG, _DESCRIPTION)
    options = DistillOptions(**{item.name: getattr(config, item.name) for item in fields(DistillOptions)})
    told = {"command": config.command(), "import_s": _import_s, **config.told}
    return until_stopped(
        config.out,
        lambda: [train_distill(config.teachers, config.out, options, config.judged, **told)],
        lambda done: _say(config, done[0]),
        "the student as it is lies",
    )


def _say(config: TrainDistillConfig, done: Trained) -> None:
    if config.json:
        emit_json({"folder": str(done.folder), "finished": done.finished, "iterations": done.iteration, **done.figures})
        return
    if not done.finished:
        print(f"Stopped after the minutes it was given, at round {done.iteration:,}; the same command goes on from there.")
        return
    found = done.figures
    rows: list[tuple[Any, ...]] = []
    for row in found["vehicles"]:
        for who, flown in (("student", row), ("teacher", row["teacher"])):
            errors = (flown[f"{name}_error_m"] for name in ("median", "p95"))
            cells = [None if x is None else 100.0 * x for x in errors]
            rows.append((row["vehicle"], who, flown["kept_percent"], *cells, "yes" if flown["held"] else "no"))
    columns = ("vehicle", "flown by", "kept [%]", "median error [cm]", "95 % error [cm]", "held")
    show_table(f"One student of {found['weights']:,} numbers, {found['training_wall_s']:.0f} s of training", columns, rows)
    missed = [row["vehicle"] for row in found["vehicles"] if not row["held"]]
    print(f"Not held: {', '.join(missed)}." if missed else "Every vehicle is held.")
    print(how_to_fly(done.folder, done.report, what="Student", vehicle="--vehicle NAME"))
