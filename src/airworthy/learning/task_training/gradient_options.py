"""What trainings by the gradient of whole flights have in common: options, and the weights of the cost that is descended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from airworthy.core.schema import Bound, Length, check_fields
from airworthy.learning.machine import SEED_MAX, TrainingOptions

__all__ = ["FlightCost", "FlightGradientOptions"]

_WIDTH_MAX = 512
"""Of hidden layers: beyond it an evaluation's programs, not the training, would take the time (ours)."""


@dataclass(frozen=True)
class FlightCost:
    """Weights of the cost per decision, of terms whose slopes are bounded."""

    distance: Annotated[float, Bound(0.0, 1e3)] = 1.0
    """Of the distance from where the flight is to be [1/m]."""
    velocity: Annotated[float, Bound(0.0, 1e3)] = 0.1
    """Of the speed relative to it [s/m]."""
    rate: Annotated[float, Bound(0.0, 1e3)] = 0.02
    """Of the body rate [s/rad]."""
    upright: Annotated[float, Bound(0.0, 1e3)] = 0.05
    """Of 1 - cos(tilt)."""
    change: Annotated[float, Bound(0.0, 1e3)] = 0.05
    """Of the squared change of the action."""
    corner: Annotated[float, Bound(1e-4, 1.0)] = 0.05
    """Within it the distance is rounded off, so that its slope does not jump at the goal [m]; other norms within 0.1."""

    def __post_init__(self) -> None:
        check_fields(self, f"{type(self).__name__}.")


@dataclass(frozen=True)
class FlightGradientOptions(TrainingOptions):
    """How to learn by the gradient of whole flights."""

    task: str = ""
    """Name of the task."""
    hidden: Annotated[tuple[int, ...], Bound(1, _WIDTH_MAX), Length(1, 4)] = (64, 64)
    """Widths of the hidden layers."""
    env_count: Annotated[int, Bound(1, 65536)] = 64
    """Flights at once."""
    window: Annotated[int, Bound(2, 2000)] = 100
    """Decisions that a gradient looks ahead."""
    iterations: Annotated[int, Bound(1, 1_000_000)] = 500
    """Gradient steps."""
    learning_rate: Annotated[float, Bound(0.0, 1.0, above=True)] = 1e-2
    """Of Adam, falling by a cosine to `final_share` of it."""
    final_share: Annotated[float, Bound(0.0, 1.0)] = 0.03  # this and `clip`: specification, learning by reward, 6.3
    """Of the learning rate, at the end."""
    clip: Annotated[float, Bound(1e-6, 1e6)] = 0.5
    """Largest norm of the whole gradient; a longer one is shortened."""
    seed: Annotated[int, Bound(0, SEED_MAX)] = 0
    """Of weights, starts and paths."""

    def __post_init__(self) -> None:
        check_fields(self, f"{type(self).__name__}.")

    @property
    def options(self) -> Mapping[str, Any]:
        """Of the task that is judged: the task as it is."""
        return {}
