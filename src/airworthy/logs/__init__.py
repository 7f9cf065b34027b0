"""Flight logs of every kind as one record: streams in SI units and our frames, on one clock, with what is known of their
quality."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.logs.advice import rate_advice
    from airworthy.logs.checks import log_checks
    from airworthy.logs.clocks.clock import even_clock
    from airworthy.logs.clocks.kinematics import integrate_gyro
    from airworthy.logs.clocks.stream_clock import ClockFit, clock_fit, on_gyro_clock
    from airworthy.logs.excitation import LogFinding, log_findings
    from airworthy.logs.guessing.mappings import guess_mapping
    from airworthy.logs.log_check import LogCheck
    from airworthy.logs.message_reading import mcap_messages
    from airworthy.logs.motors.columns import MotorOrder, motor_order
    from airworthy.logs.quality import StreamQuality
    from airworthy.logs.reading import ReadOptions, read_log, table_of
    from airworthy.logs.record import KINDS, Log, LogEvent, LogSource, LogStream, LowPass, RawSeries, RotorGeometry
    from airworthy.logs.segments import LogSegments, Span, flight_segments
    from airworthy.logs.writing.outputs import refuse_input
    from airworthy.logs.writing.writers import write_log
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "KINDS",
    "ClockFit",
    "Log",
    "LogCheck",
    "LogEvent",
    "LogFinding",
    "LogSegments",
    "LogSource",
    "LogStream",
    "LowPass",
    "MotorOrder",
    "RawSeries",
    "ReadOptions",
    "RotorGeometry",
    "Span",
    "StreamQuality",
    "clock_fit",
    "even_clock",
    "flight_segments",
    "guess_mapping",
    "integrate_gyro",
    "log_checks",
    "log_findings",
    "mcap_messages",
    "motor_order",
    "on_gyro_clock",
    "rate_advice",
    "read_log",
    "refuse_input",
    "table_of",
    "write_log",
]
