"""Why flights failed: outcomes and causes by pilot and scenario, where on the way, on which vehicles, in which layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from airworthy.scenes.generators.flyingtrust.layout import goal_of, start_of
from airworthy.scenes.generators.flyingtrust.parameters import SCENARIOS

__all__ = ["OTHERS", "failed_at", "failures_of", "layouts_of", "way_done"]

Row = Mapping[str, Any]
OTHERS = "other causes"
"""What causes beyond the commonest `_MOST` of a pilot, scenario and outcome are counted under."""
_MOST = 6
_SPREAD = {"way": "way_done", "height_m": "end_z_m", "time_s": "time_s"}
_MIDDLE = ("speed_max_m_s", "tracking_rmse_m", "thrust_saturation")


@cache
def _line(scenario: str) -> float:
    """From start to goal [m]."""
    stated = SCENARIOS[scenario]
    return float(np.linalg.norm(np.subtract(goal_of(stated), start_of(stated))))


def way_done(row: Row) -> float:
    """Share of the line from start to goal that a flight had behind it when it was decided, by its distance to the goal."""
    return float(np.clip(1.0 - row["goal_distance_m"] / _line(row["scenario"]), 0.0, 1.0))


def failed_at(rows: Sequence[Row]) -> float:
    """Mean of `way_done` over flights that failed; NaN where none did."""
    shares = [way_done(row) for row in rows if not row["success"]]
    return float(np.mean(shares)) if shares else float("nan")


def failures_of(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Flights that failed by pilot, scenario, outcome and cause; within a pilot and scenario the commonest first.

    Each entry: pilot, scenario, outcome, cause, flights, of (flights of the pilot there), by_category (flights by category of
    vehicle), layouts (configurations in which it happened), quartiles of way (0 to 1), height_m and time_s at the end, and
    medians of top speed, distance to the set-point and share of time with saturated rotors.
    """
    flown: dict[tuple[str, str], int] = {}
    groups: dict[tuple[str, str], dict[tuple[str, str], list[Row]]] = {}
    for row in rows:
        place = (row["pilot"], row["scenario"])
        flown[place] = flown.get(place, 0) + 1
        if not row["success"]:
            groups.setdefault(place, {}).setdefault((row["outcome"], row["cause"]), []).append(row)
    found = []
    for place, total in flown.items():
        for (outcome, cause), mine in _gathered(groups.get(place, {})):
            head = {"pilot": place[0], "scenario": place[1], "outcome": outcome, "cause": cause}
            found.append({**head, "flights": len(mine), "of": total, **_told(mine)})
    return found


def _gathered(groups: Mapping[tuple[str, str], list[Row]]) -> list[tuple[tuple[str, str], list[Row]]]:
    """Groups by size; causes beyond the commonest of an outcome, such as a user's many messages, in one."""
    seen: dict[str, int] = {}
    joined: dict[tuple[str, str], list[Row]] = {}
    for (outcome, cause), mine in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        seen[outcome] = seen.get(outcome, 0) + 1
        key = (outcome, cause if seen[outcome] <= _MOST else OTHERS)
        joined[key] = [*joined.get(key, []), *mine]
    return sorted(joined.items(), key=lambda item: (-len(item[1]), item[0]))


def _told(rows: Sequence[Row]) -> dict[str, Any]:
    categories = {name: sum(row["category"] == name for row in rows) for name in dict.fromkeys(r["category"] for r in rows)}
    told: dict[str, Any] = {"by_category": categories, "layouts": sorted({row["configuration"] for row in rows})}
    for name, column in _SPREAD.items():
        told[name] = _quantiles([way_done(row) if column == "way_done" else row[column] for row in rows], (0.25, 0.5, 0.75))
    return told | {name: _quantiles([row[name] for row in rows], (0.5,))[0] for name in _MIDDLE}


def _quantiles(values: Sequence[float], at: Sequence[float]) -> list[float]:
    """Of the values that are numbers; NaN where there are none."""
    numbers = np.array(values, float)
    numbers = numbers[np.isfinite(numbers)]
    return [float(q) for q in np.quantile(numbers, at)] if numbers.size else [float("nan")] * len(at)


def layouts_of(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Success by pilot and scenario in each configuration: pilot, scenario, flights and rates by configuration."""
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
