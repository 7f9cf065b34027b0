"""PPO for small networks with everything in lanes: a hundred times the steps of a Python loop on the same cores."""

from airworthy.learning.native_ppo.loss import ppo_loss
from airworthy.learning.native_ppo.trainer import NativePpo, PpoOptions, PpoUpdate, generalized_advantages

__all__ = ["NativePpo", "PpoOptions", "PpoUpdate", "generalized_advantages", "ppo_loss"]
