"""Expert roll-outs, as SOUS VIDE's Algorithm 1 draws them, and what a drone's camera sees on the way."""

from airworthy.learning.synthesis.cameras import VIEWS, flight_camera
from airworthy.learning.synthesis.config import (
    NOISE_LEVELS,
    RATE,
    NoiseLevel,
    SynthesisConfig,
    evaluation_set,
    noise_level,
)
from airworthy.learning.synthesis.pictures import Pictures
from airworthy.learning.synthesis.plan import RolloutPlan, Starts, objective_of
from airworthy.learning.synthesis.rolling import Rollouts, roll_out, sensed_states
from airworthy.learning.synthesis.stages import Stages

__all__ = [
    "NOISE_LEVELS",
    "RATE",
    "VIEWS",
    "NoiseLevel",
    "Pictures",
    "RolloutPlan",
    "Rollouts",
    "Stages",
    "Starts",
    "SynthesisConfig",
    "evaluation_set",
    "flight_camera",
    "noise_level",
    "objective_of",
    "roll_out",
    "sensed_states",
]
