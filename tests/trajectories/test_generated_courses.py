"""Courses made to measure: inside the grid, closed where they should be, clear of themselves, the same every time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.gates.planner.window import RANGES, outside, route_of, situations_of
from airworthy.trajectories import course
from airworthy.trajectories.generated_courses import (
    APART,
    RandomCourse,
    circle_course,
    generated_course,
    random_course,
    snake_course,
    straight_course,
)


def _beyond(made) -> float:
    route = route_of(made.start, made.start_yaw, made.gates)
    # The last question looks at the stop point, 0.8 m on: inside by construction.
    return float(np.max(outside(situations_of(route), RANGES)))


@pytest.mark.parametrize("word", ["straight:8", "circle:8", "circle:12", "snake:10", "random:0", "random:5@7"])
def test_default_courses_lie_inside_the_papers_grid(word: str) -> None:
    made = generated_course(word)
    assert _beyond(made) == 0.0
    assert made.kind == "gates"
    assert len(made.gates) >= 8


def test_a_circle_closes_and_has_the_radius_of_its_formula() -> None:
    made = circle_course(12, 1.1, (0.3, 0.525), lap_count=2)
    points = np.array([gate.position for gate in made.gates])
    assert np.allclose(points[-1], made.start, atol=1e-12)  # float64 sums of twelve legs
    radius = 1.1 / (2.0 * math.sin(math.pi / 12))
    assert np.allclose(np.linalg.norm(points[:, :2] - points[:, :2].mean(axis=0), axis=1), radius, atol=1e-12)
    assert made.lap_count == 2


def test_the_circle_is_the_catalogues_but_for_where_it_lies() -> None:
    ours, theirs = circle_course(8, 1.0), course("circle_8")
    first, second = (
        situations_of(route_of(c.start, c.start_yaw, c.gates))[1:, 2:] for c in (ours, theirs)
    )  # the catalogue's start faces along +y, 45 degrees from its first leg, as ours
    assert np.allclose(first, second, atol=2e-6)  # the catalogue keeps six digits


def test_random_courses_are_functions_of_seed_and_index_and_keep_clear_of_themselves() -> None:
    assert random_course(3, 7) == random_course(3, 7)
    assert random_course(3, 7) != random_course(4, 7) != random_course(4, 8)
    for index in range(30):
        made = random_course(index, 1)
        points = np.array([made.start, *(gate.position for gate in made.gates)])[:, :2]
        gap = np.linalg.norm(points[:, None] - points, axis=-1) + 10.0 * np.eye(len(points))
        assert gap.min() >= APART


def test_given_headings_depart_by_no_more_than_was_asked() -> None:
    made = random_course(0, 0, RandomCourse(heading=0.3))
    departure = route_of(made.start, made.start_yaw, made.gates).departure
    assert 0.05 < np.max(np.abs(departure)) <= 0.3


def test_mistakes_are_named() -> None:
    with pytest.raises(UnknownNameError, match="loop"):
        generated_course("loop:3")
    for word in ("circle:", "random:x", "circle:3@7", "snake:0"):
        with pytest.raises(AirworthyError):
            generated_course(word)
    with pytest.raises(AirworthyError, match="close"):
        circle_course(2)
    with pytest.raises(AirworthyError, match="above 0"):
        straight_course(3, 0.0)
    with pytest.raises(AirworthyError, match="clear"):
        random_course(0, 0, RandomCourse(gates=60, turn=(0.7, 0.78), distance=(0.8, 0.8)))
    assert len(snake_course(5).gates) == 5


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ({"gates": 1}, {"gates": 0}),
        ({"gates": 1000}, {"gates": 1001}),
        ({"distance": (0.1, 0.1)}, {"distance": (0.0999, 0.1)}),
        ({"distance": (100.0, 100.0)}, {"distance": (100.0, 100.001)}),
        ({"distance": (2.0, 2.0)}, {"distance": (2.0, 1.999)}),
        ({"turn": (-3.1415, 0.0)}, {"turn": (-math.pi, 0.0)}),
        ({"turn": (0.0, 3.1415)}, {"turn": (0.0, math.pi)}),
        ({"turn": (0.5, 0.5)}, {"turn": (0.5, 0.499)}),
        ({"heading": 0.0}, {"heading": -1e-9}),
        ({"heading": 1.5707}, {"heading": 0.5 * math.pi}),
        ({"heights": (1e-9,)}, {"heights": (0.0,)}),
        ({"heights": (1.0, 2.0)}, {"heights": ()}),
        ({"heights": (1.0,)}, {"heights": (1.0, math.inf)}),
    ],
)
def test_each_range_of_a_random_course_ends_where_it_says(good: dict[str, Any], bad: dict[str, Any]) -> None:
    made = RandomCourse(**good)
    assert all(getattr(made, name) == value for name, value in good.items())
    with pytest.raises(AirworthyError):
        RandomCourse(**bad)
