"""One student of several teachers: motor policies of different quadrotors become one small policy, by DAgger."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.learning.distill.config import DistillOptions
    from airworthy.learning.distill.run import train_distill
    from airworthy.learning.distill.training import DistillTraining
else:
    # fmt: off
    __getattr__, __dir__ = lazy_names(__name__)
    # fmt: on

__all__ = ["DistillOptions", "DistillTraining", "train_distill"]
