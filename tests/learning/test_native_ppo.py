"""Native PPO: loss, gradient and advantages against plain NumPy, time limits, the same bits stopped or in threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.tracing import adjoint
from airworthy.learning.environments import Judgement, VectorTask
from airworthy.learning.environments.tasks import HoverTask, MotorCommand
from airworthy.learning.native_ppo import NativePpo, PpoOptions, generalized_advantages, ppo_loss

OPTIONS: dict[str, Any] = {"hidden": (16, 8), "rollout": 8, "minibatches": 2, "epochs": 2, "seed": 3}


def trainer(threads: int = 1, seed: int = 3, **options: Any) -> NativePpo:
    task = MotorCommand(episode_steps=20)
    return NativePpo(VectorTask(task, 64, seed=seed), PpoOptions(**{**OPTIONS, **options}), threads)


def test_the_gradient_is_that_of_the_loss() -> None:
    """Of a minibatch, in float64 by plain products and the traced loss's adjoint, after the weights have moved."""
    made = trainer()
    for _ in range(3):
        made.update()
    samples = np.arange(0, 512, 2, dtype=np.int32)
    gradient, sums = made._gradient(samples)
    s, o = made.sizes, made.options
    x = made._seen.reshape(-1, s.observed)[samples].astype(float)
    taken = made._taken.reshape(-1, s.actions)[samples].astype(float)
    about = made._about[samples].astype(float)
    v = [w.astype(float) for w in made._views]

    def flown(first: int) -> list[Array]:
        layers = [x]
        for k in (first, first + 2):
            layers.append(np.tanh(layers[-1] @ v[k].T + v[k + 1]))
        return [*layers, layers[-1] @ v[first + 4].T + v[first + 5]]

    policy, critic = flown(0), flown(6)
    mean = np.tanh(policy[3])

    def loss(*inputs: Any) -> Any:
        old, actions = inputs[9:12], inputs[12:]
        return ppo_loss(inputs[:4], inputs[4:8], inputs[8], actions, old, o.clip, o.value_weight, o.entropy_weight)

    inputs = [*mean.T, *np.repeat(v[-1][:, None], len(x), axis=1), critic[3][:, 0], *about.T, *taken.T]
    weight = np.full(len(x), 1.0 / 256)
    values, slopes = adjoint(loss, inputs, [weight, 0.0 * weight, 0.0 * weight])
    np.testing.assert_allclose(sums, [np.sum(value) for value in values], rtol=2e-4, atol=2e-4)
    expected = []
    for layers, last in ((policy, np.array(slopes[:4]).T * (1.0 - mean**2)), (critic, np.array(slopes[8])[:, None])):
        slope, parts = last, []
        for k in (2, 1, 0):
            parts = [(slope.T @ layers[k]).ravel(), slope.sum(axis=0), *parts]
            matrix = v[(0 if layers is policy else 6) + 2 * k]
            slope = slope @ matrix * (1.0 - layers[k] ** 2)
        expected += parts
    flat = np.concatenate([*expected, [np.sum(slope) for slope in slopes[4:8]]])
    assert flat.shape == gradient.shape == made.parameters.shape
    np.testing.assert_allclose(gradient, flat, rtol=0.0, atol=3e-6 * np.abs(flat).max())


def test_what_the_kernel_acts_is_the_network_with_noise_of_its_log_probability() -> None:
    made = trainer()
    made.update()
    seen, taken = made._seen[-1].astype(float), made._taken[-1].astype(float)
    made._pack()
    made._now[:] = made._seen[-1]
    made._act(7)
    np.testing.assert_allclose(made._value_now, made.value(seen), rtol=1e-5, atol=1e-5)
    std = np.exp(made._views[-1].astype(float))
    z = (made._action - made.action(seen)) / std
    by_hand = (-0.5 * z**2 - np.log(std) - 0.5 * np.log(2 * np.pi)).sum(axis=1)
    np.testing.assert_allclose(made._log_now, by_hand, rtol=0.0, atol=2e-4)
    assert abs(np.mean(z)) < 0.2
    assert np.std(z) == pytest.approx(1.0, abs=0.15)
    assert taken.shape == (64, 4)


def test_advantages_by_their_definition() -> None:
    """Sum of discounted errors, written out for each step; ends cut it, time limits go on from the final observation."""
    rng = np.random.default_rng(0)
    rewards, values = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    last, ended, cut = rng.normal(size=3), np.zeros((6, 3), bool), np.zeros((6, 3))
    ended[2, 1] = ended[4, 2] = True
    cut[4, 2] = 1.7  # only cut off
    found = generalized_advantages(rewards, values, last, ended, cut, 0.9, 0.8)
    for env in range(3):
        for t in range(6):
            total, factor = 0.0, 1.0
            for k in range(t, 6):
                after = values[k + 1, env] if k < 5 else last[env]
                after = cut[k, env] if ended[k, env] else after
                total += factor * (rewards[k, env] + 0.9 * after - values[k, env])
                factor *= 0.9 * 0.8
                if ended[k, env]:
                    break
            assert found[t, env] == pytest.approx(total)


@dataclass(frozen=True)
class Constant(HoverTask):
    """Every step is worth 1, and flights are only ever cut off."""

    name: ClassVar[str] = "constant_in_a_test"
    episode_steps: int = 10

    def judge(self, before: Any, after: Any, action: Any, past: Any, p: Any) -> Judgement:
        return Judgement({"one": 1.0 + 0.0 * after[0]}, 0.0 * after[0], 0.0 * after[0])


def test_the_value_of_going_on_is_learnt_across_time_limits() -> None:
    """V = r / (1 - gamma): as if there were no limit. Taken as an end it would be at most 10 x 0.1."""
    options = PpoOptions(hidden=(16, 8), rollout=10, minibatches=1, epochs=8, learning_rate=5e-3, gamma=0.9, value_weight=1.0)
    made = NativePpo(VectorTask(Constant(), 64), options, threads=1)
    for _ in range(150):
        made.update()
    value = made.value(made.environments.observation)
    assert np.mean(value) == pytest.approx(0.1 / (1.0 - 0.9), rel=0.01)


def test_threads_and_stopping_change_no_bit() -> None:
    whole, threaded, part = trainer(), trainer(threads=2), trainer()
    for _ in range(4):
        one, two = whole.update(), threaded.update()
        assert one == two or np.isnan(one.episode_return)
    for _ in range(2):
        part.update()
    second = trainer(seed=99)
    second.restore(part.save())
    for _ in range(2):
        second.update()
    np.testing.assert_array_equal(whole.parameters, threaded.parameters)
    np.testing.assert_array_equal(whole.parameters, second.parameters)
    np.testing.assert_array_equal(whole.environments.state, second.environments.state)
    assert second.env_steps == whole.env_steps == 4 * 8 * 64


def test_it_learns_to_hover() -> None:
    environments = VectorTask(MotorCommand(), 128, seed=0)
    made = NativePpo(environments, PpoOptions(hidden=(16, 8), learning_rate=3e-3, minibatches=2), threads=2)
    rewards = [made.update().reward for _ in range(120)]
    assert np.mean(rewards[-10:]) > 1.5 * np.mean(rewards[:10])


def test_mistakes_are_told() -> None:
    with pytest.raises(AirworthyError, match="30 environments x 8 steps in 2 minibatches cannot be learnt from"):
        NativePpo(VectorTask("hover", 30), PpoOptions(rollout=8))
    with pytest.raises(AirworthyError, match="another task or of another number"):
        trainer().environments.restore(VectorTask("hover", 16).saved())
