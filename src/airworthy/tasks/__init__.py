"""What is asked of a flight and how it is judged: pure functions on arrays, nothing here runs anything."""

from __future__ import annotations

from airworthy.tasks.navigation import NavigationProtocol
from airworthy.tasks.outcomes import (
    OUTCOMES,
    SUCCESSES,
    FlightStatus,
    GoalProtocol,
    HoldProtocol,
    classify_goal,
    classify_hold,
    collision_events,
    hold_error,
    time_to_goal,
)
from airworthy.tasks.tracking import TrackingProtocol, TrackingReference, classify_tracking

__all__ = [
    "OUTCOMES",
    "SUCCESSES",
    "FlightStatus",
    "GoalProtocol",
    "HoldProtocol",
    "NavigationProtocol",
    "TrackingProtocol",
    "TrackingReference",
    "classify_goal",
    "classify_hold",
    "classify_tracking",
    "collision_events",
    "hold_error",
    "time_to_goal",
]
