"""`airworthy evaluate`: pilots under every condition of SOUS VIDE's experiments -> a table of flights and a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from airworthy.benchmarks.tracking.condition_change import change_text
from airworthy.benchmarks.tracking.config import EvaluateConfig
from airworthy.benchmarks.tracking.endings import told_endings
from airworthy.benchmarks.tracking.job import Evaluated, evaluate
from airworthy.benchmarks.tracking.tables import mean_of
from airworthy.bridges.remote.words import without_prefix
from airworthy.cli.common import emit_json, flown_exit, gathered, interrupted, run_tyro, show_table, stopped_by_terminate
from airworthy.pilots.catalogue import AUTOPILOTS
from airworthy.tasks import TrackingProtocol
from airworthy.tasks.declared_metrics import CONDITION, metric

PROG = "airworthy evaluate"
_LISTS = ("--pilot", "--conditions", "--family")
_DESCRIPTION = (
    "Try pilots in simulation under the conditions of SOUS VIDE's experiments (baseline, light, people, missing things,"
    " payload, wind, and sweeps) and set the numbers beside the published ones of real flights. A stopped run goes on where it"
    " was."
)


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 1 where a pilot failed, 130 after Ctrl-C, 143 after a request to terminate."""
    config = run_tyro(EvaluateConfig, gathered(argv, _LISTS), PROG, _DESCRIPTION)
    with stopped_by_terminate() as received:
        for word in () if config.json else waited_for(config.pilot):
            print(f"Each flight of {word} waits for it.", flush=True)
        try:
            done = evaluate(config, quiet=config.json)
        except KeyboardInterrupt:  # before the first flight, or while the report is made
            return interrupted(received, "Interrupted: finished flights are kept; the same command goes on from there.")
    if config.json:
        emit_json(_json_summary(done))
    else:
        _show(done, config.protocol)
    if done.interrupted:
        left = done.blocks - done.finished
        rest = f"the other {left} blocks" if left > 1 else "the last block"
        return interrupted(received, f"Interrupted: finished flights are kept; the same command flies {rest}.")
    return flown_exit(_outcomes(done.summary["endings"]))


def waited_for(words: Sequence[str]) -> list[str]:
    """Return those of pilots' words that are of autopilots outside: nothing else would say who is not there yet."""
    return [word for word in words if without_prefix(word).partition(":")[0] in AUTOPILOTS]


def _outcomes(endings: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many flights of the pilots that had any failure ended as pilot_error, and otherwise."""
    failed = sum(entry["flights"] for entry in endings if entry["outcome"] == "pilot_error")
    flown = sum({entry["pilot"]: entry["of"] for entry in endings}.values())
    return {"pilot_error": failed, "others": flown - failed}


def _json_summary(done: Evaluated) -> dict[str, Any]:
    state = {"folder": str(done.folder), "report": None if done.report is None else str(done.report)}
    names = (
        "command",
        "state",
        "changes",
        "left_out",
        "aggregate",
        "endings",
        "against_first_pilot",
        "against_baseline",
        "adaptation",
    )
    return {**state, "interrupted": done.interrupted, **{name: done.summary[name] for name in names}}


def _show(done: Evaluated, protocol: TrackingProtocol) -> None:
    columns = (
        "condition",
        "pilot",
        "family",
        "success [%]",
        "interval",
        *(metric(name).heading(short=True, protocol=protocol) for name in CONDITION),
        "real " + metric("tracking_error_m").heading(short=True),
    )
    rows = []
    for entry in done.summary["aggregate"]:
        rate, published = entry["success_rate"], entry["published"]
        rows.append(
            (
                entry["title"],
                entry["pilot"],
                entry["family"],
                100.0 * rate["value"],
                f"{100.0 * rate['low']:.0f} to {100.0 * rate['high']:.0f}" if isfinite(rate["low"]) else "none: copies",
                *(_finite(mean_of(entry, name)) for name in CONDITION),
                None if published is None else _finite(published["tracking_error_m"]),
            )
        )
    if rows:
        show_table("", columns, rows)
    for name, change in done.summary["changes"].items():
        if change:
            print(f"{name}: {change_text(change)}.")
    drawn = (item["said"] for item in done.summary.get("identified_draws", ()))
    for line in (*told_endings(done.summary["endings"]), *filter(None, drawn)):
        print(line)
    print(f"Report: {done.report}" if done.report else f"Results: {done.folder}")


def _finite(value: float | None) -> float | None:
    """Return a number for the table; None, which is left blank, where no flight has it."""
    return None if value is None or not isfinite(value) else value
