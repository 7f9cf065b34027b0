"""Where the browser looks from: free, behind the vehicle, or out of its own eyes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.vehicles import Vehicle
from airworthy.viewer.vehicle_nodes import reach_of

__all__ = ["MODES", "Follower"]

MODES = ("free", "chase", "onboard")
DISTANCE, RISE = 8.0, math.radians(18.0)
"""Of a camera that follows: reaches behind the vehicle, and how far above its horizon."""
_CALM = 0.5
"""Time in which a camera that follows turns after the vehicle [s]."""
_DISTANCE_MIN = 0.8

Floats = NDArray[Any]


class Follower:
    """Moves the cameras of all browsers that look on."""

    def __init__(self, vehicle: Vehicle):
        self.mode = MODES[0]
        self.aim(vehicle)
        self._heading: float | None = None
        self._time = 0.0

    def aim(self, vehicle: Vehicle) -> None:
        """Follow a vehicle of another size."""
        self._away = max(DISTANCE * reach_of(vehicle), _DISTANCE_MIN)

    def choose(self, mode: str) -> None:
        """Look from elsewhere; the turn behind the vehicle begins anew."""
        self.mode, self._heading = mode, None

    def place(self, time: float, position: Floats, attitude: Floats) -> tuple[Floats, Floats, Floats] | None:
        """Position, the point looked at, and the direction that is up, for a vehicle's pose; None: the browser's own.

        Args:
            time: Of the flight [s].
            position: Of the vehicle [m].
            attitude: Of the vehicle.
        """
        if self.mode == "free":
            return None
        ahead = frames.rotate(attitude, np.array([1.0, 0.0, 0.0]))
        if self.mode == "onboard":
            return np.asarray(position), position + ahead, frames.rotate(attitude, np.array([0.0, 0.0, 1.0]))
        heading = self._calm(time, math.atan2(ahead[1], ahead[0]))
        flat = np.array([math.cos(heading), math.sin(heading), 0.0])
        back = -math.cos(RISE) * flat + np.array([0.0, 0.0, math.sin(RISE)])
        return position + self._away * back, np.asarray(position), np.array([0.0, 0.0, 1.0])

    def _calm(self, time: float, wanted: float) -> float:
        """The heading, turned after the vehicle's without haste; at once after a jump of the time."""
        passed, self._time = time - self._time, time
        if self._heading is None or not 0.0 <= passed < 2.0:
            self._heading = wanted
        turn = math.remainder(wanted - self._heading, 2.0 * math.pi)
        self._heading += (1.0 - math.exp(-passed / _CALM)) * turn
        return self._heading


def look(client: Any, view: tuple[Floats, Floats, Floats]) -> None:
    """Put one browser's camera somewhere."""
    position, target, up = view
    with client.atomic():
        client.camera.up_direction = up
        client.camera.position = position
        client.camera.look_at = target
