"""Magnetometer, barometer and satellite navigation of a batch of vehicles, sample by sample."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import unknown_name
from airworthy.core.files import packaged_toml
from airworthy.core.frames import rotate_inverse
from airworthy.core.random import Stream, flight_key, normals
from airworthy.sensors.navigation.atmosphere import pressure, pressure_altitude, temperature
from airworthy.sensors.navigation.geodesy import Home
from airworthy.sensors.navigation.magnetic_field import magnetic_field

__all__ = ["Barometer", "BarometerSample", "Gnss", "GnssSample", "Magnetometer", "NavigationSample", "NavigationSensors",
           "navigation_device", "navigation_names"]  # fmt: skip

_KELVIN = 273.15


@dataclass(frozen=True)
class Magnetometer:
    """Three axes of the magnetic field in the body frame, with white noise."""

    rate: float
    """Samples per second [Hz]."""
    noise: float
    """Standard deviation of a sample per axis [gauss]."""


@dataclass(frozen=True)
class Barometer:
    """Static pressure with white noise and a slow drift (first-order Gauss-Markov)."""

    rate: float
    """Samples per second [Hz]."""
    noise: float
    """Standard deviation of a sample [Pa]."""
    drift: float
    """Standard deviation of the drift [Pa]; a flight begins without any."""
    drift_time: float
    """Correlation time of the drift [s]."""


@dataclass(frozen=True)
class Gnss:
    """A receiver of satellite navigation: late, seldom, with an error of position that wanders (Gauss-Markov)."""

    rate: float
    """Fixes per second [Hz]."""
    delay: float
    """From the instant that a fix tells of until it arrives [s]."""
    horizontal: float
    """Standard deviation of the position's error, east and north each [m]."""
    vertical: float
    """The same, up [m]."""
    position_time: float
    """Correlation time of that error [s]."""
    speed: float
    """Standard deviation of the velocity's error per axis [m/s], white."""
    accuracy: tuple[float, float]
    """What the receiver states of itself: horizontal and vertical [m]."""
    satellites: int
    """In use."""


@dataclass(frozen=True)
class BarometerSample:
    """What a barometer says, arrays of (env,)."""

    pressure: Array
    """[Pa]"""
    altitude: Array
    """That of the pressure in the standard atmosphere [m]."""
    temperature: Array
    """Of the air [deg C]."""


@dataclass(frozen=True)
class GnssSample:
    """A fix."""

    time: float
    """The instant it tells of [s]; before that of its arrival by the receiver's delay."""
    latitude: Array
    """[deg], (env,)."""
    longitude: Array
    """[deg], (env,)."""
    altitude: Array
    """Above the sea [m], (env,)."""
    velocity: Array
    """World: east, north, up [m/s], (env, 3)."""
    accuracy: tuple[float, float]
    """Horizontal and vertical, as the receiver states it [m]."""
    satellites: int
    """In use."""


@dataclass(frozen=True)
class NavigationSample:
    """What is new at one instant; None: nothing of that sensor."""

    magnetometer: Array | None
    """Body frame [gauss], (env, 3)."""
    barometer: BarometerSample | None
    gnss: GnssSample | None


def navigation_names(kind: str) -> list[str]:
    """Return the devices of a kind: "magnetometer", "barometer" or "gnss"."""
    return list(_tables()[kind])


def _tables() -> dict[str, Any]:
    return packaged_toml("airworthy.sensors.navigation", "devices.toml")


def _device(kind: str, name: str, record: type) -> Any:
    known: Mapping[str, Any] = _tables()[kind]
    if name not in known:
        raise unknown_name(kind, name, known, "They are in sensors/navigation/devices.toml, with their sources.")
    values = known[name]
    names = [item.name for item in fields(record)]
    return record(**{key: tuple(values[key]) if isinstance(values[key], list) else values[key] for key in names})


def navigation_device(kind: str, name: str) -> Magnetometer | Barometer | Gnss:
    """Return a device of devices.toml.

    Args:
        kind: "magnetometer", "barometer" or "gnss".
        name: One of `navigation_names`.

    Raises:
        UnknownNameError: There is no such device.
    """
    records = {"magnetometer": Magnetometer, "barometer": Barometer, "gnss": Gnss}
    found: Magnetometer | Barometer | Gnss = _device(kind, name, records[kind])
    return found


class _Clock:
    """Tells when a sensor's next sample is due: sample k at time k / rate."""

    def __init__(self, rate: float):
        self._rate, self._next = rate, 0

    def due(self, time: float) -> int | None:
        """Return the number of the newest sample that is due and was not taken, else None."""
        # Ours: a thousandth of a period is rounding, not waiting.
        number = math.floor(time * self._rate + 1e-3)
        if number < self._next:
            return None
        self._next = number + 1
        return number


@dataclass
class _Wander:
    """A first-order Gauss-Markov process of stationary standard deviation `size`, from zero."""

    size: Array
    """(k,)"""
    correlation_time: float
    state: Array = field(default_factory=lambda: np.zeros(()))
    _time: float = 0.0

    def advanced(self, time: float, draws: Array) -> Array:
        # Exact for any step: Gelb, "Applied Optimal Estimation" (1974), section 3.8.
        keep = math.exp(-max(time - self._time, 0.0) / self.correlation_time)
        self.state = keep * self.state + math.sqrt(1.0 - keep * keep) * self.size * draws
        self._time = time
        return self.state


class NavigationSensors:
    """The three sensors of every vehicle of a batch. Draws are functions of (seed, flight id, sensor, sample).

    Args:
        home: Where the world's origin lies.
        magnetometer: A name of devices.toml.
        barometer: The same.
        gnss: The same.
        seed: Key of all random numbers.
        flight_ids: Identity of each vehicle's flight, (env,).

    Raises:
        UnknownNameError: There is no such device.
    """

    def __init__(
        self,
        home: Home | None = None,
        magnetometer: str = "hmc5883l",
        barometer: str = "ms5611",
        gnss: str = "f9p_rtk",
        seed: int = 0,
        flight_ids: ArrayLike = (0,),
    ):
        self.home = Home() if home is None else home
        self.magnetometer: Magnetometer = _device("magnetometer", magnetometer, Magnetometer)
        self.barometer: Barometer = _device("barometer", barometer, Barometer)
        self.gnss: Gnss = _device("gnss", gnss, Gnss)
        self.field = magnetic_field(self.home)
        """East, north, up [gauss]; that of the home everywhere, since it changes by less than 1e-5 per kilometre."""
        self._keys = flight_key(seed, np.asarray(flight_ids))
        self._clocks = [_Clock(device.rate) for device in (self.magnetometer, self.barometer, self.gnss)]
        self._drift = _Wander(np.array([self.barometer.drift]), self.barometer.drift_time)
        sizes = np.array([self.gnss.horizontal, self.gnss.horizontal, self.gnss.vertical])
        self._wander = _Wander(sizes, self.gnss.position_time)
        self._fixes: deque[tuple[float, GnssSample]] = deque()

    def sample(self, time: float, position: ArrayLike, velocity: ArrayLike, attitude: ArrayLike) -> NavigationSample:
        """Return what arrives at an instant; call with times that grow.

        Args:
            time: Since the start [s].
            position: World [m], (env, 3).
            velocity: World [m/s], (env, 3).
            attitude: Quaternions x, y, z, w, body to world, (env, 4).
        """
        compass, air, fix = (clock.due(time) for clock in self._clocks)
        place = np.asarray(position, np.float64)
        if fix is not None:
            made = self._fix(fix, time, place, np.asarray(velocity, np.float64))
            self._fixes.append((time + self.gnss.delay, made))
        return NavigationSample(
            None if compass is None else self._compass(compass, np.asarray(attitude, np.float64)),
            None if air is None else self._pressure(air, time, place),
            self._arrived(time),
        )

    def _draws(self, sensor: int, number: int, count: int) -> Array:
        # Eight numbers per sensor and sample: `first` counts numbers of a step, in blocks of four.
        return normals(self._keys, number, Stream.NAVIGATION, 8, 8 * sensor)[..., :count]

    def _compass(self, number: int, attitude: Array) -> Array:
        truth = rotate_inverse(attitude, np.broadcast_to(self.field, (*attitude.shape[:-1], 3)))
        return np.asarray(truth + self.magnetometer.noise * self._draws(0, number, 3))

    def _pressure(self, number: int, time: float, position: Array) -> BarometerSample:
        altitude = self.home.altitude + position[..., 2]
        draws = self._draws(1, number, 2)
        drift = self._drift.advanced(time, draws[..., 1:])[..., 0]
        found = pressure(altitude) + self.barometer.noise * draws[..., 0] + drift
        return BarometerSample(found, pressure_altitude(found), temperature(altitude) - _KELVIN)

    def _fix(self, number: int, time: float, position: Array, velocity: Array) -> GnssSample:
        draws = self._draws(2, number, 6)
        latitude, longitude, altitude = self.home.geodetic(position + self._wander.advanced(time, draws[..., :3]))
        moving = velocity + self.gnss.speed * draws[..., 3:]
        return GnssSample(time, latitude, longitude, altitude, moving, self.gnss.accuracy, self.gnss.satellites)

    def _arrived(self, time: float) -> GnssSample | None:
        newest = None
        while self._fixes and self._fixes[0][0] <= time + 1e-9:
            newest = self._fixes.popleft()[1]
        return newest
