"""Magnetometer, barometer and satellite navigation as sensors that are mounted on a vehicle, by their names.

A magnetometer says `magnetic_field` [gauss], its own axes; a barometer `pressure` [Pa], `pressure_altitude` [m] and
`temperature` [degC]; a receiver of satellite navigation `geodetic`, latitude [deg], longitude [deg] and altitude [m] on WGS84,
and `velocity`, world [m/s]. The world's origin is a `Home`. Errors are those of `suite`, with draws of each sensor's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayIndex
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.frames import rotate_inverse
from airworthy.core.random import Stream
from airworthy.optics.projections import Spherical
from airworthy.sensors.devices import Device
from airworthy.sensors.navigation.atmosphere import pressure, pressure_altitude, temperature
from airworthy.sensors.navigation.geodesy import Home
from airworthy.sensors.navigation.magnetic_field import magnetic_field
from airworthy.sensors.navigation.suite import Barometer, Gnss, Magnetometer, navigation_device, navigation_names
from airworthy.sensors.noise import Draw, normal_of, sensor_number
from airworthy.sensors.sampling import SensorView

__all__ = ["NavigationSensor", "mounted_names"]

_KINDS = ("magnetometer", "barometer", "gnss")
_IDEAL = "ideal"
_KELVIN = 273.15
_CHANNELS = {
    "magnetometer": ("magnetic_field",),
    "barometer": ("pressure", "pressure_altitude", "temperature"),
    "gnss": ("geodetic", "velocity"),
}
# One ray ahead, which nobody casts: a device has to have some.
_NO_PIXELS = Spherical(1, 1, (-1e-3, 1e-3), (-1e-3, 1e-3))


def mounted_names() -> dict[str, str]:
    """Return names of devices that can be mounted, and their kinds; those without noise are magnetometer_ideal and so on."""
    return {f"{kind}_{name}" if name == _IDEAL else name: kind for kind in _KINDS for name in navigation_names(kind)}


class NavigationSensor:
    """One of them; see `airworthy.sensors.build.Sensor`.

    Args:
        name: Of a device, one of `mounted_names`.
        home: Where the world's origin lies on the Earth.

    Raises:
        UnknownNameError: There is no such device.
    """

    def __init__(self, name: str, home: Home | None = None):
        kinds = mounted_names()
        if name not in kinds:
            raise unknown_name("navigation sensor", name, kinds)
        self.kind = kinds[name]
        plain = _IDEAL if name == f"{self.kind}_{_IDEAL}" else name
        self._home = Home() if home is None else home
        self._is: Any = navigation_device(self.kind, plain)
        latency = self._is.delay if isinstance(self._is, Gnss) else 0.0
        self.device = Device(name, self.kind, _NO_PIXELS, rate=self._is.rate, latency=latency, channels=_CHANNELS[self.kind])
        self.name, self.number = name, sensor_number(name)
        self._field = magnetic_field(self._home)
        # What wanders, by environment: standard deviations from zero at the start of a flight.
        self._sizes, self._correlation = _wander(self._is)
        self._state = np.zeros((0, len(self._sizes)))

    def capture(self, scene: Any, view: SensorView, channels: Sequence[str] = ()) -> dict[str, Any]:
        """Return one sample per view.

        Args:
            scene: Not looked at.
            view: Poses, and of a receiver the velocity.
            channels: What is wanted; none: all.

        Raises:
            AirworthyError: A receiver is carried by what has no velocity here.
        """
        wanted = tuple(channels) or self.device.channels
        place, turn = np.asarray(view.position, np.float64), np.asarray(view.attitude, np.float64)
        draws = _draws(view.draw, len(place))
        found: dict[str, Any] = {}
        if isinstance(self._is, Magnetometer):
            truth = rotate_inverse(turn, np.broadcast_to(self._field, place.shape))
            found["magnetic_field"] = truth + self._is.noise * draws[:, :3]
        elif isinstance(self._is, Barometer):
            altitude = self._home.altitude + place[:, 2]
            off = self._wandered(view, draws[:, 1:2])[:, 0] + self._is.noise * draws[:, 0]
            read = np.asarray(pressure(altitude)) + off
            found = {
                "pressure": read,
                "pressure_altitude": pressure_altitude(read),
                "temperature": temperature(altitude) - _KELVIN,
            }
            found = {key: np.asarray(values)[:, None] for key, values in found.items()}
        else:
            if view.velocity is None:
                raise AirworthyError(f"The receiver {self.name!r} tells a velocity: mount it on the vehicle itself.")
            where = self._home.geodetic(place + self._wandered(view, draws[:, :3]))
            found["geodetic"] = np.stack([np.asarray(part) for part in where], axis=1)
            found["velocity"] = np.asarray(view.velocity, np.float64) + self._is.speed * draws[:, 3:6]
        return {name: found[name] for name in wanted}

    def reset(self, env_ids: ArrayIndex | None = None) -> None:
        """Begin new flights: what wanders begins at zero."""
        envs = np.arange(len(self._state)) if env_ids is None else np.asarray(env_ids)
        self._grow(envs)
        self._state[envs] = 0.0

    def save(self) -> dict[str, Any]:
        """Return what it keeps from sample to sample."""
        return {"wander": self._state.copy()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from what `save` returned."""
        self._state = np.array(saved["wander"])

    def _wandered(self, view: SensorView, draws: Array) -> Array:
        """Advance first-order Gauss-Markov processes by a period, (k, n)."""
        envs = np.arange(len(draws)) if view.env is None else np.asarray(view.env)
        self._grow(envs)
        # Exact for any step: Gelb, "Applied Optimal Estimation" (1974), section 3.8; as `suite`, a flight begins near zero.
        keep = math.exp(-1.0 / (self.device.rate * self._correlation))
        self._state[envs] = keep * self._state[envs] + math.sqrt(1.0 - keep * keep) * self._sizes * draws
        return np.array(self._state[envs])

    def _grow(self, envs: Any) -> None:
        """Have a row for each of these environments."""
        more = int(np.max(envs, initial=-1)) + 1 - len(self._state)
        if more > 0:
            self._state = np.concatenate([self._state, np.zeros((more, len(self._sizes)))])


def _wander(device: Any) -> tuple[Array, float]:
    if isinstance(device, Barometer):
        return np.array([device.drift]), device.drift_time
    if isinstance(device, Gnss):
        return np.array([device.horizontal, device.horizontal, device.vertical]), device.position_time
    return np.zeros(0), 1.0


def _draws(draw: Draw | None, count: int) -> Array:
    """Six normal numbers of a sample, (k, 6); zeros where there is no noise."""
    if draw is None:
        return np.zeros((count, 6))
    words = draw.words(6, Stream.NAVIGATION)
    return normal_of(words[..., 0], words[..., 1])
