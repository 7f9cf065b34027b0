"""What a camera remembers from image to image, per environment: its exposure, and where it was."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["PAST_FRAMES", "CameraState"]

Floats = NDArray[np.float64]
PAST_FRAMES = 2
"""A shutter that is open all frame, and rows read out all frame long, reach back this far."""
_IDENTITY = np.array([0.0, 0.0, 0.0, 1.0])


class CameraState:
    """Rows by environment, which grow as environments appear."""

    def __init__(self) -> None:
        self.stops = np.zeros(0)
        """Exposure [EV], (env,); NaN: a flight begins."""
        self.frames = np.zeros(0, np.int64)
        """Poses known, (env,)."""
        self.position = np.zeros((0, PAST_FRAMES, 3))
        """Of the last frames, oldest first, world [m], (env, frames, 3)."""
        self.attitude = np.zeros((0, PAST_FRAMES, 4))
        """(env, frames, 4)"""

    def grow(self, envs: NDArray[np.intp]) -> None:
        """Have rows for environments."""
        more = int(envs.max(initial=-1)) + 1 - len(self.stops)
        if more > 0:
            self.stops = np.concatenate([self.stops, np.full(more, np.nan)])
            self.frames = np.concatenate([self.frames, np.zeros(more, np.int64)])
            self.position = np.concatenate([self.position, np.zeros((more, PAST_FRAMES, 3))])
            self.attitude = np.concatenate([self.attitude, np.tile(_IDENTITY, (more, PAST_FRAMES, 1))])

    def reset(self, env_ids: ArrayLike | None = None) -> None:
        """New flights begin in environments; None: in all."""
        envs = np.arange(len(self.stops)) if env_ids is None else np.atleast_1d(np.asarray(env_ids, np.intp))
        self.grow(envs)
        self.stops[envs] = np.nan
        self.frames[envs] = 0

    def poses(self, envs: NDArray[np.intp], position: Floats, attitude: Floats) -> tuple[Floats, Floats]:
        """Poses of the last frames and this one, oldest first, (k, PAST_FRAMES + 1, 3 and 4); the oldest known holds before."""
        self.grow(envs)
        places = np.concatenate([self.position[envs], np.asarray(position, np.float64)[:, None]], axis=1)
        turns = np.concatenate([self.attitude[envs], np.asarray(attitude, np.float64)[:, None]], axis=1)
        first = PAST_FRAMES - self.frames[envs]
        source = np.maximum(np.arange(PAST_FRAMES + 1)[None], first[:, None])
        row = np.arange(len(envs))[:, None]
        return places[row, source], turns[row, source]

    def remember(self, envs: NDArray[np.intp], position: Floats, attitude: Floats) -> None:
        """This frame's poses, (k, 3) and (k, 4)."""
        self.grow(envs)
        for array, value in ((self.position, position), (self.attitude, attitude)):
            array[envs, :-1] = array[envs, 1:]
            array[envs, -1] = value
        self.frames[envs] = np.minimum(self.frames[envs] + 1, PAST_FRAMES)

    def save(self) -> dict[str, NDArray[Any]]:
        """Copies of everything, by name."""
        return {name: array.copy() for name, array in vars(self).items()}

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
        """Continue from `save`."""
        for name in vars(self):
            setattr(self, name, np.asarray(saved[name]).copy())
