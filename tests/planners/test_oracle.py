"""The oracle: a way with room to spare, few corners, rest at each, in time; and the layouts that it shows to be flyable."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from airworthy.benchmarks.navigation.config import NavigationConfig
from airworthy.benchmarks.navigation.job import run_benchmark
from airworthy.benchmarks.navigation.store import read_rows
from airworthy.planners.common.interface import Mission, Motion
from airworthy.planners.oracle import IN_TIME, PEAK_ACCELERATION, PEAK_SPEED, STEP, Oracle, _times, safe_path
from airworthy.trajectories.polynomial import differentiate, evaluate


def walled(gap: float) -> tuple[np.ndarray, np.ndarray]:
    """Distances of a hall of 10 x 6 x 3 m with a wall across it at x = 5 m that leaves a gap at its left side."""
    x, y = (np.arange(n) * 0.1 + 0.05 for n in (100, 60))
    beside = np.maximum(0.0, y - (6.0 - gap))  # into the gap, from the wall's end
    from_wall = np.hypot(np.abs(x[:, None] - 5.0), beside[None])
    sides = np.minimum(y, 6.0 - y)[None]
    field = np.minimum(from_wall, sides)[:, :, None] * np.ones(30)
    return field.astype(np.float32), np.zeros(3)


@pytest.mark.parametrize("gap", [0.9, 2.0])
def test_it_goes_through_a_gap_by_few_corners_and_keeps_away(gap: float) -> None:
    field, lower = walled(gap)
    start, goal = np.array([1.0, 2.0, 1.0]), np.array([9.0, 2.0, 1.0])
    corners, work = safe_path(field, lower, 0.1, start, goal, (0.4, 2.7))
    assert corners is not None
    assert work > 0
    assert len(corners) <= 6
    np.testing.assert_array_equal(corners[[0, -1]], [start, goal])
    dense = np.concatenate([a + np.linspace(0, 1, 200)[:, None] * (b - a) for a, b in pairwise(corners)])
    cells = (dense / 0.1).astype(int)
    assert field[tuple(cells.T)].min() >= 0.3


def test_no_way_is_said() -> None:
    field, lower = walled(0.4)
    corners, _ = safe_path(field, lower, 0.1, np.array([1.0, 2.0, 1.0]), np.array([9.0, 2.0, 1.0]), (0.4, 2.7))
    assert corners is None


def test_times_are_gentle_where_they_can_be_and_in_time() -> None:
    short, maze = (
        np.array([[0.0, 0, 1], [5.0, 0, 1]]),
        np.array([[1.5 * (k // 2 + k % 2), 1.5 * (k // 2), 1.0] for k in range(40)]),
    )
    assert _times(short, 4.0, 6.0)[-1] == pytest.approx(np.sqrt(5.7735 * 5.0 / 1.2), rel=1e-5)  # a fifth of 6 m/s^2
    assert _times(maze, 4.0, 6.0)[-1] <= IN_TIME


def test_a_leg_is_a_step_from_rest_to_rest_with_the_peaks_that_times_count_with() -> None:
    t = np.linspace(0.0, 1.0, 100_001)
    position, speed, push = (np.asarray(evaluate(differentiate(STEP, order) if order else STEP, t)) for order in range(3))
    np.testing.assert_allclose([position[0], position[-1], speed[0], speed[-1]], [0.0, 1.0, 0.0, 0.0], atol=1e-12)
    # The grid meets a peak within 5e-6 of its time, and curves are flat there.
    assert speed.max() == pytest.approx(PEAK_SPEED, abs=1e-8)
    assert np.abs(push).max() == pytest.approx(PEAK_ACCELERATION, abs=1e-8)


def test_it_rests_at_the_start_until_it_is_asked_and_where_there_is_no_way() -> None:
    class Shut:
        def field(self, flight: int) -> tuple[np.ndarray, np.ndarray]:
            return walled(0.4)

    one = np.array([[1.0, 2.0, 1.0]])
    mission = Mission(
        one,
        one + np.array([8.0, 0, 0]),
        np.full(1, 4.0),
        np.full(1, 6.0),
        np.zeros((1, 3)),
        np.array([[10.0, 6, 3]]),
        np.zeros(1, int),
    )
    oracle = Oracle()
    oracle.reset(mission)
    assert np.array_equal(oracle.setpoints(np.zeros(1)).position, one)
    still = Motion(np.zeros(1), one + 0.05, np.zeros((1, 3)), np.array([[0.0, 0, 0, 1]]))
    oracle.update(still, Shut(), np.ones(1, bool))  # type: ignore[arg-type]
    assert oracle.searching.all()
    assert np.array_equal(oracle.setpoints(np.ones(1)).position, one + 0.05)


@pytest.mark.slow
def test_the_oracle_arrives_in_99_of_100_flights(tmp_path: Path) -> None:
    """Layouts and protocol can be flown by every kind of vehicle; a blind pilot is known to arrive in about 7 of 100.

    280 flights: at most two may fail. Batches are of three layouts, whose maps the four vehicles share.
    """
    vehicles = ("real_01", "real_09", "virt_05", "virt_16")
    config = NavigationConfig(pilots=("oracle",), vehicles=vehicles, batch=12, out=tmp_path, report=False)
    run_benchmark(config, quiet=True)
    rows = read_rows(tmp_path)
    assert len(rows) == 280
    failed = [
        (row["scenario"], row["configuration"], row["vehicle"], row["outcome"], row["cause"])
        for row in rows
        if not row["success"]
    ]
    assert len(failed) <= 2, failed
