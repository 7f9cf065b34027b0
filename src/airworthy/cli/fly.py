"""`airworthy fly`: one or many flights -> a folder with summary.json and report.html."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airworthy.benchmarks.fly.job import FlightsKept, FlyConfig, FlyResult, run_fly
from airworthy.cli.common import emit_json, flown_exit, interrupted, run_tyro, show_table, stopped_by_terminate
from airworthy.reports.flight_text import copies_note, own_way_note, protocol_of
from airworthy.tasks import SUCCESSES, TrackingProtocol
from airworthy.tasks.declared_metrics import metric

_DESCRIPTION = (
    "Fly any vehicle on any course with a built-in pilot, many at once; writes flights, numbers and a report."
    " A course of a race: --race alphapilot --pilot servo --course published/7 --film; else as airworthy bench race."
)
_KEPT = "Interrupted: what was flown until then is kept; unfinished flights count as aborted."
_UNJUDGED = "Interrupted before the flights were judged: they are saved; `airworthy judge {folder}` completes the run."
_SHOWN = ("tracking_error_m", "proximity_percent", "saturation_percent", "speed_max_m_s")
_UNFILMED = "Interrupted while filming: the flights and their evidence are whole; nothing is left of the film."


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 1 where a pilot failed, 130 after Ctrl-C, 143 after a request to terminate."""
    if any(word.partition("=")[0] == "--race" for word in argv):
        # A race has courses, referee and pilots of its own; those options are of its benchmark.
        from airworthy.cli.bench.race import fly_one

        return fly_one(argv)
    config = run_tyro(FlyConfig, argv, "airworthy fly", _DESCRIPTION)
    with stopped_by_terminate() as received:
        try:
            result = run_fly(config, quiet=config.json)
        except FlightsKept as stop:
            return interrupted(received, _UNJUDGED.format(folder=shlex.quote(str(stop.folder))))
    if config.json:
        ended = {"interrupted": result.interrupted or result.film_interrupted, "pilot_error": result.pilot_error or None}
        if result.video is not None:
            ended["video"] = str(result.video.path)
        emit_json({"folder": str(result.folder), **ended, **result.summary["aggregate"]})
    else:
        _show(result, _cannot_hover(config))
    if result.interrupted or result.film_interrupted:
        return interrupted(received, _KEPT if result.interrupted else _UNFILMED)
    return flown_exit(result.summary["aggregate"]["outcomes"])


def _cannot_hover(config: FlyConfig) -> list[str]:
    """Return a sentence for each vehicle that cannot hover, or not hold its yaw: it flies all the same, and falls or turns."""
    from airworthy.benchmarks.fly.job import angles_of
    from airworthy.benchmarks.fly.run_record import read_record
    from airworthy.control.effectors import YAW_LOST, holds_yaw
    from airworthy.vehicles import frozen, hover_trim

    if not config.is_rigid:
        return []
    record = read_record(config.out)
    flown = [record.vehicle(k) for k in range(len(record.vehicles))]
    # Of vehicles with joints: with these as the flights began.
    held = [frozen(item, angles_of(config, item)) if item.links else item for item in flown]
    trims = list(zip(record.vehicles, map(hover_trim, held), strict=True))
    found = [f"WARNING: {name} cannot hover: {trim.reason}." for name, trim in trims if not trim.hovers]
    turning = [name for name, item in zip(record.vehicles, held, strict=True) if not holds_yaw(item)]
    return found + [f"WARNING: {name} cannot hold its yaw: {YAW_LOST}." for name in turning]


def _show(result: FlyResult, warnings: Sequence[str]) -> None:
    notes = [*warnings, *result.pilot_notes]
    if result.pilot_error:
        notes.append(f"The pilot failed, which ended the run: {result.pilot_error}")
    if result.video is not None:
        notes.append(result.video.summary_line)
    show_summary(result.folder, result.summary, notes)


def show_summary(folder: Path, summary: Mapping[str, Any], notes: Sequence[str] = ()) -> None:
    """Print what came of a run, some notes, and where its report lies.

    Args:
        folder: Of the run.
        summary: Of the run.
        notes: Lines that follow the table.
    """
    aggregate = summary["aggregate"]
    outcomes = [f"{count} {name}" for name, count in aggregate["outcomes"].items() if count]
    rows: list[tuple[str, Any, str]] = [
        ("flights", aggregate["flights"], ", ".join(outcomes)),
        *(row for name in _SHOWN for row in _measured(aggregate, name, protocol_of(summary))),
    ]
    show_table("", ("", "mean", "spread"), rows)
    flights = summary["flights"]
    why = (*_partial(aggregate["outcomes"]), *failures(flights), *own_way_note(flights))
    drawn = [item["said"] for item in summary.get("identified_draws", ())]
    for note in filter(None, (*notes, *drawn, copies_note(aggregate), _unknown_note(summary), _links_note(flights), *why)):
        print(note)
    report = folder / "report.html"
    print(f"Report: {report}" if report.exists() else f"Flights: {folder}")


def _unknown_note(summary: Mapping[str, Any]) -> str:
    """Return how the unknown space of a captured place was met; empty where there is none."""
    how = summary.get("unknown_space")
    if how == "solid":
        return "Unknown space of this captured place is solid: flights collide with it (--unknown free lets them pass)."
    return (
        "" if how is None else "Unknown space of this captured place is taken for free: nobody has seen that nothing is there."
    )


def _links_note(flights: Sequence[Mapping[str, Any]]) -> str:
    """Return how near links came to anything and how often they hit it; empty of vehicles without, or where nothing is."""
    near = [flight["link_clearance_min_m"] for flight in flights if flight.get("link_clearance_min_m") is not None]
    touches = sum(flight.get("touches") or 0 for flight in flights)
    return f"Links: {min(near):.3f} m least distance to anything, {touches:,} impacts." if near else ""


def failures(flights: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return why flights failed, a line for each outcome: the cause of its first flight that has one.

    Args:
        flights: Of a summary.
    """
    lines = []
    for outcome in dict.fromkeys(str(flight["outcome"]) for flight in flights):
        mine = [flight for flight in flights if flight["outcome"] == outcome]
        told = next((flight for flight in mine if flight.get("cause")), None)
        # What the pilot's own code did wrong is said above, in a note of its own.
        if outcome in SUCCESSES or outcome == "pilot_error" or told is None:
            continue
        who = "" if len(flights) == 1 else f"flight {told['env']}: " if len(mine) == 1 else f"first flight {told['env']}: "
        lines.append(f"{outcome}: {who}{told['cause']}.")
    return lines


def _partial(outcomes: Mapping[str, int]) -> list[str]:
    """Return why a flight is partial, where one is."""
    if not outcomes.get("partial"):
        return []
    most = math.degrees(TrackingProtocol().yaw_error_max_rad)
    return [f"partial: the course was flown, but yaw was off by more than {most:.3g} degrees, half of the time or at the end."]


def _measured(aggregate: Mapping[str, Any], name: str, protocol: TrackingProtocol) -> list[tuple[str, Any, str]]:
    described = aggregate.get(name) or {}
    mean = described.get("mean")
    # As it is in memory (NaN), or as JSON holds it.
    if mean is None or not math.isfinite(mean):
        return []
    low, high = described.get("min"), described.get("max")
    label = metric(name).heading(protocol=protocol)
    return [(label, float(mean), f"{low:.3g} to {high:.3g}" if low is not None and high is not None else "")]
