"""How long planners think, by the clock of this machine: one flight at a time on one thread, beside what was published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from airworthy.evaluation.navigation.config import NavigationConfig
from airworthy.evaluation.navigation.entrants import entrant
from airworthy.evaluation.navigation.flying import fly_flights
from airworthy.evaluation.navigation.plan import Flight
from airworthy.evaluation.navigation.published import published_time
from airworthy.evaluation.navigation.rows import rows_of

__all__ = ["PlanningTime", "planning_times"]


@dataclass(frozen=True)
class PlanningTime:
    """Calls of one pilot: those in which it worked, each of one flight, the common controller and mapping left out."""

    pilot: str
    title: str
    calls: int
    median_ms: float
    p95_ms: float
    longest_ms: float
    counted_ms: float
    """Median by the compute model "fixed": counted work times recorded constants."""
    published: str
    """Median on one thread as published [ms], in words; "" where nothing was."""
    flown_s: float
    """Flown, to make these calls."""


def planning_times(
    pilots: Sequence[str], vehicle: str = "virt_05", scenario: str = "forest", flights: int = 4, seed: int = 0
) -> list[PlanningTime]:
    """Fly each pilot alone through some layouts, and time every call in which it works.

    A flight before them, which compiles and fills caches, is not counted. Times by the clock are of no row, and never the same
    twice; on a machine that does other things they are too long.

    Args:
        pilots: Words, as on the command line.
        vehicle: Of the catalogue.
        scenario: Whose first configurations are flown.
        flights: How many, 1 to 10.
        seed: Of what is drawn.

    Raises:
        AirworthyError: Pilot, vehicle or scenario are not to be had.
    """
    config = NavigationConfig(tuple(pilots), (vehicle,), (scenario,), seed=seed)
    return [_times(word, config, flights) for word in pilots]


def _times(word: str, config: NavigationConfig, flights: int) -> PlanningTime:
    who, vehicle, scenario = entrant(word), config.vehicles[0], config.scenarios[0]
    warm = replace(config, protocol=replace(config.protocol, time_limit_s=4.0))
    fly_flights([Flight(scenario, 1, vehicle)], who, warm)
    seconds: list[float] = []
    counted: list[float] = []
    flown_s = 0.0
    for configuration in range(1, flights + 1):
        flown = fly_flights([Flight(scenario, configuration, vehicle)], who, config)
        row = rows_of(flown, who, config)[0]
        seconds += [wall / count for wall, count in flown.spans]
        counted += [row["latency_median_s"]] * bool(row["decisions"])
        flown_s += row["time_s"]
    ms = 1000.0 * np.array(seconds or [0.0])
    told = published_time(who.name)
    return PlanningTime(
        who.name,
        who.title or who.name,
        len(seconds),
        float(np.median(ms)),
        float(np.quantile(ms, 0.95)),
        float(ms.max()),
        1000.0 * float(np.median(counted or [0.0])),
        told,
        flown_s,
    )
