"""`airworthy train race`: a race pilot that needs neither plan nor solver."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from airworthy.cli.common import emit_json, option_fields, run_tyro, show_table
from airworthy.core.jobs.progress import command_line
from airworthy.core.keyword_messages import raises_in_options
from airworthy.core.schema import Bound

_begun = time.perf_counter()

from airworthy.cli.learning.seed_trainings import NOT_REPEATED, StopOptions, until_stopped  # noqa: E402
from airworthy.learning.timed_training import Trained  # noqa: E402 - behind the clock: how long loading takes is told
from airworthy.race.learned.config import RacePolicyOptions  # noqa: E402
from airworthy.race.learned.run import train_race  # noqa: E402

_import_s = time.perf_counter() - _begun

__all__ = ["main"]

PROG = "airworthy train race"
_DESCRIPTION = (
    "Learn to fly the AlphaPilot race from estimates of the own state and of the gates: the expert, a stored plan moved with"
    " the gates and its tracker, says what it would have done where the policy comes to (DAgger). With --trainer ppo it goes"
    " on by reward, for time and against passing close to edges. No solver runs. A stopped training goes on where it was, to"
    " the same bits as one that was not stopped."
)


@dataclass(frozen=True)
class TrainRaceConfig(StopOptions, RacePolicyOptions):
    """How it learns, and where it is kept."""

    out: Path = Path("runs/race_policy")
    """Folder for the policy, report.html, summary.json, metrics.jsonl."""
    judged: Annotated[int, Bound(1, 10_000)] = 64
    """Flights on which it is judged."""

    def command(self) -> str:
        """Return the exact command that makes it again."""
        return command_line(PROG, self, leave_out=NOT_REPEATED, always=("out",))


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    with raises_in_options(option_fields(TrainRaceConfig)):
        config = run_tyro(TrainRaceConfig, argv, PROG, _DESCRIPTION)
    options = RacePolicyOptions(**{item.name: getattr(config, item.name) for item in fields(RacePolicyOptions)})
    told = {"command": config.command(), "import_s": _import_s, **config.told}
    return until_stopped(
        config.out,
        lambda: [train_race(config.out, options, config.judged, **told)],
        lambda done: _say(config, done[0]),
    )


def _say(config: TrainRaceConfig, done: Trained) -> None:
    if config.json:
        emit_json({"folder": str(done.folder), "finished": done.finished, "iterations": done.iteration, **done.figures})
        return
    if not done.finished:
        print(f"Stopped after the minutes it was given, at round {done.iteration:,}; the same command goes on from there.")
        return
    found = done.figures
    columns = ("flights", "through", "mean time [s]", "gates passed", "hit", "network [us]")
    row = (
        found["protocol"]["flights"], found["finished_flights"], found["mean_time_s"], found["gates_passed"],
        found["gates_hit"], found["decision_us"],
    )  # fmt: skip
    show_table(f"A race pilot of {found['weights']:,} numbers, {found['training_wall_s']:.0f} s of training", columns, [row])
    print(f"Policy: {done.folder}, to fly with airworthy bench race --pilot policy:{done.folder}; report: {done.report}")
