"""Numbers and sentences of a benchmark's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import pairwise
from math import isfinite
from typing import Any

from airworthy import __version__
from airworthy.benchmarks.navigation.report.tables import (
    INDICATOR_LABELS,
    WHY_HEADS,
    category_rows,
    coverage,
    difference_rows,
    flip_rows,
    layout_heads,
    layout_rows,
    pair_row,
    planning,
    proposals,
    score_row,
    span,
    trends,
    trends_within,
    why_rows,
)
from airworthy.benchmarks.navigation.score import SOURCE, published_score
from airworthy.core.files import json_text
from airworthy.reports.page import card, fact, heads, measured
from airworthy.tasks.declared_metrics import GOAL
from airworthy.tasks.navigation import NavigationProtocol

__all__ = ["MOTION", "content", "facts", "notable_flights", "protocol", "titles_of"]

# -----------------------------------------------------------------------------------------------------------------------------
# What a benchmark's report says of a run itself: settings, machine, rules, and flights that are worth a look.

Row = Mapping[str, Any]


def notable_flights(rows: Sequence[Row], titles: Mapping[str, str], folder: str) -> list[dict[str, Any]]:
    """Return the first row of each pilot and outcome.

    Args:
        rows: Of the table, in its order: replays name a flight by its number in it.
        titles: What pilots are called, by name.
        folder: Of the benchmark, as a command names it.
    """
    found: dict[tuple[str, str], list[int]] = {}
    for index, row in enumerate(rows):
        found.setdefault((row["pilot"], row["outcome"]), []).append(index)
    flights = []
    for (pilot, outcome), numbers in found.items():
        row = rows[numbers[0]]
        cause = f", {row['cause']}" if row["cause"] else ""
        what = f"{row['vehicle']}, {row['scenario'].replace('_', ' ')} {row['configuration']}{cause}, {row['time_s']:.1f} s"
        flights.append(
            {
                "pilot": titles.get(pilot, pilot),
                "outcome": outcome.replace("_", " "),
                "count": len(numbers),
                "what": what[:160],
                "command": f"airworthy bench replay {folder} {numbers[0]}",
            }
        )
    return flights


def facts(summary: Mapping[str, Any], manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what flew, with which settings, on what, in what time."""
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
    return [*(fact(*one) for one in facts), fact("settings SHA-256", manifest["digest"], is_hash=True)]


def _took(part: Mapping[str, float]) -> str:
    each = 1000.0 * part["planning"] / part["asked"] if part.get("asked") else 0.0
    whole = part.get("flying", 0.0) + part.get("setup", 0.0)
    return f"{span(whole)}, of it planning {span(part.get('planning', 0.0))} ({each:.3f} ms per flight and tick)"


def protocol(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rules of judgement and what was worse than ideal, for people."""
    values = config["protocol"]
    found = []
    for item in fields(NavigationProtocol):
        name, _, unit = item.name.replace("_m_s2", " [m/s\N{SUPERSCRIPT TWO}]").replace("_m_s", " [m/s]").partition(" [")
        for end in ("_s", "_m", "_deg"):
            if not unit and name.endswith(end):
                name, unit = name[: -len(end)], f"{end[1:]}]"
        value = values[item.name]
        shown = ("yes" if value else "no") if isinstance(value, bool) else f"{value:g} {unit.rstrip(']')}".strip()
        found.append(fact(name.replace("_", " "), shown))
    usual = {name: value for name, value in config["perturb"].items() if name != "moving_speed"}
    found += [fact(name.replace("_", " "), f"{value:g}") for name, value in usual.items() if value]
    return found


# -----------------------------------------------------------------------------------------------------------------------------

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
MOTION = (*GOAL, "failed_at")


def titles_of(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the name of each pilot for people."""
    return {name: str(values.get("title") or name) for name, values in manifest["pilots"].items()}


def content(summary: Mapping[str, Any], manifest: Mapping[str, Any], rows: Sequence[Row], folder: str) -> dict[str, Any]:
    """Return everything on the page that is not a picture.

    Args:
        summary: Of the benchmark.
        manifest: Of its folder.
        rows: Of the flights.
        folder: As a command names it.
    """
    titles = titles_of(manifest)
    track = manifest.get("division", {})
    return {
        "title": _title(summary, rows, titles),
        "division": track.get("division", "open"),
        "limit": f"{manifest['identity']['config']['protocol']['acceleration_m_s2']:g} m/s\N{SUPERSCRIPT TWO}",
        "open_because": "; ".join(track.get("because", [])),
        "verdict": _verdict(summary, rows, titles),
        "cards": _cards(summary, rows, titles),
        "source": SOURCE,
        "scores": [score_row(entry, summary, titles) for entry in summary["scores"]],
        "published": any(published_score(entry["pilot"]) is not None for entry in summary["scores"]),
        "differences": difference_rows(summary, titles, not coverage(rows)),
        "looks": notable_flights(rows, titles, folder),
        "why_heads": WHY_HEADS,
        "why": why_rows(summary["failures"], titles),
        "layout_heads": layout_heads(summary["layouts"]),
        "layouts": layout_rows(summary["layouts"], titles),
        **category_rows(summary, titles),
        "paired": [pair_row(entry, titles) for entry in summary["paired"]],
        "coverage": coverage(rows),
        "trend_heads": list(INDICATOR_LABELS.values()),
        "trends": trends(summary, titles),
        "trends_within": trends_within(summary, titles),
        "flips": flip_rows(summary, titles),
        "proposals": proposals(rows, titles),
        "planning": planning(summary, rows, titles, manifest["identity"]["config"]["compute"]),
        "motion_heads": heads(MOTION, short=True),
        "motion": [[titles.get(p, p), *_motion(values)] for p, values in summary["motion"].items()],
        "command": manifest.get("command", ""),
        "facts": facts(summary, manifest),
        "system": [fact(*one) for one in manifest.get("system", {}).items()],
        "config": json_text({"identity": manifest["identity"], "pilots": manifest["pilots"]}),
        "protocol": protocol(manifest["identity"]["config"]),
        "notes": NOTES,
        "version": __version__,
    }


def _verdict(summary: Mapping[str, Any], rows: Sequence[Row], titles: Mapping[str, str]) -> str:
    ranked = [entry for entry in summary["scores"] if not entry["reference_only"]]
    state = summary["state"]
    sentences = []
    if len(ranked) > 1:
        sentences.append(f"Ranking: {_ranking([entry['pilot'] for entry in ranked], summary, titles)}.")
    elif ranked:
        sentences.append(f"{titles.get(ranked[0]['pilot'], ranked[0]['pilot'])} scores {ranked[0]['score']:.1f} of 100.")
    if coverage(rows):
        sentences.append("A part of the benchmark: no scores to set beside published ones.")
    if not state["complete"]:
        sentences.append(f"This is not all: {state['finished']:,} of {state['flights']:,} flights are finished.")
    return " ".join(sentences) or "Nothing here can be ranked yet."


def _ranking(pilots: Sequence[str], summary: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    """Pilots by final score; between two that other layouts might turn round stands "=" instead of ">"."""
    tied = {frozenset((entry["first"], entry["second"])) for entry in summary["paired"] if entry["tied"]}
    sentences = titles.get(pilots[0], pilots[0])
    for before, name in pairwise(pilots):
        sentences += f" {'=' if frozenset((before, name)) in tied else '>'} {titles.get(name, name)}"
    return sentences + (" (=: tied, other layouts might turn it round)" if " = " in sentences else "")


def _cards(summary: Mapping[str, Any], rows: Sequence[Row], titles: Mapping[str, str]) -> list[dict[str, str]]:
    cards = []
    for entry in summary["scores"][:4]:
        below = f"final {entry['final']:.1f}" + (", for reference" if entry["reference_only"] else "")
        paper = published_score(entry["pilot"])
        below += f"; published {paper['score']:.1f}" if paper and not coverage(rows) else ""
        cards.append(card(titles.get(entry["pilot"], entry["pilot"]), f"{entry['score']:.1f}", below=below))
    vehicles, scenarios = len({row["vehicle"] for row in rows}), len({row["scenario"] for row in rows})
    below = f"{vehicles} vehicle{'s' * (vehicles != 1)}, {scenarios} scenario{'s' * (scenarios != 1)}"
    cards.append(card("flights", f"{len(rows):,}", below=below))
    took = sum(part.get("flying", 0.0) + part.get("setup", 0.0) for part in summary["seconds"].values())
    flown = sum(row["time_s"] for row in rows if isfinite(row["time_s"]))
    return [*cards, card("computed in", span(took), below=f"{span(flown)} of flight, all processes")]


def _motion(values: Mapping[str, Any]) -> list[str]:
    return [measured(name, values[name], "", ",") for name in MOTION]


def _title(summary: Mapping[str, Any], rows: Sequence[Row], titles: Mapping[str, str]) -> str:
    names = [titles.get(entry["pilot"], entry["pilot"]) for entry in summary["scores"]]
    who = names[0][0].upper() + names[0][1:] if len(names) == 1 else f"{len(names)} pilots"
    vehicles, scenarios = len({row["vehicle"] for row in rows}), len({row["scenario"] for row in rows})
    return f"{who} on {vehicles} vehicle{'s' * (vehicles != 1)} in {scenarios} scenario{'s' * (scenarios != 1)}"
