"""Numbers over flights: per condition, pilot against pilot, condition against baseline."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from math import nan
from typing import Any

import numpy as np

from airworthy.benchmarks.tracking.adaptation import payload_step, ratio_statistics
from airworthy.core.files import packaged_toml
from airworthy.evaluation.metrics import FlightResult
from airworthy.evaluation.statistics import aggregate, bootstrap_interval, says_something
from airworthy.tasks import SUCCESSES
from airworthy.tasks.declared_metrics import CONDITION, PAIRED

__all__ = [
    "CLASSES",
    "OPTIONS",
    "SOURCE",
    "PublishedRatio",
    "PublishedRow",
    "adaptation_of",
    "class_of",
    "condition_row",
    "mean_of",
    "paired",
    "published_ratios",
    "published_row",
    "published_rows",
    "select",
]

# ---- What was published about real flights, beside which simulated ones are shown -------------------------------------------

SOURCE = "Low, Adang, Yu, Nagami, Schwager: SOUS VIDE (arXiv:2412.16346), real flights"


@dataclass(frozen=True)
class PublishedRow:
    """A row of Tables I to III."""

    table: str
    name: str
    flights: tuple[int, int, int, int, int]
    """Clean success, success with recovery, partial, failure without recovery, failure off course."""
    collisions_per_m: float
    tracking_error_m: float = nan
    proximity_percent: float = nan
    variant: str = ""
    """Of the network, in Table I."""

    @property
    def count(self) -> int:
        """Flights."""
        return sum(self.flights)

    @property
    def successes(self) -> int:
        """Clean and recovered ones."""
        return self.flights[0] + self.flights[1]


@dataclass(frozen=True)
class PublishedRatio:
    """Estimated ratio of one rotor's force to the mass [N/kg], over whole flights."""

    name: str
    mean: float
    std: float
    true: float


@lru_cache(maxsize=1)
def _data() -> Mapping[str, Any]:
    return packaged_toml("airworthy.benchmarks.tracking", "published.toml")


@lru_cache(maxsize=1)
def published_rows() -> tuple[PublishedRow, ...]:
    """Return every row, in the order of the paper."""
    return tuple(PublishedRow(**{**row, "flights": tuple(row["flights"])}) for row in _data()["row"])


def published_row(name: str) -> PublishedRow | None:
    """Return a row of Tables II and III by name; None where there is none."""
    return next((row for row in published_rows() if row.name == name and row.table != "I"), None)


def published_ratios() -> tuple[PublishedRatio, ...]:
    """Return every estimate."""
    return tuple(PublishedRatio(**row) for row in _data()["ratio"])


# -----------------------------------------------------------------------------------------------------------------------------

Row = Mapping[str, Any]
CLASSES = ("success", "success_recovered", "partial", "failure_no_recovery", "failure_off_course", "other")
"""The paper's five, and what has no place among them (a pilot that failed, a state that diverged, a record cut short)."""
_CLASS_OF = {
    "success": "success",
    "success_recovered": "success_recovered",
    "partial": "partial",
    "collision": "failure_no_recovery",
    "off_course": "failure_off_course",
    "out_of_bounds": "failure_off_course",
}
POOLED = {"collisions_per_m": "collisions_per_m_pooled"}
"""Metrics of all flights that are events over the whole length flown, not means over flights."""
OPTIONS: dict[str, Any] = {"confidence": 0.95, "resamples": 2000, "seed": 0}


def class_of(outcome: str) -> str:
    """Return the paper's class of an outcome."""
    return _CLASS_OF.get(outcome, "other")


def select(rows: Sequence[Row], **wanted: Any) -> list[Row]:
    """Return rows whose columns have given values, or one of several."""
    several = {key: value if isinstance(value, tuple | list | set) else (value,) for key, value in wanted.items()}
    return [row for row in rows if all(row[key] in values for key, values in several.items())]


def condition_row(rows: Sequence[Row]) -> dict[str, Any]:
    """Return all flights of one pilot, family and condition (or of a group of them) together.

    Rates have Wilson intervals, means over flights bootstrap intervals; flights that are copies of each other have none.
    `tracking_error_m` is the mean of the flights' means, `tracking_error_pooled_m` that over all samples; so with proximity.
    Neither has flights that diverged, that ended where they began, or whose pilot failed.
    """
    names = [item.name for item in fields(FlightResult) if item.name != "env"]
    results = [FlightResult(env=index, **{name: row[name] for name in names}) for index, row in enumerate(rows)]
    aggregated = aggregate(results, **OPTIONS)
    kept = [row for row in rows if says_something(row["outcome"], row["samples"]) and row["samples"] > 0]
    weight = np.array([row["samples"] for row in kept], float)
    classes = {name: sum(class_of(row["outcome"]) == name for row in rows) for name in CLASSES}
    keys = ("success_rate", "collisions", "collisions_per_m_pooled", "path_length_total_m", "tracking_error_m")
    more = ("tracking_error_max_m", "proximity_percent", "yaw_error_median_rad", "end_distance_m", "speed_max_m_s")
    told = dict.fromkeys((*keys, *more, *(name for name in CONDITION if name not in POOLED)))
    return {
        "flights": len(rows),
        "distinct_flights": aggregated["distinct_flights"],
        "classes": classes,
        **{key: aggregated[key] for key in told},
        "tracking_error_pooled_m": _weighted(kept, "tracking_error_m", weight),
        "proximity_pooled_percent": _weighted(kept, "proximity_percent", weight),
        "pilot_failures": sum(row["pilot_failures"] for row in rows),
    }


def mean_of(entry: Row, name: str) -> float | None:
    """Return a metric of all flights under a condition: the mean of the flights' values, or the rate pooled over all flights.

    Args:
        entry: Of `condition_row`.
        name: Of the metric.
    """
    value: float | None = entry[POOLED[name]] if name in POOLED else entry[name]["mean"]
    return value


def _weighted(rows: Sequence[Row], name: str, weight: Any) -> float:
    return float(np.average([row[name] for row in rows], weights=weight)) if len(rows) else float("nan")


def paired(rows: Sequence[Row], others: Sequence[Row]) -> dict[str, Any]:
    """Return differences between flights with the same number and family, `rows` minus `others`: they had the same start and
    drone.

    Mean differences of tracking error and proximity with bootstrap intervals, and in how many pairs only one succeeded.
    """
    by_key = {(row["flight"], row["family"], row["course"]): row for row in others}
    pairs = [(row, by_key[key]) for row in rows if (key := (row["flight"], row["family"], row["course"])) in by_key]
    found: dict[str, Any] = {"pairs": len(pairs)}
    for name in PAIRED:
        both = [pair for pair in pairs if all(says_something(row["outcome"], row["samples"]) for row in pair)]
        difference = [a[name] - b[name] for a, b in both]
        rng = np.random.default_rng([OPTIONS["seed"], zlib.crc32(name.encode())])
        found[name] = asdict(bootstrap_interval(difference, rng, confidence=0.95, resamples=OPTIONS["resamples"]))
    good = [(a["outcome"] in SUCCESSES, b["outcome"] in SUCCESSES) for a, b in pairs]
    found["only_first_succeeded"] = sum(a and not b for a, b in good)
    found["only_second_succeeded"] = sum(b and not a for a, b in good)
    return found


def adaptation_of(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the adaptation of every pilot and family: its estimates of thrust over mass by condition, and how far a payload
    moves them.

    Two estimates: what the pilot told ("ratio_told", of those with a history network), and what the motion itself tells
    ("ratio_flown").
    """
    found = []
    for pilot in dict.fromkeys(row["pilot"] for row in rows):
        for family in dict.fromkeys(row["family"] for row in rows):
            for name in ("ratio_told", "ratio_flown"):
                mine = select(rows, pilot=pilot, family=family)
                entry = _estimates(mine, name)
                if entry["conditions"]:
                    found.append({"pilot": pilot, "family": family, "estimate": name, **entry})
    return found


def _estimates(rows: Sequence[Row], name: str) -> dict[str, Any]:
    conditions = {
        item: statistics
        for item in dict.fromkeys(row["condition"] for row in rows)
        if (statistics := ratio_statistics(select(rows, condition=item), name))["flights"]
    }
    before, after = conditions.get("baseline"), conditions.get("payload")
    step = payload_step(before, after) if before and after else float("nan")
    return {"conditions": conditions, "payload_step": step}
