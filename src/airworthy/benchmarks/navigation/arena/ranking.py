"""Who is ahead of whom, by flights that both flew: a rank is shared by all whom the flights do not tell apart.

Two pilots are told apart where the interval of their paired difference, with the layouts drawn again, leaves 0 out
(`layout_difference`). Being tied is not transitive, so ranks are given from the best down: a pilot shares the rank above it as
long as nobody of that rank is ahead of it. Whoever is ahead of another so has the better rank, and all who share one are tied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from airworthy.benchmarks.navigation.intervals import layout_difference, stratified_rate
from airworthy.evaluation.statistics import Estimate

__all__ = ["AGILE", "VEHICLE_CLASSES", "WEAK", "Duel", "Standing", "ranked", "ranks_of", "success", "vehicle_class"]

Row = Mapping[str, Any]
Measure = Callable[[Row], float]
WEAK, AGILE = 2.0, 3.0
"""Thrust to weight below and from which a vehicle is called weak and agile."""
VEHICLE_CLASSES = ("weak", "middle", "agile")


@dataclass(frozen=True)
class Duel:
    """One pilot less another, on flights that both flew."""

    first: str
    second: str
    value: float
    low: float
    high: float

    @property
    def ahead(self) -> str:
        """Who is ahead; "" where they are tied."""
        # Also where a bound is NaN: of a single layout nothing follows for others.
        return self.first if self.low > 0.0 else self.second if self.high < 0.0 else ""

    @property
    def turned(self) -> Duel:
        """The other less the one."""
        return Duel(self.second, self.first, -self.value, -self.high, -self.low)


@dataclass(frozen=True)
class Standing:
    """Of one pilot in one ranking."""

    pilot: str
    rank: int
    """From 1 on; 0 of a pilot that flew a part and stands here for reference only."""
    shared: bool
    """Whether others have the same rank."""
    value: float
    low: float
    high: float
    flights: int
    """Measured."""
    cells: int
    """Vehicles in layouts of places that it flew, of `cells_wanted`, which is what all pilots together flew."""
    cells_wanted: int


def vehicle_class(row: Row) -> str:
    """Return what a flight's vehicle is called by its thrust to weight."""
    return "weak" if row["twr"] < WEAK else "agile" if row["twr"] >= AGILE else "middle"


def success(row: Row) -> float:
    """Return 1 where a flight arrived, else 0."""
    return float(row["success"])


def ranks_of(pilots: Sequence[str], comparisons: Sequence[Duel]) -> dict[str, int]:
    """Return ranks from 1 on.

    Args:
        pilots: All that are ranked, by value, the best first.
        comparisons: Of pairs of them; pairs that are missing are tied.
    """
    beaten = {pilot: {c.ahead for c in comparisons if pilot in (c.first, c.second)} - {pilot, ""} for pilot in pilots}
    ranks: dict[str, int] = {}
    group: set[str] = set()
    left = list(pilots)
    while left:
        # A mean over other flights than those of a pair may turn the two round: whoever is ahead comes first. A circle has no
        # first, and its members stand by value.
        chosen = next((pilot for pilot in left if not beaten[pilot] & set(left)), left[0])
        left.remove(chosen)
        rank = max(ranks.values(), default=1)
        if beaten[chosen] & group:
            rank, group = rank + 1, set()
        ranks[chosen] = rank
        group.add(chosen)
    return ranks


def ranked(
    rows: Sequence[Row], measure: Measure = success, stratum: str = "scenario", *, arrived: bool = False
) -> tuple[list[Standing], list[Duel]]:
    """Return pilots by rank and then by value, those that flew a part last, and every comparison of two.

    Args:
        rows: Flights of all pilots.
        measure: Of a flight, more is better.
        stratum: Of the intervals of success, as of `stratified_rate`.
        arrived: Only flights that arrived are measured, and compared where both did.
    """
    kept = [row for row in rows if row["success"]] if arrived else rows
    by_pilot: dict[str, list[dict[str, Any]]] = {row["pilot"]: [] for row in rows}
    cells: dict[str, set[Any]] = {pilot: set() for pilot in by_pilot}
    for row in rows:
        cells[row["pilot"]].add((row["scenario"], row["configuration"], row["vehicle"]))
    for row in kept:
        by_pilot[row["pilot"]].append(_measured(row, measure(row), pooled=arrived))
    flown = {pilot: mine for pilot, mine in by_pilot.items() if mine}
    comparisons = [_compared(a, b, flown) for a, b in combinations(flown, 2)]
    values = {pilot: _estimate(mine, stratum, measure is success) for pilot, mine in flown.items()}
    wanted = len(set().union(*cells.values()))
    # Who flew the easy half alone would stand above those who flew all of it.
    whole = [pilot for pilot in flown if len(cells[pilot]) == wanted]
    ranks = ranks_of(sorted(whole, key=lambda pilot: (-values[pilot].value, pilot)), comparisons)
    counts = list(ranks.values())
    found = []
    for pilot, value in values.items():
        rank = ranks.get(pilot, 0)
        shared = counts.count(rank) > 1
        bounds = value.value, value.low, value.high
        found.append(Standing(pilot, rank, shared, *bounds, len(flown[pilot]), len(cells[pilot]), wanted))
    return sorted(found, key=lambda item: (item.rank or len(found) + 1, -item.value, item.pilot)), comparisons


_COLUMNS = ("scenario", "configuration", "vehicle", "repeat", "seed", "layouts")


def _measured(row: Row, value: float, pooled: bool) -> dict[str, Any]:
    """Return what the statistics read of a row, with a measure in the place of success.

    Pooled, layouts of all places are drawn together: of flights that arrived a place may have a single layout, of which nothing
    follows for others.
    """
    found = {**{name: row[name] for name in _COLUMNS}, "success": value}
    return found | ({"scenario": "", "configuration": (row["scenario"], row["configuration"])} if pooled else {})


def _compared(a: str, b: str, flown: Mapping[str, Sequence[Row]]) -> Duel:
    found = layout_difference(flown[a], flown[b])
    return Duel(a, b, found.value, found.low, found.high)


def _estimate(rows: Sequence[Row], stratum: str, is_rate: bool) -> Estimate:
    """Return the mean over flights, and its interval with the layouts drawn again."""
    if is_rate:
        return stratified_rate(rows, stratum, shared_layouts=True)
    # Against a flight that has nothing: the mean itself.
    return layout_difference(rows, [{**row, "success": 0.0} for row in rows])
