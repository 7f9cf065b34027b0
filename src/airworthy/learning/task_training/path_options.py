"""How tasks that follow a path are learnt by the gradient of flights: options, and the cost whose slope is followed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from airworthy.core.schema import Bound
from airworthy.learning.environments import LearningTask
from airworthy.learning.task_training.gradient_options import FlightCost, FlightGradientOptions
from airworthy.vehicles import Vehicle

__all__ = ["FollowCost", "PathGradientOptions"]


@dataclass(frozen=True)
class FollowCost(FlightCost):
    """Weights of the cost per decision. Ours: the published reward is not descended, because its term for changes of the action
    has a cusp where nothing changes, at which a gradient stays."""


@dataclass(frozen=True)
class PathGradientOptions(FlightGradientOptions):
    """How to learn `track` or `motor_track`; chosen on starts of seed 7920, which are not the evaluation's."""

    task: str = "motor_track"
    """Name of the task."""
    flight_steps: Annotated[int, Bound(1, 1_000_000)] = 300
    """Decisions of a flight, after which another begins: more paths than whole flights of the task would show."""
    reach_m: Annotated[float, Bound(0.1, 1e3, "m")] = 2.0
    """A flight farther off its path is lost and starts anew: twice the task's, so that coming back is learnt, too."""
    cost: FollowCost = field(default_factory=FollowCost)
    """What is to be small."""

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
