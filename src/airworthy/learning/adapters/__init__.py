"""Environments of learning tasks as the libraries for reinforcement learning want them; none of these is needed to import this.

All begin a flight in the step that ends one, with the same bits as `VectorTask`; each module names its library.
"""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.learning.adapters.gymnasium_env import GymnasiumVector, register_gymnasium
    from airworthy.learning.adapters.gymnasium_flight import GymnasiumFlight
    from airworthy.learning.adapters.rsl_rl_env import RslRlEnv
    from airworthy.learning.adapters.skrl_env import SkrlEnv
    from airworthy.learning.adapters.stable_baselines3_env import StableBaselinesEnv
else:
    # fmt: off
    __getattr__, __dir__ = lazy_names(__name__)
    # fmt: on

__all__ = ["GymnasiumFlight", "GymnasiumVector", "RslRlEnv", "SkrlEnv", "StableBaselinesEnv", "register_gymnasium"]
