"""rsl-rl: a `VecEnv` of tensors over the environments' own memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from airworthy.learning.adapters.common import episode_means, term_means
from airworthy.learning.environments import VectorTask

__all__ = ["RslRlEnv"]


class RslRlEnv(VecEnv):
    """Environments as rsl-rl wants them: observations in the group `policy`, which actor and critic may both read; what only
    critics see (`observe_critic` of a task; else the observation) in the group `critic`.

    On a CPU tensors are views: of observations until the step after the next, of rewards until the next. `extras` has
    `time_outs`, `log` (means of the reward's parts, and of flights that ended), `final_observation` and `diverged`. rsl-rl goes
    on from V(s_t) at a time-out, where V of the final observation is meant.

    Args:
        task: Environments.
        device: Where tensors are wanted; other than "cpu" they are copied.
    """

    def __init__(self, task: VectorTask, device: str = "cpu"):
        self.task, self.device = task, torch.device(device)
        self.num_envs, self.num_actions = task.env_count, task.action_count
        self.max_episode_length = task.task.episode_steps
        self.cfg = {"task": task.task.name, "vehicle": task.vehicle.name, "seed": task.seed}

    @property
    def episode_length_buf(self) -> torch.Tensor:
        """Policy steps since each flight began, (env,) int32: the environments' own count; writing to it staggers them."""
        # torch does little with uint32; of ages, far below 2^31, both have the same bits.
        return torch.from_numpy(self.task.age.view("int32"))

    @episode_length_buf.setter
    def episode_length_buf(self, values: torch.Tensor) -> None:
        # rsl-rl begins with random ages, so that flights do not all end at once; environments have to honour that.
        self.episode_length_buf.copy_(values)

    def get_observations(self) -> TensorDict:
        """Return present observations."""
        return self._group(self.task.observation)

    def reset(self) -> tuple[TensorDict, dict[str, Any]]:
        """Begin the next flights; the first ones stand ready without it."""
        return self._group(self.task.reset()), {}

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Take one step; returns observations, rewards (env,), dones (env,) and extras."""
        result = self.task.step(actions.detach().cpu().numpy())
        # rsl-rl has one `dones` for both ends, and tells them apart by `time_outs`.
        ended = torch.from_numpy(result.ends.ended).to(self.device)
        extras = {
            "time_outs": torch.from_numpy(result.truncated).to(self.device),
            "log": term_means(result, self.task.terms) | episode_means(result.ends),
            "final_observation": torch.from_numpy(result.final_observation).to(self.device),
            "diverged": torch.from_numpy(result.ends.diverged).to(self.device),
        }
        return self._group(result.observation), torch.from_numpy(result.reward).to(self.device), ended, extras

    def _group(self, seen: Any) -> TensorDict:
        known = self.task.critic_observation
        # rsl-rl stores what was seen after the step that follows, which writes over what only critics see: a copy of that.
        groups = {"policy": seen, "critic": known if np.shares_memory(known, seen) else known.copy()}
        tensors = {name: torch.from_numpy(rows).to(self.device) for name, rows in groups.items()}
        return TensorDict(tensors, batch_size=[self.num_envs])
