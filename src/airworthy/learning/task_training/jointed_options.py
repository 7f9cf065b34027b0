"""How tasks of vehicles with joints are learnt by the gradient of flights: options, and the cost whose slope is followed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from airworthy.core.errors import AirworthyError
from airworthy.core.schema import Bound, Length, check_fields
from airworthy.learning.environments import LearningTask
from airworthy.learning.machine import SEED_MAX, TrainingOptions
from airworthy.vehicles import Vehicle

__all__ = ["JOINTED_BY_GRADIENT", "JointedCost", "JointedGradientOptions", "jointed_gradient_options"]

_WIDTH_MAX = 512
"""Of hidden layers, as of tasks that follow a path."""


@dataclass(frozen=True)
class JointedCost:
    """Weights of the cost per decision. Ours: published rewards of hover are nearly flat a metre away from the target."""

    distance: Annotated[float, Bound(0.0, 1e3)] = 1.0
    """Of the distance of the root from the target [1/m]."""
    velocity: Annotated[float, Bound(0.0, 1e3)] = 0.1
    """Of the speed [s/m]."""
    rate: Annotated[float, Bound(0.0, 1e3)] = 0.05
    """Of the body rate [s/rad]."""
    upright: Annotated[float, Bound(0.0, 1e3)] = 0.2
    """Of 1 - cos(tilt)."""
    joint_rate: Annotated[float, Bound(0.0, 1e3)] = 0.02
    """Of the length of the vector of joint rates [s/rad]."""
    change: Annotated[float, Bound(0.0, 1e3)] = 0.05
    """Of the squared change of the action."""
    corner: Annotated[float, Bound(1e-4, 1.0)] = 0.05
    """Within it the distance is rounded off [m]; other norms within 0.1."""

    def __post_init__(self) -> None:
        check_fields(self, "JointedCost.")


@dataclass(frozen=True)
class JointedGradientOptions(TrainingOptions):
    """How to learn `morphy_hover`, `chain_hover` or `gap`; chosen on starts of seed 7920, which are not the evaluation's."""

    task: str = "morphy_hover"
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
    final_share: Annotated[float, Bound(0.0, 1.0)] = 0.03
    """Of the learning rate, at the end."""
    clip: Annotated[float, Bound(1e-6, 1e6)] = 0.5
    """Largest norm of the whole gradient; a longer one is shortened."""
    keep: Annotated[float, Bound(0.0, 1.0)] = 0.98
    """Share of the slope by the state that each decision hands back: shapes that fall over would make it explode."""
    flight_steps: Annotated[int, Bound(1, 1_000_000)] = 500
    """Decisions of a flight, after which another begins."""
    first_steps: Annotated[int, Bound(1, 1_000_000)] = 100
    """The same at first; it grows to `flight_steps` by the middle of the training: of flights that nobody can fly yet only the
    beginnings teach."""
    reach_m: Annotated[float, Bound(0.1, 1e3, "m")] = 4.0
    """Of hover: a flight farther off is lost and starts anew."""
    seed: Annotated[int, Bound(0, SEED_MAX)] = 0
    """Of weights and starts."""
    cost: JointedCost = field(default_factory=JointedCost)
    """What is to be small; of `gap` beside it how far links are outside of a funnel that ends in the slot."""

    def __post_init__(self) -> None:
        check_fields(self, "JointedGradientOptions.")
        if self.task not in JOINTED_BY_GRADIENT:
            raise AirworthyError(
                f"JointedGradientOptions.task is {self.task!r}; expected one of {', '.join(JOINTED_BY_GRADIENT)}."
            )

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
        from airworthy.learning.task_training.jointed_gradient import JointedGradientTraining

        return JointedGradientTraining(vehicle, self, task)


JOINTED_BY_GRADIENT: Mapping[str, Mapping[str, Any]] = {
    "morphy_hover": {},
    "chain_hover": {"iterations": 800},
    "gap": {"window": 75, "iterations": 1000, "flight_steps": 400},
}
"""The tasks, and what of the options differs from the usual."""


def jointed_gradient_options(task: str, **chosen: Any) -> JointedGradientOptions:
    """Return the usual options of a task, with some chosen.

    Args:
        task: Of `JOINTED_BY_GRADIENT`.
        chosen: Fields of the options.
    """
    return JointedGradientOptions(**{"task": task, **JOINTED_BY_GRADIENT[task], **chosen})
