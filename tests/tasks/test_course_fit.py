"""The room that a course leaves a vehicle: against distances worked by hand, dense samples, and walls thinner than a step."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.geometry import Box, Mesh
from airworthy.scenes import Actor, Instance, Region, Scene
from airworthy.scenes.splats import Splats
from airworthy.scenes.splats.placing import add_splats
from airworthy.tasks import course_clearance
from airworthy.tasks.course_fit import FAR, FINEST, SLACK, check_course, solid_scene, thing_name
from airworthy.trajectories import Limits, Trajectory, from_waypoints
from airworthy.vehicles import vehicle
from airworthy.vehicles.record import CollisionBody

CARL = vehicle("carl")
"""Its body is a ball of 0.15 m."""
RADIUS = 0.15
EVERYWHERE = Region((-20.0, -20.0, -20.0), (20.0, 20.0, 20.0))


def place(*boxes: tuple[Any, Any, str], bounds: Region = EVERYWHERE) -> Scene:
    """A scene of boxes: centre, half lengths, name."""
    shapes = {name: Box(half) for _, half, name in boxes}
    things = tuple(Instance(name, center, name=name) for center, _, name in boxes)
    return Scene("place", shapes=shapes, instances=things, bounds=bounds)


def along(*points: Any, speed: float = 1.0, **given: Any) -> Trajectory:
    return from_waypoints(points, Limits(speed=speed, acceleration=2.0), **given)


WALL = ((3.5, 0.0, 1.0), (0.05, 4.0, 2.0), "wall")


def test_a_course_through_a_wall_is_met_where_the_ball_touches_it() -> None:
    """The wall's face is at x = 3.45 m: the ball touches with its centre at 3.30 m, which is then as deep as 0.05 m inside."""
    path = along((0, 0, 1), (5, 0, 1))
    found = course_clearance(path, place(WALL), CARL)
    (touch,) = found.touches
    assert touch.thing == "'wall'"
    assert touch.position[0] == pytest.approx(3.30, abs=FINEST + SLACK)
    assert touch.position[1:] == pytest.approx((0.0, 1.0), abs=1e-9)
    assert touch.begin == pytest.approx(float(np.interp(3.30, *reversed(_x_of(path)))), abs=5e-3)
    assert touch.center_distance == pytest.approx(-0.05, abs=FINEST)
    assert path.sample(np.array([touch.nearest_time])).position[0, 0] == pytest.approx(3.5, abs=FINEST)
    # It leaves the other face with its centre at 3.70 m.
    assert path.sample(np.array([touch.end])).position[0, 0] == pytest.approx(3.70, abs=FINEST + SLACK)
    assert not found.fits


def _x_of(path: Trajectory) -> tuple[Any, Any]:
    t = np.linspace(0.0, path.duration, 5001)
    return t, path.sample(t).position[:, 0]


def test_a_course_along_a_wall_keeps_its_distance() -> None:
    """0.5 m beside a wall's face, a ball of 0.15 m keeps 0.35 m."""
    path = along((3.45 - 0.5, -2, 1), (3.45 - 0.5, 2, 1))
    found = course_clearance(path, place(WALL), CARL)
    assert found.gap == pytest.approx(0.35, abs=1e-6)
    assert (found.thing, found.touches, found.leaves, found.fits) == ("'wall'", (), None, True)
    assert found.problem("beside") == ""
    assert found.room().startswith("keeps 0.35 m from 'wall', nearest at ")


def test_an_edge_is_as_far_as_its_corner() -> None:
    """Past a post whose edge is 0.3 and 0.4 m away across the course: 0.5 m, less the ball."""
    post = ((0.0, 0.3 + 0.1, 1.0 - 0.4 - 0.2), (0.1, 0.1, 0.2), "post")
    found = course_clearance(along((-2, 0, 1), (2, 0, 1)), place(post), CARL)
    assert found.gap == pytest.approx(0.5 - RADIUS, abs=1e-6)
    assert found.position[0] == pytest.approx(0.0, abs=0.1 + 1e-3)


@pytest.mark.parametrize(("yaw", "reach"), [(0.0, 0.4), (0.5 * math.pi, 0.1)])
def test_the_body_counts_as_it_is_turned(yaw: float, reach: float) -> None:
    """A long box, along and across: its nose or its flank is what comes near. It leans by next to nothing at 2 cm/s."""
    long = replace(CARL, body=CollisionBody("box", (0.4, 0.1, 0.05)))
    path = along((2.0, 0, 1), (2.5, 0, 1), speed=0.02, yaw=yaw)
    found = course_clearance(path, place(WALL), long)
    assert found.gap == pytest.approx(3.45 - 2.5 - reach, abs=2e-3)


def test_a_sheet_without_thickness_is_met_however_fast_the_course_is() -> None:
    """An open mesh of two triangles, passed at 20 m/s: 0.1 s are 2 m."""
    sheet = Mesh(np.array([[0, -1, 0], [0, 1, 0], [0, 1, 2], [0, -1, 2]], float), np.array([[0, 1, 2], [0, 2, 3]]))
    scene = Scene(
        "place", shapes={"sheet": sheet}, instances=(Instance("sheet", (3.3, 0, 0), name="sheet"),), bounds=EVERYWHERE
    )
    path = from_waypoints([(-18, 0, 1), (18, 0, 1)], Limits(speed=20.0, acceleration=40.0))
    (touch,) = course_clearance(path, scene, CARL).touches
    assert touch.position[0] == pytest.approx(3.3 - RADIUS, abs=2 * FINEST + SLACK)
    assert touch.center_distance == pytest.approx(0.0, abs=FINEST)
    assert touch.needed == pytest.approx(RADIUS, abs=1e-6)


def test_where_the_centre_passes_beside_what_the_body_needs_is_said() -> None:
    """0.1 m beside a post: the ball of 0.15 m overlaps by 0.05 m."""
    post = ((0.0, 0.3, 1.0), (0.2, 0.2, 1.0), "post")
    found = course_clearance(along((-2, 0, 1), (2, 0, 1)), place(post), CARL)
    (touch,) = found.touches
    assert touch.center_distance == pytest.approx(0.1, abs=1e-6)
    assert touch.needed == pytest.approx(RADIUS, abs=1e-6)
    # Touching begins where the centre is 0.15 m from the edge at x = -0.2: sqrt(0.15^2 - 0.1^2) = 0.1118 m before it.
    assert touch.position[0] == pytest.approx(-0.2 - math.sqrt(0.15**2 - 0.1**2), abs=2 * FINEST + 0.01)
    assert "its centre comes within 0.10 m at " in found.problem("past")
    assert found.problem("past").endswith(" s, where its body needs 0.15 m")


def test_everything_that_is_met_is_named_once_in_order() -> None:
    path = along((0, 0, 1), (9, 0, 1))
    walls = [((x, 0.0, 1.0), (0.05, 1.0, 1.0), name) for x, name in ((2.0, "one"), (4.0, "two"), (6.0, "three"), (8.0, "four"))]
    found = course_clearance(path, place(*walls), CARL)
    assert [item.thing for item in found.touches] == ["'one'", "'two'", "'three'", "'four'"]
    text = found.problem("all")
    assert text.startswith("The course 'all' takes 'carl' into 'one' of 'place' at ")
    assert "(then 'two' at " in text
    assert text.count("'two'") == 1


def test_leaving_the_place_is_told_with_the_time() -> None:
    path = along((0, 0, 1), (5, 0, 1))
    small = place(bounds=Region((-1.0, -1.0, 0.0), (4.0, 1.0, 2.0)))
    found = course_clearance(path, small, CARL)
    assert found.gap == math.inf
    assert found.room() == f"meets nothing within {FAR:g} m of its course"
    assert found.leaves is not None
    time, position = found.leaves
    assert position[0] == pytest.approx(4.0, abs=0.11)
    assert position[0] > 4.0
    assert found.problem("out") == (
        f"The course 'out' leaves the bounds of 'place' at {time:.2f} s, at ({position[0]:.3g}, 0, 1) m"
    )


def test_what_moves_is_left_out_and_what_does_not_collide_is_no_obstacle() -> None:
    scene = place(WALL)
    ghost = replace(scene, instances=tuple(replace(item, collide=False) for item in scene.instances))
    walker = replace(ghost, actors=(Actor("walker", (replace(scene.instances[0], name="walker"),)),))
    path = along((0, 0, 1), (5, 0, 1))
    assert course_clearance(path, ghost, CARL).fits
    assert course_clearance(path, walker, CARL).fits


def test_a_captured_place_without_anything_to_hit_is_hit_where_it_is_opaque() -> None:
    """Gaussians in a wall at x = 3 m, no mesh: their surface stands in the way."""
    y, z = (a.ravel() for a in np.meshgrid(np.arange(-1, 1, 0.05), np.arange(0, 2, 0.05)))
    count = len(y)
    splats = Splats(
        np.stack([np.full(count, 3.0), y, z], 1),
        np.tile([0.0, 0.0, 0.0, 1.0], (count, 1)),
        np.full((count, 3), 0.04),
        np.full(count, 0.99),
        np.zeros((count, 1, 3)),
    )
    scene = add_splats(Scene("capture", bounds=EVERYWHERE), splats, "wall")
    (touch, *_) = course_clearance(along((0, 0, 1), (5, 0, 1)), scene, CARL).touches
    assert touch.thing == "the captured surface"
    assert touch.position[0] == pytest.approx(3.0 - RADIUS, abs=0.2)
    assert not solid_scene(scene).clouds


def test_things_without_a_name_are_called_by_their_class() -> None:
    scene = Scene("place", shapes={"a": Box((1, 1, 1))}, instances=(Instance("a", semantic="back_wall"),))
    assert thing_name(scene, 0) == "the back wall"
    assert thing_name(scene, -1) == ""


boxes = st.lists(
    st.tuples(
        st.tuples(*[st.floats(-3, 3)] * 3),
        st.tuples(*[st.floats(0.02, 0.8)] * 3),
    ),
    min_size=1,
    max_size=4,
)
points = st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=2, max_size=4, unique=True)


def _signed(p: Any, center: Any, half: Any) -> Any:
    """Signed distance of points from a box: the textbook's formula."""
    q = np.abs(p - np.asarray(center)) - np.asarray(half)
    return np.linalg.norm(np.maximum(q, 0.0), axis=-1) + np.minimum(q.max(-1), 0.0)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(boxes, points)
def test_dense_samples_find_nothing_that_was_missed(given_boxes: Any, given_points: Any) -> None:
    """The least of 20,000 samples is never below what was found by more than a step moves, nor what was found below that."""
    path = from_waypoints([tuple(map(float, p)) for p in given_points], Limits(speed=2.0, acceleration=4.0), evaluations=1)
    scene = place(*[(c, h, f"box{k}") for k, (c, h) in enumerate(given_boxes)])
    found = course_clearance(path, scene, CARL)
    t = np.linspace(0.0, path.duration, 20_001)
    p = path.sample(t).position
    dense = np.min([_signed(p, c, h) for c, h in given_boxes], axis=0) - RADIUS
    step = float(np.linalg.norm(np.diff(p, axis=0), axis=-1).max())
    least = min(float(dense.min()), FAR)
    assert min(found.gap, FAR) <= least + FINEST + 1e-6
    assert min(found.gap, FAR) >= least - step - 1e-6
    if least < -SLACK - step:
        assert found.touches
        first = t[np.argmax(dense < -SLACK - step)]
        assert found.touches[0].begin <= first + 1e-9
    if least > -SLACK + step:
        assert not found.touches


@settings(max_examples=20, deadline=None)
@given(st.tuples(*[st.floats(-2, 2)] * 3))
def test_moving_course_and_place_together_changes_nothing(offset: Any) -> None:
    path = along((0, 0, 1), (2, 1, 1), (3, -2, 1))
    center = tuple(a + b for a, b in zip(WALL[0], offset, strict=True))
    here = course_clearance(path, place(WALL), CARL)
    there = course_clearance(path.moved(offset), place((center, *WALL[1:])), CARL)
    assert there.gap == pytest.approx(here.gap, abs=1e-6)
    assert there.time == pytest.approx(here.time, abs=1e-3)


def test_checks_refuse_warn_or_do_not_look() -> None:
    path, scene = along((0, 0, 1), (5, 0, 1)), place(WALL)
    with pytest.raises(AirworthyError) as caught:
        check_course(path, scene, [CARL], "wall", "refuse", "go round")
    x = course_clearance(path, scene, CARL).touches[0]
    assert str(caught.value) == (
        f"The course 'wall' takes 'carl' into 'wall' of 'place' at {x.begin:.2f} s, at (3.3, 0, 1) m: its centre is 0.05 m"
        f" inside at {x.nearest_time:.2f} s: go round."
    )
    with pytest.warns(AssetWarning, match=r"takes 'carl' into 'wall' of 'place' at .* inside at [0-9.]+ s\.$"):
        check_course(path, scene, [CARL], "wall", "warn", "go round")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_course(path, scene, [CARL], "wall", "none", "go round")
        check_course(along((0, 0, 1), (25, 0, 1)), place(), [CARL], "far", "refuse", "stay", bounds=False)
    with pytest.raises(AirworthyError, match="leaves the bounds of 'place'"):
        check_course(along((0, 0, 1), (25, 0, 1)), place(), [CARL], "far", "refuse", "stay")
    # The largest body of several decides.
    wide = replace(CARL, name="wide", body=CollisionBody("sphere", (0.6, 0.6, 0.6)))
    beside = along((3.45 - 0.5, -2, 1), (3.45 - 0.5, 2, 1))
    with pytest.raises(AirworthyError, match="takes 'wide' into"):
        check_course(beside, scene, [CARL, wide], "beside", "refuse", "stay")
