"""EGO-Planner in flight, with ideal tracking and maps that reveal what comes within sight."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.planner_demo import Forest, arrived, clearance, fly_ideally
from benchmarks.planner_maps import SolidMaps, mission, pillars

from airworthy.pilots.ego import EgoConfig, EgoPlanner, EgoState
from airworthy.pilots.ego.server import SplineServer
from airworthy.pilots.planning.interface import Mission, Motion

LOWER, UPPER = (-2.0, -5.0, 0.0), (14.0, 5.0, 3.0)
START, GOAL = np.array([0.0, 0.0, 1.0]), np.array([12.0, 0.0, 1.0])


def _task(count: int) -> Mission:
    return mission(np.tile(START, (count, 1)), np.tile(GOAL, (count, 1)), LOWER, UPPER)


def _wall() -> np.ndarray:
    """Across the way, with one gap of 2 m that begins 1 m aside."""
    grid = np.zeros((160, 100, 30), bool)
    y = LOWER[1] + (np.arange(100) + 0.5) * 0.1
    grid[78:82, ~((y > 1.0) & (y < 3.0))] = True
    return grid


def _when_there(path: np.ndarray) -> float:
    near = np.linalg.norm(path - GOAL, axis=1) < 0.5
    assert near.any()
    return float(np.argmax(near)) * 0.01


def test_a_pillar_is_passed_with_distance_and_little_delay_and_a_wall_by_its_gap() -> None:
    axis, radius = np.array([[6.0, 0.0]]), np.array([0.5])
    grids = [np.zeros((160, 100, 30), bool), pillars(axis, radius, LOWER, UPPER), _wall()]
    task = _task(3)
    flown = fly_ideally(EgoPlanner(), task, SolidMaps(grids, task, 4.5), 12.0)
    straight, pillar = (_when_there(flown.path[i]) for i in (0, 1))
    assert clearance(flown.path[1], axis, radius) >= 0.3
    assert pillar <= 1.15 * straight
    wall = flown.path[2]
    assert _when_there(wall) < 1.5 * straight
    inside = np.abs(wall[:, 0] - 6.0) < 0.2
    assert (wall[inside, 1] > 1.0).all()
    assert (wall[inside, 1] < 3.0).all()
    assert (flown.states[:, -1] == EgoState.WAIT).all()


def test_flights_do_not_depend_on_their_batch_and_repeat() -> None:
    forest, seeds = Forest(length=16.0, width=16.0, count=40), [3, 8, 5]
    task = forest.mission(seeds, 2.0, 3.0)
    together = fly_ideally(EgoPlanner(), task, forest.maps(seeds, task), 6.0)
    for i, seed in enumerate(seeds):
        alone = forest.mission([seed], 2.0, 3.0)
        path = fly_ideally(EgoPlanner(), alone, forest.maps([seed], alone), 6.0).path
        assert np.array_equal(path[0], together.path[i])


class _Suddenly(SolidMaps):
    """A wall from side to side, which is there from when the flight is near."""

    def reveal(self, position: np.ndarray) -> None:
        if position[0, 0] > 4.0:
            super().reveal(position)


def test_a_wall_without_a_way_stops_the_vehicle() -> None:
    grid = np.zeros((160, 100, 30), bool)
    grid[66:70] = True
    task = _task(1)
    planner = EgoPlanner(EgoConfig(expansions=500))
    flown = fly_ideally(planner, task, _Suddenly([grid], task, 9.0), 5.0)
    assert EgoState.STOP in flown.states
    # It never reached the wall, and stands.
    assert flown.path[0, :, 0].max() < 4.6
    assert np.linalg.norm(flown.path[0, -1] - flown.path[0, -100]) < 0.2


def _motion(time: float) -> Motion:
    level = np.array([[0.0, 0.0, 0.0, 1.0]])
    return Motion(np.array([time]), START[None], np.zeros((1, 3)), level)


def test_plans_hold_after_their_compute_and_nothing_is_thought_meanwhile() -> None:
    task = _task(1)
    maps = SolidMaps([np.zeros((160, 100, 30), bool)], task)
    planner = EgoPlanner()
    planner.reset(task)
    every = np.ones(1, bool)
    said = planner.update(_motion(0.0), maps, every)
    assert said["replans"][0] == 1
    assert said["work"]["evaluations"][0] > 0
    planner.adopt(np.array([0.2]))
    for time in (0.01, 0.1, 0.19):
        assert planner.update(_motion(time), maps, every)["work"]["evaluations"][0] == 0
        planner.adopt(np.zeros(1))
        assert planner.setpoints(np.array([time])).position[0] == pytest.approx(START, abs=1e-12)
    assert planner.setpoints(np.array([0.2])).position[0] == pytest.approx(START, abs=1e-3)
    assert planner.setpoints(np.array([1.2])).position[0, 0] > 0.3
    # Flights that are not active are left alone.
    planner.reset(task)
    assert planner.update(_motion(0.0), maps, ~every)["replans"][0] == 0


def test_the_yaw_looks_ahead_turns_at_its_limit_and_set_points_hold_at_the_end() -> None:
    server = SplineServer(np.zeros((2, 3)), np.array([0.0, 3.0]))
    control = np.zeros((2, 128, 3))
    control[0, :20, 1] = 0.4 * np.arange(20)
    control[1, :20, :2] = -0.4 * np.arange(20)[:, None] * np.array([1.0, 0.1])
    server.take(np.arange(2), control, np.array([20, 20]), np.array([0.2, 0.2]), np.zeros(2))
    said = [server.setpoints(np.full(2, 0.01 * k)) for k in range(400)]
    yaw, rate = (np.array([getattr(s, name) for s in said]) for name in ("yaw", "yaw_rate"))
    # A quarter turn at pi rad/s takes half a second; the other crosses from pi to -pi and goes the short way.
    assert yaw[25, 0] == pytest.approx(0.25 * np.pi, abs=0.05)
    assert yaw[80, 0] == pytest.approx(0.5 * np.pi, abs=1e-3)
    assert np.abs(rate).max() <= np.pi + 1e-9
    assert yaw[80, 1] == pytest.approx(np.arctan2(-0.1, -1.0), abs=1e-3)
    assert np.abs(rate[:, 1]).sum() * 0.01 < 0.4
    end = said[-1]
    assert end.position[0] == pytest.approx([0.0, 0.4 * 18, 0.0])
    assert not end.velocity.any()
    assert not end.acceleration.any()
    # Asked again for the same instant, nothing moves on.
    assert np.array_equal(server.setpoints(np.full(2, 3.99)).yaw, end.yaw)


@pytest.mark.slow
def test_the_demonstration() -> None:
    forest, seeds = Forest(), list(range(20))
    task = forest.mission(seeds, 2.0, 3.0)
    flown = fly_ideally(EgoPlanner(), task, forest.maps(seeds, task), 35.0)
    assert arrived(flown, task, forest, seeds).mean() >= 0.9
