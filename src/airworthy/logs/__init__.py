"""Flight logs of every kind as one record: streams in SI units and our frames, on one clock, with what is known of their quality."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.logs.clock import even_clock
    from airworthy.logs.quality import StreamQuality
    from airworthy.logs.reading import ReadOptions, read_log
    from airworthy.logs.record import KINDS, Log, LogEvent, LogSource, LowPass, RawSeries, RotorGeometry, Stream
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "KINDS",
    "Log",
    "LogEvent",
    "LogSource",
    "LowPass",
    "RawSeries",
    "ReadOptions",
    "RotorGeometry",
    "Stream",
    "StreamQuality",
    "even_clock",
    "read_log",
]
