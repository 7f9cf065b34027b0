"""The tracking protocol of SOUS VIDE in simulation: a pilot under every condition of its experiments, and evidence.

`evaluate(EvaluateConfig(...))` flies and writes a folder; `TrackingMethod` brings a pilot of one's own.
"""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.benchmarks.tracking.conditions import Condition, condition
    from airworthy.benchmarks.tracking.config import EvaluateConfig
    from airworthy.benchmarks.tracking.job import Evaluated, evaluate
    from airworthy.benchmarks.tracking.methods import TrackingMethod
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Condition",
    "EvaluateConfig",
    "Evaluated",
    "TrackingMethod",
    "condition",
    "evaluate",
]  # fmt: skip
