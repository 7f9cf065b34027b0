"""Numbers and sentences of a benchmark's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import isfinite
from typing import Any

from airworthy import __version__
from airworthy.core.files import json_text
from airworthy.evaluation.navigation.published import SOURCE, differences, published_score
from airworthy.evaluation.navigation.report_tables import INDICATOR_WORDS, coverage, planning, trends
from airworthy.tasks.navigation import NavigationProtocol

__all__ = ["content", "titles_of"]

Row = Mapping[str, Any]
DASH = "\N{EN DASH}"
NONE = {"score": "", "variance": "", "final": "", "missing": ""}
_TEXT = """
The published flights were simulated in Gazebo with the original planners; their layouts are not public. Ours are generated
after the description in the paper, so rates of single scenarios may differ although planners agree: read the two side by
side, not as one measurement repeated.

Every vehicle collides as a sphere of 0.3 m unless the run says otherwise: 12 of the 36 would be wider than the narrow gaps.

The virtual vehicles inherit a small inertia (0.04 m d\N{SUPERSCRIPT TWO}) from one research vehicle; it makes them about
eight times as agile as the real ones. The published numbers are kept.

Sensing is ideal unless perturbed: depth up to 5 m without noise, odometry without drift. Planning takes simulated time:
counted work times recorded constants.

The final score depends on who else is in the table, because the variance is divided by the largest one in it. The absolute
one does not.

Intervals say how far the numbers would move if these flights were drawn again. Ten layouts per scenario are few: the column
for other layouts is the wider, and the more honest one for what a new place would give.
"""
NOTES = tuple(" ".join(paragraph.split()) for paragraph in _TEXT.split("\n\n"))
_MOTION = (
    ("time [s]", "time_s", 1, 1.0),
    ("way [m]", "path_length_m", 1, 1.0),
    ("mean speed [m/s]", "speed_mean_m_s", 2, 1.0),
    ("top speed [m/s]", "speed_max_m_s", 2, 1.0),
    ("least distance [m]", "clearance_min_m", 2, 1.0),
    ("off the set-point [m]", "tracking_rmse_m", 3, 1.0),
    ("rotors saturated [%]", "thrust_saturation", 1, 100.0),
    ("rates saturated [%]", "rate_saturation", 1, 100.0),
    ("jerk\N{SUPERSCRIPT TWO} [10\N{SUPERSCRIPT THREE} m\N{SUPERSCRIPT TWO}/s\N{SUPERSCRIPT FIVE}]", "jerk_integral", 1, 1e-3),
    ("snap\N{SUPERSCRIPT TWO} [10\N{SUPERSCRIPT SIX} m\N{SUPERSCRIPT TWO}/s\N{SUPERSCRIPT SEVEN}]", "snap_integral", 1, 1e-6),
    ("effort [s]", "control_effort", 2, 1.0),
    ("replans", "replans", 1, 1.0),
    ("failed after [% of way]", "failed_at", 0, 100.0),
)


def titles_of(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Name of each pilot for people."""
    return {name: str(told.get("title") or name) for name, told in manifest["pilots"].items()}


def content(summary: Mapping[str, Any], manifest: Mapping[str, Any], rows: Sequence[Row], folder: str) -> dict[str, Any]:
    """Everything on the page that is not a picture."""
    titles = titles_of(manifest)
    division = manifest.get("division", {})
    return {
        "title": _title(summary, rows, titles),
        "division": division.get("division", "open"),
        "open_because": "; ".join(division.get("because", [])),
        "verdict": _verdict(summary, rows, titles),
        "cards": _cards(summary, rows, titles),
        "source": SOURCE,
        "scores": [_score(entry, summary, titles) for entry in summary["scores"]],
        "differences": _differences(summary, titles, not coverage(rows)),
        "looks": _looks(rows, titles, folder),
        **_categories(summary, titles),
        "paired": [_pair(entry, titles) for entry in summary["paired"]],
        "coverage": coverage(rows),
        "trend_heads": list(INDICATOR_WORDS.values()),
        "trends": trends(summary, titles),
        "planning": planning(summary, rows, titles, manifest["identity"]["config"]["compute"]),
        "motion_heads": ["pilot", *(head for head, *_ in _MOTION)],
        "motion": [[titles.get(p, p), *_motion(told)] for p, told in summary["motion"].items()],
        "command": manifest.get("command", ""),
        "facts": _facts(summary, manifest),
        "system": [{"name": name, "value": value} for name, value in manifest.get("system", {}).items()],
        "config": json_text({"identity": manifest["identity"], "pilots": manifest["pilots"]}),
        "protocol": _protocol(manifest["identity"]["config"]),
        "notes": NOTES,
        "version": __version__,
    }


def _verdict(summary: Mapping[str, Any], rows: Sequence[Row], titles: Mapping[str, str]) -> str:
    ranked = [entry for entry in summary["scores"] if not entry["reference_only"]]
    state = summary["state"]
    words = []
    if len(ranked) > 1:
        words.append("Ranking: " + " > ".join(titles.get(e["pilot"], e["pilot"]) for e in ranked) + ".")
    elif ranked:
        words.append(f"{titles.get(ranked[0]['pilot'], ranked[0]['pilot'])} scores {ranked[0]['score']:.1f} of 100.")
    if coverage(rows):
        words.append("A part of the benchmark: no scores to set beside published ones.")
    if not state["complete"]:
        words.append(f"This is not all: {state['finished']:,} of {state['flights']:,} flights are finished.")
    return " ".join(words) or "Nothing here can be ranked yet."


def _cards(summary: Mapping[str, Any], rows: Sequence[Row], titles: Mapping[str, str]) -> list[dict[str, str]]:
    cards = []
    for entry in summary["scores"][:4]:
        below = f"final {entry['final']:.1f}" + (", for reference" if entry["reference_only"] else "")
        paper = published_score(entry["pilot"])
        below += f"; published {paper['score']:.1f}" if paper and not coverage(rows) else ""
        cards.append(_card(titles.get(entry["pilot"], entry["pilot"]), f"{entry['score']:.1f}", below))
    vehicles, scenarios = len({row["vehicle"] for row in rows}), len({row["scenario"] for row in rows})
    below = f"{vehicles} vehicle{'s' * (vehicles != 1)}, {scenarios} scenario{'s' * (scenarios != 1)}"
    cards.append(_card("flights", f"{len(rows):,}", below))
    took = sum(part.get("flying", 0.0) + part.get("setup", 0.0) for part in summary["seconds"].values())
    flown = sum(row["time_s"] for row in rows if isfinite(row["time_s"]))
    return [*cards, _card("computed in", _span(took), f"{_span(flown)} of flight, all processes")]


def _card(label: str, value: str, below: str) -> dict[str, str]:
    return {"label": label, "value": value, "unit": "", "below": below}


def _score(entry: Mapping[str, Any], summary: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, Any]:
    paper = published_score(entry["pilot"])
    iqm = next(c["interquartile_mean"] for c in summary["cells"] if c["pilot"] == entry["pilot"])
    return {
        "title": titles.get(entry["pilot"], entry["pilot"]),
        "score": _number(entry["score"], 2),
        "variance": _number(entry["variance"], 3),
        "final": _number(entry["final"], 2),
        "absolute": _number(entry["absolute"], 2),
        "iqm": _number(100 * iqm, 1),
        "cells": f"{entry['cells']} of {entry['cells_wanted']}",
        "missing": ", ".join(entry["missing"]),
        "reference": entry["reference_only"],
        "paper": NONE
        if paper is None
        else {
            "score": f"{paper['score']:.2f}",
            "variance": f"{paper['variance']:.3f}",
            "final": f"{paper['final']:.2f}",
            "missing": paper.get("missing", ""),
        },
    }


def _differences(summary: Mapping[str, Any], titles: Mapping[str, str], comparable: bool) -> list[dict[str, Any]]:
    found = {(e["pilot"], e["scenario"]): e for e in summary["scenarios"]}
    table = []
    for item in differences({key: e["value"] for key, e in found.items()}):
        entry = found[item["pilot"], item["scenario"]]
        table.append(
            {
                "scenario": item["scenario"].replace("_", " "),
                "pilot": titles.get(item["pilot"], item["pilot"]),
                "rate": f"{100 * item['rate']:.1f}",
                "interval": _interval(entry["low"], entry["high"]),
                "layouts": _interval(entry["layout_low"], entry["layout_high"]),
                "stated": item["stated"].words,
                "off": "inside" if abs(item["off"]) < 5e-4 else f"{100 * item['off']:+.1f}",
                "far": item["far"] and comparable,
            }
        )
    order = list(dict.fromkeys(e["scenario"].replace("_", " ") for e in summary["scenarios"]))
    return sorted(table, key=lambda row: order.index(row["scenario"]))


def _looks(rows: Sequence[Row], titles: Mapping[str, str], folder: str) -> list[dict[str, Any]]:
    """The first row of each pilot and outcome."""
    found: dict[tuple[str, str], list[int]] = {}
    for number, row in enumerate(rows):
        found.setdefault((row["pilot"], row["outcome"]), []).append(number)
    looks = []
    for (pilot, outcome), numbers in found.items():
        row = rows[numbers[0]]
        cause = f", {row['cause']}" if row["cause"] else ""
        what = f"{row['vehicle']}, {row['scenario'].replace('_', ' ')} {row['configuration']}{cause}, {row['time_s']:.1f} s"
        looks.append(
            {
                "pilot": titles.get(pilot, pilot),
                "outcome": outcome.replace("_", " "),
                "count": len(numbers),
                "what": what[:160],
                "command": f"airworthy bench replay {folder} {numbers[0]}",
            }
        )
    return looks


def _categories(summary: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, Any]:
    names = list(dict.fromkeys(entry["category"] for entry in summary["categories"]))
    found = {(e["pilot"], e["category"]): e for e in summary["categories"]}
    rows = []
    for pilot in dict.fromkeys(entry["pilot"] for entry in summary["categories"]):
        cells = [found.get((pilot, name)) for name in names]
        told = [
            {"value": "", "interval": ""}
            if cell is None
            else {"value": f"{100 * cell['value']:.1f}", "interval": _interval(cell["low"], cell["high"])}
            for cell in cells
        ]
        rows.append({"title": titles.get(pilot, pilot), "cells": told})
    return {"category_names": names, "categories": rows}


def _pair(entry: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, Any]:
    names = [titles.get(entry[part], entry[part]) for part in ("first", "second")]
    return {
        "pilots": f"{names[0]} minus {names[1]}",
        "pairs": entry["pairs"],
        "difference": f"{100 * entry['difference']:+.1f}" if entry["pairs"] else "",
        "interval": f"{100 * entry['low']:+.1f} to {100 * entry['high']:+.1f}" if entry["pairs"] else "",
        "first": entry["only_first"],
        "second": entry["only_second"],
    }


def _motion(told: Mapping[str, Any]) -> list[str]:
    return [_number(scale * told[name], digits) for _, name, digits, scale in _MOTION]


def _facts(summary: Mapping[str, Any], manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    config, machine = manifest["identity"]["config"], summary["hardware"]
    took = summary["seconds"]
    facts = [
        ("version", manifest["identity"]["version"]),
        ("seed, layouts", f"{config['seed']}, {config['layouts']}"),
        ("compute", config["compute"]),
        ("limit of acceleration", config["a_max"]),
        ("body", config["body"]),
        ("depth images", config["sensing"]),
        ("processor", f"{machine['processor']}, {machine['cores']} cores"),
        ("system", f"{machine['system']}, {machine['python']}"),
        *((f"{name}: computed in", _took(part)) for name, part in took.items()),
    ]
    found = [{"name": name, "value": value, "hash": False} for name, value in facts]
    return [*found, {"name": "settings SHA-256", "value": manifest["digest"], "hash": True}]


def _took(part: Mapping[str, float]) -> str:
    each = 1000.0 * part["planning"] / part["asked"] if part.get("asked") else 0.0
    whole = part.get("flying", 0.0) + part.get("setup", 0.0)
    return f"{_span(whole)}, of it planning {_span(part.get('planning', 0.0))} ({each:.3f} ms per flight and tick)"


def _protocol(config: Mapping[str, Any]) -> list[dict[str, str]]:
    told = config["protocol"]
    found = []
    for item in fields(NavigationProtocol):
        name, _, unit = item.name.replace("_m_s2", " [m/s\N{SUPERSCRIPT TWO}]").replace("_m_s", " [m/s]").partition(" [")
        for end in ("_s", "_m", "_deg"):
            if not unit and name.endswith(end):
                name, unit = name[: -len(end)], f"{end[1:]}]"
        value = told[item.name]
        shown = ("yes" if value else "no") if isinstance(value, bool) else f"{value:g} {unit.rstrip(']')}".strip()
        found.append({"name": name.replace("_", " "), "value": shown})
    usual = {name: value for name, value in config["perturb"].items() if name != "moving_speed"}
    found += [{"name": name.replace("_", " "), "value": f"{value:g}"} for name, value in usual.items() if value]
    return found


def _title(summary: Mapping[str, Any], rows: Sequence[Row], titles: Mapping[str, str]) -> str:
    names = [titles.get(entry["pilot"], entry["pilot"]) for entry in summary["scores"]]
    who = names[0][0].upper() + names[0][1:] if len(names) == 1 else f"{len(names)} pilots"
    vehicles, scenarios = len({row["vehicle"] for row in rows}), len({row["scenario"] for row in rows})
    return f"{who} on {vehicles} vehicle{'s' * (vehicles != 1)} in {scenarios} scenario{'s' * (scenarios != 1)}"


def _number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}" if isfinite(value) else ""


def _interval(low: float, high: float) -> str:
    return f"{100 * low:.0f} {DASH} {100 * high:.0f}" if isfinite(low) and isfinite(high) else ""


def _span(seconds: float) -> str:
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"
