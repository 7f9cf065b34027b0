"""`airworthy train avoid`: from nothing to a policy that sees a small depth image and flies fast through obstacles."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tyro.conf import OmitArgPrefixes

from airworthy.cli.common import emit_json, option_fields, run_tyro, show_table
from airworthy.cli.learning.seed_trainings import how_to_fly, until_stopped
from airworthy.cli.learning.train import load_torch
from airworthy.core.jobs.progress import command_line
from airworthy.core.keyword_messages import raises_in_options
from airworthy.evaluation import wilson_interval
from airworthy.learning.avoid import AvoidOptions, AvoidRunOptions
from airworthy.tasks.declared_metrics import metric

__all__ = ["main"]

PROG = "airworthy train avoid"
_DESCRIPTION = (
    "Learn to fly fast through obstacles from a depth image of 12 x 16, by the gradient of flights of a point mass through"
    " places that grow denser with what is mastered. Then judge the policy as a full rigid body in forests that it has not"
    " seen. A stopped training goes on where it was, to the same bits as one that was not stopped."
)
_KEPT = "the policy as it is lies"


@dataclass(frozen=True)
class TrainAvoidConfig(AvoidOptions):
    """What to learn, and how."""

    out: Path = Path("runs/avoid")
    """Folder for the policy, summary.json, metrics.jsonl, report.html."""
    flights: int = 100
    """Of each speed and density, on which it is judged."""
    speeds: tuple[float, ...] = (4.0, 8.0)
    """Speed caps at which it is judged, in metres per second."""
    areas: tuple[float, ...] = (5.0, 3.3, 2.5)
    """Densities in which it is judged: square metres per tree."""
    run: OmitArgPrefixes[AvoidRunOptions] = field(default_factory=AvoidRunOptions)
    """For how long."""
    json: bool = False
    """Print JSON, and no progress."""

    def options(self) -> AvoidOptions:
        """Return the options of the training."""
        return AvoidOptions(**{item.name: getattr(self, item.name) for item in fields(AvoidOptions)})


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    # What does not fit is told by the parts that the options are made into, some of them when it begins.
    with raises_in_options(option_fields(TrainAvoidConfig)):
        return _asked(argv)


def _asked(argv: list[str]) -> int:
    config = run_tyro(TrainAvoidConfig, argv, PROG, _DESCRIPTION)
    load_torch()
    from airworthy.learning.avoid.evaluation import AvoidProtocol
    from airworthy.learning.avoid.run import train_avoid

    command = command_line(PROG, config, leave_out=("run", "json"), always=("out",))
    protocol = AvoidProtocol(flights=config.flights, speeds=config.speeds, areas=config.areas)
    told: dict[str, Any] = {"command": command, "quiet": config.json}
    return until_stopped(
        config.out,
        lambda: [train_avoid(config.out, config.options(), protocol, config.run.training_run, **told)],
        lambda done: _say(config, done[0]),
        _KEPT,
    )


def _say(config: TrainAvoidConfig, done: Any) -> None:
    if config.json:
        emit_json({"folder": str(done.folder), "finished": done.finished, "iterations": done.iteration, **done.figures})
        return
    if not done.finished:
        print(f"Stopped after the minutes it was given, at step {done.iteration:,}; the same command goes on from there.")
        return
    columns = (
        "speed cap [m/s]",
        "m^2 per tree",
        "success [%]",
        "interval",
        "touched [%]",
        "left [%]",
        "late [%]",
        metric("speed_mean_m_s").heading(),
    )
    rows: list[tuple[Any, ...]] = []
    for row in done.figures["flights"]:
        shares = [100.0 * row[name] / row["flights"] for name in ("success", "touched", "left", "late")]
        # From the counts: summaries of earlier versions hold no interval.
        rate = wilson_interval(row["success"], row["flights"])
        within = f"{100.0 * rate.low:.0f} to {100.0 * rate.high:.0f}"
        rows.append((row["speed_m_s"], row["area_m2"], shares[0], within, *shares[1:], row["mean_speed_m_s"]))
    show_table(f"avoid, {done.figures['training_wall_s']:.0f} s of training", columns, rows)
    print(how_to_fly(done.folder, done.report, "avoid"))
