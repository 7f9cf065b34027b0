"""`report.html` of a sensitivity study: what every pilot loses at every point, from its rows alone, readable offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from airworthy.benchmarks.navigation.report.text import titles_of
from airworthy.benchmarks.navigation.sensitivity.axes import AXES, IDEAL, StudyPoint
from airworthy.benchmarks.navigation.sensitivity.effects import EFFECTS
from airworthy.benchmarks.navigation.sensitivity.study import read_study, study_rows, summarized
from airworthy.core.files import write_text
from airworthy.reports.page import card, fact, fixed, markup, page_of, share_interval
from airworthy.reports.svg import TEXT

__all__ = ["REPORT_FILE", "study_page", "write_study_page"]

REPORT_FILE = "report.html"
Entry = Mapping[str, Any]
_SHOWN = {
    "jerk_rms_m_s3": ("Smoothness", "root mean square jerk [m/s\N{SUPERSCRIPT THREE}]", 1.0, 1),
    "tracking_rmse_m": ("Tracking", "root mean square distance to the set-point [cm]", 100.0, 1),
    "latency_p95_s": ("Replanning", "95th percentile of the time of a replan, as counted [ms]", 1000.0, 2),
}
"""Of `EFFECTS`: heading, what it is, from the stored unit to the one shown, decimals."""


def write_study_page(folder: str | Path) -> Path:
    """Write it into a study's folder, from its rows; raises AssetError where the folder is none, or damaged."""
    return write_text(Path(folder) / REPORT_FILE, study_page(folder))


def study_page(folder: str | Path) -> str:
    """Return the page, the same for the same rows."""
    manifest, rows = read_study(folder), study_rows(folder)
    summary = summarized(rows, manifest)
    titles = titles_of(manifest)
    entries = summary["entries"]
    pilots = list(dict.fromkeys(entry["pilot"] for entry in entries))
    points = list(dict.fromkeys(entry["point"] for entry in entries))
    found = {(entry["point"], entry["pilot"]): entry for entry in entries}
    flights = max((entry["flights"] for entry in entries), default=0)
    worse = len([point for point in points if point != IDEAL])
    content = {
        "title": f"{len(pilots)} pilot{'s' * (len(pilots) != 1)}, {worse} way{'s' * (worse != 1)} to be worse than ideal",
        "verdict": _verdict(entries, titles),
        "cards": [*_cards(entries, titles, worse), card("flights", f"{len(rows):,}", below=f"{flights} per pilot and point")],
        "heads": [titles.get(pilot, pilot) for pilot in pilots],
        "success": [_success_row(point, [found.get((point, pilot)) for pilot in pilots]) for point in points],
        "effects": [_effect_table(name, points, pilots, found) for name in EFFECTS],
        "figure": markup(_picture(points, pilots, found, titles)),
        "details": [_detail(entry, titles) for entry in entries],
        "idle": [{**item, "title": titles.get(item["pilot"], item["pilot"])} for item in summary["idle"]],
        "command": manifest.get("command", ""),
        "facts": _facts(manifest),
    }
    return page_of("airworthy.benchmarks.navigation.sensitivity", "sensitivity.html.j2", **content)


def _point(entry: Entry | None, name: str) -> dict[str, str]:
    """Return axis and level of a point, in words."""
    if name == IDEAL or entry is None:
        return {"axis": IDEAL, "level": ""}
    return {"axis": AXES[entry["axis"]].title, "level": StudyPoint(entry["axis"], entry["level"]).words}


def _success_row(point: str, entries: Sequence[Entry | None]) -> dict[str, Any]:
    first = next((entry for entry in entries if entry is not None), None)
    return {**_point(first, point), "ideal": point == IDEAL, "cells": [_success(entry) for entry in entries]}


def _success(entry: Entry | None) -> dict[str, Any] | None:
    """Return how success at a point is written, with what the point has changed."""
    if entry is None:
        return None
    cell = {
        "value": fixed(100.0 * entry["value"], 0),
        "share": 100.0 * entry["value"],
        "interval": share_interval(entry["low"], entry["high"]),
        "tone": "tied",
        "change": "",
    }
    if entry["pairs"]:
        low, high = entry["difference_low"], entry["difference_high"]
        cell["tone"] = "ahead" if low > 0.0 else "behind" if high < 0.0 else "tied"
        cell["change"] = f"{signed(100 * entry['difference'])} ({signed(100 * low)} to {signed(100 * high)})"
    return cell


def _effect_table(name: str, points: Sequence[str], pilots: Sequence[str], found: Mapping[Any, Entry]) -> dict[str, Any]:
    """Return the table of one measure: its median at the ideal, and how points change it."""
    title, what, factor, digits = _SHOWN[name]
    rows = []
    for point in points:
        entries = [found.get((point, pilot)) for pilot in pilots]
        first = next((entry for entry in entries if entry is not None), None)
        if point != IDEAL:
            rows.append({**_point(first, point), "cells": [_effect(entry, name, factor, digits) for entry in entries]})
    return {"title": title, "what": what, "rows": rows}


def _effect(entry: Entry | None, name: str, factor: float, digits: int) -> dict[str, Any] | None:
    """Return the median with a point and the median change of pairs that arrived both times; None where there is no pair."""
    if entry is None or not entry["pairs"]:
        return None
    if not entry["effects"][name]["pairs"]:
        return {"nothing": "not measured" if entry["arrived"] else "no pair arrived"}
    effect = entry["effects"][name]
    low, high = factor * effect["low"], factor * effect["high"]
    known = isfinite(low) and isfinite(high)
    tone = "tied" if not known else "behind" if low > 0.0 else "ahead" if high < 0.0 else "tied"
    return {
        "value": fixed(factor * effect["with"], digits),
        "change": signed(factor * effect["difference"], digits),
        "interval": f"{signed(low, digits)} to {signed(high, digits)}" if known else "too few pairs for an interval",
        "pairs": effect["pairs"],
        "tone": tone,
        "nothing": "",
    }


def signed(value: float, digits: int = 0) -> str:
    """Write a change with its sign; one that rounds to nothing has none."""
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0.0 else text


def _detail(entry: Entry, titles: Mapping[str, str]) -> list[str]:
    """Return a row of the table of everything that is counted."""
    point = _point(entry, entry["point"])
    head = [point["axis"], point["level"], titles.get(entry["pilot"], entry["pilot"])]
    counts = [f"{entry['successes']} of {entry['flights']}", share_interval(entry["low"], entry["high"])]
    if not entry["pairs"]:
        return [*head, *counts, *[""] * 6, str(entry["unsettled"]), str(entry["crashes"])]
    low, high = entry["difference_low"], entry["difference_high"]
    return [
        *head,
        *counts,
        str(entry["pairs"]),
        signed(100 * entry["difference"], 1),
        f"{signed(100 * low)} to {signed(100 * high)}",
        str(entry["gained"]),
        str(entry["lost"]),
        f"{entry['changed']} of {entry['pairs']}",
        str(entry["unsettled"]),
        str(entry["crashes"]),
    ]


def _verdict(entries: Sequence[Entry], titles: Mapping[str, str]) -> str:
    """Return what each pilot loses most by, where the interval leaves 0 out."""
    said = []
    for pilot in dict.fromkeys(entry["pilot"] for entry in entries):
        lost = [e for e in entries if e["pilot"] == pilot and e["pairs"] and e["difference_high"] < 0.0]
        name = titles.get(pilot, pilot)
        if not lost:
            said.append(f"{name}: no loss that these flights show.")
            continue
        most = min(lost, key=lambda entry: entry["difference"])
        point = _point(most, most["point"])
        said.append(f"{name} loses most by {point['axis']} ({point['level']}): {signed(100 * most['difference'])} points.")
    return " ".join(f"{part[0].upper()}{part[1:]}" for part in said)


def _cards(entries: Sequence[Entry], titles: Mapping[str, str], worse: int) -> list[dict[str, str]]:
    cards = []
    for entry in entries:
        if entry["point"] != IDEAL:
            continue
        falls = sum(e["pilot"] == entry["pilot"] and bool(e["pairs"]) and e["difference_high"] < 0.0 for e in entries)
        name = titles.get(entry["pilot"], entry["pilot"])
        cards.append(card(f"{name}, ideal", f"{100 * entry['value']:.0f}", "%", f"falls at {falls} of {worse} points"))
    return cards


def _facts(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    config = manifest["identity"]["config"]
    machine = manifest.get("hardware", {})
    named = {name: " ".join(map(str, config[name])) for name in ("vehicles", "scenarios", "configurations")}
    facts = [*named.items(), ("repeats, seed", f"{config.get('repeats')}, {config.get('seed')}")]
    facts += [("version", manifest["identity"].get("version", "")), ("processor", machine.get("processor", "unknown"))]
    return [fact(name, value) for name, value in facts]


# ---- The change of success at every point, pilots beside each other ---------------------------------------------------------

_ROW, _LABEL, _WIDTH = 21.0, 290.0, 1040.0
_GAP = 44.0


def _picture(points: Sequence[str], pilots: Sequence[str], found: Mapping[Any, Entry], titles: Mapping[str, str]) -> str:
    """Return the paired change of success with its interval: a row for each point, a panel for each pilot."""
    rows = [point for point in points if point != IDEAL]
    if not rows or not pilots:
        return ""
    panel = (_WIDTH - _LABEL) / len(pilots)
    height = 34.0 + _ROW * len(rows) + 26.0
    parts = []
    for k, pilot in enumerate(pilots):
        left, wide = _LABEL + k * panel, panel - _GAP
        parts.append(f'<text x="{left:.1f}" y="14" {TEXT}>{_escaped(titles.get(pilot, pilot))}</text>')
        for share in (-1.0, -0.5, 0.0, 0.5):
            x = left + wide * (share + 1.0) / 1.6
            colour = "axis" if share == 0.0 else "grid"
            parts.append(f'<path d="M{x:.1f} 24V{height - 24:.1f}" stroke="var(--{colour})"/>')
            parts.append(f'<text x="{x:.1f}" y="{height - 8:.1f}" text-anchor="middle" {TEXT}>{signed(100 * share)}</text>')
        for row, point in enumerate(rows):
            entry = found.get((point, pilot))
            if entry is not None and entry["pairs"]:
                parts += _mark(entry, 34.0 + _ROW * (row + 0.5), left, wide)
    for row, point in enumerate(rows):
        words = _point(next(e for e in (found.get((point, pilot)) for pilot in pilots) if e is not None), point)
        y = 38.0 + _ROW * (row + 0.5)
        parts.append(f'<text x="0" y="{y:.1f}" {TEXT}>{_escaped(words["axis"])}: {_escaped(words["level"])}</text>')
    title = "Change of success at every point, in points, with 95 % intervals"
    return f'<svg viewBox="0 0 {_WIDTH:g} {height:g}" role="img"><title>{title}</title>{"".join(parts)}</svg>'


def _mark(entry: Entry, y: float, left: float, wide: float) -> list[str]:
    """Draw a change and its interval."""

    def at(share: float) -> float:
        return left + wide * (min(max(share, -1.0), 0.6) + 1.0) / 1.6

    low, high = entry["difference_low"], entry["difference_high"]
    colour = "bad" if high < 0.0 else "second" if low > 0.0 else "muted"
    line = f'<path d="M{at(low):.1f} {y:.1f}H{at(high):.1f}" stroke="var(--{colour})" stroke-width="1.6"/>'
    return [line, f'<circle cx="{at(entry["difference"]):.1f}" cy="{y:.1f}" r="4" fill="var(--{colour})"/>']


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
