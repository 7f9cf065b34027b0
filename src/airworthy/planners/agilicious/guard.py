"""The guard of Agilicious: a second controller that takes over for good where the first lets a vehicle stray."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.control.levels import ControlConfig
from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.schema import check_fields
from airworthy.pilots.pilot import Observation
from airworthy.planners.agilicious.dfbc import GUARD_GAINS, dfbc_control, quaternion_of_axes
from airworthy.planners.agilicious.pipeline import Pipeline, columns, reference
from airworthy.planners.common.interface import Mission, Motion, Setpoints
from airworthy.planners.common.tracking_backends import BackendInput
from airworthy.simulation.simulator import Simulator

__all__ = ["RATE_GAINS", "GuardLimits", "Guarded", "RateCommand"]

# -----------------------------------------------------------------------------------------------------------------------------
# Controllers that end in thrust and body rates, which a low-level loop follows: the open stand-in of section 10.3.
#
# Source: specification of the planners, section 10.3 (rpg_quadrotor_control, `position_controller.cpp` and its defaults).

# Source: spec/planners 10.3, [R] rpg_quadrotor_control, parameters/default.yaml: gains [1/s^2], [1/s], clamps [m], [m/s].
POSITION_GAIN, VELOCITY_GAIN = np.array([10.0, 10.0, 15.0]), np.array([4.0, 4.0, 6.0])
POSITION_MAX, VELOCITY_MAX = np.array([0.6, 0.6, 0.3]), np.array([1.0, 1.0, 0.75])
# Same file; attitude gains [1/s], which the law doubles since it multiplies half angles.
TURN_GAIN = np.array([12.0, 12.0, 5.0])
GRAVITY = 9.81
# Ours: a tenth of gravity; near free fall the direction of thrust says nothing of the wanted rates.
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
        """Return the configuration rates are followed by the vehicle's own gains."""
        return ControlConfig()

    def configure(self, simulator: Simulator) -> None:
        """Take the masses; nothing else matters."""
        self._mass = np.array([v.mass for v in simulator.vehicles])
        self._rate = simulator.config.control_rate
        self._before: Array | None = None

    def command(self, given: BackendInput) -> Array:
        """Return thrust [N] and body rates [rad/s], (n, 4)."""
        wanted, motion = given.wanted, given.motion
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
        # A new plan makes the acceleration jump: its difference is no jerk, and would command a kick (ours, as JERK_MAX).
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


# -----------------------------------------------------------------------------------------------------------------------------

# Source: spec/planners section 9, [R] tudelft/AvoidBench, agilib/params/low_level_controllers: P on rates of the simple one.
RATE_GAINS = np.array([20.0, 20.0, 41.0])
"""The low-level controller's: angular acceleration per rate error [1/s]."""


@dataclass(frozen=True)
class GuardLimits:
    """When the guard takes over."""

    distance: float = 2.0
    """From the set-point [m]."""
    tilt: float = 1.75
    """Of body z from the vertical [rad]."""
    speed: float = 15.0
    """[m/s]"""
    margin: float = 0.0
    """The mission's box is made smaller by this [m]."""

    def __post_init__(self) -> None:
        check_fields(self, "GuardLimits.")


class Guarded:
    """A pipeline with a guard over it.

    Args:
        main: The first controller.
        limits: When the guard takes over.
    """

    level = Pipeline.level

    def __init__(self, main: Pipeline, limits: GuardLimits | None = None):
        self.main, self.limits = main, limits or GuardLimits()
        self.name, self.rate, self.observes = f"{main.name}_guarded", main.rate, main.observes
        self._box: tuple[Array, Array] | None = None

    @property
    def ahead(self) -> tuple[float, ...]:
        """As the first controller's."""
        return self.main.ahead

    def begin(self, mission: Mission) -> None:
        """Take the box of a mission."""
        self._box = mission.lower + self.limits.margin, mission.upper - self.limits.margin

    def control(self) -> ControlConfig:
        """Return the configuration as the first controller's."""
        return self.main.control()

    def configure(self, simulator: Simulator) -> None:
        """Meet the vehicles."""
        self.main.configure(simulator)
        self.taken = np.zeros(simulator.env_count, bool)
        """Where the guard flies, (n,)."""
        self._hold = np.zeros((simulator.env_count, 3))
        self._yaw = np.zeros(simulator.env_count)

    def command(self, given: BackendInput) -> Array:
        """Return rotor thrusts [N], (n, rotors)."""
        wanted, motion = given.wanted, given.motion
        thrusts = self.main.command(given)
        new = ~self.taken & (self._strayed(wanted, motion) | ~np.isfinite(thrusts).all(axis=1))
        self._hold[new] = self._inside(motion.position)[new]
        self._yaw[new] = wanted.yaw[new]
        self.taken |= new
        if not self.taken.any():
            return thrusts
        return np.where(self.taken[:, None], self._guarding(motion, given.observation), thrusts)

    def _strayed(self, wanted: Setpoints, motion: Motion) -> ArrayBool:
        limits = self.limits
        x, y = motion.attitude[:, 0], motion.attitude[:, 1]
        away = np.linalg.norm(motion.position - wanted.position, axis=1) > limits.distance
        tipped = 1.0 - 2.0 * (x * x + y * y) < np.cos(limits.tilt)
        fast = np.linalg.norm(motion.velocity, axis=1) > limits.speed
        return np.asarray(away | tipped | fast | (self._inside(motion.position) != motion.position).any(axis=1))

    def _inside(self, position: Array) -> Array:
        return position.copy() if self._box is None else np.clip(position, *self._box)

    def _guarding(self, motion: Motion, observation: Observation) -> Array:
        """Hold where it was taken over: body rates by flatness, and the low-level controller of rates."""
        zero, rate = np.zeros_like(motion.position), np.asarray(observation["rate"], float)
        target: Any = reference(Setpoints(self._hold, zero, zero, self._yaw, np.zeros(len(rate))), zero)
        p, v, q, w = map(columns, (motion.position, motion.velocity, motion.attitude, rate))
        out = dfbc_control(p, v, q, w, target, GUARD_GAINS, columns(zero), np.zeros(len(rate)))
        turn = RATE_GAINS * (np.stack(out.turn, axis=1) - rate)
        bodies = self.main.bodies
        moment = [bodies.inertia[:, i] * turn[:, i] for i in range(3)]
        return bodies.allocated(bodies.mass * out.thrust, moment)
