"""Where the cameras of a rendered capture stand: free places all around, or along a course or a flight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.scenes import SceneBatch
from airworthy.scenes.viewing import look_at
from airworthy.sensors.splats.surfaces import sequence, viewpoints
from airworthy.simulation.flights import FLIGHT_FILE, read_flight
from airworthy.trajectories import course, course_names

__all__ = ["camera_poses"]

Floats = NDArray[np.floating[Any]]
HELD_OUT = 1000
"""First number of the free places that are kept for judging."""
_PITCH = 0.35
"""Most by which free cameras look up or down [rad]."""


def camera_poses(batch: SceneBatch, along: str, count: int, first: int = 0) -> tuple[Floats, Floats]:
    """Positions (count, 3) [m] and attitudes (count, 4) of cameras, x right, y down, z forward.

    Args:
        batch: The scene.
        along: "": free places evenly in the bounds, looking all around, up to 0.35 rad up or down. The name of a course: evenly
            in time along it, level, looking where its yaw points. A folder of `airworthy fly`: along its first environment's
            flight, looking where the vehicle's x axis points.
        count: How many.
        first: Other free places for other numbers.

    Raises:
        AirworthyError: There is no such course or flight, or hardly free room.
    """
    if not along:
        return _free(batch, count, first)
    if (Path(along) / FLIGHT_FILE).is_file():
        return _flight(Path(along), count)
    if along not in course_names() and not Path(along).is_file():
        hint = "Or the folder of a flight, or the path of a course."
        raise unknown_name("course", along, course_names(), hint)
    path = course(along).trajectory()
    flown = path.sample(np.linspace(0.0, path.duration, count))
    return flown.position, frames.camera_attitude(frames.from_euler(0.0, 0.0, flown.yaw))


def _free(batch: SceneBatch, count: int, first: int) -> tuple[Floats, Floats]:
    position = viewpoints(batch, count, first=first)
    turn = sequence(count, first + 17)
    yaw, pitch = 2.0 * np.pi * turn[:, 0], 2.0 * _PITCH * (turn[:, 1] - 0.5)
    way = np.stack((np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)), axis=-1)
    return position, np.stack([look_at(np.zeros(3), one) for one in way])


def _flight(folder: Path, count: int) -> tuple[Floats, Floats]:
    table, _ = read_flight(folder)
    if not table.env_count:
        raise AirworthyError(f"The flight in {str(folder)!r} has no rows; fly again, or choose another.")
    flown = table.flight(int(table.envs[0]))
    rows = np.linspace(0, flown.row_count - 1, count).round().astype(np.int64)
    position, attitude = (flown.vector(name)[rows].astype(np.float64) for name in ("position", "attitude"))
    return position, frames.camera_attitude(frames.normalize(attitude))
