"""Native PPO on a task as a training that is stopped, gone on with, judged and flown."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np

from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.learning.environments import FlightConditions, LearningTask, VectorTask
from airworthy.learning.environments.soundness import check_reward, check_update
from airworthy.learning.native_ppo.options import PpoUpdate
from airworthy.learning.native_ppo.training import check_learner, ppo_learner
from airworthy.learning.ppo.options import TorchPpoOptions
from airworthy.learning.task_training.options import TaskTrainingOptions, cut_off
from airworthy.learning.task_training.policy import NetworkForm, contract_of_task
from airworthy.pilots.task_policy.contract import TaskContract
from airworthy.vehicles import Vehicle

__all__ = ["TaskTraining", "TaskWork"]


class TaskWork(Protocol):
    """What a trainer of any task is, so that its folder can be written, stopped, gone on with and judged."""

    trainer: str
    """Its name on the command line."""
    options: Any
    """With `iterations` and `seed`."""
    task: LearningTask
    """As it is judged."""
    vehicle: Vehicle
    """That it flies."""
    lost: int
    """Flights that ended otherwise than by their time."""

    @property
    def iteration(self) -> int:
        """Updates done."""
        ...

    @property
    def env_steps(self) -> int:
        """Decisions so far, over all flights."""
        ...

    @property
    def finished(self) -> bool:
        """Whether all is learnt."""
        ...

    @property
    def weights(self) -> list[ArrayF32]:
        """Weight and bias of each layer of the policy."""
        ...

    def contract(self) -> TaskContract:
        """Return the contract of the policy as it is now."""
        ...

    def prepare(self) -> None:
        """Compile what is still to compile, ahead of the clock."""
        ...

    def step(self) -> float:
        """Make an update; returns less the mean reward per step."""
        ...

    def metrics(self, cost: float) -> dict[str, Any]:
        """Return what is written down of the last update."""
        ...

    def save(self) -> Checkpoint:
        """Return everything that the next update depends on."""
        ...

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave."""
        ...


class TaskTraining:
    """A policy that learns a task by PPO, native or in torch.

    Args:
        vehicle: That is flown; None: the task's own.
        options: How.
        task: As it is judged; None: that of the options' name.
        threads: Most threads; the numbers are the same.

    Raises:
        AirworthyError: The vehicle cannot hover, or does not fit the task.
    """

    def __init__(
        self,
        vehicle: Vehicle | str | None,
        options: TaskTrainingOptions,
        task: LearningTask | None = None,
        threads: int | None = None,
    ):
        self.trainer = "ppo" if isinstance(options.ppo, TorchPpoOptions) else "native_ppo"
        self.options = o = options
        self.task = options.learnt_task() if task is None else task
        flown, conditions = cut_off(self.task, o.episode_steps), FlightConditions(staggered=o.staggered)
        check_learner(o.env_count, o.ppo)  # first: environments may compile for half a minute
        self.environments = VectorTask(
            flown, o.env_count, vehicle, o.seed, o.randomization, threads=threads, conditions=conditions
        )
        # Before anything is learnt: a task of one's own may have forgotten its reward.
        check_reward(self.task.name, self.environments.terms)
        self.vehicle = self.environments.vehicle
        self.ppo, self.machine = ppo_learner(self.environments, o.ppo, threads)
        self.last: PpoUpdate | None = None
        """What the last update came to."""
        self.lost = 0
        """Flights that ended otherwise than by their time."""

    @property
    def iteration(self) -> int:
        """Updates done."""
        return self.ppo.updates

    @property
    def env_steps(self) -> int:
        """Decisions so far, over all flights."""
        return self.ppo.env_steps

    @property
    def finished(self) -> bool:
        """Whether all is learnt."""
        return self.iteration >= self.options.iterations

    @property
    def weights(self) -> list[ArrayF32]:
        """Weight and bias of each layer of the policy, copies."""
        return [w.copy() for w in self.ppo.policy_weights]

    def action(self, observation: Array) -> Array:
        """Return deterministic actions, (env, actions)."""
        return self.ppo.action(observation)

    def contract(self) -> TaskContract:
        """Return the contract of the policy as it is now."""
        noted = {"trainer": self.trainer, "iterations": self.iteration, "env_steps": self.env_steps}
        options = asdict(self.options)
        return contract_of_task(self.environments, NetworkForm(self.options.ppo.hidden), {**noted, "options": options})

    def prepare(self) -> None:
        """Build the kernels: making the environments did."""

    def step(self) -> float:
        """Fly a rollout and learn from it; returns less the mean reward per step."""
        before = self.env_steps
        self.last = self.ppo.update()
        # Nothing is learnt where every flight ends at once, or rewards overflow: one sentence instead of a flat curve.
        check_update(self.task.name, self.env_steps - before, self.last.terminated, self.last.reward)
        self.lost += self.last.terminated
        # Less it, for everything that learns here makes a cost small.
        return -self.last.reward

    def metrics(self, cost: float) -> dict[str, Any]:
        """Return what is written down of the last update."""
        assert self.last is not None
        # JSON has no NaN: what cannot be said is null, so that any reader takes the log.
        row = {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in asdict(self.last).items()}
        return {**row, "cost": cost, "lost": self.lost, **self._level()}

    def _level(self) -> dict[str, float]:
        """Mean level of the curriculum, where there is one."""
        if self.environments.shape.traits.curriculum is None:
            return {}
        return {"level": float(np.mean(self.environments.level))}

    def save(self) -> Checkpoint:
        """Return everything that the next update depends on."""
        inner = self.ppo.save()
        return Checkpoint(inner.number, inner.arrays, {**inner.notes, "lost": self.lost})

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits."""
        self.ppo.restore(checkpoint)
        self.lost = int(checkpoint.notes["lost"])
