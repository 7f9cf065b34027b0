"""The content of `summary.json`: every flight, and all of them together with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from airworthy import __version__
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import make_folder, read_json, write_json
from airworthy.evaluation.metrics import FlightResult
from airworthy.evaluation.statistics import describe, wilson_interval
from airworthy.tasks import OUTCOMES, SUCCESSES, TrackingProtocol

SUMMARY_FILE = "summary.json"
SUMMARY_BYTES_MAX = 256 << 20

LABELS = ("vehicle", "scene", "course", "pilot", "seed")
"""Keys that every flight starts with; null where nothing was said."""

METRICS = (
    "tracking_error_m",
    "tracking_error_max_m",
    "time_matched_error_m",
    "proximity_percent",
    "end_distance_m",
    "yaw_error_median_rad",
    "yaw_error_end_rad",
    "collisions_per_m",
    "saturation_percent",
    "speed_max_m_s",
    "tilt_max_rad",
    "command_mean_square_rad2_s2",
    "path_length_m",
    "duration_s",
)
"""Metrics described in the aggregate, in this order."""


def summarize(
    results: Sequence[FlightResult],
    *,
    command: str = "",
    labels: Mapping[str, Any] | None = None,
    flight_labels: Mapping[int, Mapping[str, Any]] | None = None,
    parameters: Mapping[str, ArrayLike] | None = None,
    protocol: TrackingProtocol | None = None,
    seed: int = 0,
    confidence: float = 0.95,
    resamples: int = 2000,
) -> dict[str, Any]:
    """Build the content of `summary.json`, keys in a stable order.

    Args:
        results: One per flight.
        command: The exact command line that re-creates them.
        labels: Vehicle, scene, course, pilot and seed of all flights, and anything else to say about each.
        flight_labels: The same for single environments, by id; wins over `labels`.
        parameters: What was randomised: name with unit (`mass_kg`) to values, shape (flights,) in the order of the results.
        protocol: Thresholds that the flights were judged by.
        seed: Of the bootstrap intervals.
        confidence: Of all intervals.
        resamples: Of the bootstrap.
    """
    drawn = _parameters(parameters or {}, len(results))
    flights = []
    for index, result in enumerate(results):
        said = {**(labels or {}), **(flight_labels or {}).get(result.env, {})}
        flight = {name: said.pop(name, None) for name in LABELS} | asdict(result) | said
        if drawn:
            flight["parameters"] = {name: values[index] for name, values in drawn.items()}
        flights.append(flight)
    options: dict[str, Any] = {"confidence": confidence, "resamples": resamples, "seed": seed}
    return {
        "version": __version__,
        "command": command,
        "protocol": asdict(protocol or TrackingProtocol()),
        "statistics": {**options, "rates": "Wilson score", "means": "bootstrap percentile, widened for small samples"},
        "flights": flights,
        "aggregate": aggregate(results, **options),
    }


def aggregate(results: Sequence[FlightResult], *, confidence: float, resamples: int, seed: int) -> dict[str, Any]:
    """All flights together.

    Rates are over all flights. Metrics are described over the flights that did not diverge: one that ended after an instant
    would look better than it was. `collisions_per_m` is pooled: all events over the whole length flown.
    """
    count = len(results)
    outcomes = {name: sum(result.outcome == name for result in results) for name in OUTCOMES}
    successes = sum(outcomes[name] for name in sorted(SUCCESSES))
    length = sum(result.path_length_m for result in results)
    kept = [result for result in results if result.outcome != "diverged"]
    described = {
        name: describe([getattr(r, name) for r in kept], name, seed=seed, confidence=confidence, resamples=resamples)
        for name in METRICS
    }
    collisions = sum(result.collisions for result in results)
    return {
        "flights": count,
        "outcomes": outcomes,
        "success_rate": asdict(wilson_interval(successes, count, confidence)),
        "collisions": collisions,
        "collisions_per_m_pooled": collisions / length if length > 0.0 else None,
        "path_length_total_m": length,
        "metrics_over": "flights that did not diverge",
        **described,
    }


def write_summary(folder: str | Path, summary: Mapping[str, Any]) -> Path:
    """Write `summary.json` atomically into a folder, made if missing."""
    return write_json(make_folder(folder) / SUMMARY_FILE, summary)


def read_summary(folder: str | Path) -> dict[str, Any]:
    """Read a folder's `summary.json`; raises AssetError where it is missing or not one."""
    path = Path(folder) / SUMMARY_FILE
    summary = read_json(path, SUMMARY_BYTES_MAX)
    if not (
        isinstance(summary, dict) and isinstance(summary.get("flights"), list) and isinstance(summary.get("aggregate"), dict)
    ):
        raise AssetError(f"{str(path)!r} is not a summary: it lacks the list 'flights' or the table 'aggregate'.")
    return summary


def _parameters(parameters: Mapping[str, ArrayLike], count: int) -> dict[str, list[float]]:
    drawn = {}
    for name, values in parameters.items():
        array = np.asarray(values, dtype=np.float64)
        if array.shape != (count,):
            raise AirworthyError(f"The parameter {name!r} has shape {array.shape}; expected one value per flight, ({count},).")
        drawn[name] = array.tolist()
    return drawn
