"""Flies a recorded run again from its configuration and compares the bytes."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from airworthy.core.errors import AssetError
from airworthy.core.files import read_json
from airworthy.evaluation.fly_job import CONFIG_FILE, FlyConfig, run_fly
from airworthy.simulation import read_flight_meta


@dataclass(frozen=True)
class Comparison:
    """A recorded run beside its repetition."""

    equal: bool
    """flight.parquet has the same bytes."""
    recorded_sha256: str
    """Of the recorded table."""
    repeated_sha256: str
    """Of the repetition."""
    recorded_version: str
    """Version of this package that recorded it."""


def read_config(folder: str | Path) -> FlyConfig:
    """The configuration of a recorded run.

    Raises:
        AssetError: If config.json is missing or not one.
    """
    path = Path(folder) / CONFIG_FILE
    data = read_json(path)
    if not isinstance(data, dict) or data.get("version") != 1:
        raise AssetError(f"{path} is not a configuration of `airworthy fly` in version 1.")
    known = {field.name: field for field in fields(FlyConfig)}
    unknown = sorted(set(data) - set(known) - {"version"})
    if unknown:
        raise AssetError(f"{path} has the unknown option {unknown[0]!r}; it was written by another version or changed by hand.")
    return FlyConfig(**{name: _value(known[name], value) for name, value in data.items() if name != "version"})


def _value(field: Any, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return Path(value) if field.name == "out" else value


def refly(folder: str | Path, quiet: bool = True) -> Comparison:
    """Repeat a recorded run in a temporary folder and compare the flight tables.

    Args:
        folder: A folder that `airworthy fly` wrote.
        quiet: Show no progress.

    Raises:
        AssetError: If the folder is not one, or is damaged.
    """
    recorded = read_flight_meta(folder)
    config = read_config(folder)
    with tempfile.TemporaryDirectory(prefix="airworthy-") as out:
        run_fly(replace(config, out=Path(out)), quiet)
        repeated = read_flight_meta(out)
    version = str(recorded.get("version", "unknown"))
    equal = recorded["sha256"] == repeated["sha256"]
    return Comparison(equal, recorded["sha256"], repeated["sha256"], version)
