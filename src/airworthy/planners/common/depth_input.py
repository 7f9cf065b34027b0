"""From a depth camera into the maps: at the maps' rate, as estimated poses have it, after the camera's latency."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, Protocol

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import packaged_toml
from airworthy.core.frames import camera_attitude
from airworthy.core.random import Stream, flight_key, normals
from airworthy.core.schema import check_fields
from airworthy.planners.common.interface import MapSettings
from airworthy.simulation.mounted import Capture, MountedSensors
from airworthy.simulation.simulator import Simulator

__all__ = ["COMPUTE_MODELS", "ComputeModel", "DepthInput", "Odometry", "OdometryErrors", "recorded_costs"]

# ---- Odometry: what a pilot takes for the vehicle's motion. Ideal, or with noise and drift ----------------------------------

# Source: spec/planners section 11: ground-truth odometry at 200 Hz for every planner.
RATE = 200.0
"""Of odometry [Hz]."""
# Ours: drift is slow beside it, and draws at the odometry's own rate would cost ten times as much.
_DRIFT_RATE = 20.0
"""Knots of the drift per second; between them it is a line."""
_NOISE_TAG, _DRIFT_TAG = 0x0D01, 0x0D02
"""Stand where a key has its episode: draws of odometry are nobody else's."""


@dataclass(frozen=True)
class Odometry:
    """Errors of state estimation; all zero: the true state."""

    position_noise: float = 0.0
    """Standard deviation per axis of each sample [m]."""
    velocity_noise: float = 0.0
    """Standard deviation per axis of each sample [m/s]."""
    drift: float = 0.0
    """Random walk of the position per axis [m/sqrt(s)]."""

    def __post_init__(self) -> None:
        check_fields(self, "Odometry.")
        for name in ("position_noise", "velocity_noise", "drift"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                raise AirworthyError(f"Odometry's {name} is {value}; expected 0 or more.")

    @property
    def ideal(self) -> bool:
        """Whether it is the true state."""
        return self.position_noise == self.velocity_noise == self.drift == 0.0


class OdometryErrors:
    """Errors of n flights as functions of each flight's time: equal whenever and with whomever they are asked.

    Args:
        odometry: How large they are.
        seed: Of the mission.
        flight: Numbers of the flights, (n,).
    """

    def __init__(self, odometry: Odometry, seed: int, flight: ArrayInt):
        self.odometry = odometry
        self._noise_key = flight_key(seed, flight, _NOISE_TAG)
        self._drift_key = flight_key(seed, flight, _DRIFT_TAG)
        self._knot = np.full(len(flight), -1, np.int64)
        self._walk = np.zeros((2, len(flight), 3))

    def at(self, time: Array) -> tuple[Array, Array]:
        """Return errors of position and velocity at the newest samples of times (n,), (n, 3) each; times must not fall."""
        if self.odometry.ideal:
            return np.zeros((len(time), 3)), np.zeros((len(time), 3))
        sample = np.floor(time * RATE + 1e-6)
        drawn = normals(self._noise_key, sample.astype(np.uint32), Stream.SENSED, 8)
        position = self.odometry.position_noise * drawn[:, :3] + self._drift(sample / RATE)
        return position, self.odometry.velocity_noise * drawn[:, 3:6]

    def _drift(self, time: Array) -> Array:
        if self.odometry.drift == 0.0:
            return np.zeros((len(time), 3))
        knot = np.floor(time * _DRIFT_RATE + 1e-9).astype(np.int64)
        step = self.odometry.drift / math.sqrt(_DRIFT_RATE)
        while (behind := self._knot < knot).any():
            self._knot[behind] += 1
            drawn = normals(self._drift_key[behind], self._knot[behind].astype(np.uint32), Stream.SENSED, 4)[:, :3]
            self._walk[0, behind] = self._walk[1, behind]
            self._walk[1, behind] += step * drawn
        share = (time * _DRIFT_RATE - knot)[:, None]
        return (1.0 - share) * self._walk[0] + share * self._walk[1]


# -----------------------------------------------------------------------------------------------------------------------------
# What thinking costs in simulated time: nothing, counted work times recorded constants, or the clock's measurements.
#
# A plan holds its compute after the odometry it was made from. The second way is the default of benchmarks: it is the same on
# every machine. The third stores each latency, and a replay uses what was stored.

COMPUTE_MODELS = ("zero", "fixed", "measured")
OTHER = "other"
"""Kind whose constant stands for kinds of work that the record does not know."""


@cache
def recorded_costs() -> dict[str, float]:
    """Return seconds per counted unit by kind of work; `compute_costs.toml` says where each comes from."""
    kinds = packaged_toml("airworthy.planners.common", "compute_costs.toml")["kinds"]
    return {kind: float(entry["seconds"]) for kind, entry in kinds.items()}


@dataclass
class ComputeModel:
    """How long plans take.

    Attributes:
        kind: Of `COMPUTE_MODELS`.
        costs: Seconds per unit by kind of work; empty: those recorded.
        timeout: A call that takes longer [s] fails its flight.
        stored: Of kind "measured": latencies (k,) of each flight's plans by its number; given ones are used instead of the
            clock, one after the other.
    """

    kind: Literal["zero", "fixed", "measured"] = "fixed"
    costs: Mapping[str, float] = field(default_factory=dict)
    timeout: float = 10.0
    stored: dict[int, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self, "ComputeModel.")
        if self.kind not in COMPUTE_MODELS:
            raise unknown_name("compute model", self.kind, COMPUTE_MODELS)
        if not self.timeout > 0.0:
            raise AirworthyError(f"A compute model's timeout is {self.timeout} s; expected more than 0.")
        self._replayed = {flight: list(times) for flight, times in self.stored.items()}
        self.stored = {}

    def counted(self, work: Mapping[str, Any], count: int) -> Array:
        """Return seconds of each flight's work by the constants, (n,)."""
        costs = self.costs or recorded_costs()
        total = np.zeros(count)
        for kind, units in work.items():
            total += np.broadcast_to(np.asarray(units, float), count) * costs.get(kind, costs.get(OTHER, 0.0))
        return total

    def delay(self, work: Mapping[str, Any], active: ArrayBool, flight: ArrayInt, wall: float) -> Array:
        """Delay of the plans of one call [s], (n,); 0 of flights that were not asked or did nothing.

        Args:
            work: Counted units by kind, arrays (n,).
            active: Who was asked, (n,).
            flight: Numbers of the flights, (n,).
            wall: Seconds that the call took for all of them; the clock's are shared out by counted work.
        """
        counted = np.where(active, self.counted(work, len(active)), 0.0)
        if self.kind == "zero":
            return np.zeros(len(active))
        if self.kind == "fixed":
            return counted
        total = counted.sum()
        share = counted / total if total > 0.0 else np.zeros(len(active))
        delays = wall * share
        for row in np.flatnonzero(share > 0.0):
            number = int(flight[row])
            waiting = self._replayed.get(number)
            if waiting:
                delays[row] = waiting.pop(0)
            self.stored.setdefault(number, []).append(float(delays[row]))
        return delays


# -----------------------------------------------------------------------------------------------------------------------------

_EARLY = 1e-3
"""Ours: share of a period by which a tick may come early, far more than rounding takes away."""


class _Pilot(Protocol):
    maps: Any

    def wants_images(self, position: Array) -> ArrayBool: ...

    def odometry_error(self, time: Array) -> tuple[Array, Array]: ...


@dataclass
class _Waiting:
    """Images that have been taken and are not in the maps."""

    capture: Capture
    arrival: Array
    """On the flights' clocks [s], (k,)."""
    position: Array
    """Of the camera by odometry, (k, 3)."""
    wanted: ArrayBool
    """Which are still of use, (k,)."""


class DepthInput:
    """Puts the newest image that has arrived into the maps whenever their timer ticks.

    Args:
        pilot: Whose maps and odometry.
        settings: With the timer's rate.
    """

    def __init__(self, pilot: _Pilot, settings: MapSettings):
        self._pilot, self._rate = pilot, settings.rate
        self._waiting: list[_Waiting] = []
        self._tick: ArrayInt | None = None
        self._latency = 0.0
        self._sensor = ""

    def attach(self, simulator: Simulator, mounted: MountedSensors | None, sensor: str) -> None:
        """Listen to a camera.

        Args:
            simulator: That flies the vehicles.
            mounted: Its sensors; None: it has none, which is refused.
            sensor: Name of the depth camera among them.

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
        """Take in a new image: of flights that want it the older ones that have also arrived by then are of no more use."""
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

    def _insert(self, image: _Waiting, rows: ArrayBool) -> None:
        depth = image.capture.data["depth"]
        every = bool(rows.all())
        envs = image.capture.envs if every else image.capture.envs[rows]
        self._pilot.maps.update(
            envs,
            depth if every else depth[rows],
            image.position[rows],
            camera_attitude(np.asarray(image.capture.attitude, float)[rows]),
        )
        if hasattr(self._pilot.maps, "stamp"):  # maps of one's own need not tell of when they are
            self._pilot.maps.stamp(envs, (image.arrival - self._latency)[rows])
