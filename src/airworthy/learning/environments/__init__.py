"""Learning tasks, and environments of them for every learner: `VectorTask` is the native face."""

from airworthy.learning.environments.conditions import Curriculum, FlightConditions
from airworthy.learning.environments.task import (
    Judgement,
    LearningTask,
    learning_task,
    learning_tasks,
    peak,
    penalty,
    register_task,
    thrust_command,
)
from airworthy.learning.environments.vector_task import EpisodeEnds, StepResult, VectorTask

__all__ = [
    "Curriculum", "EpisodeEnds", "FlightConditions", "Judgement", "LearningTask", "StepResult", "VectorTask", "learning_task",
    "learning_tasks", "peak", "penalty", "register_task", "thrust_command",
]  # fmt: skip
