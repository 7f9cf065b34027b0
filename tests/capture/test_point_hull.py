"""How far a place reaches: the hull of points and cameras, in closed form, and a ceiling that splats know nothing of."""

from __future__ import annotations

import numpy as np
import pytest
from tests.capture.place_building import HIGH, LENS, LOW, depth_of, exact_views, wall_points

from airworthy.capture.places.carving import carve, known_states
from airworthy.capture.places.point_hull import PointHull, bounded_states, ends_beyond, point_hull, walled
from airworthy.core import frames
from airworthy.scenes.carved import FREE, UNKNOWN

CELL = 0.1
MIDDLE = 0.5 * (LOW + HIGH)


@pytest.fixture(scope="module")
def hull() -> PointHull:
    found = point_hull(wall_points(), MIDDLE[None])
    assert found is not None
    return found


def test_the_hull_of_a_box_is_the_box(hull: PointHull) -> None:
    assert len(hull.offsets) == 6
    np.testing.assert_allclose(np.linalg.norm(hull.normals, axis=1), 1.0, atol=1e-12)
    place = np.random.default_rng(0).uniform(LOW - 1.0, HIGH + 1.0, (500, 3))
    np.testing.assert_allclose(hull.beyond(place), np.maximum(LOW - place, place - HIGH).max(axis=1), atol=1e-9)


def test_strays_do_not_count_and_cameras_do(hull: PointHull) -> None:
    strays = [[5.0, 0.0, 1.0], [0.0, 0.0, 9.0], [0.0, 0.02, 9.0], [np.nan, 0.0, 0.0]]
    with_strays = point_hull(np.concatenate([wall_points(), strays]), MIDDLE[None])
    assert with_strays is not None
    np.testing.assert_allclose(with_strays.offsets, hull.offsets)
    camera = point_hull(wall_points(), np.array([[0.0, 0.0, 3.0]]))
    assert camera is not None
    assert camera.beyond(np.array([[0.0, 0.0, 2.9]]))[0] < 0.0 < hull.beyond(np.array([[0.0, 0.0, 2.9]]))[0]


def test_too_few_points_and_a_single_plane_tell_nothing() -> None:
    assert point_hull(None, MIDDLE[None]) is None
    assert point_hull(wall_points()[:99], MIDDLE[None]) is None
    floor = wall_points()
    assert point_hull(floor[floor[:, 2] == LOW[2]], np.array([[0.0, 0.0, LOW[2]]])) is None


def test_nothing_is_free_above_a_ceiling_that_only_points_know(hull: PointHull) -> None:
    """Splats end 2 m above the ceiling, in all views alike: no depth contradicts another."""
    views = exact_views(60, ceiling=HIGH[2] + 2.0)
    lower, upper = LOW - 0.3, HIGH + np.array([0.3, 0.3, 2.3])
    states = known_states(carve(views, lower, upper, CELL), len(views), wall_points())
    height = lower[2] + CELL * (np.arange(states.shape[2]) + 0.5)
    above = height > HIGH[2]
    assert np.count_nonzero(states[..., above] == FREE) > 1000
    bounded = bounded_states(states, lower, CELL, hull)
    assert not (bounded[..., above] == FREE).any()
    # All that lies in the room is kept, and what is no longer free is unknown.
    assert np.array_equal(bounded[..., ~above], states[..., ~above])
    assert (bounded[bounded != states] == UNKNOWN).all()


def test_nothing_is_free_behind_a_mirror(hull: PointHull) -> None:
    """It fills the wall at the highest x; the room behind it is seen as far as this one, and points lie all over it, too."""
    views = exact_views(60, window=(np.array([-1.4, 0.1]), np.array([1.4, 2.3])))
    lower, upper = LOW - 0.3, HIGH + np.array([3.3, 0.3, 0.3])
    mirrored = wall_points() * [-1.0, 1.0, 1.0] + [2.0 * HIGH[0], 0.0, 0.0]
    points = np.concatenate([wall_points(), mirrored])
    states = known_states(carve(views, lower, upper, CELL), len(views), points)
    at = lower[0] + CELL * (np.arange(states.shape[0]) + 0.5)
    wide = point_hull(points, MIDDLE[None])
    assert wide is not None
    assert np.count_nonzero(bounded_states(states, lower, CELL, wide)[at > HIGH[0] + CELL] == FREE) > 1000
    mirror = (np.array([-1.0, 0.0, 0.0]), -float(HIGH[0]))
    for whole in (wide, None):
        ended = walled(whole, [mirror])
        assert ended is not None
        bounded = bounded_states(states, lower, CELL, ended)
        assert not (bounded[at > HIGH[0]] == FREE).any()
        assert np.count_nonzero(bounded[at < HIGH[0]] == FREE) > 0.95 * np.count_nonzero(states[at < HIGH[0]] == FREE)
    assert walled(hull, []) is hull


def test_rays_that_end_beyond_all_points_are_counted(hull: PointHull) -> None:
    views = exact_views(60, ceiling=HIGH[2] + 2.0)
    up = total = 0
    for eye, attitude in zip(views.position, views.attitude, strict=True):
        depth = depth_of(eye, attitude)
        height, width = depth.shape
        u, v = np.meshgrid((np.arange(width) + 0.5 - LENS[2]) / LENS[0], (np.arange(height) + 0.5 - LENS[3]) / LENS[1])
        ends = eye + frames.rotate(attitude, np.stack((u, v, np.ones_like(u)), -1) * depth[..., None])
        # At the ceiling: with none there they go on, to its height 2 m above or to a wall's plane beneath.
        far = depth_of(eye, attitude, ceiling=HIGH[2] + 2.0)
        risen = eye[2] + (ends[..., 2] - eye[2]) * far / depth
        up += int(np.count_nonzero(risen > HIGH[2] + 0.2))
        total += depth.size
    assert ends_beyond(views, hull, 0.2) == pytest.approx(up / total, abs=1e-4)
    assert up / total > 0.05
    assert ends_beyond(exact_views(60), hull, 0.2) == 0.0
