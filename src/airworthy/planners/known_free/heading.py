"""Where the cameras of n flights look: turned to a wanted heading as fast as each vehicle's yaw allows, and stopped there."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array
from airworthy.planners.known_free.limits import MotionLimits

__all__ = ["Headings", "yaw_of"]

_TICK = 0.05
"""Longest time that is turned at once [s]."""


class Headings:
    """Headings of n flights.

    Args:
        wanted: Before anything is looked at, (n,) [rad].
        limits: Yaw rate and acceleration of each.
    """

    def __init__(self, wanted: Array, limits: MotionLimits):
        n = len(wanted)
        self._limits, self.yaw, self.rate = limits, np.array(wanted, float), np.zeros(n)
        self.wanted, self._time = np.array(wanted, float), np.full(n, np.nan)

    def begin(self, flight: int, attitude: Array) -> None:
        """Begin as a flight is turned, by its attitude (4,)."""
        self.yaw[flight] = yaw_of(attitude)

    def look(self, flight: int, heading: float) -> None:
        """Let a flight turn to a heading [rad]."""
        self.wanted[flight] = heading

    def off(self, flight: int) -> float:
        """Return how far a flight looks beside what is wanted [rad]."""
        return float(abs(_wrapped(self.wanted[flight] - self.yaw[flight])))

    def turn(self, time: Array) -> tuple[Array, Array]:
        """Return yaw and its rate (n,) at times (n,); a later time than that of the call before moves them on."""
        dt = np.where(np.isnan(self._time), 0.0, np.clip(time - self._time, 0.0, _TICK))
        self._time = np.fmax(self._time, time)
        off = _wrapped(self.wanted - self.yaw)
        strong, fast = self._limits.yaw_acceleration, self._limits.yaw_rate
        # The rate from which it still stops there, with something to spare, and near the end in proportion.
        aimed = np.sign(off) * np.minimum(np.minimum(np.sqrt(1.2 * strong * np.abs(off)), 4.0 * np.abs(off)), fast)
        self.rate = self.rate + np.clip(aimed - self.rate, -strong * dt, strong * dt)
        self.yaw = _wrapped(self.yaw + self.rate * dt)
        return self.yaw.copy(), self.rate.copy()


def yaw_of(attitude: Array) -> float:
    """Return the heading of an attitude (4,), x, y, z, w [rad]."""
    x, y, z, w = attitude
    return float(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))


def _wrapped(angle: Array) -> Array:
    return (angle + np.pi) % (2.0 * np.pi) - np.pi
