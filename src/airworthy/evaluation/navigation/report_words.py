"""Numbers and sentences of a benchmark's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from airworthy import __version__
from airworthy.core.files import json_text
from airworthy.evaluation.navigation.published import SOURCE, published_score
from airworthy.evaluation.navigation.report_facts import facts, looks, protocol
from airworthy.evaluation.navigation.report_numbers import number, span
from airworthy.evaluation.navigation.report_rates import category_rows, difference_rows, pair_row, score_row
from airworthy.evaluation.navigation.report_tables import INDICATOR_WORDS, coverage, planning, trends
from airworthy.evaluation.navigation.report_why import LAYOUT_HEADS, WHY_HEADS, layout_rows, why_rows

__all__ = ["content", "titles_of"]

Row = Mapping[str, Any]
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
        "scores": [score_row(entry, summary, titles) for entry in summary["scores"]],
        "differences": difference_rows(summary, titles, not coverage(rows)),
        "looks": looks(rows, titles, folder),
        "why_heads": WHY_HEADS,
        "why": why_rows(summary["failures"], titles),
        "layout_heads": LAYOUT_HEADS,
        "layouts": layout_rows(summary["layouts"], titles),
        **category_rows(summary, titles),
        "paired": [pair_row(entry, titles) for entry in summary["paired"]],
        "coverage": coverage(rows),
        "trend_heads": list(INDICATOR_WORDS.values()),
        "trends": trends(summary, titles),
        "planning": planning(summary, rows, titles, manifest["identity"]["config"]["compute"]),
        "motion_heads": ["pilot", *(head for head, *_ in _MOTION)],
        "motion": [[titles.get(p, p), *_motion(told)] for p, told in summary["motion"].items()],
        "command": manifest.get("command", ""),
        "facts": facts(summary, manifest),
        "system": [{"name": name, "value": value} for name, value in manifest.get("system", {}).items()],
        "config": json_text({"identity": manifest["identity"], "pilots": manifest["pilots"]}),
        "protocol": protocol(manifest["identity"]["config"]),
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
    return [*cards, _card("computed in", span(took), f"{span(flown)} of flight, all processes")]


def _card(label: str, value: str, below: str) -> dict[str, str]:
    return {"label": label, "value": value, "unit": "", "below": below}


def _motion(told: Mapping[str, Any]) -> list[str]:
    return [number(scale * told[name], digits) for _, name, digits, scale in _MOTION]


def _title(summary: Mapping[str, Any], rows: Sequence[Row], titles: Mapping[str, str]) -> str:
    names = [titles.get(entry["pilot"], entry["pilot"]) for entry in summary["scores"]]
    who = names[0][0].upper() + names[0][1:] if len(names) == 1 else f"{len(names)} pilots"
    vehicles, scenarios = len({row["vehicle"] for row in rows}), len({row["scenario"] for row in rows})
    return f"{who} on {vehicles} vehicle{'s' * (vehicles != 1)} in {scenarios} scenario{'s' * (scenarios != 1)}"
