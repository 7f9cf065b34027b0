"""Delays, guided starts, first ages and curricula of learning tasks: what they do, and that flights stay their own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from airworthy.core.arrays import ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.learning import Curriculum, FlightConditions, HoverTask, Judgement, PositionByVelocity, VectorTask
from airworthy.learning.environments.conditions import CurriculumState
from airworthy.learning.environments.twin import VectorTwin
from airworthy.learning.native_ppo import NativePpo, PpoOptions
from airworthy.vehicles import vehicle
from airworthy.vehicles.record import CollisionBody

TASK = HoverTask(episode_steps=20)
LATE = FlightConditions((0, 2), (1, 3), guidance=0.3, staggered=True)
COUNT = 40


def actions_for(count: int, steps: int) -> ArrayF32:
    return (0.5 + 0.3 * np.random.default_rng(3).normal(size=(steps, count, 4))).astype(np.float32)


def test_equals_its_twin_over_resets() -> None:
    environments = VectorTask(TASK, COUNT, seed=5, conditions=LATE)
    twin, ended = VectorTwin(environments), 0
    for k, actions in enumerate(actions_for(COUNT, 50)):
        if k % 10 == 0:
            twin = VectorTwin(environments)
        expected, result = twin.step(actions), environments.step(actions)
        np.testing.assert_array_equal(result.truncated, expected.truncated)
        np.testing.assert_allclose(result.observation, expected.observation, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(result.reward, expected.reward, rtol=2e-5, atol=2e-5)
        np.testing.assert_array_equal(environments.delays, twin.delays)
        np.testing.assert_array_equal(environments.age, twin.age)
        over = result.ends.ended
        np.testing.assert_allclose(result.final_observation[over], expected.final_observation[over], rtol=1e-5, atol=1e-5)
        ended += int(over.sum())
    assert ended >= 2 * COUNT


def test_flights_are_the_same_alone_in_any_batch_order_and_threads() -> None:
    order = np.random.default_rng(0).permutation(COUNT)
    whole = VectorTask(TASK, COUNT, seed=9, conditions=LATE)
    turned = VectorTask(TASK, COUNT, seed=9, conditions=LATE, flight_ids=order, threads=1)
    alone = VectorTask(TASK, 1, seed=9, conditions=LATE, flight_ids=[7])
    for actions in actions_for(COUNT, 45):
        one, other, single = whole.step(actions), turned.step(actions[order]), alone.step(actions[[7]])
        np.testing.assert_array_equal(other.observation, one.observation[order])
        np.testing.assert_array_equal(single.observation[0], one.observation[7])
        np.testing.assert_array_equal(single.reward[0], one.reward[7])
    np.testing.assert_array_equal(turned.delays, whole.delays[:, order])


def test_observations_and_actions_are_late_by_what_was_drawn() -> None:
    """Against flights without delays that are given the same actions as late as they would arrive."""
    task = HoverTask(episode_steps=1000)
    late = VectorTask(task, 300, seed=2, conditions=FlightConditions((0, 2), (1, 3)))
    clean = VectorTask(task, 300, seed=2)
    seen, acted = late.delays.astype(int)
    assert (np.bincount(seen, minlength=3) > 60).all()
    assert np.bincount(acted, minlength=4)[0] == 0
    assert (np.bincount(acted, minlength=4)[1:] > 60).all()
    actions, hover = actions_for(300, 12), np.broadcast_to(clean.parameter("hover_action").T, (300, 4))
    history = [clean.observation.copy()]
    every = np.arange(300)
    for k in range(12):
        arriving = np.where((k >= acted)[:, None], actions[k - acted, every], hover)
        result = late.step(actions[k])
        history.append(clean.step(arriving).observation.copy())
        expected = np.stack(history)[np.maximum(k + 1 - seen, 0), every]
        np.testing.assert_array_equal(result.observation, expected)


def test_a_reset_of_some_leaves_what_others_have_on_its_way() -> None:
    one, other = (VectorTask(TASK, COUNT, seed=4, conditions=LATE) for _ in range(2))
    for actions in actions_for(COUNT, 3):
        one.step(actions)
        other.step(actions)
    mask = np.arange(COUNT) < 10
    before = one.observation.copy()
    after = one.reset(mask=mask)
    np.testing.assert_array_equal(after[~mask], before[~mask])
    for actions in actions_for(COUNT, 6):
        mine, theirs = one.step(actions), other.step(actions)
        np.testing.assert_array_equal(mine.observation[~mask], theirs.observation[~mask])


def test_guided_flights_begin_at_the_goal_and_first_ages_are_spread() -> None:
    environments = VectorTask(TASK, 2000, conditions=LATE)
    at_goal = (environments.state[:6] == 0.0).all(axis=0)
    assert at_goal.mean() == pytest.approx(0.3, abs=0.03)
    assert (environments.state[9, at_goal] == 1.0).all()
    np.testing.assert_array_equal(environments.state[13:, at_goal], environments.parameter("hover")[:, at_goal])
    ages = np.bincount(environments.age, minlength=20)
    assert len(ages) == 20
    assert ages.min() > 60
    environments.reset()
    assert (environments.age == 0).all()  # only the first flights are staggered


def test_the_ground_ends_flights_that_touch_it_with_the_value_of_a_crash() -> None:
    """A box of 0.2 x 0.1 x 0.02 m half lengths: its lowest corner by the rotation matrix, written out once more."""
    body = replace(vehicle("lmf2"), body=CollisionBody("box", (0.2, 0.1, 0.02)))
    environments = VectorTask(
        PositionByVelocity(noise=False), 200, vehicle=body, seed=3, conditions=FlightConditions(ground=-0.74)
    )
    corners = np.array([[x, y, z] for x in (-0.2, 0.2) for y in (-0.1, 0.1) for z in (-0.02, 0.02)])
    down = np.tile([0.8, 0.0, -1.0, 0.5], (200, 1)).astype(np.float32)
    touched = 0
    for k in range(60):
        twin = VectorTwin(environments)
        flown = twin._shape.flown(tuple(twin.state), tuple(down.T), twin._record())
        x, y, z, w = flown[6:10]
        rows = np.array([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)])
        lowest = flown[2] + (corners @ rows).min(axis=0)
        sure = np.abs(lowest + 0.74) > 1e-5
        expected = twin.step(down) if k % 10 == 0 else None
        result = environments.step(down)
        np.testing.assert_array_equal(result.terminated[sure], (lowest < -0.74)[sure])
        if expected is not None:
            np.testing.assert_array_equal(result.terminated[sure], expected.terminated[sure])
        np.testing.assert_array_equal(result.reward[result.terminated], -50.0)
        touched += int(result.terminated.sum())
    assert touched > 40


@dataclass(frozen=True)
class Harder(HoverTask):
    """Starts spread with the level; whoever is asked to climbs well."""

    name: ClassVar[str] = "harder_in_a_test"
    curriculum: Curriculum = field(default_factory=lambda: Curriculum(0, 10, rise=3, fall=2, window=60))

    def start(self, uniforms: Any, p: Any) -> Any:
        return (p.progress, *super().start(uniforms, p)[1:])

    def judge(self, before: Any, after: Any, action: Any, past: Any, p: Any) -> Any:
        return Judgement({"none": 0.0 * after[0]}, 0.0 * after[0], 0.5 * (action[0] + 1.0))


def test_the_level_of_a_batch_follows_the_share_of_successes_of_a_window() -> None:
    state = CurriculumState(Curriculum())
    level = 15
    for share, expected in ((0.75, 17), (0.65, 17), (0.5, 16), (0.9, 18), (0.0, 17), (0.0, 16), (0.0, 15), (0.0, 15)):
        assert not state.count(1024, round(share * 1024))  # half a window
        assert state.count(1024, round(share * 1024)) == (expected != level)
        level = expected
        assert state.counts[0] == level


def test_a_level_may_rise_with_steps_alone() -> None:
    state = CurriculumState(Curriculum(0, 4, rise=1, window=100, each="steps"))
    for steps, level in ((60, 0), (60, 1), (30, 1), (260, 4), (100, 4)):
        state.count(steps, 0)
        assert state.counts[0] == level
    assert state.counts[1] == 10  # what is left over counts on


def test_a_level_reaches_starts_and_checkpoints() -> None:
    task = Harder(episode_steps=2)
    environments = VectorTask(task, 30)
    fine, poor = np.ones((30, 4), np.float32), -np.ones((30, 4), np.float32)
    np.testing.assert_array_equal(environments.state[0], 0.0)
    for _ in range(6):
        environments.step(fine)
    # 60 flights had ended after the fourth step; those that began after the sixth are the first at the higher level.
    np.testing.assert_array_equal(environments.level, 3.0)
    np.testing.assert_allclose(environments.state[0], 0.3, rtol=1e-6)
    kept = environments.saved()
    for _ in range(4):
        environments.step(poor)
    # 30 of the next 60 ended well: below 0.6.
    np.testing.assert_array_equal(environments.level, 1.0)
    other = VectorTask(task, 30)
    other.restore(kept)
    for _ in range(4):
        other.step(poor)
    np.testing.assert_array_equal(other.level, environments.level)
    np.testing.assert_array_equal(other.state, environments.state)
    other.reset(seed=0)
    np.testing.assert_array_equal(other.level, 0.0)


def test_each_environment_has_a_level_of_its_own() -> None:
    environments = VectorTask(Harder(episode_steps=2, curriculum=Curriculum(0, 10, rise=3, fall=2, each="environment")), 20)
    twin, fine = VectorTwin(environments), np.arange(20) % 2 == 0
    for _ in range(5):
        actions = np.where(fine[:, None], 1.0, -1.0) * np.ones((20, 4), np.float32)
        environments.step(actions)
        twin.step(actions)
    np.testing.assert_array_equal(environments.level, np.where(fine, 6.0, 0.0))
    np.testing.assert_array_equal(twin.level[0], environments.level)
    np.testing.assert_allclose(environments.state[0], twin.state[0], atol=1e-5)


def test_a_rollout_in_one_launch_keeps_conditions_and_moves_levels_at_its_end() -> None:
    task = Harder(episode_steps=5, curriculum=Curriculum(0, 10, rise=3, window=16 * 32, each="steps"))
    environments, alone = (VectorTask(task, 32, conditions=LATE) for _ in range(2))
    trainer = NativePpo(environments, PpoOptions(hidden=(16, 16), rollout=16, minibatches=1))
    flown, width = trainer.fly(), environments.observation_count
    for k, sample in enumerate(trainer.samples):
        actions = sample[:, width : width + 4].transpose(0, 2, 1).reshape(32, 4)
        np.testing.assert_array_equal(sample[:, :width].transpose(0, 2, 1).reshape(32, width), alone.observation)
        assert (alone.step(actions).ends.ended == flown.ended[k]).all()
    np.testing.assert_array_equal(environments.state, alone.state)
    np.testing.assert_array_equal(environments.level, 3.0)
    np.testing.assert_array_equal(alone.level, 3.0)


def test_mistakes_are_told() -> None:
    with pytest.raises(AirworthyError, match=r"action_delay is \(3, 1\); expected least and most steps"):
        FlightConditions(action_delay=(3, 1))
    with pytest.raises(AirworthyError, match="guidance"):
        FlightConditions(guidance=1.5)
    with pytest.raises(AirworthyError, match="expected more than least"):
        Curriculum(5, 5)
    with pytest.raises(AirworthyError, match="has no curriculum"):
        _ = VectorTask("hover", 4).level
    plain = VectorTask(TASK, COUNT)
    with pytest.raises(AirworthyError, match="of another task"):
        VectorTask(TASK, COUNT, conditions=LATE).restore(plain.saved())
