"""SAC and TD3 in lanes: one update against its float64 twin, the twin against torch, and what makes the numbers independent."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.core.tracing import adjoint
from airworthy.learning.environments import VectorTask
from airworthy.learning.environments.tasks import HoverTask, L2fPosition
from airworthy.learning.off_policy import OffPolicy, OffPolicyOptions, SacOptions, Td3Options
from airworthy.learning.off_policy.actions import gaussian_action, plain_action, smoothed_action
from airworthy.learning.off_policy.kernel import ACTOR_DRAWS, COUNTERS, CRITIC_DRAWS
from airworthy.learning.off_policy.twin import UpdateTwin, drawn_batch, network_layers

SOON: dict[str, Any] = {"batch": 32, "critic_warmup": 64, "actor_warmup": 64, "seed": 3}
# Small networks, and updates from the start: what is tested does not depend on sizes.
SAC = SacOptions(hidden=(16, 16), final_share=0.1, **SOON)
TD3 = Td3Options(
    hidden=(16, 24), batch=32, critic_every=5, actor_every=10, critic_warmup=64, actor_warmup=64, final_share=0.2, seed=3
)
# Flights that are cut off within the trial, so that final observations are learnt from, too.
TASK = replace(HoverTask(), episode_steps=9)


def learner(options: OffPolicyOptions, task: Any = TASK, env_count: int = 16, steps: int = 640, **told: Any) -> OffPolicy:
    return OffPolicy(VectorTask(task, env_count, seed=options.seed, **told), options, steps)


# ---- actions ---------------------------------------------------------------------------------------------------------


def test_squashed_density_integrates_to_one() -> None:
    """Over all actions of one dimension; by the change of variables that the formula leaves out."""
    u = np.linspace(-12.0, 12.0, 200_001)
    for mean, log_std in ((0.0, 0.0), (0.7, -1.0), (-1.5, 0.5)):
        action, density = gaussian_action((mean + 0.0 * u, log_std + 0.0 * u), ((u - mean) / math.exp(log_std),))
        # Trapezoids over the action itself: no slope of tanh is taken here.
        assert np.trapezoid(np.exp(density), action[0]) == pytest.approx(1.0, abs=1e-6)


def test_log_density_where_tanh_is_one() -> None:
    """log(1 - tanh^2) for large sums, where 1 - tanh^2 is 0 in float64."""
    _, density = gaussian_action((30.0, 0.0), (0.0,))
    assert density == pytest.approx(-0.5 * math.log(2.0 * math.pi) - (math.log(4.0) - 60.0), rel=1e-12)


def test_noise_of_td3_is_clipped_and_actions_stay_within_limits() -> None:
    raw, noise = (np.array([0.0, 0.0, 3.0]),), (np.array([0.5, 9.0, 9.0]),)
    action, _ = smoothed_action(raw, noise, 0.2, 0.5)
    assert action[0] == pytest.approx([0.1, 0.5, 1.0])
    assert plain_action(raw, noise)[0][0] == pytest.approx(np.tanh([0.0, 0.0, 3.0]))


# ---- one update ------------------------------------------------------------------------------------------------------


def _updated(options: OffPolicyOptions, which: str, rounds: int = 20) -> tuple[OffPolicy, UpdateTwin, int]:
    """Fly and learn; then let the kernel make one update more, of critics or actor alone, and a twin of what was before."""
    trained = learner(options)
    trained.advance(rounds)
    every = {"critics": (1, 10**6), "actor": (10**6, 1)}[which]
    trained.options = replace(options, critic_every=every[0], actor_every=every[1])
    trained._launchers.clear()
    # As if one step of all updates were still due: a launch of no rounds would make none, so it is asked for by its loop.
    twin, step = UpdateTwin(trained), trained.env_steps
    trained._host["counters"][COUNTERS.index("learnt")] = step - 1
    trained.prepare()
    return trained, twin, step


@pytest.mark.parametrize("options", [SAC, TD3], ids=["sac", "td3"])
def test_one_update_of_the_critics_equals_its_twin(options: OffPolicyOptions) -> None:
    trained, twin, step = _updated(options, "critics")
    before = [w.copy() for w in twin.networks[1]]
    twin.critics(step)
    assert any(np.abs(a - b).max() > 1e-4 for a, b in zip(before, twin.networks[1], strict=True))
    for network in (1, 2):
        for mine, theirs in zip(trained.views(network), twin.networks[network], strict=True):
            # A step is at most some 1e-3 long; a thousandth of it is float32's rounding of weights near 1 and of the gradient.
            np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=2e-6)
        for mine, theirs in zip(trained.views(network, target=True), twin.targets[network], strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("options", [SAC, TD3], ids=["sac", "td3"])
def test_one_update_of_the_actor_equals_its_twin(options: OffPolicyOptions) -> None:
    trained, twin, step = _updated(options, "actor")
    twin.actor(step)
    for mine, theirs in zip(trained.views(0), twin.networks[0], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=2e-6)
    np.testing.assert_allclose(trained._host["temperature"], twin.temperature, rtol=1e-4, atol=1e-7)
    # TD3's slow actor, and the mean of SAC's, which is judged.
    for mine, theirs in zip(trained.views(0, target=True), twin.targets[0], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("options", [SAC, TD3], ids=["sac", "td3"])
def test_gradients_of_the_twin_are_those_of_torch(options: OffPolicyOptions) -> None:
    """Whole losses written out for torch's autograd, in float64: targets, densities, the lower critic, cut flights."""
    torch = pytest.importorskip("torch")
    trained = learner(options)
    trained.advance(20)
    twin, s, step = UpdateTwin(trained), trained.shape, trained.env_steps

    def tensors(weights: Any) -> list[Any]:
        return [torch.tensor(w, dtype=torch.float64, requires_grad=True) for w in weights]

    def net(w: list[Any], x: Any) -> Any:
        return torch.tanh(torch.tanh(x @ w[0].T + w[1]) @ w[2].T + w[3]) @ w[4].T + w[5]

    def sampled(raw: Any, noise: Any, smooth: bool) -> tuple[Any, Any]:
        if s.kind == "td3":
            spread = torch.clamp(s.target_noise * noise, -s.target_clip, s.target_clip) if smooth else 0.0
            return torch.clamp(torch.tanh(raw) + spread, -1.0, 1.0), torch.zeros(len(raw), dtype=torch.float64)
        mean, log_std = raw[:, : s.actions], torch.clamp(raw[:, s.actions :], -20.0, 2.0)
        moved = mean + log_std.exp() * noise
        action, transform = torch.tanh(moved), torch.distributions.TanhTransform()
        # Torch's own formulas of both densities.
        density = torch.distributions.Normal(mean, log_std.exp()).log_prob(moved)
        return action, (density - transform.log_abs_det_jacobian(moved, action)).sum(dim=1)

    actor, first, second = (tensors(w) for w in twin.networks)
    slow = [tensors(w) for w in twin.targets]
    alpha = math.exp(twin.temperature[0]) if s.kind == "sac" else 0.0
    index, noise = drawn_batch(options.seed, step, CRITIC_DRAWS, trained.env_steps, s.batch, s.actions)
    rows = trained.replay.records.reshape(-1, s.record)[index].astype(float)
    following, finals = trained.replay.records.reshape(-1, s.record)[:, : s.observed], trained.replay.finals
    # Sixteen environments: the next step of one lies as many records further.
    pairs = zip(index, rows[:, s.reward_at + 1], strict=True)
    after = np.array([finals[int(way) - 1] if way > 0 else following[k + 16] for k, way in pairs], float)
    assert (rows[:, s.reward_at + 1] > 0).any()
    assert (rows[:, s.reward_at + 1] == 0).any()
    with torch.no_grad():
        seen = torch.tensor(after)
        action, density = sampled(net(actor if s.kind == "sac" else slow[0], seen), torch.tensor(noise), True)
        ahead = torch.cat([seen, action], dim=1)
        beyond = torch.minimum(net(slow[1], ahead)[:, 0], net(slow[2], ahead)[:, 0]) - alpha * density
        target = torch.tensor(rows[:, s.reward_at]) + options.gamma * torch.tensor(rows[:, s.reward_at + 1] >= 0.0) * beyond
    mine = twin.critics(step)
    for critic, found in ((first, mine[0]), (second, mine[1])):
        loss = 0.5 * torch.mean((net(critic, torch.tensor(rows[:, : s.reward_at]))[:, 0] - target) ** 2)
        for a, b in zip(torch.autograd.grad(loss, critic), found, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-7, atol=1e-12)

    twin = UpdateTwin(trained)
    index, noise = drawn_batch(options.seed, step, ACTOR_DRAWS, trained.env_steps, s.batch, s.actions)
    seen = torch.tensor(trained.replay.records.reshape(-1, s.record)[index][:, : s.observed].astype(float))
    action, density = sampled(net(actor, seen), torch.tensor(noise), False)
    if s.kind == "td3":
        action = torch.tanh(net(actor, seen))
    judged = torch.cat([seen, action], dim=1)
    value = torch.minimum(net(first, judged), net(second, judged)) if s.kind == "sac" else net(first, judged)
    loss = torch.mean(alpha * density - value[:, 0])
    for a, b in zip(torch.autograd.grad(loss, actor), twin.actor(step), strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-7, atol=1e-12)


def test_slopes_of_an_action_are_finite_differences() -> None:
    rng = np.random.default_rng(1)
    raw, noise, bar = rng.normal(size=8), tuple(rng.normal(size=4)), rng.normal(size=5)

    def flat(*x: Any) -> tuple[Any, ...]:
        action, density = gaussian_action(x, noise)
        return (*action, density)

    slopes = adjoint(flat, list(raw), list(bar))[1]
    for k in range(8):
        step = 1e-6 * np.eye(8)[k]
        ends = [float(np.dot(bar, flat(*(raw + sign * step)))) for sign in (1.0, -1.0)]
        assert slopes[k] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6, abs=1e-8)


# ---- what is kept ----------------------------------------------------------------------------------------------------


def test_replay_has_what_was_flown() -> None:
    """Flights stepped by hand with the kept actions see, earn and end as the replay says."""
    trained = learner(SAC)
    trained.advance(30)
    environments, s = VectorTask(TASK, 16, seed=SAC.seed), trained.shape
    seen, finals = environments.observation.copy(), 0
    for row in trained.replay.records[:30]:
        np.testing.assert_array_equal(row[:, : s.observed], seen)
        result = environments.step(row[:, s.observed : s.reward_at])
        np.testing.assert_array_equal(row[:, s.reward_at], result.reward)
        np.testing.assert_array_equal(row[:, s.reward_at + 1] < 0.0, result.terminated)
        np.testing.assert_array_equal(row[:, s.reward_at + 1] > 0.0, result.truncated)
        for k in np.flatnonzero(result.truncated):
            finals += 1
            np.testing.assert_array_equal(trained.replay.finals[int(row[k, s.reward_at + 1]) - 1], result.final_observation[k])
        seen = result.observation.copy()
    assert finals == 16 * 3
    np.testing.assert_array_equal(trained.replay.records[30, :, : s.observed], seen)


def test_replay_has_what_critics_alone_saw_of_flights_and_of_their_ends() -> None:
    """Pushes and exact states (`observe_critic`): of every step, and of flights that were cut off what they saw last."""
    trained = learner(SAC, L2fPosition(history=2, episode_steps=9))
    trained.advance(30)
    environments, s, finals = VectorTask(trained.environments.task, 16, seed=SAC.seed), trained.shape, 0
    assert s.known == environments.critic_observation_count == 28
    seen = environments.critic_observation.copy()
    for row in trained.replay.records[:30]:
        np.testing.assert_array_equal(row[:, s.reward_at + 2 :], seen)
        result = environments.step(row[:, s.observed : s.reward_at])
        last, seen = environments.final_critic_observation, environments.critic_observation.copy()
        for k in np.flatnonzero(result.truncated):
            finals += 1
            kept = trained.replay.finals[int(row[k, s.reward_at + 1]) - 1]
            np.testing.assert_array_equal(kept[: s.observed], result.final_observation[k])
            np.testing.assert_array_equal(kept[s.observed :], last[k])
            # A new flight has a push of its own.
            assert (last[k] != seen[k]).any()
    assert finals > 16
    np.testing.assert_array_equal(trained.replay.records[30, :, s.reward_at + 2 :], seen)


def test_updates_come_when_they_are_due() -> None:
    """The same number after the same steps, however launches are cut."""
    counts = []
    for parts in ([40], [1] * 40, [7, 11, 22]):
        trained = learner(SAC)
        told = [trained.advance(rounds) for rounds in parts]
        counts.append((sum(t.critic_updates for t in told), sum(t.actor_updates for t in told)))
    # Of steps 65 to 640: each fifth, and each tenth.
    assert counts == [((640 - 64) // 5 + (1 if 64 % 5 else 0), (640 - 64) // 10 + (1 if 64 % 10 else 0))] * 3


@pytest.mark.parametrize("options", [SAC, TD3], ids=["sac", "td3"])
def test_same_bits_however_launches_are_cut_and_threads_are_set(options: OffPolicyOptions) -> None:
    found = []
    for parts, threads in (([40], 1), ([13, 27], 2)):
        trained = learner(options, env_count=32, steps=1280, threads=threads)
        for rounds in parts:
            trained.advance(rounds)
        found.append(trained._host["networks"].tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("parts", [True, False], ids=["in parts", "whole"])
def test_goes_on_to_the_same_bits(tmp_path: Path, parts: bool) -> None:
    folder = tmp_path if parts else None
    trained = learner(SAC)
    trained.advance(10)
    trained.save(folder)
    trained.advance(15)
    saved = trained.save(folder)
    trained.advance(15)
    other = learner(SAC)
    other.restore(saved, folder)
    other.advance(15)
    for name in ("networks", "targets", "moments", "powers", "temperature", "counters"):
        np.testing.assert_array_equal(trained._host[name], other._host[name])
    np.testing.assert_array_equal(trained.replay.records, other.replay.records)
    if parts:
        assert len(list(tmp_path.glob("part_*"))) == 2
        path = sorted(tmp_path.glob("part_*"))[0]
        path.write_bytes(b"\0" + path.read_bytes()[1:])
        with pytest.raises(AirworthyError, match="is not what was written"):
            learner(SAC).restore(saved, tmp_path)


# ---- rewards whose weights rise --------------------------------------------------------------------------------------


def test_replay_is_scored_anew_when_weights_rise() -> None:
    """Each kept step has the reward that the published formula gives with the weights of now."""
    task = L2fPosition(history=2, curriculum=replace(L2fPosition().curriculum, window=160))
    trained = learner(SAC, task, steps=480)
    for _ in range(3):
        trained.advance(10)
    assert float(trained.environments.level[0]) == 3.0
    assert trained.scored == 30
    # The same actions through environments whose weights are those of level 3 from the start.
    late = replace(
        task,
        position_weight=5.0 * 1.2**3,
        velocity_weight=0.01 * 1.4**3,
        action_weight=0.01 * 1.4**3,
        curriculum=replace(task.curriculum, window=10**6),
    )
    environments, s = VectorTask(late, 16, seed=SAC.seed), trained.shape
    for row in trained.replay.records[:30]:
        result = environments.step(row[:, s.observed : s.reward_at])
        np.testing.assert_allclose(row[:, s.reward_at], result.reward, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("parts", [True, False], ids=["in parts", "whole"])
def test_what_was_scored_anew_is_so_after_a_stop(tmp_path: Path, parts: bool) -> None:
    """Parts on file hold the rewards of when they were written: they go by the weights of now, as those that never stopped."""
    task = L2fPosition(history=2, curriculum=replace(L2fPosition().curriculum, window=160))
    folder = tmp_path if parts else None
    trained = learner(SAC, task, steps=480)
    trained.advance(8)
    trained.save(folder)
    early = trained.replay.records[:8].copy()
    trained.advance(9)
    saved = trained.save(folder)
    assert 0 < saved.notes["scored"] <= 17
    assert (early != trained.replay.records[:8]).any()
    other = learner(SAC, task, steps=480)
    other.restore(saved, folder)
    np.testing.assert_array_equal(other.replay.records[:17], trained.replay.records[:17])
    for each in (trained, other):
        each.advance(13)
    assert trained.scored == other.scored
    np.testing.assert_array_equal(other.environments.level, trained.environments.level)
    np.testing.assert_array_equal(other.replay.records, trained.replay.records)
    np.testing.assert_array_equal(other.replay.terms, trained.replay.terms)
    np.testing.assert_array_equal(other._host["networks"], trained._host["networks"])


# ---- what cannot be --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [SAC, TD3], ids=["sac", "td3"])
def test_a_gradient_that_is_none_changes_nothing_and_is_said(options: OffPolicyOptions) -> None:
    """Rewards of a task that left the numbers: critics, their moments and the slow copies stay as they were."""
    trained = learner(options)
    trained.advance(20)
    trained.replay.records[:20, :, trained.shape.reward_at] = np.nan
    of_critics = slice(trained.shape.starts[1], trained.shape.starts[3])
    before = {name: trained._host[name][..., of_critics].copy() for name in ("networks", "moments")}
    with pytest.raises(AirworthyError, match=f"A gradient of {options.kind} is not finite"):
        trained.advance(1)
    for name, values in before.items():
        assert np.isfinite(values).all()
        np.testing.assert_array_equal(trained._host[name][..., of_critics], values)


def test_numbers_that_cannot_be_are_refused() -> None:
    with pytest.raises(AirworthyError, match="multiple of 32"):
        SacOptions(batch=48)
    with pytest.raises(AirworthyError, match="at least the 64 samples"):
        SacOptions(critic_warmup=0)
    with pytest.raises(AirworthyError, match="critics that know nothing"):
        SacOptions(critic_warmup=500, actor_warmup=100)
    with pytest.raises(AirworthyError, match="two of 1 to 128"):
        Td3Options(hidden=(64, 256))
    with pytest.raises(AirworthyError, match="multiple of 16"):
        learner(SAC, env_count=17)
    with pytest.raises(AirworthyError, match="GiB"):
        learner(SAC, steps=10**9)


def test_deterministic_action_is_the_mean() -> None:
    trained = learner(SAC)
    trained.advance(8)
    seen = trained.environments.observation.astype(float)
    raw = network_layers([w.astype(float) for w in trained.views(0, target=True)], seen)[3]
    np.testing.assert_allclose(trained.action(seen), np.tanh(raw[:, :4]), atol=1e-6)
