"""Flies one row of a table again, compares every value, and keeps the flight for the viewer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from airworthy import __version__
from airworthy.benchmarks.navigation.config import Flight, NavigationConfig, file_name
from airworthy.benchmarks.navigation.flight_records import Row, rows_of, same_row
from airworthy.benchmarks.navigation.flown_folder import read_flown
from airworthy.benchmarks.navigation.fly_batch import fly_flights
from airworthy.benchmarks.navigation.methods import NavigationMethod, check_ready, method_of
from airworthy.benchmarks.navigation.own_scenes import OwnSceneConfig, is_own
from airworthy.benchmarks.navigation.score import published_time
from airworthy.benchmarks.navigation.store import parquet_bytes
from airworthy.benchmarks.navigation.takeoff import FlownBatch
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import parse_json
from airworthy.simulation import write_flight
from airworthy.simulation.start_state import check_device

__all__ = ["PlanningTime", "Replayed", "fly_row", "planning_times", "replay_row"]

# -----------------------------------------------------------------------------------------------------------------------------
# How long planners think, by the clock of this machine: one flight at a time on one thread, beside what was published.


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
    for specifier in pilots:
        check_ready(method_of(specifier))
    return [_times(specifier, config, flights) for specifier in pilots]


def _times(specifier: str, config: NavigationConfig, flights: int) -> PlanningTime:
    who, vehicle, scenario = method_of(specifier), config.vehicles[0], config.scenarios[0]
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
    published_ms = published_time(who.name)
    return PlanningTime(
        who.name,
        who.title or who.name,
        len(seconds),
        float(np.median(ms)),
        float(np.quantile(ms, 0.95)),
        float(ms.max()),
        1000.0 * float(np.median(counted or [0.0])),
        published_ms,
        flown_s,
    )


# -----------------------------------------------------------------------------------------------------------------------------

REPLAYS = "replays"
_STATUS = {"collision": 2, "out_of_bounds": 3, "diverged": 1}


@dataclass(frozen=True)
class Replayed:
    """A row beside its repetition."""

    equal: bool
    """Both rows make the same bytes."""
    differs: tuple[str, ...]
    """Columns in which they differ."""
    recorded: Row
    repeated: Row
    folder: Path | None
    """Where the flight lies, for `airworthy view`; None where none was to be kept, or it ended before its goal was issued."""
    recorded_versions: str
    version: str


def replay_row(folder: str | Path, number: int, keep: bool = True, pilot: str = "") -> Replayed:
    """Fly a row of a folder again.

    Args:
        folder: Of `airworthy bench navigation`.
        number: Of the row in results.parquet, from 0 on.
        keep: Write the flight to replays/ in the folder.
        pilot: Word of the pilot, where the recorded one does not find it (a file that was moved).

    Raises:
        AssetError: The folder is none, or damaged.
        AirworthyError: There is no such row, or its pilot is not to be had.
    """
    folder = Path(folder)
    flown_folder = read_flown(folder)
    manifest, rows = flown_folder.manifest, flown_folder.rows
    if not rows:
        raise AirworthyError(f"The folder {str(folder)!r} holds no flights yet: run its command again.")
    if not 0 <= number < len(rows):
        raise AirworthyError(f"There is no row {number} in {str(folder)!r}, which holds {len(rows)}: 0 to {len(rows) - 1}.")
    recorded, config = rows[number], flown_folder.config
    check_device(config.device)
    names = manifest.get("words", {})
    who = method_of(pilot or str(names.get(recorded["pilot"], recorded["pilot"])))
    flown, repeated = fly_row(recorded, replace(who, name=recorded["pilot"]), config, keep_track=keep)
    where = _kept(folder, number, flown, recorded, config) if keep else None
    differs = tuple(same_row(recorded, repeated))
    mine = {**repeated, "versions": recorded["versions"]}
    equal = not differs and parquet_bytes([recorded], {}) == parquet_bytes([mine], {})
    return Replayed(equal, differs, recorded, repeated, where, recorded["versions"], __version__)


def fly_row(
    row: Mapping[str, Any], who: NavigationMethod, config: NavigationConfig, keep_track: bool = False
) -> tuple[FlownBatch, Row]:
    """Fly what a row tells of, with the latencies that were measured then.

    Args:
        row: Of a table of flights; names flight, seed, layouts and latencies.
        who: The method that flew it.
        config: Of the benchmark.
        keep_track: Keep the path, too.
    """
    flight = Flight(row["scenario"], row["configuration"], row["vehicle"], row["repeat"])
    stored = None
    if row["latencies"]:
        times = parse_json(row["latencies"], "the row's latencies")
        if not isinstance(times, list) or not all(isinstance(value, int | float) for value in times):
            raise AssetError("The row's latencies are not a list of numbers: the table is damaged.")
        stored = {flight.number: [float(value) for value in times]}
    flown = fly_flights([flight], who, replace(config, seed=row["seed"], layouts=row["layouts"]), None, stored, keep_track)
    return flown, rows_of(flown, who, config)[0]


def _scene_specifier(row: Row, config: NavigationConfig) -> str:
    """Of the row's scene."""
    if isinstance(config, OwnSceneConfig) and is_own(row["scenario"]):
        return config.own_scene(row["scenario"]).word
    return f"{row['scenario']}:{row['configuration']}@{config.layouts}"


def _kept(folder: Path, number: int, flown: FlownBatch, row: Row, config: NavigationConfig) -> Path | None:
    assert flown.track is not None
    if not len(flown.track.path(0)):
        return None
    where = folder / REPLAYS / f"row_{number:06d}_{file_name(row['pilot'])}_{row['scenario']}_{row['vehicle']}"
    where.mkdir(parents=True, exist_ok=True)
    meta = {
        "version": __version__,
        "vehicle": row["vehicle"],
        "scene": _scene_specifier(row, config),
        "pilot": row["pilot"],
        "outcome": row["outcome"],
        "row": {name: value for name, value in row.items() if name != "latencies"},
    }
    write_flight(where, flown.track.table(_STATUS.get(row["outcome"], 0)), meta)
    return where
