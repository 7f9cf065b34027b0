"""Ways back: trails that never cross themselves, and flights that go back to see what they stand before."""

from __future__ import annotations

import numpy as np
import pytest
from tests.planners.known_free_cases import ConeMaps, box_world, fly, mission_of

from airworthy.benchmarks.navigation.config import Flight, NavigationConfig
from airworthy.benchmarks.navigation.fly_batch import fly_flights
from airworthy.benchmarks.navigation.methods import method_of
from airworthy.core.arrays import Array
from airworthy.planners.known_free import KnownFreePlanner, KnownFreeSettings
from airworthy.planners.known_free.movers import MoversSeen
from airworthy.planners.known_free.path import SPACING
from airworthy.planners.known_free.retreats import Retreats
from airworthy.planners.known_free.trails import Trails


def noted(*points: tuple[float, float]) -> Trails:
    trails = Trails(np.zeros((1, 3)))
    for x, y in points:
        trails.note(0, np.array([x, y, 0.0]))
    return trails


def test_a_way_back_is_the_way_that_was_flown() -> None:
    trails = noted((0.1, 0.0), (0.3, 0.0), (0.6, 0.0), (0.9, 0.0), (0.9, 0.3), (0.9, 0.6))
    way = trails.back(0, np.array([0.9, 0.7, 0.0]), 10.0)
    np.testing.assert_allclose(way[[0, -1]], [[0.9, 0.7, 0.0], [0.0, 0.0, 0.0]])
    assert len(way) == round((0.7 + 0.9) / SPACING) + 1
    np.testing.assert_allclose(trails.back(0, np.array([0.9, 0.7, 0.0]), 1.0)[-1], [0.6, 0.0, 0.0], atol=1e-9)


def test_a_trail_that_comes_back_to_itself_loses_the_loop() -> None:
    loop = noted((0.3, 0.0), (0.6, 0.0), (0.9, 0.0), (0.9, 0.3), (0.6, 0.3), (0.35, 0.25), (0.35, 0.1))
    way = loop.back(0, np.array([0.35, 0.1, 0.0]), 10.0)
    assert way[:, 0].max() < 0.4
    np.testing.assert_allclose(way[-1], 0.0, atol=1e-9)


def test_who_came_from_nowhere_has_no_way_back() -> None:
    assert Trails(np.zeros((1, 3))).back(0, np.array([0.2, 0.0, 0.0]), 5.0).shape == (0, 3)
    retreats = Retreats(np.zeros((2, 3)))
    assert not len(retreats.begin(1, 0.0, np.array([0.2, 0.0, 0.0]), np.ones(3), 0))
    assert not retreats.goes_back(1)
    assert retreats.count.sum() == 0


def test_a_way_back_that_is_not_known_is_looked_along_by_who_is_told_to() -> None:
    """What was not seen lies ahead, along x; the way back leads to the left, and its first 0.3 m are known to be free."""
    world = box_world((10.0, 10.0, 3.0))
    here, way = np.array([5.0, 5.0, 1.2]), np.stack([np.full(21, 5.0), 5.0 + SPACING * np.arange(21), np.full(21, 1.2)], 1)
    for told, known, wanted in ((False, 2, 0.0), (True, 2, 0.5 * np.pi), (True, 10, 0.0)):
        planner = KnownFreePlanner(KnownFreeSettings(look_back=told))
        planner.reset(mission_of([world], here[None], np.array([[9.0, 5.0, 1.2]]), ("virt_05",)))
        for point in way[::-3]:
            planner.retreats.note(0, point)
        planner.retreats.begin(0, 0.0, here, here + np.array([2.0, 0.0, 0.0]), 0)
        planner._routes.follow(0, way, True)
        planner._look(0, here, known)
        assert planner._heading.wanted[0] == pytest.approx(wanted)


@pytest.mark.slow
def test_who_looks_along_its_way_back_does_not_stand_until_the_end() -> None:
    """Maze 8 and `virt_13`: it flew 8 m, then stood before a corner of its own way, which it had never seen."""
    flown = fly_flights([Flight("maze", 8, "virt_13")], method_of("known_free"), NavigationConfig())
    assert flown.watch.outcome[0] == "success"


def test_each_time_it_goes_back_twice_as_far_and_looks_to_what_it_did_not_see() -> None:
    retreats = Retreats(np.zeros((1, 3)))
    for x in np.arange(0.3, 30.0, 0.3):
        retreats.note(0, np.array([x, 0.0, 0.0]))
    here, lengths = np.array([29.9, 0.0, 0.0]), []
    for tries in range(5):
        way = retreats.begin(0, 5.0, here, np.array([29.9, 1.0, 0.0]), tries)
        lengths.append(float(np.linalg.norm(way[-1] - way[0])))
        assert retreats.goes_back(0)
        np.testing.assert_allclose(retreats.heading(0, np.array([28.9, 0.0, 0.0])), np.pi / 4)
    np.testing.assert_allclose(lengths, [2.0, 4.0, 8.0, 12.0, 12.0], atol=1e-9)
    assert retreats.count[0] == 5
    assert not retreats.is_late(0, 12.9)
    assert retreats.is_late(0, 13.1)
    retreats.end(0)
    assert not retreats.goes_back(0)


RISES = (3.0, 4.6, 5.2)


class Rising(ConeMaps):
    """A wall across the whole area rises before each flight, when it is at `RISES`: its camera sees no upper edge of it."""

    def see(self, flight: int, position: Array, yaw: float) -> None:
        if position[0] > RISES[flight]:
            self.worlds[flight][78:82, :, :39] = True
        super().see(flight, position, yaw)


@pytest.mark.slow
def test_walls_that_rise_before_flights_are_looked_at_from_farther_away_and_flown_over(monkeypatch: pytest.MonkeyPatch) -> None:
    # What rises moves: who follows it gets out of its way, and sees its upper edge from there. Here nobody does.
    monkeypatch.setattr(MoversSeen, "see", lambda *_: None)
    worlds = [box_world((20.0, 4.0, 5.0)) for _ in RISES]
    start, goal = (np.repeat([[x, 2.0, 0.8]], len(RISES), 0) for x in (1.5, 18.5))
    planner, maps = KnownFreePlanner(), Rising(worlds)
    flown = fly(planner, worlds, mission_of(worlds, start, goal, ("virt_05",) * len(RISES)), 45.0, maps=maps)
    assert flown.arrived.all()
    assert planner.retreats.count.sum() >= 1
    for track in flown.tracks:
        over = track[(track[:, 0] > 7.8) & (track[:, 0] < 8.2)]
        assert over[:, 2].min() > 4.15
