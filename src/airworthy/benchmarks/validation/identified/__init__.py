"""The page of a vehicle that was identified from logs."""

from airworthy.benchmarks.validation.identified.page import write_identification

__all__ = ["write_identification"]
