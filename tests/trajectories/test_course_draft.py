"""A course while it is drawn: operations, undoing them, and the course file that comes of it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError
from airworthy.trajectories import (
    Course,
    CourseDraft,
    DraftHistory,
    Limits,
    course,
    parse_points,
    prove,
    read_course,
    write_course,
)

ANGLE = ((0.0, 0.0, 1.0), (2.0, 0.0, 1.0), (2.0, 2.0, 1.5))


class TestOperations:
    def test_points_are_added_moved_inserted_and_removed(self) -> None:
        draft = CourseDraft().added((0, 0, 1)).added((2, 0, 1))
        assert draft.added((1, 1, 1), 0).points[0] == (1.0, 1.0, 1.0)
        assert draft.inserted((1.0, 0.4, 1.0)).points == ((0, 0, 1), (1.0, 0.4, 1.0), (2, 0, 1))
        assert draft.moved(1, (2, 1, 1)).points == ((0, 0, 1), (2, 1, 1))
        assert draft.removed(0).points == ((2, 0, 1),)
        assert draft.flipped().points == ((2, 0, 1), (0, 0, 1))
        assert draft.points == ((0, 0, 1), (2, 0, 1))  # the draft itself stays

    def test_a_point_goes_between_the_two_whose_leg_is_nearest(self) -> None:
        draft = CourseDraft(ANGLE)
        assert draft.nearest_leg((1.0, -0.2, 1.0)) == 0
        assert draft.nearest_leg((2.1, 1.0, 1.0)) == 1
        assert draft.inserted((2.1, 1.0, 1.0)).points[2] == (2.1, 1.0, 1.0)

    def test_headings_stay_with_their_way_points(self) -> None:
        draft = CourseDraft(ANGLE).turned(1, 0.5)
        assert draft.yaws == (None, 0.5, None)
        assert draft.added((-1, 0, 1), 0).yaws == (None, None, 0.5, None)
        assert draft.removed(0).yaws == (0.5, None)
        assert draft.flipped().yaws == (None, 0.5, None)
        assert draft.turned(1, None) == CourseDraft(ANGLE)

    def test_headings_that_nobody_set_follow_the_way(self) -> None:
        assert CourseDraft(ANGLE).headings() == pytest.approx((0.0, math.pi / 4, math.pi / 2))
        assert CourseDraft(ANGLE, (1.0, None, None)).headings()[0] == 1.0
        # Straight up, there is no way to follow: the heading before is kept.
        up = CourseDraft(((0, 0, 0), (0, 1, 0), (0, 1, 1), (0, 1, 2)))
        assert up.headings() == pytest.approx((math.pi / 2,) * 4)

    def test_limits_change_one_by_one(self) -> None:
        draft = CourseDraft(limits=Limits(speed=2.0, acceleration=3.0))
        assert draft.limited(speed=1.0).limits == Limits(speed=1.0, acceleration=3.0)
        assert draft.limited(acceleration=None).limits == Limits(speed=2.0)
        with pytest.raises(AirworthyError, match="There is no limit 'pace'"):
            draft.limited(pace=1.0)
        with pytest.raises(AirworthyError, match="'speed' must be positive"):
            draft.limited(speed=-1.0)

    @pytest.mark.parametrize(
        ("draft", "said"),
        [
            (CourseDraft(), "needs two way-points or more, and this one has 0"),
            (CourseDraft(ANGLE[:1]), "this one has 1"),
            (CourseDraft((*ANGLE, ANGLE[-1])), r"Way-points 3 and 4 are at one place, \(2, 2, 1.5\) m"),
            (CourseDraft(ANGLE, limits=Limits(jerk=5.0)), "arbitrarily fast"),
        ],
    )
    def test_what_cannot_be_planned_says_why(self, draft: CourseDraft, said: str) -> None:
        with pytest.raises(AirworthyError, match=said):
            draft.course()

    def test_numbers_that_are_none(self) -> None:
        with pytest.raises(AirworthyError, match="expected x, y, z in metres"):
            CourseDraft(((0.0, float("nan"), 1.0),))
        with pytest.raises(AirworthyError, match="A heading is nan"):
            CourseDraft(ANGLE).turned(0, float("nan"))
        with pytest.raises(AirworthyError, match="There is no way-point 5 in a course of 3"):
            CourseDraft(ANGLE).moved(4, (0, 0, 0))
        with pytest.raises(AirworthyError, match="has 2 headings"):
            CourseDraft(ANGLE, (None, None))


class TestFiles:
    def test_a_drawn_course_is_a_course_file(self, tmp_path: Path) -> None:
        draft = CourseDraft(ANGLE, (None, 0.5, None), Limits(speed=1.2, acceleration=2.0), "round")
        write_course(draft.course(), tmp_path / "round.json")
        read = read_course(tmp_path / "round.json")
        assert CourseDraft.from_course(read).points == draft.points
        path = read.trajectory()
        assert prove(path, draft.limits).verdict != "violated"
        np.testing.assert_allclose(path.sample(path.knots).position, ANGLE, atol=1e-9)
        np.testing.assert_allclose(path.sample(path.knots).yaw, draft.headings(), atol=1e-6)

    def test_along_the_path_everywhere_stays_so(self) -> None:
        assert CourseDraft(ANGLE).course().waypoint_yaw == "forward"
        assert CourseDraft.from_course(CourseDraft(ANGLE).course()) == CourseDraft(ANGLE)
        fixed = Course("x", "waypoints", waypoints=ANGLE, waypoint_yaw="fixed")
        assert CourseDraft.from_course(fixed).yaws == (0.0, 0.0, 0.0)

    def test_other_courses_are_not_drawn_on_with(self) -> None:
        with pytest.raises(AirworthyError, match="only courses of way-points can be drawn on with"):
            CourseDraft.from_course(course("infinity"))
        with pytest.raises(AirworthyError, match="has 2 laps"):
            CourseDraft.from_course(Course("x", "waypoints", waypoints=ANGLE, lap_count=2))


class TestHistory:
    def test_steps_are_undone_and_done_again(self) -> None:
        history = DraftHistory()
        for point in ANGLE:
            history.do(history.now.added(point))
        assert history.undo()
        assert history.now.points == ANGLE[:2]
        assert history.redo()
        assert not history.redo()
        assert history.now.points == ANGLE
        history.undo()
        history.do(history.now.removed(0))
        assert not history.redo()  # another way was taken
        while history.undo():
            pass
        assert history.now == CourseDraft()

    def test_nothing_changed_is_no_step(self) -> None:
        history = DraftHistory(CourseDraft(ANGLE))
        history.do(CourseDraft(ANGLE))
        assert not history.undo()

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.integers(0, 3), max_size=30))
    def test_undoing_everything_leads_back(self, steps: list[int]) -> None:
        """Whatever was done, as many undos lead to the first draft, and redos to the last."""
        first = CourseDraft(ANGLE)
        history, rng = DraftHistory(first), np.random.default_rng(len(steps))
        for step in steps:
            draft, k = history.now, int(rng.integers(max(len(history.now), 1)))
            if step == 0 or not len(draft):
                history.do(draft.added(rng.uniform(-3, 3, 3)))
            else:
                history.do([draft.moved(k, rng.uniform(-3, 3, 3)), draft.removed(k), draft.turned(k, 0.1)][step - 1])
        last = history.now
        while history.undo():
            pass
        assert history.now == first
        while history.redo():
            pass
        assert history.now == last


class TestText:
    def test_points_of_a_line(self) -> None:
        assert parse_points("0 0 1; 2, 0, 1.2 ;") == ((0.0, 0.0, 1.0), (2.0, 0.0, 1.2))

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("0 0 1; 2 0", "Way-point 2 is '2 0'"),
            ("0 0 up; 2 0 1", "Way-point 1 is '0 0 up'"),
            ("0 0 1; 2 nan 1", "Way-point 2 is '2 nan 1'"),
            ("0 0 1e9; 1 1 1", "Way-point 1 is"),
            ("0 0 1", "holds 1 way-points"),
            (";", "holds 0 way-points"),
        ],
    )
    def test_mistakes(self, text: str, said: str) -> None:
        with pytest.raises(AirworthyError, match=said):
            parse_points(text)
