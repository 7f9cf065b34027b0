"""The gradient's training of l2f_position, as one whose folder holds a policy of the task."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayF32
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.learning.environments import LearningTask, VectorTask
from airworthy.learning.environments.tasks import L2fPosition
from airworthy.learning.gradient.hover import OBSERVATION
from airworthy.learning.l2f_position.gradient import L2fGradientOptions, PushedTraining
from airworthy.learning.task_training.policy import NetworkForm, contract_of_task
from airworthy.pilots.task_policy.contract import TaskContract
from airworthy.vehicles import Vehicle, named_vehicle

__all__ = ["L2fGradientTraining", "of_task_inputs"]


class L2fGradientTraining:
    """A policy of l2f_position that learns by the gradient of its flights.

    Args:
        vehicle: That is flown; None: the task's own.
        options: How.
        task: As it is judged; None: the zoo's, with noise and the options' history and push.
    """

    trainer = "gradient"

    def __init__(self, vehicle: Vehicle | str | None, options: L2fGradientOptions, task: LearningTask | None = None):
        made = L2fPosition.harder(history=options.history, disturbance=options.disturbance, rate=options.rate)
        self.task: LearningTask = made if task is None else task
        self.options = options
        found = made.airframe() if vehicle is None else vehicle
        self.vehicle = found if isinstance(found, Vehicle) else named_vehicle(found)
        # It flies nothing: it says what the task shows and commands, for the contract.
        self.environments = VectorTask(self.task, 16, self.vehicle, options.seed)
        self.inner = PushedTraining(self.vehicle, options)

    @property
    def iteration(self) -> int:
        """Gradient steps done."""
        return self.inner.iteration

    @property
    def env_steps(self) -> int:
        """Decisions so far, over all flights."""
        return self.inner.env_steps

    @property
    def finished(self) -> bool:
        """Whether all is learnt."""
        return self.inner.finished

    @property
    def lost(self) -> int:
        """Flights that left reach or numbers."""
        return self.inner.lost

    @property
    def weights(self) -> list[ArrayF32]:
        """Weight and bias of each layer over what the task shows, copies."""
        # The gradient's flights see the same numbers in another order and scale; the policy's file speaks the task's.
        first, *rest = (w.copy() for w in self.inner.weights)
        return [of_task_inputs(first), *rest]

    def contract(self) -> TaskContract:
        """Return the contract of the policy as it is now."""
        noted = {"trainer": self.trainer, "iterations": self.iteration, "env_steps": self.env_steps}
        form = NetworkForm((self.options.hidden, self.options.hidden))
        return contract_of_task(self.environments, form, {**noted, "options": asdict(self.options)})

    def prepare(self) -> None:
        """Build the kernel, where no step has."""
        self.inner.prepare()

    def step(self) -> float:
        """Learn from one window; returns its mean cost per policy step."""
        return self.inner.step()

    def metrics(self, cost: float) -> dict[str, Any]:
        """Return what is written down of a step that came to this cost."""
        return self.inner.metrics(cost)

    def save(self) -> Checkpoint:
        """Return everything that the next step depends on."""
        return self.inner.save()

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits."""
        self.inner.restore(checkpoint)


def of_task_inputs(first: ArrayF32) -> ArrayF32:
    """Return the first layer over what l2f_position shows, from one over what the gradient's flights see: the same function.

    Args:
        first: Over position 3, half the velocity 3, rotation matrix by columns 9, a tenth of the body rate 3, past actions;
            (width, 18 + past).
    """
    whole = np.array(first, np.float32)
    # The task shows the matrix by rows before the velocity, and does not scale.
    whole[:, 12:15] = 0.5 * first[:, 3:6]
    for row in range(3):
        whole[:, 3 + 3 * row : 6 + 3 * row] = first[:, [6 + 3 * column + row for column in range(3)]]
    whole[:, 15:OBSERVATION] = 0.1 * first[:, 15:OBSERVATION]
    return whole
