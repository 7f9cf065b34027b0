"""A planner that knows the whole place: what a benchmark's flights can reach at best, and whether its layouts can be flown."""

from airworthy.pilots.oracle.planner import Oracle

__all__ = ["Oracle"]
