"""Halls: furnished rooms to fly in, of meshes and of splats, and the race hall."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.scenes.generators.halls.layouts import backroom, flightroom, mid_gate
    from airworthy.scenes.generators.halls.race_courses import course_frames, course_names, course_shifts, published_shifts
    from airworthy.scenes.generators.halls.race_hall import alphapilot
    from airworthy.scenes.generators.halls.splat_hall import hall, hall_statues, hall_with_statues
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "alphapilot",
    "backroom",
    "course_frames",
    "course_names",
    "course_shifts",
    "flightroom",
    "hall",
    "hall_statues",
    "hall_with_statues",
    "mid_gate",
    "published_shifts",
]
