"""What a point of the study changes: success, smoothness, tracking and latency of the same flights with and without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import sqrt
from typing import Any

import numpy as np

from airworthy.benchmarks.navigation.fly_batch import NOT_SETTLED
from airworthy.benchmarks.navigation.sensitivity.axes import IDEAL
from airworthy.evaluation.paired import paired_median_difference, paired_rate_difference
from airworthy.evaluation.statistics import wilson_interval

__all__ = ["EFFECTS", "effects_of", "idle_points", "value_of"]

Row = Mapping[str, Any]
EFFECTS = ("jerk_rms_m_s3", "tracking_rmse_m", "latency_p95_s")
"""Beside success: how smooth a flight is, how far from its set-points, how long its slow replans take."""


def value_of(row: Row, name: str) -> float:
    """Return one of `EFFECTS` of a flight; NaN where it has none.

    The integral of squared jerk grows with the time flown; its root mean square compares flights of unequal length.
    """
    if name != "jerk_rms_m_s3":
        return float(row[name])
    return sqrt(row["jerk_integral"] / row["time_s"]) if row["time_s"] > 0.0 else float("nan")


def effects_of(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return an entry for each point and pilot, in the order of the rows.

    Args:
        rows: Of a study: columns of the benchmark, and point, axis and level.

    Returns:
        Each with point, axis, level, pilot, flights, successes, value with low and high (Wilson, 95 %), crashes (flights lost
        to the pilot itself), unsettled (lost before the goal was issued), pairs (flights that are there with and without), and
        of these: changed (whose traces differ), ideal (rate without), difference with its low and high (Newcombe's paired
        interval), gained and lost (that succeed only with, only without), arrived (that succeed both times), and `EFFECTS` of
        those: pairs that have the measure, medians without and with, median difference with the interval of the sign test.
        The ideal point has no pairs.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["point"], row["pilot"]), []).append(row)
    without = {pilot: {_key(row): row for row in mine} for (point, pilot), mine in groups.items() if point == IDEAL}
    return [_entry(mine, {} if point == IDEAL else without.get(pilot, {})) for (point, pilot), mine in groups.items()]


def idle_points(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return points and pilots of which no flight came out otherwise than without: what was made worse reached nobody."""
    names = ("point", "axis", "level", "pilot", "pairs")
    return [{name: entry[name] for name in names} for entry in entries if entry["pairs"] and not entry["changed"]]


def _key(row: Row) -> tuple[Any, ...]:
    return row["scenario"], row["configuration"], row["vehicle"], row["repeat"], row["seed"], row["layouts"]


def _entry(rows: Sequence[Row], without: Mapping[tuple[Any, ...], Row]) -> dict[str, Any]:
    successes = sum(row["success"] for row in rows)
    head = {name: rows[0][name] for name in ("point", "axis", "level", "pilot")}
    crashes = sum(row["outcome"] == "planner_crash" for row in rows)
    unsettled = sum(row["outcome"] == "diverged" and row["cause"] == NOT_SETTLED for row in rows)
    found = {**head, "flights": len(rows), "successes": successes, **asdict(wilson_interval(successes, len(rows)))}
    pairs = [(row, without[_key(row)]) for row in rows if _key(row) in without]
    return {**found, "crashes": crashes, "unsettled": unsettled, "pairs": len(pairs), **(_compared(pairs) if pairs else {})}


def _compared(pairs: Sequence[tuple[Row, Row]]) -> dict[str, Any]:
    with_it, before = ([bool(pair[k]["success"]) for pair in pairs] for k in (0, 1))
    change = paired_rate_difference(with_it, before)
    arrived = [pair for pair in pairs if pair[0]["success"] and pair[1]["success"]]
    return {
        "changed": sum(row["trace"] != other["trace"] for row, other in pairs),
        "ideal": float(np.mean(before)),
        "difference": change.value,
        "difference_low": change.low,
        "difference_high": change.high,
        "gained": sum(a and not b for a, b in zip(with_it, before, strict=True)),
        "lost": sum(b and not a for a, b in zip(with_it, before, strict=True)),
        "arrived": len(arrived),
        "effects": {name: _effect(arrived, name) for name in EFFECTS},
    }


def _effect(pairs: Sequence[tuple[Row, Row]], name: str) -> dict[str, Any]:
    """Compare a measure over pairs that both have it."""
    values = np.array([[value_of(row, name) for row in pair] for pair in pairs], float).reshape(-1, 2)
    values = values[np.isfinite(values).all(axis=1)]
    change = paired_median_difference(values[:, 0], values[:, 1])
    medians = np.median(values, axis=0) if len(values) else np.full(2, np.nan)
    found = {"pairs": len(values), "without": float(medians[1]), "with": float(medians[0])}
    return {**found, "difference": change.value, "low": change.low, "high": change.high}
