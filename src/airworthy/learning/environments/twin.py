"""The readable twin of the kernel of a policy step, on float64 NumPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayIndex
from airworthy.core.random import flight_key, normals, uniforms
from airworthy.learning.environments.kernel import START_DRAWS, STREAM
from airworthy.learning.environments.vector_task import VectorTask

__all__ = ["TwinStep", "VectorTwin"]


@dataclass(frozen=True)
class TwinStep:
    """As `StepResult`."""

    observation: Array
    reward: Array
    terminated: ArrayBool
    truncated: ArrayBool
    final_observation: Array
    terms: dict[str, Array]


class VectorTwin:
    """The flights of a `VectorTask` at this instant, stepped by NumPy.

    Args:
        environments: Whose state, vehicles, keys and task are taken.
    """

    def __init__(self, environments: VectorTask):
        self._shape, self._parameters = environments._shape, environments._parameters
        host, count = environments._host, environments.env_count
        self.task, self.seed, self.ids = environments.task, environments.seed, environments._ids
        self.nominal = host["nominal"][:, :count].astype(float)
        self.parameters = host["parameters"][:, :count].astype(float)
        self.state = host["state"][: self._shape.state, :count].astype(float)
        self.past = host["state"][self._shape.state :, :count].astype(float)
        self.episode, self.age = host["keys"][3, :count].astype(np.int64), host["keys"][4, :count].astype(np.int64)

    def step(self, actions: Array) -> TwinStep:
        """Take one policy step; see `VectorTask.step`."""
        fine = np.isfinite(actions).all(axis=1)
        a = np.clip(np.where(np.isfinite(actions), actions, 0.0), -1.0, 1.0).T
        p = self._parameters.of(self.parameters)
        with np.errstate(all="ignore"):
            stepped, terms, terminated, _ = self._shape.step(tuple(self.state), tuple(a), tuple(self.past), p)
        after, values = _rows(stepped), _rows(tuple(terms.values()))
        sound = fine & np.isfinite(after).all(axis=0) & np.isfinite(values).all(axis=0)
        self.age += 1
        ended = ~sound | (np.asarray(terminated) > 0.5)
        cut = ~ended & (self.age >= self.task.episode_steps)
        # What is seen last has to be finite (specification, section 4): the last sound state stays.
        self.state = np.where(sound, after, self.state)
        self.past = a
        final = self.observe()
        values = np.where(sound, values, 0.0)
        self.begin(np.flatnonzero(ended | cut))
        return TwinStep(self.observe(), values.sum(axis=0), ended, cut, final, dict(zip(terms, values, strict=True)))

    def begin(self, flights: ArrayIndex) -> None:
        """Begin the next flight of some environments."""
        if not flights.size:
            return
        self.episode[flights] += 1
        self.age[flights] = 0
        key = flight_key(self.seed, self.ids[flights], self.episode[flights])
        u = tuple(uniforms(key, 0, STREAM, START_DRAWS).T)
        self.parameters[:, flights] = _rows(self._parameters.drawn(u[16:], tuple(self.nominal[:, flights])))
        p = self._parameters.of(self.parameters[:, flights])
        self.state[:, flights] = _rows(self.task.start(u[:16], p))
        first = self._parameters.place[self._parameters.extra["hover_action"].start]
        self.past[:, flights] = self.parameters[first : first + len(self.past), flights]

    def observe(self) -> Array:
        """Present observations, (env, k)."""
        key = flight_key(self.seed, self.ids, self.episode)
        drawn = np.zeros((16, len(self.age)))
        if self.task.noise:
            drawn = normals(key, self.age, STREAM, 48).T[32:]  # after the 32 words of a start
        return _rows(self.task.observe(tuple(self.state), tuple(drawn), self._parameters.of(self.parameters))).T


def _rows(values: tuple[Array, ...]) -> Array:
    return np.array(np.broadcast_arrays(*values), float)
