"""Stable-Baselines3: a `VecEnv`, without a Python object per environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from airworthy.core.arrays import ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.learning.adapters.common import FirstFlights, single_spaces
from airworthy.learning.environments import VectorTask

__all__ = ["StableBaselinesEnv"]


class StableBaselinesEnv(VecEnv):
    """Environments as Stable-Baselines3 wants them; arrays are copies, since it keeps observations for longer than a step.

    Infos of unfinished flights are one shared empty dictionary: a list of 4,096 new ones costs more than the physics. Those of
    flights that ended have `terminal_observation`, `TimeLimit.truncated`, `episode` (r, l, t: return, length, 0), `is_success`
    and `diverged`.

    Args:
        task: Environments.
    """

    def __init__(self, task: VectorTask):
        self.task, self._flights = task, FirstFlights(task)
        self._actions: ArrayAny = np.zeros((task.env_count, task.action_count), np.float32)
        self._nothing: dict[str, Any] = {}
        super().__init__(task.env_count, *single_spaces(task))

    def reset(self) -> ArrayAny:
        """Begin flights; after `seed(n)` those of that seed."""
        seen = self._flights.reset(self._seeds[0])
        self._reset_seeds()
        self._reset_options()
        return seen.copy()

    def step_async(self, actions: ArrayAny) -> None:
        """Keep the actions of the next step."""
        self._actions = actions

    def step_wait(self) -> tuple[ArrayAny, ArrayAny, ArrayAny, list[dict[str, Any]]]:
        """Take the step; returns observations, rewards, dones, infos."""
        result = self.task.step(self._actions)
        self._flights.untouched = False
        ends = result.ends
        infos = [self._nothing] * self.num_envs
        # Few flights end in a step; the Python loop is over those alone.
        for k in np.flatnonzero(ends.ended).tolist():
            infos[k] = {
                "terminal_observation": result.final_observation[k].copy(),
                # Asked by the library's bootstrap: V of `terminal_observation` follows where it is true.
                "TimeLimit.truncated": bool(result.truncated[k]),
                "episode": {"r": float(ends.returns[k]), "l": int(ends.length[k]), "t": 0.0},
                "is_success": bool(ends.success[k]),
                "diverged": bool(ends.diverged[k]),
            }
        # Its roll-out buffer stores what it was given a step later.
        return result.observation.copy(), result.reward.copy(), ends.ended, infos

    def close(self) -> None:
        """Close nothing: nothing is open."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return the attribute of the environments, once for each of `indices`; all share one."""
        # Asked for by VecEnv while it is built, which warns of environments without it.
        value = None if attr_name == "render_mode" else getattr(self.task, attr_name)
        return [value] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: environments are rows of one batch.

        Args:
            attr_name: What.
            value: Its value.
            indices: Where.
        """
        raise AirworthyError(f"{attr_name!r} cannot be set: environments are rows of one batch; make a VectorTask with it.")

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Refuse: environments are rows of one batch.

        Args:
            method_name: Of what.
            method_args: Its arguments.
            indices: Where.
            method_kwargs: Further arguments.
        """
        raise AirworthyError(
            f"{method_name!r} cannot be called: environments are rows of one batch without methods of their own."
        )

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return whether a wrapper is around each of `indices`: none has any."""
        return [False] * len(list(self._get_indices(indices)))
