"""What is known of a batch's impacts with the scene."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass
class ContactRecord:
    """Impacts of each environment since it was last reset by its user: how many, and the last one."""

    count: NDArray[np.int64]
    """(env,) In mode "respond" impacts at more than 0.1 m/s; a rest on a surface is none."""
    time: Array
    """Of the flight [s], (env,); NaN where there was none."""
    point: Array
    """On the surface, world [m], (env, 3)."""
    normal: Array
    """Of the surface, towards the vehicle, world, (env, 3)."""
    speed: Array
    """Approach at the contact [m/s], (env,)."""
    instance: NDArray[np.int32]
    """Instance number in the geometry, (env,); -1: none."""

    @classmethod
    def of(cls, env_count: int) -> ContactRecord:
        """Of flights that have met nothing."""
        made = cls(
            np.zeros(env_count, np.int64),
            np.zeros(env_count),
            np.zeros((env_count, 3)),
            np.zeros((env_count, 3)),
            np.zeros(env_count),
            np.zeros(env_count, np.int32),
        )
        made.clear(np.arange(env_count))
        return made

    def clear(self, ids: Ints) -> None:
        """Forget the impacts of some environments."""
        self.count[ids], self.instance[ids], self.speed[ids] = 0, -1, 0.0
        self.time[ids], self.point[ids], self.normal[ids] = np.nan, np.nan, np.nan

    def add(self, ids: Ints, packed: Array) -> None:
        """Note the impacts of some environments since they were last noted, as `packed` puts them, (k, 10)."""
        some = packed[:, 0] > 0.0
        ids, new = ids[some], packed[some]
        self.count[ids] += new[:, 0].astype(np.int64)
        self._put(ids, new)

    def packed(self) -> Array:
        """All of it as one array, (env, 10): for snapshots."""
        numbers = (
            self.count[:, None],
            self.time[:, None],
            self.point,
            self.normal,
            self.speed[:, None],
            self.instance[:, None],
        )
        return np.concatenate(numbers, axis=1).astype(np.float64)

    def unpack(self, packed: Array) -> None:
        """Take over what `packed` returned."""
        self.count[:] = packed[:, 0]
        self._put(slice(None), packed)

    def _put(self, ids: Ints | slice, packed: Array) -> None:
        self.time[ids], self.point[ids], self.normal[ids] = packed[:, 1], packed[:, 2:5], packed[:, 5:8]
        self.speed[ids], self.instance[ids] = packed[:, 8], packed[:, 9]
