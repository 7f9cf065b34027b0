"""Gymnasium: a single environment."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from airworthy.core.arrays import ArrayAny
from airworthy.learning.adapters.common import single_spaces
from airworthy.learning.adapters.gymnasium_env import GymnasiumVector

__all__ = ["GymnasiumFlight"]


class GymnasiumFlight(gymnasium.Env):
    """One environment, one flight after another; for checks and for looking, since a batch costs hardly more.

    Args:
        task: As of `GymnasiumVector`.
        options: Further ones of `VectorTask`.
    """

    def __init__(self, task: Any = "motor_command", **options: Any):
        self.render_mode = None
        # A single environment waits for its reset: it must not begin the next flight by itself.
        self._vector = GymnasiumVector(task, 1, AutoresetMode.DISABLED, **options)
        self.observation_space, self.action_space = single_spaces(self._vector.task)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[ArrayAny, dict[str, Any]]:
        """Begin the next flight, or the first of a seed."""
        super().reset(seed=seed)
        chosen = {"reset_mask": np.ones(1, bool)} if seed is None and not self._vector._flights.untouched else None
        return self._vector.reset(seed=seed, options=chosen)[0][0], {}

    def step(self, action: ArrayAny) -> tuple[ArrayAny, float, bool, bool, dict[str, Any]]:
        """Take one step; returns observation, reward, terminated, truncated, info."""
        seen, reward, terminated, truncated, info = self._vector.step(np.asarray(action)[None])
        told = {name: values[0].item() for name, values in info.items() if not name.startswith("_")}
        return seen[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), told
