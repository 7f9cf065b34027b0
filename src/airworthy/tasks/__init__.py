"""What is asked of a flight and how it is judged: pure functions on arrays, nothing here runs anything."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.tasks.course_fit import CourseClearance, CourseTouch, course_clearance
    from airworthy.tasks.course_room import CourseMargins, CourseRoom, course_margins
    from airworthy.tasks.course_sight import CourseView, course_view
    from airworthy.tasks.course_walk import WalkCourse, WalkOptions, walk_course
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
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "OUTCOMES",
    "SUCCESSES",
    "CourseClearance",
    "CourseMargins",
    "CourseRoom",
    "CourseTouch",
    "CourseView",
    "FlightStatus",
    "GoalProtocol",
    "HoldProtocol",
    "NavigationProtocol",
    "TrackingProtocol",
    "TrackingReference",
    "WalkCourse",
    "WalkOptions",
    "classify_goal",
    "classify_hold",
    "classify_tracking",
    "collision_events",
    "course_clearance",
    "course_margins",
    "course_view",
    "hold_error",
    "time_to_goal",
    "walk_course",
]
