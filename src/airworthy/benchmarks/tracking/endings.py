"""What ended the flights of an evaluation that did not succeed, counted: for the terminal, the page and `summary.json`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from airworthy.reports.flight_text import NAMES
from airworthy.tasks import SUCCESSES

__all__ = ["endings", "told_endings"]

_MEASURED = re.compile(r"\d+(\.\d+)?(?=( s| m|\N{DEGREE SIGN}))")
"""Times, distances and angles, by which causes differ that are the same."""
_TOLD_MAX = 12
"""Ours: lines of a terminal that leave its table in sight."""


def endings(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return how flights failed: pilot, outcome, cause of the first such flight, its number, flights, and of how many.

    Causes that differ in times, distances and angles alone are one. The most frequent of a pilot come first; several families
    and conditions count together.

    Args:
        rows: Flights of a summary.
    """
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    flown: dict[str, int] = {}
    for row in rows:
        pilot, outcome, cause = str(row["pilot"]), str(row["outcome"]), str(row["cause"] or "")
        flown[pilot] = flown.get(pilot, 0) + 1
        if outcome in SUCCESSES:
            continue
        # What a pilot raised is told as it is: its numbers are lines of its own file.
        kind = cause if outcome == "pilot_error" else _MEASURED.sub("", cause)
        first = {"pilot": pilot, "outcome": outcome, "cause": cause, "condition": row["condition"], "flight": row["flight"]}
        entry = found.setdefault((pilot, outcome, kind), {**first, "flights": 0})
        entry["flights"] += 1
    by_pilot = {pilot: [entry for entry in found.values() if entry["pilot"] == pilot] for pilot in flown}
    return [
        {**entry, "of": flown[pilot]} for pilot, mine in by_pilot.items() for entry in sorted(mine, key=lambda e: -e["flights"])
    ]


def told_endings(found: Sequence[Mapping[str, Any]], most: int = _TOLD_MAX) -> list[str]:
    """Return a line for each of them, as many as `most`, and one for the rest.

    Args:
        found: Of `endings`.
        most: Lines.
    """
    lines = []
    for entry in found[:most]:
        head = f"{entry['pilot']}: {entry['flights']:,} of {entry['of']:,} flights ended as {NAMES[entry['outcome']]}"
        # The first stands for all whose numbers differ; what a pilot raised is the same in each.
        one = "" if entry["flights"] == 1 or entry["outcome"] == "pilot_error" else "the first "
        lines.append(f"{head}: {one}{entry['cause']}." if entry["cause"] else f"{head}.")
    rest = sum(entry["flights"] for entry in found[most:])
    return [*lines, f"{rest:,} more failed in other ways; the report lists them."] if rest else lines
