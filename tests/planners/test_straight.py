"""Straight flight: the trapezoid against its own derivatives and limits, and what the planner gives."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.planners.common.interface import Mission, Motion
from airworthy.planners.straight import StraightFlight, trapezoid


@pytest.mark.parametrize("length", [0.5, 2.6, 36.0])
def test_trapezoid_is_the_fastest_within_its_limits(length: float) -> None:
    time = np.linspace(-0.5, 20.0, 41001)
    line = [np.full_like(time, value) for value in (length, 4.0, 6.0)]
    distance, speed, bend = trapezoid(time, *line)
    assert distance[0] == 0.0
    assert speed[0] == 0.0
    assert abs(distance[-1] - length) < 1e-12
    assert speed[-1] == 0.0
    assert speed.max() <= 4.0 + 1e-12
    assert np.abs(bend).max() <= 6.0
    # Differences of 0.5 ms: second-order terms are below acceleration times the step.
    assert np.abs(np.diff(distance) / np.diff(time) - 0.5 * (speed[1:] + speed[:-1])).max() < 2e-3
    took = time[np.argmax(distance >= length - 1e-12)]
    fastest = length / 4.0 + 4.0 / 6.0 if length > 16.0 / 6.0 else 2.0 * np.sqrt(length / 6.0)
    assert abs(took - fastest) < 1e-3


def test_straight_flight_goes_from_start_to_goal_and_looks_along() -> None:
    start, goal = np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 2.0]]), np.array([[10.0, 0.0, 1.0], [1.0, -9.0, 3.0]])
    box = np.full((2, 3), -50.0), np.full((2, 3), 50.0)
    planner = StraightFlight()
    planner.reset(Mission(start, goal, np.full(2, 4.0), np.full(2, 6.0), *box, np.arange(2)))
    motion = Motion(np.zeros(2), start, np.zeros((2, 3)), np.tile([0.0, 0.0, 0.0, 1.0], (2, 1)))
    assert planner.update(motion, None, np.array([True, False]))["replans"].tolist() == [1, 0]
    assert planner.update(motion, None, np.array([True, True]))["replans"].tolist() == [0, 1]
    begin, end = planner.setpoints(np.zeros(2)), planner.setpoints(np.full(2, 60.0))
    assert np.array_equal(begin.position, start)
    assert np.allclose(end.position, goal, atol=1e-12)
    assert not end.velocity.any()
    assert not end.acceleration.any()
    assert np.allclose(begin.yaw, [0.0, -np.pi / 2])
