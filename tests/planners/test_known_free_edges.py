"""Edges of flight in known free space: goals without room, routes that turn back, starts outside, weak and tilted vehicles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.planners.known_free_cases import ConeMaps, box_world, mission_of

from airworthy.core.arrays import Array
from airworthy.planners.common.interface import OCCUPIED, UNKNOWN, Airframes, MapView, Mission, Motion
from airworthy.planners.known_free import KnownFreePlanner, KnownFreeSettings, RouteSettings, route
from airworthy.planners.known_free.candidates import brakes, candidates
from airworthy.planners.known_free.heading import Headings
from airworthy.planners.known_free.known_space import CellSource, KnownSpace, ball_cells, merge, ring_nodes
from airworthy.planners.known_free.limits import GRAVITY, MotionLimits, limits_of
from airworthy.planners.known_free.memories import Memories
from airworthy.planners.known_free.motion import within_limits
from airworthy.planners.known_free.retreats import Retreats
from airworthy.planners.known_free.route import RouteSearches, route_twin
from airworthy.planners.known_free.routes import FollowedRoutes

KNOWN, LEAST, MOST = -100, -50, 50
CELLS = np.array([60, 40, 20], np.int32)
BOX = np.array([[0.35, 0.35, 0.35], [5.65, 3.65, 1.65]])
START, GOAL = np.array([0.6, 2.0, 1.0]), np.array([5.4, 2.0, 1.0])
SETTINGS = RouteSettings()
WORLD = box_world((20.0, 10.0, 3.0))
FROM, TO = np.array([[1.5, 5.0, 1.2]]), np.array([[18.5, 5.0, 1.2]])


def space_of(odds: np.ndarray) -> KnownSpace:
    space, lowest = KnownSpace(np.zeros(3), CELLS, 0.1, ball_cells(0.3, 0.1), ring_nodes(0.6, 1.0, 0.1)), np.zeros(3, np.int32)
    merge([space], [CellSource(odds.reshape(-1), CELLS, lowest, lowest, CELLS)], KNOWN, LEAST, MOST)
    return space


def seen(*solids: tuple[slice, ...]) -> np.ndarray:
    odds = np.full(CELLS, LEAST, np.int16)
    for solid in solids:
        odds[solid] = MOST + 1
    return odds


def routes() -> FollowedRoutes:
    return FollowedRoutes(GOAL[None], BOX[None], KnownFreeSettings(), RouteSearches(SETTINGS))


def limits(name: str) -> MotionLimits:
    return limits_of(mission_of([WORLD], FROM, TO, (name,)), KnownFreeSettings())


def planner_at_start(name: str = "virt_05") -> KnownFreePlanner:
    planner = KnownFreePlanner()
    planner.reset(mission_of([WORLD], FROM, TO, (name,)))
    planner._memories.begin(np.array([0]), FROM)
    return planner


# ---- Routes ------------------------------------------------------------------------------------------------------------------


def test_a_goal_that_has_no_room_is_flown_up_to() -> None:
    space, followed = space_of(seen(np.s_[50:58, 16:24, 6:14])), routes()
    assert not space.has_room(GOAL[None])[0]
    followed.find(0, 0.0, START, space)
    assert 0.5 < np.linalg.norm(followed.path(0)[-1] - GOAL) < 1.7


def test_a_route_that_comes_back_past_its_flight_is_not_cut_short() -> None:
    followed, out = routes(), np.column_stack([0.6 + 0.1 * np.arange(48), np.full(48, 2.0), np.ones(48)])
    followed.follow(0, np.concatenate([out, out[::-1] + np.array([0.0, 0.3, 0.0])]), False)
    followed.trim(0, np.array([0.8, 2.2, 1.0]))
    np.testing.assert_allclose(followed.path(0)[0], [0.8, 2.0, 1.0])


@pytest.mark.parametrize("ends", [([0.6, 2.0, 0.12], GOAL), (START, [5.4, 2.0, 1.98])])
def test_ends_outside_of_where_middles_may_be_are_held_inside(ends: tuple[Array, Array]) -> None:
    space, (start, goal) = space_of(seen()), ends
    nodes = RouteSearches(SETTINGS).find(space, np.asarray(start), np.asarray(goal), BOX, 0.15).nodes
    assert len(nodes) > 20
    middle = space.room_of_nodes(nodes)
    assert (middle[:, 2] > BOX[0, 2] - 0.1).all()
    assert (middle[:, 2] < BOX[1, 2] + 0.1).all()


def test_who_may_leave_a_wall_it_is_too_near_to_may_not_go_through_it() -> None:
    space, start = space_of(seen(np.s_[10:12])), np.array([0.85, 2.0, 1.0])
    assert not space.has_room(start[None])[0]
    for find in (RouteSearches(SETTINGS).find, lambda *a: route_twin(a[0], SETTINGS, *a[1:])):
        assert not len(find(space, start, GOAL, BOX, 0.15).nodes)
        # To its own side it may.
        assert len(find(space, start, np.array([0.5, 3.0, 1.0]), BOX, 0.15).nodes)


def test_a_route_of_more_nodes_than_fit_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    space, near = space_of(seen()), np.array([2.5, 2.0, 1.0])
    long = len(RouteSearches(SETTINGS).find(space, START, near, BOX, 0.15).nodes)
    for room, found in ((long, long), (long - 1, 0)):
        monkeypatch.setattr(route, "_LONGEST", room)
        assert len(RouteSearches(SETTINGS).find(space, START, near, BOX, 0.15).nodes) == found


def test_one_flight_that_goes_on_leaves_the_others_on_their_way_back() -> None:
    retreats, far = Retreats(np.zeros((2, 3))), np.array([3.0, 0.0, 0.0])
    for flight in range(2):
        assert len(retreats.begin(flight, 0.0, far, far, 0))
    retreats.end(0)
    assert [retreats.goes_back(0), retreats.goes_back(1)] == [False, True]


# ---- Headings ----------------------------------------------------------------------------------------------------------------


def headings(yaw: float, wanted: float) -> Headings:
    made = Headings(np.zeros(1), limits("virt_05"))
    made.begin(0, np.array([0.0, 0.0, np.sin(0.5 * yaw), np.cos(0.5 * yaw)]))
    made.look(0, wanted)
    return made


def test_a_camera_turns_the_short_way_round() -> None:
    made = headings(3.0, -3.0)
    turned = [made.turn(np.array([0.01 * tick])) for tick in range(300)]
    assert min(float(rate[0]) for _, rate in turned) > -0.1
    np.testing.assert_allclose(turned[-1][0], -3.0, atol=0.02)


def test_asking_for_an_earlier_time_turns_nothing_twice() -> None:
    made = headings(0.0, 2.0)
    for time in (0.0, 0.05, 0.1):
        yaw, _ = made.turn(np.array([time]))
    for time in (0.05, 0.1, 0.07, 0.1):
        again, _ = made.turn(np.array([time]))
        np.testing.assert_array_equal(again, yaw)


def test_a_tilted_vehicle_begins_with_the_heading_of_its_nose() -> None:
    x, y, z, w = quaternion = np.array([0.2, -0.3, 0.4, np.sqrt(1.0 - 0.29)])
    axis = np.array([x, y, z])
    nose = np.array([1.0, 0.0, 0.0]) + 2.0 * np.cross(axis, np.cross(axis, [1.0, 0.0, 0.0]) + w * np.array([1.0, 0.0, 0.0]))
    made = Headings(np.zeros(1), limits("virt_05"))
    made.begin(0, quaternion)
    np.testing.assert_allclose(made.yaw[0], np.arctan2(nose[1], nose[0]), atol=1e-12)


# ---- Limits ------------------------------------------------------------------------------------------------------------------


def test_nobody_is_pulled_up_by_more_than_its_rotors_lift() -> None:
    """`real_09` lifts 1.4 of its weight, and plans with 0.8 of that: 1.2 m/s^2 upwards, but 3.4 m/s^2 sideways."""
    one, duration, most = limits("real_09").of(0), np.array([0.5]), float(limits("real_09").thrust[0]) - GRAVITY
    assert most < 0.6 * one.acceleration
    for pull, kept in ((0.9 * most, True), (1.3 * most, False)):
        found = np.zeros((1, 6, 3))
        found[0, 2, 2] = 0.5 * pull
        assert within_limits(found, duration, one)[0][0] == kept


def test_speed_upwards_is_speed() -> None:
    one, found = limits("virt_05").of(0), np.zeros((1, 6, 3))
    found[0, 1] = [0.0, 0.0, 1.3 * one.speed]
    keeps, speed = within_limits(found, np.array([1.0]), one)
    assert not keeps[0]
    np.testing.assert_allclose(speed, 1.3 * one.speed)


def test_who_can_keep_no_limit_any_more_brakes_as_gently_as_it_may() -> None:
    one = limits("real_09").of(0)
    found = brakes(np.array([[0.0, 0.0, 1.0], [3.0, 0.0, 0.0], [0.0, 0.0, 9.0]]), one, 1.3)
    assert len(found) == 1
    np.testing.assert_allclose(found.duration[0, 0], 1.2 * 3.0 / (1.3 * one.acceleration) * 1.25**9)


def test_whoever_flies_may_hover() -> None:
    """0.8 of a thrust of 1.2 times the weight would not carry it."""
    one = np.ones(1)
    weak = Airframes(one, 1.2 * one, 60.0 * one, 5.0 * one, 0.5 * one, 0.3 * one, 0.0 * one)
    row = np.zeros((1, 3))
    mission = Mission(row, row + 5.0, 4.0 * one, 6.0 * one, row - 10.0, row + 10.0, np.arange(1), vehicle=weak)
    found = limits_of(mission, KnownFreeSettings())
    assert found.thrust[0] > GRAVITY
    assert within_limits(np.zeros((1, 6, 3)), one, found.of(0))[0][0]


# ---- The planner -------------------------------------------------------------------------------------------------------------


def test_what_a_body_reaches_on_its_way_has_been_seen() -> None:
    """Nothing is known but a ball of 0.9 m, and nothing stands: what stays in it is flown, what leads out of it is not."""
    planner, here = planner_at_start(), np.stack([FROM[0], np.zeros(3), np.zeros(3)])
    for count, flown in ((5, True), (40, False)):
        path = FROM[0] + np.arange(count)[:, None] * np.array([0.1, 0.0, 0.0])
        offered = candidates(here, path, count - 1, planner.limits.of(0))
        found = planner._choose(0, offered, 0.0, 1.0, {"polynomials": np.zeros(1), "certificates": np.zeros(1)})
        assert len(offered)
        assert (found is not None) == flown


def test_who_was_beside_its_plan_is_trusted_again_after_a_while() -> None:
    planner, one = planner_at_start(), np.array([0])

    def errs(off: float, ticks: int) -> float:
        for _ in range(ticks):
            level = np.array([[0.0, 0.0, 0.0, 1.0]])
            planner._note_errors(one, Motion(np.zeros(1), FROM + np.array([0.0, off, 0.0]), np.zeros((1, 3)), level))
        return float(planner.tracking_errors.farthest[0])

    assert errs(0.4, 1) == pytest.approx(0.4)
    assert 0.1 < errs(0.0, 100) < 0.2
    assert errs(0.0, 400) < 0.01


def test_who_still_computes_thinks_of_nothing_else() -> None:
    planner, maps, level = KnownFreePlanner(), ConeMaps([WORLD.copy()]), np.array([[0.0, 0.0, 0.0, 1.0]])
    planner.reset(mission_of([WORLD], FROM, TO, ("virt_05",)))
    thought = []
    for tick in range(8):
        maps.see(0, FROM[0], 0.0)
        done = planner.update(Motion(np.full(1, 0.1 * tick), FROM, np.zeros((1, 3)), level), maps, np.ones(1, bool))
        planner.adopt(np.full(1, 0.45 if tick == 0 else 0.0))
        thought.append(bool(done["work"]["certificates"][0] > 0))
    assert thought == [True, False, False, False, False, True, True, True]


def test_bodies_keep_from_floor_and_ceiling() -> None:
    planner = planner_at_start()
    lower, upper = planner._room[0]
    assert lower[2] >= planner.config.body + planner.config.height_spare - 1e-9
    assert upper[2] <= 3.0 - planner.config.body - planner.config.height_spare + 1e-9


class Uncounted:
    """Maps that are given as views alone, and count no images."""

    def view(self, flight: int) -> MapView:
        cells = np.full(WORLD.shape, UNKNOWN, np.int8)
        return MapView(cells, cells == OCCUPIED, np.array([0.0, 0.0, -0.01]), 0.1, 0.0, 0)


def test_maps_that_count_no_images_are_thought_about() -> None:
    memories, one, maps = Memories(mission_of([WORLD], FROM, TO), KnownFreeSettings()), np.array([0]), Uncounted()
    memories.begin(one, FROM)
    given: Any = maps
    assert memories.see(one, np.zeros(1), given).tolist() == [0]
    assert not len(memories.see(one, np.full(1, 0.05), given))
    assert memories.see(one, np.full(1, 0.1), given).tolist() == [0]
