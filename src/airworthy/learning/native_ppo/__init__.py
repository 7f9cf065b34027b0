"""PPO for small networks with everything in lanes: ten times the steps of a torch loop on the same cores."""

from airworthy.learning.native_ppo.loss import ppo_loss
from airworthy.learning.native_ppo.options import PpoOptions, PpoUpdate
from airworthy.learning.native_ppo.trainer import NativePpo, Rollout, generalized_advantages
from airworthy.learning.native_ppo.training import PpoTraining, PpoTrainingOptions

__all__ = [
    "NativePpo",
    "PpoOptions",
    "PpoTraining",
    "PpoTrainingOptions",
    "PpoUpdate",
    "Rollout",
    "generalized_advantages",
    "ppo_loss",
]
