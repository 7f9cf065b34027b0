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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError

__all__ = [
    "BETA",
    "CLASSIC",
    "Score",
    "cells_of",
    "final_scores",
    "scenario_weight",
    "score_of",
    "score_table",
    "vehicle_weight",
]

Array = NDArray[np.float64]
Row = Mapping[str, Any]
BETA = 0.3
VARIANCE_MOST = 0.25
CLASSIC = ("forest", "urban", "random_cylinder")


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
    """w_s, before it is normalised."""
    return 1.2 if name in CLASSIC else 1.0


def vehicle_weight(category: str) -> float:
    """w_m, before it is normalised."""
    return 1.5 if category == "real" else 1.0


def cells_of(rows: Sequence[Row], scenarios: Sequence[str], vehicles: Sequence[str]) -> Array:
    """Mean success by cell, (scenarios, vehicles); NaN where nothing was flown."""
    total, count = np.zeros((len(scenarios), len(vehicles))), np.zeros((len(scenarios), len(vehicles)))
    at = {name: k for k, name in enumerate(scenarios)}, {name: k for k, name in enumerate(vehicles)}
    for row in rows:
        if row["scenario"] in at[0] and row["vehicle"] in at[1]:
            place = at[0][row["scenario"]], at[1][row["vehicle"]]
            total[place] += row["success"]
            count[place] += 1
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
    variance = float((weight * np.where(known, value - mean, 0.0) ** 2).sum())
    return Score(pilot, 100.0 * mean, variance, missing, int(known.sum()), table.size)


def final_scores(scores: Sequence[Score], beta: float = BETA) -> list[Score]:
    """The same with final and absolute scores; flagged ones count towards the largest variance, as published.

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
    """Table 2 of a table of flights: the ranked first, then those for reference only, each by final score.

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
