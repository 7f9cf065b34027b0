"""What learners with a replay compute, number by number: first weights, updates, what is kept, settings, trainings."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.fixtures.recording import plain
from tests.fixtures.snapshots import check_snapshot, condensed

from airworthy.core.errors import AirworthyError
from airworthy.learning.environments import VectorTask
from airworthy.learning.environments.tasks import HoverTask, L2fPosition
from airworthy.learning.off_policy import replay
from airworthy.learning.off_policy.actions import gaussian_action, smoothed_action
from airworthy.learning.off_policy.kernel import LearnerShape, numbers_of, scratch_rows
from airworthy.learning.off_policy.options import OffPolicyOptions, SacOptions, Td3Options
from airworthy.learning.off_policy.replay import ReplayRecords
from airworthy.learning.off_policy.trainer import OffPolicy
from airworthy.learning.off_policy.training import OffPolicyTraining, OffPolicyTrainingOptions

SNAPSHOTS = Path(__file__).parent.parent / "snapshots"
SAC = SacOptions(hidden=(16, 24), batch=32, critic_warmup=64, actor_warmup=64, final_share=0.1, reward_scale=0.5, seed=3)
TD3 = Td3Options(
    hidden=(16, 24), batch=32, critic_every=5, actor_every=10, critic_warmup=64, actor_warmup=64, final_share=0.2, seed=3
)
LEARNERS: dict[str, tuple[Any, OffPolicyOptions]] = {
    "sac of hover": (replace(HoverTask(), episode_steps=9), SAC),
    "td3 of hover": (replace(HoverTask(), episode_steps=9), TD3),
    "sac of l2f": (L2fPosition(history=2, episode_steps=12), SAC),
    "td3 of l2f, alike": (L2fPosition(history=2, episode_steps=12), replace(TD3, symmetric=True)),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_what_launches_come_to(name: str) -> None:
    """Before the warm-up, behind it, and at the end of the replay: what is told, weights, temperature."""
    task, options = LEARNERS[name]
    learner = OffPolicy(VectorTask(task, 16, seed=4), options, 330)
    values: dict[str, Any] = {"shape": [learner.rounds, learner.shape.record, learner.shape.known, *learner.shape.starts]}
    for network in range(3):
        values |= {f"first {network} {k}": w.copy() for k, w in enumerate(learner.views(network))}
    for k, rounds in enumerate((3, 14, 40)):
        values[f"told {k}"] = asdict(learner.advance(rounds))
        values[f"so far {k}"] = [learner.time, learner.env_steps]
    values |= {f"policy {k}": w for k, w in enumerate(learner.policy_weights)}
    values["slow"] = [w.copy() for w in learner.views(1, target=True)][:3]
    values["temperature"] = learner._host["temperature"]
    seen = np.linspace(-1.0, 1.0, 3 * learner.shape.observed).reshape(3, -1)
    values["action"] = learner.action(seen)
    saved = learner.save()
    values["saved"] = [saved.number, condensed(saved.notes), sorted(saved.arrays)]
    check_snapshot(SNAPSHOTS / "replay.txt", values, 2e-3, 2e-3, part=name)


def test_shapes_of_learners() -> None:
    values: dict[str, Any] = {}
    for name, shape in (
        ("sac", LearnerShape("sac", 17, 4, 32, 24, 64)),
        ("td3", LearnerShape("td3", 17, 4, 32, 24, 256, 0, 0.2, 0.5, 0.1)),
        ("known", LearnerShape("sac", 17, 4, 32, 24, 64, 23)),
    ):
        values[name] = [shape.raw, shape.judged, shape.reward_at, shape.record, *shape.starts]
        values[f"{name} matrices"] = [size for k in range(3) for matrix in shape.matrices(k) for size in matrix]
        values[f"{name} rows"] = scratch_rows(shape)
        values[f"{name} numbers"] = numbers_of(shape)
    check_snapshot(SNAPSHOTS / "replay.txt", values, part="shapes")


def test_actions_by_their_formulas() -> None:
    rng = np.random.default_rng(4)
    raw, noise = rng.normal(size=(6, 5)), rng.normal(size=(3, 5))
    raw[3:] = [[-25.0] * 5, [3.0] * 5, [0.5] * 5]  # below, above and between the limits -20 and 2
    action, density = gaussian_action(tuple(raw), tuple(noise))
    s = np.clip(raw[3:], -20.0, 2.0)
    u = raw[:3] + np.exp(s) * noise
    wanted = (-0.5 * noise**2 - s - 0.5 * np.log(2.0 * np.pi) - 2.0 * np.log(1.0 / np.cosh(u))).sum(axis=0)
    np.testing.assert_allclose(np.array(action), np.tanh(u), rtol=1e-12)
    np.testing.assert_allclose(density, wanted, rtol=1e-9)
    moved, none = smoothed_action(tuple(raw[:3]), tuple(noise), 0.3, 0.25)
    np.testing.assert_allclose(np.array(moved), np.clip(np.tanh(raw[:3]) + np.clip(0.3 * noise, -0.25, 0.25), -1.0, 1.0))
    assert (np.asarray(none) == 0.0).all()


# ---- what is kept ----------------------------------------------------------------------------------------------------


def test_a_replay_takes_as_much_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of all environments and one more, parts of the reward, and flights cut off: four bytes each."""
    held = ReplayRecords(100, 16, 10, 6, 30, 2)
    assert held.records.shape == (101, 16, 10)
    assert held.finals.shape == (16 * (3 + 2), 6)
    assert held.terms.shape == (100, 2, 16)
    size = 4 * (101 * 16 * 12 + 80 * 6)
    monkeypatch.setattr(replay, "REPLAY_LIMIT_BYTES", size)
    ReplayRecords(100, 16, 10, 6, 30, 2)
    monkeypatch.setattr(replay, "REPLAY_LIMIT_BYTES", size - 1)
    with pytest.raises(AirworthyError, match=r"1,600 steps takes 0\.0 GiB; .*\(about 1,000 here\)"):
        ReplayRecords(100, 16, 10, 6, 30, 2)
    monkeypatch.undo()
    # Four gibibytes in words: 4 (steps + 1) 16 * 10 bytes and the finals' are at most 2^32.
    with pytest.raises(AirworthyError, match=r"takes 6\.0 GiB; expected at most 4: learn for fewer steps \(about 107,374,000"):
        ReplayRecords(10_000_000, 16, 10, 1, 10**9, 0)


def test_steps_are_scored_by_their_parts() -> None:
    held, rng = ReplayRecords(4, 16, 7, 3, 10, 2), np.random.default_rng(5)
    held.terms[:], held.records[:] = rng.normal(size=held.terms.shape), 9.0
    held.rescore(3, np.array([2.0, -0.5]), 5)
    np.testing.assert_allclose(held.records[:3, :, 5], 2.0 * held.terms[:3, 0] - 0.5 * held.terms[:3, 1], rtol=1e-6)
    held.records[:3, :, 5] = 9.0
    assert (held.records == 9.0).all()


def test_parts_on_file(tmp_path: Path) -> None:
    held, rng = ReplayRecords(6, 16, 7, 3, 10, 2), np.random.default_rng(6)
    for array in (held.records, held.terms, held.finals):
        array[:] = rng.normal(size=array.shape)
    assert held.save(tmp_path, 0, 0) == []
    first = held.save(tmp_path, 2, 1)
    assert held.save(tmp_path, 2, 1) == first
    both = held.save(tmp_path, 5, 4)
    assert [(part["file"], part["count"], part["finals"], part["bytes"]) for part in both] == [
        ("part_000000000_000000002.f32", 2, 1, 4 * (2 * 16 * 9 + 3)),
        ("part_000000002_000000005.f32", 5, 4, 4 * (3 * 16 * 9 + 3 * 3)),
    ]
    (tmp_path / "part_000000005_000000006.f32").write_bytes(b"of a run that was killed")
    (tmp_path / "other.f32").write_bytes(b"whose")
    other = ReplayRecords(6, 16, 7, 3, 10, 2)
    other.restore(tmp_path, both)
    np.testing.assert_array_equal(other.records[:5], held.records[:5])
    np.testing.assert_array_equal(other.terms[:5], held.terms[:5])
    np.testing.assert_array_equal(other.finals[:4], held.finals[:4])
    assert not other.records[5:].any()
    assert not other.terms[5:].any()
    assert not other.finals[4:].any()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.f32", both[0]["file"], both[1]["file"]]
    assert other.save(tmp_path, 5, 4) == both
    assert len(other.save(tmp_path, 6, 4)) == 3


def test_parts_of_a_way_that_was_not_gone_on_are_removed(tmp_path: Path) -> None:
    """A run that is killed behind its last checkpoint leaves a part that none names: another is written in its place."""
    held, rng = ReplayRecords(6, 16, 7, 3, 10, 2), np.random.default_rng(7)
    for array in (held.records, held.terms, held.finals):
        array[:] = rng.normal(size=array.shape)
    first = held.save(tmp_path, 2, 1)
    held.save(tmp_path, 4, 2)
    other = ReplayRecords(6, 16, 7, 3, 10, 2)
    other.save(tmp_path / "own", 3, 2)  # what it wrote elsewhere before is forgotten
    other.restore(tmp_path, first)
    assert [path.name for path in tmp_path.glob("part_*")] == ["part_000000000_000000002.f32"]
    other.records[2:5], other.terms[2:5], other.finals[1:3] = 1.0, 2.0, 3.0
    both = other.save(tmp_path, 5, 3)
    assert [part["file"] for part in both] == ["part_000000000_000000002.f32", "part_000000002_000000005.f32"]
    again = ReplayRecords(6, 16, 7, 3, 10, 2)
    again.restore(tmp_path, both)
    np.testing.assert_array_equal(again.records[:5], other.records[:5])
    np.testing.assert_array_equal(again.terms[:5], other.terms[:5])
    np.testing.assert_array_equal(again.finals[:3], other.finals[:3])
    again.restore(tmp_path, [])
    assert list(tmp_path.glob("part_*")) == []
    assert [part["count"] for part in again.save(tmp_path, 3, 1)] == [3]


# ---- settings --------------------------------------------------------------------------------------------------------


def test_settings_of_trainers() -> None:
    values: dict[str, Any] = {}
    for trainer in ("sac", "td3"):
        for task in ("l2f_position", "hover"):
            made = OffPolicyTrainingOptions.usual(trainer, task, 4)
            values[f"{trainer} {task}"] = [made.rounds, made.iterations, made.seed, plain(made)]
    chosen = OffPolicyTrainingOptions.usual(
        "sac", "l2f_position", 4, steps=10_000, gamma=0.9, env_count=32, options={"history": 3}, hidden=None
    )
    values["chosen"] = [chosen.rounds, chosen.iterations, plain(chosen)]
    check_snapshot(SNAPSHOTS / "replay.txt", values, part="settings")


def test_launches_of_a_training() -> None:
    """At most two hundred, of whole rounds; one more for what is left."""
    plain = SacOptions(batch=32, critic_warmup=32, actor_warmup=32)
    for steps, env_count, rounds, launches in (
        (3200, 16, 1, 200), (3201, 16, 2, 101), (6400, 16, 2, 200), (6416, 16, 3, 134), (33, 16, 1, 3), (100_000, 32, 16, 196)
    ):  # fmt: skip
        made = OffPolicyTrainingOptions(steps=steps, env_count=env_count, learner=plain)
        assert (made.rounds, made.iterations) == (rounds, launches), steps
    with pytest.raises(AirworthyError, match="32 steps end before the actor's first update, after 32"):
        OffPolicyTrainingOptions(steps=32, learner=plain)


def test_limits_of_options() -> None:
    for width in (1, 128):
        SacOptions(hidden=(width, 5))
    for hidden in ((0, 5), (5, 129)):
        with pytest.raises(AirworthyError, match="two of 1 to 128"):
            SacOptions(hidden=hidden)
    SacOptions(critic_warmup=64, actor_warmup=64)
    with pytest.raises(AirworthyError, match="at least the 64"):
        SacOptions(critic_warmup=63, actor_warmup=64)
    with pytest.raises(AirworthyError, match=r"actor_warmup is 64, less than critic_warmup \(65\)"):
        SacOptions(critic_warmup=65, actor_warmup=64)
    made = OffPolicyTrainingOptions.usual("sac", "hover", 2)
    before = json.loads(json.dumps(asdict(made)))
    assert made.differences(before) == []
    assert replace(made, steps=7000).differences(before) == ["steps was 200000, not 7000"]
    before["learner"]["gamma"] = 0.5
    assert made.differences(before) == ["gamma was 0.5, not 0.99"]


# ---- trainings -------------------------------------------------------------------------------------------------------


def test_a_training_and_its_log(tmp_path: Path) -> None:
    learner = replace(SAC, critic_warmup=160, actor_warmup=160)
    options = OffPolicyTrainingOptions("l2f_position", {"history": 1, "episode_steps": 20}, steps=6420, learner=learner)
    work = OffPolicyTraining(None, options)
    assert (work.iteration, work.finished, options.rounds) == (0, False, 3)
    work.keep_in(tmp_path)
    cost = work.step()
    assert work.last is not None
    assert cost == -work.last.reward
    row = work.metrics(cost)
    # No update yet: means of nothing are nothing.
    assert [row[name] for name in ("critic_loss", "actor_loss", "value", "entropy")] == [None] * 4
    assert (row["cost"], row["lost"], row["env_steps"]) == (cost, work.lost, 48)
    work.lost = 5
    work.last = None
    work.learner.advance(10)
    assert work.iteration == math.ceil(13 / 3)
    saved = work.save()
    assert saved.notes["lost"] == 5
    assert [path.name for path in (tmp_path / "replay").iterdir()] == ["part_000000000_000000013.f32"]
    other = OffPolicyTraining(None, options)
    other.keep_in(tmp_path)
    other.restore(saved)
    assert (other.lost, other.env_steps, other.iteration) == (5, 208, 5)
    contract = work.contract()
    assert {k: contract.training[k] for k in ("trainer", "iterations", "env_steps")} == {
        "trainer": "sac", "iterations": 5, "env_steps": 208
    }  # fmt: skip
    work.forget()
    work.forget()
    assert not (tmp_path / "replay").exists()
    np.testing.assert_allclose(work.hover, np.clip(work.environments.hover_action, -1.0, 1.0))


def test_a_launch_lost_flights_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    work = OffPolicyTraining(None, replace(OffPolicyTrainingOptions.usual("sac", "hover"), steps=2000))
    told = iter([SimpleNamespace(terminated=2, reward=0.5), SimpleNamespace(terminated=3, reward=-1.0)])
    asked: list[int] = []
    monkeypatch.setattr(work.learner, "advance", lambda rounds: asked.append(rounds) or next(told))
    assert [work.step(), work.step()] == [-0.5, 1.0]
    assert (work.lost, asked) == (5, [1, 1])


def test_a_gradient_that_is_no_number_is_told() -> None:
    learner = OffPolicy(VectorTask(replace(HoverTask(), episode_steps=9), 16, seed=4), SAC, 640)
    learner.advance(10)
    learner.replay.records[:10, :, learner.shape.reward_at] = np.nan
    with pytest.raises(AirworthyError, match="A gradient of sac is not finite"):
        learner.advance(1)
