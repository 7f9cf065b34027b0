"""Agile-Autonomy: a student of the sampling expert that sees depth images and gives trajectories of one second."""

from airworthy.planners.agile_autonomy.contract import (
    StudentContract,
    read_student_folder,
    shipped_student,
    write_student_folder,
)
from airworthy.planners.agile_autonomy.planner import AgileAutonomy, AgileAutonomySettings, Student, read_student
from airworthy.planners.agile_autonomy.sight import DepthImages

__all__ = [
    "AgileAutonomy",
    "AgileAutonomySettings",
    "DepthImages",
    "Student",
    "StudentContract",
    "read_student",
    "read_student_folder",
    "shipped_student",
    "write_student_folder",
]
