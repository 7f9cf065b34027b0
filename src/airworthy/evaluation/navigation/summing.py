"""The numbers of a benchmark: scores, rates with intervals, correlations, failures, what flights were like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from airworthy.evaluation.navigation.failures import failed_at, failures_of, layouts_of
from airworthy.evaluation.navigation.intervals import paired_difference, spearman, stratified_rate
from airworthy.evaluation.navigation.score import cells_of, score_table
from airworthy.evaluation.statistics import interquartile_mean, wilson_interval
from airworthy.tasks.navigation import NAVIGATION_OUTCOMES

__all__ = ["INDICATORS", "pilots_of", "rates_by", "summarize", "vehicles_of"]

Row = Mapping[str, Any]
INDICATORS = ("twr", "alpha_xy", "alpha_z")
_MEANS = (
    "time_s",
    "path_length_m",
    "speed_mean_m_s",
    "speed_max_m_s",
    "clearance_min_m",
    "tracking_rmse_m",
    "thrust_saturation",
    "rate_saturation",
    "jerk_integral",
    "snap_integral",
    "control_effort",
    "replans",
    "compute_s",
    "latency_median_s",
    "latency_p95_s",
    "latency_max_s",
)


def pilots_of(rows: Sequence[Row]) -> list[str]:
    """In the order of the table."""
    return list(dict.fromkeys(row["pilot"] for row in rows))


def vehicles_of(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Every vehicle once: name, category, mass, indicators."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["vehicle"] not in found:
            names = ("vehicle", "category", "mass_kg", *INDICATORS)
            found[row["vehicle"]] = {name: row[name] for name in names}
    return list(found.values())


def rates_by(rows: Sequence[Row], column: str, stratum: str) -> list[dict[str, Any]]:
    """Success by pilot and value of a column, with intervals: bootstrap, and over other layouts where scenarios are asked."""
    found = []
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["pilot"], row[column]), []).append(row)
    for (pilot, name), mine in groups.items():
        entry = {"pilot": pilot, column: name, "flights": len(mine), **asdict(stratified_rate(mine, stratum))}
        wide = stratified_rate(mine, stratum, shared_layouts=True)
        entry |= {"layout_low": wide.low, "layout_high": wide.high, "successes": sum(row["success"] for row in mine)}
        found.append(entry)
    return found


def summarize(rows: Sequence[Row]) -> dict[str, Any]:
    """Everything that a report says, as plain data."""
    pilots = pilots_of(rows)
    by_pilot = {pilot: [row for row in rows if row["pilot"] == pilot] for pilot in pilots}
    return {
        "scores": [{**asdict(item), "reference_only": item.reference_only} for item in score_table(rows)],
        "scenarios": rates_by(rows, "scenario", "vehicle"),
        "vehicles": rates_by(rows, "vehicle", "scenario"),
        "categories": _categories(by_pilot),
        "correlations": _correlations(by_pilot),
        "cells": _cells(by_pilot),
        "outcomes": {pilot: _outcomes(mine) for pilot, mine in by_pilot.items()},
        "outcomes_by_scenario": _by_scenario(rows),
        "failures": failures_of(rows),
        "layouts": layouts_of(rows),
        "motion": {pilot: _motion(mine) for pilot, mine in by_pilot.items()},
        "paired": [
            {"first": a, "second": b, **paired_difference(by_pilot[a], by_pilot[b])}
            for k, a in enumerate(pilots)
            for b in pilots[k + 1 :]
        ],
    }


def _categories(by_pilot: Mapping[str, Sequence[Row]]) -> list[dict[str, Any]]:
    """Success on real and on virtual vehicles."""
    found = []
    for pilot, rows in by_pilot.items():
        for category in dict.fromkeys(row["category"] for row in rows):
            mine = [row for row in rows if row["category"] == category]
            head = {"pilot": pilot, "category": category, "flights": len(mine)}
            found.append({**head, **asdict(stratified_rate(mine, "scenario"))})
    return found


def _correlations(by_pilot: Mapping[str, Sequence[Row]]) -> list[dict[str, Any]]:
    """Success of vehicles (mean over scenarios) against their indicators."""
    found = []
    for pilot, rows in by_pilot.items():
        scenarios, fleet = list(dict.fromkeys(row["scenario"] for row in rows)), vehicles_of(rows)
        cells = cells_of(rows, scenarios, [item["vehicle"] for item in fleet])
        with np.errstate(invalid="ignore"):
            mean = np.nanmean(cells, axis=0)
        for name in INDICATORS:
            found.append({"pilot": pilot, "indicator": name, **asdict(spearman([item[name] for item in fleet], mean))})
    return found


def _cells(by_pilot: Mapping[str, Sequence[Row]]) -> list[dict[str, Any]]:
    """Every cell with its Wilson interval, and the interquartile mean over them."""
    found = []
    for pilot, rows in by_pilot.items():
        groups: dict[tuple[str, str], list[int]] = {}
        for row in rows:
            groups.setdefault((row["scenario"], row["vehicle"]), []).append(row["success"])
        told = []
        for (scenario, name), got in groups.items():
            head = {"scenario": scenario, "vehicle": name, "successes": sum(got), "flights": len(got)}
            told.append({**head, **asdict(wilson_interval(sum(got), len(got)))})
        found.append({"pilot": pilot, "interquartile_mean": interquartile_mean([c["value"] for c in told]), "cells": told})
    return found


def _outcomes(rows: Sequence[Row]) -> dict[str, int]:
    return {name: sum(row["outcome"] == name for row in rows) for name in NAVIGATION_OUTCOMES}


def _by_scenario(rows: Sequence[Row]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["pilot"], row["scenario"]), []).append(row)
    return [{"pilot": p, "scenario": s, **_outcomes(mine)} for (p, s), mine in groups.items()]


def _motion(rows: Sequence[Row]) -> dict[str, Any]:
    """Means over flights; of times and lengths over those that arrived."""
    good = [row for row in rows if row["success"]]
    found: dict[str, Any] = {}
    for name in _MEANS:
        values = np.array([row[name] for row in (good if name in ("time_s", "path_length_m") else rows)], float)
        values = values[np.isfinite(values)]
        found[name] = float(values.mean()) if values.size else float("nan")
    fastest = [row["speed_max_m_s"] for row in rows]
    found["failed_at"] = failed_at(rows)
    found["speed_top_m_s"] = float(max(fastest, default=float("nan")))
    return found
