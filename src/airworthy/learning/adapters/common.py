"""What adapters share: spaces, the first flights, and means for logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayF32
from airworthy.learning.environments import EpisodeEnds, StepResult, VectorTask

__all__ = ["FirstFlights", "episode_means", "single_spaces", "term_means"]


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
