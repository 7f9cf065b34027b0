"""How tasks of vehicles with joints are learnt by the gradient of flights: options, and the cost whose slope is followed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from airworthy.core.errors import AirworthyError
from airworthy.core.schema import Bound
from airworthy.learning.environments import LearningTask
from airworthy.learning.task_training.gradient_options import FlightCost, FlightGradientOptions
from airworthy.vehicles import Vehicle

__all__ = ["JOINTED_BY_GRADIENT", "JointedCost", "JointedGradientOptions", "jointed_gradient_options"]


@dataclass(frozen=True)
class JointedCost(FlightCost):
    """Weights of the cost per decision. Ours: published rewards of hover are nearly flat a metre away from the target."""

    rate: Annotated[float, Bound(0.0, 1e3)] = 0.05
    """Of the body rate [s/rad]."""
    upright: Annotated[float, Bound(0.0, 1e3)] = 0.2
    """Of 1 - cos(tilt)."""
    joint_rate: Annotated[float, Bound(0.0, 1e3)] = 0.02
    """Of the length of the vector of joint rates [s/rad]."""


@dataclass(frozen=True)
class JointedGradientOptions(FlightGradientOptions):
    """How to learn `morphy_hover`, `chain_hover` or `gap`; chosen on starts of seed 7920, which are not the evaluation's."""

    task: str = "morphy_hover"
    """Name of the task."""
    keep: Annotated[float, Bound(0.0, 1.0)] = 0.98
    """Share of the slope by the state that each decision hands back: shapes that fall over would make it explode."""
    flight_steps: Annotated[int, Bound(1, 1_000_000)] = 500
    """Decisions of a flight, after which another begins."""
    first_steps: Annotated[int, Bound(1, 1_000_000)] = 100
    """The same at first; it grows to `flight_steps` by the middle of the training: of flights that nobody can fly yet only the
    beginnings teach."""
    least_size: Annotated[float, Bound(1e-3, 1.0)] = 1.0
    """Inputs count at first by their size at starts, and by this where that is less: tilts and rates of a chain are small, and
    all that it falls by."""
    reach_m: Annotated[float, Bound(0.1, 1e3, "m")] = 4.0
    """Of hover: a flight farther off is lost and starts anew."""
    cost: JointedCost = field(default_factory=JointedCost)
    """What is to be small; of `gap` beside it how far links are outside of a funnel that ends in the slot."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.task not in JOINTED_BY_GRADIENT:
            raise AirworthyError(
                f"JointedGradientOptions.task is {self.task!r}; expected one of {', '.join(JOINTED_BY_GRADIENT)}."
            )

    def begin(self, vehicle: Vehicle | str | None, task: LearningTask | None = None) -> Any:
        """Return the training of a vehicle's policy.

        Args:
            vehicle: That is flown; None: the task's own.
            task: As it is judged; None: the task as it is.

        Raises:
            ModuleNotFoundError: torch is not installed; the extra 'learn' brings it.
        """
        from airworthy.learning.task_training.jointed_gradient import JointedGradientTraining

        return JointedGradientTraining(vehicle, self, task)


JOINTED_BY_GRADIENT: Mapping[str, Mapping[str, Any]] = {
    "morphy_hover": {"first_steps": 500, "iterations": 300},
    # Slow to turn and to fall: what holds it level pays only after more than a window, and has to count at once.
    "chain_hover": {
        "learning_rate": 3e-3,
        "keep": 0.99,
        "iterations": 1000,
        "least_size": 0.1,
        "cost": JointedCost(distance=0.5, velocity=0.5, rate=0.3, upright=2.0, joint_rate=0.005, change=0.02),
    },
    "gap": {
        "learning_rate": 5e-3,
        "window": 75,
        "iterations": 800,
        "flight_steps": 400,
        "first_steps": 400,
        "cost": JointedCost(distance=2.0, rate=0.1, upright=1.0),
    },
}
"""The tasks, and what of the options differs from the usual."""


def jointed_gradient_options(task: str, **chosen: Any) -> JointedGradientOptions:
    """Return the usual options of a task, with some chosen.

    Args:
        task: Of `JOINTED_BY_GRADIENT`.
        chosen: Fields of the options.
    """
    return JointedGradientOptions(**{"task": task, **JOINTED_BY_GRADIENT[task], **chosen})
