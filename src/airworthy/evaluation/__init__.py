"""Evidence: metrics per flight, statistics over flights with intervals, and their summary on disk."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.evaluation.blocks import block_mean, block_rms, block_rms_ratio, block_slope
    from airworthy.evaluation.metrics import FlightResult, evaluate_tracking, path_distance
    from airworthy.evaluation.paired import paired_median_difference, paired_rate_difference
    from airworthy.evaluation.statistics import (
        Estimate,
        bootstrap_interval,
        describe,
        interquartile_mean,
        read_summary,
        summarize,
        wilson_interval,
        write_summary,
    )
else:
    # fmt: off
    __getattr__, __dir__ = lazy_names(__name__)
    # fmt: on

__all__ = [
    "Estimate", "FlightResult", "block_mean", "block_rms", "block_rms_ratio", "block_slope", "bootstrap_interval", "describe",
    "evaluate_tracking", "interquartile_mean",
    "paired_median_difference", "paired_rate_difference", "path_distance", "read_summary", "summarize", "wilson_interval",
    "write_summary",
]  # fmt: skip
