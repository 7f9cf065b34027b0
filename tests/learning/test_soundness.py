"""A task that nobody can learn from says so instead of being "learnt"."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airworthy.cli.common import interrupted_training
from airworthy.core import ops
from airworthy.core.errors import AirworthyError
from airworthy.learning import HoverTask, Judgement
from airworthy.learning.avoid import AvoidOptions, AvoidProtocol, train_avoid
from airworthy.learning.environments import VectorTask
from airworthy.learning.environments.soundness import REWARD_MAX, check_update
from airworthy.learning.native_ppo.training import PpoTraining, PpoTrainingOptions
from airworthy.learning.off_policy.training import OffPolicyTraining, OffPolicyTrainingOptions
from airworthy.learning.ppo.options import TorchPpoOptions
from airworthy.learning.task_training.options import TaskTrainingOptions
from airworthy.learning.task_training.training import TaskTraining
from airworthy.vehicles import vehicle


class NothingToEarn(HoverTask):
    name = "nothing_to_earn"

    def judge(self, before, after, action, past, p):
        return Judgement({}, 0.0, 0.0)


class NoNumber(HoverTask):
    name = "no_number"

    def judge(self, before, after, action, past, p):
        return Judgement({"x": ops.log(after[2] * 0.0 - 1.0)}, 0.0, 0.0)


FEW = TaskTrainingOptions.usual("hover", steps=4096, env_count=64)


def test_a_reward_without_parts_is_refused_before_anything_is_learnt() -> None:
    with pytest.raises(AirworthyError, match="'nothing_to_earn' has no reward"):
        TaskTraining(None, FEW, NothingToEarn())


class NothingToSee(HoverTask):
    name = "nothing_to_see"

    def observe(self, s, noise, p):
        return ()


def compiled(*args: object, **named: object) -> None:
    pytest.fail("it compiles before it is refused")


def test_what_cannot_be_learnt_is_refused_before_anything_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VectorTask, "_make_arrays", compiled)
    with pytest.raises(AirworthyError, match="'nothing_to_see' observes nothing: its observe returns no number"):
        VectorTask(NothingToSee(), 16)
    with pytest.raises(AirworthyError, match=r"100 environments x 32 steps in .* cannot be learnt from"):
        TaskTraining(None, TaskTrainingOptions.usual("position_setpoint", steps=4096, env_count=100))
    with pytest.raises(AirworthyError, match="100 environments cannot be learnt from; expected a multiple of 16"):
        OffPolicyTraining(None, replace(OffPolicyTrainingOptions.usual("sac", "l2f_position"), env_count=100))
    with pytest.raises(AirworthyError, match=r"Device .cuda:7. was asked for, but torch sees . GPUs here; use --device cpu"):
        PpoTraining(vehicle("tinyprop"), PpoTrainingOptions(trainer="ppo", ppo=TorchPpoOptions(hidden=(8,))), device="cuda:7")


def test_a_reward_that_is_no_number_ends_the_training() -> None:
    training = TaskTraining(None, FEW, NoNumber())
    with pytest.raises(AirworthyError, match="decisions of the task 'no_number' ended its flight"):
        training.step()


def test_updates_with_something_to_learn_pass() -> None:
    check_update("t", 100, 99, -5.0)
    check_update("t", 0, 0, 0.0)
    check_update("t", 100, 0, REWARD_MAX)
    with pytest.raises(AirworthyError, match="ended its flight"):
        check_update("t", 100, 100, 0.0)
    for reward in (float("nan"), 1.1 * REWARD_MAX, -1.1 * REWARD_MAX):
        with pytest.raises(AirworthyError, match="per decision; expected at most 1e\\+12"):
            check_update("t", 100, 0, reward)


def test_avoidance_is_judged_where_it_was_not_learnt_and_no_faster(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="seed 7919 is that of the forests"):
        train_avoid(tmp_path, AvoidOptions(seed=7919))
    with pytest.raises(AirworthyError, match="25 m/s are to be judged, but flights learn up to 4 m/s"):
        train_avoid(tmp_path, AvoidOptions(fastest=4.0), AvoidProtocol(speeds=(2.0, 25.0)))
    assert not list(tmp_path.iterdir())


def test_a_stop_says_what_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert interrupted_training([15], tmp_path, "the policy as it is lies") == 143
    assert capsys.readouterr().err == "Stopped before anything was learnt that could be kept; the same command begins anew.\n"
    (tmp_path / "seed_3").mkdir()
    (tmp_path / "seed_3" / "weights.safetensors").write_bytes(b"")
    assert interrupted_training([], tmp_path, "the policy as it is lies") == 130
    kept = "Stopped: the policy as it is lies in the folder, and the same command goes on from there.\n"
    assert capsys.readouterr().err == kept
