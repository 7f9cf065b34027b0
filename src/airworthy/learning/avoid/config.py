"""What a user chooses about learning to avoid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.machine import SEED_MAX, TrainingOptions, TrainingRunOptions

__all__ = ["IDLE_RULES", "AvoidOptions", "AvoidRunOptions"]

IDLE_RULES = (
    IdleRule(
        ("condition", "identify_steps"),
        lambda asked: not asked.vehicles,
        "without --vehicles, of which something could be known",
        "name a fleet",
    ),
    IdleRule(
        ("identify_steps",),
        lambda asked: asked.condition != "identified",
        "for a policy that identifies nothing",
        "give --condition identified",
    ),
)
"""Options that change nothing beside the others."""


@dataclass(frozen=True)
class AvoidOptions(TrainingOptions):
    """What is learnt, for how long, and how. Weights were chosen on forests of other seeds than those it is judged in.

    Raises:
        AirworthyError: A number is out of range.
    """

    seed: Annotated[int, Bound(0, SEED_MAX)] = 0
    """Of weights, places, flights and noise."""
    iterations: Annotated[int, Bound(1, 10_000_000)] = 1500
    """Gradient steps, each after a window of all flights."""
    env_count: Annotated[int, Bound(4, 65536)] = 256
    """Flights at once."""
    window: Annotated[int, Bound(2, 1000)] = 40
    """Decisions that a gradient looks back; flights go on behind it."""
    windows_per_flight: Annotated[int, Bound(1, 1000)] = 4
    """After so many windows a flight begins anew, elsewhere."""
    hidden: Annotated[int, Bound(1, 512)] = 128
    """Width of the network's layers and of its memory."""
    learning_rate: Annotated[float, Bound(0.0, 1.0, above=True)] = 1.5e-3
    """Of AdamW, at its largest: it rises over 50 steps and falls by a cosine to a hundredth."""
    place_count: Annotated[int, Bound(1, 100_000)] = 128
    """Different places; each flight sees its own moved by a random way."""
    fastest: Annotated[float, Bound(2.0, 30.0, "m/s")] = 12.0
    """Top speeds are spread from 1.5 m/s to half a metre per second above it."""
    collision_weight: Annotated[float, Bound(0.0, 1000.0)] = 5.0
    """Of touching what must be kept off."""
    nearness_weight: Annotated[float, Bound(0.0, 1000.0)] = 1.0
    """Of being nearer than half a metre to it."""
    blind: bool = False
    """Learn with the image blanked: the baseline of what seeing is worth."""
    vehicles: Literal["", "virtual", "real", "all"] = ""
    """Fleet whose vehicles are flown, of the navigation benchmark's: a half, or all; "": none, accelerations are commanded. A
    policy of a fleet commands thrust as a share of the largest, and is judged on the other half."""
    condition: Literal["none", "told", "identified"] = "told"
    """What a policy of a fleet knows of its vehicle: nothing, its indicators, or what it makes of its last half second."""
    identify_steps: Annotated[int, Bound(1, 1_000_000)] = 150
    """Windows in which a policy that is told learns to identify vehicles, behind the gradient steps."""

    def __post_init__(self) -> None:
        check_fields(self, "AvoidOptions.")
        refuse_idle(self, IDLE_RULES)

    @property
    def steps(self) -> int:
        """Windows in all."""
        return self.iterations + (self.identify_steps if self.vehicles and self.condition == "identified" else 0)


@dataclass(frozen=True)
class AvoidRunOptions:
    """For how long it runs, and on how many processors."""

    threads: int = 1
    """Of the processor; more than one gain little, since the matrices are small."""
    checkpoint_minutes: float = 1.0
    """Between two checkpoints [min]."""
    minutes: float = 0.0
    """Stop after this long, with a checkpoint to go on from [min]; 0: when it is finished."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def training_run(self) -> TrainingRunOptions:
        """Return the same of any training."""
        return TrainingRunOptions("cpu", self.threads, self.checkpoint_minutes, self.minutes)
