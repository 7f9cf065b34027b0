"""Routes: the compiled search and its readable twin give the same nodes; unknown space is entered only as cameras can see."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.planners.known_free.config import RouteSettings
from airworthy.planners.known_free.known_space import CellSource, KnownSpace, ball_cells, merge, ring_nodes
from airworthy.planners.known_free.path import SPACING, eased, near_path
from airworthy.planners.known_free.route import RouteSearches, route_twin

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
