"""What a vehicle lastingly is beside its set-points, and plans that leave no room for it there."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.planners.test_known_free_decisions import Fast, flight

from airworthy.planners.known_free.known_space import CellSource, Certifier, KnownSpace, ball_cells, merge, ring_nodes
from airworthy.planners.known_free.tracking_errors import TrackingErrors, has_room_beside

BODY, CEILING = 0.3, 1.5
CELLS = np.array([40, 20, 20], np.int32)
LEVEL = np.stack([0.6 + 0.1 * np.arange(20), np.ones(20), np.full(20, 1.185)], -1)
"""A path 0.315 m below the ceiling."""
UP = np.array([0.0, 0.0, 1.0])


def under_a_ceiling(free_until: int = 20) -> KnownSpace:
    """Free cells below 1.5 m and occupied ones above; from a cell of x on nothing is known."""
    space = KnownSpace(np.zeros(3), CELLS, 0.1, ball_cells(BODY, 0.1), ring_nodes(0.6, 1.0, 0.1))
    odds = np.full(CELLS, -60, np.int16)
    odds[:, :, 15:] = 60
    odds[free_until + 20 :] = -200
    merge(
        [space], [CellSource(odds.reshape(-1), CELLS, np.zeros(3, np.int32), np.zeros(3, np.int32), CELLS)], -100, -50, 50, 27
    )
    return space


@pytest.mark.parametrize(("beside", "room"), [(0.0, True), (0.009, True), (0.025, False), (-0.2, True)])
def test_a_body_needs_room_where_it_is_not_where_its_plan_is(beside: float, room: bool) -> None:
    """0.315 m are free above the path: a body of 0.3 m that stays 9 mm above it passes, one 25 mm above it does not."""
    path = np.concatenate([LEVEL[:8] - 0.1 * UP, LEVEL[8:]])
    assert has_room_beside(Certifier(), under_a_ceiling(), path, beside * UP, BODY) == room


@pytest.mark.parametrize(
    ("near", "rises", "room"),
    [
        (0.298, 0.0, True),
        (0.298, 0.02, False),
        (0.25, 0.0, True),
        (0.17, 0.05, False),
        (0.1, 0.03, True),
        # Nearer than 0.3041 m the body is not covered between two points.
        (0.33, 0.0275, False),
        (0.33, 0.024, True),
    ],
)
def test_who_is_too_near_already_comes_no_nearer(near: float, rises: float, room: bool) -> None:
    """By a hundredth of the body where it is hardly too near; who is in the thick of it may go anywhere."""
    path = LEVEL.copy()
    path[:, 2] = CEILING - near - 0.02
    path[4:, 2] += rises
    assert has_room_beside(Certifier(), under_a_ceiling(), path, 0.02 * UP, BODY) == room


def test_what_is_unknown_is_the_business_of_the_certificate() -> None:
    assert has_room_beside(Certifier(), under_a_ceiling(-10), LEVEL, 0.005 * UP, BODY)


def test_what_is_lasting_is_half_a_second_old_and_a_moment_counts_little() -> None:
    errors = TrackingErrors(2)
    for _ in range(50):
        errors.note(np.array([1]), np.array([[0.0, 0.0, 0.02]]))
    assert errors.lasting[1] == pytest.approx([0.0, 0.0, 0.02 * (1.0 - 0.98**50)])
    assert errors.lasting[1, 2] == pytest.approx(0.02 * (1.0 - np.exp(-1.0)), rel=0.01)
    errors.note(np.array([1]), np.array([[0.3, 0.0, 0.02]]))
    assert errors.lasting[1, 0] == pytest.approx(0.006)
    assert errors.farthest[1] == pytest.approx(np.hypot(0.3, 0.02))
    assert not errors.lasting[0].any()
    assert errors.farthest[0] == 0.0


@pytest.mark.parametrize(("up", "flies"), [(0.0, True), (0.008, True), (0.03, False)])
def test_a_plan_is_not_flown_where_the_vehicle_has_no_room_beside_it(up: float, flies: bool) -> None:
    """The same certified candidate, and a vehicle that hangs 0, 8 or 30 mm above its set-points under a ceiling."""
    one = flight(limits=SimpleNamespace(jerk=np.full(1, 60.0)))
    one._certified = lambda _flight, paths, *_: (np.array([len(p) for p in paths]), None)
    one._certifier, space = Certifier(), under_a_ceiling()
    one._memories.of = lambda _: space
    one.tracking_errors.lasting[0] = up * UP

    class Slow(Fast):
        speed = np.array([0.5])

        def trajectory(self, *_: object) -> object:
            return SimpleNamespace(points=lambda *_: np.concatenate([LEVEL[:8] - 0.1 * UP, LEVEL[8:] - 0.005 * UP]))

    assert (one._first_certified(0, Slow(), 0.0, 1.0, {}, np.inf) is not None) == flies


def beside_under_a_ceiling(count: int, body: float = BODY) -> Any:
    """Flights that hang 0.025 m above their set-points, the last of them, on a path 0.315 m below the ceiling."""
    one = flight(limits=SimpleNamespace(jerk=np.full(count, 60.0)))
    one._certifier, space = Certifier(), under_a_ceiling()
    one._memories.of = lambda _: space
    one.tracking_errors = TrackingErrors(count)
    one.tracking_errors.lasting[-1] = 0.025 * UP
    one.config = replace(one.config, body=body)
    return one


@pytest.mark.parametrize(
    ("share", "spare", "room"), [(1.0, 0.026, True), (1.0, 0.024, False), (0.7, 0.03, False), (0.7, 0.04, True)]
)
def test_what_the_spare_covers_needs_no_look_and_a_relaxed_plan_has_less_of_it(share: float, spare: float, room: bool) -> None:
    """Of the spare a share is kept where a plan is relaxed; of the body, which is where it is, all."""
    path = np.concatenate([LEVEL[:8] - 0.1 * UP, LEVEL[8:]])
    assert beside_under_a_ceiling(1)._has_room_beside(0, path, share, spare) == room


def test_room_is_asked_for_by_the_body_that_flies_and_by_its_own_errors() -> None:
    path = np.concatenate([LEVEL[:8] - 0.1 * UP, LEVEL[8:]])
    assert beside_under_a_ceiling(1, body=0.25)._has_room_beside(0, path, 1.0, 0.0)
    two = beside_under_a_ceiling(2)
    assert two._has_room_beside(0, path, 1.0, 0.0)
    assert not two._has_room_beside(1, path, 1.0, 0.0)
