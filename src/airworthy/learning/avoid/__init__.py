"""A policy that sees a small depth image and flies fast through obstacles, learnt by gradient through a point mass."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.learning.avoid.config import AvoidOptions, AvoidRunOptions
    from airworthy.learning.avoid.evaluation import AvoidProtocol
    from airworthy.learning.avoid.run import train_avoid
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["AvoidOptions", "AvoidProtocol", "AvoidRunOptions", "train_avoid"]
