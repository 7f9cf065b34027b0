"""The torch form of PPO and the native one learn the same policy from the same options and seed."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from airworthy.core.random import Stream, flight_key, normals
from airworthy.learning.environments import VectorTask
from airworthy.learning.environments.tasks import HoverTask, MotorCommand, PositionByVelocity
from airworthy.learning.native_ppo import NativePpo, PpoOptions
from airworthy.learning.native_ppo.shared import ActionNoise

pytest.importorskip("torch")

from airworthy.learning.ppo import TorchPpo, TorchPpoOptions

SMALL: dict[str, Any] = {"hidden": (16, 8), "rollout": 8, "minibatches": 2, "epochs": 2, "seed": 3}
LIVELY: dict[str, Any] = {"hidden": (32, 24), "rollout": 16, "minibatches": 4, "clip": 0.2, "seed": 1}
# The loss has a kink at the clip: a sample that rounding puts on its other side changes a step by what a sample of a minibatch
# is worth. Large adaptive rates bring that about within ten updates; at a rate of 1e-3 it does not happen.
LIVELY |= {"learning_rate": 1e-3, "target_divergence": 0.0}

# Noise that lasts, a floor of deviations that falls, and what critics and policies see less its running mean.
LASTING: dict[str, Any] = {"noise_memory": 0.9, "normalize_value": True, "normalize_observation": True}
LASTING |= {"initial_std": 0.1, "least_std": 0.1, "last_std": 0.02, "decay_steps": 6000, "learning_rate": 1e-3}


def both(task: Any, options: dict[str, Any], count: int = 64) -> tuple[NativePpo, TorchPpo]:
    native = NativePpo(VectorTask(task, count, seed=3), PpoOptions(**options), 1)
    return native, TorchPpo(VectorTask(task, count, seed=3), TorchPpoOptions(**options), 2)


def parameters(made: TorchPpo) -> Any:
    return np.concatenate([x.detach().numpy().ravel() for x in made.model.ordered_parameters()])


@pytest.mark.parametrize(
    ("task", "options"),
    [
        (MotorCommand(episode_steps=20), SMALL),
        (MotorCommand(), LIVELY),
        (HoverTask(), SMALL),
        (MotorCommand(episode_steps=20), SMALL | LASTING),
        # Its critic sees what the policy does not.
        (PositionByVelocity(episode_steps=20), SMALL | LASTING),
    ],
)
def test_ten_updates_give_the_same_parameters(task: Any, options: dict[str, Any]) -> None:
    """To 1e-4 (specification, learning by reward, 5.2), with flights that end, are cut off, and an adaptive rate."""
    native, made = both(task, options)
    first = native.parameters.copy()
    np.testing.assert_array_equal(parameters(made), first)
    ended = 0
    for _ in range(10):
        one, two = native.update(), made.update()
        assert two.learning_rate == pytest.approx(one.learning_rate, rel=1e-12)
        assert (two.ended, two.terminated, two.passes) == (one.ended, one.terminated, one.passes)
        assert two.reward == pytest.approx(one.reward, abs=1e-5)
        assert two.terms == pytest.approx(one.terms, abs=1e-5)
        for name in ("divergence", "value_error", "explained", "entropy", "gradient_norm"):
            assert getattr(two, name) == pytest.approx(getattr(one, name), rel=1e-2, abs=1e-4), name
        ended += one.ended
    assert np.abs(native.parameters - first).max() > 0.01
    np.testing.assert_allclose(parameters(made), native.parameters, rtol=0.0, atol=1e-4)
    if isinstance(task, MotorCommand):
        assert ended > 10
    seen = native.environments.observation
    np.testing.assert_allclose(made.action(seen), native.action(seen), atol=1e-4)
    for ours, theirs in zip(made.policy_weights, native.policy_weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_flights_that_end_are_worth_the_same_to_both() -> None:
    """Values less their mean: nothing of it is owed where flights end, which a quarter does here in every rollout."""
    native, made = both(MotorCommand(episode_steps=20), SMALL | LASTING)
    for _ in range(6):
        for environments in (native.environments, made.environments):
            # Beyond where a flight ends.
            environments.state[0, ::4] = 50.0
        one, two = native.update(), made.update()
        assert one.terminated >= 16
        for name in ("ended", "terminated", "value_error", "explained"):
            assert getattr(two, name) == pytest.approx(getattr(one, name), rel=1e-2, abs=1e-4), name
    np.testing.assert_allclose(parameters(made), native.parameters, rtol=0.0, atol=1e-4)


def test_noise_is_that_of_its_counters() -> None:
    """By the twin: `ACTION_STREAM` at the training's step, from the 64th number on; whatever the batch."""
    noise = ActionNoise(7, np.array([5, 2, 40]), 6, 4)
    key = flight_key(7, [5, 2, 40], 0xFFFFFFFE)
    for first in (0, 12):
        drawn = noise.draw(first)
        for t in range(4):
            expected = normals(key, np.full(3, first + t), Stream.RESET, 8, 64)[:, :6]
            np.testing.assert_allclose(drawn[t], expected, atol=2e-6)


def test_options_of_the_native_form_mean_the_same() -> None:
    """Every option that both have has the same default: what is learnt without options is the same."""
    ours = TorchPpoOptions()
    assert {item.name: getattr(ours, item.name) for item in fields(PpoOptions)} == vars(PpoOptions())
    assert TorchPpoOptions.settings().clip == PpoOptions.settings().clip
