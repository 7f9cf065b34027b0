"""What is flown, how often, and judged by whom: one run, the navigation benchmark, the tracking protocol, tuning, validation.

Each is a configuration and a call that writes a folder: `run_fly(FlyConfig())`, `run_benchmark(NavigationConfig())`,
`evaluate(EvaluateConfig())`, `tune(TuneConfig())`, `run_validation(ValidateConfig())`.
"""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.benchmarks.fly.config import FlyConfig
    from airworthy.benchmarks.fly.film import Video, VideoOptions, record_video
    from airworthy.benchmarks.fly.job import FlyResult, run_fly
    from airworthy.benchmarks.fly.replay import Comparison, refly
    from airworthy.benchmarks.navigation import (
        Benchmarked,
        NavigationConfig,
        Perturbation,
        read_rows,
        replay_row,
        run_benchmark,
    )
    from airworthy.benchmarks.step_tests import flight_check, flight_checks, measured_indicators
    from airworthy.benchmarks.tracking import Condition, EvaluateConfig, Evaluated, TrackingMethod, condition, evaluate
    from airworthy.benchmarks.tuning import TuneConfig, Tuned, tune
    from airworthy.benchmarks.validation import AllanDeviation, FlightLog, allan_deviation, imu_statistics, read_flight_log
    from airworthy.benchmarks.validation.open_loop import LogValidation, ValidateOptions, validate_logs
    from airworthy.benchmarks.validation.run import ValidateConfig, Validation, run_validation
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "AllanDeviation",
    "Benchmarked",
    "Comparison",
    "Condition",
    "EvaluateConfig",
    "Evaluated",
    "FlightLog",
    "FlyConfig",
    "FlyResult",
    "LogValidation",
    "NavigationConfig",
    "Perturbation",
    "TrackingMethod",
    "TuneConfig",
    "Tuned",
    "ValidateConfig",
    "ValidateOptions",
    "Validation",
    "Video",
    "VideoOptions",
    "allan_deviation",
    "condition",
    "evaluate",
    "flight_check",
    "flight_checks",
    "imu_statistics",
    "measured_indicators",
    "read_flight_log",
    "read_rows",
    "record_video",
    "refly",
    "replay_row",
    "run_benchmark",
    "run_fly",
    "run_validation",
    "tune",
    "validate_logs",
]  # fmt: skip
