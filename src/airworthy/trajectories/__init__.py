"""What is to be flown: polynomials, minimum snap, B-splines, flatness, limits and their proofs, gates, courses."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.trajectories.allocation import shorten, slow_to, time_allocation_trapezoid
    from airworthy.trajectories.bspline import UniformBspline
    from airworthy.trajectories.course_draft import CourseDraft, DraftHistory, parse_points
    from airworthy.trajectories.course_file import Course, course, course_names, from_waypoints, read_course, write_course
    from airworthy.trajectories.excitation import ExcitationConfig, ExcitationPart, ExcitationPlan, excitation_plan
    from airworthy.trajectories.flatness import (
        KinematicState,
        RigidState,
        kinematic_state,
        rigid_state,
        rotor_thrusts,
        thrust_command,
        vehicle_state,
    )
    from airworthy.trajectories.gate_path import septic_through, through_gates
    from airworthy.trajectories.gates import Gate, GateCrossing, GatePassage, gate_crossing, gate_passages
    from airworthy.trajectories.generated_courses import (
        RandomCourse,
        circle_course,
        generated_course,
        random_course,
        snake_course,
        straight_course,
    )
    from airworthy.trajectories.limits import DEFAULT_LIMITS, TRACKING_ENVELOPE, Limits
    from airworthy.trajectories.min_snap import Keyframe, minimum_snap
    from airworthy.trajectories.polynomial import septic, septic_coasting
    from airworthy.trajectories.proof import (
        LimitCheck,
        LimitProof,
        YawedBox,
        prove,
        prove_clearance,
        prove_corridor,
        prove_half_space,
        prove_within,
    )
    from airworthy.trajectories.tracked import RotorBound
    from airworthy.trajectories.trajectory import FlatSample, Trajectory, concatenate, laps
    from airworthy.trajectories.yaw import yaw_fixed, yaw_ramp, yaw_spline
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "DEFAULT_LIMITS", "TRACKING_ENVELOPE", "Course", "CourseDraft", "DraftHistory", "ExcitationConfig", "ExcitationPart",
    "ExcitationPlan", "FlatSample", "Gate", "GateCrossing", "GatePassage", "Keyframe", "KinematicState", "LimitCheck",
    "LimitProof", "Limits", "RandomCourse", "RigidState", "RotorBound", "Trajectory", "UniformBspline", "YawedBox",
    "circle_course", "concatenate", "course", "course_names", "excitation_plan", "from_waypoints", "gate_crossing",
    "gate_passages", "generated_course", "kinematic_state", "laps", "minimum_snap", "parse_points", "prove",
    "prove_clearance", "prove_corridor", "prove_half_space", "prove_within", "random_course", "read_course", "rigid_state",
    "rotor_thrusts", "septic", "septic_coasting", "septic_through", "shorten", "slow_to", "snake_course", "straight_course",
    "through_gates", "thrust_command", "time_allocation_trapezoid", "vehicle_state", "write_course", "yaw_fixed", "yaw_ramp",
    "yaw_spline",
]  # fmt: skip
