"""skrl: a `Wrapper` of its own, since that for Gymnasium copies."""

from __future__ import annotations

from typing import Any

import torch
from skrl.envs.wrappers.torch import Wrapper

from airworthy.learning.adapters.common import FirstFlights, episode_means, single_spaces, term_means
from airworthy.learning.environments import VectorTask

__all__ = ["SkrlEnv"]


class SkrlEnv(Wrapper):
    """Environments as skrl wants them.

    On a CPU tensors are views: of observations until the step after the next, of rewards until the next. `info` has `episode`
    (means for `environment_info`) and `final_observation`. skrl's `time_limit_bootstrap=False` lets advantages run over a
    time-out into the next flight; `True` goes on from the value of the next flight's start.

    Args:
        task: Environments.
        device: Where tensors are wanted; other than "cpu" they are copied.
    """

    def __init__(self, task: VectorTask, device: str = "cpu"):
        super().__init__(task)
        self.task, self._device = task, torch.device(device)
        self._flights, self._begun = FirstFlights(task), False
        self._spaces = single_spaces(task)

    @property
    def num_envs(self) -> int:
        """Environments."""
        return self.task.env_count

    @property
    def observation_space(self) -> Any:
        """Of one environment."""
        return self._spaces[0]

    @property
    def action_space(self) -> Any:
        """Of one environment."""
        return self._spaces[1]

    @property
    def state_space(self) -> None:
        """None: the critic sees what the policy sees."""
        return

    def reset(self) -> tuple[torch.Tensor, dict[str, Any]]:
        """Begin flights at the first call; later ones return what is seen, since flights begin by themselves."""
        # Flights begin by themselves: a trainer that asks again must not cut them off.
        seen = self.task.observation if self._begun else self._flights.reset()
        self._begun = True
        return torch.from_numpy(seen).to(self._device), {}

    def step(self, actions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Take one step; returns observations, and reward, terminated, truncated of shape (env, 1), and info."""
        result = self.task.step(actions.detach().cpu().numpy())
        seen, *rest = (
            torch.from_numpy(a).to(self._device)
            for a in (result.observation, result.reward, result.terminated, result.truncated, result.final_observation)
        )
        # Under names that its trackers show in a group each.
        means = {**term_means(result, self.task.terms), **episode_means(result.ends)}
        info = {"episode": {name: torch.tensor(value) for name, value in means.items()}, "final_observation": rest[3]}
        return seen, rest[0].view(-1, 1), rest[1].view(-1, 1), rest[2].view(-1, 1), info

    def state(self) -> None:
        """Return none: see `state_space`."""
        return

    def render(self, *args: Any, **kwargs: Any) -> None:
        """Draw nothing is drawn; flights are looked at by `airworthy view`."""
        return

    def close(self) -> None:
        """Close nothing: nothing is open."""
