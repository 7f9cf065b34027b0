"""Straight from start to goal, as fast as allowed, whatever stands there. Specification of the planners, section 6."""

from __future__ import annotations

from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.planners.common.interface import Maps, MapSettings, Mission, Motion, Setpoints

__all__ = ["StraightFlight", "trapezoid"]


def trapezoid(time: Array, length: Array, speed: Array, acceleration: Array) -> tuple[Array, Array, Array]:
    """Return distance, speed and acceleration along a line at times (n,): faster, steady, slower, rest at the end.

    Where the line is too short for full speed its middle is the peak. Lengths 0 give rest.

    Args:
        time: (n,) [s] since the start.
        length: Of the lines, (n,) [m].
        speed: Largest, (n,) [m/s].
        acceleration: Of both ramps, (n,) [m/s^2].
    """
    # Half the line to speed up, half to slow down: v^2 / (2 a) = length / 2.
    peak = np.minimum(speed, np.sqrt(length * acceleration))
    ramp = peak / acceleration
    cruise = np.where(peak > 0.0, length / np.where(peak > 0.0, peak, 1.0) - ramp, 0.0)
    end = 2.0 * ramp + cruise
    up = np.clip(time, 0.0, ramp)
    steady = np.clip(time - ramp, 0.0, cruise)
    down = np.clip(time - ramp - cruise, 0.0, ramp)
    displacement = 0.5 * acceleration * up**2 + peak * steady + peak * down - 0.5 * acceleration * down**2
    bend = np.where(time < ramp, 1.0, np.where(time < ramp + cruise, 0.0, -1.0)) * acceleration
    over = (time >= end) | (time < 0.0)
    return displacement, np.where(over, 0.0, acceleration * (up - down)), np.where(over, 0.0, bend)


class StraightFlight:
    """A planner that plans once and looks at nothing."""

    name = "straight"
    settings: MapSettings | None = None

    def reset(self, mission: Mission) -> None:
        """Begin n flights."""
        self._mission = mission
        displacement = mission.goal - mission.start
        self._length = np.linalg.norm(displacement, axis=1)
        # A goal at the start has no direction: zeros, and the flight stays.
        self._direction = displacement / np.maximum(self._length, 1e-9)[:, None]
        self._yaw = np.arctan2(displacement[:, 1], displacement[:, 0])
        self._begun = np.zeros(len(displacement), bool)

    def update(self, motion: Motion, maps: Maps | None, active: ArrayBool) -> dict[str, Any]:
        """Think about nothing: the line is there from the start.

        Args:
            motion: Not read: the line was laid at `reset`.
            maps: Not read.
            active: Not read.
        """
        # One plan per flight is what the benchmark counts, although nothing was thought.
        new = active & ~self._begun
        self._begun |= active
        return {"work": {}, "replans": new.astype(np.int64), "state": self._begun.astype(np.int64)}

    def adopt(self, delay: Array) -> None:
        """Adopt nothing: there is nothing that took time."""

    def setpoints(self, time: Array) -> Setpoints:
        """Return set-points along the line."""
        mission = self._mission
        displacement, speed, bend = trapezoid(time, self._length, mission.speed, mission.acceleration)
        along = self._direction
        parts = (mission.start + displacement[:, None] * along, speed[:, None] * along, bend[:, None] * along)
        return Setpoints(*parts, self._yaw.copy(), np.zeros(len(time)))

    def preview(self, time: Array) -> Setpoints:
        """Return set-points at later times, for controllers that look ahead."""
        return self.setpoints(time)
