"""SAC and TD3 on a task as a training that is stopped, gone on with, judged and flown like any other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.environments import FlightConditions, LearningTask, VectorTask, learning_task
from airworthy.learning.environments.soundness import check_reward, check_update
from airworthy.learning.environments.tasks.l2f_position import L2F_PUBLISHED, L2F_ZOO
from airworthy.learning.gradient.hover import HoverStart
from airworthy.learning.machine import TrainingOptions
from airworthy.learning.off_policy.options import OffPolicyOptions, SacOptions, Td3Options
from airworthy.learning.off_policy.trainer import OffPolicy, OffPolicyUpdate, check_batch
from airworthy.learning.task_training.options import cut_off
from airworthy.learning.task_training.policy import NetworkForm, contract_of_task
from airworthy.pilots.task_policy.contract import TaskContract
from airworthy.simulation.config import Randomization
from airworthy.vehicles import Vehicle

__all__ = ["OFF_POLICY", "OffPolicyTraining", "OffPolicyTrainingOptions"]

OFF_POLICY: Mapping[str, type[OffPolicyOptions]] = MappingProxyType({"sac": SacOptions, "td3": Td3Options})
"""By the trainer's name on the command line."""
_TASK_OPTIONS: Mapping[tuple[str, str], Mapping[str, Any]] = MappingProxyType(
    # SAC is that of RLtools' zoo, TD3 that of 2024, each on its own task (specification, learning by reward, 3.3).
    {("sac", "l2f_position"): L2F_ZOO, ("td3", "l2f_position"): L2F_PUBLISHED}
)
_STEPS: Mapping[str, int] = MappingProxyType({"sac": 200_000, "td3": 300_000})
"""As published."""
_LAUNCHES = 200
"""Ours: of a training; some ten milliseconds each, so that stopping and saving are never late."""


@dataclass(frozen=True)
class OffPolicyTrainingOptions(TrainingOptions):
    """What is learnt from a replay, for how long, and how."""

    task: str = "l2f_position"
    """Name of a registered task, or FILE.py:NAME of one's own."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the task, where they are not its defaults."""
    env_count: Annotated[int, Bound(16, 1 << 12)] = 16
    """Flights at once, a multiple of 16."""
    steps: Annotated[int, Bound(1, 10**8)] = 200_000
    """Decisions of all flights together."""
    episode_steps: Annotated[int, Bound(0, 1_000_000)] = 0
    """Decisions after which a flight of the training is cut off; 0: as many as the task has."""
    randomization: Randomization = field(default_factory=Randomization)
    """How vehicles differ."""
    learner: OffPolicyOptions = field(default_factory=SacOptions)
    """How it learns: `SacOptions` or `Td3Options`."""

    def __post_init__(self) -> None:
        check_fields(self, "OffPolicyTrainingOptions.")
        if self.steps <= self.learner.actor_warmup:
            raise AirworthyError(
                f"{self.steps:,} steps end before the actor's first update, after {self.learner.actor_warmup:,}: learn longer."
            )

    @classmethod
    def usual(cls, trainer: str, task: str, seed: int = 0, **chosen: Any) -> OffPolicyTrainingOptions:
        """Return the settings of a trainer for a task, with some chosen.

        Args:
            trainer: Of `OFF_POLICY`.
            task: As of the field.
            seed: Of weights, starts, vehicles and noise.
            chosen: Fields of this, or of the learner's options; None: as usual.
        """
        made = OFF_POLICY[trainer]
        of_learner = {item.name for item in fields(made)}
        given = {name: value for name, value in chosen.items() if value is not None}
        learner = made(**{**{k: v for k, v in given.items() if k in of_learner}, "seed": seed})
        rest = {k: v for k, v in given.items() if k not in of_learner}
        rest["options"] = {**_TASK_OPTIONS.get((trainer, task), {}), **rest.get("options", {})}
        return cls(task, **{"steps": _STEPS[trainer], **rest}, learner=learner)

    @property
    def seed(self) -> int:
        """Of weights, starts, vehicles and noise."""
        return self.learner.seed

    @property
    def rounds(self) -> int:
        """Steps of every environment in a launch."""
        return max(1, math.ceil(self.steps / self.env_count / _LAUNCHES))

    @property
    def iterations(self) -> int:
        """Launches."""
        return math.ceil(math.ceil(self.steps / self.env_count) / self.rounds)

    @property
    def start(self) -> HoverStart:
        """Where flights begin on which hover is judged, as in training."""
        return HoverStart()

    def differences(self, before: Mapping[str, Any]) -> list[str]:
        """Return fields in which an earlier training differs, in words."""
        inner = before.get("learner")
        found = super().differences({**before, "learner": asdict(self.learner)})
        return [*found, *self.learner.differences(inner if isinstance(inner, Mapping) else {})]

    def begin(self, vehicle: Vehicle | str | None, task: LearningTask | None = None) -> OffPolicyTraining:
        """Return the training of a vehicle's policy.

        Args:
            vehicle: That flies; None: the task's own.
            task: As it is judged; None: that of the name.
        """
        return OffPolicyTraining(vehicle, self, task)


class OffPolicyTraining:
    """A policy that learns a task from a replay.

    Args:
        vehicle: That is flown; None: the task's own.
        options: How.
        task: As it is judged; None: that of the options' name.

    Raises:
        AirworthyError: The vehicle cannot hover, or does not fit the task.
    """

    # What trainings of hover have besides, whose folders hold a motor policy.
    law: ClassVar[Literal["state", "square"]] = "state"
    raised = history = 0

    def __init__(
        self,
        vehicle: Vehicle | str | None = None,
        options: OffPolicyTrainingOptions | None = None,
        task: LearningTask | None = None,
    ):
        self.options = o = options or OffPolicyTrainingOptions.usual("sac", "l2f_position")
        self.task = learning_task(o.task, **o.options) if task is None else task
        # Sixteen flights that are cut off together show few starts at a time.
        conditions = FlightConditions(staggered=True)
        check_batch(o.env_count)  # first: environments may compile for half a minute
        self.environments = VectorTask(
            cut_off(self.task, o.episode_steps), o.env_count, vehicle, o.seed, o.randomization, conditions=conditions
        )
        check_reward(self.task.name, self.environments.terms)
        self.vehicle = self.environments.vehicle
        self.learner = OffPolicy(self.environments, o.learner, o.steps)
        self.trainer: str = o.learner.kind
        self._folder: Path | None = None
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
    def flown_rate(self) -> float:
        """Decisions per second of the policy when it flies [Hz]."""
        return self.task.rate

    @property
    def hover(self) -> Array:
        """Actions of hover, (actions,)."""
        return np.clip(self.environments.hover_action.astype(float), -1.0, 1.0)

    @property
    def weights(self) -> list[ArrayF32]:
        """Weight and bias of each layer of the policy, copies."""
        return [w.copy() for w in self.learner.policy_weights]

    def contract(self) -> TaskContract:
        """Return the contract of the policy as it is now."""
        noted = {"trainer": self.trainer, "iterations": self.iteration, "env_steps": self.env_steps}
        return contract_of_task(self.environments, NetworkForm(self.hidden), {**noted, "options": asdict(self.options)})

    def prepare(self) -> None:
        """Build the kernel."""
        self.learner.prepare()

    def step(self) -> float:
        """Fly on and learn; returns less the mean reward per step."""
        before = self.learner.env_steps
        self.last = self.learner.advance(self.options.rounds)
        check_update(self.task.name, self.learner.env_steps - before, self.last.terminated, self.last.reward)
        self.lost += self.last.terminated
        return -self.last.reward

    def metrics(self, cost: float) -> dict[str, Any]:
        """Return what is written down of the last launch."""
        assert self.last is not None
        row = {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in asdict(self.last).items()}
        return {**row, "cost": cost, "lost": self.lost}

    # ---- stopping and going on: what was flown lies beside the checkpoints, each step once --------------------------------

    def keep_in(self, folder: Path) -> None:
        """Keep what was flown in a training's folder instead of in each checkpoint."""
        self._folder = folder / "replay"

    def forget(self) -> None:
        """Remove what was flown, once all is learnt."""
        if self._folder is not None and self._folder.is_dir():
            for path in self._folder.iterdir():
                path.unlink(missing_ok=True)
            self._folder.rmdir()

    def save(self) -> Checkpoint:
        """Return everything that the next launch depends on."""
        inner = self.learner.save(self._folder)
        return Checkpoint(self.iteration, inner.arrays, {**inner.notes, "lost": self.lost})

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits."""
        self.learner.restore(checkpoint, self._folder)
        self.lost = int(checkpoint.notes["lost"])
