"""The PPO of one file goes on from the right value where a flight is only cut off; known approximations do not."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.learning import VectorTask
from airworthy.learning.environments.tasks import MotorCommand

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "18_ppo_single_file.py"
GAMMA, COUNT, LIMIT, STEPS = 0.9, 8, 10, 40


@pytest.fixture(scope="module")
def example() -> ModuleType:
    pytest.importorskip("torch")
    spec = importlib.util.spec_from_file_location("ppo_single_file", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def flown() -> tuple[Array, Array]:
    """Ages before each step and whether the flight was cut off in it, (time, env), of staggered flights that never crash."""
    task = VectorTask(MotorCommand(episode_steps=LIMIT, crash_m=100.0), COUNT)
    task.age[:] = np.arange(COUNT)
    ages, cut = [], []
    for _ in range(STEPS):
        ages.append(task.age.astype(int))
        result = task.step(np.full((COUNT, 4), 0.4))
        assert not result.terminated.any()
        cut.append(result.truncated)
    return np.array(ages), np.array(cut)


def learnt(example: ModuleType, flown: tuple[Array, Array], rewards: Array, after_a_cut: str) -> Array:
    """Values of a table, a row per phase of a flight, fitted to the example's own targets until they stay."""
    import torch

    ages, cut = flown
    phase, following = ages % len(rewards), (ages + 1) % len(rewards)
    table = np.zeros(len(rewards))
    for _ in range(120):
        value, after = table[phase], table[following]
        if after_a_cut == "value_before":
            after = np.where(cut, value, after)
        terminated = cut if after_a_cut == "death" else np.zeros_like(cut)
        given = (torch.from_numpy(a) for a in (rewards[phase], value, after, terminated, cut))
        target = value + example.advantages(*given).numpy()
        table = np.array([target[phase == k].mean() for k in range(len(rewards))])
    return table


@pytest.mark.parametrize("rewards", [[1.0], [0.0, 0.0, 0.0, 0.0, 5.0]], ids=["constant", "by_phase"])
def test_a_time_limit_does_not_change_what_a_state_is_worth(
    example: ModuleType, flown: tuple[Array, Array], rewards: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """V = r / (1 - gamma) within 1 %, and alike where rewards come in turn: V of one phase is r + gamma V of the next."""
    monkeypatch.setattr(example, "GAMMA", GAMMA)
    given, count = np.array(rewards), len(rewards)
    discounts = GAMMA ** np.arange(count)
    true = np.array([discounts @ np.roll(given, -k) for k in range(count)]) / (1.0 - GAMMA**count)
    if count == 1:
        np.testing.assert_allclose(true, 1.0 / (1.0 - GAMMA))
    np.testing.assert_allclose(learnt(example, flown, given, "value_after"), true, rtol=0.01)
    assert abs(learnt(example, flown, given, "death") / true - 1.0).max() > 0.1
    # One value for all hides that it is the wrong state's: this approximation is right for a constant reward, and only there.
    wrong = abs(learnt(example, flown, given, "value_before") / true - 1.0).max()
    assert wrong < 0.01 if count == 1 else wrong > 0.03
