"""`airworthy bench sensitivity`: the same flights with and without something that is worse than ideal."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

from airworthy.benchmarks.navigation.sensitivity.axes import AXES
from airworthy.benchmarks.navigation.sensitivity.study import SensitivityConfig, Studied, run_study
from airworthy.cli.common import emit_json, flown_exit, gathered, interrupted, run_tyro, show_table, stopped_by_terminate

LISTS = ("--pilots", "--axes", "--vehicles", "--scenarios", "--configurations")
_DESCRIPTION = (
    "Fly the same flights of the navigation benchmark, draw for draw, with and without one thing that is worse: gains,"
    " controllers, motors, depth, delay, drift, moving obstacles. Success with Wilson intervals, paired differences,"
    " smoothness, tracking and latency, per pilot and level. A stopped run goes on where it was; more axes and pilots may join"
    " a folder."
)


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 1 where a pilot failed, 130 after Ctrl-C, 143 after a request to terminate."""
    config = run_tyro(SensitivityConfig, gathered(argv, LISTS), "airworthy bench sensitivity", _DESCRIPTION)
    with stopped_by_terminate() as received:
        done = run_study(config, quiet=config.json)
    for line in told_idle(done.summary):
        print(line, file=sys.stderr)
    if config.json:
        emit_json({"folder": str(done.folder), "interrupted": done.interrupted, **done.summary})
    else:
        show_study(done)
    if done.interrupted:
        return interrupted(received, "Interrupted: finished flights are kept; the same command flies the others.")
    lost = sum(entry["crashes"] for entry in done.summary["entries"])
    return flown_exit(Counter({"planner_crash": lost} if lost else {}))


def told_idle(summary: Mapping[str, Any]) -> list[str]:
    """Return a line for each point at which no flight of a pilot came out otherwise than without it."""
    return [
        f"Warning: {entry['axis']}:{entry['level']} changed none of {entry['pairs']} flights of {entry['pilot']}; nothing it"
        " makes worse reached that pilot."
        for entry in summary["idle"]
    ]


def show_study(done: Studied) -> None:
    """Print success, and what is changed, of every point and pilot."""
    rows = [
        (
            AXES[entry["axis"]].title if entry["axis"] else "ideal",
            entry["level"],
            entry["pilot"],
            entry["flights"],
            100.0 * entry["value"],
            f"{100.0 * entry['low']:.0f} to {100.0 * entry['high']:.0f}",
            *_change(entry),
        )
        for entry in done.summary["entries"]
    ]
    heads = ("worse", "level", "pilot", "flights", "success [%]", "interval", "change [points]", "interval", "gained", "lost")
    show_table("", heads, rows)
    print(f"Report: {done.report}" if done.report else f"Results: {done.folder}")


def _change(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    if not entry["pairs"]:
        return None, "", None, None
    span = f"{100.0 * entry['difference_low']:+.0f} to {100.0 * entry['difference_high']:+.0f}"
    return 100.0 * entry["difference"], span, entry["gained"], entry["lost"]
