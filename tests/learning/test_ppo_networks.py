"""PPO in torch: whatever network, against formulas; time limits, numbers that are none, memory, what it normalises by."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.learning.environments import Judgement, VectorTask
from airworthy.learning.environments.tasks import HoverTask, MotorCommand
from airworthy.learning.native_ppo import ppo_loss
from airworthy.learning.native_ppo.shared import Rollout

pytest.importorskip("torch")

import torch

from airworthy.learning.native_ppo.moments import RunningMoments
from airworthy.learning.ppo import TorchPpo, TorchPpoOptions
from airworthy.learning.ppo.loss import Samples, batch_loss
from airworthy.learning.ppo.model import ActorCritic, Gaussian

SMALL: dict[str, Any] = {"hidden": (16, 8), "rollout": 8, "minibatches": 2, "epochs": 2, "seed": 3}
NETWORKS: list[dict[str, Any]] = [
    {},
    {"recurrent": 8},
    {"image": (1, 8, 8)},
    {"shared": True, "deviation": "network", "squash": True, "normalize_observation": True, "normalize_value": True},
    {"recurrent": 8, "shared": True, "value_clip": 0.2, "squash": True, "normalize_observation": True},
    {"hidden": (8,), "mirror": "xy", "target_divergence": 0.0, "anneal_updates": 5, "stop_divergence": 0.01},
]


class Pictured(MotorCommand):
    """What is seen, and an image of 8 x 8 made of it: the distance of each cell from where the target is."""

    name = "pictured_in_a_test"

    def observe(self, state: Any, noises: Any, p: Any) -> Any:
        cells = [(0.1 * row - state[0]) * (0.1 * column - state[1]) for row in range(8) for column in range(8)]
        return (*super().observe(state, noises, p), *cells)


def made(task: Any = None, count: int = 32, threads: int = 1, **options: Any) -> TorchPpo:
    chosen = {**SMALL, **options}
    if task is None:
        noise = chosen.get("mirror", "none") == "none"
        task = (Pictured if chosen.get("image") else MotorCommand)(episode_steps=20, noise=noise)
    return TorchPpo(VectorTask(task, count, seed=3), TorchPpoOptions(**chosen), threads)


def row_of(one: TorchPpo) -> Any:
    return np.concatenate([x.detach().numpy().ravel() for x in one.model.ordered_parameters()])


# ---- loss and distribution --------------------------------------------------------------------------------------------


def test_the_loss_of_a_batch_is_the_sum_of_those_of_its_samples() -> None:
    """By the scalar form that the native kernel is traced from, in float64; weights leave samples out."""
    rng = np.random.default_rng(0)
    n, width, o = 500, 4, TorchPpoOptions(clip=0.2, value_weight=1.5, entropy_weight=0.03)
    mean, taken = rng.normal(size=(2, n, width))
    log_std = rng.uniform(-0.7, 0.3, width)
    old, advantage, target, value, before = rng.normal(size=(5, n))
    old = old - 5.0
    weight = (rng.uniform(size=n) < 0.8).astype(float)
    repeated = tuple(np.repeat(log_std[:, None], n, axis=1))
    told = ppo_loss(tuple(mean.T), repeated, value, tuple(taken.T), (old, advantage, target), 0.2, 1.5, 0.03)
    # The scalar form leaves the entropy's constant out.
    constant = 0.03 * width * 0.5 * math.log(2.0 * math.pi * math.e)
    expected = [float((told[0] - constant) @ weight), float(told[1] @ weight), float(told[2] @ weight)]
    tensors = [torch.from_numpy(x) for x in (taken, taken, old, advantage, target, before, weight)]
    policy = Gaussian(torch.from_numpy(mean), torch.from_numpy(log_std), False)
    found = batch_loss(policy, torch.from_numpy(value), Samples(*tensors), o)
    np.testing.assert_allclose([float(x) for x in found], expected, rtol=1e-9)
    # A value that moved beyond its clip counts the larger error of both.
    clipped = batch_loss(policy, torch.from_numpy(value), Samples(*tensors), replace(o, value_clip=0.2))[0]
    moved = before + np.clip(value - before, -0.2, 0.2)
    more = np.maximum((moved - target) ** 2 - (value - target) ** 2, 0.0)
    assert float(clipped) - float(found[0]) == pytest.approx(0.5 * 1.5 * float(more @ weight), rel=1e-9)


def test_squashed_actions_have_the_density_of_their_own() -> None:
    """It integrates to 1 over (-1, 1), and its entropy by quadrature is that estimated with noise."""
    mean, log_std = torch.tensor([0.4], dtype=torch.float64), torch.tensor([-0.3], dtype=torch.float64)
    policy = Gaussian(mean, log_std, True)
    action = torch.linspace(-1.0, 1.0, 400_001, dtype=torch.float64)[1:-1]
    log_density = policy.log_probability(torch.atanh(action)[:, None])
    step = 2.0 / 400_000
    assert float(log_density.exp().sum()) * step == pytest.approx(1.0, abs=1e-4)
    expected = -float((log_density.exp() * log_density).sum()) * step
    noise = torch.from_numpy(np.random.default_rng(0).normal(size=(400_000, 1)))
    wide = Gaussian(mean.expand(400_000, 1), log_std, True)
    # The standard error of 400,000 draws is 0.001.
    assert float(wide.entropy(noise)) == pytest.approx(expected, abs=5e-3)
    assert float(policy.action(torch.tensor([[30.0]]))) == 1.0
    assert torch.isfinite(policy.log_probability(torch.tensor([[30.0]], dtype=torch.float64))).all()


def test_moments_are_those_of_all_rows() -> None:
    rng = np.random.default_rng(0)
    # Far from 0: sums of squares in float32 would know nothing of the spread.
    rows = (1e4 + rng.normal(0.0, [1.0, 0.1], (3000, 2))).astype(np.float32)
    moments = RunningMoments(2)
    np.testing.assert_array_equal(moments.deviation, 1.0)
    for part in np.split(rows, [1, 700, 2000]):
        moments.learn(part)
    moments.learn(np.full((3, 2), np.nan))
    np.testing.assert_allclose(moments.mean, rows.astype(float).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(moments.deviation, rows.astype(float).std(axis=0), rtol=1e-9)


# ---- every network ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", NETWORKS)
def test_every_network_learns_the_same_in_threads_and_after_a_stop(options: dict[str, Any]) -> None:
    whole, threaded, part = made(**options), made(threads=2, **options), made(**options)
    for _ in range(3):
        told = whole.update()
        threaded.update()
    part.update()
    second = made(**options)
    second.restore(part.save())
    for _ in range(2):
        second.update()
    np.testing.assert_array_equal(row_of(whole), row_of(threaded))
    np.testing.assert_array_equal(row_of(whole), row_of(second))
    np.testing.assert_array_equal(whole.environments.state, second.environments.state)
    assert np.abs(row_of(whole) - row_of(made(**options))).max() > 1e-4
    assert second.env_steps == whole.env_steps == 3 * 8 * 32
    assert all(math.isfinite(x) for x in (told.divergence, told.entropy, told.std, told.gradient_norm, told.reward))
    if options.get("anneal_updates"):
        assert told.learning_rate == pytest.approx(3e-4 * (1.0 - 2 / 5))


@pytest.mark.parametrize("options", [*NETWORKS[1:3], *NETWORKS[4:]])
def test_the_first_gradient_is_that_of_differences(options: dict[str, Any]) -> None:
    """Along random directions, in float64, through memory, image and mirror images."""
    one = made(count=16, **{**options, "target_divergence": 0.0, "anneal_updates": 0})
    torch.manual_seed(0)
    flown = one.fly()
    samples = one._samples(np.random.default_rng(0).normal(size=flown.rewards.shape))
    seen = one._normal(one._flown.seen[:-1]).double()
    inputs = [(seen, seen)] + [(x, x) for x in (seen * torch.from_numpy(image.seen) for image in one._mirrors)]
    one.model.double()
    one._adam.parameters = one.model.ordered_parameters()
    one._begun_with = tuple(x.double() for x in one._begun_with)
    samples = Samples(*(x.double() for x in vars(samples).values()))
    order = np.arange(one._blocks)
    # After a step, where ratios are no longer 1.
    for x in one._adam.parameters:
        x.data += 0.01 * torch.randn_like(x)
    gradient, _ = one.gradient(order, samples, inputs)

    def loss() -> float:
        whole = 0.0
        for k, pair in enumerate(inputs):
            taken, shown = one._chosen(order, samples, pair)
            if k:
                rotors = torch.from_numpy(one._mirrors[k - 1].rotors)
                taken = replace(taken, taken=taken.taken[..., rotors], noise=taken.noise[..., rotors])
            memories = one._begun_with if one.options.recurrent else None
            whole += float(one._loss(taken, shown, memories, order)[0].detach())
        return whole / (samples.weight.numel() * len(inputs))

    for _ in range(2):
        ways = [torch.randn_like(x) for x in one._adam.parameters]
        told = []
        for step in (1e-6, -2e-6):
            for x, way in zip(one._adam.parameters, ways, strict=True):
                x.data += step * way
            told.append(loss())
        for x, way in zip(one._adam.parameters, ways, strict=True):
            x.data += 1e-6 * way
        by_hand = float(torch.cat([w.reshape(-1) for w in ways]) @ gradient)
        assert by_hand == pytest.approx((told[0] - told[1]) / 2e-6, rel=1e-4, abs=1e-6)


def test_memory_ends_with_a_flight() -> None:
    """A sequence with an end in it is two sequences; what was flown is what the network says one by one."""
    one = made(recurrent=8)
    for _ in range(2):
        one.update()
    flown = one.fly()
    assert flown.ended.any()
    assert not flown.ended.all()
    f = one._flown
    with torch.no_grad():
        memory = one._begun_with[0]
        for t in range(8):
            features, memory = one.model.actor(f.seen[t], memory)
            policy = one.model.policy(features)
            np.testing.assert_allclose(f.taken[t], policy.mean + policy.log_std.exp() * f.noise[t], atol=1e-6)
            memory = torch.where(f.ended[t, :, None], torch.zeros(()), memory)
        together, last = one.model.actor.sequence(f.seen[:-1], one._begun_with[0], f.ended)
    np.testing.assert_allclose(together[-1], features, atol=1e-6)
    np.testing.assert_allclose(last, memory, atol=1e-6)
    np.testing.assert_allclose(last, one._memory, atol=1e-6)


# ---- time limits ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Constant(HoverTask):
    """Every step is worth 1, and flights are only ever cut off."""

    name: ClassVar[str] = "constant_in_a_test"
    episode_steps: int = 10

    def judge(self, before: Any, after: Any, action: Any, past: Any, p: Any) -> Judgement:
        return Judgement({"one": 1.0 + 0.0 * after[0]}, 0.0 * after[0], 0.0 * after[0])


def as_death(flown: Rollout, one: TorchPpo) -> Rollout:
    return replace(flown, cut_values=0.0 * flown.cut_values)


def as_it_is(flown: Rollout, one: TorchPpo) -> Rollout:
    return flown


SLOW = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, pytest.param({"normalize_value": True}, marks=SLOW), pytest.param({"recurrent": 8}, marks=SLOW)]
)
def test_the_value_of_going_on_is_learnt_across_time_limits(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """V = r / (1 - gamma) to 1 % (specification, learning by reward, 9.4). Taken for a death it is at most 0.65 of it."""
    value = float(np.mean(constant(as_it_is, monkeypatch, **options)._expected))
    assert value == pytest.approx(0.1 / (1.0 - 0.9), rel=0.01)
    if not options:
        assert float(np.mean(constant(as_death, monkeypatch, updates=60)._expected)) < 0.8


def constant(
    taken: Callable[[Rollout, TorchPpo], Rollout], monkeypatch: pytest.MonkeyPatch, updates: int = 150, **options: Any
) -> TorchPpo:
    usual = {"hidden": (16, 8), "rollout": 10, "minibatches": 1, "epochs": 8, "learning_rate": 5e-3, "gamma": 0.9}
    one = TorchPpo(VectorTask(Constant(), 32), TorchPpoOptions(**{**usual, "value_weight": 1.0, **options}), 1)
    fly = one.fly
    monkeypatch.setattr(one, "fly", lambda: taken(fly(), one))
    for _ in range(updates):
        one.update()
    return one


@pytest.mark.parametrize("options", [{}, {"recurrent": 8}])
def test_flights_that_are_cut_off_go_on_from_what_they_saw_last(options: dict[str, Any]) -> None:
    """V of the final observation, with this flight's memory: not V of the observation before, nor of the next flight's first.

    One value for all, as of a constant reward, would hide both of these known approximations.
    """
    one = made(**options)
    for _ in range(2):
        one.update()
    task = VectorTask(one.environments.task, 32, seed=99)
    task.restore(one.environments.saved())
    flown, f, checked = one.fly(), one._flown, 0
    memory = one._begun_with[1].clone()
    for t in range(8):
        with torch.no_grad():
            features, memory = one.model.critic(f.seen[t], memory)
            np.testing.assert_allclose(one.model.value(features), one._expected[t], atol=1e-5)
            result = task.step(f.taken[t].numpy())
            last, _ = one.model.critic(torch.from_numpy(result.final_observation.copy()), memory)
            after = one.model.value(last).numpy()
        np.testing.assert_array_equal(flown.rewards[t], result.reward)
        cut = result.truncated
        np.testing.assert_allclose(flown.cut_values[t], np.where(cut, after, 0.0), atol=1e-5)
        if cut.any():
            checked += int(cut.sum())
            assert np.abs(one._expected[t] - flown.cut_values[t])[cut].max() > 1e-3
            assert np.abs(one._expected[t + 1] - flown.cut_values[t])[cut].max() > 1e-3
        memory = memory * ~torch.from_numpy(result.ends.ended)[:, None]
    assert checked > 10


# ---- numbers that are none ---------------------------------------------------------------------------------------------


def test_eight_environments_without_numbers_leave_the_others_as_they_are() -> None:
    """Of 1,024: the others' data are the same bits, and training goes on in numbers (specification, 9.6)."""
    clean, hurt = (made(MotorCommand(), count=1024, rollout=8) for _ in range(2))
    bad = np.arange(100, 1024, 120)[:8]
    step = hurt.environments.step

    def poisoned(actions: Any) -> Any:
        hurt.environments.state[3, bad] = np.nan
        return step(actions)

    hurt.environments.step = poisoned  # type: ignore[method-assign]
    flown = [one.fly() for one in (clean, hurt)]
    others = np.setdiff1d(np.arange(1024), bad)
    for name in ("seen", "taken", "log_probability", "ended"):
        a, b = (getattr(one._flown, name).numpy() for one in (clean, hurt))
        np.testing.assert_array_equal(a[:, others], b[:, others])
    np.testing.assert_array_equal(flown[0].rewards[:, others], flown[1].rewards[:, others])
    np.testing.assert_array_equal(clean._expected[:, others], hurt._expected[:, others])
    assert flown[1].terminated >= 8 * 8
    for _ in range(3):
        told = hurt.update()
    assert told.skipped == 0
    assert np.isfinite(row_of(hurt)).all()
    assert np.isfinite(hurt._flown.seen.numpy()).all()


@pytest.mark.parametrize("options", [{}, {"deviation": "network"}, {"squash": True}, {"deviation": "network", "squash": True}])
def test_samples_without_numbers_count_nothing(options: dict[str, Any]) -> None:
    """Observations and rewards of a user's own environments that are none: left out, and the others learn.

    Also where deviations come from what is seen: the density of an action is none, too, then.
    """
    one = made(normalize_observation=True, **options)
    environments = one.environments
    step = environments.step

    def broken(actions: Any) -> Any:
        result = step(actions)
        result.reward[3] = np.inf
        environments.observation[5] = np.nan
        return result

    environments.step = broken  # type: ignore[method-assign]
    for _ in range(3):
        told = one.update()
    assert float(one._weight[:, 5].sum()) <= 1.0
    assert float(one._weight[:, 3].sum()) == 0.0
    assert float(one._weight[:, 6].min()) == 1.0
    assert told.skipped == 0
    # By which the learning rate goes: of a sum with one that is none it would stay as it is.
    assert np.isfinite([told.divergence, told.value_error, told.gradient_norm]).all()
    assert np.isfinite(row_of(one)).all()


def test_gradients_without_numbers_are_skipped_and_then_told(monkeypatch: pytest.MonkeyPatch) -> None:
    one = made()
    before = row_of(one).copy()
    gradient = one.gradient
    monkeypatch.setattr(one, "gradient", lambda *given: (gradient(*given)[0] * math.nan, np.zeros(3)))
    assert one.update().skipped == 4
    np.testing.assert_array_equal(row_of(one), before)
    one.update()
    with pytest.raises(AirworthyError, match="11 minibatches of PPO in a row are not finite"):
        one.update()


# ---- a critic of its own, and mistakes ---------------------------------------------------------------------------------


def test_a_critic_that_sees_more() -> None:
    """`observe_critic` of a task reaches the critic alone, and at time limits what it would have seen last."""
    task = VectorTask("l2f_position", 64, seed=3)
    one = TorchPpo(task, TorchPpoOptions(**SMALL), 1)
    assert task.critic_observation.shape[1] != task.observation_count
    assert one.model.critic.layers[0].in_features == task.critic_observation.shape[1]
    assert one.model.actor.layers[0].in_features == task.observation_count
    told = [one.update() for _ in range(3)][-1]
    assert math.isfinite(told.value_error)
    np.testing.assert_array_equal(one._flown.critic_seen[-1], task.critic_observation)
    other = TorchPpo(VectorTask("l2f_position", 64, seed=4), TorchPpoOptions(**SMALL), 1)
    other.restore(one.save())
    np.testing.assert_array_equal(other.environments.critic_observation, task.critic_observation)
    with pytest.raises(AirworthyError, match="its layers cannot be shared"):
        TorchPpo(task, TorchPpoOptions(**SMALL, shared=True), 1)


@pytest.mark.slow
def test_it_learns_to_hover() -> None:
    options = {"learning_rate": 3e-3, "rollout": 32, "epochs": 5, "normalize_observation": True}
    one = made(MotorCommand(), count=128, threads=2, **options)
    rewards = [one.update().reward for _ in range(60)]
    assert np.mean(rewards[-10:]) > 1.5 * np.mean(rewards[:10])


def test_an_exported_policy_is_the_same_function() -> None:
    one = made(normalize_observation=True, squash=True)
    for _ in range(3):
        one.update()
    seen = one.environments.observation.astype(float)
    x = seen
    w = one.policy_weights
    for k in (0, 2, 4):
        x = np.tanh(x @ w[k].T.astype(float) + w[k + 1])
    np.testing.assert_allclose(one.action(seen), x, atol=2e-6)


def test_where_policies_begin() -> None:
    """At hover, with the deviation that was asked for, whatever the network."""
    hover = np.array([0.2, -0.4, 0.0, 0.5], np.float32)
    for options in ({}, {"squash": True}, {"deviation": "network"}, {"recurrent": 8}):
        o = TorchPpoOptions(hidden=(16, 8), initial_std=0.3, **options)  # type: ignore[arg-type]
        model = ActorCritic((15, 15, 4), o, hover, 1)
        features, _ = model.actor(torch.randn(32, 15), model.memory(32, torch.device("cpu")))
        policy = model.policy(features)
        np.testing.assert_allclose(
            policy.action(policy.mean).detach() if o.squash else policy.mean.detach(),
            hover[None] + np.zeros((32, 1)),
            atol=0.05,
        )
        np.testing.assert_allclose(policy.log_std.exp().detach().numpy(), 0.3, atol=0.02)


def test_mistakes_are_told() -> None:
    with pytest.raises(
        AirworthyError,
        match="minibatches is 7; expected a number that divides 240, the samples of 30 environments x 8 steps",
    ):
        made(count=30, minibatches=7)
    with pytest.raises(
        AirworthyError, match="minibatches is 4; expected a number that divides its 30 environments, which go together"
    ):
        made(count=30, minibatches=4, recurrent=8)
    with pytest.raises(AirworthyError, match="3 x 64 x 64 cannot be part of 15 observed numbers"):
        made(MotorCommand(), image=(3, 64, 64))
    with pytest.raises(AirworthyError, match="expected 8 or more rows and columns"):
        TorchPpoOptions(image=(1, 7, 64))
    with pytest.raises(AirworthyError, match="anneal_updates and target_divergence both set the learning rate"):
        TorchPpoOptions(anneal_updates=10)
    with pytest.raises(AirworthyError, match="most_std 2 changes nothing for deviations that are parameters"):
        TorchPpoOptions(most_std=2.0)
    with pytest.raises(AirworthyError, match="Only policies of tanh layers alone"):
        _ = made(recurrent=8).policy_weights
