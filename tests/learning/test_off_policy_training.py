"""SAC, TD3 and the gradient on l2f_position as trainings: folders, stopping and going on, what is refused, what flies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.learning import HoverConfig, VectorTask
from airworthy.learning.environments.tasks import L2fPosition
from airworthy.learning.environments.tasks.l2f_position import l2f_crazyflie
from airworthy.learning.gradient.hover import hover_observation
from airworthy.learning.gradient.trainer import network_action
from airworthy.learning.gradient.twin import window_twin
from airworthy.learning.l2f_position.gradient import L2fGradientOptions, PushedTraining
from airworthy.learning.off_policy import SacOptions, Td3Options
from airworthy.learning.off_policy.training import OffPolicyTraining, OffPolicyTrainingOptions
from airworthy.learning.task_training.config import TaskConfig
from airworthy.learning.task_training.evaluation import TaskProtocol
from airworthy.learning.task_training.run import train_task
from airworthy.pilots.task_policy.pilot import read_task_policy

PROTOCOL = TaskProtocol(flights=16, mpc_flights=0)
SMALL = OffPolicyTrainingOptions(
    "l2f_position",
    {"history": 1, "episode_steps": 20},
    steps=1600,
    learner=SacOptions(hidden=(16, 16), batch=32, critic_warmup=160, actor_warmup=160, seed=5),
)
FEW = L2fGradientOptions(env_count=16, window=6, iterations=4, history=2, flight_s=0.1, seed=5)


def test_a_stopped_training_goes_on_to_the_same_bits_with_its_replay(tmp_path: Path) -> None:
    whole = train_task(SMALL, tmp_path / "whole", protocol=PROTOCOL)
    assert whole.finished
    # So short that it stops behind the first launch.
    part = train_task(SMALL, tmp_path / "part", protocol=PROTOCOL, minutes=1e-9)
    assert not part.finished
    assert list((tmp_path / "part" / "replay").glob("part_*"))
    for _ in range(2):
        assert not train_task(SMALL, tmp_path / "part", protocol=PROTOCOL, minutes=1e-9).finished
    done = train_task(SMALL, tmp_path / "part", protocol=PROTOCOL)
    weights = [(tmp_path / name / "weights.safetensors").read_bytes() for name in ("whole", "part")]
    assert weights[0] == weights[1]
    assert not (tmp_path / "part" / "replay").exists()
    assert done.figures["trainer"] == "sac"
    assert done.figures["env_steps"] == 1600
    other = replace(SMALL, learner=replace(SMALL.learner, gamma=0.9))
    with pytest.raises(AirworthyError, match="another training"):
        train_task(other, tmp_path / "whole", protocol=PROTOCOL)


def test_the_policy_of_the_folder_is_the_one_that_was_learnt(tmp_path: Path) -> None:
    work = OffPolicyTraining(None, SMALL)
    while not work.finished:
        work.step()
    train_task(SMALL, tmp_path, protocol=PROTOCOL)
    policy = read_task_policy(tmp_path)
    seen = work.environments.observation.astype(float)
    np.testing.assert_allclose(policy.action(seen), work.learner.action(seen), atol=1e-6)


def test_settings_are_the_published_ones_but_for_what_is_said() -> None:
    sac = OffPolicyTrainingOptions.usual("sac", "l2f_position", 3)
    assert (sac.steps, sac.learner.batch, sac.learner.hidden, sac.seed) == (200_000, 64, (32, 32), 3)
    assert (sac.learner.critic_every, sac.learner.actor_every, sac.learner.gamma) == (5, 10, 0.99)
    assert OffPolicyTraining(None, sac).task == L2fPosition.newer()
    td3 = OffPolicyTrainingOptions.usual("td3", "l2f_position")
    assert isinstance(td3.learner, Td3Options)
    assert (td3.steps, td3.learner.batch, td3.learner.hidden) == (300_000, 256, (64, 64))
    assert (td3.learner.critic_warmup, td3.learner.actor_warmup) == (15_000, 30_000)
    assert OffPolicyTraining(None, td3).task == L2fPosition.published()
    assert (sac.learner.learning_rate, sac.learner.reward_scale, sac.learner.initial_temperature) == (1e-3, 1.0, 0.5)


def test_what_cannot_be_learnt_so_is_refused() -> None:
    with pytest.raises(AirworthyError, match="end before the actor's first update"):
        replace(SMALL, steps=100)
    with pytest.raises(AirworthyError, match="learn it with --trainer native_ppo"):
        TaskConfig(trainer="gradient").training("px4_motor_command", 0)
    with pytest.raises(AirworthyError, match="draws late commands"):
        HoverConfig(trainer="sac", randomize=("default",))
    with pytest.raises(AirworthyError, match="symmetric has no effect"):
        OffPolicyTraining(None, replace(SMALL, task="hover", options={}, learner=replace(SMALL.learner, symmetric=True)))


def test_hover_is_learnt_from_a_replay_too() -> None:
    options: Any = HoverConfig(trainer="td3", steps=50_000, hidden=16, rate=50.0).options(2)
    training = options.begin(None)
    assert (training.trainer, training.hidden, training.flown_rate, training.history) == ("td3", (16, 16), 50.0, 0)


# ---- by gradient ---------------------------------------------------------------------------------------------------------


def test_pushed_flights_and_their_gradient_equal_the_twin() -> None:
    training = PushedTraining(l2f_crazyflie(), FEW)
    window, state = training.window, training.window.state.copy().astype(float)
    cost, gradient = window.run(training.weights, FEW.keep)
    flown, slopes = window_twin(window, training.weights, state, FEW.keep)
    expected, after = flown.costs.sum(axis=0), flown.state
    np.testing.assert_allclose(cost, expected, rtol=1e-5)
    np.testing.assert_allclose(window.state, after, rtol=1e-4, atol=1e-4)
    for mine, theirs in zip(gradient, slopes, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=2e-5 * np.abs(theirs).max())
    # Forces of a twentieth of the weight move what hovers; without them flights go elsewhere.
    window.set_push(np.arange(16), np.zeros((6, 16)))
    window.state[:] = state
    window.run(training.weights, FEW.keep)
    assert np.abs(window.state[3:6] - after[3:6]).max() > 0.01


def test_each_flight_has_its_own_push_and_keeps_it_over_a_stop() -> None:
    training = PushedTraining(l2f_crazyflie(), FEW)
    training.step()
    saved = training.save()
    for _ in range(3):
        training.step()
    other = PushedTraining(l2f_crazyflie(), FEW)
    other.restore(saved)
    for _ in range(3):
        other.step()
    for mine, theirs in zip(training.weights, other.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    many = PushedTraining(l2f_crazyflie(), replace(FEW, env_count=4096))
    pushes = np.array([values for row, values in many.window.parameters.items() if row >= many.window._parameters.push])
    weight = 0.0306 * 9.81
    np.testing.assert_allclose(pushes.std(axis=1), np.repeat([weight / 20, weight / 10_000], 3), rtol=0.05)


def test_a_policy_by_gradient_acts_on_what_the_task_shows_as_on_what_it_saw() -> None:
    work = FEW.begin(None)
    work.step()
    environments = VectorTask(replace(work.task, noise=False), 16, seed=9)
    state, past = environments.state.astype(float), environments.memory[:-6].astype(float)
    seen = np.array(np.broadcast_arrays(*hover_observation(tuple(state)), *past)).T
    np.testing.assert_allclose(
        network_action(work.weights, environments.observation), network_action(work.inner.weights, seen), atol=2e-6
    )
