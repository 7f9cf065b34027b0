"""Courses by name, of the hall's race and of others."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.core.files import data_dir
from airworthy.race import check_race, course_of, courses_of, gate_shape, load_race, perturbed, placed
from airworthy.scenes import scene
from airworthy.scenes.generators.halls import course_frames


def test_the_hall_and_the_referee_have_the_same_gates() -> None:
    race = load_race("alphapilot")
    for name in ("nominal", "published/7", "fresh/10000/3", "bounds/4/5"):
        course = course_of(race, name)
        for gate, frame in zip(course.gates, course_frames(name), strict=True):
            np.testing.assert_array_equal(gate.corners, frame.corners)
            assert frame.direction is not None
            # The frame's is computed from its own corners as well, by another way.
            np.testing.assert_allclose(gate_shape(gate).normal, frame.direction, atol=1e-5)
    hall = scene("alphapilot:published/7")
    assert tuple(gate.corners for gate in course_of(race, "published/7").gates) == tuple(gate.corners for gate in hall.gates)


def test_published_courses_are_the_published_ones() -> None:
    folder = data_dir()
    if folder is None:
        pytest.skip("AIRWORTHY_DATA is unset")
    given = json.loads((folder / "flightgoggles" / "alphapilot_courses.json").read_text())["courses"]
    courses = courses_of(load_race("alphapilot"), "published:0-24")
    assert len(courses) == len(given) == 25
    for course, published in zip(courses, given, strict=True):
        for gate in course.gates:
            np.testing.assert_allclose(gate.corners, published["gates"][gate.name]["corners_m"], atol=1e-4)


@pytest.mark.slow
def test_boxes_of_the_halls_gates_never_overlap() -> None:
    """Of the loose test, in every course at the bounds: no position is in two gates, so nothing hangs on what then happens."""
    for course in courses_of(load_race("alphapilot"), "bounds,published,nominal"):
        corners = np.array([gate.corners for gate in course.gates])
        low, high = corners.min(axis=1) - 0.1, corners.max(axis=1) + 0.1
        meet = np.all((low[:, None] < high[None]) & (low[None] < high[:, None]), axis=-1)
        assert meet.sum() == len(course.gates)


def test_other_races_have_drawn_courses() -> None:
    race = load_race("lsy_2")
    assert course_of(race, "nominal") is race
    assert course_of(race, "fresh/3/1") == perturbed(race, 3, 1)
    assert len(courses_of(race, "fresh:3/5,nominal")) == 6
    drawn = load_race("lsy_3")
    course = course_of(drawn, "fresh/3/1")
    check_race(course)
    nominal = placed(drawn, 3, 1)
    assert course.layout == nominal.layout
    for gate, told in zip(course.gates, nominal.gates, strict=True):
        away = np.abs(gate_shape(gate).center - gate_shape(told).center)
        assert np.all(away <= [0.15 + 1e-9, 0.15 + 1e-9, 0.1 + 1e-9])


@pytest.mark.parametrize("name", ["published/3", "bounds/0/0", "fresh/1", "fresh/a/b", "monza"])
def test_courses_that_a_race_has_not(name: str) -> None:
    with pytest.raises(AirworthyError, match="The race 'lsy_2' has no course"):
        course_of(load_race("lsy_2"), name)


def test_another_race_may_be_held_in_the_hall() -> None:
    """Some of its gates in another order, where the hall has them."""
    whole = load_race("alphapilot")
    race = replace(whole, name="back", order=("Gate6", "Gate10"), gates=(whole.gate("Gate10"), whole.gate("Gate6")))
    check_race(race)
    course = course_of(race, "published/7")
    assert [gate.corners for gate in course.gates] == [course_of(whole, "published/7").gates[k].corners for k in (0, 10)]
    strange = replace(race, gates=(race.gates[0], replace(race.gates[1], name="Gate66")), order=("Gate66", "Gate10"))
    with pytest.raises(AirworthyError, match=r"Unknown gate of the scene 'alphapilot' 'Gate66'"):
        course_of(strange, "nominal")


def test_a_race_of_which_nothing_is_drawn_has_one_course() -> None:
    for name in ("lsy_0", "a2rl", "random:3"):
        race = load_race(name)
        assert course_of(race, "nominal") is race
        with pytest.raises(AirworthyError, match=r"Nothing of the race .* is drawn: its one course is nominal"):
            courses_of(race, "fresh:0/3")
    assert [load_race(name).is_drawn for name in ("lsy_1", "lsy_2", "lsy_3", "alphapilot")] == [True] * 4


def test_courses_that_nobody_has() -> None:
    with pytest.raises(AirworthyError, match="published/25"):
        course_of(load_race("alphapilot"), "published/25")
    with pytest.raises(AirworthyError, match="are those of its scene"):
        perturbed(load_race("alphapilot"), 0, 0)


@pytest.mark.parametrize(
    ("name", "said"), [(3, "expected text, as 'nominal'"), (None, "expected text"), (["a"], "expected text")]
)
def test_courses_that_are_no_text_are_refused(name: Any, said: str) -> None:
    race = load_race("alphapilot")
    for call in (course_of, courses_of):
        with pytest.raises(AirworthyError, match=said):
            call(race, name)
        with pytest.raises(AirworthyError, match="expected a race, as of `load_race`"):
            call("alphapilot", "nominal")  # type: ignore[arg-type]
