"""A flight log of any format as a flight to be looked at: poses, rotors, events, and its streams over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.frames import multiply, normalize, rotate, to_euler
from airworthy.core.schema import check_fields
from airworthy.logs import Log, LogStream, ReadOptions, Span, flight_segments, read_log
from airworthy.logs.trajectory import LogTrajectory, log_trajectory, rising, values_at
from airworthy.simulation.flights import FlightTable, flight_columns
from airworthy.vehicles import Vehicle, named_vehicle
from airworthy.viewer.flights import EVENTS_MAX, GROUNDED, RECORDED, Event, ShownFlight

__all__ = ["LogView", "shown_log"]

VEHICLES = {4: "x500", 8: "base_octarotor"}
"""What is drawn by the number of rotors that a log tells of, where nobody names a vehicle."""
_SMALL = "cf2x_L250"
"""What is drawn of a Crazyflie's own logs."""
_SILENT = ("message", "parameter")
"""Kinds of events that are no moments of a flight."""
_XYZ = ("x", "y", "z")


@dataclass(frozen=True)
class LogView:
    """How a log is shown."""

    options: ReadOptions = field(default_factory=ReadOptions)
    """What the file does not say."""
    vehicle: str = ""
    """Which vehicle is drawn; empty: one with as many rotors."""
    start: tuple[float, float, float, float] | None = None
    """Where the first pose is to lie in the scene, x, y, z [m], and its heading [deg]; None: where the log has it."""

    def __post_init__(self) -> None:
        check_fields(self, "LogView.")


def shown_log(path: str | Path, view: LogView | None = None) -> tuple[ShownFlight, str]:
    """Read a log as a flight to be shown.

    Args:
        path: File or folder.
        view: How; None: as it is.

    Returns:
        The flight, and what else there is to say of it.

    Raises:
        AirworthyError: The log cannot be read (`read_log`), or tells no pose (`log_trajectory`); the vehicle is unknown.
    """
    view = view or LogView()
    log = read_log(path, view.options)
    poses = _placed(log_trajectory(log), view.start)
    rotors = next((stream for kind in ("motor_speed", "motor_command") for stream in log.of_kind(kind)), None)
    vehicle, said = _vehicle(view.vehicle, rotors, log.source.format.startswith("Crazyflie"))
    flown = flight_segments(log)
    table = FlightTable.from_columns(_columns(log, poses, rotors, vehicle) | {"status": _status(poses.time, flown.flown)})
    flight = ShownFlight(Path(path), table, None, (vehicle,), streams=log.streams, marks=_marks(log, poses))
    told = f"{log.source.format}, {log.duration:.1f} s, {len(log.streams)} streams; drawn as {vehicle.name}{said}."
    told += f" In the air by its {flown.told_by}." if flown.flown else " No flight was found in it."
    return flight, " ".join((told, *poses.notes))


def _vehicle(name: str, rotors: LogStream | None, small: bool) -> tuple[Vehicle, str]:
    """Return who is drawn, and what is to be said of it."""
    count = 0 if rotors is None else rotors.values.shape[1]
    found = named_vehicle(name or (_SMALL if small and count <= 4 else VEHICLES.get(count, VEHICLES[4])))
    if not name and count in (0, found.rotor_count):
        return found, ", as nothing says what flew (--vehicle)"
    if count and count != found.rotor_count:
        return found, f", which has {found.rotor_count} rotors where the log tells of {count}: they are not turned"
    return found, ""


def _placed(poses: LogTrajectory, start: tuple[float, float, float, float] | None) -> LogTrajectory:
    """Return poses moved and turned about the vertical so that the first one lies at a place and heading [deg]."""
    if start is None:
        return poses
    heading = float(to_euler(poses.attitude[0])[2])
    half = 0.5 * (math.radians(start[3]) - heading)
    turn = np.array([0.0, 0.0, math.sin(half), math.cos(half)])
    position = rotate(turn, poses.position - poses.position[0]) + np.asarray(start[:3])
    return replace(
        poses, position=position, attitude=normalize(multiply(turn, poses.attitude)), velocity=rotate(turn, poses.velocity)
    )


def _columns(log: Log, poses: LogTrajectory, rotors: LogStream | None, vehicle: Vehicle) -> dict[str, ArrayAny]:
    """Return the columns of a table of flights; NaN where the log says nothing."""
    rows = len(poses.time)
    columns: dict[str, Any] = {name: np.full(rows, np.nan) for name in flight_columns(vehicle.rotor_count, reference=False)}
    columns |= {"env": np.zeros(rows, np.int32), "t": poses.time, "saturated": np.zeros(rows, np.int8)}
    for k, axis in enumerate(_XYZ):
        columns[f"position_{axis}_m"] = poses.position[:, k]
        columns[f"velocity_{axis}_m_s"] = poses.velocity[:, k]
    for k, axis in enumerate((*_XYZ, "w")):
        columns[f"attitude_{axis}"] = poses.attitude[:, k]
    if log.has("gyro") and len((gyro := rising(log.stream("gyro"))).time):
        rate = values_at(gyro, poses.time)
        columns |= {f"rate_{axis}_rad_s": rate[:, k] for k, axis in enumerate(_XYZ)}
    if rotors is not None and rotors.values.shape[1] == vehicle.rotor_count and len((turning := rising(rotors)).time):
        speed = np.nan_to_num(values_at(turning, poses.time))
        columns |= {f"rotor_speed_{k}_rad_s": speed[:, k] for k in range(vehicle.rotor_count)}
    return columns


def _status(time: Array, flown: Sequence[Span]) -> ArrayAny:
    """Return what the vehicle did at times [s]; where no flight was found, nothing is said."""
    if not flown:
        return np.full(len(time), RECORDED, np.int8)
    inside = np.any([(time >= span.start) & (time <= span.stop) for span in flown], axis=0)
    return np.where(inside, 0, GROUNDED).astype(np.int8)


def _marks(log: Log, poses: LogTrajectory) -> tuple[Event, ...]:
    """Return the log's events where the vehicle was."""
    found = [event for event in log.events if event.kind not in _SILENT][:EVENTS_MAX]
    marks = []
    for event in found:
        row = int(np.clip(np.searchsorted(poses.time, event.time, side="right") - 1, 0, len(poses.time) - 1))
        x, y, z = (float(v) for v in poses.position[row])
        marks.append(Event(event.time, f"{event.kind} {event.detail}".strip()[:40].replace("_", " "), (x, y, z)))
    return tuple(marks)
