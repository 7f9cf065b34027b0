"""Gymnasium: vector environments in all three ways of going on after an end.

Importing this registers each task as `airworthy/NAME-v0`, for `gymnasium.make_vec` and `gymnasium.make`; without an import:
`gymnasium.make_vec("airworthy.learning.adapters.gymnasium_env:airworthy/hover-v0", num_envs=1024)`.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from airworthy.core.arrays import ArrayAny, ArrayBool
from airworthy.core.errors import AirworthyError
from airworthy.learning.adapters.common import FirstFlights, made_environments, single_spaces
from airworthy.learning.environments import EpisodeEnds, learning_tasks

__all__ = ["GymnasiumVector", "register_gymnasium"]


class GymnasiumVector(VectorEnv):
    """Vector environment; flights have the same bits in each mode.

    SAME_STEP: where a flight ends, the observation is the next one's, and `info["final_obs"]` (env, k) with the mask
    `info["_final_obs"]` holds what was seen last. NEXT_STEP: the step after an end ignores that action and brings reward 0 and
    the next flight's first observation; learners leave it out. DISABLED: ended flights wait for
    `reset(options={"reset_mask": mask})`.

    Args:
        task: Name of a learning task, a task, or environments that stand ready.
        num_envs: How many.
        autoreset_mode: Of `gymnasium.vector.AutoresetMode`, or its name or value.
        copy: Whether each step returns arrays of its own; else views, which the step after the next writes over.
        options: Further ones of `VectorTask`.

    Raises:
        AirworthyError: As `VectorTask`, or no such mode.
    """

    def __init__(
        self,
        task: Any = "motor_command",
        num_envs: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        copy: bool = True,
        **options: Any,
    ):
        modes = {text: mode for mode in AutoresetMode for text in (mode, mode.name, mode.value)}
        if autoreset_mode not in modes:
            known = ", ".join(m.name for m in AutoresetMode)
            raise AirworthyError(f"Unknown autoreset_mode {autoreset_mode!r}; there are {known}.")
        self.task = made_environments(task, num_envs, options)
        self.num_envs, self.mode, self.copy = self.task.env_count, modes[autoreset_mode], copy
        self.metadata = {"autoreset_mode": self.mode, "render_modes": []}
        self.single_observation_space, self.single_action_space = single_spaces(self.task)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._flights, self._over = FirstFlights(self.task), np.zeros(self.num_envs, bool)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[ArrayAny, dict[str, Any]]:
        """Begin flights: all, or where `options["reset_mask"]` says."""
        super().reset(seed=seed)
        mask = (options or {}).get("reset_mask")
        if mask is None:
            seen, self._over = self._flights.reset(seed), np.zeros(self.num_envs, bool)
        elif seed is not None or np.shape(mask) != self._over.shape or np.asarray(mask).dtype != bool:
            raise AirworthyError(f"reset_mask is to be bool of shape ({self.num_envs},), and goes without a seed.")
        else:
            early = np.asarray(mask) & ~self._over  # the next flight of what ended stands ready since then
            seen = self.task.reset(mask=early) if early.any() else self.task.observation
            self._over = self._over & ~np.asarray(mask)
        return (seen.copy() if self.copy else seen), {}

    def step(self, actions: ArrayAny) -> tuple[ArrayAny, ArrayAny, ArrayBool, ArrayBool, dict[str, Any]]:
        """Take one step everywhere; returns observations, rewards, terminated, truncated, info."""
        if self.mode is AutoresetMode.DISABLED and self._over.any():
            raise AirworthyError(
                f"{int(self._over.sum())} flights are over; begin them by reset(options={{'reset_mask': mask}}) before a step."
            )
        result = self.task.step(actions, held=self._over)
        self._flights.untouched = False
        # Views of the kernel's memory; the next step writes over rewards, the one after over observations.
        seen, reward, final = result.observation, result.reward, result.final_observation
        if self.copy:
            seen, reward, final = seen.copy(), reward.copy(), final.copy()
        over, info = result.ends.ended, dict[str, Any]()
        if self.mode is AutoresetMode.SAME_STEP:
            if over.any():
                info = {"final_obs": final, "_final_obs": over, "final_info": _outcome(result.ends), "_final_info": over}
        else:
            self._over = over
            if over.any():
                # Both modes show the last observation first; the next flight stands ready behind it.
                seen = np.where(over[:, None], final, seen)
                info = _outcome(result.ends)
        return seen, reward, result.terminated, result.truncated, info


def _outcome(ends: EpisodeEnds) -> dict[str, ArrayAny]:
    """Of flights that ended, with Gymnasium's masks of who they are; RecordEpisodeStatistics has the name `episode`."""
    values: dict[str, ArrayAny] = {"return": ends.returns.copy(), "length": ends.length.copy()}
    values |= {"success": ends.success, "diverged": ends.diverged}
    return values | {f"_{name}": ends.ended for name in values}


def register_gymnasium() -> None:
    """Make every learning task known to Gymnasium as `airworthy/NAME-v0`; once more after registering one's own."""
    home = "airworthy.learning.adapters"
    for name in learning_tasks():
        if f"airworthy/{name}-v0" not in gymnasium.registry:
            points = {
                "entry_point": f"{home}.gymnasium_flight:GymnasiumFlight",
                "vector_entry_point": f"{home}.gymnasium_env:GymnasiumVector",
            }
            gymnasium.register(f"airworthy/{name}-v0", **points, kwargs={"task": name})


register_gymnasium()
