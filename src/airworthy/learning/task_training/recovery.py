"""The task recovery by the gradient of flights: thrown in any attitude, first the fall is to end, the place hardly counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from airworthy.core.arrays import ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.environments import LearningTask, VectorTask
from airworthy.learning.environments.tasks import Recovery
from airworthy.learning.gradient.hover import HoverCost, HoverStart
from airworthy.learning.gradient.trainer import GradientOptions, GradientTraining
from airworthy.learning.l2f_position.training import L2fGradientTraining
from airworthy.vehicles import Vehicle, named_vehicle

__all__ = ["THROWN", "RecoveryGradientOptions", "RecoveryGradientTraining"]

THROWN = HoverStart(position=0.05, velocity=3.5, tilt=3.1, rate=6.0)
"""Ours: boxes about as large as the task's balls of 5 m/s and 10 rad/s, and any roll and pitch."""


@dataclass(frozen=True)
class RecoveryGradientOptions(GradientOptions):
    """How to learn it; what differs from hover was chosen on 512 throws of seed 7920, which are not the evaluation's."""

    # Ours, all of them; docs/howto/train_task.md has what they come to, seed by seed.
    hidden: int = 64
    env_count: Annotated[int, Bound(16, 65536)] = 64
    # A second and a half at 100 Hz: the specification wants a throw caught within two (learning by reward, 3.4).
    window: Annotated[int, Bound(2, 2000)] = 150
    iterations: Annotated[int, Bound(1, 1_000_000)] = 2000
    learning_rate: Annotated[float, Bound(0.0, 1.0, above=True)] = 1e-2
    reach_m: Annotated[float, Bound(0.1, 1e3, "m")] = 12.0
    """Below the ground there: a flight that falls on still learns to fall less."""
    start: HoverStart = THROWN
    # The place weighs a tenth of the speed, and the heading nothing: the task asks for calm, wherever that is.
    cost: HoverCost = field(default_factory=lambda: HoverCost(position=0.1, velocity=1.0, heading=0.0))

    def __post_init__(self) -> None:
        check_fields(self, "RecoveryGradientOptions.")
        if self.memory != "none" or self.history:
            raise AirworthyError("A policy of recovery sees the state alone; expected no history and no memory.")
        super().__post_init__()

    @property
    def task(self) -> str:
        """What is learnt."""
        return "recovery"

    @property
    def options(self) -> dict[str, Any]:
        """Of the task that is judged: the task as it is."""
        return {}

    def begin(self, vehicle: Vehicle | str | None, task: LearningTask | None = None) -> Any:
        """Return the training of a vehicle's policy.

        Args:
            vehicle: That is flown; None: the task's own.
            task: As it is judged; None: the task as it is.
        """
        return RecoveryGradientTraining(vehicle, self, task)


class RecoveryGradientTraining(L2fGradientTraining):
    """A policy of recovery that learns by the gradient of its flights.

    Args:
        vehicle: That is flown; None: the task's own.
        options: How.
        task: As it is judged; None: the task as it is.
    """

    def __init__(self, vehicle: Vehicle | str | None, options: RecoveryGradientOptions, task: LearningTask | None = None):
        self.task = Recovery() if task is None else task
        self.options: Any = options
        found = self.task.vehicle if vehicle is None else vehicle
        self.vehicle = found if isinstance(found, Vehicle) else named_vehicle(found)
        # It flies nothing: it says what the task shows and commands, for the contract.
        self.environments = VectorTask(self.task, 16, self.vehicle, options.seed)
        self.inner: Any = GradientTraining(self.vehicle, options)

    @property
    def weights(self) -> list[ArrayF32]:
        """Weight and bias of each layer, copies: the task shows what the gradient's flights see."""
        return [w.copy() for w in self.inner.weights]
