"""Expert roll-outs, as SOUS VIDE's Algorithm 1 draws them, and what a drone's camera sees on the way."""

from airworthy.learning.synthesis.config import (
    NOISE_LEVELS,
    RATE,
    VIEWS,
    Stages,
    StateNoise,
    SynthesisConfig,
    evaluation_set,
    flight_camera,
    noise_level,
)
from airworthy.learning.synthesis.plan import Pictures, RolloutPlan, RolloutStarts, objective_of
from airworthy.learning.synthesis.rollouts import Rollouts, roll_out, sensed_states

__all__ = [
    "NOISE_LEVELS",
    "RATE",
    "VIEWS",
    "Pictures",
    "RolloutPlan",
    "RolloutStarts",
    "Rollouts",
    "Stages",
    "StateNoise",
    "SynthesisConfig",
    "evaluation_set",
    "flight_camera",
    "noise_level",
    "objective_of",
    "roll_out",
    "sensed_states",
]
