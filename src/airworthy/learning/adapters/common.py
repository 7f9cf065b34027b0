"""What adapters share: spaces, the first flights, and means for logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayF32
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.learning.environments import EpisodeEnds, StepResult, VectorTask

__all__ = ["FirstFlights", "episode_means", "made_environments", "single_spaces", "term_means"]


class FirstFlights:
    """Flights of a task at a learner's first reset: those that already began with the task's own seed, not the next ones.

    Args:
        task: Environments.
    """

    def __init__(self, task: VectorTask):
        self.task, self.untouched = task, True

    def reset(self, seed: int | None = None) -> ArrayF32:
        """Begin flights everywhere.

        Args:
            seed: As in `VectorTask.reset`; without one, the first flights are those that stand ready.

        Returns:
            Observations, (env, k): a view.
        """
        if seed is None and self.untouched:
            self.untouched = False
            return self.task.observation
        self.untouched = False
        return self.task.reset(seed)


def made_environments(task: Any, num_envs: int, options: Mapping[str, Any]) -> VectorTask:
    """Return the environments of a task, or those that stand ready.

    Args:
        task: Name of a learning task, a task, or environments.
        num_envs: How many.
        options: Further ones of `VectorTask`.

    Raises:
        UnknownNameError: There is no such option.
        AirworthyError: As `VectorTask`, or options are given for environments that stand ready.
    """
    if isinstance(task, VectorTask):
        if options:
            raise AirworthyError(f"{next(iter(options))!r} changes nothing of environments that stand ready: leave it out.")
        return task
    known = [name for name in signature(VectorTask).parameters if name not in ("task", "env_count")]
    for name in options:
        if name not in known:
            raise unknown_name("option of a vector environment", name, known, "Those of the task are given to it itself.")
    return VectorTask(task, num_envs, **options)


def single_spaces(task: VectorTask) -> tuple[Any, Any]:
    """Return Gymnasium's spaces of one environment: what is seen, which has no bounds, and actions within [-1, 1]."""
    from gymnasium.spaces import Box

    return (
        Box(-np.inf, np.inf, (task.observation_count,), np.float32),
        Box(-1.0, 1.0, (task.action_count,), np.float32),
    )


def term_means(result: StepResult, names: Sequence[str]) -> dict[str, float]:
    """Return means of the reward's named parts over all environments, under `/reward/NAME`."""
    return {f"/reward/{name}": float(result.terms[name].mean()) for name in names}


def episode_means(ends: EpisodeEnds) -> dict[str, float]:
    """Return means over the flights that ended in a step, under `/episode/NAME`; empty where none did."""
    over = ends.ended
    if not over.any():
        return {}
    parts = {"return": ends.returns, "length": ends.length, "success": ends.success, "diverged": ends.diverged}
    return {f"/episode/{name}": float(np.mean(values[over].astype(float))) for name, values in parts.items()}
