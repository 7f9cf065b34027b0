"""Any log, any vehicle: predictions over windows of a flight that are never corrected, beside what needs no vehicle."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.benchmarks.validation.open_loop.flights import ReadyFlight, ready_flights
    from airworthy.benchmarks.validation.open_loop.judgement import ErrorRow, Mismatch
    from airworthy.benchmarks.validation.open_loop.validate import LogValidation, ValidateOptions, validate_logs
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["ErrorRow", "LogValidation", "Mismatch", "ReadyFlight", "ValidateOptions", "ready_flights", "validate_logs"]
