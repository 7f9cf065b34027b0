"""From a depth camera into the maps: at the maps' rate, as estimated poses have it, after the camera's latency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import camera_attitude
from airworthy.pilots.planning.interface import MapSettings
from airworthy.simulation.mounted import Capture, MountedSensors
from airworthy.simulation.simulator import Simulator

__all__ = ["Feed"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
_EARLY = 1e-3
"""Share of a period by which a tick may come early: what rounding takes away."""


class _Pilot(Protocol):
    maps: Any

    def wants_images(self, position: Array) -> Bools: ...

    def odometry_error(self, time: Array) -> tuple[Array, Array]: ...


@dataclass
class _Waiting:
    """Images that have been taken and are not in the maps."""

    capture: Capture
    arrival: Array
    """On the flights' clocks [s], (k,)."""
    position: Array
    """Of the camera by odometry, (k, 3)."""
    wanted: Bools
    """Which are still of use, (k,)."""


class Feed:
    """Puts the newest image that has arrived into the maps whenever their timer ticks.

    Args:
        pilot: Whose maps and odometry.
        settings: With the timer's rate.
    """

    def __init__(self, pilot: _Pilot, settings: MapSettings):
        self._pilot, self._rate = pilot, settings.rate
        self._waiting: list[_Waiting] = []
        self._tick: NDArray[np.int64] | None = None
        self._latency = 0.0
        self._sensor = ""

    def attach(self, simulator: Simulator, mounted: MountedSensors | None, sensor: str) -> None:
        """Listen to a camera.

        Raises:
            AirworthyError: There is none of this name.
        """
        if mounted is None or sensor not in mounted.names:
            there = ", ".join(mounted.names) if mounted is not None and mounted.names else "no sensor"
            raise AirworthyError(f"The maps need a depth camera named {sensor!r}, but mounted is {there}.")
        self._simulator, self._sensor = simulator, sensor
        self._latency = float(mounted.sensor(sensor).device.latency)
        self._tick = np.full(simulator.env_count, -1, np.int64)
        mounted.listen(self._take)

    def flush(self, time: Array) -> None:
        """Put into the maps what is due at times (n,) of the flights' clocks."""
        if self._tick is None:
            raise AirworthyError("The pilot's maps have no camera; call pilot.attach(simulator, mounted) before flying.")
        tick = np.floor(time * self._rate + _EARLY).astype(np.int64)
        due = tick > self._tick
        self._tick = np.maximum(tick, self._tick)
        for image in self._waiting:
            envs = image.capture.envs
            now = image.wanted & due[envs] & (image.arrival <= time[envs] + 1e-9)
            if now.any():
                self._insert(image, now)
                image.wanted &= ~now
        self._waiting = [image for image in self._waiting if image.wanted.any()]

    def _take(self, capture: Capture) -> None:
        """A new image: of flights that want it the older ones that have also arrived by then are of no more use."""
        if capture.name != self._sensor:
            return
        simulator = self._simulator
        time = np.asarray(simulator.time, float)
        wanted = self._pilot.wants_images(np.asarray(simulator.position, float))[capture.envs]
        error = self._pilot.odometry_error(time)[0][capture.envs]
        arrival = time[capture.envs] + self._latency
        if self._latency == 0.0:
            fresh = np.zeros(simulator.env_count, bool)
            fresh[capture.envs] = True
            for image in self._waiting:
                image.wanted &= ~fresh[image.capture.envs]
        self._waiting.append(_Waiting(capture, arrival, np.asarray(capture.position, float) + error, wanted))

    def _insert(self, image: _Waiting, rows: Bools) -> None:
        depth = image.capture.data["depth"]
        every = bool(rows.all())
        self._pilot.maps.update(
            image.capture.envs if every else image.capture.envs[rows],
            depth if every else depth[rows],
            image.position[rows],
            camera_attitude(np.asarray(image.capture.attitude, float)[rows]),
        )
