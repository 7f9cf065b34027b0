"""Evidence: metrics per flight, statistics over flights, and the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airworthy.evaluation.machine import describe_machine
from airworthy.evaluation.metrics import FlightResult, evaluate_tracking
from airworthy.evaluation.paths import path_distance
from airworthy.evaluation.statistics import Estimate, bootstrap_interval, describe, interquartile_mean, wilson_interval
from airworthy.evaluation.summary import read_summary, summarize, write_summary

if TYPE_CHECKING:
    from airworthy.evaluation.report import write_report as write_report

__all__ = [
    "Estimate",
    "FlightResult",
    "bootstrap_interval",
    "describe",
    "describe_machine",
    "evaluate_tracking",
    "interquartile_mean",
    "path_distance",
    "read_summary",
    "summarize",
    "wilson_interval",
    "write_report",
    "write_summary",
]


def __getattr__(name: str) -> Any:
    # The report's modules are many and needed once, at the end.
    if name == "write_report":
        from airworthy.evaluation.report import write_report

        return write_report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
