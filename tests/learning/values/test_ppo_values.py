"""What PPO computes, native and in torch, number by number: first weights, loss, updates, moments, mirror images, options."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tests.fixtures.recording import plain
from tests.fixtures.snapshots import check_snapshot

from airworthy.core.errors import AirworthyError
from airworthy.learning.environments import VectorTask
from airworthy.learning.environments.tasks import HoverTask, L2fPosition, MotorCommand
from airworthy.learning.native_ppo import shared
from airworthy.learning.native_ppo.config import MotorCommandConfig
from airworthy.learning.native_ppo.loss import ppo_loss
from airworthy.learning.native_ppo.moments import RunningMoments
from airworthy.learning.native_ppo.options import PpoOptions
from airworthy.learning.native_ppo.trainer import NativePpo
from airworthy.learning.native_ppo.training import PpoTraining, PpoTrainingOptions
from airworthy.learning.ppo.loss import Samples, batch_loss
from airworthy.learning.ppo.model import ActorCritic, Gaussian
from airworthy.learning.ppo.options import TorchPpoOptions
from airworthy.learning.ppo.symmetry import mirrors
from airworthy.learning.ppo.trainer import TorchPpo
from airworthy.vehicles import vehicle

SNAPSHOTS = Path(__file__).parent.parent / "snapshots"
FEW: dict[str, Any] = {"hidden": (16, 8), "rollout": 8, "minibatches": 2, "epochs": 3, "seed": 4}
FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "squashed": {"squash": True, "deviation": "network", "most_std": 0.8},
    "memory": {"recurrent": 6, "normalize_value": True},
    "normal": {"normalize_observation": True, "normalize_value": True, "value_clip": 0.2, "shared": True},
    "annealed": {"anneal_updates": 5, "target_divergence": 0.0, "stop_divergence": 1e-4, "epochs": 4},
    "mirrored": {"mirror": "xy"},
}


def _environments(task: Any = None, count: int = 32) -> VectorTask:
    return VectorTask(task or replace(HoverTask(), episode_steps=6), count, seed=5)


# ---- updates ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["native", *FORMS])
def test_what_updates_come_to(form: str) -> None:
    """Two updates: what is told of them, parameters, actions and values."""
    if form == "native":
        learner: Any = NativePpo(_environments(), PpoOptions(decay_steps=1000, **FEW), 1)
    else:
        learner = TorchPpo(_environments(), TorchPpoOptions(**{**FEW, **FORMS[form]}), 1)
    values: dict[str, Any] = {}
    for k in range(2):
        values[f"told {k}"] = {key: x for key, x in asdict(learner.update()).items() if x is not None}
    saved = learner.save()
    values["parameters"] = saved.arrays["parameters"]
    values["notes"] = [saved.number, saved.notes["steps"], saved.notes["learning_rate"], saved.notes["env_steps"]]
    seen = np.linspace(-1.0, 1.0, 3 * learner.environments.observation_count).reshape(3, -1)
    values["action"], values["value"] = learner.action(seen), learner.value(seen)
    if form != "memory":
        values |= {f"weights {k}": w for k, w in enumerate(learner.policy_weights)}
    check_snapshot(SNAPSHOTS / "ppo.txt", values, 5e-3, 5e-3, part=form)


def test_a_critic_that_sees_more() -> None:
    learner = TorchPpo(_environments(L2fPosition(history=1, episode_steps=6)), TorchPpoOptions(**FEW), 1)
    told = asdict(learner.update())
    values = {"told": told, "parameters": learner.save().arrays["parameters"]}
    check_snapshot(SNAPSHOTS / "ppo.txt", values, 5e-3, 5e-3, part="sees more")
    with pytest.raises(AirworthyError, match="cannot be shared"):
        TorchPpo(_environments(L2fPosition(history=1, episode_steps=6)), TorchPpoOptions(shared=True, **FEW), 1)


def test_numbers_that_do_not_divide() -> None:
    for count, minibatches in ((24, 2), (32, 3), (32, 16)):
        with pytest.raises(AirworthyError, match=f"{count} environments x 8 steps in {minibatches} minibatches"):
            NativePpo(_environments(count=count), PpoOptions(**{**FEW, "minibatches": minibatches}), 1)
    NativePpo(_environments(), PpoOptions(**{**FEW, "minibatches": 8}), 1)
    with pytest.raises(AirworthyError, match="minibatches is 3; expected a number that divides 16, the blocks of 16 samples"):
        TorchPpo(_environments(), TorchPpoOptions(**{**FEW, "minibatches": 3}), 1)
    with pytest.raises(AirworthyError, match="minibatches is 3; expected a number that divides its 32 environments"):
        TorchPpo(_environments(), TorchPpoOptions(**{**FEW, "minibatches": 3, "recurrent": 4}), 1)
    with pytest.raises(AirworthyError, match=r"An image of 1 x 8 x 8 cannot be part of \d+ observed"):
        TorchPpo(_environments(), TorchPpoOptions(image=(1, 8, 8), **FEW), 1)


def test_ten_minibatches_without_a_number_are_an_accident() -> None:
    learner = TorchPpo(_environments(), TorchPpoOptions(**FEW), 1)
    none = torch.full((learner._adam.parameters[0].numel(),), math.nan, dtype=torch.float64)
    before = learner.save().arrays["parameters"].copy()
    for _ in range(10):
        assert learner._descend(none) is None
    np.testing.assert_array_equal(learner.save().arrays["parameters"], before)
    with pytest.raises(AirworthyError, match="of 11 minibatches of PPO in a row"):
        learner._descend(none)
    whole = torch.full((len(before),), 2.0, dtype=torch.float64)
    assert learner._descend(whole) == pytest.approx(2.0 * math.sqrt(len(before)))
    assert learner._skipped == 0


# ---- loss ------------------------------------------------------------------------------------------------------------


def test_the_loss_by_its_formula() -> None:
    """Of one sample in every branch: ratio within the clip, beyond it on both sides, gains of both signs; and of a batch."""
    rng = np.random.default_rng(7)
    count, o = 60, TorchPpoOptions(clip=0.2, value_weight=1.5, entropy_weight=0.03, value_clip=0.3)
    mean, log_std, taken, noise = rng.normal(size=(4, count, 2))
    log_std *= 0.3
    value, target, was, gain = rng.normal(size=(4, count))
    z = (taken - mean) / np.exp(log_std)
    log = (-0.5 * z**2 - log_std - 0.5 * np.log(2.0 * np.pi)).sum(axis=1)
    old = log + rng.uniform(-0.6, 0.6, count)
    old[:2] += [-30.0, 30.0]  # beyond what exp can take
    weight = (rng.random(count) < 0.8).astype(float)
    change = np.clip(log - old, -20.0, 20.0)
    ratio = np.exp(change)
    pulled = np.minimum(ratio * gain, np.clip(ratio, 0.8, 1.2) * gain)
    error = (value - target) ** 2
    for k in range(count):
        found = ppo_loss(
            tuple(mean[k]), tuple(log_std[k]), value[k], tuple(taken[k]), (old[k], gain[k], target[k]), 0.2, 1.5, 0.03
        )
        wanted = (-pulled[k] + 0.75 * error[k] - 0.03 * log_std[k].sum(), ratio[k] - 1.0 - change[k], error[k])
        assert [float(x) for x in found] == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    samples = Samples(*(torch.tensor(x) for x in (taken, noise, old, gain, target, was, weight)))
    told = batch_loss(Gaussian(torch.tensor(mean), torch.tensor(log_std), False), torch.tensor(value), samples, o)
    moved = was + np.clip(value - was, -0.3, 0.3)
    counted = np.maximum(error, (moved - target) ** 2)
    entropy = (log_std + 0.5 * np.log(2.0 * np.pi) + 0.5).sum(axis=1).mean()
    loss = ((0.75 * counted - pulled) * weight).sum() - 0.03 * entropy * weight.sum()
    wanted = (loss, ((ratio - 1.0 - change) * weight).sum(), (error * weight).sum())
    assert [float(x) for x in told] == pytest.approx(wanted, rel=1e-9)


def test_densities_of_squashed_actions() -> None:
    rng = np.random.default_rng(8)
    mean, log_std, taken, noise = rng.normal(size=(4, 9, 2))
    policy = Gaussian(torch.tensor(mean), torch.tensor(log_std), True)
    plain = torch.distributions.Normal(policy.mean, policy.log_std.exp()).log_prob(torch.tensor(taken)).sum(-1)
    slope = np.log(1.0 / np.cosh(taken) ** 2).sum(axis=1)
    np.testing.assert_allclose(policy.log_probability(torch.tensor(taken)), plain.numpy() - slope, rtol=1e-9)
    moved = mean + np.exp(log_std) * noise
    entropy = (log_std + 0.5 * np.log(2.0 * np.pi) + 0.5).sum(axis=1).mean() + np.log(1.0 / np.cosh(moved) ** 2).sum(1).mean()
    assert float(policy.entropy(torch.tensor(noise))) == pytest.approx(entropy, rel=1e-9)
    np.testing.assert_allclose(policy.action(torch.tensor(taken)), np.tanh(taken))
    np.testing.assert_allclose(replace(policy, squash=False).action(torch.tensor(taken)), taken)


# ---- shared ----------------------------------------------------------------------------------------------------------


def test_rates_that_follow_the_divergence() -> None:
    for divergence, wanted in ((0.0201, 2e-3 / 1.5), (0.02, 2e-3), (0.005, 2e-3), (0.0049, 3e-3)):
        assert shared.adapted_rate(2e-3, divergence, 0.01) == pytest.approx(wanted, rel=1e-12)
        assert shared.adapted_rate(2e-3, divergence, 0.0) == 2e-3
    assert shared.adapted_rate(1.2e-5, 1.0, 0.01) == 1e-5
    assert shared.adapted_rate(9e-3, 0.0, 0.01) == 1e-2
    o = PpoOptions(decay_steps=1000)
    assert [o.rate_left(n) for n in (0, 250, 990, 991, 5000)] == pytest.approx([1.0, 0.75, 0.01, 0.01, 0.01])
    assert PpoOptions().rate_left(10**9) == 1.0


def test_advantages_by_their_sum() -> None:
    """Sum of discounted errors, which ends where a flight ends; a flight that was cut off goes on in its critic's value."""
    rng = np.random.default_rng(9)
    rewards, values, last = rng.normal(size=(6, 3)), rng.normal(size=(6, 3)), rng.normal(size=3)
    ended = rng.random((6, 3)) < 0.3
    cuts = np.where(ended & (rng.random((6, 3)) < 0.5), rng.normal(size=(6, 3)), 0.0)
    found = shared.generalized_advantages(rewards, values, last, ended, cuts, 0.9, 0.8)
    whole = np.concatenate([values, last[None]])
    for k in range(3):
        for t in range(6):
            total, factor = 0.0, 1.0
            for u in range(t, 6):
                beyond = cuts[u, k] if ended[u, k] else whole[u + 1, k]
                total += factor * (rewards[u, k] + 0.9 * beyond - values[u, k])
                factor *= 0.72
                if ended[u, k]:
                    break
            assert found[t, k] == pytest.approx(total, rel=1e-9)


def test_first_weights_are_orthogonal() -> None:
    for rows, columns in ((4, 7), (7, 4), (5, 5)):
        drawn = shared.orthogonal(3, 2, (rows, columns), 1.5)
        small = drawn if rows <= columns else drawn.T
        np.testing.assert_allclose(small @ small.T, 2.25 * np.eye(len(small)), atol=1e-12)
        assert not np.allclose(drawn, shared.orthogonal(3, 1, (rows, columns), 1.5))
    values = {"drawn": shared.orthogonal(3, 2, (3, 4), 1.5)}
    noise = shared.ActionNoise(6, np.arange(20), 5, 3)
    values["noise"], values["later"] = noise.draw(7).copy(), noise.draw(9).copy()
    values["keys"] = shared.noise_keys(6, np.arange(3)).astype(np.int64)
    check_snapshot(SNAPSHOTS / "ppo.txt", values, 1e-6, 1e-6, part="drawn")
    np.testing.assert_array_equal(noise.draw(7)[2].copy(), values["later"][0])


def test_generators_go_on() -> None:
    rng = np.random.Generator(np.random.Philox(key=3))
    rng.integers(5, size=3, dtype=np.int32)
    state = json.loads(json.dumps(shared.generator_state(rng)))
    wanted = rng.permutation(20)
    other = np.random.Generator(np.random.Philox(key=4))
    shared.restored_generator(other, state)
    np.testing.assert_array_equal(other.permutation(20), wanted)


def test_moments_are_those_of_all_rows() -> None:
    rng = np.random.default_rng(10)
    rows = rng.normal(3.0, 2.0, (50, 3))
    rows[:, 2] = 7.0
    moments = RunningMoments(3)
    assert moments.deviation.tolist() == [1.0] * 3
    for part in np.split(rows, [1, 20]):
        moments.learn(np.concatenate([part, [[np.nan, 0.0, 1.0], [0.0, np.inf, 1.0]]]))
    moments.learn(np.full((2, 3), np.nan))
    assert moments.count == 50
    np.testing.assert_allclose(moments.mean, rows.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(moments.deviation[:2], rows[:, :2].std(axis=0), rtol=1e-12)
    assert moments.deviation[2] == pytest.approx(1e-4)
    other = RunningMoments(3)
    other.restore(moments.saved())
    np.testing.assert_array_equal(other.deviation, moments.deviation)


# ---- networks --------------------------------------------------------------------------------------------------------


def test_networks_of_every_form() -> None:
    values: dict[str, Any] = {}
    rng = np.random.default_rng(11)
    for name, more in {**FORMS, "image": {"image": (2, 9, 12), "recurrent": 5}}.items():
        options = TorchPpoOptions(**{**FEW, **more})
        observed = 7 + math.prod(options.image) * bool(options.image)
        model = ActorCritic((observed, observed, 3), options, np.array([0.3, -0.999, 1.0]), 6)
        x = torch.from_numpy(rng.normal(size=(4, 2, observed)).astype(np.float32))
        with torch.no_grad():
            seen, memory = model.actor.sequence(x, model.memory(2, x.device) + 0.1, torch.tensor([[False, True]] * 4))
            policy = model.policy(seen)
            parts = (
                seen,
                memory,
                policy.mean,
                policy.log_std,
                model.value(model.critic.features(x) if not options.recurrent else seen),
            )
        values |= {f"{name} {k}": part.detach().numpy() for k, part in enumerate(parts)}
        values[f"{name} parameters"] = torch.cat([p.detach().reshape(-1) for p in model.ordered_parameters()]).numpy()
    check_snapshot(SNAPSHOTS / "ppo.txt", values, 1e-4, 1e-4, part="networks")


def test_mirror_images() -> None:
    values: dict[str, Any] = {}
    for task in (HoverTask(), MotorCommand()):
        for which in ("y", "xy"):
            for k, image in enumerate(mirrors(VectorTask(task, 16), which)):
                values[f"{task.name} {which} {k}"] = [image.signs.tolist(), image.rotors.tolist(), image.seen.tolist()]
                state = np.arange(17.0 * 2).reshape(17, 2)
                values[f"{task.name} {which} {k} state"] = image.state(state)
                np.testing.assert_array_equal(image.action(np.arange(4.0)[None])[0], image.rotors)
    check_snapshot(SNAPSHOTS / "ppo.txt", values, part="mirrors")
    with pytest.raises(AirworthyError, match="cannot be mirrored"):
        mirrors(VectorTask(L2fPosition(), 16), "y")
    with pytest.raises(AirworthyError, match="does not look alike mirrored"):
        mirrors(VectorTask(HoverTask(), 16, _lopsided()), "y")


def _lopsided() -> Any:
    """A vehicle one of whose rotors stands elsewhere."""
    item = vehicle("tinyprop")
    first = item.rotors[0]
    x, y, z = first.position
    return replace(item, name="lopsided", rotors=(replace(first, position=(1.02 * x, y, z)), *item.rotors[1:]))


# ---- options ---------------------------------------------------------------------------------------------------------


def test_options_at_their_ends() -> None:
    TorchPpoOptions(hidden=(1,))
    TorchPpoOptions(hidden=(1024,) * 4)
    TorchPpoOptions(image=(1, 8, 512))
    TorchPpoOptions(deviation="network", least_std=0.5, most_std=0.51)
    for given, told in (
        ({"hidden": (1025,)}, "hidden"),
        ({"hidden": (8,) * 5}, "hidden"),
        ({"image": (1, 7, 9)}, "8 or more rows"),
        ({"image": (1, 9, 7)}, "8 or more rows"),
        ({"image": (1, 9)}, "up to 512"),
        ({"image": (1, 9, 513)}, "up to 512"),
        ({"image": (0, 9, 9)}, "up to 512"),
        ({"most_std": 0.9}, "changes nothing"),
        ({"anneal_updates": 5}, "both set the learning rate"),
        ({"deviation": "network", "least_std": 0.5, "most_std": 0.5}, "not below most_std"),
        ({"mirror": "y", "image": (1, 8, 8)}, "without convolutions"),
    ):
        with pytest.raises(AirworthyError, match=told):
            TorchPpoOptions(**given)
    for kind in (PpoOptions, TorchPpoOptions):
        made = kind.settings()
        assert made.differences(json.loads(json.dumps(asdict(made)))) == []
        assert replace(made, clip=0.5).differences(json.loads(json.dumps(asdict(made)))) == ["clip was 0.2, not 0.5"]
    for hidden in ((8,), (0, 8), (8, 129)):
        with pytest.raises(AirworthyError, match="two widths of 1 to 128"):
            PpoOptions(hidden=hidden)
    PpoOptions(hidden=(1, 128))


def test_trainings_of_motor_policies() -> None:
    values: dict[str, Any] = {}
    for name, config in {
        "usual": MotorCommandConfig(),
        "published": MotorCommandConfig(published=True, seed=3),
        "torch": MotorCommandConfig("ppo", mirror="y"),
    }.items():
        made = config.options(7)
        values[name] = [made.seed, made.iterations, made.start, plain(made)]
    check_snapshot(SNAPSHOTS / "ppo.txt", values, part="motor policies")
    small = PpoTrainingOptions("hover", 32, 2048, ppo=PpoOptions(**FEW))
    assert [replace(small, steps=n).iterations for n in (1, 256, 257)] == [1, 1, 2]
    assert small.differences(json.loads(json.dumps(asdict(small)))) == []
    for given, told in (
        ({"env_count": 40}, "a multiple of 16"),
        ({"ppo": PpoOptions(**{**FEW, "minibatches": 3})}, "multiple of 32"),
        ({"task": "recovery"}, "expected hover or motor_command"),
        ({"trainer": "ppo"}, "got PpoOptions; expected TorchPpoOptions"),
        ({"ppo": TorchPpoOptions(**FEW)}, "got TorchPpoOptions; expected PpoOptions"),
        ({"trainer": "ppo", "ppo": TorchPpoOptions(recurrent=4)}, "no memory or image"),
        ({"trainer": "ppo", "ppo": TorchPpoOptions(hidden=(257,))}, "layers of up to 256"),
    ):
        with pytest.raises(AirworthyError, match=told):
            replace(small, **given)
    replace(small, trainer="ppo", ppo=TorchPpoOptions(hidden=(256,)), env_count=33)


@pytest.mark.parametrize("task", ["hover", "motor_command"])
def test_a_motor_policy_by_reward(task: str) -> None:
    work = PpoTraining(vehicle("tinyprop"), PpoTrainingOptions(task, 32, 512, episode_steps=5, ppo=PpoOptions(**FEW)), 1)
    row = work.metrics(work.step())
    values = {"row": {k: x for k, x in row.items() if x is not None}, "hover": work.hover}
    values |= {f"weights {k}": w for k, w in enumerate(work.weights)}
    values["flown"] = [work.flown_rate, work.law, work.trainer, list(work.hidden), work.iteration, work.env_steps]
    check_snapshot(SNAPSHOTS / "ppo.txt", values, 5e-3, 5e-3, part=f"motor policy of {task}")
    assert not work.finished
    work.step()
    assert work.finished
    saved = work.save()
    assert saved.notes["lost"] == work.lost


def test_terminated_flights_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    work = PpoTraining(vehicle("tinyprop"), PpoTrainingOptions("hover", 32, 512, ppo=PpoOptions(**FEW)), 1)
    told = iter([SimpleNamespace(terminated=2, reward=0.5), SimpleNamespace(terminated=3, reward=-1.0)])
    monkeypatch.setattr(work.ppo, "update", lambda: next(told))
    assert [work.step(), work.step()] == [-0.5, 1.0]
    assert work.lost == 5
