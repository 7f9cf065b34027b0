"""Courses from recorded walks, and what a course asks and leaves place by place: against distances worked by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.geometry import Box
from airworthy.scenes import Instance, Region, Scene
from airworthy.tasks import CourseRoom, WalkOptions, course_clearance, course_margins, course_walk, walk_course
from airworthy.tasks.course_fit import SLACK
from airworthy.tasks.course_walk import ROTOR_SHARE
from airworthy.tasks.walk_detour import detoured
from airworthy.trajectories import Limits, from_waypoints
from airworthy.vehicles import indicators, vehicle

CARL = vehicle("carl")
RADIUS = 0.15
"""Of its ball [m]."""
LIMITS = Limits(speed=1.0, acceleration=2.0)
WALL = Scene(
    "place",
    {"wall": Box((0.05, 2.0, 2.0))},
    instances=(Instance("wall", (0.0, 0.0, 1.0), name="wall"),),
    bounds=Region((-4.0, -4.0, 0.0), (4.0, 4.0, 3.0)),
)
"""Its faces are at x = -0.05 and 0.05 m, its ends at y = -2 and 2 m."""

BLOCK = Scene(
    "place",
    {"block": Box((1.0, 1.0, 2.0))},
    instances=(Instance("block", (0.0, 0.0, 1.0), name="block"),),
    bounds=Region((-5.0, -4.0, 0.0), (5.0, 4.0, 2.5)),
)
"""From x, y = -1 to 1 m, up to the ceiling."""


def walk(*corners: Any, count: int = 60, shake: float = 0.02) -> np.ndarray:
    """Places along straight lines, by a hand that shakes [m]."""
    along = np.linspace(0.0, len(corners) - 1, count)
    points = np.array(corners, float)
    line = np.stack([np.interp(along, np.arange(len(points)), points[:, k]) for k in range(3)], axis=1)
    return line + np.random.default_rng(3).normal(0.0, shake, line.shape)


class TestMargins:
    def test_a_straight_course(self) -> None:
        path = from_waypoints(((-3, 0.65, 1), (-3, -0.65, 1)), LIMITS)
        found = course_margins(path, LIMITS, CARL, CourseRoom(WALL, CARL), 201)
        np.testing.assert_allclose(found.gap, 3.0 - 0.05 - RADIUS, atol=1e-9)  # 2.95 m from the face
        assert found.speed.max() == pytest.approx(1.0, rel=1e-2)
        assert found.used.max() == pytest.approx(1.0, rel=1e-2)
        assert found.inside.all()
        # Every rotor carries its part of the weight, and a little more where it speeds up: |a + g| is up to 2 % more than g.
        hover = 1.0 / indicators(CARL).thrust_to_weight
        assert hover * 0.98 < found.rotor_share.min() < found.rotor_share.max() < 1.1 * hover
        assert course_margins(path, LIMITS, CARL, None, 5).gap == pytest.approx([np.nan] * 5, nan_ok=True)

    def test_outside_of_the_place_is_told(self) -> None:
        path = from_waypoints(((-3, 0, 1), (-5, 0, 1)), LIMITS)
        found = course_margins(path, LIMITS, CARL, CourseRoom(WALL, CARL), 101)
        np.testing.assert_array_equal(found.inside, found.position[:, 0] >= -4.0 - SLACK)

    def test_a_room_answers_as_the_function_does(self) -> None:
        path = from_waypoints(((-3, 0, 1), (-1, 0.5, 1.2), (-0.4, 1.0, 1)), LIMITS)
        room = CourseRoom(WALL, CARL)
        assert room.clearance(path) == course_clearance(path, WALL, CARL)
        assert room.clearance(path) == room.clearance(path)


class TestWalks:
    @pytest.mark.slow
    def test_a_walk_is_flown_as_slowly_as_rotors_ask_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Round a block at a speed that sharp bends do not bear; what they bear is not slowed, nor a walk of nobody."""
        corners = ((-3.0, -2.0, 1.0), (3.0, -2.0, 1.0), (3.0, 2.0, 1.0), (-3.0, 2.0, 1.0))
        fast, room = Limits(speed=12.0, acceleration=60.0), CourseRoom(BLOCK, CARL)

        def asked(limits: Limits, place: CourseRoom | None) -> tuple[float, Limits]:
            made = walk_course(walk(*corners, shake=0.0), place, WalkOptions(clear=0.2, smooth=0.1), limits)
            draft = made.draft
            assert draft.limits.speed == pytest.approx(limits.speed / made.slower)  # type: ignore[operator]
            path = draft.course().trajectory()
            samples = round(20.0 * path.duration) + 1
            return float(course_margins(path, Limits(), CARL, samples=samples).rotor_share.max()), draft.limits

        share, kept = asked(fast, None)
        assert share > 1.0
        assert kept == fast
        share, slowed = asked(fast, room)
        assert 0.5 < share <= ROTOR_SHARE
        assert slowed.speed is not None
        assert slowed.acceleration is not None
        assert slowed.speed < 12.0
        assert slowed.acceleration == pytest.approx(60.0 * (slowed.speed / 12.0) ** 2)
        assert asked(LIMITS, room)[1] == LIMITS
        monkeypatch.setattr(course_walk, "_SLOWER_MOST", 3)
        with pytest.warns(AssetWarning, match=r"asks \d+ % of what a rotor of 'carl' gives, also 1.3 times slower"):
            asked(fast, room)

    def test_a_walk_becomes_few_way_points(self) -> None:
        """A shaking hand along an L of 6 m: its corner is rounded by less than `smooth`, its ends stay."""
        found = walk_course(walk((-3, -3, 1.5), (-3, 0, 1.5), (-1, 3, 1.5)), None, None, LIMITS)
        points = np.array(found.draft.points)
        assert 3 <= len(points) <= 8
        np.testing.assert_allclose(points[0], (-3, -3, 1.5), atol=0.08)
        np.testing.assert_allclose(points[-1], (-1, 3, 1.5), atol=0.08)
        assert np.linalg.norm(points - np.array([-3, 0, 1.5]), axis=1).min() < 0.3
        assert (found.recorded, found.moved, found.clearance) == (60, 0, None)
        assert found.draft.limits == LIMITS

    def test_a_walk_too_near_is_moved_away(self) -> None:
        """0.3 m beside the wall's face there are 0.15 m for the ball; 0.5 m are asked for, so that its middle goes to 0.7 m."""
        found = walk_course(
            walk((0.35, -1.5, 1), (0.35, 1.5, 1), shake=0.0), CourseRoom(WALL, CARL), WalkOptions(clear=0.5), LIMITS
        )
        assert found.clearance is not None
        assert found.clearance.gap >= 0.48
        assert (found.moved, found.led, found.aside) == (len(found.draft), 0, 0.0)
        assert found.farthest == pytest.approx(0.35, abs=0.03)
        path = found.draft.course().trajectory()
        assert course_clearance(path, WALL, CARL).gap == pytest.approx(found.clearance.gap)

    def test_the_flown_path_keeps_the_room_between_way_points_too(self) -> None:
        """Round the wall's end: with few way-points the trajectory would cut the corner."""
        rounds = walk((-1, 0, 1), (-1, 2.6, 1), (1, 2.6, 1), (1, 0, 1), shake=0.0)
        found = walk_course(rounds, CourseRoom(WALL, CARL), WalkOptions(clear=0.4, detail=0.5), LIMITS)
        assert found.clearance is not None
        assert found.clearance.fits
        assert found.clearance.gap >= 0.38

    def test_what_is_deep_in_something_is_led_round(self) -> None:
        """Through a block of 2 x 2 m, 0.8 m beside its face at y = 1: farther than points are pushed, so round its corner."""
        room = CourseRoom(BLOCK, CARL)
        found = walk_course(walk((-4, 0.2, 1), (4, 0.2, 1), shake=0.0), room, WalkOptions(clear=0.3), LIMITS)
        assert found.clearance is not None
        assert found.clearance.gap >= 0.28
        # From 0.45 m before its face at x = -1 to as far behind that at x = 1, up to the spacing of the walk's points.
        assert found.around == pytest.approx(2.9, abs=0.2)
        points = np.array(found.draft.points)
        # Nothing was pushed: all that lies beside the walk, which is straight, follows the way round.
        assert (found.moved, found.farthest) == (0, 0.0)
        assert found.led >= np.count_nonzero(np.abs(points[:, 1] - 0.2) > 1e-9) >= 2
        assert found.aside == pytest.approx(np.abs(points[:, 1] - 0.2).max(), abs=0.03)
        np.testing.assert_allclose(points[[0, -1]], ((-4, 0.2, 1), (4, 0.2, 1)), atol=1e-6)
        assert points[:, 1].max() == pytest.approx(1.0 + 0.45, abs=0.25)  # within a cell and a half of the tightest way
        assert len(points) <= 12
        # The walk until a metre before the block's room, straight to the corner of that, along it, and back in the same way.
        corner = 1.0 + 0.45
        straight = 2.0 * (4.0 - corner - 1.0 + np.hypot(1.0, corner - 0.2) + corner)
        assert found.draft.course().trajectory().length() < 1.08 * straight

    def test_ends_that_are_left_out_are_not_moved(self) -> None:
        """The walk leads into the block, through its middle: its room ends 1.45 m before that, 2.05 m before the walk's end."""
        found = walk_course(walk((-4, 0.2, 1), (0.6, 0.2, 1), shake=0.0), CourseRoom(BLOCK, CARL), WalkOptions(), LIMITS)
        assert (found.moved, found.farthest, found.led, found.aside) == (0, 0.0, 0, 0.0)
        assert found.around == pytest.approx(2.05, abs=0.06)
        assert found.draft.points[-1] == pytest.approx((-1.45, 0.2, 1.0), abs=0.06)

    def test_ends_without_room_are_left_out(self) -> None:
        way = walk((-2, 0, 1), (-4, 0, 1), count=41, shake=0.0)
        good = (way[:, 0] <= -2.5) & (way[:, 0] >= -3.5)
        led = detoured(way, good, CourseRoom(BLOCK, CARL), 0.45, flat=False)
        assert led is not None
        assert np.ptp(led, axis=0) == pytest.approx((1.0, 0.0, 0.0))
        np.testing.assert_array_equal(led[good], way[good])
        assert detoured(way, np.zeros(41, bool), CourseRoom(BLOCK, CARL), 0.45, flat=False) is None

    def test_one_height_for_all(self) -> None:
        found = walk_course(walk((-3, -3, 1.2), (-3, 3, 1.8)), CourseRoom(WALL, CARL), WalkOptions(height=1.0), LIMITS)
        assert {point[2] for point in found.draft.points} == {1.0}

    def test_looking_where_the_camera_looked(self) -> None:
        places = walk((-3, -3, 1.2), (-3, 3, 1.2), shake=0.0)
        heading = np.linspace(3.0, 3.5, len(places))  # over the seam at pi
        found = walk_course(places, None, WalkOptions(look="camera", detail=0.05), LIMITS, heading=heading)
        first, last = found.draft.yaws[0], found.draft.yaws[-1]
        assert first is not None
        assert last is not None
        assert last - first == pytest.approx(0.5, abs=0.02)
        with pytest.raises(AirworthyError, match="Where the cameras looked is not known"):
            walk_course(places, None, WalkOptions(look="camera"), LIMITS)

    @pytest.mark.parametrize(
        ("places", "options", "said"),
        [
            (np.zeros((1, 3)), None, "two or more"),
            (np.full((9, 3), np.nan), None, "all of them finite"),
            (np.random.default_rng(1).normal(0, 0.05, (40, 3)), None, "which is no walk"),
            (np.random.default_rng(1).uniform(-3, 3, (400, 3)), None, "do not follow each other as in a walk"),
            (walk((10, 0, 1), (14, 0, 1)), None, "60 of 60 cameras of a recorded walk are outside of 'place'"),
            (walk((-3, 0, 1), (3, 0, 1)), WalkOptions(clear=5.0), "of room, and 5 m are asked for"),
        ],
    )
    def test_what_is_no_walk(self, places: Any, options: WalkOptions | None, said: str) -> None:
        with pytest.raises(AirworthyError, match=said):
            walk_course(places, CourseRoom(WALL, CARL), options, LIMITS)

    def test_options_are_checked(self) -> None:
        with pytest.raises(AirworthyError, match="detail"):
            WalkOptions(detail=0.0)
