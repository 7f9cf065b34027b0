"""How PPO learns, and what an update of it came to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any

from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import CPU_LANES
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.machine import TrainingOptions

__all__ = ["WIDTH_MAX", "PpoOptions", "PpoUpdate"]

WIDTH_MAX = 128
"""Of hidden layers: beyond it rows of a slice leave the second cache, and other libraries are faster (specification, 5)."""


_LEAST_LEFT = 0.01
"""Of a rate that falls (ours)."""
_OURS: Mapping[str, Any] = MappingProxyType(
    # Chosen on starts that are not the evaluation's. Minibatches of 4,096 samples, and values of a few units.
    {"clip": 0.2, "entropy_weight": 0.003, "minibatches": 32, "target_divergence": 0.008, "reward_scale": 0.05}
)


@dataclass(frozen=True)
class PpoOptions(TrainingOptions):
    """How to learn. Defaults are the published ones of Aerial Gym's motor-command task (specification aerial_gym, 9.3).

    `least_std` and `reward_scale` are ours. With the published clip of 0.05 the adaptive rate soon reaches its bound and
    learns slowly; 0.2 learns faster.
    """

    hidden: tuple[int, ...] = (32, 24)
    """Widths of the two hidden layers, of policy and critic each."""
    rollout: Annotated[int, Bound(1, 4096)] = 32
    """Policy steps between updates."""
    minibatches: Annotated[int, Bound(1, 1024)] = 2
    """Parts of a rollout that are learnt one after the other."""
    epochs: Annotated[int, Bound(1, 100)] = 5
    """Passes over a rollout."""
    learning_rate: Annotated[float, Bound(0.0, 1.0, above=True)] = 3e-4
    """At the beginning."""
    target_divergence: Annotated[float, Bound(0.0, 10.0)] = 0.016
    """Of old and new policy per pass: above twice of it the learning rate falls, below half of it it rises; 0: it stays."""
    decay_steps: Annotated[int, Bound(0, 10**12)] = 0
    """Decisions over which the learning rate, adaptive or not, falls to nothing; 0: it does not fall by itself."""
    gamma: Annotated[float, Bound(0.0, 1.0)] = 0.99
    """Discount of a step."""
    lam: Annotated[float, Bound(0.0, 1.0)] = 0.95
    """Of generalised advantages."""
    clip: Annotated[float, Bound(1e-3, 1.0)] = 0.05
    """By how much a ratio of probabilities counts away from 1."""
    value_weight: Annotated[float, Bound(0.0, 100.0)] = 2.0
    """Of half the squared error of the value."""
    entropy_weight: Annotated[float, Bound(0.0, 1.0)] = 0.01
    """Of the policy's entropy."""
    gradient_norm: Annotated[float, Bound(1e-6, 1e6)] = 1.0
    """A longer gradient is shortened."""
    initial_std: Annotated[float, Bound(1e-3, 10.0)] = 0.4
    """Of actions."""
    least_std: Annotated[float, Bound(1e-4, 10.0)] = 0.05
    """Of actions, below which exploration would be lost."""
    last_std: Annotated[float, Bound(0.0, 10.0)] = 0.0
    """To which deviations fall, whatever they have learnt to be, from the middle of `decay_steps` to four fifths of it; 0: they
    do not. What is learnt with noise is right with noise: rotors that fall faster than they rise lose thrust by it."""
    noise_memory: Annotated[float, Bound(0.0, 0.999)] = 0.0
    """Share of its noise that an action leaves to the next: vehicles that answer slowly hardly follow noise that changes with
    every decision. Deviations are those of what is added in one decision."""
    reward_scale: Annotated[float, Bound(1e-6, 1e6)] = 0.1
    """Factor on rewards, so that values are near 1 in size."""
    normalize_observation: bool = False
    """By running mean and variance of all observations so far; the policy that is written has them in its first layer."""
    normalize_value: bool = False
    """The critic learns targets less their running mean, over their deviation."""
    symmetric: bool = False
    """The critic sees what the policy sees, also of tasks that have more for it (`observe_critic`). Where a policy rests, noise
    of observations hides from such a critic what a place is worth, and the more is learnt, the worse it gets."""
    seed: int = 0
    """Of weights, starts, vehicles, and noise."""

    def __post_init__(self) -> None:
        check_fields(self, "PpoOptions.")
        if len(self.hidden) != 2 or not all(1 <= width <= WIDTH_MAX for width in self.hidden):
            raise AirworthyError(f"PpoOptions.hidden is {list(self.hidden)}; expected two widths of 1 to {WIDTH_MAX}.")
        self.check_last_std()

    def check_batch(self, env_count: int) -> None:
        """Refuse a number of environments whose samples do not divide into minibatches of whole pairs of blocks.

        Args:
            env_count: Of the environments that are learnt in.
        """
        samples = env_count * self.rollout
        # Two blocks of samples at a time.
        if env_count % CPU_LANES or samples % (2 * CPU_LANES * self.minibatches):
            raise AirworthyError(
                f"{env_count} environments x {self.rollout} steps in {self.minibatches} minibatches cannot be learnt from;"
                f" expected a multiple of {CPU_LANES} environments, and minibatches of a multiple of {2 * CPU_LANES} samples."
            )

    def check_last_std(self) -> None:
        """Refuse a deviation to fall to that is none, or to which there is no way."""
        if self.last_std > min(self.least_std, self.initial_std):
            raise AirworthyError(
                f"last_std is {self.last_std:g}, above least_std ({self.least_std:g}) or initial_std ({self.initial_std:g}):"
                " deviations fall to it."
            )
        if self.last_std and not self.decay_steps:
            raise AirworthyError(f"last_std {self.last_std:g} changes nothing without decay_steps, over which it falls.")

    def rate_left(self, env_steps: int) -> float:
        """Return the share of the learning rate that is left after so many decisions: it falls linearly."""
        # The last update still moves a little: a rate of nothing would waste its rollout.
        return max(_LEAST_LEFT, 1.0 - env_steps / self.decay_steps) if self.decay_steps else 1.0

    def bounds_of_std(self, env_steps: int) -> tuple[float, float]:
        """Return the least and largest deviation of actions after so many decisions."""
        if not self.last_std:
            return self.least_std, math.inf
        # Half of the training explores; a fifth makes what is learnt right for flights nearly without noise (ours).
        done = min(1.0, max(0.0, (env_steps / self.decay_steps - 0.5) / 0.3))
        low, high = (start * (self.last_std / start) ** done for start in (self.least_std, self.initial_std))
        return low, high if done else math.inf

    @classmethod
    def settings(cls) -> PpoOptions:
        """Return our settings: they learn the motor-command task in the published steps (docs/howto/learn_hover.md)."""
        return cls(**_OURS)


@dataclass(frozen=True)
class PpoUpdate:
    """What one update came to."""

    env_steps: int
    reward: float
    """Mean per step, as the task gives it."""
    divergence: float
    value_error: float
    """Root of the mean squared error of the critic, in scaled rewards, over the last pass."""
    explained: float
    """Share of the variance of the targets that the critic knew before the update."""
    std: float
    """Mean of the actions' standard deviations."""
    learning_rate: float
    gradient_norm: float
    ended: int
    """Flights that ended."""
    terminated: int
    """Of these, those that were not only cut off."""
    episode_return: float
    """Mean of ended flights; NaN where none did."""
    terms: dict[str, float] = field(default_factory=dict)
    """Mean per step of the named parts of the reward."""
    entropy: float = math.nan
    """Of the policy's actions, mean; of those that are not squashed, before they are clipped."""
    success: float = math.nan
    """Share of ended flights whose last state was what the task asks for; NaN where none ended."""
    passes: int = 0
    """Over the rollout."""
    skipped: int = 0
    """Minibatches that gave numbers that are none, and changed nothing."""
