"""The numbers of a benchmark: scores, rates with intervals, correlations, failures, what flights were like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from airworthy.benchmarks.navigation.intervals import layout_difference, paired_difference, spearman, stratified_rate
from airworthy.benchmarks.navigation.score import cells_of, flips_of, line_of, score_table, timed_scores
from airworthy.evaluation.statistics import interquartile_mean, wilson_interval
from airworthy.tasks.declared_metrics import GOAL
from airworthy.tasks.navigation import NAVIGATION_OUTCOMES, NavigationProtocol

__all__ = [
    "INDICATORS",
    "OTHERS",
    "failed_at",
    "failures_of",
    "layouts_of",
    "pilots_of",
    "rates_by",
    "summarize",
    "vehicles_of",
    "way_done",
]

# -----------------------------------------------------------------------------------------------------------------------------
# Why flights failed: outcomes and causes by pilot and scenario, where on the way, on which vehicles, in which layouts.

Row = Mapping[str, Any]
OTHERS = "other causes"
"""What causes beyond the commonest `_MOST` of a pilot, scenario and outcome are counted under."""
_MOST = 6
_SPREAD = {"way": "way_done", "height_m": "end_z_m", "time_s": "time_s"}
_MIDDLE = ("speed_max_m_s", "tracking_rmse_m", "thrust_saturation")


def way_done(row: Row) -> float:
    """Return the share of the line from start to goal that a flight had behind it when it was decided, by its distance to the
    goal."""
    return float(np.clip(1.0 - row["goal_distance_m"] / line_of(row), 0.0, 1.0))


def failed_at(rows: Sequence[Row]) -> float:
    """Return the mean of `way_done` over flights that failed; NaN where none did."""
    shares = [way_done(row) for row in rows if not row["success"]]
    return float(np.mean(shares)) if shares else float("nan")


def cause_of(row: Row) -> str:
    """Return why a flight failed: what its row says, and where that is nothing, the rule of the protocol that ended it."""
    return str(row["cause"]) or _RULES.get(row["outcome"], "")


_RULES = {
    "out_of_bounds": "left the area, or rose above its ceiling",
    "diverged": "tilted too far, or not finite",
}
"""Outcomes that are the whole cause, in words; rows keep their cause empty, so that those of before are flown again alike."""


def failures_of(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return flights that failed by pilot, scenario, outcome and cause; within a pilot and scenario the commonest first.

    Each entry: pilot, scenario, outcome, cause, flights, of (flights of the pilot there), by_category (flights by category of
    vehicle), layouts (configurations in which it happened), quartiles of way (0 to 1), height_m and time_s at the end, and
    medians of top speed, distance to the set-point and share of time with saturated rotors.
    """
    flown: dict[tuple[str, str], int] = {}
    groups: dict[tuple[str, str], dict[tuple[str, str], list[Row]]] = {}
    for row in rows:
        group = (row["pilot"], row["scenario"])
        flown[group] = flown.get(group, 0) + 1
        if not row["success"]:
            groups.setdefault(group, {}).setdefault((row["outcome"], cause_of(row)), []).append(row)
    found = []
    for group, total in flown.items():
        for (outcome, cause), mine in _gathered(groups.get(group, {})):
            head = {"pilot": group[0], "scenario": group[1], "outcome": outcome, "cause": cause}
            found.append({**head, "flights": len(mine), "of": total, **_described(mine)})
    return found


def _gathered(groups: Mapping[tuple[str, str], list[Row]]) -> list[tuple[tuple[str, str], list[Row]]]:
    """Return groups by size; causes beyond the commonest of an outcome, such as a user's many messages, in one."""
    counted: dict[str, int] = {}
    joined: dict[tuple[str, str], list[Row]] = {}
    for (outcome, cause), mine in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        counted[outcome] = counted.get(outcome, 0) + 1
        key = (outcome, cause if counted[outcome] <= _MOST else OTHERS)
        joined[key] = [*joined.get(key, []), *mine]
    return sorted(joined.items(), key=lambda item: (-len(item[1]), item[0]))


def _described(rows: Sequence[Row]) -> dict[str, Any]:
    categories = {name: sum(row["category"] == name for row in rows) for name in dict.fromkeys(r["category"] for r in rows)}
    entries: dict[str, Any] = {"by_category": categories, "layouts": sorted({row["configuration"] for row in rows})}
    for name, column in _SPREAD.items():
        entries[name] = _quantiles([way_done(row) if column == "way_done" else row[column] for row in rows], (0.25, 0.5, 0.75))
    return entries | {name: _quantiles([row[name] for row in rows], (0.5,))[0] for name in _MIDDLE}


def _quantiles(values: Sequence[float], at: Sequence[float]) -> list[float]:
    """Of the values that are numbers; NaN where there are none."""
    numbers = np.array(values, float)
    numbers = numbers[np.isfinite(numbers)]
    return [float(q) for q in np.quantile(numbers, at)] if numbers.size else [float("nan")] * len(at)


def layouts_of(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return success by pilot and scenario in each configuration: pilot, scenario, flights and rates by configuration."""
    groups: dict[tuple[str, str], dict[int, list[int]]] = {}
    for row in rows:
        groups.setdefault((row["pilot"], row["scenario"]), {}).setdefault(row["configuration"], []).append(row["success"])
    return [
        {
            "pilot": pilot,
            "scenario": scenario,
            "flights": {str(k): len(got[k]) for k in sorted(got)},
            "rates": {str(k): float(np.mean(got[k])) for k in sorted(got)},
        }
        for (pilot, scenario), got in groups.items()
    ]


# -----------------------------------------------------------------------------------------------------------------------------

INDICATORS = ("twr", "alpha_xy", "alpha_z")
_LEAST = 8
_MEANS = (*GOAL, "compute_s", "latency_median_s", "latency_p95_s", "latency_max_s")


def pilots_of(rows: Sequence[Row]) -> list[str]:
    """Return the pilots in the order of the table."""
    return list(dict.fromkeys(row["pilot"] for row in rows))


def vehicles_of(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return every vehicle once: name, category, mass, indicators."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["vehicle"] not in found:
            names = ("vehicle", "category", "mass_kg", *INDICATORS)
            found[row["vehicle"]] = {name: row[name] for name in names}
    return list(found.values())


def rates_by(rows: Sequence[Row], column: str, stratum: str) -> list[dict[str, Any]]:
    """Return success by pilot and value of a column, with intervals: bootstrap, and over other layouts where scenarios are
    asked.

    Args:
        rows: Flights of all pilots.
        column: By whose values flights are grouped, such as "vehicle".
        stratum: Column within whose values flights are drawn anew, such as "scenario".
    """
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


def summarize(rows: Sequence[Row], protocol: NavigationProtocol | None = None) -> dict[str, Any]:
    """Return everything that a report says, as plain data; the protocol is the one that the flights were judged by."""
    pilots = pilots_of(rows)
    by_pilot = {pilot: [row for row in rows if row["pilot"] == pilot] for pilot in pilots}
    timed = timed_scores(rows, protocol or NavigationProtocol())
    return {
        "scores": [
            {**asdict(item), "reference_only": item.reference_only, "timed": timed[item.pilot]} for item in score_table(rows)
        ],
        "scenarios": rates_by(rows, "scenario", "vehicle"),
        "vehicles": rates_by(rows, "vehicle", "scenario"),
        "categories": _categories(by_pilot),
        "correlations": _correlations(by_pilot),
        "correlations_by_category": _correlations_within(by_pilot),
        "flips": flips_of(rows),
        "cells": _cells(by_pilot),
        "outcomes": {pilot: _outcomes(mine) for pilot, mine in by_pilot.items()},
        "outcomes_by_scenario": _by_scenario(rows),
        "failures": failures_of(rows),
        "layouts": layouts_of(rows),
        "motion": {pilot: _motion(mine) for pilot, mine in by_pilot.items()},
        "paired": [
            {"first": a, "second": b, **_paired(by_pilot[a], by_pilot[b])}
            for k, a in enumerate(pilots)
            for b in pilots[k + 1 :]
        ],
    }


def _paired(rows: Sequence[Row], others: Sequence[Row]) -> dict[str, Any]:
    """Compare two pilots flight against flight, here and on other layouts; tied where other layouts might make them equal or
    turn it round.
    """
    wide = layout_difference(rows, others)
    # The interval with its bounds: one that ends at exactly 0 holds "no difference", as where one layout in ten decides.
    # Also where the interval is NaN: of a single layout nothing follows for others, so neither pilot is said to be ahead.
    tied = not (wide.low > 0.0 or wide.high < 0.0)
    return {**paired_difference(rows, others), "layout_low": wide.low, "layout_high": wide.high, "tied": tied}


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


def _correlations_within(by_pilot: Mapping[str, Sequence[Row]]) -> list[dict[str, Any]]:
    """Return the same within each category of vehicles, of at least `_LEAST`: over all of them two groups far apart make a
    trend.
    """
    found = []
    for pilot, rows in by_pilot.items():
        for category in dict.fromkeys(row["category"] for row in rows):
            mine = [row for row in rows if row["category"] == category]
            count = len({row["vehicle"] for row in mine})
            if count >= _LEAST:
                head = {"category": category, "vehicles": count}
                found += [{**entry, **head} for entry in _correlations({pilot: mine})]
    return found


def _cells(by_pilot: Mapping[str, Sequence[Row]]) -> list[dict[str, Any]]:
    """Return every cell with its Wilson interval, and the interquartile mean over them."""
    found = []
    for pilot, rows in by_pilot.items():
        groups: dict[tuple[str, str], list[int]] = {}
        for row in rows:
            groups.setdefault((row["scenario"], row["vehicle"]), []).append(row["success"])
        entries = []
        for (scenario, name), got in groups.items():
            head = {"scenario": scenario, "vehicle": name, "successes": sum(got), "flights": len(got)}
            entries.append({**head, **asdict(wilson_interval(sum(got), len(got)))})
        found.append(
            {"pilot": pilot, "interquartile_mean": interquartile_mean([c["value"] for c in entries]), "cells": entries}
        )
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
