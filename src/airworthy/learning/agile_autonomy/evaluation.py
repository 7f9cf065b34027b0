"""Judges a student: flights of the navigation benchmark at several speeds, beside its teacher and baselines."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from airworthy.benchmarks.navigation.config import Flight, NavigationConfig
from airworthy.benchmarks.navigation.fly_batch import fly_flights
from airworthy.benchmarks.navigation.methods import NavigationMethod, method_of
from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.jobs.progress import progress
from airworthy.evaluation import wilson_interval
from airworthy.learning.agile_autonomy.config import StudentProtocol
from airworthy.planners.agile_autonomy.planner import AgileAutonomy, AgileAutonomySettings, Student
from airworthy.planners.sampling_expert import SamplingExpert, SamplingSettings
from airworthy.tasks.navigation import FAILURES, NavigationProtocol

__all__ = ["STUDENT", "judged", "method_for"]

STUDENT = "student"
_TIME_LIMIT = 60.0
"""Of a flight [s]; ours: at the slowest speed here four times what it takes."""


def method_for(name: str, student: Student, speed: float) -> NavigationMethod:
    """Return who is judged.

    Args:
        name: student, blanked (the student with empty images), expert, or a pilot of the navigation benchmark.
        student: What was learnt.
        speed: Cap, which both expert and student may use in full [m/s].

    Raises:
        AirworthyError: There is no such pilot.
    """
    if name in (STUDENT, "blanked"):
        flown = student if name == STUDENT else Student(replace(student.contract, blind=True), student.weights)
        return NavigationMethod(name, lambda: AgileAutonomy(AgileAutonomySettings(speed_max=speed), flown))
    if name == "expert":
        return NavigationMethod(name, lambda: SamplingExpert(SamplingSettings(speed_max=speed)), privileged=True)
    return method_of(name)


def judged(student: Student, protocol: StudentProtocol, quiet: bool = True) -> list[dict[str, Any]]:
    """Return what became of everybody's flights: a row per pilot, kind of place and speed.

    Args:
        student: What was learnt.
        protocol: Who flies beside it, where, and at which speeds.
        quiet: Show no progress.
    """
    cells = [
        (name, scenario, speed)
        for speed in protocol.speeds
        for scenario in protocol.scenarios
        for name in (STUDENT, *protocol.baselines)
    ]
    return [_row(student, protocol, *cell) for cell in progress(cells, "Judging", quiet=quiet)]


def _row(student: Student, protocol: StudentProtocol, name: str, scenario: str, speed: float) -> dict[str, Any]:
    flights = [
        Flight(scenario, configuration, vehicle)
        for configuration in range(1, protocol.configurations + 1)
        for vehicle in protocol.vehicles
    ]
    config = NavigationConfig(
        seed=protocol.seed, a_max="vehicle", protocol=NavigationProtocol(time_limit_s=_TIME_LIMIT, speed_m_s=speed)
    )
    begun = time.process_time()
    found = fly_flights(flights, method_for(name, student, speed), config)
    outcome, count = found.watch.outcome, len(flights)
    arrived = outcome == "success"
    rate = wilson_interval(int(arrived.sum()), count)
    return {
        "pilot": name,
        "scenario": scenario,
        "speed_m_s": speed,
        "flights": count,
        "success": int(arrived.sum()),
        "success_interval_percent": [100.0 * rate.low, 100.0 * rate.high],
        **{failure: int((outcome == failure).sum()) for failure in FAILURES},
        "mean_speed_m_s": _mean(found.values["speed_mean_m_s"], arrived),
        "top_speed_m_s": _mean(found.values["speed_max_m_s"], arrived),
        "cpu_s": time.process_time() - begun,
    }


def _mean(values: Array, which: ArrayBool) -> float | None:
    """Return the mean of those that arrived; None: none did."""
    chosen = np.asarray(values, np.float64)[which]
    return float(chosen.mean()) if chosen.size else None
