"""The gates benchmark: plans proved, flown in two families of dynamics, and set beside other planners."""

from __future__ import annotations

from airworthy.gates.benchmark.baselines import OTHERS, baseline_laps, least_time
from airworthy.gates.benchmark.config import COURSES, GatesBenchConfig
from airworthy.gates.benchmark.families import FAMILIES, FlightFamily, FlightSpread, GatesMethod, family_named
from airworthy.gates.benchmark.flights import FlightOptions, PlanFlights, fly
from airworthy.gates.benchmark.job import GatesBenchmarked, run_gates

__all__ = [
    "COURSES",
    "FAMILIES",
    "OTHERS",
    "FlightFamily",
    "FlightOptions",
    "FlightSpread",
    "GatesBenchConfig",
    "GatesBenchmarked",
    "GatesMethod",
    "PlanFlights",
    "baseline_laps",
    "family_named",
    "fly",
    "least_time",
    "run_gates",
]
