"""A motor policy that learns from a replay, as a training that is stopped, gone on with, judged and flown like any other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.runs.checkpoints import Checkpoint
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.environments import LearningTask, VectorTask
from airworthy.learning.environments.tasks import HoverTask, L2fPosition
from airworthy.learning.gradient.hover import OBSERVATION, HoverStart
from airworthy.learning.machine import TrainingOptions
from airworthy.learning.off_policy.options import OffPolicyOptions, SacOptions
from airworthy.learning.off_policy.trainer import OffPolicy, OffPolicyUpdate
from airworthy.simulation.config import Randomization
from airworthy.vehicles import Vehicle

__all__ = ["L2F_START", "OffPolicyTraining", "OffPolicyTrainingOptions", "l2f_inputs"]

L2F_START = HoverStart(position=0.5, velocity=1.0, tilt=0.5 * math.pi, rate=1.0, rotors=0.0)
"""Where flights begin on which policies of l2f_position are judged: the newer task's, roll and pitch up to 90 degrees."""
_TASKS = ("hover", "l2f_position")
_ITERATIONS = 200
"""Ours: launches of a training; some ten milliseconds each, so that stopping and saving are never late."""


@dataclass(frozen=True)
class OffPolicyTrainingOptions(TrainingOptions):
    """What is learnt from a replay, for how long, and how."""

    task: str = "l2f_position"
    """l2f_position (as the RLtools zoo has it) or hover."""
    env_count: Annotated[int, Bound(16, 1 << 12)] = 16
    """Flights at once, a multiple of 16."""
    steps: Annotated[int, Bound(1, 10**8)] = 200_000
    """Decisions of all flights together."""
    rate: Annotated[float, Bound(10.0, 1000.0, "Hz")] = 100.0
    """Decisions per second."""
    randomization: Randomization = field(default_factory=Randomization)
    """How vehicles differ."""
    learner: OffPolicyOptions = field(default_factory=SacOptions)
    """How it learns: `SacOptions` or `Td3Options`."""

    def __post_init__(self) -> None:
        check_fields(self, "OffPolicyTrainingOptions.")
        if self.task not in _TASKS:
            raise AirworthyError(f"SAC and TD3 learn the task {self.task!r} not; expected {' or '.join(_TASKS)}.")
        if self.steps <= self.learner.actor_warmup:
            raise AirworthyError(
                f"{self.steps:,} steps end before the actor's first update, after {self.learner.actor_warmup:,}: learn longer."
            )

    @property
    def seed(self) -> int:
        """Of weights, starts, vehicles and noise."""
        return self.learner.seed

    @property
    def rounds(self) -> int:
        """Steps of every environment in a launch."""
        return max(1, math.ceil(self.steps / self.env_count / _ITERATIONS))

    @property
    def iterations(self) -> int:
        """Launches."""
        return math.ceil(math.ceil(self.steps / self.env_count) / self.rounds)

    @property
    def start(self) -> HoverStart:
        """Where flights begin on which it is judged, as in training."""
        return L2F_START if self.task == "l2f_position" else HoverStart()

    def differences(self, before: Mapping[str, Any]) -> list[str]:
        """Fields in which an earlier training differs, in words."""
        inner = before.get("learner")
        found = super().differences({**before, "learner": asdict(self.learner)})
        held = dict(inner) if isinstance(inner, Mapping) else {}
        if isinstance(held.get("hidden"), list):  # JSON has lists for tuples
            held["hidden"] = tuple(held["hidden"])
        return [*found, *self.learner.differences(held)]

    def begin(self, vehicle: Vehicle) -> OffPolicyTraining:
        """Return the training of a vehicle's policy."""
        return OffPolicyTraining(vehicle, self)


class OffPolicyTraining:
    """A policy that learns from a replay to hold a place.

    Args:
        vehicle: Whose rotors it commands.
        options: How.

    Raises:
        AirworthyError: The vehicle cannot hover.
    """

    law: ClassVar[Literal["state", "square"]] = "state"
    raised = 0

    def __init__(self, vehicle: Vehicle, options: OffPolicyTrainingOptions | None = None):
        self.vehicle, self.options = vehicle, options or OffPolicyTrainingOptions()
        o = self.options
        newer: LearningTask = L2fPosition.newer(rate=o.rate)
        self.task = newer if o.task == "l2f_position" else HoverTask(rate=o.rate)
        environments = VectorTask(self.task, o.env_count, vehicle, o.seed, o.randomization)
        self.learner = OffPolicy(environments, o.learner, o.steps)
        self.trainer = o.learner.kind
        self.folder: Path | None = None
        """Where what was flown is kept between two runs; None: in each checkpoint."""
        self.last: OffPolicyUpdate | None = None
        """What the last launch came to."""
        self.lost = 0
        """Flights that ended otherwise than by their time."""

    @property
    def iteration(self) -> int:
        """Launches done."""
        return math.ceil(self.learner.time / self.options.rounds)

    @property
    def env_steps(self) -> int:
        """Decisions so far, over all flights."""
        return self.learner.env_steps

    @property
    def finished(self) -> bool:
        """Whether all is learnt."""
        return self.learner.time >= self.learner.rounds

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the policy's hidden layers."""
        return self.options.learner.hidden

    @property
    def history(self) -> int:
        """Past actions that the policy sees."""
        return self.task.history if isinstance(self.task, L2fPosition) else 0

    @property
    def flown_rate(self) -> float:
        """Decisions per second of the policy when it flies [Hz]."""
        return self.options.rate

    @property
    def hover(self) -> Array:
        """Actions of hover, (rotors,)."""
        return np.clip(self.learner.environments.hover_action.astype(float), -1.0, 1.0)

    @property
    def weights(self) -> list[ArrayF32]:
        """Weight and bias of each layer of the policy, as a motor policy's folder holds them."""
        first, *rest = (w.copy() for w in self.learner.policy_weights)
        return [first if self.options.task == "hover" else l2f_inputs(first), *rest]

    def prepare(self) -> None:
        """Build the kernel."""
        self.learner.prepare()

    def step(self) -> float:
        """Fly on and learn; returns less the mean reward per step."""
        self.last = self.learner.advance(self.options.rounds)
        self.lost += self.last.terminated
        return -self.last.reward

    def metrics(self, cost: float) -> dict[str, Any]:
        """Return what is written down of the last launch."""
        assert self.last is not None
        row = {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in asdict(self.last).items()}
        return {**row, "cost": cost, "lost": self.lost}

    def save(self) -> Checkpoint:
        """Everything that the next launch depends on."""
        inner = self.learner.save(self.folder)
        return Checkpoint(self.iteration, inner.arrays, {**inner.notes, "lost": self.lost})

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits."""
        self.learner.restore(checkpoint, self.folder)
        self.lost = int(checkpoint.notes["lost"])


def l2f_inputs(first: ArrayF32) -> ArrayF32:
    """First layer over the inputs of a motor policy, which hold those of l2f_position: the same function.

    Args:
        first: Over position 3, rotation matrix by rows 9, velocity 3, body rate 3, past actions; (width, 18 + past).
    """
    whole = np.array(first, np.float32)
    # A motor policy sees half the velocity, then the matrix by columns, a tenth of the rate; past actions alike.
    whole[:, 3:6] = 2.0 * first[:, 12:15]
    for row in range(3):
        whole[:, [6 + 3 * column + row for column in range(3)]] = first[:, 3 + 3 * row : 6 + 3 * row]
    whole[:, 15:OBSERVATION] = 10.0 * first[:, 15:18]
    return whole
