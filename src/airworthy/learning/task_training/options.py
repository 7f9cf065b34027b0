"""What is learnt of a task, and how; what is left open stands in a table of settings by task."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from airworthy.core.errors import AirworthyError
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.environments import LearningTask, learning_task
from airworthy.learning.machine import TrainingOptions
from airworthy.learning.native_ppo.options import PpoOptions
from airworthy.learning.ppo.options import TorchPpoOptions
from airworthy.simulation.config import Randomization
from airworthy.vehicles import Vehicle

if TYPE_CHECKING:  # it comes behind its options
    from airworthy.learning.task_training.training import TaskTraining, TaskWork

__all__ = ["TaskOptions", "TaskTrainingOptions", "task_settings"]


class TaskOptions(Protocol):
    """What is learnt, and how, by whatever trainer of tasks."""

    @property
    def task(self) -> str:
        """Name of a registered task, or FILE.py:NAME of one's own."""
        ...

    @property
    def options(self) -> Mapping[str, Any]:
        """Of the task, where they are not its defaults."""
        ...

    @property
    def seed(self) -> int:
        """Of weights, starts, vehicles and noise."""
        ...

    def begin(self, vehicle: Vehicle | str | None, task: LearningTask | None = None) -> TaskWork:
        """Return the training of a vehicle's policy.

        Args:
            vehicle: That is flown; None: the task's own.
            task: As it is judged; None: that of the name.
        """
        ...


ANY = "any"
"""Entry of the settings for tasks that have none of their own."""


@cache
def _table() -> dict[str, Any]:
    text = files("airworthy.learning.task_training").joinpath("settings.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def task_settings(name: str) -> dict[str, Any]:
    """Return how a task learns by default: options, and under "ppo" those of the learner."""
    table = _table()
    usual, own = table[ANY], table.get(name, {})
    ppo = {**usual["ppo"], **own.get("ppo", {})}
    return {**usual, **own, "ppo": {**ppo, "hidden": tuple(ppo["hidden"])}}


@dataclass(frozen=True)
class TaskTrainingOptions(TrainingOptions):
    """What is learnt by reward, for how long, and how."""

    task: str
    """Name of a registered task, or FILE.py:NAME of one's own."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the task, where they are not its defaults."""
    env_count: Annotated[int, Bound(16, 1 << 20)] = 4096
    """Flights at once, a multiple of 16."""
    steps: Annotated[int, Bound(1, 10**12)] = 50_000_000
    """Decisions of all flights together; whole updates are made."""
    episode_steps: Annotated[int, Bound(0, 1_000_000)] = 0
    """Decisions after which a flight of the training is cut off; 0: as many as the task has."""
    staggered: bool = True
    """First flights begin at drawn ages, so that they are not all cut off at once."""
    randomization: Randomization = field(default_factory=Randomization)
    """How vehicles differ."""
    ppo: PpoOptions = field(default_factory=PpoOptions)
    """How it learns; by torch: its `TorchPpoOptions`."""

    def __post_init__(self) -> None:
        check_fields(self, "TaskTrainingOptions.")

    @classmethod
    def usual(cls, task: str, seed: int = 0, trainer: str = "native_ppo", **chosen: Any) -> TaskTrainingOptions:
        """Return the settings of a task, with some chosen.

        Args:
            task: As of the field.
            seed: Of weights, starts, vehicles and noise.
            trainer: "native_ppo", or "ppo", the same in torch.
            chosen: Fields of this, or of `PpoOptions`; None: as in the table.

        Raises:
            AirworthyError: There is no such field, or it is out of range.
        """
        table = task_settings(task)
        learner = {item.name for item in fields(PpoOptions)}
        given = {name: value for name, value in chosen.items() if value is not None}
        # The seed last: the learner's own must be the training's.
        inner = {**table.pop("ppo"), **{k: v for k, v in given.items() if k in learner}, "seed": seed}
        # The rate falls over the whole training: else the noise of its steps is what a policy ends with.
        kind = TorchPpoOptions if trainer == "ppo" else PpoOptions
        ppo = kind(**{"decay_steps": given.get("steps", table["steps"]), **inner})
        return cls(task, **{**table, **{k: v for k, v in given.items() if k not in learner}}, ppo=ppo)

    @property
    def seed(self) -> int:
        """Of weights, starts, vehicles and noise."""
        return self.ppo.seed

    @property
    def iterations(self) -> int:
        """Updates."""
        return math.ceil(self.steps / (self.env_count * self.ppo.rollout))

    def differences(self, before: Mapping[str, Any]) -> list[str]:
        """Return fields in which an earlier training differs, in words."""
        # Field by field: "ppo differs" would not tell a user what to change.
        inner = before.get("ppo")
        found = super().differences({**before, "ppo": asdict(self.ppo)})
        return [*found, *self.ppo.differences(inner if isinstance(inner, Mapping) else {})]

    def begin(self, vehicle: Vehicle | str | None, task: LearningTask | None = None) -> TaskTraining:
        """Return the training of a vehicle's policy.

        Args:
            vehicle: That is flown; None: the task's own.
            task: As it is judged; None: that of the name.
        """
        from airworthy.learning.task_training.training import TaskTraining

        return TaskTraining(vehicle, self, task)

    def learnt_task(self) -> LearningTask:
        """Return the task as it is judged.

        Raises:
            UnknownNameError: There is none of this name.
            AirworthyError: An option that it does not have.
        """
        return learning_task(self.task, **self.options)


def cut_off(task: LearningTask, steps: int) -> LearningTask:
    """Return a task whose flights are cut off after so many decisions; 0: as they are.

    Raises:
        AirworthyError: The task has no such option.
    """
    if not steps:
        return task
    if not is_dataclass(task) or all(item.name != "episode_steps" for item in fields(task)):
        raise AirworthyError(f"The task {task.name!r} has no option episode_steps: leave --episode-steps out.")
    return replace(task, episode_steps=steps)
