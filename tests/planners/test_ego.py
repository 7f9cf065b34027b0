"""EGO-Planner in flight, with ideal tracking and maps that reveal what comes within sight."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.planner_demo import Forest, arrived, clearance, fly_ideally
from benchmarks.planner_maps import SolidMaps, mission, pillars

from airworthy.planners.common.interface import Mission, Motion
from airworthy.planners.ego import EgoConfig, EgoPlanner, EgoState
from airworthy.planners.ego.planner import SplineServer

LOWER, UPPER = (-2.0, -4.0, 0.0), (14.0, 4.0, 2.0)
START, GOAL = np.array([0.0, 0.0, 1.0]), np.array([12.0, 0.0, 1.0])


def _task(count: int, speed: float = 2.0, acceleration: float = 3.0) -> Mission:
    return mission(np.tile(START, (count, 1)), np.tile(GOAL, (count, 1)), LOWER, UPPER, speed, acceleration)


def _wall(side: float) -> np.ndarray:
    """Across the way, with one gap of 2 m whose middle is 2 m aside, to the left (1) or right (-1)."""
    grid = np.zeros((160, 80, 20), bool)
    y = LOWER[1] + (np.arange(80) + 0.5) * 0.1
    grid[78:82, ~((side * y > 1.0) & (side * y < 3.0))] = True
    return grid


def _when_there(path: np.ndarray) -> float:
    near = np.linalg.norm(path - GOAL, axis=1) < 0.5
    assert near.any()
    return float(np.argmax(near)) * 0.01


RADIUS = np.array([0.5])


def _past_pillars(config: EgoConfig, offsets: list[float], speed: float, acceleration: float) -> tuple[np.ndarray, ...]:
    """Clearance, side and time, as a share of the straight flight's, past a pillar on or beside the way, by offset."""
    axes = [np.array([[6.0, offset]]) for offset in offsets]
    grids = [np.zeros((160, 80, 20), bool), *(pillars(axis, RADIUS, LOWER, UPPER) for axis in axes)]
    task = _task(len(grids), speed, acceleration)
    flown = fly_ideally(EgoPlanner(config), task, SolidMaps(grids, task, 4.5), 18.0 / speed)
    assert (flown.states[:, -1] == EgoState.WAIT).all()
    times = np.array([_when_there(path) for path in flown.path])
    abreast = [path[np.argmin(np.abs(path[:, 0] - 6.0)), 1] for path in flown.path[1:]]
    gaps = [clearance(path, axis, RADIUS) for path, axis in zip(flown.path[1:], axes, strict=True)]
    return np.array(gaps), np.sign(np.array(abreast) - offsets), times[1:] / times[0]


SPEEDS = pytest.mark.parametrize(("speed", "acceleration"), [(2.0, 3.0), (4.0, 6.0)])


@SPEEDS
def test_a_pillar_ahead_is_passed_on_either_side_with_distance_and_little_delay(speed: float, acceleration: float) -> None:
    gaps, sides, times = _past_pillars(EgoConfig(), [0.0, 0.05, -0.05], speed, acceleration)
    assert (gaps >= 0.3).all()
    assert (times <= 1.15).all()
    assert sides[1] < 0.0 < sides[2]


@SPEEDS
def test_minimised_further_pillars_beside_the_way_are_passed_with_distance_too(speed: float, acceleration: float) -> None:
    # As published a minimisation may end before that: |x| counts metres from the world's origin.
    gaps, sides, times = _past_pillars(EgoConfig(gradient=0.001), [0.1, -0.1, 0.2, -0.3], speed, acceleration)
    assert (gaps >= 0.3).all()
    assert (times <= 1.15).all()
    assert np.array_equal(sides, [-1.0, 1.0, -1.0, 1.0])


@SPEEDS
def test_a_wall_is_passed_by_its_gap(speed: float, acceleration: float) -> None:
    task = _task(3, speed, acceleration)
    grids = [np.zeros((160, 80, 20), bool), _wall(1.0), _wall(-1.0)]
    flown = fly_ideally(EgoPlanner(), task, SolidMaps(grids, task, 4.5), 18.0 / speed)
    for path, side in zip(flown.path[1:], (1.0, -1.0), strict=True):
        assert _when_there(path) <= 1.15 * _when_there(flown.path[0])
        y = side * path[np.abs(path[:, 0] - 6.0) < 0.2, 1]
        assert y.min() > 1.0
        assert y.max() < 3.0
    assert (flown.states[:, -1] == EgoState.WAIT).all()


def test_flights_do_not_depend_on_their_batch_and_repeat() -> None:
    forest, seeds = Forest(length=16.0, width=16.0, count=40), [3, 8, 5]
    task = forest.mission(seeds, 2.0, 3.0)
    together = fly_ideally(EgoPlanner(), task, forest.maps(seeds, task), 4.5)
    for i, seed in ((0, 3), (2, 5)):  # the first and the last of the batch
        alone = forest.mission([seed], 2.0, 3.0)
        path = fly_ideally(EgoPlanner(), alone, forest.maps([seed], alone), 4.5).path
        assert np.array_equal(path[0], together.path[i])


class _Suddenly(SolidMaps):
    """A wall from side to side, which is there from when the flight is near."""

    def reveal(self, position: np.ndarray) -> None:
        if position[0, 0] > 4.0:
            super().reveal(position)


def test_a_wall_without_a_way_stops_the_vehicle() -> None:
    grid = np.zeros((160, 80, 20), bool)
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
    maps = SolidMaps([np.zeros((160, 80, 20), bool)], task)
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
