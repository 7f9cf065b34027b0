"""How tasks that follow a path are learnt by the gradient of flights: options, and the cost whose slope is followed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from airworthy.core.schema import Bound, Length, check_fields
from airworthy.learning.environments import LearningTask
from airworthy.learning.machine import SEED_MAX, TrainingOptions
from airworthy.vehicles import Vehicle

__all__ = ["FollowCost", "PathGradientOptions"]

_WIDTH_MAX = 512
"""Of hidden layers: beyond it an evaluation's programs, not the training, would take the time (ours)."""


@dataclass(frozen=True)
class FollowCost:
    """Weights of the cost per decision. Ours: the published reward is not descended, because its term for changes of the action
    has a cusp where nothing changes, at which a gradient stays."""

    distance: Annotated[float, Bound(0.0, 1e3)] = 1.0
    """Of the distance from the path [1/m]."""
    velocity: Annotated[float, Bound(0.0, 1e3)] = 0.1
    """Of the speed relative to the path's point [s/m]."""
    rate: Annotated[float, Bound(0.0, 1e3)] = 0.02
    """Of the body rate [s/rad]."""
    upright: Annotated[float, Bound(0.0, 1e3)] = 0.05
    """Of 1 - cos(tilt)."""
    change: Annotated[float, Bound(0.0, 1e3)] = 0.05
    """Of the squared change of the action."""
    corner: Annotated[float, Bound(1e-4, 1.0)] = 0.05
    """Within it the distance is rounded off, so that its slope does not jump on the path [m]; other norms within 0.1."""

    def __post_init__(self) -> None:
        check_fields(self, "FollowCost.")


@dataclass(frozen=True)
class PathGradientOptions(TrainingOptions):
    """How to learn `track` or `motor_track`; chosen on starts of seed 7920, which are not the evaluation's."""

    task: str = "motor_track"
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
    flight_steps: Annotated[int, Bound(1, 1_000_000)] = 300
    """Decisions of a flight, after which another begins: more paths than whole flights of the task would show."""
    reach_m: Annotated[float, Bound(0.1, 1e3, "m")] = 2.0
    """A flight farther off its path is lost and starts anew: twice the task's, so that coming back is learnt, too."""
    seed: Annotated[int, Bound(0, SEED_MAX)] = 0
    """Of weights, starts and paths."""
    cost: FollowCost = field(default_factory=FollowCost)
    """What is to be small."""

    def __post_init__(self) -> None:
        check_fields(self, "PathGradientOptions.")

    @property
    def options(self) -> Mapping[str, Any]:
        """Of the task that is judged: the task as it is."""
        return {}

    def begin(self, vehicle: Vehicle | str | None, task: LearningTask | None = None) -> Any:
        """Return the training of a vehicle's policy.

        Args:
            vehicle: That is flown; None: the task's own.
            task: As it is judged; None: the task as it is.

        Raises:
            ModuleNotFoundError: torch is not installed; the extra 'learn' brings it.
        """
        from airworthy.learning.task_training.path_gradient import PathGradientTraining

        return PathGradientTraining(vehicle, self, task)
