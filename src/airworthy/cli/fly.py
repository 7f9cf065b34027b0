"""`airworthy fly`: one or many flights -> a folder with summary.json and report.html."""

from __future__ import annotations

from typing import Any

from airworthy.cli.common import emit_json, run_tyro, show_table
from airworthy.evaluation.fly_job import FlyConfig, FlyResult, run_fly

_DESCRIPTION = "Fly any vehicle on any course with a built-in pilot, many at once; writes flights, numbers and a report."


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    config = run_tyro(FlyConfig, argv, "airworthy fly", _DESCRIPTION)
    result = run_fly(config, quiet=config.json)
    if config.json:
        emit_json({"folder": str(result.folder), "interrupted": result.interrupted, **result.summary["aggregate"]})
    else:
        _show(result)
    return 130 if result.interrupted else 0


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
    if result.interrupted:
        print("Interrupted: what was flown until then is kept; unfinished flights count as aborted.")
    report = result.folder / "report.html"
    print(f"Report: {report}" if report.exists() else f"Flights: {result.folder}")


def _metric(aggregate: dict[str, Any], name: str, label: str) -> list[tuple[str, Any, str]]:
    described = aggregate.get(name) or {}
    if described.get("mean") is None:
        return []
    low, high = described.get("min"), described.get("max")
    return [(label, float(described["mean"]), f"{low:.3g} to {high:.3g}" if low is not None and high is not None else "")]
