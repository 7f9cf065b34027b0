"""Flies a recorded run again from its folder alone, compares the bytes, and names what differs."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from airworthy.benchmarks.fly.config import FLY_RULES, PLANNER_RULES, FlyConfig, without_film
from airworthy.benchmarks.fly.job import run_fly
from airworthy.benchmarks.fly.metrics import read_config_of
from airworthy.benchmarks.fly.run_record import RunRecord, read_record, repeated, surroundings
from airworthy.benchmarks.fly.scene import is_planner
from airworthy.benchmarks.navigation.methods import is_own_pilot
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import sha256_file
from airworthy.core.idle_options import without_idle
from airworthy.simulation import read_flight_meta
from airworthy.simulation.flights import FLIGHT_FILE, META_FILE

__all__ = ["Comparison", "refly"]


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
    causes: tuple[str, ...] = ()
    """What the two differ in, one sentence each; what decides bits comes first. May be empty where they are equal."""
    changed: tuple[str, ...] = ()
    """Inputs whose files are gone or have changed since; they were flown from the copies in the folder."""


def refly(folder: str | Path, quiet: bool = True) -> Comparison:
    """Repeat a recorded run in a temporary folder, from the inputs that lie in its own, and compare the flight tables.

    Args:
        folder: A folder that `airworthy fly` wrote.
        quiet: Show no progress.

    Raises:
        AssetError: If the folder is not one, is damaged, or holds a run that cannot be repeated.
    """
    folder = Path(folder)
    recorded = read_flight_meta(folder)
    config = read_config_of(folder, recorded)
    if recorded.get("interrupted"):
        raise AssetError(f"The run in {str(folder)!r} was interrupted; only a finished run can be repeated and compared.")
    if sha256_file(folder / FLIGHT_FILE) != recorded["sha256"]:
        raise AssetError(f"{str(folder / FLIGHT_FILE)!r} is damaged: its SHA-256 is not the one in {META_FILE}.")
    record = read_record(folder)
    # Sensors and films look, and change nothing of a flight.
    if is_own_pilot(config.pilot) and "pilot" not in record.copies:
        raise AssetError(
            f"The run in {str(folder)!r} was flown by {config.pilot!r}, of which its version kept no copy: nothing says that"
            " the file is still the one that flew."
        )
    asked = without_film(replace(repeated(config, record), report=False, sensors=()))
    # Earlier versions took options that change nothing; they need not be refused now.
    asked = without_idle(without_idle(asked, FLY_RULES), PLANNER_RULES, is_planner(asked.pilot))
    with tempfile.TemporaryDirectory(prefix="airworthy-") as out:
        run_fly(replace(asked, out=Path(out) / "run"), quiet)
        again, flown = read_flight_meta(Path(out) / "run"), read_record(Path(out) / "run")
    equal = recorded["sha256"] == again["sha256"]
    return Comparison(
        equal,
        recorded["sha256"],
        again["sha256"],
        str(recorded.get("version", "unknown")),
        _causes(record, flown, str(recorded.get("device")), config.device),
        _changed(record, config),
    )


def _causes(record: RunRecord, flown: RunRecord, device: str, now: str) -> tuple[str, ...]:
    """Everything recorded that is not as it was."""
    found = []
    for name in sorted({*record.digests, *flown.digests}):
        before, after = record.digests.get(name), flown.digests.get(name)
        if before != after:
            found.append(f"The {name} is another: SHA-256 {_short(before)}... then, {_short(after)}... now.")
    for name, after in surroundings().items():
        before = record.surroundings.get(name)
        if before != after:
            found.append(
                "The source code of this package is another, under the same version."
                if name == "source" and record.surroundings.get("airworthy") == surroundings()["airworthy"]
                else f"{_TITLES[name]} is another: {_short(before)} then, {_short(after)} now."
            )
    if device != now:
        found.append(f"The device is another: {device} then, {now} now.")
    return tuple(found)


_TITLES = {
    "airworthy": "The version of this package",
    "source": "The source code of this package",
    "warp": "The version of Warp",
    "numpy": "The version of NumPy",
    "instruction set": "The instruction set",
}


def _short(text: str | None) -> str:
    return "none" if text is None else text[:12] if len(text) == 64 else text


def _changed(record: RunRecord, config: FlyConfig) -> tuple[str, ...]:
    """Files of the user that are not what they were, told by reading them again."""
    found = []
    for name, source in record.sources.items():
        if not Path(source).exists():
            away = "is gone" if Path(source).is_absolute() else "is not there, seen from this folder"
            found.append(f"The {name} {source!r} {away}.")
            continue
        try:
            digest = record.digest_now(name, config)
        except AirworthyError:
            found.append(f"The {name} {source!r} is damaged.")
            continue
        if digest != record.digests.get(name):
            found.append(f"The {name} {source!r} has changed since.")
    return tuple(found)
