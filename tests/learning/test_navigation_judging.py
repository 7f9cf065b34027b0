"""How navigation is judged, by policies whose flights' ends are known: one arrives, one stops before, one hits a wall."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import Array, ArrayAny, ArrayF32
from airworthy.learning.navigation import judging
from airworthy.learning.navigation.environments import NavigationEnvironments
from airworthy.learning.navigation.eyes import LidarEye
from airworthy.learning.navigation.judging import LevelFlights, level_row, levels_of, task_at_level
from airworthy.learning.navigation.options import RoomsProtocol
from airworthy.pilots.navigation_policy.contract import NavigationContract
from airworthy.pilots.navigation_policy.eyes import LidarSight
from airworthy.pilots.navigation_policy.network import NavigationPolicy
from airworthy.pilots.navigation_policy.pilot import FlownPolicy
from airworthy.pilots.navigation_policy.sight import ACCELERATION, accelerated

ARRIVES, SHORT, TOUCHES, PASSES = range(4)
KIND = np.array([ARRIVES, SHORT, TOUCHES, TOUCHES, SHORT, ARRIVES])
"""Of each flight."""
EMPTY = 6
"""Level of the curriculum at which a room has its six walls and nothing else."""
STOP_M = 1.5
"""Before the target [m]: beyond the metre that is a success, within twice that."""


class KnownEnds(NavigationPolicy):
    """Accelerates by a plain law of what it knows, and never looks: each row of a batch flies to its own end.

    Its memory counts the flights that a row has begun: the row that hits the near wall flies through the target, into the wall
    behind it, once it has begun again.

    Args:
        kind: Of each flight's end.
    """

    def __init__(self, kind: ArrayAny = KIND) -> None:
        self.kind = kind
        self.contract = NavigationContract("lidar_navigation", numbers=320, actions=4, hidden=(1,), recurrent=1)
        self.seen: list[ArrayF32] = []
        self.actions: list[ArrayF32] = []

    def act(self, observation: ArrayF32, memory: ArrayF32) -> tuple[ArrayF32, ArrayF32]:
        direction, distance, velocity = observation[:, :3], observation[:, 3:4], observation[:, 7:10]
        # Only before its first decision has a flight no command behind it.
        memory = memory + ~observation[:, 13:17].any(1, keepdims=True)
        stop = np.where(self.kind == SHORT, STOP_M, 0.0)[:, None]
        # Critically damped at 1 rad/s.
        pull = direction * (distance - stop) - 2.0 * velocity
        # Behind the target the way to it points back.
        passed = (direction * velocity).sum(1, keepdims=True) < 0.0
        fast = np.linalg.norm(velocity, axis=1, keepdims=True) > 0.5
        through = 100.0 * np.where(passed & fast, -direction, direction)
        touches = np.where(memory > 1.0, through, -100.0 * direction)
        pull = np.select([(self.kind == end)[:, None] for end in (TOUCHES, PASSES)], [touches, through], pull)
        pull /= np.maximum(np.linalg.norm(pull, axis=1, keepdims=True), ACCELERATION)
        action = np.concatenate([pull, np.zeros((len(pull), 1))], axis=1).astype(np.float32)
        self.seen.append(np.array(observation))
        self.actions.append(action)
        return action, memory.astype(np.float32)


def launched(policy: KnownEnds) -> LevelFlights:
    return judging.fly_level(policy, LidarEye(), protocol(policy), EMPTY)


def simulated(policy: KnownEnds) -> LevelFlights:
    return judging.fly_level_simulated(policy, LidarEye(), protocol(policy), EMPTY)


def piloted(policy: KnownEnds) -> LevelFlights:
    return judging.fly_level_piloted(FlownPolicy(policy, LidarSight()), LidarEye(), protocol(policy), EMPTY)


def protocol(policy: KnownEnds) -> RoomsProtocol:
    return RoomsProtocol(flights=len(policy.kind), levels=(EMPTY,))


def beginnings() -> tuple[Array, Array]:
    """Targets and starts of the flights, (n, 3) world [m], by environments that nobody has stepped."""
    seed = RoomsProtocol().seed
    flights = NavigationEnvironments(task_at_level("lidar_navigation", EMPTY, seed), len(KIND), LidarEye(), seed).flights
    return flights.memory[:3].T.astype(float), flights.state[:3].T.astype(float)


@pytest.mark.parametrize("fly", [launched, simulated, piloted])
def test_flights_are_counted_by_how_they_end(fly: Callable[[KnownEnds], LevelFlights]) -> None:
    found, (target, start) = fly(KnownEnds()), beginnings()
    np.testing.assert_allclose(found.track[0], start, atol=1e-6)
    np.testing.assert_array_equal(found.success, KIND == ARRIVES)
    np.testing.assert_array_equal(found.crashed, KIND == TOUCHES)
    # Within what pushes of the training's launch move a vehicle that is held by a soft law.
    np.testing.assert_allclose(found.distance[KIND == SHORT], STOP_M, atol=0.3)
    assert (found.distance[KIND == ARRIVES] < 0.5).all()
    # A flight that touched something stays there, behind its start: not where a later flight of its row came to.
    begun = np.linalg.norm(target - start, axis=1)
    assert (found.distance > begun)[KIND == TOUCHES].all()
    # The launch's track ends a decision before what it touched, at no more than 5 m/s.
    ended = np.linalg.norm(target - found.track[-1], axis=1)
    np.testing.assert_allclose(found.distance, ended, atol=0.5)
    row = level_row(EMPTY, found)
    assert (row["outcomes"], row["late"]) == ("slttls", 2)


@pytest.mark.parametrize("fly", [launched, simulated, piloted])
def test_what_touches_a_wall_beside_its_target_has_not_arrived(fly: Callable[[KnownEnds], LevelFlights]) -> None:
    """Flights through their targets into the wall behind, which some targets are within a metre of."""
    found = fly(KnownEnds(np.full(8, PASSES)))
    assert found.crashed.all()
    assert (found.distance < 1.0).any()
    assert not found.success.any()


def test_a_policy_in_the_simulator_is_shown_the_command_before() -> None:
    policy = KnownEnds()
    simulated(policy)
    seen, actions = np.stack(policy.seen)[:, :, 13:17], np.stack(policy.actions)
    assert len(seen) == task_at_level("lidar_navigation", EMPTY, 0).episode_steps
    np.testing.assert_array_equal(seen[0], 0.0)
    np.testing.assert_allclose(seen[1:], np.stack([accelerated(x.astype(float)) for x in actions[:-1]]), atol=1e-6)


def test_flights_in_the_simulator_begin_as_those_of_the_launch() -> None:
    """Body rate included: of drawn starts no two are alike, and none is at rest."""
    policy = KnownEnds()
    launch, simulator, _ = judging._simulated("lidar_navigation", LidarEye(), protocol(policy), EMPTY)
    begun = launch.flights.state[:13].T.astype(float)
    found = [simulator.position, simulator.velocity, simulator.attitude, simulator.rate]
    np.testing.assert_allclose(np.concatenate([np.array(x, float) for x in found], axis=1), begun, atol=1e-6)
    for part in (begun[:, 3:6], begun[:, 10:13]):
        assert (np.abs(part).max(axis=1) > 0.02).all()


def test_a_judgement_has_the_first_level_30_the_reached_and_the_last() -> None:
    asked: dict[str, Any] = {"protocol": RoomsProtocol(), "most": 70}
    assert levels_of(least=15, reached=41, **asked) == [15, 30, 41, 70]
    assert levels_of(least=25, reached=70, **asked) == [25, 30, 70]
    # A curriculum that begins beyond 30 has no level 30.
    assert levels_of(least=35, reached=44, **asked) == [35, 44, 70]
    assert levels_of(RoomsProtocol(levels=(20, 15)), 15, 41, 70) == (20, 15)
