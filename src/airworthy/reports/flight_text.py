"""Numbers and sentences of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import degrees, isfinite
from typing import Any

import numpy as np

from airworthy.core.files import json_text
from airworthy.reports.batch import FlightBatch
from airworthy.reports.page import DASH, card, fact, labelled
from airworthy.tasks import OUTCOMES, SUCCESSES, TrackingProtocol
from airworthy.tasks.declared_metrics import COURSE, FLIGHT_ROW, FLIGHT_ROW_MORE, METRICS, metric

ROWS_MAX = 200
"""Most flights listed one by one."""

NAMES = {
    "success": "success",
    "success_recovered": "success, recovered",
    "partial": "partial",
    "collision": "collision",
    "off_course": "off course",
    "not_at_goal": "not at goal",
    "timeout": "timeout",
    "out_of_bounds": "out of bounds",
    "diverged": "diverged",
    "pilot_error": "pilot error",
    "aborted": "aborted",
}


COLUMNS = (*FLIGHT_ROW, *FLIGHT_ROW_MORE)
"""Metrics of each flight, in order."""

NOTES: Sequence[str] = tuple(
    """\
These are simulated flights. Real ones differ by what the model leaves out, such as flexible frames, worn propellers, blade \
flapping, vortex rings in fast descent, motor heating, and the airflow at walls and corners.
The pilot was given what its description says it observes; where that is the exact state, a real estimator's errors come on top.
Wind, sensor noise, battery sag, ground effect and other vehicles' wake act only where the settings above switch them on.
Intervals say how far the numbers would move if these flights were drawn again from the same distribution. They do not cover \
a wrong model.""".splitlines()
)
"""What stands below every report, unless the caller knows better."""
START_TO_GOAL = "start to goal"
"""Course of flights whose pilots find their own way."""
OWN_WAY = (
    "Who flies finds its own way: distances are from the straight line between start and goal, and say how far round it went."
)
"""Said where such flights are judged."""


def content(
    summary: Mapping[str, Any], meta: Mapping[str, Any], title: str | None, notes: Sequence[str] | None
) -> dict[str, Any]:
    """Return everything on the page that is not a picture.

    Args:
        summary: Of the run.
        meta: Of the recording; empty: there is none.
        title: None: made from what was flown.
        notes: None: those that stand on every report.
    """
    flights, total = list(summary["flights"]), summary["aggregate"]
    protocol = protocol_of(summary)
    confidence = float(summary.get("statistics", {}).get("confidence", 0.95))
    counts = [(name, sum(flight["outcome"] == name for flight in flights)) for name in OUTCOMES]
    return {
        "title": title or _title(flights),
        "verdict": " ".join([_verdict(flights, total, confidence), *own_way_note(flights)]),
        "cards": _cards(flights, total, protocol),
        "outcomes": [{"name": NAMES[name], "count": count, "style": _style(name)} for name, count in counts if count],
        "command": summary.get("command") or meta.get("command") or "",
        "facts": _facts(summary, meta, flights),
        "config": json_text(meta) if meta else "",
        "aggregate": [row for name in COURSE if (row := _aggregate_row(total, name, protocol))],
        "confidence": f"{100 * confidence:g} %",
        "interval_note": copies_note(total) or _interval_note(summary),
        "heads": [{"label": label, "words": name == "outcome"} for name, label in _columns(flights, protocol)],
        "rows": _rows(flights),
        "rows_note": _rows_note(len(flights)),
        "protocol": [fact(*one) for one in _protocol_facts(protocol)],
        "notes": list(NOTES if notes is None else notes),
        "version": summary.get("version", ""),
    }


def own_way_note(flights: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what must be said of distances where nobody was asked to follow a path: a sentence or none."""
    return [OWN_WAY] if any(flight.get("course") == START_TO_GOAL for flight in flights) else []


def path_notes(batch: FlightBatch, drawn: Sequence[int], outcomes: Sequence[object]) -> dict[str, str]:
    """Return what the path and error figures must say about what they show.

    Args:
        batch: The flights.
        drawn: Numbers of the flights that are drawn.
        outcomes: Of all flights.
    """
    count = len(outcomes)
    if count == 1:
        colour = "Blue" if outcomes[0] in SUCCESSES else "Amber" if outcomes[0] == "partial" else "Red"
        shown = f"{colour}: the flight. Dashed: the reference."
    else:
        some = f"{len(drawn)} of {count} flights are drawn, from the best to the worst"
        which = some if len(drawn) < count else f"All {count} flights are drawn"
        shown = f"{which}. Blue: succeeded, amber: partial, red: failed, green: a typical flight; dashed: the reference."
    if any(batch.left_picture(index) for index in drawn):
        shown += " Paths stop where they leave the neighbourhood of the reference."
    last = np.max(batch.rows, axis=0) >= 0
    ended = int(np.sum(batch.rows[:, -1] < 0)) if last.size else 0
    note = f" {ended} of {count} flights end before the last instant and count up to their end." if ended else ""
    return {"drawn_note": shown, "ended_note": note}


def protocol_of(summary: Mapping[str, Any]) -> TrackingProtocol:
    """Return thresholds kept in a summary; the defaults where it has none."""
    kept = summary.get("protocol") or {}
    known = {field.name for field in fields(TrackingProtocol)}
    return TrackingProtocol(**{name: float(value) for name, value in kept.items() if name in known})


def number(value: Any, digits: int = 3) -> str:
    """Return a number with so many significant digits, never in powers of ten below a million; a dash for none."""
    if value is None or not isfinite(value):
        return DASH
    value = float(value)
    if value == 0.0:
        return "0"
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{digits - 1}e}"
    places = max(0, digits - 1 - int(np.floor(np.log10(abs(value)))))
    return f"{value:,.{places}f}".replace("-", "\N{MINUS SIGN}")


def copies_note(total: Mapping[str, Any], sources: str = "--randomize, --turbulence or a vehicle with noise of its own") -> str:
    """Return what must be said of flights that are copies of each other; empty where none are.

    Args:
        total: An aggregate of `evaluation.statistics`.
        sources: What would make flights differ.
    """
    count, distinct = int(total["flights"]), int(total.get("distinct_flights", total["flights"]))
    if distinct >= count:
        return ""
    same = (
        f"{'Both' if count == 2 else f'All {count:,}'} are the same flight"
        if distinct == 1
        else f"Only {distinct:,} of the {count:,} flights differ"
    )
    return f"{same}: nothing drawn in this run sets them apart, so no interval is given. Flights differ with {sources}."


def _style(outcome: str) -> str:
    return outcome if outcome in SUCCESSES or outcome == "partial" else "failure"


def _distinct(flights: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    return list(dict.fromkeys(str(f[name]) for f in flights if f.get(name) not in (None, "")))


def _one_or_count(names: list[str], plural: str) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} {plural}"


def _title(flights: Sequence[Mapping[str, Any]]) -> str:
    parts = []
    for name, plural, joint in (
        ("vehicle", "vehicles", ""),
        ("course", "courses", "on "),
        ("scene", "scenes", "in "),
        ("pilot", "pilots", "flown by "),
    ):
        found = _distinct(flights, name)
        if found:
            joint = "from " if found == [START_TO_GOAL] else joint
            parts.append(joint + _one_or_count(found, plural))
    return " ".join(parts).replace(" flown by", ", flown by") or "Flights"


def _verdict(flights: Sequence[Mapping[str, Any]], total: Mapping[str, Any], confidence: float) -> str:
    count = len(flights)
    if count == 0:
        return "There are no flights in this run."
    good = sum(flight["outcome"] in SUCCESSES for flight in flights)
    if count == 1:
        return f"One flight: {NAMES.get(str(flights[0]['outcome']), flights[0]['outcome'])}."
    rate = total["success_rate"]
    said = f"All {count:,}" if good == count else f"{good or 'None'} of {count:,}"
    copies = copies_note(total)
    if copies:
        return f"{said} flights succeeded. {copies}"
    return (
        f"{said} flights succeeded. The success rate lies between {100 * rate['low']:.1f} % and "
        f"{100 * rate['high']:.1f} % with {100 * confidence:g} % confidence."
    )


def _cards(flights: Sequence[Mapping[str, Any]], total: Mapping[str, Any], protocol: TrackingProtocol) -> list[dict[str, str]]:
    count, rate = len(flights), total.get("success_rate") or {}
    error, near = total.get("tracking_error_m") or {}, total.get("proximity_percent") or {}
    value = rate.get("value")
    share = (
        DASH if value is None or not isfinite(value) else f"{100 * value:.0f}" if value in (0.0, 1.0) else f"{100 * value:.1f}"
    )
    good = sum(flight["outcome"] in SUCCESSES for flight in flights)
    tone = "" if not count else "good" if good == count else "poor" if good < 0.5 * count else ""
    return [
        card("Success", share, "%", f"{good:,} of {count:,} flight{'s' if count != 1 else ''}", tone),
        _measured("tracking_error_m", error.get("mean"), _between(error, "m"), protocol),
        card(
            "Worst distance",
            *_readable((total.get("tracking_error_max_m") or {}).get("max"), "m"),
            "greatest of any flight to its path",
        ),
        _measured("proximity_percent", near.get("mean"), "mean share of samples", protocol),
        card(
            "Collisions",
            f"{int(total.get('collisions') or 0):,}",
            "",
            f"{number(total.get('collisions_per_m_pooled'))} per metre flown",
        ),
        _measured(
            "saturation_percent",
            (total.get("saturation_percent") or {}).get("mean"),
            "samples with a rotor at a limit",
            protocol,
        ),
        _measured("speed_max_m_s", (total.get("speed_max_m_s") or {}).get("max"), _tilt(total), protocol),
    ]


def _measured(name: str, value: Any, below: str, protocol: TrackingProtocol) -> dict[str, str]:
    shown = metric(name)
    label = shown.label(protocol=protocol)
    return card(label[0].upper() + label[1:], *_readable(value, shown.unit), below)


def _readable(value: Any, unit: str) -> tuple[str, str]:
    """Return a number and its unit; a tile has room for few digits: lengths under a centimetre are told in millimetres."""
    if unit == "m" and value is not None and 0.0 < abs(value) < 0.01:
        return number(1000.0 * value), "mm"
    return number(value), unit


def _between(described: Mapping[str, Any], unit: str) -> str:
    low, high = described.get("low"), described.get("high")
    if low is None or high is None or not (isfinite(low) and isfinite(high)):
        return "mean distance to the path"
    if unit == "m" and 0.0 <= low <= high < 0.01:
        low, high, unit = 1000.0 * low, 1000.0 * high, "mm"
    return f"mean; {number(low)} to {number(high)} {unit}"


def _tilt(total: Mapping[str, Any]) -> str:
    tilt = (total.get("tilt_max_rad") or {}).get("max")
    return "" if tilt is None or not isfinite(tilt) else f"greatest tilt {degrees(tilt):.0f}°"


def _facts(summary: Mapping[str, Any], meta: Mapping[str, Any], flights: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    facts: dict[str, Any] = {"version": summary.get("version")}
    for name in ("vehicle", "scene", "course", "pilot", "seed"):
        found = _distinct(flights, name)
        if found:
            facts[name] = ", ".join(found[:6]) + (f" and {len(found) - 6} more" if len(found) > 6 else "")
    skipped = {"command", "format_version", "rows", "environments", "rotor_speed_min_rad_s", "rotor_speed_max_rad_s"}
    for name, value in meta.items():
        if name not in skipped and isinstance(value, str | int | float | bool) and value != "":
            facts.setdefault(name, value)
    if isinstance(meta.get("hardware"), Mapping):
        said = {k: v for k, v in meta["hardware"].items() if v not in (None, "")}
        facts["hardware"] = ", ".join(str(v) if isinstance(v, str) else f"{v} {k.replace('_', ' ')}" for k, v in said.items())
    if isinstance(meta.get("hashes"), Mapping):
        facts |= {f"hash of {name}": value for name, value in meta["hashes"].items()}
    labels = {"sha256": "hash of flights"}
    return [
        fact(
            labels.get(name, labelled(name)),
            f"{value:g}" if isinstance(value, float) else str(value),
            "hash" in labels.get(name, name),
        )
        for name, value in facts.items()
        if value not in (None, "")
    ]


def _aggregate_row(total: Mapping[str, Any], name: str, protocol: TrackingProtocol) -> dict[str, str] | None:
    described = total.get(name)
    if not isinstance(described, Mapping) or not described.get("count"):
        return None
    shown = metric(name)

    def scaled(key: str) -> str:
        value = described.get(key)
        return number(None if value is None else shown.factor * value)

    known = described.get("low") is not None and isfinite(described["low"])
    return {
        "label": shown.heading(protocol=protocol),
        "mean": scaled("mean"),
        "interval": f"{scaled('low')} {DASH} {scaled('high')}" if known else DASH,
        "median": scaled("median"),
        "iqm": scaled("interquartile_mean"),
        "spread": f"{scaled('q05')} {DASH} {scaled('q95')}",
        "min": scaled("min"),
        "max": scaled("max"),
        "count": str(described["count"]),
    }


def _columns(flights: Sequence[Mapping[str, Any]], protocol: TrackingProtocol) -> list[tuple[str, str]]:
    """Columns of the table of flights: vehicle, scene and the like only where they differ."""
    differing = [(name, name) for name in ("vehicle", "scene", "course", "pilot", "seed") if len(_distinct(flights, name)) > 1]
    measured = [(name, metric(name).heading(short=True, protocol=protocol)) for name in COLUMNS]
    return [("env", "flight"), ("outcome", "outcome"), *differing, *measured]


def _rows(flights: Sequence[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
    listed = list(flights)
    if len(listed) > ROWS_MAX:
        listed = sorted(listed, key=lambda f: (f["outcome"] in SUCCESSES, -_known(f.get("tracking_error_m"))))[:ROWS_MAX]
    names = [name for name, _ in _columns(flights, TrackingProtocol())]
    return [[_cell(name, flight.get(name)) for name in names] for flight in listed]


def _known(value: Any) -> float:
    return float(value) if value is not None and isfinite(value) else float("inf")


def _cell(name: str, value: Any) -> dict[str, Any]:
    if name == "outcome":
        return {"text": NAMES.get(value, value), "sort": NAMES.get(value, value), "words": True, "style": _style(value)}
    if isinstance(value, int) and not isinstance(value, bool):
        return {"text": str(value), "sort": str(value), "words": False, "style": ""}
    if isinstance(value, float) or value is None:
        factor = METRICS[name].factor if name in METRICS else 1.0
        shown = factor * value if value is not None and isfinite(value) else None
        return {"text": number(shown), "sort": "" if shown is None else f"{shown:.9g}", "words": False, "style": ""}
    return {"text": str(value), "sort": str(value), "words": False, "style": ""}


def _rows_note(count: int) -> str:
    if count == 0:
        return "There are none."
    if count > ROWS_MAX:
        return (
            f"The {ROWS_MAX} flights that went worst, failures first, of {count:,}; summary.json has all of them. "
            "Click a heading to sort."
        )
    return "Click a heading to sort." if count > 1 else "The one flight of this run."


def _interval_note(summary: Mapping[str, Any]) -> str:
    options = summary.get("statistics") or {}
    return (
        "Over flights that did not diverge, did not end where they began, and whose pilot did not fail. Intervals: Wilson score"
        " for rates; for means the"
        f" wider bounds of Student's t and of bootstrap-t with {options.get('resamples', '?')} resamples (seed"
        f" {options.get('seed', '?')}); none where all flights have the same value."
    )


def _protocol_facts(p: TrackingProtocol) -> list[tuple[str, str]]:
    end = f"within {p.end_radius_m:g} m of the last waypoint in the last {p.end_window_s:g} s"
    return [
        ("finished", f"{end}, never over {p.path_distance_max_m:g} m from the path"),
        ("partial", f"finished, but the median yaw error or that at the end is over {degrees(p.yaw_error_max_rad):g}°"),
        ("recovered", "finished in spite of at least one collision"),
        ("proximity", f"share of samples at most {p.proximity_m:g} m from the path"),
    ]
