"""Controllers that end in thrust and body rates, which a low-level loop follows: the open stand-in of section 10.3.

Source: specification of the planners, section 10.3 (rpg_quadrotor_control, `position_controller.cpp` and its defaults).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from airworthy.control.config import ControlConfig
from airworthy.pilots.agilicious.dfbc import quaternion_of_axes
from airworthy.pilots.agilicious.pipeline import columns
from airworthy.pilots.pilot import Observation
from airworthy.pilots.planning.interface import Motion, Setpoints
from airworthy.simulation.simulator import Simulator

__all__ = ["RateCommand"]

Array = NDArray[np.float64]
POSITION_GAIN, VELOCITY_GAIN = np.array([10.0, 10.0, 15.0]), np.array([4.0, 4.0, 6.0])
POSITION_MAX, VELOCITY_MAX = np.array([0.6, 0.6, 0.3]), np.array([1.0, 1.0, 0.75])
TURN_GAIN = np.array([12.0, 12.0, 5.0])
GRAVITY = 9.81
_LEAST = 1.0
"""Thrust over mass under which no rates follow from jerk [m/s^2]."""


class RateCommand:
    """A back end: position control by thrust and body rates."""

    name = "rate_command"
    level = "rate_thrust"
    rate = 100.0
    observes: tuple[str, ...] = ()
    ahead: tuple[float, ...] = ()

    def control(self) -> ControlConfig:
        """Rates are followed by the vehicle's own gains."""
        return ControlConfig()

    def configure(self, simulator: Simulator) -> None:
        """Only masses matter."""
        self._mass = np.array([v.mass for v in simulator.vehicles])
        self._rate = simulator.config.control_rate
        self._before: Array | None = None

    def command(
        self,
        wanted: Setpoints,
        motion: Motion,
        errors: tuple[Array, Array],
        observation: Observation,
        ahead: Sequence[Setpoints] = (),
    ) -> Array:
        """Thrust [N] and body rates [rad/s], (n, 4)."""
        e_p = np.clip(wanted.position - motion.position, -POSITION_MAX, POSITION_MAX)
        e_v = np.clip(wanted.velocity - motion.velocity, -VELOCITY_MAX, VELOCITY_MAX)
        pull = wanted.acceleration + POSITION_GAIN * e_p + VELOCITY_GAIN * e_v + [0.0, 0.0, GRAVITY]
        size = np.maximum(np.linalg.norm(pull, axis=1), 1e-6)
        z = pull / size[:, None]
        left = np.stack([-np.sin(wanted.yaw), np.cos(wanted.yaw), np.zeros_like(wanted.yaw)], axis=1)
        x = np.cross(left, z)
        x /= np.maximum(np.linalg.norm(x, axis=1), 1e-6)[:, None]
        y = np.cross(z, x)
        target = np.stack(quaternion_of_axes((columns(x), columns(y), columns(z))), axis=1)
        rates = self._feed_forward(wanted, x, y, size) + 2.0 * TURN_GAIN * _error(motion.attitude, target)
        along = _z_of(motion.attitude)
        return np.concatenate([(self._mass * (pull * along).sum(axis=1))[:, None], rates], axis=1)

    def _feed_forward(self, wanted: Setpoints, x: Array, y: Array, size: Array) -> Array:
        before = wanted.acceleration if self._before is None else self._before
        jerk = (wanted.acceleration - before) * self._rate
        jerk = np.where((np.abs(jerk) > 50.0).any(axis=1, keepdims=True), 0.0, jerk)
        self._before = wanted.acceleration.copy()
        per = np.where(size > _LEAST, 1.0 / np.maximum(size, _LEAST), 0.0)
        return np.stack([-(y * jerk).sum(axis=1) * per, (x * jerk).sum(axis=1) * per, wanted.yaw_rate], axis=1)


def _error(attitude: Array, target: Array) -> Array:
    """sign(q_w) q_xyz of q_now^-1 q_target, (n, 3)."""
    v, w = -attitude[:, :3], attitude[:, 3:]
    u, s = target[:, :3], target[:, 3:]
    vector = w * u + s * v + np.cross(v, u)
    scalar = w * s - (v * u).sum(axis=1, keepdims=True)
    return np.where(scalar < 0.0, -vector, vector)


def _z_of(attitude: Array) -> Array:
    x, y, z, w = attitude.T
    return np.stack([2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)], axis=1)
