"""Trajectories of one second as they are flown: fitted to what holds now, by arc length, at a speed that goes to its target.

Source: specification of the planners, section 8.5. The sampling expert and the student that learns from it fly alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.planners.common.interface import Mission, Motion, Setpoints
from airworthy.planners.sampling_expert.sampling import TIMES, constrained_fit, powers

__all__ = ["EXECUTED", "RetimedPaths"]

# Ours: beyond it the fitted start would no longer be where the vehicle is.
_STRAY = 0.5
"""Farther than this from its set-point a vehicle starts anew from where it is [m]."""
# Ours: 25 ms apart over the horizon of a second.
_FINE = 41
"""Points of a path by which it is re-timed."""
# Source: spec/planners 8.5: fit degree 5 with 3rd-order continuity.
EXECUTED = 5
"""Degree of what is flown."""
# Ours, [m/s]: near rest the direction of flight is noise, and the nose would turn about.
_TURNING = 0.3


@dataclass(eq=False)
class _Path:
    """What one flight follows: points by arc length, and its speed."""

    begun: float
    along: Array
    points: Array
    tangent: Array
    bend: Array
    speed: float
    target: float
    acceleration: float


class RetimedPaths:
    """What n flights follow, and what they will follow next, each from a moment of its own on.

    Args:
        mission: The flights.
    """

    def __init__(self, mission: Mission):
        count = len(mission.start)
        self._mission = mission
        self._now: list[_Path | None] = [None] * count
        self._next: list[_Path | None] = [None] * count
        self._holds_from = np.zeros(count)
        displacement = mission.goal - mission.start
        self._yaw = np.arctan2(displacement[:, 1], displacement[:, 0])

    def begin(self, flight: int, motion: Motion) -> tuple[Array, Array, Array]:
        """Return what a trajectory starts from: the set-point, while the vehicle is near it, else where the vehicle is.

        From odometry alone every decision would forgive the tracking error, and nothing would bring a height back.

        Args:
            flight: Its place in the batch.
            motion: Odometry of all flights.

        Returns:
            Position [m], velocity [m/s], acceleration [m/s^2], (3,) each, world.
        """
        wanted = self._row(flight, float(motion.time[flight]))
        if self._next[flight] is not None and np.linalg.norm(wanted[0] - motion.position[flight]) < _STRAY:
            return wanted
        return motion.position[flight], motion.velocity[flight], np.zeros(3)

    def decide(self, flight: int, points: Array, motion: Motion, target: float) -> None:
        """Let a flight follow another trajectory, from now on or since `delay`.

        Args:
            flight: Its place in the batch.
            points: (10, 3) of the trajectory, 0.1 s apart, world [m].
            motion: Odometry of all flights.
            target: Speed that it goes over to [m/s].
        """
        time = float(motion.time[flight])
        if self._next[flight] is not None and time >= self._holds_from[flight]:
            self._now[flight] = self._next[flight]
        self._next[flight] = self._path(flight, points, motion, target)
        self._holds_from[flight] = time

    def delay(self, who: ArrayBool, delay: Array) -> None:
        """Let the last decisions of some flights (n,) hold later, by `delay` (n,) [s]."""
        self._holds_from[who] += delay[who]

    def setpoints(self, time: Array) -> Setpoints:
        """Return set-points along the paths in force at times (n,) [s], the nose along the way."""
        rows = [self._row(flight, float(t)) for flight, t in enumerate(time)]
        position, velocity, acceleration = (np.array([row[k] for row in rows]) for k in range(3))
        fast = np.hypot(velocity[:, 0], velocity[:, 1]) > _TURNING
        self._yaw = np.where(fast, np.arctan2(velocity[:, 1], velocity[:, 0]), self._yaw)
        return Setpoints(position, velocity, acceleration, self._yaw.copy(), np.zeros(len(time)))

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _path(self, flight: int, points: Array, motion: Motion, target: float) -> _Path:
        """Return the polynomial that is flown: from the present set-point's acceleration on, by arc length."""
        start = np.stack(self.begin(flight, motion))
        chosen = self._fitted(flight, points, start)
        grid = np.linspace(0.0, TIMES[-1], _FINE)
        points, slope, curve = (powers(grid, EXECUTED, d) @ chosen for d in range(3))
        along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
        size = np.linalg.norm(slope, axis=1, keepdims=True)
        tangent = slope / np.maximum(size, 1e-6)
        # Ours, [m/s]: the curvature of a path that begins at rest is 0 / 0, and close to it huge.
        bend = (curve - (curve * tangent).sum(axis=1, keepdims=True) * tangent) / np.maximum(size, 0.3) ** 2
        speed = float(np.linalg.norm(start[1]))
        return _Path(float(motion.time[flight]), along, points, tangent, bend, speed, target, self._limit(flight))

    def _fitted(self, flight: int, points: Array, start: Array) -> Array:
        """Return coefficients (6, 3) of what is flown instead of points (10, 3), its first derivatives `start` (3, 3) held."""
        by_points, by_start = constrained_fit(EXECUTED, 3)
        return np.asarray(by_points @ points + by_start @ start)

    def _limit(self, flight: int) -> float:
        """Return the acceleration by which a flight goes over to its target speed [m/s^2]."""
        return float(self._mission.acceleration[flight])

    def _row(self, flight: int, time: float) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration of one flight: the speed goes over to its target and is constant then."""
        ready = self._next[flight] is not None and time >= self._holds_from[flight]
        path = self._next[flight] if ready else self._now[flight]
        if path is None:
            return self._mission.start[flight], np.zeros(3), np.zeros(3)
        since = max(time - path.begun, 0.0)
        change = path.target - path.speed
        ramp = abs(change) / path.acceleration
        inside = min(since, ramp)
        pull = np.sign(change) * path.acceleration
        speed = path.speed + pull * inside
        along = path.speed * inside + 0.5 * pull * inside**2 + path.target * (since - inside)
        if along >= path.along[-1]:
            return path.points[-1], np.zeros(3), np.zeros(3)
        point, tangent, bend = (
            np.array([np.interp(along, path.along, rows[:, i]) for i in range(3)])
            for rows in (path.points, path.tangent, path.bend)
        )
        return point, speed * tangent, speed**2 * bend + (pull if since < ramp else 0.0) * tangent
