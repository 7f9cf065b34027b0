"""What a user chooses about a learned race pilot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from airworthy.core.errors import AirworthyError
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.machine import SEED_MAX, TrainingOptions
from airworthy.learning.seeds import refuse_judged_seed
from airworthy.race.learned.reward import RaceReward

__all__ = ["IDLE_RULES", "JUDGED_SEED", "RacePolicyOptions"]

JUDGED_SEED = 7919
"""Of the flights on which policies are judged (specification, learning by reward, section 8)."""

# Defaults are ours.


@dataclass(frozen=True)
class RacePolicyOptions(TrainingOptions):
    """How a race pilot learns.

    Raises:
        AirworthyError: A number is out of range.
    """

    seed: Annotated[int, Bound(0, SEED_MAX)] = 0
    """Of weights, courses, starts and disturbances."""
    stretch: Annotated[float, Bound(1.0, 3.0)] = 1.02
    """The expert's plan is flown so many times as slowly as the stored one; less leaves no thrust to move with the gates."""
    ease: Annotated[float, Bound(1.0, 3.0)] = 1.4
    """Legs on which gates may move by more than their time allows are flown so many times as slowly besides."""
    spare: Annotated[float, Bound(0.0, 5.0, "m")] = 1.2
    """Between the expert's crossings and the openings' edges, or in their middle where they are smaller than twice that."""
    hidden: Annotated[int, Bound(4, 256)] = 128
    """Width of both hidden layers."""
    rounds: Annotated[int, Bound(1, 10_000)] = 24
    """In each, flights are flown, the expert says what it would have done, and the policy learns of what was flown lately."""
    flights: Annotated[int, Bound(1, 10_000)] = 128
    """In a round, from places all along the course."""
    flight_s: Annotated[float, Bound(0.1, 60.0, "s")] = 2.0
    """Length of a flight."""
    tutored: Annotated[float, Bound(0.0, 1.0)] = 0.15
    """Over this share of the rounds the expert flies fewer and fewer of the flights itself; behind it the policy flies all."""
    keep_every: Annotated[int, Bound(1, 1000)] = 4
    """Of so many commands one is kept."""
    kept: Annotated[int, Bound(1, 10_000_000)] = 240_000
    """Commands of which it learns: the last ones."""
    steps: Annotated[int, Bound(1, 100_000)] = 1500
    """Gradient steps per round."""
    batch: Annotated[int, Bound(1, 100_000)] = 512
    """Commands of a step."""
    learning_rate: Annotated[float, Bound(0.0, 1.0, above=True)] = 2e-3
    """Of Adam, falling by a cosine to a hundredth."""
    gust: Annotated[float, Bound(0.0, 20.0, "m/s^2")] = 1.0
    """Standard deviation of accelerations by which flights are pushed about, so that it learns to come back; of angular ones,
    in rad/s^2, five times that."""
    doubt: Annotated[float, Bound(0.0, 1.0, "m")] = 0.03
    """Standard deviation of the error of its own place as it believes it; of velocity, in m/s, twice that."""

    trainer: Literal["imitation", "ppo"] = "imitation"
    """What learns: "imitation", of the expert alone, or "ppo", by reward from what imitation has learnt."""
    updates: Annotated[int, Bound(1, 100_000)] = 240
    """Of PPO: rollouts that are flown and learnt from."""
    env_count: Annotated[int, Bound(16, 65_536)] = 256
    """Of PPO: flights at once, a multiple of 16."""
    rollout: Annotated[int, Bound(8, 4096)] = 64
    """Of PPO: decisions of each flight in an update, a multiple of 8."""
    hold: Literal[1, 2, 4] = 4
    """Of PPO: commands that a decision is held for in training; policies fly with a decision for each."""
    warm_up: Annotated[int, Bound(0, 100_000)] = 10
    """Of PPO: updates over which only the critic learns."""
    from_start: Annotated[float, Bound(0.0, 1.0)] = 0.25
    """Of PPO: share of flights that begin at the start, the others somewhere on the course."""
    ppo_learning_rate: Annotated[float, Bound(0.0, 1.0, above=True)] = 1.5e-4
    """Of PPO: learning rate at first; it falls to nothing, linearly."""
    initial_std: Annotated[float, Bound(1e-3, 1.0)] = 0.12
    """Of PPO: standard deviation of outputs at first; it stays above half of that."""
    margin: Annotated[float, Bound(0.0, 5.0, "m", above=True)] = 0.3
    """Of PPO: distance between vehicle and edges of openings from which on a passage costs nothing."""
    margin_cost: Annotated[float, Bound(0.0, 100.0, "s")] = 0.3
    """Of PPO: cost of a passage that touches an edge; by the square of what is lacking."""
    crash_cost: Annotated[float, Bound(0.0, 1000.0, "s")] = 3.0
    """Of PPO: cost of a flight that is over before its course is."""
    smoothness_cost: Annotated[float, Bound(0.0, 100.0, "s")] = 0.001
    """Of PPO: cost of outputs that change by 1 from one decision to the next, by the square."""

    def __post_init__(self) -> None:
        check_fields(self)
        refuse_idle(self, IDLE_RULES)
        refuse_judged_seed([self.seed], JUDGED_SEED, "flights on which policies are judged")
        if self.trainer == "ppo":
            self._check_batch()

    def _check_batch(self) -> None:
        if self.env_count % 16 or self.rollout % 8:
            raise AirworthyError(
                f"{self.env_count} flights at once x {self.rollout} decisions cannot be shared out; expected a multiple of 16"
                " flights (env_count) and of 8 decisions (rollout)."
            )
        if self.warm_up >= self.updates:
            raise AirworthyError(
                f"warm_up is {self.warm_up} of {self.updates} updates, and the policy would learn in none: choose fewer, or"
                " more updates."
            )

    @property
    def reward(self) -> RaceReward:
        """Weights of the reward."""
        return RaceReward(self.margin, self.margin_cost, self.crash_cost, self.smoothness_cost)

    @property
    def iterations(self) -> int:
        """Rounds, and updates behind them, as trainings count."""
        return self.rounds + (self.updates if self.trainer == "ppo" else 0)


IDLE_RULES = (
    IdleRule(
        (
            "updates", "env_count", "rollout", "hold", "warm_up", "from_start", "ppo_learning_rate", "initial_std", "margin",
            "margin_cost", "crash_cost", "smoothness_cost",
        ),
        lambda asked: asked.trainer != "ppo",
        "for the trainer imitation, which learns of the expert alone",
        "learn with --trainer ppo",
    ),
    IdleRule(("margin",), lambda asked: asked.margin_cost == 0.0, "with --margin-cost 0", "raise that"),
)  # fmt: skip
"""What only learning by reward reads."""
