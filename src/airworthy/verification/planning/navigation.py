"""The navigation benchmark's acceptance list (specification of the benchmark, section 10), and its planners', measured."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from airworthy.benchmarks.navigation import NavigationConfig, read_rows, run_benchmark, score_table
from airworthy.benchmarks.navigation.intervals import stratified_rate
from airworthy.benchmarks.navigation.score import Score, final_scores, published_score
from airworthy.benchmarks.step_tests import measured_indicators
from airworthy.scenes.generators import SCENARIOS
from airworthy.vehicles import Vehicle, indicators, vehicle, vehicle_names
from airworthy.verification.planning.costs import usable_network
from airworthy.verification.planning.planners import planner_figures
from airworthy.verification.published import Figure, below
from airworthy.verification.scenes import scene_figures

__all__ = [
    "coverage_figure",
    "generator_figures",
    "indicator_figures",
    "navigation_figures",
    "navigation_left_out",
    "score_figures",
    "straight_figures",
]

PILOTS = ("ego", "fast", "pgo", "navrl", "straight")
"""Of Table II."""
STRAIGHT_SCORE = (4.5, 7.5)
"""Of straight flight over the whole benchmark."""
WORKERS = 2
"""Processes of the whole benchmark."""
INTERVALS, RESAMPLES = 600, 300
"""Of the coverage: of 600 intervals that hold the truth with 95 % each, 93.2 to 96.8 % do within two standard deviations."""


def navigation_figures(everything: bool = False) -> Iterator[Figure]:
    """Run the checks one after the other.

    Args:
        everything: All configurations are solved, five times the intervals, 20 forests of each demonstration, and straight
            flight through the whole benchmark, 2,520 flights.
    """
    yield from indicator_figures()
    yield from score_figures()
    yield from generator_figures(everything)
    yield coverage_figure(5 * INTERVALS if everything else INTERVALS)
    if everything:
        yield from straight_figures()
    yield from planner_figures(everything)


def navigation_left_out() -> list[str]:
    """Return what is not measured here for want of something, one sentence each."""
    if usable_network() is not None:
        return []
    return ["There are no weights of NavRL: the check values of its network were left out."]


# ---- 1: what vehicles can do ----------------------------------------------------------------------------------------------


def indicator_figures() -> Iterator[Figure]:
    """Check three indicators of each vehicle of the table: computed, and measured in simulation with motors that follow at
    once.
    """
    fleet = [model for model in map(vehicle, vehicle_names()) if "published_thrust_to_weight" in model.extra]
    gaps = np.array([_printed(model) for model in fleet])
    label = f"FLYINGTRUST 1, {len(fleet)} vehicles"
    yield below(f"{label}: thrust-to-weight off the table, worst", float(gaps[:, 0].max()), 0.05)
    yield below(f"{label}: angular accelerations off the table, worst", 100.0 * float(gaps[:, 1:].max()), 0.2, "%")
    worst = 0.0
    for model, found in zip(fleet, measured_indicators(fleet), strict=True):
        given = indicators(model, from_rest=False)
        for name in ("thrust_to_weight", "alpha_xy_max", "alpha_z_max"):
            worst = max(worst, abs(getattr(found, name) / getattr(given, name) - 1.0))
    yield below(f"{label}: measured by step tests off the computed ones, worst", 100.0 * worst, 2.0, "%")


def _printed(model: Vehicle) -> tuple[float, float, float]:
    """Return how far the three indicators are off the printed ones: absolute, relative, relative."""
    found = indicators(model)
    printed = [float(model.extra[f"published_{name}"]) for name in ("thrust_to_weight", "alpha_xy_max", "alpha_z_max")]
    turns = (
        abs(value / given - 1.0) for value, given in zip((found.alpha_xy_max, found.alpha_z_max), printed[1:], strict=True)
    )
    return (abs(found.thrust_to_weight - printed[0]), *turns)  # type: ignore[return-value]


# ---- 2: score -------------------------------------------------------------------------------------------------------------


def score_figures() -> Iterator[Figure]:
    """Check final scores of Table II from its scores and variances, and a table small enough to score by hand."""
    table = {name: row for name in PILOTS if (row := published_score(name)) is not None}
    scores = [Score(name, row["score"], row["variance"], (), 1, 1) for name, row in table.items()]
    worst = max(abs(item.final - table[item.pilot]["final"]) for item in final_scores(scores))
    yield below(f"FLYINGTRUST 2: final scores of {len(table)} pilots off Table II, worst", worst, 0.05)
    found = {item.pilot: item for item in score_table(_small_table())}
    # W of forest and maze 1.2 and 1.0, of a real and a virtual vehicle 1.5 and 1.0. Pilot a without a maze: S = 0.6 * 0.8
    # + 0.4 * 0.3 = 0.6, V = 0.6 * 0.04 + 0.4 * 0.09 = 0.06, the largest. Pilot b: S = (1.2 * 0.3 + 0.14) / 2.2.
    mean = 5.0 / 22.0
    spread = (1.2 * (0.6 * (0.5 - mean) ** 2 + 0.4 * mean**2) + 0.6 * (0.1 - mean) ** 2 + 0.4 * (0.2 - mean) ** 2) / 2.2
    wanted = {"a": (60.0, 0.06, 60.0 * 0.7), "b": (100.0 * mean, spread, 100.0 * mean * (1.0 - 0.3 * spread / 0.06))}
    gaps = [
        abs(value - given)
        for name, numbers in wanted.items()
        for value, given in zip((found[name].score, found[name].variance, found[name].final), numbers, strict=True)
    ]
    if found["a"].missing != ("maze",) or not found["a"].reference_only:
        gaps.append(np.inf)
    yield below("FLYINGTRUST 2: a table of 2 x 2 with a missing scenario off its score by hand, worst", max(gaps), 1e-9)


def _small_table() -> list[dict[str, Any]]:
    """Ten flights per cell, so many of which arrive."""
    cells = {
        ("a", "forest", "real"): 8,
        ("a", "forest", "virtual"): 3,
        ("b", "forest", "real"): 5,
        ("b", "forest", "virtual"): 0,
        ("b", "maze", "real"): 1,
        ("b", "maze", "virtual"): 2,
    }
    return [
        {"pilot": p, "scenario": s, "vehicle": kind, "category": kind, "configuration": k, "success": int(k < good)}
        for (p, s, kind), good in cells.items()
        for k in range(10)
    ]


# ---- 3: places ------------------------------------------------------------------------------------------------------------


def generator_figures(everything: bool = False) -> Iterator[Figure]:
    """Check stated ranges, straight flights that arrive, ways through, equal bytes: with them begin the figures of the
    places."""
    return islice(scene_figures(everything), 1 + len(SCENARIOS) + 2)


# ---- 4: intervals ---------------------------------------------------------------------------------------------------------


def coverage_figure(count: int = INTERVALS) -> Figure:
    """Measure how many of the benchmark's intervals hold the true mean of 36 vehicles with rates of their own, ten layouts
    each.

    Args:
        count: Of intervals.
    """
    rng, hits = np.random.default_rng(7), 0
    for k in range(count):
        rates = rng.beta(1.5, 1.5, 36)
        arrived = rng.random((36, 10)) < rates[:, None]
        found = stratified_rate(_rows(arrived), "vehicle", seed=k, resamples=RESAMPLES)
        hits += found.low <= rates.mean() <= found.high
    share = 100.0 * hits / count
    label = f"FLYINGTRUST 4: bootstrap intervals that hold the true rate, of {count:,}"
    return Figure(label, share, "93 to 97", 93.0 <= share <= 97.0, "%")


def _rows(arrived: Any) -> list[dict[str, Any]]:
    return [
        {"vehicle": v, "scenario": "forest", "configuration": c, "success": int(arrived[v, c])}
        for v, c in np.ndindex(arrived.shape)
    ]


# ---- 5: straight flight ---------------------------------------------------------------------------------------------------


def straight_figures(vehicles: Sequence[str] = ("all",), trials: int = 10) -> Iterator[Figure]:
    """Check the straight flight through the whole benchmark, or through a part of it.

    Args:
        vehicles: Words, as on the command line.
        trials: Configurations.

    Raises:
        KeyboardInterrupt: It was stopped.
    """
    begun = time.perf_counter()
    with TemporaryDirectory(prefix="airworthy_") as folder:
        config = NavigationConfig(
            ("straight",), tuple(vehicles), trials=trials, workers=WORKERS, out=Path(folder) / "run", report=False
        )
        run = run_benchmark(config)
        if run.interrupted:
            raise KeyboardInterrupt
        (score,) = score_table(read_rows(config.out))
    low, high = STRAIGHT_SCORE
    label = f"FLYINGTRUST 5: score of straight flight, {run.finished:,} flights"
    yield Figure(label, score.score, f"{low:g} to {high:g}", low <= score.score <= high and run.complete)
    title = f"FLYINGTRUST 5: the same, time by {WORKERS} processes"
    yield Figure(title, time.perf_counter() - begun, "not judged; asked for: under 300 on two cores", True, "s")
