"""`report.html` of a race benchmark, readable offline: figures, published tables with ours, maps, gates, belief and sight."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airworthy.core.files import write_text
from airworthy.race.benchmark.tables import accuracy_text, final_range, noted_text
from airworthy.race.published import OURS, published_scores
from airworthy.race.record import Race
from airworthy.race.report.crossings import FlownRace, crossings_of, gate_summary
from airworthy.race.report.maps import ends_table, figure_ends, figure_speeds
from airworthy.race.report.standing import figure_standing, ladder, sensors_text, title_of
from airworthy.race.report.timelines import figure_belief, figure_visibility
from airworthy.reports.page import DASH, card, fact, fixed, markup, page_of, share_interval
from airworthy.vehicles import Vehicle

REPORT_FILE = "report.html"
Content = Mapping[str, Any]
CONTACTS = {"swept": "the vehicle's sphere, swept along every step", "published": "overlap, looked for at 60 Hz, as in 2019"}
"""What `airworthy.race.benchmark.contact` calls each detector -> what is said of it."""


@dataclass(frozen=True)
class ReportInput:
    """What a page is made of."""

    folder: Path
    """Where it is written."""
    command: str
    """That makes the run again."""
    race: Race
    """Nominal."""
    vehicle: Vehicle
    summary: Content
    """Of the run."""
    flights: Mapping[str, Sequence[FlownRace]]
    """Of each pilot, by its word."""
    timing: Mapping[str, str] = field(default_factory=dict)
    """A sentence on each pilot's processor time, by its word."""
    shown: int = 0
    """Flights of each pilot that are shown by themselves, at least."""
    films: Mapping[tuple[str, str], Content] = field(default_factory=dict)
    """What `airworthy.reports.film.flight_track.film_content` says of each film, by pilot and course."""


def write_race_report(given: ReportInput) -> Path:
    """Write the page of a run; returns its path."""
    summary = given.summary
    pilots = summary["pilots"]
    tables = summary["tables"]
    points = given.race.score.rule == "points"
    content = {
        "title": f"{given.race.title or given.race.name}: raced and refereed",
        "points": points,
        "beside": any(film["beside"] for film in given.films.values()),
        "verdict": verdict(summary, points),
        "cards": _cards(summary, points),
        "pilots": [_pilot_line(row, given.timing.get(row["pilot"], "")) for row in pilots],
        "scores": [_score_line(row) for row in tables["scores"]] if tables else [],
        "sensors": [_sensor_line(row) for row in tables["sensors"]] if tables else [],
        "source": tables["source"] if tables else "",
        "standing": markup(figure_standing(pilots, "standing")) if tables and pilots else None,
        "ladder": ladder(
            given.race, given.vehicle, pilots, {name: [flight.row for flight in mine] for name, mine in given.flights.items()}
        ),
        "parts": [_part(k, row, given) for k, row in enumerate(pilots) if given.flights.get(row["pilot"])],
        "flights": [_flight_line(row) for row in summary["flights"]],
        "command": given.command,
        "hardware": summary["hardware"],
        "protocol": _protocol(given),
        "notes": (*(TEAM_NOTES if tables else ()), *NOTES),
    }
    filters = {"number": lambda value, digits=2: fixed(value, digits), "cm": _cm}
    return write_text(given.folder / REPORT_FILE, page_of("airworthy.race.report", filters=filters, **content))


def _cm(value: float | None, digits: int = 1) -> str:
    return fixed(None if value is None else 100.0 * value, digits)


# ---- On top -----------------------------------------------------------------------------------------------------------------


def verdict(summary: Content, points: bool = True) -> str:
    """Return what came of the run, in a few words for each pilot.

    Args:
        summary: Of the run.
        points: Whether the race is scored by points.
    """
    said = []
    for row in summary["pilots"]:
        text = f"{title_of(row)} completed {row['completed']} of {row['runs']} courses"
        if points and row["final_score"] is not None:
            text += f", five best {row['final_score']:.2f} points"
        if row["mean_time_s"] is not None and math.isfinite(row["mean_time_s"]):
            text += f", mean time {row['mean_time_s']:.2f} s"
        said.append(text)
    if not said:
        return "Nothing has been flown yet."
    return ("; ".join(said) + ".") + ("" if summary["state"]["complete"] else " The run is not complete.")


def _cards(summary: Content, points: bool) -> list[dict[str, str]]:
    if not summary["pilots"]:
        return []
    first = summary["pilots"][0]
    told = first["statistics"]
    rate, score, times = told["completion"], told["score"], told["time_s"]
    final = told["final"][0] if told["final"] and points else None
    between = f"95 %: {share_interval(rate['low'], rate['high'])} %"
    made = [card(f"completed, {first['pilot']}", f"{first['completed']}", f"of {first['runs']}", between, _tone(rate["value"]))]
    if final is not None:
        below = ("95 %: " if len(told["final"]) == 1 else "") + final_range(told, f" {DASH} ")
        made.append(card("five best", fixed(first["final_score"], 2), "points", below))
    if summary["tables"]:
        ranks = [row["rank"] for row in summary["tables"]["scores"] if row["name"] == first["pilot"]]
        best = published_scores()[0].final
        made += [card("would have ranked", f"{ranks[0]}", "of 2019", f"first: {best:.2f}")] if ranks else []
    if points:
        made.append(card("mean score", fixed(score.get("mean"), 2), "", f"\N{PLUS-MINUS SIGN} {fixed(score.get('std'), 2)}"))
    spread = f"{fixed(times.get('min'), 2)} {DASH} {fixed(times.get('max'), 2)} s" if times.get("count") else ""
    made.append(card("mean time", fixed(first["mean_time_s"], 2), "s", spread))
    return [*made, card("class", summary["class"], "", summary["courses"])]


def _tone(share: float) -> str:
    return "good" if share == 1.0 else "poor" if share < 0.5 else ""  # ours: half of the runs lost is a failure


def _pilot_line(row: Content, timing: str) -> dict[str, Any]:
    told = row["statistics"]
    rate = told["completion"]
    ends = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in told["ends"].items())
    hit = ", ".join(f"{name} ({count})" for name, count in row["parts"].items())
    return {
        "title": title_of(row),
        "where": "in the simulation's process" if row["in_process"] else "behind the wall of a process",
        "completed": f"{row['completed']} of {row['runs']}",
        "completion": share_interval(rate["low"], rate["high"]),
        "final": row["final_score"],
        "interval": final_range(told, f" {DASH} "),
        "mean": told["score"].get("mean"),
        "std": told["score"].get("std"),
        "time": row["mean_time_s"],
        "median": told["time_s"].get("median"),
        "missed": told["passages_missed"],
        "differing": told["differing"],
        "clipped": row["clipped"],
        "ends": ends + (f"; hit {hit}" if hit else ""),
        "timing": " ".join(text for text in (timing, noted_text(row), accuracy_text(row)) if text),
    }


def _sensor_line(row: Content) -> dict[str, Any]:
    return {**row, "used": sensors_text(row["used"]), "marks": row["note"].removeprefix(OURS)}


def _score_line(row: Content) -> dict[str, Any]:
    # What distinguishes it from the other rows of ours, all of which are of other courses.
    marks = row["note"].removeprefix(OURS).removeprefix(", ")
    return {**row, "best": [fixed(value, 3) for value in row["best"]], "ours": bool(row["name"]), "marks": marks}


# ---- Of each pilot ----------------------------------------------------------------------------------------------------------


def _part(number: int, row: Content, given: ReportInput) -> dict[str, Any]:
    flights = given.flights[row["pilot"]]
    lines = gate_summary(flights)
    return {
        "title": title_of(row),
        "speeds": markup(figure_speeds(flights, f"speeds-{number}")),
        "ends": markup(figure_ends(flights, f"ends-{number}")),
        "causes": ends_table(flights),
        "gates": lines,
        "knows": any("gates" in flight.trace.said for flight in flights),
        "errors": sum(flight.row["telemetry_errors"] for flight in flights),
        "reason": next((flight.row["telemetry_reason"] for flight in flights if flight.row["telemetry_reason"]), ""),
        "shown": [
            _shown(f"{number}-{k}", flight, what, given.films.get((row["pilot"], flight.course)))
            for k, (what, flight) in enumerate(shown_flights(flights, given.shown))
        ],
    }


def shown_flights(flights: Sequence[FlownRace], least: int = 0) -> list[tuple[str, FlownRace]]:
    """Return the flights that are shown by themselves, and why: the best, the first that was not completed, the first that
    missed a gate; then others in their order, until there are enough.

    Args:
        flights: Of one pilot.
        least: How many are shown, if there are as many.
    """
    done = [flight for flight in flights if flight.completed]
    # A gate is worth ten seconds.
    best = sorted(done, key=lambda flight: flight.row["time_s"] - 10.0 * flight.row["passed"])[:1]
    failed = [flight for flight in flights if not flight.completed][:1]
    missed = [flight for flight in done if flight.row["missed"]][:1]
    chosen: dict[str, tuple[str, FlownRace]] = {}
    for word, some in (
        ("Best flight", best),
        ("First flight that was not completed", failed),
        ("First flight that missed a gate", missed),
    ):
        for flight in some:
            chosen.setdefault(flight.course, (word, flight))
    for flight in flights:
        if len(chosen) < least:
            chosen.setdefault(flight.course, ("Flight", flight))
    return list(chosen.values())


def _shown(name: str, flight: FlownRace, what: str, film: Content | None) -> dict[str, Any]:
    return {
        "what": what,
        "course": flight.course,
        "word": flight.word,
        "belief": markup(figure_belief(flight, f"belief-{name}")),
        "sight": markup(figure_visibility(flight, f"sight-{name}")),
        "crossings": crossings_of(flight),
        "film": film,
    }


def _flight_line(row: Content) -> dict[str, Any]:
    words = str(row["end"]).replace("_", " ")
    return {
        **row,
        "ended": f"{words}: {row['part']}" if row["part"] else words,
        "missed_gates": ", ".join(row["missed"]),
        "differing_gates": ", ".join(row["differing"]),
    }


# ---- What is said of it all -------------------------------------------------------------------------------------------------

TEAM_NOTES = (
    f"Rows of ours are {OURS}: the evaluation's courses were never published. Fresh courses are drawn within the same bounds.",
    "The final score is the mean of the five best of 25 and so grows with luck; completion and mean say how sure a pilot is.",
    "Intervals hold 95 %: Wilson's of completion, a bootstrap over whole runs of the final score.",
)
"""Of races that stand beside published teams."""
NOTES = (
    "Speed, angle and errors are read between rows of 60 Hz; times and offsets are the referee's, at 960 Hz.",
    "What a pilot believes it says itself, for this page alone; it is set beside the truth here and nowhere else.",
)


def _protocol(given: ReportInput) -> list[dict[str, Any]]:
    race, summary = given.race, given.summary
    test = "loose (the one of 2019), the strict one beside it" if race.test == "loose" else "strict"
    worth = f"{race.score.gate_points:g} N - T" if race.score.rule == "points" else "the time"
    facts = [
        fact("race", race.title or race.name),
        fact("class", summary["class"]),
        fact("courses", summary["courses"]),
        fact("seed", summary["seed"]),
        fact("vehicle", given.vehicle.name),
        fact("passage", test),
        fact("contact", CONTACTS[summary.get("contact", "swept")]),
        *([fact("beacons of decoys", "lit")] if summary.get("decoy_beacons") else []),
        fact("score", worth),
        fact("senses", ", ".join(race.information.sensors)),
    ]
    if summary.get("confinement"):
        kept = ", ".join(f"{name} by {means}" for name, means in summary["confinement"].items())
        facts.append(fact("processes of pilots confined", kept))
    if "repeatable" in summary:
        facts.append(fact("same bytes twice", "yes" if summary["repeatable"] else "no: planning is charged as it was measured"))
    return facts
