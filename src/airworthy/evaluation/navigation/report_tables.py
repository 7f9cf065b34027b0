"""Tables of a benchmark's report that its command prints, too: trends with what vehicles can do, and times of planning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from airworthy.evaluation.navigation.plan import CONFIGURATIONS, FLEET
from airworthy.evaluation.navigation.published import published_time

__all__ = ["coverage", "planning", "trends"]

Row = Mapping[str, Any]
INDICATOR_WORDS = {"twr": "thrust to weight", "alpha_xy": "roll acceleration", "alpha_z": "yaw acceleration"}


def trends(summary: Mapping[str, Any], titles: Mapping[str, str]) -> list[dict[str, Any]]:
    """Spearman's rank correlation of vehicles' success with each indicator, by pilot; what it says, in words."""
    found: dict[str, dict[str, Any]] = {}
    for entry in summary["correlations"]:
        row = found.setdefault(entry["pilot"], {"title": titles.get(entry["pilot"], entry["pilot"]), "cells": []})
        row["cells"].append({**entry, "words": _rho(entry), "says": _says(entry)})
    return list(found.values())


def _rho(entry: Mapping[str, Any]) -> str:
    if not isfinite(entry["value"]):
        return "not defined"
    if not (isfinite(entry["low"]) and isfinite(entry["high"])):
        return f"{entry['value']:+.2f}"
    return f"{entry['value']:+.2f} ({entry['low']:+.2f} to {entry['high']:+.2f})"


def _says(entry: Mapping[str, Any]) -> str:
    """Only an interval that leaves 0 out is a trend."""
    if not (isfinite(entry["low"]) and isfinite(entry["high"])):
        return ""
    return "rises" if entry["low"] > 0.0 else "falls" if entry["high"] < 0.0 else "no trend"


def planning(summary: Mapping[str, Any], rows: Sequence[Row], titles: Mapping[str, str], compute: str) -> list[dict[str, Any]]:
    """What calls of each pilot took: by the clock of the machine that flew, as the compute model has it, and as published [ms].

    A call is one in which there was work. The clock's mean is over calls of a batch, which share what batching saves.
    """
    found = []
    for pilot, motion in summary["motion"].items():
        took = summary["seconds"].get(pilot, {})
        calls = took.get("calls", 0.0)
        found.append(
            {
                "title": titles.get(pilot, pilot),
                "calls": int(calls),
                "clock": _ms(took.get("thinking", 0.0) / calls) if calls else "",
                "model": compute,
                **{name: _ms(motion[f"latency_{name}_s"]) for name in ("median", "p95", "max")},
                "each_s": _seconds(rows, pilot, took),
                "published": published_time(pilot),
            }
        )
    return found


def _seconds(rows: Sequence[Row], pilot: str, took: Mapping[str, float]) -> str:
    """Seconds of one process per flight by the clock, everything included."""
    flights = sum(row["pilot"] == pilot for row in rows)
    whole = took.get("flying", 0.0) + took.get("setup", 0.0)
    return f"{whole / flights:.2f}" if flights and whole else ""


def _ms(seconds: float) -> str:
    return f"{1000.0 * seconds:.3g}" if isfinite(seconds) and seconds > 0.0 else ""


def coverage(rows: Sequence[Row]) -> str:
    """What a run lacks of what the published rates are means over, in a sentence; "" where it is all there."""
    vehicles, layouts = {row["vehicle"] for row in rows}, {row["configuration"] for row in rows}
    held_out = any(row["layouts"] for row in rows)
    if vehicles == set(FLEET) and len(layouts) == CONFIGURATIONS and not held_out:
        return ""
    if held_out:
        return "Published rates are of other layouts than these, which were drawn anew."
    whole = f"{len(FLEET)} vehicles and {CONFIGURATIONS} layouts"
    words = f"Published rates are means over {whole}; here are {len(vehicles)} and {len(layouts)}."
    first = layouts == set(range(1, len(layouts) + 1)) and len(layouts) < CONFIGURATIONS
    return words + (" Layouts are ordered by difficulty, and these are the easiest: expect more success here." if first else "")
