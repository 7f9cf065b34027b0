"""PPO for small networks with everything in lanes: ten times the steps of a torch loop on the same cores."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.learning.native_ppo.loss import ppo_loss
    from airworthy.learning.native_ppo.options import PpoOptions, PpoUpdate
    from airworthy.learning.native_ppo.shared import Rollout, generalized_advantages
    from airworthy.learning.native_ppo.trainer import NativePpo
    from airworthy.learning.native_ppo.training import PpoTraining, PpoTrainingOptions
else:
    # fmt: off
    __getattr__, __dir__ = lazy_names(__name__)
    # fmt: on

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
