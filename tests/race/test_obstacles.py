"""What plans keep off and where solvers begin, by numbers worked out by hand; and what is refused before a solver begins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.race.flights import strict_race

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import to_matrix
from airworthy.race import Post, Race, RacerModel, check_race, load_race, race_vehicle
from airworthy.race.gate_geometry import shape_of
from airworthy.race.planning.beginnings import _beyond, made_up, sampled
from airworthy.race.planning.bounds import RacePlanOptions
from airworthy.race.planning.course_planner import CoursePlanner
from airworthy.race.planning.obstacles import node_range, obstacles_of
from airworthy.race.planning.plan import RacePlan
from airworthy.race.planning.ways import check_time, check_ways, time_note
from airworthy.race.record import GateFrames, RaceGate, RaceLimits
from airworthy.race.scenery import race_scene

KINGFISHER = RacerModel.of(race_vehicle(load_race("uzh_split_s")))
FRAMED = strict_race(frames=GateFrames(0.2, 0.2))
"""Gate A: centre (5, 0, 2), 2 x 2 m, flown along x."""


def test_who_is_before_an_opening_may_stand_above_its_edge() -> None:
    found = obstacles_of(FRAMED, 0.3, 0.5)
    # 0.5 m before the plane: within 1 + 0.5 m of the axis, upwards as sideways.
    for aside, held in ((1.4, True), (1.6, False)):
        assert found.is_before(0, np.array([4.5, 0.0, 2.0 + aside])) is held
        assert found.is_before(0, np.array([4.5, aside, 2.0])) is held


def test_the_gate_behind_counts_from_a_third_of_the_leg_on_in_flight_too() -> None:
    found = obstacles_of(FRAMED, 0.3, 0.5).after(1)
    rows = {
        frame.name: (low, high) for frame, low, high in found.blocking(0, np.array([5.0, 0.0, 2.0]), np.array([10.0, 0.0, 2.0]))
    }
    assert rows["A"] == pytest.approx((1.0 / 3.0, 1.0))
    assert rows["B"] == pytest.approx((0.0, 2.0 / 3.0))


def test_walls_are_kept_off_from_within() -> None:
    found = obstacles_of(FRAMED, 0.3, 0.5)
    assert found.lower == pytest.approx([-9.5, -9.5, 0.5])
    assert found.upper == pytest.approx([39.5, 9.5, 9.5])


def test_nodes_of_a_part_of_a_leg() -> None:
    assert list(node_range(6, 0.0, 1.0)) == [1, 2, 3, 4, 5, 6]
    assert list(node_range(12, 1.0 / 3.0, 2.0 / 3.0)) == [4, 5, 6, 7, 8]


def test_a_leg_back_through_its_own_gate_is_told_in_flight_too() -> None:
    race = strict_race(order=("A", "-A", "B", "C", "D"), laps=2)
    found = obstacles_of(race, 0.3, 0.5)
    assert [found.is_back(leg) for leg in range(10)] == [False, True] + [False] * 4 + [True] + [False] * 3
    assert found.after(1).is_back(0)
    assert not found.after(2).is_back(0)
    assert not any(found.is_round(leg) for leg in range(10))


def test_a_leg_that_leads_through_its_gate_again_keeps_off_its_frame() -> None:
    center = np.array([5.0, 0.0, 2.0])
    for order, side in ((("A", "A", "B"), 1.0), (("-A", "-A", "B"), -1.0)):
        found = obstacles_of(replace(FRAMED, order=order), 0.3, 0.5)
        assert [found.is_round(leg) for leg in range(3)] == [False, True, False]
        assert found.after(1).is_round(0)
        assert not found.after(2).is_round(0)
        rows = {frame.name: (low, high) for frame, low, high in found.blocking(1, center, center)}
        assert rows["A"] == pytest.approx((1.0 / 3.0, 2.0 / 3.0))
        # In flight right behind it, too; who is right before it again is led by the cone alone.
        for depth, kept in ((0.3, True), (-0.3, False)):
            begin = center + np.array([side * depth, 0.0, 0.0])
            names = [frame.name for frame, _, _ in found.after(1).blocking(0, begin, center)]
            assert ("A" in names) is kept
            assert found.after(1).is_behind(0, begin) is kept
    # Beside it stand others in the way: of two gates in one plane, 2.4 m apart, the frame of the second.
    gates = strict_race().gates
    beside = replace(gates[1], position=(5.0, 2.4, 2.0))
    pair = replace(FRAMED, order=("A", "A", "B"), gates=(gates[0], beside, *gates[2:]))
    assert {frame.name for frame, _, _ in obstacles_of(pair, 0.3, 0.5).blocking(1, center, center)} == {"A", "B"}
    # There and back is another matter: the way leads through the opening.
    there = obstacles_of(replace(FRAMED, order=("A", "-A", "B")), 0.3, 0.5)
    assert "A" not in [frame.name for frame, _, _ in there.blocking(1, center, center)]


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_first_guess_leads_round_a_gate_that_is_flown_again(side: float) -> None:
    gate = shape_of([[5, 1, 3], [5, -1, 3], [5, -1, 1], [5, 1, 1]], [1.0, 0.0, 0.0], "A")
    start = np.zeros(13)
    start[[2, 9]] = 2.0, 1.0
    values = made_up(start, [gate, gate], KINGFISHER, 24, side=side)
    states, legs = values[: 49 * 13].reshape(49, 13), values[-2:]
    circle = states[24:48, :3]
    # 2.2 m beside the edge of the opening, level, all the way round: radius 1.6 m.
    assert np.allclose(np.linalg.norm(circle - [5.0, side * 1.6, 2.0], axis=1), 1.6)
    assert np.allclose(states[48, :3], [5.0, 0.0, 2.0])
    assert side * circle[12, 1] == pytest.approx(3.2)
    assert circle[6, 0] > 5.0 > circle[18, 0]
    # Velocities lead along it, and are as fast as its duration says.
    speed = np.linalg.norm(states[25, 3:6])
    assert legs[1] == pytest.approx(2.0 * np.pi * 1.6 / speed)
    steps = np.diff(states[24:49, :3], axis=0)
    along = np.sum(steps * states[25:49, 3:6], axis=1) / (np.linalg.norm(steps, axis=1) * speed)
    assert np.min(along) > np.cos(2.0 * np.pi / 24)


def test_the_post_that_a_path_came_nearest_to_is_so_by_what_is_kept_off_it() -> None:
    flown = np.stack([np.linspace(0.0, 9.0, 10), np.zeros(10), np.full(10, 2.0)], axis=1)
    # 0.3 m from the second, of which 0.2 are kept; 0.5 m from the first, of which a whole one is.
    posts = np.array([[3.0, -0.5, 1.0], [7.0, 0.3, 0.2]])
    places = _beyond(flown, flown, np.array([10.0, 0.0, 2.0]), posts)
    # So the way leads past the first, on its other side: 1.2 m beyond it.
    assert places[3, :2] == pytest.approx([3.0, -1.7])


def test_a_beginning_has_one_sign_of_the_quaternion() -> None:
    hover = KINGFISHER.mass * KINGFISHER.gravity
    states = np.zeros((9, 13))
    states[:, 9], states[:, 2] = 1.0, 2.0
    states[4:, 6:10] *= -1.0
    plan = RacePlan(states, np.tile([hover, 0.0, 0.0, 0.0], (8, 1)), np.array([0.4, 0.4]), KINGFISHER, "", {})
    for sign in (1.0, -1.0):
        state = states[0] * np.where(np.arange(13) == 9, sign, 1.0)
        begun = sampled(plan, 0.0, 2, 4, state)[: 9 * 13].reshape(9, 13)
        assert begun[:, 9] == pytest.approx(np.full(9, sign))


def test_the_nominal_plan_is_made_with_all_gates_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, tuple[str, ...], Any]] = []

    def solved(race: Race, model: RacerModel, options: RacePlanOptions, unseen: Any, like: Any = None) -> str:
        asked.append((race.name, tuple(sorted(unseen)), like))
        return f"plan {len(asked)}"

    monkeypatch.setattr("airworthy.race.planning.course_planner.minimum_time_plan", solved)
    race = load_race("lsy_2")
    plans = CoursePlanner.of(race, race_vehicle(race))
    for _ in range(2):
        plans.first(replace(race, name="told"), {"1"})
    assert asked == [
        ("lsy_2", ("1", "2", "3", "4"), None),
        ("told", ("1",), "plan 1"),
        ("told", ("1",), "plan 1"),
    ]


# ---- Rolled gates -----------------------------------------------------------------------------------------------------------

DIAMOND = ((4.0, 8.9, 2.5), (4.0, 8.0, 3.4), (4.0, 7.1, 2.5), (4.0, 8.0, 1.6))
"""A square of 1.273 m, rolled by 45 degrees: corners 0.9 m from its centre."""


def test_axes_of_a_rolled_gate_lie_along_its_sides() -> None:
    shape = shape_of(DIAMOND, (-1.0, 0.0, 0.0), "Slant")
    side = 0.9 * np.sqrt(2.0)
    assert (2.0 * shape.half_width, 2.0 * shape.half_height) == pytest.approx((side, side))
    assert np.cross(shape.normal, shape.left) == pytest.approx(shape.up)
    # Flown against x left is -y; both axes are turned by 45 degrees.
    assert np.abs(shape.left) == pytest.approx([0.0, np.sqrt(0.5), np.sqrt(0.5)])
    assert shape.left[1] < 0.0 < shape.up[2]
    assert shape.filled == pytest.approx(1.0)


@pytest.mark.parametrize("roll", [-60.0, -45.0, -44.0, -10.0, 0.0, 0.01, 10.0, 44.0, 45.0, 80.0])
def test_a_rectangle_keeps_its_sizes_however_it_is_rolled(roll: float) -> None:
    angle = np.radians(roll)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    across = np.array([[1.0, 0.4], [-1.0, 0.4], [-1.0, -0.4], [1.0, -0.4]]) @ turn.T
    shape = shape_of(np.column_stack([np.zeros(4), across]), (1.0, 0.0, 0.0), "R")
    sizes = (1.0, 0.4) if abs(roll) <= 45.0 and roll != -45.0 else (0.4, 1.0)
    # A hundredth of a degree is a rounding of corners, and axes stay level.
    assert (shape.half_width, shape.half_height) == pytest.approx(sizes, abs=1e-9 if roll != 0.01 else 1e-3)
    assert (shape.left[2] == 0.0) == (abs(roll) <= 0.01)
    assert abs(shape.left[2]) <= np.sqrt(0.5) + 1e-9


def test_what_lies_in_an_opening() -> None:
    shape = shape_of(DIAMOND, (-1.0, 0.0, 0.0), "Slant")
    points = np.array([[4.0, 8.0, 3.3], [4.0, 8.8, 3.3], [5.0, 8.4, 2.9], [4.0, 8.9, 2.5]])
    assert shape.holds(points).tolist() == [True, False, True, True]
    assert replace(shape, normal=-shape.normal, left=-shape.left).holds(points).tolist() == [True, False, True, True]


def test_bars_of_a_rolled_gate_lie_along_its_sides() -> None:
    race = with_gate(DIAMOND, (-1.0, 0.0, 0.0))
    (bar,) = [item for item in race_scene(race).instances if item.name == "gate A, left bar"]
    # Half a side and half a bar of 0.15 m from the centre, to the left and upwards of who flies against x.
    away = (0.45 * np.sqrt(2.0) + 0.075) * np.sqrt(0.5)
    assert bar.position == pytest.approx((4.0, 8.0 - away, 2.5 + away))
    along = to_matrix(np.array(bar.attitude))[:, 2]
    assert np.abs(along) == pytest.approx([0.0, np.sqrt(0.5), np.sqrt(0.5)])


def with_gate(corners: Any, direction: tuple[float, float, float]) -> Race:
    """The row with another gate A."""
    race = strict_race(limits=RaceLimits(60.0))
    return replace(race, gates=(RaceGate("A", corners, direction), *race.gates[1:]))


def checked(race: Race, options: RacePlanOptions | None = None) -> None:
    options = options or RacePlanOptions()
    check_ways(race, obstacles_of(race, options.clearance, options.wall), options)


def test_an_opening_that_no_rectangle_fits_is_refused() -> None:
    checked(with_gate(DIAMOND, (-1.0, 0.0, 0.0)))
    # A kite of 2 x 3 m: half of the rectangle around it is closed.
    kite = ((5.0, 1.0, 2.0), (5.0, 0.0, 3.0), (5.0, -1.0, 2.0), (5.0, 0.0, 0.2))
    with pytest.raises(
        AirworthyError, match=r"Plans through gate 'A' .* may miss its opening, which fills [5-7]\d % of the rectangle"
    ):
        checked(with_gate(kite, (1.0, 0.0, 0.0)))


def test_posts_in_an_opening_are_found_by_its_own_shape() -> None:
    race = with_gate(DIAMOND, (-1.0, 0.0, 0.0))
    # 0.6 m beside the centre the lower edge is at 2.2 m; in the middle at 1.6 m.
    for y, top, stands in ((8.6, 2.15, False), (8.6, 2.3, True), (8.0, 1.7, True), (8.0, 1.55, False), (9.0, 5.0, False)):
        posted = replace(race, posts=(Post((4.0, y), top, 0.05),))
        if stands:
            with pytest.raises(AirworthyError, match="Post 1 stands in the opening of gate 'A'"):
                check_race(posted)
        else:
            check_race(posted)


# ---- Before a solver begins -------------------------------------------------------------------------------------------------


def test_a_start_in_a_post_is_refused() -> None:
    for x, top, said in ((0.05, 3.0, True), (0.15, 3.0, False), (0.05, 1.9, False)):
        posts = (Post((20.0, 5.0), 1.0, 0.1), Post((x, 0.0), top, 0.1))
        if said:
            with pytest.raises(AirworthyError, match=r"The start lies in post 2: move one of them\."):
                strict_race(posts=posts)
        else:
            strict_race(posts=posts)


def test_a_post_below_a_gate_is_said_to_close_it() -> None:
    race = strict_race(posts=(Post((10.0, 0.0), 0.5, 0.05),))
    # A window of 1.2 m: of 0.35 + 0.05 m the post leaves something, of 0.9 m nothing.
    checked(race)
    with pytest.raises(
        AirworthyError, match=r"through gate 'B' .*: post 1 is in its way, which plans keep 0.9 m off.* ends at 0.5 m"
    ):
        checked(race, RacePlanOptions(clearance=0.9))


def test_a_time_limit_below_any_flight_is_refused_and_one_below_any_plan_noted() -> None:
    # 5 m and a gate's half diagonal less, then two of them less each: 3.586 + 3 * 2.172 = 10.10 m.
    race = strict_race()
    with pytest.raises(AirworthyError, match=r"ends after 5 s \(limits.time_s\), and no flight .* takes less than 5.05 s"):
        check_time(replace(race, limits=RaceLimits(5.0)), KINGFISHER, 2.0)
    check_time(replace(race, limits=RaceLimits(5.1)), KINGFISHER, 2.0)
    push = KINGFISHER.thrust_max / KINGFISHER.mass + 9.81
    least = float(np.sqrt(2.0 * (20.0 - 7.0 * np.sqrt(2.0)) / push))
    with pytest.raises(AirworthyError, match="no flight through its gates"):
        check_time(replace(race, limits=RaceLimits(0.99 * least)), KINGFISHER, 1000.0)
    check_time(replace(race, limits=RaceLimits(1.01 * least)), KINGFISHER, 1000.0)
    assert time_note(race, KINGFISHER) == ""
    said = time_note(replace(race, limits=RaceLimits(1.0)), KINGFISHER)
    assert "limits.time_s is 1 s for 20 m from gate to gate, which asks for 20 m/s on average" in said
    for name in ("uzh_split_s", "a2rl", "lsy_0", "lsy_2", "random:1"):
        assert time_note(load_race(name), RacerModel.of(race_vehicle(load_race(name)))) == ""
