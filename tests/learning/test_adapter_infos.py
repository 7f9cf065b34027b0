"""What adapters tell of flights that ended, against those of `VectorTask` itself; a missing library skips its tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.learning.test_adapters import COUNT, TASK, environments, policy

from airworthy.core.arrays import ArrayAny
from airworthy.learning import adapters
from airworthy.learning.adapters.common import episode_means
from airworthy.learning.environments import EpisodeEnds, StepResult, VectorTask

NAMES = ("return", "length", "success", "diverged")
STEPS = 70


def lockstep(go: Callable[[ArrayAny], Any], adapted: VectorTask) -> Iterator[tuple[Any, StepResult]]:
    """What an adapter says of each step, and what environments of the same seed as the `adapted` say of the same one."""
    task = environments()
    seen = task.observation
    for k in range(STEPS):
        actions = policy(seen)
        # Some are at their target when time is over, and the others are not.
        arrived = np.flatnonzero(task.age == TASK.episode_steps - 1)[::2]
        for each in (task, adapted):
            each.state[:6, arrived] = 0.0
        if k == 20:
            # About no flight's limit: these end while others go on, and have diverged.
            actions[1:3] = np.nan
        told = go(actions)
        result = task.step(actions)
        seen = result.observation
        yield told, result


def told_ends(result: StepResult) -> list[tuple[int, dict[str, float]]]:
    """Environment and numbers of each flight that ended."""
    ends, found = result.ends, []
    for k in range(COUNT):
        if result.terminated[k] or result.truncated[k]:
            values = ends.returns[k], ends.length[k], ends.success[k], ends.diverged[k]
            found.append((k, dict(zip(NAMES, map(float, values), strict=True))))
    return found


def test_means_are_over_the_flights_that_ended() -> None:
    """By hand; numbers of flights that go on are those of their last end, and nobody's."""
    ended = np.array([False, True, True, False])
    returns, length = np.array([[9.0, 2.0, 5.0, 100.0], [30.0, 4.0, 8.0, 2.0]], np.float32)
    ends = EpisodeEnds(ended, returns, length, np.array([True, True, False, True]), np.array([True, False, False, True]))
    expected = {"/episode/return": 3.5, "/episode/length": 6.0, "/episode/success": 0.5, "/episode/diverged": 0.0}
    assert episode_means(ends) == expected
    nobody = EpisodeEnds(~np.ones(4, bool), returns, length, ended, ended)
    assert episode_means(nobody) == {}


def test_infos_of_stable_baselines_are_those_of_the_flights() -> None:
    pytest.importorskip("stable_baselines3")
    env = adapters.StableBaselinesEnv(environments())
    env.reset()
    kinds = set()
    for (_, _, dones, infos), result in lockstep(env.step, env.task):
        over = dict(told_ends(result))
        for k, info in enumerate(infos):
            assert bool(info) == bool(dones[k]) == (k in over)
            if not info:
                continue
            np.testing.assert_array_equal(info["terminal_observation"], result.final_observation[k])
            assert (info["episode"]["r"], info["episode"]["l"]) == (over[k]["return"], over[k]["length"])
            assert (info["is_success"], info["diverged"]) == (bool(over[k]["success"]), bool(over[k]["diverged"]))
            assert info["TimeLimit.truncated"] == bool(result.truncated[k])
            kinds.add((info["is_success"], info["TimeLimit.truncated"], info["diverged"]))
    # Success is neither a time limit nor its opposite.
    assert {(True, True, False), (False, True, False), (False, False, True)} <= kinds


def _logged(name: str, task: VectorTask) -> Callable[[ArrayAny], dict[str, float]]:
    """What steps by rsl-rl or skrl log."""
    torch, _ = pytest.importorskip("torch"), pytest.importorskip(name)
    if name == "rsl_rl":
        rsl_rl = adapters.RslRlEnv(task)
        return lambda actions: rsl_rl.step(torch.from_numpy(actions))[3]["log"]
    skrl = adapters.SkrlEnv(task)
    skrl.reset()

    def go(actions: ArrayAny) -> dict[str, float]:
        return {key: float(value) for key, value in skrl.step(torch.from_numpy(actions))[-1]["episode"].items()}

    return go


@pytest.mark.parametrize("name", ["rsl_rl", "skrl"])
def test_logs_are_means_of_terms_over_all_and_of_ends_over_those_that_ended(name: str) -> None:
    task, some = environments(), 0
    for log, result in lockstep(_logged(name, task), task):
        over = [values for _, values in told_ends(result)]
        expected = {f"/episode/{key}": sum(each[key] for each in over) / len(over) for key in NAMES if over}
        expected |= {f"/reward/{term}": sum(map(float, result.terms[term])) / COUNT for term in task.terms}
        assert log == pytest.approx(expected, rel=1e-5, abs=1e-6)
        some += 0 < len(over) < COUNT
    # Steps in which flights ended and others went on: of all flights the means would be others.
    assert some >= 3


def test_held_flights_keep_what_their_critics_see() -> None:
    """Exact states and pushes of a flight that waits are of that flight, and of others of their next ones."""
    task = VectorTask("l2f_position", 16, seed=1)
    for k in range(5):
        task.step(np.full((16, task.action_count), 0.1 * k - 0.2))
    held = np.arange(16) % 3 == 0
    known, seen = task.critic_observation.copy(), task.observation.copy()
    assert known.shape[1] != seen.shape[1]
    task.step(np.full((16, task.action_count), np.nan), held=held)
    np.testing.assert_array_equal(task.critic_observation[held], known[held])
    np.testing.assert_array_equal(task.observation[held], seen[held])
    assert (task.critic_observation[~held] != known[~held]).any(axis=1).all()
    # They are of the state in which the flight is: position first.
    np.testing.assert_allclose(task.critic_observation[:, :3], task.state[:3].T, atol=1e-6)
