"""Samples that wait for their arrival: a ring per sensor, with one column per environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError

Ints = NDArray[np.int64]
NEVER = -1
_SAVED = ("step", "number", "arrival", "position", "attitude")


@dataclass(frozen=True, eq=False)
class Sample:
    """The newest sample of one sensor that has arrived, per environment."""

    time: NDArray[np.float64]
    """Instant of the sample since the start of its flight [s], (env,); NaN where none has arrived."""
    step: Ints
    """The same as a physics step, exact; -1 where none has arrived."""
    number: Ints
    """Samples of the flight before this one, (env,); -1 where none has arrived."""
    valid: NDArray[np.bool_]
    """Whether one has arrived since the flight began, (env,)."""
    position: NDArray[np.float64]
    """Mount at that instant, world [m], (env, 3)."""
    attitude: NDArray[np.float64]
    """Mount to world, (env, 4); of a camera, x is where it looks."""
    data: dict[str, NDArray[Any]]
    """Arrays (env, ...) by channel; rows of environments that are not valid hold nothing of use."""

    def __getitem__(self, channel: str) -> NDArray[Any]:
        if channel not in self.data:
            raise AirworthyError(f"A sample has no channel {channel!r}; it has {', '.join(self.data)}.")
        return self.data[channel]


class SampleRing:
    """The last `depth` samples of every environment.

    Args:
        env_count: Environments.
        depth: Samples that may wait at once, plus the one that has arrived.
    """

    def __init__(self, env_count: int, depth: int):
        self.depth = depth
        self.step = np.full((depth, env_count), NEVER, np.int64)
        self.arrival = np.full((depth, env_count), NEVER, np.int64)
        self.number = np.full((depth, env_count), NEVER, np.int64)
        self.position = np.zeros((depth, env_count, 3))
        self.attitude = np.tile([0.0, 0.0, 0.0, 1.0], (depth, env_count, 1))
        self.data: dict[str, NDArray[Any]] = {}

    def put(
        self,
        envs: NDArray[np.intp],
        number: Ints,
        step: Ints,
        arrival: Ints,
        pose: tuple[NDArray[Any], NDArray[Any]],
        data: dict[str, NDArray[Any]],
    ) -> None:
        """Keep a sample of some environments (k,), which can be read from step `arrival` on."""
        slot = number % self.depth
        self.arrival[slot, envs] = arrival
        self.step[slot, envs], self.number[slot, envs] = step, number
        self.position[slot, envs], self.attitude[slot, envs] = pose
        for name, array in data.items():
            if name not in self.data:
                blank = np.nan if array.dtype.kind == "f" else 0
                self.data[name] = np.full((self.depth, self.step.shape[1], *array.shape[1:]), blank, array.dtype)
            self.data[name][slot, envs] = array

    def forget(self, envs: NDArray[np.intp]) -> None:
        """A flight must not see what was sampled before it began."""
        self.step[:, envs] = NEVER
        self.number[:, envs] = NEVER

    def newest(self, now: Ints, physics_rate: float) -> Sample:
        """What has arrived by a step of each flight, (env,)."""
        arrived = (self.step != NEVER) & (self.arrival <= now)
        slot = np.where(arrived, self.number, NEVER).argmax(axis=0)
        env = np.arange(len(now))
        valid = arrived[slot, env]
        step = np.where(valid, self.step[slot, env], NEVER)
        data = {name: array[0] if self.depth == 1 else array[slot, env] for name, array in self.data.items()}
        return Sample(
            np.where(valid, step / physics_rate, np.nan),
            step,
            np.where(valid, self.number[slot, env], NEVER),
            valid,
            self.position[slot, env],
            self.attitude[slot, env],
            data,
        )

    def save(self) -> dict[str, NDArray[Any]]:
        """Copies of everything, by name."""
        fixed = {name: getattr(self, name) for name in _SAVED}
        return {name: array.copy() for name, array in {**fixed, **{f"data/{k}": v for k, v in self.data.items()}}.items()}

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
        """Continue from `save`.

        Raises:
            AirworthyError: If it is of another shape.
        """
        if saved["step"].shape != self.step.shape:
            raise AirworthyError(
                f"Saved samples of shape {saved['step'].shape} do not fit {self.step.shape}; mount the same sensors."
            )
        for name in _SAVED:
            setattr(self, name, saved[name].copy())
        self.data = {name.removeprefix("data/"): array.copy() for name, array in saved.items() if name.startswith("data/")}
