"""One policy for all quadrotors: learnt on drawn vehicles, judged on those of the catalogue, which it has never seen."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.learning.foundation.config import FoundationConfig
    from airworthy.learning.foundation.evaluation import FoundationProtocol, fly_fleet, quadrotors
    from airworthy.learning.foundation.run import train_foundation
    from airworthy.learning.foundation.training import FOUNDATION, FoundationTraining, drawn_quadrotor
else:
    # fmt: off
    __getattr__, __dir__ = lazy_names(__name__)
    # fmt: on

__all__ = [
    "FOUNDATION", "FoundationConfig", "FoundationProtocol", "FoundationTraining", "drawn_quadrotor",
    "fly_fleet", "quadrotors", "train_foundation",
]  # fmt: skip
