"""What a user chooses about a policy for all quadrotors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from airworthy.core.keyword_messages import raises_without_class
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.foundation.evaluation import FoundationProtocol
from airworthy.learning.foundation.training import FOUNDATION
from airworthy.learning.gradient.trainer import GradientOptions
from airworthy.learning.machine import SEED_MAX

__all__ = ["FoundationConfig"]


@dataclass(frozen=True)
class FoundationConfig:
    """How it learns, and on how many flights it is judged.

    Raises:
        AirworthyError: One sentence, if something cannot be learnt so.
    """

    seed: Annotated[int, Bound(0, SEED_MAX)] = 0
    """Of weights, starts and drawn vehicles."""
    hidden: int = FOUNDATION.hidden
    """Width of both hidden layers: 16, 32 or 64."""
    history: int = FOUNDATION.history
    """Past actions that the policy sees: by them it tells how its vehicle answers."""
    iterations: int = FOUNDATION.iterations
    """Gradient steps."""
    env_count: int = FOUNDATION.env_count
    """Flights at once, a multiple of 16."""
    window: int = FOUNDATION.window
    """Decisions that a gradient looks ahead."""
    learning_rate: float = FOUNDATION.learning_rate
    """At the beginning."""
    flights: Annotated[int, Bound(1, 1_000_000)] = 128
    """Of each quadrotor of the catalogue that hold a place, on which it is judged."""
    tour_flights: Annotated[int, Bound(0, 1_000_000)] = 16
    """Of each of them on a tour of five places, which takes nine tenths of the judging's time; 0: without it."""

    def __post_init__(self) -> None:
        check_fields(self)
        # Its fields are those of the trainer's options, and this is what was made.
        with raises_without_class():
            self.options(self.seed)

    def options(self, seed: int) -> GradientOptions:
        """Return the trainer's options for a seed."""
        names = ("hidden", "history", "iterations", "env_count", "window", "learning_rate")
        return replace(FOUNDATION, seed=seed, **{name: getattr(self, name) for name in names})

    @property
    def protocol(self) -> FoundationProtocol:
        """How it is judged."""
        return FoundationProtocol(flights=self.flights, tour_flights=self.tour_flights)
