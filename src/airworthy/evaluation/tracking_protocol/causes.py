"""Why a flight was no success, in a few words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from airworthy.evaluation.metrics import FlightResult
from airworthy.evaluation.paths import path_distance
from airworthy.geometry.distance import clearance
from airworthy.scenes import SceneBatch
from airworthy.simulation import FlightTable
from airworthy.tasks import TrackingProtocol, TrackingReference

__all__ = ["causes_of"]

Array = NDArray[np.float64]
_NEAR = 0.6
"""The thing that was met is looked for this near [m]."""


def causes_of(
    results: Sequence[FlightResult],
    table: FlightTable,
    reference: TrackingReference,
    protocol: TrackingProtocol,
    batch: SceneBatch,
    pilot_error: str = "",
) -> list[str]:
    """A few words per flight; empty for a clean success.

    Args:
        results: In the order of the table's flights.
        table: The flights, with `clearance_m`.
        reference: What they should have followed.
        protocol: By which they were judged.
        batch: The scenes, environment k of flight k.
        pilot_error: What the pilot raised.
    """
    return [_cause(k, result, table, reference, protocol, batch, pilot_error) for k, result in enumerate(results)]


def _cause(
    k: int,
    result: FlightResult,
    table: FlightTable,
    reference: TrackingReference,
    protocol: TrackingProtocol,
    batch: SceneBatch,
    pilot_error: str,
) -> str:
    rows = slice(int(table.starts[k]), int(table.starts[k + 1]))
    time, place = table.t[rows], table.vector("position")[rows].astype(float)
    if result.outcome == "success":
        return ""
    if result.outcome == "pilot_error":
        return f"the pilot failed: {pilot_error}"
    if result.outcome == "partial":
        end, median = np.degrees([result.yaw_error_end_rad, result.yaw_error_median_rad])
        return f"faced {end:.0f}\u00b0 off at the end, {median:.0f}\u00b0 in the median"
    if result.outcome == "diverged":
        return f"left the bounds of sense at {time[-1]:.1f} s"
    if result.collisions:
        return _met(k, table, rows, protocol, batch)
    if result.outcome == "out_of_bounds":
        return f"left the place at {result.duration_s:.1f} s"
    away = path_distance(place, reference.path)
    over = np.flatnonzero(away > protocol.path_distance_max_m)
    if len(over):
        return f"more than {protocol.path_distance_max_m:g} m from the path at {time[over[0]]:.1f} s"
    return f"{result.end_distance_m:.2f} m from the last waypoint at the end"


def _met(k: int, table: FlightTable, rows: slice, protocol: TrackingProtocol, batch: SceneBatch) -> str:
    """What was touched first, and when."""
    distance = table.columns["clearance_m"][rows]
    touched = np.flatnonzero(distance < protocol.collision_start_m)
    if not len(touched):
        return "touched something"
    row = rows.start + int(touched[0])
    place = table.vector("position")[row : row + 1].astype(float)
    found = clearance(batch.geometry, place, env=np.array([k]), max_distance=_NEAR)
    return f"touched {_name(int(found.instance[0]), batch, k)} at {table.t[row]:.1f} s"


def _name(instance: int, batch: SceneBatch, env: int) -> str:
    """Class of a thing, for people."""
    scene = batch.scenes[batch.scene_of_env[env]]
    if instance < 0:
        return "something that moved on"
    if instance < len(scene.instances):
        return f"the {scene.instances[instance].semantic.replace('_', ' ')}"
    return "a person" if scene.actors else "something"
