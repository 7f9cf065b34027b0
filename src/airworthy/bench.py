"""Benchmarks, one call each: `aw.bench.navigation(...)`, and so `sensitivity`, `gates`, `race` and `tracking`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airworthy.api import REPORT, configured, evaluate
from airworthy.core.keyword_messages import raises_in_keywords
from airworthy.results import Result
from airworthy.scenes.record import Scene
from airworthy.vehicles import Vehicle

__all__ = ["gates", "navigation", "race", "sensitivity", "tracking"]

tracking = evaluate


@raises_in_keywords
def navigation(
    pilots: str | Sequence[str] = "straight",
    vehicles: str | Vehicle | Sequence[str | Vehicle] = "all",
    scenes: str | Scene | Sequence[str | Scene] = (),
    *,
    quiet: bool = True,
    **options: Any,
) -> Result:
    """Fly planners through scenarios or places of one's own, and score them.

    Args:
        pilots: Their words, or FILE.py:CLASS.
        vehicles: Names, files, records; all, real or virtual.
        scenes: Places of one's own; none: the scenarios of `scenarios`.
        quiet: Show no progress.
        options: Fields of `benchmarks.NavigationConfig`, `benchmarks.Perturbation` and `tasks.NavigationProtocol`.

    Returns:
        Its frame has a row per flight.

    Raises:
        AirworthyError: One sentence, if something cannot be flown or an option is unknown.
    """
    from airworthy.benchmarks import NavigationConfig, run_benchmark

    given = {"pilots": pilots, "vehicles": vehicles, "scenes": scenes, **options}
    (config,) = configured("bench.navigation", given, NavigationConfig, records=("vehicles", "scenes"))
    done = run_benchmark(config, quiet)
    return Result(done.folder, done.summary, done, done.folder / REPORT, (done.folder / "results.parquet",))


@raises_in_keywords
def sensitivity(
    axes: str | Sequence[str] = "all", pilots: str | Sequence[str] = (), *, quiet: bool = True, **options: Any
) -> Result:
    """Fly the same flights with and without something that is worse than ideal, and say what each planner loses by it.

    Args:
        axes: What is made worse ("latency", or "latency:0.05,0.2" for levels of your own), or all.
        pilots: Words, as of `navigation`; none: known_free, fast, ego and pgo.
        quiet: Show no progress.
        options: Fields of `benchmarks.navigation.SensitivityConfig`.

    Returns:
        Its frame has a row per flight, with point, axis and level.

    Raises:
        AirworthyError: One sentence, if something cannot be flown, changes nothing, or an option is unknown.
    """
    from airworthy.benchmarks.navigation import SensitivityConfig, run_study

    chosen = {"pilots": pilots} if pilots else {}
    (config,) = configured("bench.sensitivity", {"axes": axes, **chosen, **options}, SensitivityConfig)
    done = run_study(config, quiet)
    return Result(done.folder, done.summary, done, done.folder / REPORT, (done.folder / "results.parquet",))


@raises_in_keywords
def gates(courses: str | Sequence[str] = (), network: str = "published", *, quiet: bool = True, **options: Any) -> Result:
    """Plan courses of gates, prove the plans, fly what is approved, and compare lap times.

    Args:
        courses: Names, JSON files, or made to measure ("random:3@7"); none: the benchmark's own.
        network: Folder or name of a network; oracle or search.
        quiet: Show no progress.
        options: Fields of `gates.GatesBenchConfig`.

    Raises:
        AirworthyError: One sentence, if something cannot be planned or an option is unknown.
    """
    from airworthy.gates import GatesBenchConfig, method_of, run_gates
    from airworthy.gates.benchmark.config import check

    chosen = {"courses": courses} if courses else {}
    (config,) = configured("bench.gates", {**chosen, "network": network, **options}, GatesBenchConfig)
    check(config)
    methods = [method_of(specifier, config.limit, config.device) for specifier in (config.network, *config.baselines)]
    done = run_gates(config, methods, quiet)
    return Result(done.folder, done.summary, done, done.folder / REPORT, ())


@raises_in_keywords
def race(pilot: str = "servo", courses: str = "published:0-24", *, quiet: bool = True, **options: Any) -> Result:
    """Fly race pilots through courses, refereed, and set their scores beside the published ones.

    Args:
        pilot: Words joined by commas, or FILE.py:CLASS.
        courses: As "published:0-24" or "fresh:10000/100".
        quiet: Show no progress.
        options: Fields of `race.benchmark.job.RaceBenchConfig` (`conditions="hard"`).

    Returns:
        Its summary has a row per flight, and its report is the page.

    Raises:
        AirworthyError: One sentence, if something cannot be flown or an option is unknown.
    """
    from airworthy.race.benchmark.job import RaceBenchConfig, run_race_bench

    (config,) = configured("bench.race", {"pilot": pilot, "courses": courses, **options}, RaceBenchConfig)
    done = run_race_bench(config, quiet)
    return Result(done.folder, done.summary, done, done.folder / REPORT, ())
