"""What is drawn: inside its bounds, by its rules, and the same everywhere."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pytest
from tests.fixtures.snapshots import check_snapshot

from airworthy.core.errors import AirworthyError
from airworthy.core.table_schema import toml_value
from airworthy.race import Race, check_race, gate_shape, load_race, perturbed, placed, race_from_text, random_race
from airworthy.race.drawn import AHEAD, CLEAR, CLIMB_MAX, GATES, HEIGHTS, LEG, OPENING, TURN_MAX

COURSES, RACES = 300, 100


@pytest.mark.slow
def test_courses_lie_in_their_bounds_and_fill_them() -> None:
    race = load_race("lsy_2")
    nominal = [gate_shape(gate) for gate in race.gates]
    shifts, turns = [], []
    for index in range(COURSES):
        course = perturbed(race, 3, index)
        for was, gate in zip(nominal, course.gates, strict=True):
            there = gate_shape(gate)
            shifts.append(there.center - was.center)
            turns.append(math.atan2(float(np.cross(was.normal, there.normal)[2]), float(was.normal @ there.normal)))
        for was_post, post in zip(race.posts, course.posts, strict=True):
            assert np.all(np.abs(np.subtract(post.position, was_post.position)) <= 0.15)
    reach = np.abs(shifts).max(axis=0)
    assert np.all(reach <= [0.15 + 1e-9, 0.15 + 1e-9, 0.1 + 1e-9])
    assert np.all(reach > [0.149, 0.149, 0.099])
    assert 0.198 < np.abs(turns).max() <= 0.2 + 1e-9
    # Uniform: the mean of 1,200 draws within five of its standard errors, 2 r / sqrt(12 n).
    error = 2.0 * np.array([0.15, 0.15, 0.1]) / math.sqrt(12.0 * len(shifts))
    assert np.all(np.abs(np.mean(shifts, axis=0)) < 5.0 * error)


def test_the_same_seed_is_the_same_course() -> None:
    race = load_race("lsy_2")
    assert perturbed(race, 4, 2) == perturbed(race, 4, 2)
    assert perturbed(race, 4, 2) != perturbed(race, 4, 3)
    assert perturbed(race, 4, 2) != perturbed(race, 5, 2)
    assert random_race(3) == random_race(3) == load_race("random:3")
    assert random_race(3) != random_race(4)
    with pytest.raises(AirworthyError, match="seed 0 and index -1"):
        perturbed(race, 0, -1)


def test_what_does_not_move_stays() -> None:
    race = load_race("a2rl")
    assert perturbed(race, 1, 1) == race


def test_draws_are_those_on_file(request: pytest.FixtureRequest) -> None:
    """On every machine: results of races that were flown mean nothing once courses differ."""
    shown = {f"random:{seed}": str([gate.position for gate in random_race(seed).gates]) for seed in range(4)}
    course = perturbed(load_race("lsy_2"), 10000, 0)
    shown["lsy_2 10000/0"] = str([gate_shape(gate).center.round(6).tolist() for gate in course.gates])
    check_snapshot(request.path.parent / "snapshots" / "drawn.txt", shown)


# ---- Layouts ----------------------------------------------------------------------------------------------------------------


def test_the_file_of_level_3_has_the_layout_of_its_seed() -> None:
    race = load_race("lsy_3")
    again = placed(race, 0)
    assert again.gates == race.gates
    assert again.posts == race.posts


@pytest.mark.parametrize("seed", range(40))
def test_layouts_keep_their_distances(seed: int) -> None:
    race = placed(load_race("lsy_3"), seed)
    check_race(race)
    rules = race.layout
    assert rules is not None
    assert rules.seed == seed
    points = [np.array(race.start.position[:2]), *(gate_shape(gate).center[:2] for gate in race.gates)]
    for k, point in enumerate(points):
        assert all(np.linalg.norm(point - other) >= rules.gates_m for other in points[:k])
    for way, gate in zip(pairwise(points), race.gates, strict=True):
        along = (way[1] - way[0]) / np.linalg.norm(way[1] - way[0])
        assert math.degrees(math.acos(float(along @ gate_shape(gate).normal[:2]))) <= rules.turn_deg + 1e-9
        assert np.all(np.abs(gate_shape(gate).center[:2]) <= [2.0, 1.0])
    assert [gate_shape(gate).center[2] for gate in race.gates] == pytest.approx([0.7, 1.2, 0.7, 1.2])
    posts = [np.array(post.position) for post in race.posts]
    for k, post in enumerate(posts):
        assert all(np.linalg.norm(post - point) >= rules.posts_gates_m for point in points[1:])
        assert all(np.linalg.norm(post - other) >= rules.posts_m for other in posts[:k])


def test_no_layout_and_none_that_fits() -> None:
    with pytest.raises(AirworthyError, match="has no layout"):
        placed(load_race("lsy_2"), 0)
    race = load_race("lsy_3")
    assert race.layout is not None
    with pytest.raises(AirworthyError, match="keeps its distances"):
        placed(replace(race, layout=replace(race.layout, gates_m=6.0)), 0)


# ---- Whole races ------------------------------------------------------------------------------------------------------------


def legs(race: Race) -> list[tuple[np.ndarray, np.ndarray]]:
    """Start and end of the ways between gates; those within a stacked pair left out."""
    points = [np.array(race.start.position), *(gate_shape(race.gate(name)).center for name, _ in race.passes)]
    reverse = [False, *(back for _, back in race.passes)]
    return [(a, b) for (a, b), back in zip(pairwise(points), reverse[1:], strict=True) if not back]


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(50, RACES, 50))])
def test_drawn_races_keep_their_limits(first: int) -> None:
    for seed in range(first, first + 50):
        race = random_race(seed)
        check_race(race)
        single = [gate for gate in race.gates if not gate.name.endswith("b")]
        assert GATES[0] <= len(single) <= GATES[1]
        assert {gate.opening for gate in race.gates} == {single[0].opening}
        assert single[0].opening is not None
        assert OPENING[0] <= single[0].opening[0] <= OPENING[1]
        ways = [b - a for a, b in legs(race)]
        assert len(ways) == len(single)
        for way in ways:
            flat = float(np.linalg.norm(way[:2]))
            assert LEG[0] - 0.01 <= flat <= LEG[1] + 0.01
            assert abs(way[2]) <= CLIMB_MAX * flat + 0.01
        for gate in race.gates:
            # A second gate stands below where there is room, else above.
            assert HEIGHTS[0] - 0.01 <= gate_shape(gate).center[2] <= HEIGHTS[1] + OPENING[1] + 0.5
            assert gate_shape(gate).center[2] - gate_shape(gate).half_height > 0.2
        course = None
        for (name, back), way in zip([item for item in race.passes if not item[1]], ways, strict=True):
            assert not back
            heading = math.atan2(way[1], way[0])
            if course is not None:
                assert abs(math.remainder(heading - course, math.tau)) <= math.radians(TURN_MAX) + 0.01
            course = heading + (math.pi if f"{name}b" in {gate.name for gate in race.gates} else 0.0)


@pytest.mark.parametrize("seed", range(0, RACES, 5))
def test_drawn_legs_are_clear_and_gates_face_them(seed: int) -> None:
    race = random_race(seed)
    found = legs(race)
    for k, (a, b) in enumerate(found):
        for other in [start for start, _ in found[:k]]:
            share = np.clip((other - a)[:2] @ (b - a)[:2] / ((b - a)[:2] @ (b - a)[:2]), 0.0, 1.0)
            assert np.linalg.norm((a + share * (b - a) - other)[:2]) >= CLEAR - 0.01
    names = {gate.name for gate in race.gates}
    for (a, b), gate in zip(found, [g for g in race.gates if not g.name.endswith("b")], strict=True):
        if f"{gate.name}b" in names:
            continue
        way = (b - a)[:2] / np.linalg.norm((b - a)[:2])
        # Half of the largest turn, and what is drawn beside it.
        least = math.cos(math.radians(0.5 * TURN_MAX + AHEAD)) - 0.01
        assert way @ gate_shape(gate).normal[:2] >= least


def test_stacked_gates_are_drawn() -> None:
    assert sum(any(back for _, back in random_race(seed).passes) for seed in range(30)) > 15


def test_a_drawn_race_can_be_written_down() -> None:
    """As a file of one's own, from what `races show --json` prints."""
    race = random_race(9)
    table = {k: v for k, v in asdict(race).items() if v not in (None, ()) and k != "clock"}
    for part in ("start", "gates", "limits"):
        rows = table[part] if part == "gates" else [table[part]]
        for row in rows:
            for key in [key for key, value in row.items() if value is None or value == () or key in ("bound", "direction")]:
                del row[key]
    text = 'airworthy = "race"\nversion = 1\n' + "\n".join(f"{key} = {toml_value(value)}" for key, value in table.items())
    assert race_from_text(text, "written.toml") == race
