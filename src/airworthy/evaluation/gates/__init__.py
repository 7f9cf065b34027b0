"""The gates benchmark: plans proved, flown in two families of dynamics, and set beside other planners."""

from __future__ import annotations

from airworthy.evaluation.gates.comparing import OTHERS, least_time, other_laps
from airworthy.evaluation.gates.config import COURSES, GatesConfig
from airworthy.evaluation.gates.contestants import Contestant
from airworthy.evaluation.gates.families import FAMILIES, Family, Spread, family_named
from airworthy.evaluation.gates.flying import FlightOptions, Flown, fly
from airworthy.evaluation.gates.job import GatesBenchmarked, run_gates

__all__ = [
    "COURSES",
    "FAMILIES",
    "OTHERS",
    "Contestant",
    "Family",
    "FlightOptions",
    "Flown",
    "GatesBenchmarked",
    "GatesConfig",
    "Spread",
    "family_named",
    "fly",
    "least_time",
    "other_laps",
    "run_gates",
]
