"""Drawing a course: what clicks, drags and buttons make of it, without a browser; and with one that clicks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser")

from tests.viewer.chromium import PROGRAM, Page, until

from airworthy.geometry import Box
from airworthy.scenes.record import Instance, Pose, Region, Scene
from airworthy.tasks import CourseRoom
from airworthy.trajectories import CourseDraft, Limits, read_course
from airworthy.vehicles import vehicle
from airworthy.viewer import Subject, Viewer
from airworthy.viewer.drawing.course_drawing import CLICKS, PLACES, CourseDrawing, course_facts, place_of_click, plan_draft
from airworthy.viewer.drawing.course_nodes import COLORED_BY, path_colors, scale_text
from airworthy.viewer.newest import NewestWorker
from airworthy.viewer.picking import Picker

CARL = vehicle("carl")
SHAPES = {"floor": Box((4.0, 3.0, 0.05)), "wall": Box((0.05, 1.0, 1.5))}
HUT = Scene(
    "hut",
    SHAPES,
    instances=(Instance("floor", (0.0, 0.0, -0.05), name="floor"), Instance("wall", (0.5, 0.0, 1.5), name="partition")),
    bounds=Region((-4.0, -3.0, 0.0), (4.0, 3.0, 3.0)),
    start=Pose((-3.0, 0.0, 1.2)),
)
LIMITS = Limits(speed=1.5, acceleration=2.0)
AROUND = CourseDraft(((-3, 0, 1.2), (0.5, 1.8, 1.2), (3, 0, 1.2)), (), LIMITS, "round")
THROUGH = CourseDraft(((-3, 0, 1.2), (3, 0, 1.2)), (), LIMITS, "through")


@pytest.fixture(scope="module")
def room() -> CourseRoom:
    return CourseRoom(HUT, CARL)


class TestPlanning:
    def test_a_course_that_fits(self, room: CourseRoom) -> None:
        planned = plan_draft(AROUND, CARL, room)
        assert planned.clearance is not None
        assert planned.clearance.fits
        text = course_facts(planned)
        assert "| speed | up to 1.50 of 1.50 m/s |" in text
        assert f"| room | {planned.clearance.gap:.2f} m from 'partition'" in text

    def test_one_that_does_not(self, room: CourseRoom) -> None:
        planned = plan_draft(THROUGH, CARL, room)
        assert planned.clearance is not None
        assert planned.margins is not None
        assert "**touches** 'partition'" in course_facts(planned)
        colors = path_colors(planned.margins, "room")
        inside = planned.margins.gap < 0.0
        assert inside.any()
        np.testing.assert_array_equal(np.unique(colors[inside], axis=0), [[200, 20, 30]])  # red, and nothing else
        assert (colors[planned.margins.gap > 1.0] == [30, 110, 200]).all()

    def test_what_cannot_be_planned_says_why(self, room: CourseRoom) -> None:
        assert course_facts(plan_draft(CourseDraft(), CARL, room)).startswith("A course needs two way-points")

    def test_leaving_the_place_is_red_however_free_it_is_there(self, room: CourseRoom) -> None:
        planned = plan_draft(CourseDraft(((-3, -2, 1.2), (-6, -2, 1.2)), (), LIMITS), CARL, room)
        assert planned.margins is not None
        assert tuple(path_colors(planned.margins, "room")[-1]) == (200, 20, 30)
        assert "| bounds | left at" in course_facts(planned)

    @pytest.mark.parametrize("by", COLORED_BY)
    def test_every_colour_has_its_words(self, room: CourseRoom, by: str) -> None:
        planned = plan_draft(AROUND, CARL, room)
        assert planned.margins is not None
        assert scale_text(planned.margins, by)
        assert path_colors(planned.margins, by).shape == (len(planned.margins.time), 3)

    def test_without_a_place_there_is_no_room_to_tell(self) -> None:
        planned = plan_draft(AROUND, CARL, None)
        assert planned.margins is not None
        assert "room" not in course_facts(planned)
        assert scale_text(planned.margins, "room").startswith("red: a limit is reached")


class TestClicks:
    def test_on_a_plane_or_above_what_is_clicked(self) -> None:
        picker = Picker(HUT)
        down = ((-2.0, 0.0, 3.0), (0.0, 0.0, -1.0))
        point, why = place_of_click(*down, picker, PLACES[0], 1.2)
        assert (list(np.round(point, 9)), why) == ([-2.0, 0.0, 1.2], "")
        point, _ = place_of_click(*down, picker, PLACES[1], 0.8)
        assert point == pytest.approx((-2.0, 0.0, 0.8), abs=1e-6)

    def test_nothing_there(self) -> None:
        assert place_of_click((0, 0, 1), (0, 0, 1), Picker(HUT), PLACES[0], 0.5)[1].startswith("Nothing is at 0.5 m")
        assert place_of_click((0, 0, 1), (0, 0, 1), None, PLACES[1], 0.5)[1].startswith("Nothing was clicked")


@pytest.fixture
def drawing(server: Any, room: CourseRoom, tmp_path: Path) -> Iterator[CourseDrawing]:
    told: list[str] = []
    viewer = Viewer(server, Subject("hut", HUT))
    made = CourseDrawing(viewer, CARL, room, CourseDraft(limits=LIMITS, name="round"), tmp_path / "round.json", told.append)
    made.told = told  # type: ignore[attr-defined]
    yield made
    made.close()


def _down(drawing: CourseDrawing, x: float, y: float) -> None:
    drawing.click((x, y, 3.0), (0.0, 0.0, -1.0))


class TestDrawing:
    def test_clicks_draw_and_save_writes(self, drawing: CourseDrawing) -> None:
        for x, y in ((-3, 0), (0.5, 1.8), (3, 0)):
            _down(drawing, x, y)
        assert drawing.draft.points == AROUND.points  # at the height of the scene's start
        assert drawing.settle()
        assert drawing.planned.clearance is not None
        assert drawing.planned.clearance.fits
        assert {"/course/path", "/course/tight", "/course/points/2"} <= set(drawing.nodes.nodes)
        assert drawing.unsaved
        assert drawing.save()
        assert not drawing.unsaved
        assert read_course(drawing._out).waypoints == AROUND.points
        assert drawing.told == [f"Wrote {drawing._out}: round, 3 way-points."]  # type: ignore[attr-defined]

    def test_a_click_on_a_way_point_chooses_it(self, drawing: CourseDrawing) -> None:
        _down(drawing, -2.0, 0.0)
        _down(drawing, 2.0, 2.0)
        assert drawing.chosen == 1
        _down(drawing, -2.02, 0.01)
        assert (drawing.chosen, len(drawing.draft)) == (0, 2)

    def test_drags_are_one_step(self, drawing: CourseDrawing) -> None:
        _down(drawing, -2.0, 0.0)
        _down(drawing, 2.0, 2.0)
        for x in (1.8, 1.6, 1.5):
            drawing.drag((x, 2.0, 1.0), False)
        assert drawing.draft.points[1] == (2.0, 2.0, 1.2)
        drawing.drag((1.5, 2.0, 1.0), True)
        assert drawing.draft.points[1] == (1.5, 2.0, 1.0)
        drawing.undo()
        assert drawing.draft.points[1] == (2.0, 2.0, 1.2)
        drawing.undo(again=True)
        assert drawing.draft.points[1] == (1.5, 2.0, 1.0)

    def test_between_deleting_headings_and_limits(self, drawing: CourseDrawing) -> None:
        _down(drawing, -2.0, 0.0)
        _down(drawing, 2.0, 0.0)
        drawing._panel._clicks.value = CLICKS[1]
        _down(drawing, 0.0, 2.0)
        assert drawing.draft.points[1] == (0.0, 2.0, 1.2)
        drawing.edit(lambda draft: draft.turned(1, 0.5))
        assert "/course/headings" in drawing.nodes.nodes
        drawing.edit(lambda draft: draft.limited(speed=-1.0))
        assert "'speed' must be positive" in drawing._panel._words.content
        drawing.delete()  # the one that is chosen
        assert len(drawing.draft) == 2
        drawing.choose(None)
        drawing.delete()
        assert drawing.draft.points == ((-2.0, 0.0, 1.2),)
        assert not drawing.save()
        assert "needs two way-points" in drawing._panel._words.content

    def test_the_viewers_tools_take_clicks_first(self, drawing: CourseDrawing) -> None:
        drawing.viewer.tools.choice.value = "measures"
        _down(drawing, -2.0, 0.0)
        assert not len(drawing.draft)

    def test_what_does_not_fit_is_told(self, drawing: CourseDrawing) -> None:
        _down(drawing, -3.0, 0.0)
        _down(drawing, 3.0, 0.0)
        assert drawing.settle()
        assert "It does not fit: it touches 'partition'" in drawing._panel._words.content


def test_only_the_newest_wish_is_worked_on() -> None:
    begun, go, done = threading.Event(), threading.Event(), []

    def work(wish: int) -> None:
        begun.set()
        go.wait(10.0)
        done.append(wish)

    worker: NewestWorker[int] = NewestWorker(work, "test")
    worker.ask(1)
    begun.wait(10.0)
    for wish in (2, 3, 4):
        worker.ask(wish)
    assert not worker.idle
    go.set()
    assert worker.wait(10.0)
    worker.close()
    assert done == [1, 4]


@pytest.mark.slow
@pytest.mark.skipif(not PROGRAM.is_file(), reason="no Chromium")
def test_a_browser_draws_a_course(drawing: CourseDrawing, tmp_path: Path) -> None:
    """Three clicks into the picture are three way-points, and the panel says what is planned."""
    with Page(tmp_path / "profile", (1000, 700)) as page:
        page.open(drawing.viewer.url)
        page.until_text("click into the picture to begin")
        for k, (x, y) in enumerate(((200, 420), (330, 340), (400, 500))):
            for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
                button = "none" if kind == "mouseMoved" else "left"
                page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=1)
            until(lambda k=k: len(drawing.draft) > k)  # type: ignore[misc]
        page.until_text("3 way-points, not saved")
        page.until_text("busiest rotor")
    assert all(point[2] == 1.2 for point in drawing.draft.points)
