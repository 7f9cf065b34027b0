"""Which roll-outs there are: course, start time, drone and offset of each, drawn from its number alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.control.mpc import mpc_preset
from airworthy.core.errors import AirworthyError
from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.learning.synthesis.config import ROLLOUTS_MAX, SynthesisConfig
from airworthy.pilots.expert import full_thrust_of
from airworthy.pilots.expert_reference import ExpertReference, expert_reference
from airworthy.pilots.svnet.objective import objective_of
from airworthy.trajectories import Trajectory, course, kinematic_state
from airworthy.vehicles import Vehicle, vehicle

__all__ = ["RolloutPlan", "Starts", "objective_of"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
_START, _DRONE = 0, 1
"""Steps of the stream from which a roll-out draws."""


@dataclass(frozen=True, eq=False)
class Starts:
    """Of n roll-outs."""

    number: Ints
    """(n,)"""
    course: Ints
    """(n,) index of the configuration's courses."""
    time: Array
    """(n,) on the course [s]."""
    state: Array
    """(n, 10) position, velocity, quaternion; z up."""
    mass: Array
    """(n,) [kg]"""
    force: Array
    """(n,) of one rotor at full command [N]."""


class RolloutPlan:
    """Everything that is the same for all roll-outs of a configuration.

    Roll-outs are numbered course by course; within one, number i n_rep + j is repetition j of start point i.

    Raises:
        AirworthyError: A course or the vehicle is unknown, or there are too many roll-outs.
    """

    def __init__(self, config: SynthesisConfig):
        self.config = config
        self.vehicle: Vehicle = vehicle(config.vehicle)
        courses = [course(name) for name in config.courses]
        self.paths: list[Trajectory] = [item.trajectory() for item in courses]
        self.reference: ExpertReference = expert_reference(courses, mpc_preset(config.mpc), self.vehicle.gravity)
        points = [max(1, round(path.duration * config.per_second)) for path in self.paths]
        if (total := sum(points) * config.repetitions) > ROLLOUTS_MAX:
            raise AirworthyError(
                f"There would be {total:,} roll-outs; expected up to {ROLLOUTS_MAX:,}: lower per_second or repetitions."
            )
        self.counts = np.array([count * config.repetitions for count in points], np.int64)
        """(courses,) roll-outs of each."""
        self.first = np.concatenate([[0], np.cumsum(self.counts)])
        """(courses + 1,) number of the first of each."""
        self.objectives = np.stack([objective_of(path, self.vehicle.gravity) for path in self.paths])
        """(courses, 18), z up; see `objective_of`."""

    @property
    def count(self) -> int:
        """Roll-outs of all courses."""
        return int(self.first[-1])

    def starts(self, numbers: ArrayLike) -> Starts:
        """Draw roll-outs by their numbers (n,)."""
        number = np.asarray(numbers, np.int64)
        which = np.searchsorted(self.first, number, side="right") - 1
        key = flight_key(self.config.seed, number)
        drawn = uniforms(key, _START, Stream.SYNTHESIS, 12)
        time = self._times(number, which, drawn[:, 0])
        wanted = np.stack([self._state(int(w), float(t)) for w, t in zip(which, time, strict=True)])
        state = wanted + self.config.half_width * (2.0 * drawn[:, 1:11] - 1.0)
        state[:, 6:] /= np.linalg.norm(state[:, 6:], axis=1, keepdims=True)
        state[:, 6:] *= np.where((state[:, 6:] * wanted[:, 6:]).sum(1, keepdims=True) < 0.0, -1.0, 1.0)
        share = 2.0 * uniforms(key, _DRONE, Stream.SYNTHESIS, 2) - 1.0
        mass = self.vehicle.mass * (1.0 + self.config.mass * share[:, 0])
        force = full_thrust_of(self.vehicle) / self.vehicle.rotor_count * (1.0 + self.config.thrust * share[:, 1])
        return Starts(number, which, time, state, mass, force)

    def _times(self, number: Ints, which: Ints, drawn: Array) -> Array:
        point = (number - self.first[which]) // self.config.repetitions
        end = np.array([path.duration for path in self.paths])[which]
        return np.clip(point / self.config.per_second + self.config.jitter * (2.0 * drawn - 1.0), 0.0, end)

    def _state(self, path: int, time: float) -> Array:
        sample = self.paths[path].sample(np.array([time]))
        attitude = kinematic_state(sample, self.vehicle.gravity).attitude[0]
        # A flight comes here with a sign that it has kept from the start, as the reference does; one sample has none.
        row = min(self.reference.first[path] + round(time * self.reference.rate), self.reference.last[path])
        sign = -1.0 if attitude @ self.reference.table.states[row, 6:] < 0.0 else 1.0
        return np.concatenate([sample.position[0], sample.velocity[0], sign * attitude])
