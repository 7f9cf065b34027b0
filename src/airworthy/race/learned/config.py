"""What a user chooses about a learned race pilot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from airworthy.core.schema import Bound, check_fields
from airworthy.learning.machine import SEED_MAX, TrainingOptions

__all__ = ["RacePolicyOptions"]

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

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def iterations(self) -> int:
        """Rounds, as trainings count."""
        return self.rounds
