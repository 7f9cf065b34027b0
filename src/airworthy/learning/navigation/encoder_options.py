"""What a user chooses about learning a Deep Collision Encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from airworthy.core.schema import Bound, check_fields
from airworthy.learning.machine import SEED_MAX, TrainingOptions

__all__ = ["EncoderOptions"]


@dataclass(frozen=True)
class EncoderOptions(TrainingOptions):
    """What is learnt, for how long, and how.

    Raises:
        AirworthyError: A number is out of range.
    """

    seed: Annotated[int, Bound(0, SEED_MAX)] = 0
    """Of weights, rooms, poses and noise."""
    iterations: Annotated[int, Bound(1, 10_000_000)] = 3000
    """Gradient steps; every image is seen once."""
    batch: Annotated[int, Bound(2, 65536)] = 128
    """Images per step."""
    channels: Annotated[int, Bound(1, 64)] = 16
    """Of the first layer; published are 32."""
    latent: Annotated[int, Bound(1, 512)] = 64
    """Numbers of the latent, as published."""
    radius: Annotated[float, Bound(0.0, 5.0, "m")] = 0.25
    """By which obstacles are grown [m]: half the edge of the vehicle's box; published are 0.2."""
    beta: Annotated[float, Bound(0.0, 1e6)] = 3.0
    """Of the divergence from a standard normal latent, over pixels per latent number of the published image."""
    learning_rate: Annotated[float, Bound(0.0, 1.0, above=True)] = 1e-3
    """Of Adam, at its largest: it falls by a cosine to a fiftieth."""

    def __post_init__(self) -> None:
        check_fields(self, "EncoderOptions.")
