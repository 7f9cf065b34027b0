"""Does a vehicle explain logs? From logs and a vehicle to a table with intervals and a verdict. Pure: nothing is written."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from airworthy.benchmarks.validation.open_loop.flights import Feed, ReadyFlight, ready_flights
from airworthy.benchmarks.validation.open_loop.judgement import (
    CONFIDENCE,
    MODELS,
    ErrorRow,
    Errors,
    Mismatch,
    error_rows,
    errors_of,
    mismatches,
    row_of,
    verdict,
)
from airworthy.benchmarks.validation.open_loop.prediction import BatchWindows, OpenLoop, batch_windows, open_loop
from airworthy.core.arrays import ArrayIndex
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import Bound, check_fields
from airworthy.evaluation.statistics import Estimate
from airworthy.logs import Log
from airworthy.vehicles import Vehicle, check
from airworthy.vehicles.identification.agreement import agreement_notes
from airworthy.vehicles.trim import hover_trim

__all__ = ["LogValidation", "ValidateOptions", "validate_logs"]

POSE_RATE = Bound(1.0, 1e4, "Hz")
SENSOR_DELAY = Bound(-0.1, 0.1, "s")
WINDOW_COUNT = Bound(1, 2000)


@dataclass(frozen=True)
class ValidateOptions:
    """How logs are predicted.

    Raises:
        AirworthyError: A number is out of range.
    """

    use: tuple[tuple[float, float], ...] = ()
    """Only these parts of each log, start and stop [s]; empty: all that is usable."""
    skip: tuple[tuple[float, float], ...] = ()
    """Not these parts [s]."""
    feed: Feed = "auto"
    """What the rotors follow: measured "speeds", "commands", or ("auto") speeds where they were measured."""
    pose_rate: Annotated[float, POSE_RATE] | None = None
    """True rate of the poses [Hz], by which the log's clock is put right; None: it is right."""
    sensor_delay: Annotated[float, SENSOR_DELAY] = 0.0
    """By which gyro, accelerometer and poses come late [s]: filters that are not in the vehicle's dead time."""
    windows: Annotated[int, WINDOW_COUNT] = 200
    """Of each log, at most; they overlap by no more than half."""

    def __post_init__(self) -> None:
        check_fields(self, "ValidateOptions.")


@dataclass(frozen=True, eq=False)
class LogValidation:
    """What open-loop prediction of logs says of a vehicle."""

    vehicle: Vehicle
    flights: tuple[ReadyFlight, ...]
    windows: BatchWindows
    predictions: dict[str, OpenLoop]
    """By model: "vehicle" and "vehicle, trimmed"."""
    errors: Errors
    """Lengths of errors by channel, and by model or baseline, (windows, horizons)."""
    rows: tuple[ErrorRow, ...]
    mismatches: tuple[Mismatch, ...]
    word: str
    """"flyable", "supported" or "do not trust"."""
    said: str
    """Whether the vehicle explains the logs, in words."""
    options: ValidateOptions

    @property
    def missing(self) -> tuple[str, ...]:
        """What the logs lack, a sentence each with its logs."""
        return self._told("missing")

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found on the way, a sentence each with its logs."""
        judged = [flight.signals for flight in self.flights if flight.force]
        return (*self._told("notes"), *agreement_notes(judged))

    def _told(self, kind: str) -> tuple[str, ...]:
        """Sentences of the flights, each once, behind the names of those that it is of."""
        of: dict[str, list[str]] = {}
        for flight in self.flights:
            for said in getattr(flight, kind):
                of.setdefault(said, []).append(flight.name)
        return tuple(f"{', '.join(names)}: {said}" for said, names in of.items())

    def row(self, channel: str, windows: str, horizon: float) -> ErrorRow | None:
        """Return one row of the table; None where it has none.

        Args:
            channel: "rate", "force", "attitude", "velocity" or "position".
            windows: "all" or "excited".
            horizon: [s]
        """
        return row_of(self.rows, channel, windows, horizon)

    def worst(self, count: int = 6) -> ArrayIndex:
        """Return the windows whose rate is furthest off at the longest horizon, the worst first."""
        errors = np.nan_to_num(self.errors["rate"]["vehicle"][:, -1], nan=-1.0)
        return np.asarray(np.argsort(-errors, kind="stable")[:count], np.intp)

    def record(self) -> dict[str, Any]:
        """Return everything as plain tables, for validation.json."""

        def plain(values: Mapping[str, Estimate]) -> dict[str, Any]:
            return {name: dataclasses.asdict(value) for name, value in values.items()}

        return {
            "vehicle": self.vehicle.name,
            "verdict": self.word,
            "said": self.said,
            "logs": [
                {
                    "name": flight.name,
                    "usable_s": [[span.start, span.stop] for span in flight.segments.usable],
                    "fed_with": "commands" if flight.speeds is None else "speeds",
                    "poses": flight.poses is not None,
                    "missing": list(flight.missing),
                    "notes": list(flight.notes),
                }
                for flight in self.flights
            ],
            "windows": len(self.windows),
            "excited_windows": int(self.windows.excited.sum()),
            "diverged": int(self.predictions["vehicle"].diverged.sum()),
            "confidence": CONFIDENCE,
            "rows": [
                {
                    "channel": row.channel,
                    "windows": row.windows,
                    "horizon_s": row.horizon,
                    "count": row.count,
                    "rms": plain(row.rms),
                    "median": dict(row.median),
                    "skill": plain(row.skill),
                    "best_baseline": row.best,
                    "says": row.says(),
                }
                for row in self.rows
            ],
            "mismatches": [dataclasses.asdict(m) for m in self.mismatches],
            "worst_windows": [
                {"log": self.flights[int(self.windows.flight[k])].name, "start_s": float(self.windows.start[k])}
                for k in self.worst()
            ],
            "options": dataclasses.asdict(self.options),
        }


def validate_logs(logs: Sequence[Log], vehicle: Vehicle, options: ValidateOptions | None = None) -> LogValidation:
    """Predict windows of logs with a vehicle, and say whether it explains them.

    Args:
        logs: Flights of one vehicle, of any format.
        vehicle: That is to explain them: rigid.
        options: Parts, inputs, windows.

    Raises:
        AirworthyError: No log was given, the vehicle cannot be, or a log cannot be predicted; one sentence.
    """
    options = options or ValidateOptions()
    if not logs:
        raise AirworthyError("No log was given; expected at least one flight with a gyro, and motor commands or rotor speeds.")
    check(vehicle)
    flights = ready_flights(logs, vehicle, use=options.use, skip=options.skip, feed=options.feed, pose_rate=options.pose_rate)
    windows = batch_windows(flights, options.windows)
    return judged(vehicle, windows, options)


def judged(vehicle: Vehicle, windows: BatchWindows, options: ValidateOptions) -> LogValidation:
    """Return what predictions of windows say of a vehicle.

    Args:
        vehicle: Rigid, and checked.
        windows: To be predicted.
        options: As of `validate_logs`.
    """
    found = {name: open_loop(vehicle, windows, trimmed=name != MODELS[0], sensor_delay=options.sensor_delay) for name in MODELS}
    errors = errors_of(windows, found)
    rows = error_rows(windows, errors)
    why = mismatches(windows, found[MODELS[0]], found[MODELS[1]])
    word, said = verdict(rows, why, found[MODELS[0]].diverged, hover_trim(vehicle).hovers)
    return LogValidation(vehicle, windows.flights, windows, found, errors, rows, why, word, said, options)
