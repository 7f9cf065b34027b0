"""Numbers and sentences of an evaluation's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import degrees, isfinite, nan
from typing import Any

from airworthy.benchmarks.tracking.adaptation import payload_step
from airworthy.benchmarks.tracking.conditions import Condition
from airworthy.benchmarks.tracking.config import EvaluateConfig, vehicle_of, vehicle_word
from airworthy.benchmarks.tracking.endings import told_endings
from airworthy.benchmarks.tracking.tables import CLASSES, SOURCE, PublishedRow, mean_of, published_rows
from airworthy.core.files import json_text
from airworthy.evaluation.statistics import says_something
from airworthy.reports.flight_text import NAMES, copies_note
from airworthy.reports.page import card, fact, fixed, heads, interval, measured, share_interval
from airworthy.tasks import SUCCESSES, TrackingProtocol
from airworthy.tasks.declared_metrics import CONDITION, FLIGHT_ROW, PAIRED, metric

__all__ = ["content"]

ROWS_MAX = 400
"""Flights listed one by one."""
FAILURES_MAX = 120
ENDINGS_MAX, FIRST_ENDINGS = 40, 3
SOURCES = "--spread.position, --spread.mass or a condition with noise"
"""What lets flights of one pilot, family and condition differ."""
CLASS_NAMES = ("clean", "recovered", "partial", "failed, no recovery", "failed, off course", "other")

NOTES = tuple(
    """\
Simulated flights stand beside real ones here. Their rooms, drones, light and air differ, and so do the starts: read the \
published numbers as the size of the task, not as a race.
Each condition stands in for a real experiment: light is scaled as linear radiance, people are figures on random walks, \
things are taken out with their surfaces and gaussians, the payload is mass alone, the gust is a constant lateral specific \
force for one second.
The semi-kinematic family has neither rotor lag nor inertia nor drag; the rigid family has rotors (20 ms), inertia and a \
rate loop, but no flexible frame, propeller wash or battery.
The expert (mpc) is given the true state and the true parameters of every drone: it says what the course allows, not what \
a camera allows. Noise of what is sensed does not touch it, nor can light and people.
An impact pushes the drone's sphere of 0.15 m back and the flight goes on; propellers do not break.
Intervals say how far the numbers would move if these flights were drawn again. They do not cover a wrong model.""".splitlines()
)


def content(
    summary: Mapping[str, Any], config: EvaluateConfig, conditions: Sequence[Condition], identity: Mapping[str, Any]
) -> dict[str, Any]:
    """Return everything on the page that is not a picture.

    Args:
        summary: Of the run.
        config: Of the run.
        conditions: That were flown.
        identity: Of the run, shown whole.
    """
    entries, rows = summary["aggregate"], summary["flights"]
    titles = {item.name: item.title for item in conditions}
    return {
        "title": f"{' and '.join(dict.fromkeys(row['pilot'] for row in rows))} on {config.course} in {config.scene}",
        "verdict": _verdict(entries, summary["state"], summary["endings"]),
        "cards": _cards(entries, rows, config.protocol),
        "classes": _bars(entries),
        "command": summary["command"],
        "facts": _facts(summary, config, identity),
        "config": json_text(dict(identity)),
        "source": SOURCE,
        "beside": [_entry(entry) for entry in entries],
        "ablation": _ablation(entries),
        "paired": [_pair(item, titles) for item in (*summary["against_first_pilot"], *summary["against_baseline"])],
        "failures": _failures(rows, titles),
        "failures_note": _failures_note(rows),
        "endings": told_endings(summary["endings"], ENDINGS_MAX),
        **_adaptation(summary["adaptation"]),
        "rows": [_flight(row) for row in rows[:ROWS_MAX]],
        "rows_note": f"The first {ROWS_MAX} of {len(rows)} flights; all are in results.parquet."
        if len(rows) > ROWS_MAX
        else "",
        "protocol": [fact(*one) for one in _thresholds(config.protocol)],
        "metric_heads": heads(CONDITION, config.protocol, short=True),
        "paired_heads": heads(PAIRED, config.protocol, short=True),
        "flight_heads": heads(FLIGHT_ROW, config.protocol, short=True),
        "conditions": [{"title": item.title, "name": item.name, "says": item.says} for item in conditions if item.says],
        "notes": NOTES,
        "version": summary["version"],
    }


def _verdict(entries: Sequence[Mapping[str, Any]], state: Mapping[str, Any], ended: Sequence[Mapping[str, Any]] = ()) -> str:
    single = [entry for entry in entries if not entry["condition"].startswith("all:")]
    by_pilot = {name: [entry for entry in single if entry["pilot"] == name] for name in _pilots(single)}
    told = [(name, *_successes(mine)) for name, mine in by_pilot.items()]
    count, good = sum(item[2] for item in told), sum(item[1] for item in told)
    if len(told) > 1:  # a policy's flights and the expert's are no one number
        sentences = [f"Simulated flights that succeeded: {', '.join(f'{name} {n} of {of}' for name, n, of in told)}."]
    else:
        sentences = [f"{good} of {count} simulated flights succeeded."]
    if count and not good:  # what ended them comes before all tables of nothing
        sentences += told_endings(ended, FIRST_ENDINGS)
    if not state["complete"]:
        sentences.append(f"This is not all: {state['blocks_finished']} of {state['blocks']} blocks of flights are finished.")
    copied = next((note for entry in single if (note := copies_note(entry, SOURCES))), "")
    if copied:
        sentences.append(f"Not every row of the table has intervals. {copied}")
    return " ".join(sentences)


def _cards(
    entries: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], protocol: TrackingProtocol
) -> list[dict[str, str]]:
    base = next((entry for entry in entries if entry["condition"] == "baseline"), entries[0] if entries else None)
    if base is None:
        return []
    published = base["published"] or {}
    return [
        *_success_cards(rows),
        *(_card(name, base, published, protocol) for name in CONDITION),
        card("flights", str(len(rows)), "", f"{len(dict.fromkeys(row['condition'] for row in rows))} conditions"),
    ]


def _success_cards(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return a card for every pilot in every family: how many of all its flights succeeded."""
    found = []
    for pilot, family in dict.fromkeys((row["pilot"], row["family"]) for row in rows):
        mine = [row["outcome"] in SUCCESSES for row in rows if (row["pilot"], row["family"]) == (pilot, family)]
        good = sum(mine)
        below = f"{family.replace('_', '-')}; {good} of {len(mine)} flights, all conditions"
        tone = "good" if good == len(mine) else "poor"
        found.append(card(f"success, {pilot}", f"{100 * good / len(mine):.0f}", "%", below, tone))
    return found


def _card(name: str, entry: Mapping[str, Any], published: Mapping[str, Any], protocol: TrackingProtocol) -> dict[str, str]:
    shown, real = metric(name), published.get(name)
    known = real is not None and isfinite(real)
    who = f"{entry['pilot']}, {entry['family'].replace('_', '-')}, {entry['title'].lower()}"
    note = who + (f"; published, real: {shown.factor * float(real or 0.0):g} {shown.unit}" if known else "")
    return card(shown.label(protocol=protocol), measured(name, mean_of(entry, name)), shown.unit, note)


def _cell(entry: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return a metric under a condition: mean, interval, and for the hover the mean over all samples."""
    described = entry.get(name) or {"low": nan, "high": nan}
    shown = metric(name)
    pooled = f"over all samples: {measured(name, entry['tracking_error_pooled_m'])} {shown.unit}"
    return {
        "value": measured(name, mean_of(entry, name)),
        "interval": interval(shown.factor * described["low"], shown.factor * described["high"], shown.digits),
        "hint": pooled if name == "tracking_error_m" else "",
    }


def _pilots(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(entry["pilot"] for entry in entries))


def _successes(entries: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Return how many flights succeeded, of how many."""
    good = sum(entry["classes"]["success"] + entry["classes"]["success_recovered"] for entry in entries)
    return good, sum(entry["flights"] for entry in entries)


def _bars(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return outcomes pilot by pilot, in the paper's order."""
    single = [entry for entry in entries if not entry["condition"].startswith("all:")]
    styles = ("success", "success_recovered", "partial", "failure", "failure", "failure")
    found = []
    for pilot in _pilots(single):
        counts = [sum(entry["classes"][name] for entry in single if entry["pilot"] == pilot) for name in CLASSES]
        parts = [
            {"name": name, "count": count, "style": style}
            for name, count, style in zip(CLASS_NAMES, counts, styles, strict=True)
            if count
        ]
        found.append({"pilot": pilot, "parts": parts})
    return found


def _entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the table that sets simulation beside reality."""
    rate, published = entry["success_rate"], entry["published"]
    return {
        "title": entry["title"],
        "together": entry["condition"].startswith("all:"),
        "pilot": entry["pilot"],
        "family": entry["family"].replace("_", "-"),
        "flights": entry["flights"],
        "classes": " \N{MIDDLE DOT} ".join(str(entry["classes"][name]) for name in CLASSES[:5])
        + (f" (+{entry['classes']['other']})" if entry["classes"]["other"] else ""),
        "success": f"{100 * rate['value']:.0f}",
        "success_interval": share_interval(rate["low"], rate["high"]),
        "cells": [_cell(entry, name) for name in CONDITION],
        "real": None if published is None else _real(published),
    }


def _real(row: Mapping[str, Any]) -> dict[str, Any]:
    good, count = row["flights"][0] + row["flights"][1], sum(row["flights"])
    return {
        "name": f"Table {row['table']}",
        "classes": " \N{MIDDLE DOT} ".join(map(str, row["flights"])),
        "success": f"{good} of {count}",
        "cells": [measured(name, row.get(name)) for name in CONDITION],
    }


def _ablation(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Table I: variants of the network in the baseline, published and ours; empty where no variant flew."""
    if not any(entry["variant"] for entry in entries):
        return []
    table = []
    for row in (row for row in published_rows() if row.table == "I"):
        ours = [entry for entry in entries if entry["variant"] == row.variant and entry["condition"] == "baseline"]
        table.append({"name": row.name, "published": _real(_plain(row)), "ours": [_entry(entry) for entry in ours]})
    return table


def _plain(row: PublishedRow) -> dict[str, Any]:
    return {item.name: getattr(row, item.name) for item in fields(row)}


def _pair(item: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, Any]:
    return {
        "what": f"{titles.get(item['condition'], item['condition'])}, {item['family'].replace('_', '-')}",
        "pair": f"{item['pilot']} minus {item['minus']}",
        "pairs": str(item["pairs"]),
        "cells": [_difference(item[name], name) for name in PAIRED],
        "only": f"{item['only_first_succeeded']} / {item['only_second_succeeded']}",
    }


def _difference(found: Mapping[str, Any], name: str) -> dict[str, str]:
    shown = metric(name)
    low, high = shown.factor * found["low"], shown.factor * found["high"]
    return {"value": measured(name, found["value"], style="+"), "interval": interval(low, high, shown.digits)}


def _failures(rows: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> list[dict[str, Any]]:
    failed = [row for row in rows if row["outcome"] not in SUCCESSES or row["cause"]]
    return [
        {
            "condition": titles.get(row["condition"], row["condition"]),
            "pilot": row["pilot"],
            "family": row["family"].replace("_", "-"),
            "flight": row["flight"],
            "outcome": NAMES[row["outcome"]],
            "style": _style(row["outcome"]),
            "cause": row["cause"],
            # As in the means: of who failed at the start, the distance is that of the start.
            "error": measured("tracking_error_m", row["tracking_error_m"] if _described(row) else None),
        }
        for row in failed[:FAILURES_MAX]
    ]


def _described(row: Mapping[str, Any]) -> bool:
    return says_something(row["outcome"], row["samples"])


def _failures_note(rows: Sequence[Mapping[str, Any]]) -> str:
    failed = sum(row["outcome"] not in SUCCESSES for row in rows)
    marred = sum(row["outcome"] in SUCCESSES and bool(row["cause"]) for row in rows)
    said = [f"{failed} of {len(rows)} flights failed." if failed else "No flight failed."]
    if marred:
        said.append(f"{marred} more {'is' if marred == 1 else 'are'} listed that succeeded in spite of what is named.")
    if failed + marred > FAILURES_MAX:
        said.append(f"The first {FAILURES_MAX} are listed.")
    return " ".join(said)


def _adaptation(adaptation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ratio of one rotor's force to the mass: ours, published, and the formula's check."""
    names = {"ratio_told": "what its history network says", "ratio_flown": "what its motion shows"}
    estimates = []
    for entry in adaptation["estimates"]:
        for condition, numbers in entry["conditions"].items():
            before = entry["conditions"].get("baseline")
            loaded = condition.partition(":")[0] == "payload" and before is not None
            moved = payload_step(before, numbers) if loaded else nan
            off = 100.0 * (numbers["mean"] / numbers["true"] - 1.0)
            estimates.append(
                {
                    "who": f"{entry['pilot']}, {entry['family'].replace('_', '-')}",
                    "estimate": names[entry["estimate"]],
                    "condition": condition,
                    "flights": numbers["flights"],
                    "mean": f"{numbers['mean']:.3f}",
                    "std": f"{numbers['std']:.3f}",
                    "true": f"{numbers['true']:.3f}",
                    "off": f"{off:+.2f} %",
                    "step": f"{100 * moved:.0f} %" if isfinite(moved) else "",
                }
            )
    nominal, loaded = adaptation["published"][1], adaptation["published"][2]
    step = (loaded["mean"] - nominal["mean"]) / (loaded["true"] - nominal["true"])
    return {
        "estimates": estimates,
        "stepped": any(row["step"] for row in estimates),
        "ratios": [{**row, "off": f"{100 * (row['mean'] / row['true'] - 1):+.1f} %"} for row in adaptation["published"]],
        "published_step": f"{100 * step:.0f} %",
        "formula": [
            {key: f"{value:.3f}" for key, value in item.items()} | {"angle_deg": f"{item['angle_deg']:.0f}"}
            for item in adaptation["formula"]
        ],
    }


def _facts(summary: Mapping[str, Any], config: EvaluateConfig, identity: Mapping[str, Any]) -> list[dict[str, Any]]:
    spread = config.spread
    drawn = f"\u00b1{spread.position:g} m, \u00b1{spread.velocity:g} m/s, quaternion \u00b1{spread.attitude:g}"
    facts: list[tuple[str, Any, bool]] = [
        ("version", summary["version"], False),
        ("seed", config.seed, False),
        ("vehicle", vehicle_word(config, vehicle_of(config)), False),
        ("digest of the vehicle", identity.get("vehicle_sha256", ""), True),
        ("starts", drawn, False),
        ("families", ", ".join(family.replace("_", "-") for family in config.family), False),
        ("at an impact", config.contact, False),
        ("hardware", summary["hardware"].get("processor", ""), False),
        ("device", config.device, False),
        ("digest", summary["state"]["digest"], True),
    ]
    for name, method_identity in identity["pilots"].items():
        facts += [(f"{name}, {key}", value, True) for key, value in method_identity.items() if key != "pilot"]
    return [fact(*one) for one in facts if one[1] != ""]


def _flight(row: Mapping[str, Any]) -> dict[str, Any]:
    cells = [
        (row["condition"], True),
        (row["pilot"], True),
        (row["family"].replace("_", "-"), True),
        (row["flight"], False),
        (NAMES[row["outcome"]], True),
        *((measured(name, row[name] if _described(row) else None), False) for name in FLIGHT_ROW),
        (fixed(row["mass_kg"], 3), False),
        (fixed(row["thrust_n"], 2), False),
    ]
    return {"cells": [{"text": text, "words": is_text} for text, is_text in cells], "style": _style(row["outcome"])}


def _thresholds(protocol: TrackingProtocol) -> list[tuple[str, str]]:
    return [
        ("finished", f"within {protocol.end_radius_m:g} m of the last waypoint in the last {protocol.end_window_s:g} s"),
        ("on course", f"never more than {protocol.path_distance_max_m:g} m from the path"),
        (
            "orientation followed",
            f"yaw error at most {degrees(protocol.yaw_error_max_rad):.0f}\u00b0 at the end and in the median",
        ),
        *_meanings(protocol),
        (
            "collision",
            (
                f"begins below {protocol.collision_start_m:g} m of clearance or at an impact,"
                f" ends above {protocol.collision_end_m:g} m"
            ),
        ),
        ("path", "the continuous polyline of the 20 Hz course; means over a flight, then over flights"),
        ("intervals", "rates: Wilson score; means: the wider of Student's t and bootstrap-t; 95 %"),
    ]


def _meanings(protocol: TrackingProtocol) -> list[tuple[str, str]]:
    return [(metric(name).label(protocol=protocol), metric(name).hint(protocol)) for name in PAIRED]


def _style(outcome: str) -> str:
    return outcome if outcome in ("success", "success_recovered", "partial") else "failure"
