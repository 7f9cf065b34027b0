"""`airworthy fly`: one or many flights -> a folder with summary.json and report.html."""

from __future__ import annotations

from typing import Any

from airworthy.cli.common import emit_json, interrupted, run_tyro, show_table, stopped_by_terminate
from airworthy.evaluation.fly_job import FlyConfig, FlyResult, run_fly

_DESCRIPTION = "Fly any vehicle on any course with a built-in pilot, many at once; writes flights, numbers and a report."
_KEPT = "Interrupted: what was flown until then is kept; unfinished flights count as aborted."
_UNFILMED = "Interrupted while filming: the flights and their evidence are whole; nothing is left of the film."


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    config = run_tyro(FlyConfig, argv, "airworthy fly", _DESCRIPTION)
    with stopped_by_terminate() as received:
        result = run_fly(config, quiet=config.json)
    if config.json:
        ended = {"interrupted": result.interrupted or result.film_interrupted, "pilot_error": result.pilot_error or None}
        if result.video is not None:
            ended["video"] = str(result.video.path)
        emit_json({"folder": str(result.folder), **ended, **result.summary["aggregate"]})
    else:
        _show(result)
    if result.interrupted or result.film_interrupted:
        return interrupted(received, _KEPT if result.interrupted else _UNFILMED)
    return 0


def _show(result: FlyResult) -> None:
    aggregate = result.summary["aggregate"]
    outcomes = [f"{count} {name}" for name, count in aggregate["outcomes"].items() if count]
    rows: list[tuple[str, Any, str]] = [
        ("flights", aggregate["flights"], ", ".join(outcomes)),
        *_metric(aggregate, "tracking_error_m", "tracking error [m]"),
        *_metric(aggregate, "proximity_percent", "within 0.3 m of the path [%]"),
        *_metric(aggregate, "saturation_percent", "rotors at a limit [%]"),
        *_metric(aggregate, "speed_max_m_s", "top speed [m/s]"),
    ]
    show_table("", ("", "mean", "spread"), rows)
    if result.pilot_error:
        print(f"The pilot failed, which ended the run: {result.pilot_error}")
    if result.video is not None:
        print(result.video.told)
    report = result.folder / "report.html"
    print(f"Report: {report}" if report.exists() else f"Flights: {result.folder}")


def _metric(aggregate: dict[str, Any], name: str, label: str) -> list[tuple[str, Any, str]]:
    described = aggregate.get(name) or {}
    if described.get("mean") is None:
        return []
    low, high = described.get("min"), described.get("max")
    return [(label, float(described["mean"]), f"{low:.3g} to {high:.3g}" if low is not None and high is not None else "")]
