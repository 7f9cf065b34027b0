"""Before the goal: from where a vehicle stands up to its start, and waiting there until it is calm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.planning.interface import Mission, Motion, Setpoints

__all__ = ["TakeOff", "TakeOffs"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
_EARLY = 1e-9


@dataclass(frozen=True)
class TakeOff:
    """How flights begin; the thresholds are our choice where the benchmark's paper is silent."""

    speed: float = 1.0
    """Mean speed on the way up [m/s]."""
    settle_speed: float = 0.2
    """[m/s]"""
    settle_distance: float = 0.3
    """[m]"""
    settle_time: float = 1.0
    """Calm for so long before the goal is issued [s]."""
    patience: float = 30.0
    """A flight that has no goal by then has failed [s]."""


class TakeOffs:
    """The way up of n flights: one quintic at rest at both ends, then a wait.

    Args:
        settings: How.
        mission: Whose start is the end of the way up.
    """

    def __init__(self, settings: TakeOff, mission: Mission):
        count = len(mission.start)
        self.settings, self.mission = settings, mission
        self.issued = np.full(count, np.nan)
        """When each flight's goal was issued, on the flight's clock [s]; NaN before."""
        self._from = np.full((count, 3), np.nan)
        self._yaw = np.zeros(count)
        self._begun = np.zeros(count)
        self._calm_since = np.full(count, np.nan)

    def step(self, motion: Motion) -> Bools:
        """Note the motion, its time on the flight's clock; returns flights (n,) that have lost patience."""
        new = np.isnan(self._from[:, 0])
        self._from[new], self._begun[new] = motion.position[new], motion.time[new]
        self._yaw[new] = yaw_of(motion.attitude[new])
        off = np.linalg.norm(motion.position - self.mission.start, axis=1)
        speed = np.linalg.norm(motion.velocity, axis=1)
        calm = (off < self.settings.settle_distance) & (speed < self.settings.settle_speed)
        self._calm_since = np.where(calm, np.where(np.isnan(self._calm_since), motion.time, self._calm_since), np.nan)
        waiting = np.isnan(self.issued)
        ready = waiting & calm & (motion.time - self._calm_since >= self.settings.settle_time - _EARLY)
        self.issued[ready] = motion.time[ready]
        return waiting & ~ready & (motion.time - self._begun > self.settings.patience)

    def settling(self, position: Array) -> Bools:
        """Flights (n,) at or near their start or beyond it: those whose maps are worth filling."""
        near = np.abs(position[:, 2] - self.mission.start[:, 2]) < self.settings.settle_distance
        return near | ~np.isnan(self.issued)

    def setpoints(self, time: Array) -> Setpoints:
        """Of every flight at times (n,) on its clock."""
        way = self.mission.start - self._from
        duration = np.maximum(np.linalg.norm(way, axis=1) / self.settings.speed, 0.5)
        s = np.clip((time - self._begun) / duration, 0.0, 1.0)
        share = s**3 * (10.0 - 15.0 * s + 6.0 * s * s)
        slope = 30.0 * s * s * (1.0 - s) ** 2 / duration
        bend = 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / duration**2
        parts = (self._from + share[:, None] * way, slope[:, None] * way, bend[:, None] * way)
        return Setpoints(*parts, self._yaw.copy(), np.zeros(len(time)))


def yaw_of(attitude: Array) -> Array:
    """Yaw of quaternions x, y, z, w, (n,) [rad]."""
    x, y, z, w = attitude.T
    return np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
