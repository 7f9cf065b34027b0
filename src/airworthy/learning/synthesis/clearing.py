"""The place in which a course is seen: a scene, or that scene cleared round the course's path."""

from __future__ import annotations

from airworthy.evaluation.tracking_protocol.block import Setting
from airworthy.evaluation.tracking_protocol.conditions import Condition
from airworthy.scenes import Scene

__all__ = ["cleared_for"]


def cleared_for(place: Scene, course: str, radius: float) -> Scene:
    """A scene without what stands near a course, surfaces and gaussians.

    It is what a condition of the tracking protocol with this radius as its `clear` shows a policy: the same code makes both.

    Args:
        place: The scene.
        course: Name of the course.
        radius: Things this near its path are taken out [m]; 0: none.

    Raises:
        UnknownNameError: There is no such course.
    """
    if radius == 0.0:
        return place
    condition = Condition("cleared", "Cleared", clear=radius)
    return Setting(condition, course, place.name, {place.name: place}).scene
