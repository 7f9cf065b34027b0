"""Whether the courses of a data set fit the place that is seen: said before anything is made, not by what is learnt from it."""

from __future__ import annotations

import warnings

from airworthy.core.errors import AssetWarning
from airworthy.learning.datasets.config import DatasetConfig
from airworthy.learning.synthesis.config import cleared_for
from airworthy.scenes import Scene
from airworthy.tasks.course_fit import CourseCheck, check_course
from airworthy.tasks.course_sight import course_view
from airworthy.trajectories import course
from airworthy.vehicles import named_vehicle

__all__ = ["check_place"]

_ADVICE = (
    "name --courses that fit this place (`airworthy courses validate FILE --scene SCENE` tells of them), take what stands near"
    " their path out with --clear METRES, or make the data as it is with --course-check warn"
)
LOOKS = 20
"""Images along each course."""


def check_place(config: DatasetConfig, scene: Scene, check: CourseCheck) -> None:
    """Refuse, or warn of, courses on which the vehicle meets something; warn of those that look into what was not captured.

    Roll-outs know no bounds of a place, so that leaving them is nothing here.

    Args:
        config: Of the data set.
        scene: That is seen.
        check: What becomes of a course that does not fit.

    Raises:
        AirworthyError: One does not, and `check` is "refuse".
    """
    if check == "none":
        return
    flown = named_vehicle(config.vehicle)
    for name in config.courses:
        place, item = cleared_for(scene, name, config.clear), course(name)
        path = item.trajectory()
        check_course(path, place, [flown], item.name, check, _ADVICE, bounds=False)
        seen = course_view(path, place, flown, camera=config.camera, count=LOOKS)
        if seen is not None and seen.poor.any():
            warnings.warn(f"On the course {item.name!r} in {scene.name!r} {seen.text()}.", AssetWarning, stacklevel=3)
