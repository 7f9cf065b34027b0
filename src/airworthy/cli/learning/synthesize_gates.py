"""`airworthy synthesize gates`: the best speed and duration of every three-gate situation, by simulated flight."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from airworthy.cli.common import emit_json, interrupted, run_tyro, show_table, stopped_by_terminate
from airworthy.core.jobs.progress import command_line
from airworthy.gates.labels.config import GateLabelsConfig

PROG = "airworthy synthesize gates"
_DESCRIPTION = (
    "Label three-gate situations with the cheapest speed and duration: BoundaryPredictor's Algorithm 1 with its published"
    " values. Every candidate that keeps the acceleration limit and can still win is flown with the Mellinger loop at 500 Hz."
    " A stopped run goes on where it was."
)


@dataclass(frozen=True)
class SynthesizeGatesConfig(GateLabelsConfig):
    """What to make, and how."""

    out: Path = Path("runs/gates")
    """Folder of the labels."""
    workers: int = 1
    """Processes, which share the processors; the labels are the same."""
    device: str = "cpu"
    """Where flights are computed: cpu or an NVIDIA GPU (cuda:0)."""
    repair: bool = False
    """Make damaged files again, instead of refusing them."""
    report: bool = True
    """Write report.html."""
    json: bool = False
    """Print JSON, and no progress."""

    def search(self) -> GateLabelsConfig:
        """Return the part that the labels depend on."""
        return GateLabelsConfig(**{field.name: getattr(self, field.name) for field in fields(GateLabelsConfig)})


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    from airworthy.gates.labels.job import synthesize_gates

    config = run_tyro(SynthesizeGatesConfig, argv, PROG, _DESCRIPTION)
    command = command_line(PROG, config, leave_out=("json", "repair", "workers"))
    with stopped_by_terminate() as received:
        try:
            made = synthesize_gates(
                config.search(),
                config.out,
                workers=config.workers,
                device=config.device,
                repair=config.repair,
                report=config.report,
                quiet=config.json,
                command=command,
            )
        except KeyboardInterrupt:  # before the first shard
            return interrupted(received, "Interrupted: what is finished is kept; the same command goes on from there.")
    if config.json:
        about = {key: made.about[key] for key in ("digest", "complete", "counts", "shares", "trials")}
        emit_json({"folder": str(made.folder), "new": made.new, "seconds": made.seconds, **about})
    else:
        _show(made, config.report)
    if made.interrupted:
        left = made.shard_count - made.shards
        return interrupted(received, f"Interrupted: finished files are kept; the same command makes the other {left}.")
    return 0


def _show(made: Any, report: bool) -> None:
    counts, shares = made.about["counts"], made.about["shares"]
    rows: list[tuple[str, Any, str]] = [("files", made.shards, f"of {made.shard_count}")]
    if counts:
        rows += [
            ("situations", counts["situations"], f"{counts['without_candidate']:,} without a candidate"),
            ("admissible candidates", counts["admissible"], f"of {counts['candidates']:,}"),
            ("saturated", counts["saturated"], f"{counts['saturated_analytic']:,} by the limit alone"),
            ("crashed, gate skipped", counts["crashed"], f"{counts['skipped']:,} skipped"),
            ("changed by simulation", counts["changed"], f"{100.0 * shares['changed']:.2f} % of the situations"),
            ("within reach", shares["within_reach_mean"], "candidates per situation"),
        ]
    if made.new["situations"]:
        seconds = max(made.seconds, 1e-9)
        rows.append(("this run [s]", made.seconds, f"{made.new['steps'] / seconds:,.0f} steps/s"))
        rows.append(("rollouts", made.new["rollouts"], f"{made.new['rollouts'] / seconds:,.0f} per second"))
    for name, trial in made.about["trials"].items():
        share = trial["shares"]
        rows.append(
            (
                f"randomisation {name}",
                f"{100.0 * share['changed']:.2f} %",
                f"changed; {share['within_reach_mean']:.2f} in reach",
            )
        )
    show_table("", ("", "", ""), rows)
    print(
        f"Report: {made.folder / 'report.html'}"
        if report and made.complete and not made.interrupted
        else f"Labels: {made.folder}"
    )
