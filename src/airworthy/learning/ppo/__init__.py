"""PPO in torch, loaded on first use: for networks that `native_ppo`, which is faster, does not have, and to read."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.learning.ppo.options import TorchPpoOptions
    from airworthy.learning.ppo.rollout import PpoEnvironments
    from airworthy.learning.ppo.trainer import TorchPpo
else:
    # fmt: off
    __getattr__, __dir__ = lazy_names(__name__)
    # fmt: on

__all__ = ["PpoEnvironments", "TorchPpo", "TorchPpoOptions"]
