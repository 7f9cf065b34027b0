"""`airworthy validate LOG...`: files in, page and numbers out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airworthy.benchmarks.validation.open_loop.page import write_log_validation
from airworthy.benchmarks.validation.open_loop.validate import LogValidation, ValidateOptions, validate_logs
from airworthy.core.files import make_folder
from airworthy.logs import Log, ReadOptions, read_log
from airworthy.vehicles import Vehicle, named_vehicle

__all__ = ["ValidatedLogs", "run_log_validation"]


@dataclass(frozen=True)
class ValidatedLogs:
    """What was judged, and where it is written."""

    found: LogValidation
    page: Path


def run_log_validation(
    logs: Sequence[str | Path | Log],
    vehicle: str | Path | Vehicle,
    out: str | Path,
    command: str,
    options: ValidateOptions | None = None,
    reading: ReadOptions | None = None,
) -> ValidatedLogs:
    """Read logs, judge a vehicle by them, and write a folder.

    Args:
        logs: Files or records, of one vehicle.
        vehicle: A name of the catalogue, a file, or a record.
        out: Folder of report.html and validation.json.
        command: That makes it again, for the page.
        options: Of the predictions.
        reading: Of the files.

    Raises:
        AirworthyError: One sentence, if something cannot be read or predicted.
    """
    make_folder(out)
    of = vehicle if isinstance(vehicle, Vehicle) else named_vehicle(str(vehicle))
    read = [log if isinstance(log, Log) else read_log(log, reading) for log in logs]
    found = validate_logs(read, of, options)
    return ValidatedLogs(found, write_log_validation(out, found, command))


def call_text(logs: Sequence[str | Path | Log], vehicle: str | Path | Vehicle, options: Mapping[str, Any]) -> str:
    """Return the call from Python that judges the same, for a page.

    Args:
        logs: As of `run_log_validation`; records are shown by their names.
        vehicle: The same.
        options: By name.
    """
    shown = ", ".join(repr(log.name if isinstance(log, Log) else str(log)) for log in logs)
    of = vehicle.name if isinstance(vehicle, Vehicle) else str(vehicle)
    rest = "".join(f", {name}={value!r}" for name, value in options.items())
    return f"airworthy.validate([{shown}], {of!r}{rest})"
