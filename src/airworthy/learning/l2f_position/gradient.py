"""The task l2f_position by the gradient of flights: starts at up to 90 degrees, a constant push in each, past actions seen."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayIndex
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.core.random import Stream, flight_key, normals
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.environments import LearningTask
from airworthy.learning.environments.tasks.l2f_position import FORCE_SHARE, TORQUE_SHARE, L2fPosition
from airworthy.learning.gradient.hover import HoverCost, HoverStart
from airworthy.learning.gradient.kernel import WindowShape
from airworthy.learning.gradient.trainer import GradientOptions, GradientTraining
from airworthy.vehicles import Vehicle

__all__ = ["L2F_START", "L2fGradientOptions", "PushedTraining"]

L2F_START = HoverStart(position=0.5, velocity=1.0, tilt=0.5 * math.pi, rate=1.0, rotors=0.0)
"""Of the zoo's task (specification, learning by reward, 3.3), but for tilts, which are here of roll and pitch by themselves."""


@dataclass(frozen=True)
class L2fGradientOptions(GradientOptions):
    """How to learn it; what differs from hover was chosen on starts that are not the evaluation's."""

    iterations: Annotated[int, Bound(1, 1_000_000)] = 700
    history: Annotated[int, Bound(0, 32)] = 16
    keep: Annotated[float, Bound(0.0, 1.0)] = 0.98
    """Below 1: through flights that begin upside down by half, slopes over a whole window explode."""
    start: HoverStart = L2F_START
    cost: HoverCost = field(default_factory=lambda: HoverCost(position=3.0))
    disturbance: Annotated[float, Bound(0.0, 100.0)] = 1.0
    """Of the published push: a force of N(0, weight / 20) and a torque of N(0, weight x 0.1 mm), constant in a flight."""

    def __post_init__(self) -> None:
        check_fields(self, "L2fGradientOptions.")
        if self.memory != "none":
            raise AirworthyError("A policy of l2f_position remembers past actions alone; its contract has no place for a GRU.")
        super().__post_init__()

    @property
    def task(self) -> str:
        """What is learnt."""
        return "l2f_position"

    @property
    def options(self) -> dict[str, Any]:
        """Of the task that is judged, the zoo's with noise, this push and this history."""
        # Only what differs from the task's own defaults goes into the record.
        made = L2fPosition.harder(history=self.history, disturbance=self.disturbance, rate=self.rate)
        usual = L2fPosition()
        names = [item.name for item in fields(L2fPosition)]
        return {name: getattr(made, name) for name in names if getattr(made, name) != getattr(usual, name)}

    def begin(self, vehicle: Vehicle | str | None, task: LearningTask | None = None) -> Any:
        """Return the training of a vehicle's policy.

        Args:
            vehicle: That is flown; None: the task's own.
            task: As it is judged; None: the zoo's, with noise and push.
        """
        from airworthy.learning.l2f_position.training import L2fGradientTraining

        return L2fGradientTraining(vehicle, self, task)


class PushedTraining(GradientTraining):
    """A policy that learns to hold a place while something pushes, each flight its own way.

    Args:
        vehicle: Whose rotors it commands.
        options: How.
    """

    def __init__(self, vehicle: Vehicle, options: L2fGradientOptions):
        # As shares of the weight, as published: the task is the same for a vehicle of another mass.
        weight = vehicle.mass * vehicle.gravity * options.disturbance
        self._sizes = weight * np.repeat([FORCE_SHARE, TORQUE_SHARE], 3)
        super().__init__(vehicle, options)

    def _window_shape(self) -> WindowShape:
        return replace(super()._window_shape(), pushed=True)

    def _restart(self, flights: ArrayIndex) -> None:
        super()._restart(flights)
        self._push(flights)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits."""
        super().restore(checkpoint)
        # Pushes are not in the checkpoint: they follow from seed, environment and episode.
        self._push(np.arange(self.options.env_count))

    def _push(self, flights: ArrayIndex) -> None:
        """Set the push of flights: of seed, environment and episode alone, so that one that goes on has its own."""
        if flights.size:
            self.window.set_push(flights, self._pushes(flights))

    def _pushes(self, flights: ArrayIndex) -> Array:
        key = flight_key(self.options.seed, flights, self.episode[flights])
        # From step 1 on: step 0 is the start's.
        return np.asarray(normals(key, 1, Stream.RESET, 8)[:, :6].T * self._sizes[:, None])
