"""`airworthy bench navigation`: fly the benchmark; `airworthy bench smoke`: a small one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from airworthy.benchmarks.navigation.config import NavigationConfig, quick
from airworthy.benchmarks.navigation.job import Benchmarked, run_benchmark
from airworthy.cli.common import (
    PILOT_FAILED,
    emit_json,
    flown_exit,
    gathered,
    interrupted,
    run_tyro,
    show_table,
    stopped_by_terminate,
)
from airworthy.core.errors import AirworthyError

LISTS = ("--pilots", "--vehicles", "--scenarios", "--configurations", "--scenes")
_DESCRIPTION = (
    "Fly pilots on a fleet of vehicles through the scenarios of FLYINGTRUST, judge every flight, and set scores and rates"
    " beside the published ones. A stopped run goes on where it was; more pilots may join a folder later."
)
_TOLD_MAX = 12
"""Ours: lines of a terminal that leave its table in sight."""
_SMOKE = "The same with four vehicles and the first layout of each scenario, for a look."


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 1 where a pilot failed, 130 after Ctrl-C, 143 after a request to terminate."""
    return _run(run_tyro(NavigationConfig, gathered(argv, LISTS), "airworthy bench navigation", _DESCRIPTION))


def smoke(argv: list[str]) -> int:
    """Return the same with `--quick` and a folder of its own."""
    config = run_tyro(NavigationConfig, gathered(argv, LISTS), "airworthy bench smoke", _SMOKE)
    if config.quick:
        raise AirworthyError("--quick changes nothing for airworthy bench smoke, which is quick by itself: leave it out.")
    out = Path("runs/navigation_smoke") if config.out == NavigationConfig().out else config.out
    small = quick(replace(config, quick=True, out=out))
    return _run(replace(small, quick=False))


def _run(config: NavigationConfig) -> int:
    with stopped_by_terminate() as received:
        done = run_benchmark(config, quiet=config.json)
    if config.json:
        emit_json(_json_summary(done))
    else:
        _show(done)
    if done.interrupted:
        left = done.flights - done.finished
        return interrupted(received, f"Interrupted: finished flights are kept; the same command flies the other {left:,}.")
    outcomes: Counter[str] = Counter()
    for found in done.summary["outcomes"].values():
        outcomes.update(found)
    return flown_exit(outcomes)


def _json_summary(done: Benchmarked) -> dict[str, Any]:
    state = {"folder": str(done.folder), "report": None if done.report is None else str(done.report)}
    return {**state, "interrupted": done.interrupted, **done.summary}


def _show(done: Benchmarked) -> None:
    show_scores(done.summary)
    drawn = (item["said"] for item in done.summary.get("identified_draws", ()))
    for line in (*told_crashes(done.summary.get("failures", ())), *filter(None, drawn)):
        print(line)
    print(f"Report: {done.report}" if done.report else f"Results: {done.folder}")


def told_crashes(failures: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each cause by which pilots themselves failed, as many as fit below a table, and one for the rest.

    Args:
        failures: Of a summary; those of other outcomes are what was to be found out, and in its report.
    """
    crashes = [entry for entry in failures if entry["outcome"] in PILOT_FAILED]
    lines = [
        f"{entry['pilot']}, {entry['scenario']}: {entry['flights']:,} of {entry['of']:,} flights ended as {entry['outcome']}:"
        f" {str(entry['cause']).rstrip('.')}."
        for entry in crashes[:_TOLD_MAX]
    ]
    rest = sum(entry["flights"] for entry in crashes[_TOLD_MAX:])
    return [*lines, f"{rest:,} more failed in other ways; summary.json lists them."] if rest else lines


def show_scores(summary: Mapping[str, Any]) -> None:
    """Print scores and rates of a summary as a table."""
    scenarios = list(dict.fromkeys(entry["scenario"] for entry in summary["scenarios"]))
    rate = {(entry["pilot"], entry["scenario"]): 100.0 * entry["value"] for entry in summary["scenarios"]}
    rows = [
        (
            item["pilot"],
            item["score"],
            item["variance"],
            item["final"],
            item["timed"],
            *(rate.get((item["pilot"], s)) for s in scenarios),
        )
        for item in summary["scores"]
    ]
    if rows:
        show_table("", ("pilot", "score", "variance", "final", "with time", *(f"{s} [%]" for s in scenarios)), rows)
