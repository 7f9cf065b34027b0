"""The guard of Agilicious: a second controller that takes over for good where the first lets a vehicle stray."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.control.config import ControlConfig
from airworthy.pilots.agilicious.dfbc import GUARD_GAINS, dfbc_control
from airworthy.pilots.agilicious.pipeline import Pipeline, columns, reference
from airworthy.pilots.pilot import Observation
from airworthy.pilots.planning.interface import Mission, Motion, Setpoints
from airworthy.simulation.simulator import Simulator

__all__ = ["RATE_GAINS", "GuardLimits", "Guarded"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
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
        """As the first controller's."""
        return self.main.control()

    def configure(self, simulator: Simulator) -> None:
        """Meet the vehicles."""
        self.main.configure(simulator)
        self.taken = np.zeros(simulator.env_count, bool)
        """Where the guard flies, (n,)."""
        self._hold = np.zeros((simulator.env_count, 3))
        self._yaw = np.zeros(simulator.env_count)

    def command(
        self,
        wanted: Setpoints,
        motion: Motion,
        errors: tuple[Array, Array],
        observation: Observation,
        ahead: Sequence[Setpoints] = (),
    ) -> Array:
        """Rotor thrusts [N], (n, rotors)."""
        thrusts = self.main.command(wanted, motion, errors, observation, ahead)
        new = ~self.taken & (self._strayed(wanted, motion) | ~np.isfinite(thrusts).all(axis=1))
        self._hold[new] = self._inside(motion.position)[new]
        self._yaw[new] = wanted.yaw[new]
        self.taken |= new
        if not self.taken.any():
            return thrusts
        return np.where(self.taken[:, None], self._guarding(motion, observation), thrusts)

    def _strayed(self, wanted: Setpoints, motion: Motion) -> Bools:
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
