"""Flies one row of a table again, compares every value, and keeps the flight for the viewer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from airworthy import __version__
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import parse_json
from airworthy.evaluation.navigation.choices import check
from airworthy.evaluation.navigation.config import NavigationConfig, Perturbation
from airworthy.evaluation.navigation.entrants import Entrant, entrant
from airworthy.evaluation.navigation.flown import Flown
from airworthy.evaluation.navigation.flying import fly_flights
from airworthy.evaluation.navigation.plan import Flight, file_name
from airworthy.evaluation.navigation.rows import Row, rows_of, same_row
from airworthy.evaluation.navigation.store import parquet_bytes, read_manifest, read_rows
from airworthy.simulation import write_flight
from airworthy.simulation.checks import check_device
from airworthy.tasks.navigation import NavigationProtocol

__all__ = ["Replayed", "config_of", "fly_row", "replay_row"]

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
    """Where the flight lies, for `airworthy view`."""
    recorded_versions: str
    version: str


def config_of(identity: Mapping[str, Any], folder: str | Path = ".") -> NavigationConfig:
    """The configuration that a manifest tells of.

    Raises:
        AirworthyError: It is damaged, or of another version.
    """
    told = dict(identity.get("config", {}))
    try:
        known = {item.name for item in fields(NavigationConfig)}
        if not told or not set(told) <= known:
            raise TypeError("fields")
        told["protocol"] = NavigationProtocol(**told["protocol"])
        told["perturb"] = Perturbation(**told["perturb"])
        for name in ("vehicles", "scenarios"):
            told[name] = tuple(told[name])
        config = NavigationConfig(**told, out=Path(folder))
        check(config)
    except (TypeError, KeyError, ValueError) as error:
        raise AssetError(f"The manifest in {str(folder)!r} does not tell its configuration: it is damaged.") from error
    return config


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
    manifest, rows = read_manifest(folder), read_rows(folder)
    if not rows:
        raise AirworthyError(f"The folder {str(folder)!r} holds no flights yet: run its command again.")
    if not 0 <= number < len(rows):
        raise AirworthyError(f"There is no row {number} in {str(folder)!r}, which holds {len(rows)}: 0 to {len(rows) - 1}.")
    recorded, config = rows[number], config_of(manifest["identity"], folder)
    check_device(config.device)
    words = manifest.get("words", {})
    who = entrant(pilot or str(words.get(recorded["pilot"], recorded["pilot"])))
    flown, repeated = fly_row(recorded, replace(who, name=recorded["pilot"]), config, keep_track=keep)
    where = _kept(folder, number, flown, recorded, config) if keep else None
    differs = tuple(same_row(recorded, repeated))
    mine = {**repeated, "versions": recorded["versions"]}
    equal = not differs and parquet_bytes([recorded], {}) == parquet_bytes([mine], {})
    return Replayed(equal, differs, recorded, repeated, where, recorded["versions"], __version__)


def fly_row(row: Mapping[str, Any], who: Entrant, config: NavigationConfig, keep_track: bool = False) -> tuple[Flown, Row]:
    """Fly what a row tells of, with the latencies that were measured then."""
    flight = Flight(row["scenario"], row["configuration"], row["vehicle"], row["repeat"])
    stored = None
    if row["latencies"]:
        times = parse_json(row["latencies"], "the row's latencies")
        if not isinstance(times, list) or not all(isinstance(value, int | float) for value in times):
            raise AssetError("The row's latencies are not a list of numbers: the table is damaged.")
        stored = {flight.number: [float(value) for value in times]}
    flown = fly_flights([flight], who, replace(config, seed=row["seed"], layouts=row["layouts"]), None, stored, keep_track)
    return flown, rows_of(flown, who, config)[0]


def _kept(folder: Path, number: int, flown: Flown, row: Row, config: NavigationConfig) -> Path:
    assert flown.track is not None
    where = folder / REPLAYS / f"row_{number:06d}_{file_name(row['pilot'])}_{row['scenario']}_{row['vehicle']}"
    where.mkdir(parents=True, exist_ok=True)
    meta = {
        "version": __version__,
        "vehicle": row["vehicle"],
        "scene": f"{row['scenario']}:{row['configuration']}@{config.layouts}",
        "pilot": row["pilot"],
        "outcome": row["outcome"],
        "row": {name: value for name, value in row.items() if name != "latencies"},
    }
    write_flight(where, flown.track.table(_STATUS.get(row["outcome"], 0)), meta)
    return where
