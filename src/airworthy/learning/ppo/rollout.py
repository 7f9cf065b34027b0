"""Flights between two updates: what is seen, done and expected, step by step, as tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32
from airworthy.learning.environments import StepResult

__all__ = ["Cut", "Flown", "PpoEnvironments"]


class PpoEnvironments(Protocol):
    """What is learnt in: a `VectorTask`, or whatever has these members of it."""

    env_count: int
    observation_count: int
    action_count: int
    terms: tuple[str, ...]

    @property
    def observation(self) -> ArrayF32:
        """(env, observed)."""

    @property
    def critic_observation(self) -> ArrayF32:
        """What critics see, (env, k): the same memory as `observation` where they see no more."""

    @property
    def final_critic_observation(self) -> ArrayF32:
        """What they would have seen where flights ended with the last step, alike."""

    @property
    def hover_action(self) -> ArrayF32:
        """Where policies begin, (actions,)."""

    @property
    def flight_ids(self) -> ArrayAny:
        """(env,)."""

    def step(self, actions: Any) -> StepResult:
        """Take a step everywhere."""

    def saved(self) -> dict[str, ArrayAny]:
        """Return everything that the next step depends on."""

    def restore(self, saved: Any) -> None:
        """Go on from what `saved` gave."""


@dataclass(frozen=True)
class Cut:
    """Flights that were only cut off in a step."""

    step: int
    where: ArrayAny
    """Environments."""
    seen: Tensor
    """What their critics see last, (flights, seen)."""


@dataclass
class Flown:
    """A rollout under way; first axes are steps and environments.

    Args:
        sizes: Steps, environments, numbers of an observation, of what the critic sees (0: the same), of an action.
        device: Where tensors lie.
    """

    sizes: tuple[int, int, int, int, int]
    device: torch.device
    cuts: list[Cut] = field(default_factory=list)
    terminated: int = 0
    succeeded: int = 0
    returns: list[ArrayF32] = field(default_factory=list)

    def __post_init__(self) -> None:
        steps, count, observed, critic, actions = self.sizes

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, device=self.device)

        self.seen = zeros(steps + 1, count, observed)
        """As observed; the last is what the next rollout begins with."""
        self.critic_seen = zeros(steps + 1, count, critic) if critic else self.seen
        self.taken = zeros(steps, count, actions)
        self.noise = zeros(steps, count, actions)
        self.log_probability = zeros(steps, count)
        self.ended: Tensor = torch.zeros(steps, count, dtype=torch.bool, device=self.device)
        self.rewards: Array = np.zeros((steps, count))
        self._rewarded = torch.ones(steps, count, dtype=torch.bool, device=self.device)

    def begin(self) -> None:
        """Forget what was flown before."""
        self.cuts, self.returns = [], []
        self.terminated = self.succeeded = 0

    def note(self, step: int, result: StepResult, critic_last: ArrayF32) -> None:
        """Write down what came of a step.

        Args:
            step: Of the rollout.
            result: Of the environments.
            critic_last: What critics of ended flights saw last, (env, seen).
        """
        ended: ArrayBool = result.ends.ended
        # A reward that is none must not reach the advantages of earlier steps; its sample counts nothing, see `sound`.
        fine = np.isfinite(result.reward)
        self.rewards[step], self._rewarded[step] = np.where(fine, result.reward, 0.0), torch.from_numpy(fine)
        self.ended[step] = torch.from_numpy(ended)
        if not ended.any():
            return
        self.terminated += int(result.terminated.sum())
        self.succeeded += int(np.sum(result.ends.success & ended))
        self.returns.append(result.ends.returns[ended].copy())
        where = np.flatnonzero(result.truncated)
        if where.size:
            # A copy: the next step writes over it.
            self.cuts.append(Cut(step, where, torch.from_numpy(critic_last[where]).to(self.device)))

    def sound(self) -> Tensor:
        """Return 1 for samples of numbers, else 0, (steps, env); what is none is set to 0, so that no sum turns into it."""
        fine = self._rewarded.clone()
        for rows in {id(x): x for x in (self.seen, self.critic_seen, self.taken)}.values():
            # One sum instead of a test of each number: it is none where one of them is.
            sums = rows.sum(-1)
            if not torch.isfinite(sums).all():
                fine &= torch.isfinite(sums[: len(fine)])
                torch.nan_to_num_(rows, 0.0, 0.0, 0.0)
        torch.nan_to_num_(self.log_probability, 0.0, 0.0, 0.0)
        return fine.float()
