"""Set-points for planners that decide on velocities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["VelocityReference"]

Array = NDArray[np.float64]


class VelocityReference:
    """Velocities of n flights, each decided at some time and in force later, as set-points.

    From a decision on the velocity goes over to the wanted one at the acceleration allowed; the position starts at the odometry
    of the decision. So a controller is asked to hold the velocity, and errors of position do not add up to a pull. Its change
    is not fed forward: velocities are all that such planners send to a vehicle, and one that changes its mind twenty
    times a second would throw a weak one about.

    Args:
        start: Held before the first decision (n, 3) [m].
        acceleration: (n,) [m/s^2]
        height: (n,) held whatever is decided [m]; NaN: it goes by the velocity.
    """

    def __init__(self, start: Array, acceleration: Array, height: Array):
        count = len(start)
        self._acceleration, self._height = np.asarray(acceleration, float), np.asarray(height, float)
        self._old = _Leg(np.zeros(count), start.copy(), np.zeros((count, 3)), np.zeros((count, 3)))
        self._new = _Leg(np.zeros(count), start.copy(), np.zeros((count, 3)), np.zeros((count, 3)))
        self._begins = np.zeros(count)

    def decide(self, ids: NDArray[np.intp], time: Array, position: Array, wanted: Array) -> None:
        """Decisions of flights (k,) at times (k,) and places (k, 3); in force at once, unless `adopt` says later."""
        now = np.array(self._begins)
        now[ids] = time
        take = np.zeros(len(now), bool)
        take[ids] = now[ids] >= self._begins[ids]  # one that is not in force yet is replaced and never was
        self._old.take(take, self._new)
        velocity = self._at(self._old, now)[1][ids]
        self._new.put(ids, time, position, velocity, wanted)
        self._begins[ids] = time

    def adopt(self, delay: Array) -> None:
        """The last decisions are in force `delay` (n,) [s] after they were made."""
        self._begins = self._begins + delay

    def at(self, time: Array) -> tuple[Array, Array]:
        """Position and velocity at times (n,), (n, 3) each."""
        first, second = self._at(self._old, time), self._at(self._new, time)
        ready = (time >= self._begins)[:, None]
        position, velocity = (np.where(ready, b, a) for a, b in zip(first, second, strict=True))
        held = ~np.isnan(self._height)
        position[held, 2] = self._height[held]
        velocity[held, 2] = 0.0
        return position, velocity

    def _at(self, leg: _Leg, time: Array) -> tuple[Array, Array]:
        change = leg.wanted - leg.velocity
        size = np.linalg.norm(change, axis=1)
        ramp = size / self._acceleration
        since = np.maximum(time - leg.time, 0.0)
        inside = np.minimum(since, ramp)
        slope = np.where((ramp > 0.0)[:, None], change / np.where(ramp > 0.0, ramp, 1.0)[:, None], 0.0)
        velocity = leg.velocity + slope * inside[:, None]
        way = leg.velocity * since[:, None] + slope * (0.5 * inside**2)[:, None] + change * (since - inside)[:, None]
        return leg.position + way, velocity


class _Leg:
    """One decision of each flight."""

    def __init__(self, time: Array, position: Array, velocity: Array, wanted: Array):
        self.time, self.position, self.velocity, self.wanted = time, position, velocity, wanted

    def put(self, ids: NDArray[np.intp], time: Array, position: Array, velocity: Array, wanted: Array) -> None:
        self.time[ids], self.position[ids], self.velocity[ids], self.wanted[ids] = time, position, velocity, wanted

    def take(self, mask: NDArray[np.bool_], other: _Leg) -> None:
        for name in ("time", "position", "velocity", "wanted"):
            getattr(self, name)[mask] = getattr(other, name)[mask]
