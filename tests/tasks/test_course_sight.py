"""Whether a course looks at what was captured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box
from airworthy.scenes import Instance, Region, Scene
from airworthy.scenes.splats import Splats
from airworthy.scenes.splats.placing import add_splats
from airworthy.tasks import course_view
from airworthy.trajectories import Limits, Trajectory, from_waypoints
from airworthy.vehicles import vehicle

CARL = vehicle("carl")


def wall_of_gaussians(x: float, low: float = -4.0, high: float = 6.0) -> Splats:
    """An opaque wall across the x axis, 16 m wide."""
    y, z = (a.ravel() for a in np.meshgrid(np.arange(-8, 8, 0.1), np.arange(low, high, 0.1)))
    n = len(y)
    position = np.stack([np.full(n, x), y, z], 1)
    return Splats(position, np.tile([0, 0, 0, 1.0], (n, 1)), np.full((n, 3), 0.09), np.full(n, 0.99), np.zeros((n, 1, 3)))


def captured(*walls: Splats) -> Scene:
    scene = Scene("capture", bounds=Region((-9, -9, -5), (9, 9, 9)))
    for k, splats in enumerate(walls):
        scene = add_splats(scene, splats, f"wall{k}")
    return scene


def facing(yaw: float) -> Trajectory:
    return from_waypoints([(-0.5, 0, 1), (0.5, 0, 1)], Limits(speed=0.1, acceleration=0.05), yaw=yaw)


def test_who_faces_what_was_captured_sees_it_all() -> None:
    """The wall 3 m ahead fills the camera's view of 69 by 42 degrees: no pixel is empty."""
    seen = course_view(facing(0.0), captured(wall_of_gaussians(3.0)), CARL, count=5)
    assert seen is not None
    assert seen.hole.tolist() == seen.empty.tolist() == [0.0] * 5
    assert not seen.poor.any()
    assert seen.text().startswith("the camera sees what was captured: at most 0 %")


def test_who_faces_the_other_way_sees_nothing_of_it() -> None:
    """Turned round all is empty, and half of it lies below the horizon, as the camera is level: it leans by 0.3 degrees."""
    seen = course_view(facing(np.pi), captured(wall_of_gaussians(3.0)), CARL, count=5)
    assert seen is not None
    assert seen.empty.tolist() == [1.0] * 5
    assert seen.hole == pytest.approx(0.5, abs=0.05)
    assert seen.poor.all()
    text = seen.text()
    assert text.startswith(
        f"the camera looks into what was not captured for 100 % of the course (0.0 to {seen.time[-1]:.1f} s)"
    )


def test_what_is_missing_above_the_horizon_alone_may_be_sky() -> None:
    """A wall that ends at the camera's height: the upper half is empty, and there is no hole."""
    scene = captured(wall_of_gaussians(3.0, high=1.0))
    seen = course_view(facing(0.0), scene, CARL, count=3)
    assert seen is not None
    assert seen.hole.max() <= 0.05
    assert seen.empty == pytest.approx(0.5, abs=0.1)


def test_a_visible_surface_fills_what_gaussians_leave_and_one_that_is_only_hit_does_not() -> None:
    board = Instance("board", (3.0, 0.0, 1.0), name="board")
    back = captured(wall_of_gaussians(-3.0))
    scene = replace(back, shapes={"board": Box((0.05, 8.0, 6.0))}, instances=(board,))
    shown = course_view(facing(0.0), scene, CARL, count=3)
    hidden = course_view(facing(0.0), replace(scene, instances=(replace(board, visible=False, covered=True),)), CARL, count=3)
    assert shown is not None
    assert hidden is not None
    assert shown.empty.max() == 0.0
    assert hidden.empty.min() == 1.0


def test_a_place_without_gaussians_was_not_captured() -> None:
    assert course_view(facing(0.0), Scene("bare"), CARL) is None


@pytest.mark.parametrize(("given", "says"), [({"count": 0}, "got 0 of 48 px"), ({"side": 4}, "got 40 of 4 px")])
def test_images_that_are_none_are_refused(given: Any, says: str) -> None:
    with pytest.raises(AirworthyError, match=says):
        course_view(facing(0.0), captured(wall_of_gaussians(3.0)), CARL, **given)
