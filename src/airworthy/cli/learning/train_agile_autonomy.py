"""`airworthy train agile_autonomy`: a student of the sampling expert, by flights, epochs and flights of its own."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tyro.conf import OmitArgPrefixes

from airworthy.cli.common import emit_json, option_fields, run_tyro, show_table
from airworthy.cli.learning.seed_trainings import until_stopped
from airworthy.cli.learning.train import load_torch
from airworthy.core.jobs.progress import command_line
from airworthy.core.keyword_messages import raises_in_options
from airworthy.learning.agile_autonomy.config import BASELINES, StudentOptions, StudentProtocol, StudentRunOptions
from airworthy.tasks.declared_metrics import metric

__all__ = ["main"]

PROG = "airworthy train agile_autonomy"
_DESCRIPTION = (
    "Learn trajectories of one second from depth images, as Agile-Autonomy's student does: a sampling expert that knows every"
    " place flies first, then the student itself, and at every instant the expert says what it would do. Then judge it beside"
    " the expert and baselines in layouts that it has not seen. A stopped training goes on where it was, to the same bits as"
    " one that was not stopped."
)
_KEPT = "the student as it is lies"


@dataclass(frozen=True)
class TrainAgileAutonomyConfig(StudentOptions):
    """What to learn, and how."""

    out: Path = Path("runs/agile_autonomy")
    """Folder for the student, summary.json, metrics.jsonl, report.html."""
    speeds: tuple[float, ...] = (4.0, 6.0, 8.0)
    """Speed caps at which it is judged, in metres per second."""
    judged_scenarios: tuple[str, ...] = ("forest", "random_cylinder")
    """Kinds of places in which it is judged."""
    configurations: int = 10
    """Of each kind, the first ones of the benchmark's own layouts."""
    judged_vehicles: tuple[str, ...] = ("real_03", "virt_05")
    """Each flies in every configuration."""
    baselines: tuple[str, ...] = BASELINES
    """Who flies the same flights: expert, blanked (the student with empty images), straight, or pilots of the benchmark."""
    run: OmitArgPrefixes[StudentRunOptions] = field(default_factory=StudentRunOptions)
    """For how long."""
    json: bool = False
    """Print JSON, and no progress."""

    def options(self) -> StudentOptions:
        """Return the options of the training."""
        return StudentOptions(**{item.name: getattr(self, item.name) for item in fields(StudentOptions)})

    def protocol(self) -> StudentProtocol:
        """Return how it is judged."""
        return StudentProtocol(
            speeds=self.speeds,
            scenarios=self.judged_scenarios,
            configurations=self.configurations,
            vehicles=self.judged_vehicles,
            baselines=self.baselines,
        )


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    # What does not fit is told by the parts that the options are made into, some of them when it begins.
    with raises_in_options(option_fields(TrainAgileAutonomyConfig)):
        return _asked(argv)


def _asked(argv: list[str]) -> int:
    config = run_tyro(TrainAgileAutonomyConfig, argv, PROG, _DESCRIPTION)
    options, protocol = config.options(), config.protocol()
    load_torch()
    from airworthy.learning.agile_autonomy.run import train_agile_autonomy

    command = command_line(PROG, config, leave_out=("run", "json"), always=("out",))
    told: dict[str, Any] = {"command": command, "quiet": config.json}
    return until_stopped(
        config.out,
        lambda: [train_agile_autonomy(config.out, options, protocol, config.run.training_run, **told)],
        lambda done: _say(config, done[0]),
        _KEPT,
    )


def _say(config: TrainAgileAutonomyConfig, done: Any) -> None:
    if config.json:
        emit_json({"folder": str(done.folder), "finished": done.finished, "iterations": done.iteration, **done.figures})
        return
    if not done.finished:
        print(f"Stopped after the minutes it was given, at step {done.iteration:,}; the same command goes on from there.")
        return
    columns = (
        "pilot",
        "place",
        "speed cap [m/s]",
        "success [%]",
        "interval",
        "collision [%]",
        metric("speed_mean_m_s").heading(),
    )
    rows: list[tuple[Any, ...]] = []
    for row in done.figures["flights"]:
        low, high = row["success_interval_percent"]
        shares = [100.0 * row[name] / row["flights"] for name in ("success", "collision")]
        head = (row["pilot"], row["scenario"], row["speed_m_s"], shares[0])
        rows.append((*head, f"{low:.0f} to {high:.0f}", shares[1], row["mean_speed_m_s"]))
    show_table(f"agile_autonomy, {done.figures['training_wall_s']:.0f} s of training", columns, rows)
    print(f"Fly it: airworthy fly --scene forest:1 --pilot agile_autonomy:{done.folder}\nReport: {done.report}")
