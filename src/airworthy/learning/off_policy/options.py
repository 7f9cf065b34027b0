"""How learners with a replay learn: SAC and TD3 with the settings of Learning to Fly in Seconds and RLtools' zoo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from airworthy.core.errors import AirworthyError
from airworthy.core.schema import SHARE, Bound, check_fields
from airworthy.learning.machine import SEED_MAX, TrainingOptions
from airworthy.learning.native_ppo.options import WIDTH_MAX

__all__ = ["OffPolicyOptions", "SacOptions", "Td3Options"]

_BATCH_MAX = 256
"""Of samples in an update: beyond it an update's rows leave the second cache (ours)."""
_PAIR = 32
"""Samples of two vectors, which an update works on side by side."""


@dataclass(frozen=True)
class OffPolicyOptions(TrainingOptions):
    """What both learners have; defaults are those of RLtools' zoo for SAC (specification, learning by reward, 3.3)."""

    kind: ClassVar[Literal["sac", "td3"]] = "sac"
    hidden: tuple[int, int] = (32, 32)
    """Widths of the two hidden layers, of actor and critics each."""
    batch: Annotated[int, Bound(_PAIR, _BATCH_MAX)] = 64
    """Samples of an update, a multiple of 32."""
    critic_every: Annotated[int, Bound(1, 1_000_000)] = 5
    """Steps between updates of the critics."""
    actor_every: Annotated[int, Bound(1, 1_000_000)] = 10
    """Steps between updates of the actor."""
    critic_warmup: Annotated[int, Bound(0, 10**9)] = 1000
    """Steps before the critics' first update."""
    actor_warmup: Annotated[int, Bound(0, 10**9)] = 1000
    """Steps before the actor's first update."""
    learning_rate: Annotated[float, Bound(0.0, 1.0, above=True)] = 1e-3
    """Of Adam, for all, at the beginning."""
    final_share: Annotated[float, SHARE] = 1.0
    """Of the learning rate, to which it falls evenly until the end; 1: it stays, as published."""
    gamma: Annotated[float, Bound(0.0, 1.0)] = 0.99
    """Discount of a step."""
    follow: Annotated[float, SHARE] = 0.005
    """Share of the way by which targets follow with each update (Fujimoto et al. 2018; Haarnoja et al. 2018)."""
    weight_decay: Annotated[float, Bound(0.0, 1.0)] = 1e-4
    """Share of a weight, times the learning rate, that each update takes away (Loshchilov and Hutter 2019)."""
    gradient_norm: Annotated[float, Bound(1e-6, 1e6)] = 1.0
    """A longer gradient is shortened, of each network by itself."""
    reward_scale: Annotated[float, Bound(1e-6, 1e6)] = 1.0
    """Factor on rewards."""
    symmetric: bool = False
    """Critics see what the policy sees, also where the task has something else for them (exact states, pushes)."""
    seed: Annotated[int, Bound(0, SEED_MAX)] = 0
    """Of weights, starts, noise, and what is drawn from the replay."""

    def __post_init__(self) -> None:
        check_fields(self, f"{type(self).__name__}.")
        if len(self.hidden) != 2 or not all(1 <= width <= WIDTH_MAX for width in self.hidden):
            raise AirworthyError(f"Hidden layers are {list(self.hidden)} wide; expected two of 1 to {WIDTH_MAX}.")
        if self.batch % _PAIR:
            raise AirworthyError(f"Updates learn from {self.batch} samples; expected a multiple of {_PAIR}.")
        if self.critic_warmup < self.batch:
            # Fewer would be drawn again and again; of none nothing can be drawn.
            raise AirworthyError(
                f"critic_warmup is {self.critic_warmup}; expected at least the {self.batch} samples that an update draws."
            )
        if self.actor_warmup < self.critic_warmup:
            raise AirworthyError(
                f"actor_warmup is {self.actor_warmup}, less than critic_warmup ({self.critic_warmup}): the actor would learn"
                " from critics that know nothing."
            )


@dataclass(frozen=True)
class SacOptions(OffPolicyOptions):
    """Soft actor-critic with a temperature that learns (Haarnoja et al. 2018, "Algorithms and applications")."""

    target_entropy: Annotated[float, Bound(-1e3, 1e3)] = -4.0
    """To which the temperature draws the policy's entropy."""
    initial_temperature: Annotated[float, Bound(1e-6, 1e3)] = 0.5
    """Weight of the entropy at the beginning."""
    average: Annotated[float, SHARE] = 0.001
    """Share of the way by which the policy that is judged follows the actor, which swings, at an update; 1: it is the actor."""
    initial_std: Annotated[float, Bound(1e-3, 7.0)] = 1.0
    """Of actions before tanh, at the beginning."""


@dataclass(frozen=True)
class Td3Options(OffPolicyOptions):
    """Twin delayed deterministic policy gradients (Fujimoto et al. 2018); defaults are L2F's (specification, 3.3)."""

    kind = "td3"
    hidden: tuple[int, int] = (64, 64)
    batch: Annotated[int, Bound(_PAIR, _BATCH_MAX)] = 256
    critic_every: Annotated[int, Bound(1, 1_000_000)] = 10
    actor_every: Annotated[int, Bound(1, 1_000_000)] = 20
    critic_warmup: Annotated[int, Bound(0, 10**9)] = 15_000
    actor_warmup: Annotated[int, Bound(0, 10**9)] = 30_000
    target_noise: Annotated[float, Bound(0.0, 10.0)] = 0.2
    """Standard deviation of the noise on the targets' actions."""
    target_clip: Annotated[float, Bound(0.0, 10.0)] = 0.5
    """At which that noise is clipped."""
    exploration_noise: Annotated[float, Bound(0.0, 10.0)] = 0.1
    """Standard deviation of the noise on actions that are flown."""
