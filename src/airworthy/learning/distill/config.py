"""What a user chooses about a student of several teachers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from airworthy.core.schema import Bound, check_fields
from airworthy.learning.machine import SEED_MAX, TrainingOptions

__all__ = ["DistillOptions"]

# Defaults are ours, the first that were tried.


@dataclass(frozen=True)
class DistillOptions(TrainingOptions):
    """How a student learns.

    Raises:
        AirworthyError: A number is out of range.
    """

    seed: Annotated[int, Bound(0, SEED_MAX)] = 0
    """Of weights, starts, and who flies."""
    hidden: Annotated[int, Bound(4, 256)] = 32
    """Width of both hidden layers; with 8 past actions, 32 are 2,820 numbers."""
    history: Annotated[int, Bound(0, 8)] = 8
    """Past actions that the student sees: by them it tells how its vehicle answers."""
    band: Annotated[float, Bound(0.01, 1.0)] = 1.0
    """The student commands rotors off hover's speed by up to this share of it, or as far as a vehicle's weakest reserve."""
    rounds: Annotated[int, Bound(1, 10_000)] = 60
    """In each every vehicle flies, teachers say what they would have done, and the student learns of what was flown lately."""
    flights: Annotated[int, Bound(1, 10_000)] = 24
    """Of each vehicle in a round."""
    flight_s: Annotated[float, Bound(0.1, 60.0, "s")] = 3.0
    """Length of a flight."""
    tutored: Annotated[float, Bound(0.0, 1.0)] = 0.3
    """Over this share of the rounds teachers fly fewer and fewer of the flights themselves; behind it the student flies all."""
    samples: Annotated[int, Bound(1, 100_000)] = 1500
    """Of each vehicle that are kept of a round."""
    kept_rounds: Annotated[int, Bound(1, 1000)] = 12
    """Of which the student learns: the last ones."""
    steps: Annotated[int, Bound(1, 100_000)] = 800
    """Gradient steps per round."""
    batch: Annotated[int, Bound(1, 100_000)] = 128
    """Samples of a step; products of more rows are split over threads, which wait by spinning."""
    learning_rate: Annotated[float, Bound(0.0, 1.0, above=True)] = 5e-3
    """Of Adam, falling by a cosine to a hundredth."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def iterations(self) -> int:
        """Rounds, as trainings count."""
        return self.rounds
