"""What a vehicle can fly of the student's trajectories: smoothing across the way, as much as its thrust needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.benchmarks.navigation.missions import catalogue_vehicle
from airworthy.planners.agile_autonomy.flyable import SMOOTHINGS, FlyablePaths, side_room, smoothed_fit
from airworthy.planners.common.interface import Airframes, Mission, Motion
from airworthy.planners.sampling_expert.retimed import RetimedPaths
from airworthy.planners.sampling_expert.sampling import TIMES, constrained_fit, powers


def mission(*vehicles: str) -> Mission:
    count = len(vehicles)
    rows = [np.tile(row, (count, 1)) for row in ([-6.0, 0.0, 1.5], [6.0, 0.0, 1.5], [-12.0, -8.0, 0.0], [12.0, 8.0, 3.0])]
    flown = Airframes.of([catalogue_vehicle(name) for name in vehicles])
    return Mission(rows[0], rows[1], np.full(count, 4.0), np.full(count, 6.0), rows[2], rows[3], np.arange(count), 2, flown)


def motion(count: int, speed: float) -> Motion:
    level, ahead = np.tile([0.0, 0.0, 0.0, 1.0], (count, 1)), np.tile([speed, 0.0, 0.0], (count, 1))
    return Motion(np.zeros(count), np.tile([-6.0, 0.0, 1.5], (count, 1)), ahead, level)


def dodge(speed: float, side: float) -> np.ndarray:
    """Points (10, 3) that are `side` [m] off the line of flight from the first half of the horizon on."""
    aside = side * np.minimum(2.0 * TIMES, 1.0)
    return np.array([-6.0, 0.0, 1.5]) + np.stack([speed * TIMES, aside, 0.0 * TIMES], axis=1)


def across(paths: RetimedPaths, flight: int) -> float:
    """Largest acceleration to the side that is asked for within 0.8 s [m/s^2]."""
    times = np.full(len(paths._mission.start), 1.0) * np.arange(0.0, 0.8, 0.01)[:, None]
    return float(max(abs(paths.setpoints(t).acceleration[flight, 1]) for t in times))


def test_smoothed_fit_is_where_distances_and_jerk_cost_least() -> None:
    rng, weight = np.random.default_rng(3), 1e-3
    points, start = rng.normal(size=10), rng.normal(size=3)
    by_points, by_start = smoothed_fit(weight)
    found = by_points @ points + by_start @ start
    np.testing.assert_allclose(found[:3], start * [1.0, 1.0, 0.5], atol=1e-12)
    fine = np.asarray((np.arange(4000) + 0.5) / 4000.0, np.float64)

    def cost(coefficients: np.ndarray) -> float:
        missed = powers(TIMES, 5) @ coefficients - points
        return float((missed**2).sum() + weight * ((powers(fine, 5, 3) @ coefficients) ** 2).mean())

    for k in (3, 4, 5):
        step = np.where(np.arange(6) == k, 1e-3, 0.0)
        # A quadratic is least where both sides cost the same; the midpoint rule of 4,000 is off by 1e-8 of the jerk's part.
        assert cost(found + step) == pytest.approx(cost(found - step), rel=1e-6)
        assert cost(found + step) > cost(found)
    for mine, plain in zip(smoothed_fit(0.0), constrained_fit(5, 3), strict=True):
        np.testing.assert_allclose(mine, plain, atol=1e-8)


def test_weak_vehicles_turn_aside_gently_and_strong_ones_harder() -> None:
    given = mission("real_09", "virt_05")
    paths, plain, now = FlyablePaths(given), RetimedPaths(given), motion(2, 4.0)
    for flight in range(2):
        for each in (paths, plain):
            each.decide(flight, dodge(4.0, 0.6), now, 4.0)
    weak, strong, told = across(paths, 0), across(paths, 1), across(plain, 1)
    assert given.vehicle is not None
    ratio = given.vehicle.thrust_to_weight
    # A quarter of what is left to the side where that is g.
    assert side_room(np.array([np.sqrt(2.0)]))[0] == pytest.approx(0.25 * 9.81)
    assert weak < 0.5 * told
    # Its smoothing is none.
    assert strong == pytest.approx(told)
    assert strong < side_room(ratio)[1]
    # Where a smoothing that it can follow is found, no more is asked.
    paths.decide(0, dodge(4.0, 0.2), now, 4.0)
    assert across(paths, 0) <= side_room(ratio)[0]


def test_what_no_smoothing_makes_flyable_is_smoothed_most() -> None:
    paths = FlyablePaths(mission("real_09"))
    start = np.array([[-6.0, 0.0, 1.5], [4.0, 0.0, 0.0], [0.0, 9.0, 0.0]])
    points = dodge(4.0, 3.0)
    by_points, by_start = smoothed_fit(SMOOTHINGS[-1])
    np.testing.assert_allclose(paths._fitted(0, points, start)[:, 1], (by_points @ points + by_start @ start)[:, 1])


def test_the_least_smoothing_that_suffices_is_taken() -> None:
    given = mission("real_09")
    assert given.vehicle is not None
    room, paths = side_room(given.vehicle.thrust_to_weight)[0], FlyablePaths(given)
    start = np.array([[-6.0, 0.0, 1.5], [4.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    early = powers(np.linspace(0.05, 0.8, 16), 5, 2)
    taken = []
    for side in (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4):
        points = dodge(4.0, side)
        sideways = [by_points @ points[:, 1] + by_start @ start[:, 1] for by_points, by_start in map(smoothed_fit, SMOOTHINGS)]
        enough = [k for k, path in enumerate(sideways) if np.abs(early @ path).max() <= room]
        least = enough[0] if enough else len(SMOOTHINGS) - 1
        np.testing.assert_allclose(paths._fitted(0, points, start)[:, 1], sideways[least], atol=1e-9)
        taken.append(least)
    assert len(set(taken) & {1, 2, 3}) >= 2, taken


def test_speed_of_what_cannot_hover_still_changes() -> None:
    given = mission("real_09")
    assert given.vehicle is not None
    heavy = replace(given, vehicle=replace(given.vehicle, thrust_to_weight=np.array([0.9])))
    assert FlyablePaths(heavy)._limit(0) == 1.0


def test_along_the_way_nothing_is_smoothed() -> None:
    given = mission("real_09")
    paths, plain = FlyablePaths(given), RetimedPaths(given)
    rest = np.array([[-6.0, 0.0, 1.5], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    points = rest[0] + 0.5 * np.outer(TIMES**2, [1.0, 0.0, 0.0])
    np.testing.assert_allclose(paths._fitted(0, points, rest), plain._fitted(0, points, rest), atol=1e-12)


def test_speed_changes_by_what_a_vehicle_has_and_a_vehicle_nobody_told_of_is_strong() -> None:
    given = mission("real_09", "virt_05")
    assert given.vehicle is not None
    ratio = given.vehicle.thrust_to_weight[0]
    assert [FlyablePaths(given)._limit(k) for k in range(2)] == pytest.approx([0.5 * 9.81 * np.sqrt(ratio**2 - 1.0), 6.0])
    unknown = replace(given, vehicle=None)
    assert FlyablePaths(unknown)._limit(0) == 6.0
    start = np.array([[-6.0, 0.0, 1.5], [4.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    plain = RetimedPaths(unknown)._fitted(0, dodge(4.0, 0.6), start)
    np.testing.assert_allclose(FlyablePaths(unknown)._fitted(0, dodge(4.0, 0.6), start), plain, atol=1e-9)
