"""A benchmark's folder as every reader takes it: rows are those of the manifest beside them, and of flights that it asks for.

Whoever ranks, reports, explains or repeats flights reads them here, so that all accept the same folders. A row of a flight that
nobody asked for is refused; a flight without a row, as of a run that was stopped, is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from airworthy.benchmarks.navigation.config import NavigationConfig, Perturbation, asked_flights, check
from airworthy.benchmarks.navigation.own_scenes import OwnSceneConfig, own_scenes_from
from airworthy.benchmarks.navigation.store import (
    MANIFEST_FILE,
    RESULTS_FILE,
    ROWS_MAX,
    WRITTEN,
    Row,
    flight_key,
    parsed_rows,
    read_manifest,
)
from airworthy.benchmarks.navigation.takeoff import CONTROL_RATE
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_bytes
from airworthy.tasks.navigation import NavigationProtocol

__all__ = ["NavigationFolder", "config_of", "finished_by_pilot", "read_flown"]

_AGAIN = "the command of its benchmark writes it again"


@dataclass(frozen=True)
class NavigationFolder:
    """What a folder of `airworthy bench navigation` holds."""

    folder: Path
    manifest: dict[str, Any]
    config: NavigationConfig
    rows: list[Row]
    """Each of a flight that the manifest asks for, none twice."""
    finished: dict[str, int]
    """How many rows each pilot has that the manifest names."""

    @cached_property
    def asked(self) -> int:
        """How many flights are asked of each pilot."""
        return len(asked_flights(self.config))

    @property
    def flights(self) -> int:
        """How many are asked of all pilots."""
        return self.asked * len(self.finished)

    @property
    def missing(self) -> dict[str, int]:
        """Flights without a row, by pilot; only of those that lack some."""
        return {pilot: self.asked - count for pilot, count in self.finished.items() if count < self.asked}


def read_flown(folder: str | Path) -> NavigationFolder:
    """Read a folder, its rows held against its manifest.

    Raises:
        AssetError: There is none, it is damaged, or its rows are not those that the manifest asks for.
    """
    where = Path(folder)
    manifest, path = read_manifest(where), where / RESULTS_FILE
    head, rows = parsed_rows(read_bytes(path, ROWS_MAX), str(path))
    config = config_of(manifest["identity"], where)
    if head.get("digest") != manifest["digest"]:
        raise AssetError(
            f"{str(path)!r} is of another run than the {MANIFEST_FILE} beside it (their digests differ): put those of one run"
            " side by side."
        )
    return NavigationFolder(where, manifest, config, rows, finished_by_pilot(where, config, manifest["pilots"], rows))


def finished_by_pilot(
    folder: str | Path, config: NavigationConfig, pilots: Iterable[str], rows: Sequence[Row]
) -> dict[str, int]:
    """Return how many flights of each pilot have a row.

    Args:
        folder: Named in messages.
        config: That the manifest tells of.
        pilots: That the manifest names.
        rows: Of the table.

    Raises:
        AssetError: A row is of a flight that the manifest does not ask for, or says otherwise how it was flown.
    """
    asked = {(f.scenario, f.configuration, f.vehicle, f.repeat) for f in asked_flights(config)}
    finished: dict[str, int] = dict.fromkeys(pilots, 0)
    for number, row in enumerate(rows):
        if row["pilot"] not in finished or flight_key(row)[1:] not in asked:
            what = f"row {number} is of a flight that {MANIFEST_FILE} does not ask for"
        else:
            what = _otherwise(number, row, config)
        if what:
            raise AssetError(f"{str(Path(folder) / RESULTS_FILE)!r} is damaged, {what}: {_AGAIN}.")
        finished[row["pilot"]] += 1
    return finished


def _otherwise(number: int, row: Row, config: NavigationConfig) -> str:
    """Return in what a row contradicts how its flight was to be flown; "" where it does in nothing."""
    for name in ("seed", "layouts"):
        if row[name] != getattr(config, name):
            return f"row {number} has the {name} {row[name]}, where {MANIFEST_FILE} has {getattr(config, name)}"
    limit, most = row["a_max_m_s2"], config.protocol.acceleration_m_s2
    # Of its own a vehicle may have less, and 0 where it can only just hover.
    if limit != most if config.a_max == "common" else not 0.0 <= limit <= most:
        return f"row {number} has a_max_m_s2 {limit:g}, where {MANIFEST_FILE} has {most:g}"
    # A flight is ended by the first tick at which its time is over.
    if row["time_s"] > config.protocol.time_limit_s + 1.0 / CONTROL_RATE:
        return (
            f"row {number} has time_s {row['time_s']:g}, where {MANIFEST_FILE} has a limit of {config.protocol.time_limit_s:g}"
        )
    return ""


def config_of(identity: Mapping[str, Any], folder: str | Path = ".") -> NavigationConfig:
    """Return the configuration that a manifest tells of.

    Raises:
        AirworthyError: It is damaged, or of another version.
    """
    options = dict(identity.get("config", {}))
    try:
        options.pop("vehicle_files", None)
        scenes = own_scenes_from(options.pop("places", []))
        options |= {name: options.pop(written) for name, written in WRITTEN.items() if written in options}
        known = {item.name for item in fields(NavigationConfig)}
        if not options or not set(options) <= known:
            raise TypeError("fields")
        options["protocol"] = NavigationProtocol(**options["protocol"])
        options["perturb"] = Perturbation(**options["perturb"])
        options.setdefault("configurations", ())
        options.setdefault("scenes", ())
        for name in ("vehicles", "scenarios", "configurations", "scenes"):
            options[name] = tuple(options[name])
        config = (
            OwnSceneConfig(**options, out=Path(folder), places=scenes)
            if scenes
            else NavigationConfig(**options, out=Path(folder))
        )
        check(config)
    except (TypeError, KeyError, ValueError) as error:
        raise AssetError(f"The manifest in {str(folder)!r} does not tell its configuration: it is damaged.") from error
    except AirworthyError as error:
        raise AssetError(f"The manifest in {str(folder)!r} is damaged: {error}") from error
    return config
