"""Routes: the compiled search and its readable twin give the same nodes; unknown space is entered only as cameras can see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.planners.known_free import route
from airworthy.planners.known_free.config import KnownFreeSettings, RouteSettings
from airworthy.planners.known_free.known_space import CellSource, KnownSpace, ball_cells, merge, ring_nodes
from airworthy.planners.known_free.path import SPACING, eased, near_path, resampled
from airworthy.planners.known_free.route import RouteSearches, route_twin
from airworthy.planners.known_free.routes import FollowedRoutes

KNOWN, LEAST, MOST = -100, -50, 50
CELLS = np.array([60, 40, 20], np.int32)
BOX = np.array([[0.35, 0.35, 0.35], [5.65, 3.65, 1.65]])
START, GOAL = np.array([0.6, 2.0, 1.0]), np.array([5.4, 2.0, 1.0])
SETTINGS = RouteSettings()


def space_of(odds: np.ndarray) -> KnownSpace:
    space = KnownSpace(np.zeros(3), CELLS, 0.1, ball_cells(0.3, 0.1), ring_nodes(0.6, 1.0, 0.1))
    source = CellSource(odds.reshape(-1), CELLS, np.zeros(3, np.int32), np.zeros(3, np.int32), CELLS)
    merge([space], [source], KNOWN, LEAST, MOST)
    return space


def walled(known: bool = True) -> np.ndarray:
    """A wall across the middle, with a gap of 1 m at one side."""
    odds = np.full(CELLS, LEAST if known else KNOWN - 1, np.int16)
    odds[30:32, :26] = MOST + 1
    odds[30:32, 36:] = MOST + 1
    return odds


@pytest.mark.parametrize("seed", range(4))
def test_compiled_and_readable_search_agree(seed: int) -> None:
    draw = np.random.default_rng(seed)
    odds = np.where(draw.random(CELLS) < 0.7, LEAST, KNOWN - 1).astype(np.int16)
    for x, y, z in draw.integers(0, CELLS, (12, 3)):
        odds[x : x + 2, y : y + 3, max(z - 6, 0) : z] = MOST + 1
    odds[3:9, 15:25, 5:15] = LEAST
    space = space_of(odds)
    space.refuse(np.array([3.0, 2.0, 1.0]), 0.4, False)
    found = RouteSearches(SETTINGS).find(space, START, GOAL, BOX, 0.15)
    twin = route_twin(space, SETTINGS, START, GOAL, BOX, 0.15)
    np.testing.assert_array_equal(found.nodes, twin.nodes)
    assert found.expansions == twin.expansions
    assert len(found.nodes) > 20


@pytest.mark.parametrize("times", [1.0, 200.0])
def test_estimates_far_beyond_the_lists_of_the_open_set_change_no_order(times: float) -> None:
    """Round a wall far dearer than the estimate says: most of what is open lies in late lists, or all in the last one."""
    space, plain = space_of(walled(False)), RouteSettings()
    settings = replace(plain, unknown=times * plain.unknown, column=times * plain.column, blind=times * plain.blind)
    found = RouteSearches(settings).find(space, START, GOAL, BOX, 0.15)
    twin = route_twin(space, settings, START, GOAL, BOX, 0.15)
    np.testing.assert_array_equal(found.nodes, twin.nodes)
    assert (found.expansions, found.cost) == (twin.expansions, pytest.approx(twin.cost))
    assert found.expansions > 500


def test_a_search_that_needs_more_room_than_there_is_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    space, most = space_of(walled()), {}
    for room in (50, 5000):
        monkeypatch.setattr(route, "_WAITING", room)
        most[room] = RouteSearches(SETTINGS).find(space, START, GOAL, BOX, 0.15)
    assert not len(most[50].nodes)
    assert most[50].expansions < 50
    np.testing.assert_array_equal(most[5000].nodes, route_twin(space, SETTINGS, START, GOAL, BOX, 0.15).nodes)


def test_room_in_the_open_set_is_given_back_and_nothing_behind_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    space, low, high = space_of(walled()), 50, 5000
    while high - low > 1:
        room = (low + high) // 2
        monkeypatch.setattr(route, "_WAITING", room)
        searches = RouteSearches(SETTINGS)
        searches._heap = np.full((2 * room + 20_000) * 16, 170, np.uint8)
        found = len(searches.find(space, START, GOAL, BOX, 0.15).nodes)
        low, high = (low, room) if found else (room, high)
        assert (searches._heap[2 * room * 16 :] == 170).all()
    assert 100 < high < 4000


def test_a_route_leads_through_the_gap_and_its_path_has_room() -> None:
    space = space_of(walled())
    found = RouteSearches(SETTINGS).find(space, START, GOAL, BOX, 0.15)
    path, ends = near_path(space, found.nodes, START, GOAL, 20.0, True)
    assert ends
    np.testing.assert_allclose(path[[0, -1]], [START, GOAL])
    assert space.has_room(path).all()
    assert np.linalg.norm(np.diff(path, axis=0), axis=1).max() < 1.5 * SPACING
    through = path[np.argmin(np.abs(path[:, 0] - 3.1))]
    # The gap is 1 m wide: the middle 0.4 m of it have room for a body of 0.3 m.
    assert 2.85 < through[1] < 3.35


def test_no_way_is_no_route_and_what_is_refused_is_not_flown() -> None:
    odds = walled()
    searches = RouteSearches(SETTINGS)
    space = space_of(odds)
    assert space.refuse(np.array([3.1, 3.1, 1.0]), 1.0, True) > 100
    assert not len(searches.find(space, START, GOAL, BOX, 0.15).nodes)
    assert space.pardon() > 100
    assert len(searches.find(space, START, GOAL, BOX, 0.15).nodes)
    odds[30:32] = MOST + 1
    assert not len(searches.find(space_of(odds), START, GOAL, BOX, 0.15).nodes)


def test_into_the_unknown_a_route_is_not_steeper_than_sight() -> None:
    odds = np.full(CELLS, KNOWN - 1, np.int16)
    space = space_of(odds)
    low, high = np.array([1.0, 2.0, 0.4]), np.array([1.6, 2.0, 1.6])
    found = RouteSearches(SETTINGS).find(space, low, high, BOX, 0.05)
    points = space.room_of_nodes(found.nodes)
    step = np.diff(points, axis=0)
    assert (np.abs(step[:, 2]) <= 0.5001 * np.hypot(step[:, 0], step[:, 1])).all()
    # What is known may be climbed straight up.
    known = space_of(np.full(CELLS, LEAST, np.int16))
    straight = known.room_of_nodes(RouteSearches(SETTINGS).find(known, low, low + np.array([0, 0, 1.2]), BOX, 0.05).nodes)
    assert np.ptp(straight[:, :2], axis=0).max() < 0.01


def test_a_gap_that_was_not_seen_is_weighed_against_one_that_was() -> None:
    """Unknown cells above something that stands cost more than a detour through what was seen."""
    odds = walled()
    odds[30:32, :26, 12:] = KNOWN - 1  # nobody has seen whether the wall ends at 1.2 m
    space = space_of(odds)
    points = space.room_of_nodes(RouteSearches(SETTINGS).find(space, START, GOAL, BOX, 0.15).nodes)
    assert points[np.argmin(np.abs(points[:, 0] - 3.1)), 1] > 2.8


def test_an_eased_path_climbs_by_a_tenth_and_goes_where_the_other_goes() -> None:
    points = np.array([[0.0, 0.0, 1.5], [0.3, 0.4, 1.4], [0.6, 0.8, 2.0], [0.6, 0.8, 2.5], [6.6, 8.8, 0.9]])
    # Along the ground 0, 0.5, 1, 1, 11 m from a flight that is at 1.6 m: it may be 0, 0.05, 0.1, 0.1, 1.1 m above or below.
    found = eased(points, np.array([0.0, 0.0, 1.6]))
    np.testing.assert_allclose(found, [[0.0, 0.0, 1.6], [0.3, 0.4, 1.55], [0.6, 0.8, 1.7], [0.6, 0.8, 1.7], [6.6, 8.8, 0.9]])
    assert points[2, 2] == 2.0


def test_the_cost_of_a_route_is_its_length_in_the_open() -> None:
    space = space_of(np.full(CELLS, LEAST, np.int16))
    near, far = np.array([1.0, 2.0, 1.0]), np.array([5.0, 2.0, 1.0])
    found = RouteSearches(SETTINGS).find(space, near, far, BOX, 0.05)
    assert found.cost == pytest.approx(4.0, abs=0.01)
    assert route_twin(space, SETTINGS, near, far, BOX, 0.05).cost == pytest.approx(found.cost, rel=1e-12)


def test_what_is_seen_is_flown_before_what_no_camera_shows_from_near() -> None:
    """A cone of sight that opens from the start on, and a goal above it: level to where the cone has room, then up."""
    x, z = np.arange(60)[:, None] * 0.1, (np.arange(20) + 0.5)[None] * 0.1
    seen = np.abs(z - 0.5) < 0.2 + 0.55 * np.maximum(x - 0.6, 0.0)
    odds = np.where(np.broadcast_to(seen[:, None], CELLS), LEAST, KNOWN - 1).astype(np.int16)
    space, start, goal = space_of(odds), np.array([0.7, 2.0, 0.5]), np.array([3.6, 2.0, 1.6])

    def climbed_after(blind: float) -> float:
        nodes = RouteSearches(replace(SETTINGS, blind=blind)).find(space, start, goal, BOX, 0.15).nodes
        points = space.room_of_nodes(nodes)
        return float(points[np.flatnonzero(points[:, 2] > 0.75)[0], 0])

    assert climbed_after(4.0) > climbed_after(0.01) + 0.2


def test_the_floor_is_nothing_that_stands() -> None:
    odds = np.full(CELLS, KNOWN - 1, np.int16)
    odds[:, :, 0] = MOST + 1
    floor = space_of(odds)
    assert not floor.column.any()
    odds[20:22, 20:22, :3] = MOST + 1
    assert space_of(odds).column[10, 10] == 1


def test_a_route_that_is_flown_is_kept_unless_another_is_much_shorter() -> None:
    """Two gaps, on the line and 1.4 m beside it, a fence between them, and a flight on its way to the one that is farther."""
    odds = np.full(CELLS, LEAST, np.int16)
    odds[30:32] = MOST + 1
    odds[30:32, 15:25] = odds[30:32, 29:39] = LEAST
    odds[16:30, 26:28] = MOST + 1
    space, here = space_of(odds), np.array([1.0, 2.0, 1.0])

    def followed(loyalty: float) -> float:
        settings = KnownFreeSettings(route=replace(SETTINGS, loyalty=loyalty))
        routes = FollowedRoutes(GOAL[None], BOX[None], settings, RouteSearches(settings.route))
        way = resampled(np.array([here, [1.2, 3.2, 1.0], [2.9, 3.4, 1.0]]), 10.0)
        routes.follow(0, way, False)
        spent = routes.find(0, 0.0, here, space)
        assert spent > 0
        path = routes.path(0)
        return float(path[np.argmin(np.abs(path[:, 0] - 3.1)), 1])

    assert followed(0.1) < 2.2
    assert followed(2.0) > 3.1


def test_a_route_is_searched_when_it_is_old_blocked_or_short() -> None:
    space, settings = space_of(walled()), KnownFreeSettings()
    routes = FollowedRoutes(GOAL[None], BOX[None], settings, RouteSearches(SETTINGS))
    assert routes.due(0, 0.0, space)
    routes.find(0, 0.0, START, space)
    assert routes.ends[0]
    assert not routes.due(0, 0.3, space)
    assert routes.due(0, settings.route_every, space)
    straight = np.column_stack([np.linspace(0.6, 5.0, 45), np.full(45, 2.0), np.ones(45)])
    routes.follow(0, straight, False)  # through the wall
    assert routes.due(0, 0.3, space)
    routes.follow(0, routes.path(0)[:20], False)  # up to it, but it goes on
    assert routes.due(0, 0.3, space)
    routes.trim(0, np.array([1.5, 2.0, 1.0]))
    np.testing.assert_allclose(routes.path(0)[0], [1.5, 2.0, 1.0])


def test_where_all_that_is_left_was_refused_it_is_tried_again() -> None:
    space, settings = space_of(walled()), KnownFreeSettings()
    routes = FollowedRoutes(GOAL[None], BOX[None], settings, RouteSearches(SETTINGS))
    space.refuse(np.array([3.1, 3.1, 1.0]), 1.0, True)
    routes.find(0, 0.0, START, space)
    assert not len(routes.path(0))
    routes.find(0, 0.1, START, space)
    assert routes.ends[0]
    np.testing.assert_allclose(routes.path(0)[-1], GOAL)
