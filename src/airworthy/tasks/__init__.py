"""What is asked of a flight and how it is judged: pure functions on arrays, nothing here runs anything."""

from __future__ import annotations

from airworthy.tasks.gates import GateJudge, GateProtocol, GateResults, judge_path
from airworthy.tasks.goals import GoalProtocol, HoldProtocol, classify_goal, classify_hold, hold_error, time_to_goal
from airworthy.tasks.outcomes import OUTCOMES, SUCCESSES, FlightStatus, collision_events
from airworthy.tasks.reference import TrackingReference
from airworthy.tasks.tracking import TrackingProtocol, classify_tracking

__all__ = [
    "OUTCOMES",
    "SUCCESSES",
    "FlightStatus",
    "GateJudge",
    "GateProtocol",
    "GateResults",
    "GoalProtocol",
    "HoldProtocol",
    "TrackingProtocol",
    "TrackingReference",
    "classify_goal",
    "classify_hold",
    "classify_tracking",
    "collision_events",
    "hold_error",
    "judge_path",
    "time_to_goal",
]
