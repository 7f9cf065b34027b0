"""Flies a recorded run again from its configuration and compares the bytes."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from airworthy.core.errors import AssetError
from airworthy.core.files import json_text, parse_json, sha256_file
from airworthy.evaluation.fly_config import CONFIG_FILE, read_config, resolved
from airworthy.evaluation.fly_job import run_fly
from airworthy.simulation import read_flight_meta
from airworthy.simulation.flights import FLIGHT_FILE, META_FILE


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


def refly(folder: str | Path, quiet: bool = True) -> Comparison:
    """Repeat a recorded run in a temporary folder and compare the flight tables.

    Args:
        folder: A folder that `airworthy fly` wrote.
        quiet: Show no progress.

    Raises:
        AssetError: If the folder is not one, is damaged, or holds a run that cannot be repeated.
    """
    folder = Path(folder)
    recorded = read_flight_meta(folder)
    config = read_config(folder)
    if parse_json(json_text(resolved(config)), CONFIG_FILE) != recorded.get("config"):
        raise AssetError(
            f"{CONFIG_FILE} and {META_FILE} in {str(folder)!r} tell of different runs: one was changed, or a run was"
            " killed while it wrote; fly again."
        )
    if recorded.get("interrupted"):
        raise AssetError(f"The run in {str(folder)!r} was interrupted; only a finished run can be repeated and compared.")
    if sha256_file(folder / FLIGHT_FILE) != recorded["sha256"]:
        raise AssetError(f"{str(folder / FLIGHT_FILE)!r} is damaged: its SHA-256 is not the one in {META_FILE}.")
    # Sensors and films look, and change nothing of a flight.
    config = replace(config, report=False, sensors=(), record=())
    with tempfile.TemporaryDirectory(prefix="airworthy-") as out:
        run_fly(replace(config, out=Path(out)), quiet)
        repeated = read_flight_meta(out)
    version = str(recorded.get("version", "unknown"))
    equal = recorded["sha256"] == repeated["sha256"]
    return Comparison(equal, recorded["sha256"], repeated["sha256"], version)
