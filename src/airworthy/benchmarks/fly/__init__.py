"""`airworthy fly`: vehicle x course x pilot in one run - configuration, flights, judgement, film, replay."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.benchmarks.fly.config import FlyConfig, check_config, read_config
    from airworthy.benchmarks.fly.film import Video, VideoOptions, record_video
    from airworthy.benchmarks.fly.job import FlyResult, run_fly
    from airworthy.benchmarks.fly.metrics import RunMetrics, judge
    from airworthy.benchmarks.fly.replay import Comparison, refly
    from airworthy.benchmarks.fly.run_record import RunRecord, read_record
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Comparison", "FlyConfig", "FlyResult", "RunMetrics", "RunRecord", "Video", "VideoOptions", "check_config", "judge",
    "read_config", "read_record", "record_video", "refly", "run_fly",
]  # fmt: skip
