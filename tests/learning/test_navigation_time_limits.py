"""Navigation at a time limit: a flight that is cut off saw and earned last what it would have, had it gone on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.learning.environments.rooms import euler_matrices
from airworthy.learning.navigation.environments import NavigationEnvironments
from airworthy.learning.navigation.eyes import LidarEye, PooledEye
from airworthy.learning.navigation.sight import LIDAR
from airworthy.learning.navigation.tasks import DepthNavigation, LidarNavigation

CASES = ((DepthNavigation, PooledEye), (LidarNavigation, LidarEye))
COUNT, LIMIT = 16, 6


def made(kind: int, **options: Any) -> NavigationEnvironments:
    task, eye = CASES[kind]
    return NavigationEnvironments(task(**options), COUNT, eye(), seed=5)


@pytest.mark.parametrize("kind", [0, 1])
def test_a_flight_that_is_cut_off_saw_and_earned_what_one_does_that_goes_on(kind: int) -> None:
    """The same flights with and without the limit, to the bit: state, image, its noise, and the reward that reads it."""
    cut, whole = made(kind, episode_steps=LIMIT), made(kind, episode_steps=100)
    actions = np.random.default_rng(2).uniform(-1.0, 1.0, (LIMIT, COUNT, cut.action_count)).astype(np.float32)
    # Straight on, so that what is ahead counts.
    actions[..., 0] = 1.0
    going = np.ones(COUNT, bool)
    for action in actions:
        ours, theirs = cut.step(action), whole.step(action)
        going &= ~theirs.ends.ended
    assert going.sum() >= COUNT // 2
    np.testing.assert_array_equal(ours.truncated[going], True)
    np.testing.assert_array_equal(cut.final_critic_observation[going], theirs.observation[going])
    np.testing.assert_array_equal(ours.terms["sight"][going], theirs.terms["sight"][going])
    np.testing.assert_array_equal(ours.reward[going], theirs.reward[going])
    # The next flights stand elsewhere: theirs would not be the same.
    assert (ours.observation[going] != theirs.observation[going]).any(axis=1).all()


def _first_collision(distance: Array, velocity: Array, pose: Array) -> float:
    """Least time to collision [s] of one image, ray by ray: range over the speed along it, at most 10 s."""
    turned = LIDAR.directions.reshape(-1, 3) @ euler_matrices(pose[10:13].astype(float)).T
    approach, ranges = turned @ velocity, distance.reshape(-1)
    return float(min(10.0, *(ranges[approach > 0.0] / approach[approach > 0.0])))


@pytest.mark.parametrize(("level", "factor"), [(25, 1.0), (34, 1.4), (70, 3.0)])
def test_near_collisions_cost_lidar_flights_more_as_levels_rise(level: int, factor: float) -> None:
    """-3 exp(-2 t^4), once at the first level of 25 and three times at the last of 70 (specification, learning by reward,
    3.2)."""
    environments = made(1)
    environments.flights.level[:] = level
    environments.reset()
    # Fast into the room: walls and boxes are a second or two away.
    environments.flights.state[3] = 5.0
    result = environments.step(np.zeros((COUNT, 4), np.float32))
    poses = environments.flights.critic_observation
    distance = environments.sight.look(poses)
    time = [_first_collision(d, v, p) for d, v, p in zip(distance, result.observation[:, 7:10], poses, strict=True)]
    going = ~result.ends.ended
    expected = -3.0 * np.exp(-2.0 * np.array(time) ** 4) * factor
    np.testing.assert_allclose(result.terms["sight"][going], expected[going], rtol=1e-3, atol=1e-6)
    assert (expected[going] < -0.3).any()


def test_what_a_flight_earned_is_the_sum_of_its_rewards_image_included() -> None:
    """Of flights that are cut off at their limit, and of those that touch something before it."""
    environments = made(1, episode_steps=LIMIT)
    environments.flights.state[3] = 5.0
    sums, told = np.zeros(COUNT), 0
    for _ in range(2 * LIMIT):
        result = environments.step(np.tile(np.array([1.0, 0.0, 0.0, 0.0], np.float32), (COUNT, 1)))
        sums += result.reward
        over = result.ends.ended
        np.testing.assert_allclose(result.ends.returns[over], sums[over], rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(result.terms["sight"][result.terminated], 0.0)
        sums[over] = 0.0
        told += int(over.sum())
    assert told >= 2 * COUNT
