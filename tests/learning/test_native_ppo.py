"""Native PPO: loss, gradient and advantages against plain NumPy, time limits, the same bits stopped or in threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.learning.environments import Judgement, VectorTask
from airworthy.learning.environments.tasks import HoverTask, MotorCommand, PositionByVelocity
from airworthy.learning.native_ppo import NativePpo, PpoOptions, generalized_advantages
from airworthy.learning.native_ppo.kernel import SLICE
from airworthy.learning.native_ppo.loss import ppo_loss
from airworthy.learning.native_ppo.shared import adapted_rate
from airworthy.learning.native_ppo.twin import loss_gradient

OPTIONS: dict[str, Any] = {"hidden": (16, 8), "rollout": 8, "minibatches": 2, "epochs": 2, "seed": 3}


def trainer(threads: int = 1, seed: int = 3, **options: Any) -> NativePpo:
    task = MotorCommand(episode_steps=20)
    return NativePpo(VectorTask(task, 64, seed=seed), PpoOptions(**{**OPTIONS, **options}), threads)


def test_the_gradient_is_that_of_the_loss() -> None:
    """Of a minibatch, in float64 by plain products and the traced loss's adjoint, after the weights have moved."""
    made = trainer()
    for _ in range(3):
        made.update()
    blocks = np.arange(0, 32, 2)
    gradient, sums = made.gradient(blocks)
    samples = made.samples.reshape(32, -1, 16)[blocks].transpose(0, 2, 1).reshape(256, -1)
    expected, told = loss_gradient(made.sizes, made._views, samples)
    assert np.abs(expected).max() > 1e-2
    assert expected.shape == gradient.shape == made.parameters.shape
    np.testing.assert_allclose(sums, told, rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(gradient, expected, rtol=0.0, atol=3e-6 * np.abs(expected).max())


@pytest.mark.parametrize("hidden", [(16, 8), (17, 6)])
def test_the_gradient_of_many_slices_is_their_sum(hidden: tuple[int, int]) -> None:
    """A part of a minibatch is learnt a slice at a time, each on top of those before."""
    made = trainer(hidden=hidden, rollout=72, minibatches=1)
    made.update()
    blocks = np.arange(4 * 72)
    assert len(blocks) > 2 * SLICE * made._sums.shape[0]
    gradient, _ = made.gradient(blocks)
    expected, _ = loss_gradient(made.sizes, made._views, made.samples.reshape(288, -1, 16).transpose(0, 2, 1).reshape(4608, -1))
    np.testing.assert_allclose(gradient, expected, rtol=0.0, atol=5e-6 * np.abs(expected).max())


def test_widths_that_fill_no_tile() -> None:
    made = trainer(hidden=(17, 6))
    made.update()
    gradient, _ = made.gradient(np.arange(16))
    expected, _ = loss_gradient(
        made.sizes, made._views, made.samples.reshape(32, -1, 16)[:16].transpose(0, 2, 1).reshape(256, -1)
    )
    np.testing.assert_allclose(gradient, expected, rtol=0.0, atol=3e-6 * np.abs(expected).max())


@pytest.mark.parametrize("more", [{}, {"normalize_observation": True, "normalize_value": True}])
def test_a_critic_that_sees_more(more: dict[str, Any]) -> None:
    """`observe_critic` of a task reaches the critic alone: values, at time limits, too, gradient, and the bits of a restart."""

    def made(seed: int = 3) -> NativePpo:
        task = VectorTask(PositionByVelocity(episode_steps=20), 64, seed=seed)
        return NativePpo(task, PpoOptions(**OPTIONS, **more), 1)

    one, other = made(), made(99)
    for _ in range(3):
        one.update()
    other.restore(one.save())
    task = VectorTask(one.environments.task, 64, seed=99)
    task.restore(one.environments.saved())
    flown = one.fly()
    s = one.sizes
    assert s.known == s.observed == 17
    samples = one.samples.transpose(0, 1, 3, 2).reshape(8, 64, s.sample)
    cut = np.zeros(64)
    for t in range(8):
        np.testing.assert_array_equal(samples[t, :, : s.observed], task.observation)
        np.testing.assert_array_equal(samples[t, :, s.observed + s.actions + 3 :], task.critic_observation)
        assert np.abs(task.critic_observation[:, :3] - task.observation[:, :3]).max() > 0.03
        np.testing.assert_allclose(one._scaled(one.values[t]), one.value(task.critic_observation), rtol=2e-5, atol=2e-5)
        result = task.step(samples[t, :, s.observed : s.observed + s.actions])
        cut = np.where(result.truncated, one.value(task.final_critic_observation), 0.0)
        np.testing.assert_allclose(flown.cut_values[t], cut, rtol=2e-5, atol=2e-5)
    one.learn_from(np.random.default_rng(0).normal(size=(8, 64)))
    gradient, _ = one.gradient(np.arange(0, 32, 2))
    if not more:
        blocks = one.samples.reshape(32, -1, 16)[::2].transpose(0, 2, 1).reshape(256, -1)
        expected, _ = loss_gradient(s, one._views, blocks)
        np.testing.assert_allclose(gradient, expected, rtol=0.0, atol=3e-6 * np.abs(expected).max())
    again = made(5)
    again.restore(other.save())
    for made_again in (other, again):
        made_again.update()
    np.testing.assert_array_equal(other.parameters, again.parameters)


def test_the_loss_is_the_published_one() -> None:
    """Formulas of Schulman et al. (2017), (7) and (9), written out: ratios beyond both clips, advantages of both signs.

    The value's error counts half, and the entropy without its constant.
    """
    rng = np.random.default_rng(0)
    n, width, clip_share, value_weight, entropy_weight = 4000, 4, 0.2, 1.5, 0.03
    mean, z = rng.normal(size=(2, width, n))
    log_std = rng.uniform(-0.7, 0.3, (width, n))
    value, advantage, target = rng.normal(size=(3, n))
    std = np.exp(log_std)
    action = mean + std * z
    density = np.exp(-((action - mean) ** 2) / (2.0 * std**2)) / (std * np.sqrt(2.0 * np.pi))
    ratio = np.exp(rng.normal(0.0, 0.4, n))
    old_log = np.log(density.prod(axis=0) / ratio)

    for sign in (-1.0, 1.0):
        share = [np.mean(b & (sign * advantage > 0.0)) for b in (ratio < 0.8, abs(ratio - 1.0) < 0.2, ratio > 1.2)]
        assert min(share) > 0.1
    bounded = np.where(ratio > 1.2, 1.2, np.where(ratio < 0.8, 0.8, ratio))
    surrogate = np.where(ratio * advantage < bounded * advantage, ratio, bounded) * advantage
    entropy = np.log(std * np.sqrt(2.0 * np.pi * np.e)).sum(axis=0) - width * 0.5 * np.log(2.0 * np.pi * np.e)
    error = (value - target) ** 2
    expected = -surrogate + value_weight * error / 2.0 - entropy_weight * entropy

    weights = clip_share, value_weight, entropy_weight
    loss, divergence, told = ppo_loss(tuple(mean), tuple(log_std), value, tuple(action), (old_log, advantage, target), *weights)
    # `core.ops.exp` is right to 1e-10: of z, which counts squared, and of the ratio.
    slack = 1e-10 * ((z**2).sum(axis=0) + 1.0) * (ratio + 1.0)
    assert (abs(loss - expected) <= slack * abs(advantage) + 1e-12).all()
    assert (abs(divergence - (ratio - 1.0 - np.log(ratio))) <= slack).all()
    np.testing.assert_allclose(told, error, rtol=1e-12)


@pytest.mark.parametrize(
    ("share", "factor"), [(0.0, 1.5), (0.499, 1.5), (0.5, 1.0), (0.501, 1.0), (1.999, 1.0), (2.0, 1.0), (2.001, 1.0 / 1.5)]
)
def test_the_rate_follows_the_divergence(share: float, factor: float) -> None:
    """It rises below half of the target, falls above twice of it, and stays between."""
    target = 0.015625  # a power of two: half and twice of it are exact
    assert adapted_rate(1e-3, share * target, target) == pytest.approx(1e-3 * factor, rel=1e-15)


def test_the_rate_stays_within_bounds_and_without_a_target_as_it_is() -> None:
    for divergence, bound in ((1.0, 1e-5), (0.0, 1e-2)):
        rate = 1e-3
        for _ in range(30):
            rate = adapted_rate(rate, divergence, 0.01)
        assert rate == bound
        assert adapted_rate(1e-3, divergence, 0.0) == 1e-3


def test_a_rollout_is_what_environments_and_network_do_one_by_one() -> None:
    """The same actions through `VectorTask.step` give the same bits; noise is normal, and log-probabilities are its."""
    made = trainer()
    for _ in range(2):
        made.update()
    task = VectorTask(made.environments.task, 64, seed=99)
    task.restore(made.environments.saved())
    flown = made.fly()
    s = made.sizes
    samples = made.samples.transpose(0, 1, 3, 2).reshape(8, 64, s.sample)
    seen, taken = samples[..., : s.observed], samples[..., s.observed : s.observed + s.actions]
    values, terms = [], dict.fromkeys(task.terms, 0.0)
    for t in range(8):
        np.testing.assert_array_equal(seen[t], task.observation)
        values.append(made.value(task.observation))
        result = task.step(taken[t])
        np.testing.assert_array_equal(flown.rewards[t], result.reward)
        np.testing.assert_array_equal(flown.ended[t], result.ends.ended)
        cut = np.where(result.truncated, made.value(result.final_observation), 0.0)
        np.testing.assert_allclose(flown.cut_values[t], cut, atol=2e-6)
        terms = {name: total + float(np.mean(result.terms[name])) / 8 for name, total in terms.items()}
    assert flown.ended.sum() == len(flown.returns) > flown.terminated
    np.testing.assert_array_equal(task.observation, made.environments.observation)
    np.testing.assert_array_equal(task.state, made.environments.state)
    np.testing.assert_allclose(made.values, [*values, made.value(task.observation)], rtol=1e-5, atol=1e-5)
    assert flown.terms == pytest.approx(terms, abs=1e-6)
    std = np.exp(made._views[-1].astype(float))
    z = (taken - made.action(seen)) / std
    by_hand = (-0.5 * z**2 - np.log(std) - 0.5 * np.log(2 * np.pi)).sum(axis=-1)
    np.testing.assert_allclose(samples[..., s.observed + s.actions], by_hand, rtol=0.0, atol=2e-4)
    assert abs(np.mean(z)) < 0.1
    assert np.std(z) == pytest.approx(1.0, abs=0.05)


def test_noise_that_lasts_is_flown_besides_and_forgotten_with_the_flight() -> None:
    """By hand: what earlier actions left decays, is added to what is flown, and is no part of what is learnt from."""
    made = trainer(noise_memory=0.8, normalize_value=True, normalize_observation=True)
    for _ in range(2):
        made.update()
    task = VectorTask(made.environments.task, 64, seed=99)
    task.restore(made.environments.saved())
    left = made.save().arrays["lasting"].copy().T
    assert np.abs(left).max() > 0.1
    flown = made.fly()
    s, std = made.sizes, np.exp(made._views[-1])
    samples = made.samples.transpose(0, 1, 3, 2).reshape(8, 64, s.sample)
    for t in range(8):
        seen, taken = samples[t, :, : s.observed], samples[t, :, s.observed : s.observed + s.actions]
        np.testing.assert_allclose(made.value(task.observation), made._scaled(made.values[t]), rtol=2e-5, atol=2e-5)
        drawn = taken - made.action(seen)
        z = drawn / std
        assert np.std(z) == pytest.approx(1.0, abs=0.2)
        result = task.step(taken + left)
        np.testing.assert_allclose(flown.rewards[t], result.reward, atol=1e-5)
        left = np.where(result.ends.ended[:, None], 0.0, 0.8 * (left + drawn))
    assert flown.ended.any()
    np.testing.assert_allclose(made.save().arrays["lasting"].T, left, atol=1e-5)


def test_deviations_fall_to_the_last_one() -> None:
    options = PpoOptions(initial_std=0.4, least_std=0.1, last_std=0.01, decay_steps=1000)
    assert options.bounds_of_std(0) == options.bounds_of_std(500) == (0.1, np.inf)
    low, high = options.bounds_of_std(650)
    assert low == pytest.approx(0.1 * 0.1**0.5)
    assert high == pytest.approx(0.4 * (0.01 / 0.4) ** 0.5)
    assert options.bounds_of_std(800) == pytest.approx((0.01, 0.01))
    assert options.bounds_of_std(10**9) == pytest.approx((0.01, 0.01))
    assert PpoOptions().bounds_of_std(10**9) == (0.05, np.inf)
    made = trainer(initial_std=0.4, least_std=0.1, last_std=0.01, decay_steps=2 * 8 * 64)
    stds = [made.update().std for _ in range(3)]
    assert stds[0] > 0.1
    assert stds[2] == pytest.approx(0.01, rel=1e-5)
    for wrong, said in (
        ({"last_std": 0.2, "decay_steps": 10}, "last_std is 0.2, above least_std"),
        ({"last_std": 0.01}, "changes nothing without decay_steps"),
    ):
        with pytest.raises(AirworthyError, match=said):
            PpoOptions(**wrong)


@pytest.mark.parametrize(("deviation", "memory", "sinks"), [(0.0, 0.0, 0.0), (0.1, 0.0, 0.366), (0.1, 0.95, 0.16)])
def test_white_noise_of_actions_costs_thrust_and_noise_that_lasts_less(deviation: float, memory: float, sinks: float) -> None:
    """The law v = e on lmf2, whose rotors fall faster than they rise: a steady error downwards in proportion to the noise."""
    task = VectorTask(PositionByVelocity(noise=False), 32, seed=5)
    seen, rng, left, heights = task.observation, np.random.default_rng(0), np.zeros((32, 4)), []
    for step in range(700):
        x, y, z, w = seen[:, 3:7].T
        yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
        ahead = np.cos(yaw) * seen[:, 0] + np.sin(yaw) * seen[:, 1], np.cos(yaw) * seen[:, 1] - np.sin(yaw) * seen[:, 0]
        left = memory * left + np.sqrt(1.0 - memory**2) * deviation * rng.standard_normal((32, 4))
        seen = task.step(np.clip(np.stack([*ahead, seen[:, 2], -yaw], axis=1) + left, -1.0, 1.0)).observation
        if step >= 500:
            heights.append(float(task.state[2].mean()))
    assert np.mean(heights) == pytest.approx(-sinks, abs=0.05)


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


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("gamma", "more"), [(0.9, {}), (0.9, {"normalize_value": True}), (0.95, {})])
def test_the_value_of_going_on_is_learnt_across_time_limits(gamma: float, more: dict[str, Any], seed: int) -> None:
    """V = r / (1 - gamma) to 1 % (specification, learning by reward, 9.4): as if there were no limit, and whatever the seed.

    The rate falls to nothing, as it does in every training: at one that stays the value wanders about this one for ever.
    """
    usual: dict[str, Any] = {"hidden": (16, 8), "rollout": 10, "minibatches": 1, "epochs": 8, "learning_rate": 5e-3}
    options = PpoOptions(**usual, gamma=gamma, value_weight=1.0, decay_steps=200 * 10 * 64, seed=seed, **more)
    made = NativePpo(VectorTask(Constant(), 64, seed=seed), options, threads=1)
    for _ in range(200):
        made.update()
    value = made.value(made.environments.observation)
    assert np.mean(value) == pytest.approx(0.1 / (1.0 - gamma), rel=0.01)


def test_a_flight_that_ended_is_worth_nothing_more_whatever_the_scale_of_values() -> None:
    """Values are learnt less their mean, which is not owed after an end; of flights that are cut off it is a part."""
    made = trainer(normalize_value=True)
    for _ in range(4):
        made.update()
    assert abs(made._expectations.mean[0]) > 0.1
    # Far beyond where a flight ends: these are over in the first step, and their next ones go on.
    made.environments.state[0, ::4] = 50.0
    task = VectorTask(made.environments.task, 64, seed=99)
    task.restore(made.environments.saved())
    flown, s = made.fly(), made.sizes
    taken = made.samples.transpose(0, 1, 3, 2).reshape(8, 64, s.sample)[..., s.observed : s.observed + s.actions]
    expected, terminated = np.zeros((8, 64)), np.zeros((8, 64), bool)
    for t in range(8):
        result = task.step(taken[t])
        value = made.value(result.final_observation)
        expected[t, result.truncated], terminated[t] = value[result.truncated], result.terminated
    assert terminated[0, ::4].all()
    assert (np.abs(expected) > 0.1).any()
    np.testing.assert_allclose(flown.cut_values, expected, rtol=2e-5, atol=2e-5)
    np.testing.assert_array_equal(flown.cut_values[terminated], 0.0)


@pytest.mark.parametrize("more", [{}, {"noise_memory": 0.9, "normalize_value": True, "normalize_observation": True}])
def test_threads_and_stopping_change_no_bit(more: dict[str, Any]) -> None:
    whole, threaded, part = trainer(**more), trainer(threads=2, **more), trainer(**more)
    for _ in range(4):
        one, two = whole.update(), threaded.update()
        assert one == two or np.isnan(one.episode_return)
    for _ in range(2):
        part.update()
    second = trainer(seed=99, **more)
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
