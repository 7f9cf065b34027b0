"""The composite score of FLYINGTRUST (eqs. 12 to 19), with its policy for what is missing, and a variant that stands alone.

    W_s = w_s / sum w_s          classic 1.2, theoretical 1.0
    W_m = w_m / sum w_m          real 1.5, others 1.0
    S   = sum_s W_s sum_m W_m S_sm                  score = 100 S
    V   = sum_s W_s sum_m W_m (S_sm - S)^2
    final = score (1 - beta V / max V)              the maximum over the pilots of the table

Weights are those of the cells that were flown, brought to a sum of 1: of vehicles within each scenario, then of scenarios. A
cell that is missing is never counted as 0, and a score without all cells is for reference only. Because of max V, a final score
depends on who else is in the table; the absolute one has V / 0.25 instead, 0.25 being the most that outcomes of 0 and 1 can
have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from airworthy.benchmarks.navigation.config import CLASSIC
from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.files import packaged_toml
from airworthy.scenes.generators.flyingtrust.layout import goal_of, start_of
from airworthy.scenes.generators.flyingtrust.parameters import SCENARIOS
from airworthy.tasks.navigation import NavigationProtocol

__all__ = [
    "BETA",
    "CLASSIC",
    "SOURCE",
    "Score",
    "StatedRate",
    "cells_of",
    "differences",
    "final_scores",
    "flips_of",
    "least_time",
    "line_of",
    "published_score",
    "published_time",
    "scenario_weight",
    "score_of",
    "score_table",
    "stated_rate",
    "timed_scores",
    "timed_success",
    "vehicle_weight",
]

# ---- What was published, beside which our results are shown -----------------------------------------------------------------

WITHIN = 0.10
"""Farther than this from a stated rate is worth an explanation."""
_RELATIONS = {"=": "", "~": "about ", ">": "above ", "<": "below "}


@dataclass(frozen=True)
class StatedRate:
    """A rate that the running text states, 0 to 1."""

    value: float
    relation: str
    """"=" stated, "~" about, ">" above, "<" below, "-" between `low` and `high`."""
    low: float = float("nan")
    high: float = float("nan")

    def off(self, rate: float) -> float:
        """Return how far a rate lies outside of what is stated; 0 inside."""
        if self.relation == ">":
            return min(0.0, rate - self.value)
        if self.relation == "<":
            return max(0.0, rate - self.value)
        if self.relation == "-":
            return min(0.0, rate - self.low) + max(0.0, rate - self.high)
        return rate - self.value

    @property
    def text(self) -> str:
        """For people, in percent."""
        if self.relation == "-":
            return f"{100 * self.low:.0f} to {100 * self.high:.0f}"
        return f"{_RELATIONS[self.relation]}{100 * self.value:.0f}"


@cache
def _data() -> Mapping[str, Any]:
    return packaged_toml("airworthy.benchmarks.navigation", "published.toml")


SOURCE: str = _data()["source"]


def published_score(pilot: str) -> Mapping[str, Any] | None:
    """Return the row of Table II of a pilot: score, variance, final, and what is missing; None where it has none."""
    found: Mapping[str, Any] | None = _data()["table"].get(pilot)
    return found


def published_time(pilot: str) -> str:
    """Return the median planning time per call on one thread [ms], in words; "" where none was published."""
    return str(_data()["planning_ms"].get(pilot, ""))


def stated_rate(pilot: str, scenario: str) -> StatedRate | None:
    """Return what the text says of a pilot in a scenario; None where it says nothing."""
    found = _data()["rates"].get(pilot, {}).get(scenario)
    return None if found is None else StatedRate(**found)


def differences(rates: Mapping[tuple[str, str], float]) -> list[dict[str, Any]]:
    """Return every rate beside the stated one, and how far it is off."""
    found = []
    for (pilot, scenario), rate in rates.items():
        published = stated_rate(pilot, scenario)
        if published is not None:
            off = published.off(rate)
            entry = {"pilot": pilot, "scenario": scenario, "rate": rate, "stated": published}
            found.append({**entry, "off": off, "far": abs(off) > WITHIN})
    return found


# -----------------------------------------------------------------------------------------------------------------------------

Row = Mapping[str, Any]
BETA = 0.3
VARIANCE_MOST = 0.25


@dataclass(frozen=True)
class Score:
    """Of one pilot."""

    pilot: str
    score: float
    """0 to 100."""
    variance: float
    missing: tuple[str, ...]
    """Scenarios without a flight."""
    cells: int
    """Cells flown, of `cells_wanted`."""
    cells_wanted: int
    final: float = float("nan")
    """In this table."""
    absolute: float = float("nan")
    """Whoever else is in the table."""

    @property
    def reference_only(self) -> bool:
        """Something is missing, so that it stands outside of the ranking."""
        return bool(self.missing) or self.cells < self.cells_wanted


def scenario_weight(name: str) -> float:
    """Return w_s, before it is normalised."""
    return 1.2 if name in CLASSIC else 1.0


def vehicle_weight(category: str) -> float:
    """Return w_m, before it is normalised."""
    return 1.5 if category == "real" else 1.0


def cells_of(rows: Sequence[Row], scenarios: Sequence[str], vehicles: Sequence[str]) -> Array:
    """Return the mean success by cell, (scenarios, vehicles); NaN where nothing was flown.

    Args:
        rows: Flights of one pilot, "success" 0 or 1.
        scenarios: Names of the array's rows.
        vehicles: Names of its columns.
    """
    total, count = np.zeros((len(scenarios), len(vehicles))), np.zeros((len(scenarios), len(vehicles)))
    at = {name: k for k, name in enumerate(scenarios)}, {name: k for k, name in enumerate(vehicles)}
    for row in rows:
        if row["scenario"] in at[0] and row["vehicle"] in at[1]:
            cell = at[0][row["scenario"]], at[1][row["vehicle"]]
            total[cell] += row["success"]
            count[cell] += 1
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def score_of(
    cells: ArrayLike, scenario_weights: ArrayLike, vehicle_weights: ArrayLike, pilot: str = "", names: Sequence[str] = ()
) -> Score:
    """Score and variance from the success of cells.

    Args:
        cells: (scenarios, vehicles), 0 to 1; NaN: missing.
        scenario_weights: w_s, (scenarios,).
        vehicle_weights: w_m, (vehicles,).
        pilot: Its name.
        names: Of the scenarios.

    Raises:
        AirworthyError: Shapes do not fit, or a value is not between 0 and 1.
    """
    table = np.asarray(cells, np.float64)
    rows, columns = np.asarray(scenario_weights, np.float64), np.asarray(vehicle_weights, np.float64)
    if table.ndim != 2 or table.shape != (len(rows), len(columns)):
        raise AirworthyError(f"A score of cells {table.shape} got {len(rows)} and {len(columns)} weights; they have to fit.")
    known = ~np.isnan(table)
    if ((table[known] < 0.0) | (table[known] > 1.0)).any():
        raise AirworthyError("A score is made of rates between 0 and 1.")
    there = known.any(axis=1)
    missing = tuple(str(names[int(k)]) if len(names) else str(k) for k in np.flatnonzero(~there))
    if not there.any():
        return Score(pilot, float("nan"), float("nan"), missing, 0, table.size)
    inside = np.where(known, columns[None, :], 0.0)
    inside = inside / np.where(there, inside.sum(axis=1), 1.0)[:, None]
    outside = np.where(there, rows, 0.0)
    weight = (outside / outside.sum())[:, None] * inside
    value = np.where(known, table, 0.0)
    mean = float((weight * value).sum())
    # The mean of equal rates is off by a rounding, which would be all the variance there is: divided by the largest, itself.
    equal = bool(np.ptp(table[known]) == 0.0)
    variance = 0.0 if equal else float((weight * np.where(known, value - mean, 0.0) ** 2).sum())
    return Score(pilot, 100.0 * mean, variance, missing, int(known.sum()), table.size)


def final_scores(scores: Sequence[Score], beta: float = BETA) -> list[Score]:
    """Return the same with final and absolute scores; flagged ones count towards the largest variance, as published.

    Raises:
        AirworthyError: beta is not between 0 and 1.
    """
    if not 0.0 <= beta <= 1.0:
        raise AirworthyError(f"beta is {beta}; expected 0 to 1.")
    most = max((item.variance for item in scores if np.isfinite(item.variance)), default=0.0)
    found = []
    for item in scores:
        share = item.variance / most if most > 0.0 else 0.0
        final, absolute = (item.score * (1.0 - beta * s) for s in (share, item.variance / VARIANCE_MOST))
        found.append(replace(item, final=final, absolute=absolute))
    return found


def score_table(rows: Sequence[Row], beta: float = BETA) -> list[Score]:
    """Return table 2 of a table of flights: the ranked first, then those for reference only, each by final score.

    A pilot's cells are held against every scenario and vehicle of the whole table.
    """
    scenarios = list(dict.fromkeys(row["scenario"] for row in rows))
    category = {row["vehicle"]: row["category"] for row in rows}
    weights = [scenario_weight(name) for name in scenarios], [vehicle_weight(kind) for kind in category.values()]
    scores = []
    for pilot in dict.fromkeys(row["pilot"] for row in rows):
        mine = [row for row in rows if row["pilot"] == pilot]
        scores.append(score_of(cells_of(mine, scenarios, list(category)), *weights, pilot, scenarios))
    done = final_scores(scores, beta)
    return sorted(done, key=lambda item: (item.reference_only, -np.nan_to_num(item.final, nan=-1.0), item.pilot))


# -----------------------------------------------------------------------------------------------------------------------------
# What the published score leaves out: how fast those that arrive are, and whether a flight would end the same again.
#
# The published score counts arrivals within the time limit, so a pilot that creeps loses nothing by it. Success weighted by
# completion time (SCT: Yokoyama, Ha and Batra 2021) counts an arrival by the share that the shortest possible time is of the
# time taken; here the shortest time is that of straight flight from rest to rest under the flight's limits, whatever stands
# there.


@cache
def _line(scenario: str) -> float:
    stated = SCENARIOS[scenario]
    return float(np.linalg.norm(np.subtract(goal_of(stated), start_of(stated))))


def line_of(row: Row) -> float:
    """Return the distance from start to goal of a flight [m]; rows of places of one's own say it, scenarios state it."""
    return float(row["line_m"]) if "line_m" in row else _line(row["scenario"])


def least_time(length: float, speed: float, acceleration: float) -> float:
    """Return the least time of a line from rest to rest under both limits [s]: faster, steady, slower; a short line has no
    steady part.

    Args:
        length: Of the line [m].
        speed: Most [m/s].
        acceleration: Most, and most deceleration [m/s^2].
    """
    # Speeding up and braking alone take v^2 / a: on a shorter line the limit of speed is never met.
    if length * acceleration <= speed**2:
        return 2.0 * float(np.sqrt(length / acceleration))
    return length / speed + speed / acceleration


def timed_success(row: Row, protocol: NavigationProtocol) -> float:
    """Return success of a flight times the share that the least time is of its time, 0 to 1.

    The way ends at the edge of the goal's region, and the time when the flight came to rest there: the hold is left out.
    """
    if not row["success"]:
        return 0.0
    path_length = max(line_of(row) - protocol.goal_radius_m, 0.0)
    least = least_time(path_length, protocol.speed_m_s, float(row["a_max_m_s2"]))
    took = float(row["time_s"]) - protocol.goal_hold_s
    return 1.0 if took <= least else least / took


def timed_scores(rows: Sequence[Row], protocol: NavigationProtocol) -> dict[str, float]:
    """Return the score of `score_table` (0 to 100, before its part for the variance) with timed success in place of success."""
    scenarios = list(dict.fromkeys(row["scenario"] for row in rows))
    category = {row["vehicle"]: row["category"] for row in rows}
    weights = [scenario_weight(name) for name in scenarios], [vehicle_weight(kind) for kind in category.values()]
    timed = [{**row, "success": timed_success(row, protocol)} for row in rows]
    found = {}
    for pilot in dict.fromkeys(row["pilot"] for row in rows):
        mine = [row for row in timed if row["pilot"] == pilot]
        found[pilot] = score_of(cells_of(mine, scenarios, list(category)), *weights).score
    return found


def flips_of(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return how often two repeats of a flight end differently, by pilot and scenario.

    Of k successes among r repeats, 2 k (r - k) of r (r - 1) ordered pairs differ: the probability that one flight drawn again
    would flip. It takes both values of a fair coin at 0.5; flights without repeats tell nothing and are left out.

    Returns:
        Entries with pilot, scenario, combinations (vehicle and layout), flights, rate (mean over combinations), and mixed, the
        share of combinations with both endings.
    """
    groups: dict[tuple[str, str], dict[tuple[Any, ...], list[int]]] = {}
    for row in rows:
        key = (row["configuration"], row["vehicle"], row["seed"], row["layouts"])
        groups.setdefault((row["pilot"], row["scenario"]), {}).setdefault(key, []).append(row["success"])
    found = []
    for (pilot, scenario), combinations in groups.items():
        repeated = [(sum(got), len(got)) for got in combinations.values() if len(got) > 1]
        if repeated:
            rates = [2.0 * k * (r - k) / (r * (r - 1)) for k, r in repeated]
            head = {
                "pilot": pilot,
                "scenario": scenario,
                "combinations": len(repeated),
                "flights": sum(r for _, r in repeated),
            }
            found.append({**head, "rate": float(np.mean(rates)), "mixed": float(np.mean([0 < k < r for k, r in repeated]))})
    return found
