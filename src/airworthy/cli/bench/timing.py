"""`airworthy bench timing`: how long planners think on this machine, beside what was published."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass

from airworthy.benchmarks.navigation.config import CONFIGURATIONS
from airworthy.cli.common import emit_json, gathered, run_tyro, show_table
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.block_job import describe_machine

_DESCRIPTION = (
    "Median time per call of each planner, by the clock of this machine: one flight at a time, one thread, calls in which it"
    " works. Beside it what the originals' papers say, and what the benchmark counts."
)


@dataclass(frozen=True)
class TimingConfig:
    """Whom to time, and in what."""

    pilots: tuple[str, ...] = ("ego", "fast", "pgo", "navrl", "known_free")
    """Pilots, as of airworthy bench navigation."""
    vehicle: str = "virt_05"
    """Vehicle of the catalogue."""
    scenario: str = "forest"
    """Scenario whose first layouts are flown."""
    flights: int = 4
    """How many of them, 1 to 10."""
    seed: int = 0
    """Of what is drawn."""
    json: bool = False
    """Print JSON."""


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    config = run_tyro(TimingConfig, gathered(argv, ("--pilots",)), "airworthy bench timing", _DESCRIPTION)
    _check(config)
    os.environ["AIRWORTHY_THREADS"] = "1"
    from airworthy.benchmarks.navigation.replay import planning_times

    found = planning_times(config.pilots, config.vehicle, config.scenario, config.flights, config.seed)
    machine = describe_machine()
    if config.json:
        emit_json({"machine": machine, "pilots": [asdict(item) for item in found]})
        return 0
    heads = ("pilot", "calls", "median [ms]", "95 % [ms]", "longest [ms]", "published [ms]", "counted [ms]")
    rows = [(t.title, t.calls, t.median_ms, t.p95_ms, t.longest_ms, t.published or None, t.counted_ms or None) for t in found]
    show_table(f"{config.flights} flights each in {config.scenario}, one thread of {machine['processor']}", heads, rows)
    return 0


def _check(config: TimingConfig) -> None:
    """Refuse what cannot be flown, before anything is."""
    from airworthy.benchmarks.navigation.config import NavigationConfig, check, scenario_names, vehicle_names_of

    if not 1 <= config.flights <= CONFIGURATIONS:
        raise AirworthyError(f"--flights is {config.flights}; expected 1 to {CONFIGURATIONS}.")
    check(NavigationConfig(config.pilots, (config.vehicle,), (config.scenario,), seed=config.seed))
    for name, found in (("vehicle", vehicle_names_of((config.vehicle,))), ("scenario", scenario_names((config.scenario,)))):
        if len(found) != 1:
            raise AirworthyError(f"--{name} names {len(found)} of them; planners are timed with one.")
