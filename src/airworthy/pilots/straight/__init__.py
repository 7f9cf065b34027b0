"""Straight flight: the baseline that sees nothing."""

from airworthy.pilots.straight.planner import StraightFlight

__all__ = ["StraightFlight"]
