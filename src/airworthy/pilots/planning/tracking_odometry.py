"""Odometry: what a pilot takes for the vehicle's motion. Ideal, or with noise and drift."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.random import Stream, flight_key, normals

__all__ = ["Odometry", "OdometryErrors"]

Array = NDArray[np.float64]
RATE = 200.0
"""Of odometry [Hz]."""
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

    def __init__(self, odometry: Odometry, seed: int, flight: NDArray[np.int64]):
        self.odometry = odometry
        self._noise_key = flight_key(seed, flight, _NOISE_TAG)
        self._drift_key = flight_key(seed, flight, _DRIFT_TAG)
        self._knot = np.full(len(flight), -1, np.int64)
        self._walk = np.zeros((2, len(flight), 3))

    def at(self, time: Array) -> tuple[Array, Array]:
        """Errors of position and velocity at the newest samples of times (n,), (n, 3) each; times must not fall."""
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
