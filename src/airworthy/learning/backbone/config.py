"""What a user chooses about pre-training a backbone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from airworthy.core.errors import AirworthyError
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.machine import SEED_MAX, TrainingOptions

__all__ = ["HELD_OUT_SEED", "BackboneOptions"]

HELD_OUT_SEED = 7919
"""Of the drawn halls in which nothing is learnt (specification, learning by reward, section 8)."""


@dataclass(frozen=True)
class BackboneOptions(TrainingOptions):
    """What is learnt, for how long, and how; all defaults are ours.

    Raises:
        AirworthyError: A number is out of range.
    """

    seed: Annotated[int, Bound(0, SEED_MAX)] = 0
    """Of weights, places, poses and what is changed in images."""
    iterations: Annotated[int, Bound(1, 10_000_000)] = 1000
    """Gradient steps."""
    places: Annotated[int, Bound(2, 4096)] = 32
    """From which images are drawn at a time."""
    images: Annotated[int, Bound(4, 65536)] = 256
    """Of each place."""
    renew: Annotated[int, Bound(1, 10_000_000)] = 12
    """Gradient steps after which the oldest place makes room for another."""
    batch_places: Annotated[int, Bound(1, 4096)] = 3
    """Per step."""
    batch_images: Annotated[int, Bound(4, 65536)] = 32
    """Of each of them."""
    learning_rate: Annotated[float, Bound(0.0, 1.0, above=True)] = 2e-3
    """Of AdamW, at its largest: it falls by a cosine to a fiftieth."""

    def __post_init__(self) -> None:
        check_fields(self, "BackboneOptions.")
        if self.seed == HELD_OUT_SEED:
            raise AirworthyError(f"Seed {HELD_OUT_SEED} is that of the halls on which backbones are judged; take another.")
        for most, least in (("places", "batch_places"), ("images", "batch_images")):
            if getattr(self, least) > getattr(self, most):
                few, many = getattr(self, least), getattr(self, most)
                raise AirworthyError(f"{least} is {few:,}, but there are {many:,} {most} at a time: ask for fewer, or more.")
        if self.batch_images % 2:
            raise AirworthyError(f"batch_images is {self.batch_images}; expected an even number, whose halves are compared.")
