"""What a race benchmark says: a row per flight, figures per pilot, and the published tables with ours among them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from airworthy.race.benchmark.contact import PUBLISHED, Detector
from airworthy.race.benchmark.flight import RaceFlight
from airworthy.race.pilots.catalogue import PilotEntry
from airworthy.race.published import QUALIFIER, noted, published_source, scores_with_ours, sensors_with_ours
from airworthy.race.record import Race
from airworthy.race.scoring import NAN, PassageResult, RaceResult, race_statistics

Row = Mapping[str, Any]

_NOTES_SAID = 10
"""Notes of a pilot that a sentence tells; ours."""


def row_of(pilot: str, flight: RaceFlight) -> dict[str, Any]:
    """Return a flight as JSON has it: null where a number is not there.

    Args:
        pilot: Its word.
        flight: As it was flown.
    """
    result = flight.result
    # What it drew of its vehicle, SI units, where flights draw.
    drawn = {} if flight.drawn is None else {"drawn": {**flight.drawn.values, "rejected": flight.drawn.rejected}}
    return {
        "pilot": pilot,
        "course": flight.course,
        "end": result.end,
        "outcome": result.outcome,
        "completed": result.completed,
        "time_s": _number(result.time_s),
        "passed": result.passed,
        "score": _number(result.score),
        "missed": [item.gate for item in result.passages if item.missed],
        "differing": list(result.differing),
        "part": flight.part,
        "reason": flight.reason,
        "clipped": flight.clipped,
        "planning": {
            "count": len(flight.planned),
            "charged_s": sum(record.charged_s for record in flight.planned),
            "failed": sum(record.failed for record in flight.planned),
        },
        "notes": dict(sorted(Counter(note.word for note in flight.noted).items())),
        "speed_max_mps": flight.speed_max,
        "path_m": flight.path_m,
        "commands_sha256": flight.commands_sha256,
        "irregular": result.irregular_count,
        "telemetry_errors": flight.telemetry_errors,
        "telemetry_reason": flight.telemetry_reason,
        "passages": [
            {
                "gate": item.gate,
                "loose_s": _number(item.loose_time),
                "missed": item.missed,
                "strict_s": _number(item.strict_time),
                "offset_m": [_number(value) for value in item.offset],
            }
            for item in result.passages
        ],
        **drawn,
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _back(value: float | None) -> float:
    return NAN if value is None else value


def result_of(row: Row) -> RaceResult:
    """Return the result that a row is from; irregular crossings are counted there, and not listed."""
    passages = tuple(
        PassageResult(
            item["gate"],
            _back(item["loose_s"]),
            item["missed"],
            _back(item["strict_s"]),
            (_back(item["offset_m"][0]), _back(item["offset_m"][1])),
        )
        for item in row["passages"]
    )
    return RaceResult(
        end=row["end"],
        outcome=row["outcome"],
        completed=row["completed"],
        time_s=_back(row["time_s"]),
        passed=row["passed"],
        score=_back(row["score"]),
        passages=passages,
        differing=tuple(row["differing"]),
        irregular=(),
        irregular_count=row["irregular"],
        after_finish="",
    )


def rules_mark(contact: Detector, decoy_beacons: bool, vehicle: str = "", identified: bool = False) -> str:
    """Return what rows are marked with where a run's rules are not those of the others; empty where they are.

    Args:
        contact: Who says what was touched.
        decoy_beacons: Whether gates that are not flown bear beacons, too.
        vehicle: That is flown in the place of the class's; empty: the class's.
        identified: Whether flights draw theirs from what its identification left open.
    """
    said = ["contacts looked for 60 times a second, as in 2019"] if contact == PUBLISHED else []
    said += ["beacons of decoys lit"] if decoy_beacons else []
    said += [f"vehicle {vehicle}"] if vehicle else []
    return ", ".join([*said, *(["vehicles drawn from its identification"] if identified else [])])


def _joined(*marks: str) -> str:
    return ", ".join(mark for mark in marks if mark)


def pilot_summary(race: Race, entry: PilotEntry, rows: Sequence[Row], mark: str = "") -> dict[str, Any]:
    """Return a pilot's figures.

    Args:
        race: Whose score counts.
        entry: The pilot.
        rows: Of its flights, at least one.
        mark: Of the run, as of `rules_mark`.
    """
    told = race_statistics(race.score, [result_of(row) for row in rows])
    finals = [item["value"] for item in told["final"]]
    return {
        "pilot": entry.name,
        "note": noted(entry.truth, _joined(entry.mark, mark)),
        "true_state": entry.truth,
        "in_process": entry.door is None,
        "runs": told["runs"],
        "completed": told["completed"],
        # Of several blocks of 25, each block's own stands in the statistics.
        "final_score": sum(finals) / len(finals) if finals else None,
        "mean_score": told["score"].get("mean"),
        "mean_time_s": told["time_s"].get("mean"),
        "clipped": sum(row["clipped"] for row in rows),
        "parts": {name: sum(row["part"] == name for row in rows) for name in sorted({row["part"] for row in rows} - {""})},
        "plans": sum(row["planning"]["count"] for row in rows),
        "plans_failed": sum(row["planning"]["failed"] for row in rows),
        # Of each word: how often, and in how many flights.
        "notes": {
            word: {
                "count": sum(row["notes"].get(word, 0) for row in rows),
                "flights": sum(word in row["notes"] for row in rows),
            }
            for word in sorted({word for row in rows for word in row["notes"]})
        },
        "statistics": told,
    }


def noted_text(row: Mapping[str, Any]) -> str:
    """Return what a pilot did out of the ordinary, in a sentence; empty where there was nothing.

    Args:
        row: As of `pilot_summary`.
    """
    # A pilot may say something else each time: the most frequent, then by name. All of them stand in the summary.
    told = sorted(row["notes"].items(), key=lambda item: (-item[1]["count"], item[0]))
    said = [f"{word} {times['count']} (in {times['flights']} of {row['runs']} flights)" for word, times in told[:_NOTES_SAID]]
    more = len(told) - len(said)
    return f"Out of the ordinary: {', '.join(said)}{f', and {more} others' * (more > 0)}." if said else ""


def accuracy_text(row: Mapping[str, Any]) -> str:
    """Return how well a pilot knew gates and itself where it crossed gates, in a sentence; empty where it says nothing of it.

    Args:
        row: As of `pilot_summary`, with `crossings.gate_accuracy` of its flights.
    """
    known = row["gate_accuracy"]
    if known is None:
        return ""
    gate, place = ([100.0 * known[f"{of}_{which}_m"] for which in ("rms", "largest")] for of in ("gate", "position"))
    return (
        f"At {known['passages']:,} passages the gate was {gate[0]:.2f} cm (rms; at most {gate[1]:.1f}) beside where it was"
        f" believed, seen from the vehicle, which itself was off by {place[0]:.1f} cm (at most {place[1]:.1f})."
    )


def final_range(told: Mapping[str, Any], between: str = " to ") -> str:
    """Return how far a pilot's final score may be trusted: of one block its interval, of several how far their own lie apart.

    Args:
        told: Its statistics.
        between: Written between two numbers.
    """
    finals = told["final"]
    if not finals:
        return ""
    if len(finals) == 1:
        return f"{finals[0]['low']:.2f}{between}{finals[0]['high']:.2f}"
    values = [item["value"] for item in finals]
    return f"{min(values):.2f}{between}{max(values):.2f} in {len(values)} blocks of {told['final_runs'][0]}"


def _mark(entry: PilotEntry, runs: int, mark: str) -> str:
    # The published table is of 25 runs: of more, only so many stand there, and it says which.
    some = f"the first {QUALIFIER.of} of {runs} runs" if runs > QUALIFIER.of else ""
    return _joined(entry.mark, mark, some)


def tables_of(
    race: Race, entries: Sequence[PilotEntry], rows: Mapping[str, Sequence[Row]], mark: str = ""
) -> dict[str, Any] | None:
    """Return Tables III and IV with ours; nothing for a race that is scored otherwise.

    Args:
        race: That was flown.
        entries: Pilots.
        rows: Of each pilot's flights, by its word.
        mark: Of the run, as of `rules_mark`.
    """
    if race.score != QUALIFIER:
        return None
    scores = {entry.name: [row["score"] for row in rows[entry.name]][: QUALIFIER.of] for entry in entries}
    enough = {name: values for name, values in scores.items() if len(values) >= QUALIFIER.best}
    marks = {entry.name: _mark(entry, len(rows[entry.name]), mark) for entry in entries}
    by_sensors: dict[tuple[str, ...], list[tuple[bool, float]]] = {}
    pilots: dict[tuple[str, ...], list[str]] = {}
    sensor_marks: dict[tuple[str, ...], str] = {}
    for entry in entries:
        # A pilot with the true state belongs to no set of sensors.
        if entry.sensors and not entry.truth:
            mine = by_sensors.setdefault(entry.sensors, [])
            mine += [(row["completed"], row["score"]) for row in rows[entry.name]]
            pilots.setdefault(entry.sensors, []).extend([entry.name] if rows[entry.name] else [])
            # One pilot that could have looked is enough.
            sensor_marks[entry.sensors] = sensor_marks.get(entry.sensors, "") or entry.mark
    flown = {key: value for key, value in by_sensors.items() if value}
    # Several pilots with the same sensors are one row, as the table has it, and it says whose.
    pooled = {key: "of " + " and ".join(names) if len(names) > 1 else "" for key, names in pilots.items()}
    sensor_marks = {key: _joined(pooled[key], own, mark) for key, own in sensor_marks.items()}
    return {
        "source": published_source(),
        "scores": [asdict(row) for row in scores_with_ours(enough, marks)],
        # Of ours each pilot is a team.
        "sensors": [
            asdict(replace(row, teams=len(pilots[row.used])) if row.note else row)
            for row in sensors_with_ours(flown, sensor_marks)
        ],
    }
