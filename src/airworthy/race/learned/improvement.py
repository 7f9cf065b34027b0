"""The second stage of a race pilot: PPO from what imitation learnt, on rewards for time and for keeping off edges.

The learner is `TorchPpo`, as of every task; here it is given a policy to begin from. Its critic knows nothing then, and a
policy that follows such a critic forgets: over the first updates only the critic learns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from airworthy.core.arrays import ArrayF32
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.learning.native_ppo.options import PpoUpdate
from airworthy.learning.ppo import TorchPpo, TorchPpoOptions
from airworthy.race.learned.batch import FlightNoise
from airworthy.race.learned.config import RacePolicyOptions
from airworthy.race.learned.environments import CourseEnvironments
from airworthy.race.learned.surrogate import CourseFlights

__all__ = ["RaceImprovement", "ppo_options"]

# Ours. A second of flight is worth a second: gamma looks 1.7 s ahead at 60 decisions a second, as long as the longest leg.
_EPOCHS, _MINIBATCHES, _GAMMA, _LAMBDA = 4, 8, 0.99, 0.95


def ppo_options(options: RacePolicyOptions) -> TorchPpoOptions:
    """Return how PPO learns.

    Raises:
        AirworthyError: Numbers that PPO refuses.
    """
    o = options
    samples = o.env_count * o.rollout
    return TorchPpoOptions(
        hidden=(o.hidden, o.hidden),
        rollout=o.rollout,
        minibatches=_MINIBATCHES,
        epochs=_EPOCHS,
        learning_rate=o.ppo_learning_rate,
        # A rate that follows the divergence never falls: policies wander, and hit gates again by update 500 (measured).
        target_divergence=0.0,
        decay_steps=samples * o.updates,
        gamma=_GAMMA,
        lam=_LAMBDA,
        clip=0.2,
        value_weight=1.0,
        entropy_weight=0.0,
        initial_std=o.initial_std,
        least_std=0.5 * o.initial_std,
        reward_scale=1.0,
        normalize_value=True,
        seed=o.seed,
    )


class RaceImprovement:
    """PPO under way.

    Args:
        course: What is flown.
        options: How.
        imitated: Weight and bias of each layer of the policy that it begins from.
    """

    def __init__(self, course: CourseFlights, options: RacePolicyOptions, imitated: Sequence[ArrayF32]) -> None:
        o, self.options = options, options
        self._imitated = [w.copy() for w in imitated]
        self.environments = CourseEnvironments(
            course, o.reward, FlightNoise(o.gust, o.doubt), o.env_count, o.hold, o.from_start, o.seed
        )
        self._ppo = TorchPpo(self.environments, ppo_options(o), threads=1)
        self._put_back()

    @property
    def weights(self) -> list[ArrayF32]:
        """Weight and bias of each layer of the policy."""
        return self._ppo.policy_weights

    @property
    def env_steps(self) -> int:
        """Decisions so far."""
        return self._ppo.env_steps

    def update(self) -> PpoUpdate:
        """Fly a rollout and learn from it."""
        self.environments.draw_by(self._ppo.updates)
        told = self._ppo.update()
        if self._ppo.updates <= self.options.warm_up:
            self._put_back()
        return told

    def _put_back(self) -> None:
        """Set the policy to what imitation learnt, and its deviations to where they begin."""
        policy = self._ppo.model.ordered_parameters()[: len(self._imitated)]
        with torch.no_grad():
            for mine, theirs in zip(policy, self._imitated, strict=True):
                mine.copy_(torch.from_numpy(theirs))
            self._ppo.model.log_std.fill_(float(np.log(self.options.initial_std)))

    def save(self) -> Checkpoint:
        """Return everything that the next update depends on beside the policy that it began from."""
        return self._ppo.save()

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits."""
        self._ppo.restore(checkpoint)
