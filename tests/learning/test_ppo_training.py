"""Motor policies learnt by reward: the folder, what its numbers mean, stopping, commands, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.learning import HoverConfig, HoverProtocol, timed_training
from airworthy.learning.environments import VectorTask
from airworthy.learning.environments.tasks import MotorCommand
from airworthy.learning.gradient import GradientOptions
from airworthy.learning.gradient import run as run_module
from airworthy.learning.gradient.run import train_hover
from airworthy.learning.native_ppo import PpoOptions, PpoTraining, PpoTrainingOptions
from airworthy.learning.native_ppo.config import MotorCommandConfig
from airworthy.learning.timed_training import Trained
from airworthy.pilots import motor_observation, read_motor_policy
from airworthy.vehicles import vehicle

PPO = PpoOptions(hidden=(16, 8), rollout=8, seed=3)
TINY = PpoTrainingOptions("motor_command", env_count=64, steps=5 * 512, ppo=PPO)
QUICK = HoverProtocol(flights=16, grid_flights=16, mpc_flights=0, flight_s=0.3, steady_s=0.1)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A small training, finished and judged; its folder is read only."""
    folder = tmp_path_factory.mktemp("ppo") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "conditions", lambda **_: [])  # the grid is tested with the trainer by gradient
        return train_hover(vehicle("tinyprop"), folder, TINY, QUICK, command="airworthy train motor_command")


def test_a_training_leaves_policy_figures_log_and_page(done: Trained) -> None:
    found = json.loads((done.folder / "summary.json").read_text())
    assert (found["kind"], found["trainer"], found["rate"]) == ("motor_command", "native_ppo", 250.0)
    assert found["env_steps"] == 5 * 512
    assert {"training_wall_s", "kept_percent", "median_error_m"} <= set(found)
    assert found["options"]["ppo"]["hidden"] == [16, 8]
    rows = [json.loads(line) for line in (done.folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["env_steps"] for row in rows] == [512, 1024, 1536, 2048, 2560]
    for row in rows:
        assert {"divergence", "explained", "gradient_norm", "learning_rate", "episode_return", "cpu_s"} <= set(row)
        assert sum(row["terms"].values()) == pytest.approx(row["reward"], abs=1e-5)
    page = done.report.read_text()
    assert "by the reward of its flights" in page
    assert "0.09 m on the real vehicle" in page
    assert "Reward per step" in page


def test_the_folder_says_what_the_task_means(done: Trained) -> None:
    """Its inputs are those of every motor policy, and its commands the thrusts of the task."""
    policy = read_motor_policy(done.folder)
    training = PpoTraining(vehicle("tinyprop"), TINY)
    while not training.finished:
        training.step()
    flights = VectorTask(MotorCommand(noise=False), 64, seed=5)
    state = flights.state.astype(float)
    seen = motor_observation(state[:3].T, state[3:6].T, state[6:10].T, state[10:13].T, np.zeros(64))
    action = policy.action(seen)
    np.testing.assert_allclose(action, training.ppo.action(flights.observation.astype(float)), rtol=0.0, atol=2e-6)
    np.testing.assert_allclose(policy.command(action[0]), flights.command(action[0].astype(float)), rtol=1e-5)
    np.testing.assert_allclose(policy.command(policy.contract.hover), flights.parameter("hover")[:, 0], rtol=1e-5)


def test_a_stopped_training_goes_on_to_the_same_bits(done: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "conditions", lambda **_: [])
    step = PpoTraining.step

    def dies(self: PpoTraining) -> float:
        if self.iteration == 2:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(timed_training, "_SAID_EVERY_S", 0.0)
    monkeypatch.setattr(PpoTraining, "step", dies)
    with pytest.raises(KeyboardInterrupt):
        train_hover(vehicle("tinyprop"), tmp_path, TINY, QUICK)
    assert read_motor_policy(tmp_path).contract.training["iterations"] == 2  # flies as it is
    monkeypatch.setattr(PpoTraining, "step", step)
    whole = train_hover(vehicle("tinyprop"), tmp_path, TINY, QUICK)
    assert (whole.folder / "weights.safetensors").read_bytes() == (done.folder / "weights.safetensors").read_bytes()
    assert whole.figures["median_error_m"] == done.figures["median_error_m"]
    with pytest.raises(AirworthyError, match=r"holds another training \(clip was 0.05, not 0.2\)"):
        train_hover(vehicle("tinyprop"), tmp_path, replace(TINY, ppo=replace(PPO, clip=0.2)), QUICK)


def test_hover_by_reward_has_the_folder_of_hover_by_gradient() -> None:
    options = HoverConfig(trainer="native_ppo", hidden=16, env_count=64, steps=4096, randomize=("mass=0.1",)).options(7)
    assert isinstance(options, PpoTrainingOptions)
    assert (options.task, options.ppo.hidden, options.seed, options.randomization.mass) == ("hover", (16, 16), 7, 0.1)
    assert isinstance(HoverConfig().options(0), GradientOptions)
    training = PpoTraining(vehicle("cf2x_L250"), replace(options, ppo=replace(options.ppo, minibatches=2)))
    training.step()
    assert training.law == "state"
    assert [w.shape for w in training.weights] == [(16, 18), (16,), (16, 16), (16,), (4, 16), (4,)]
    # Nearly hover's action, whatever is seen: where every training begins.
    seen = training.ppo.environments.observation
    np.testing.assert_allclose(training.ppo.action(seen), np.tile(training.hover, (64, 1)), atol=0.1)


def test_settings_as_published_and_ours() -> None:
    published, ours = (MotorCommandConfig(published=p).options(1).ppo for p in (True, False))
    assert (published.clip, published.minibatches, published.entropy_weight) == (0.05, 2, 0.01)
    assert ours == replace(PpoOptions.settings(), seed=1)
    assert ours.clip == 0.2


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AirworthyError, match="--window 50 changes nothing for the trainer native_ppo"):
        HoverConfig(trainer="native_ppo", window=50)
    with pytest.raises(AirworthyError, match="--steps 5 changes nothing for the trainer gradient"):
        HoverConfig(steps=5)
    with pytest.raises(AirworthyError, match="--randomize default draws late commands"):
        HoverConfig(trainer="native_ppo", randomize=("default",))
    with pytest.raises(AirworthyError, match="two widths of 1 to 128"):
        MotorCommandConfig(hidden=(32, 500))
    with pytest.raises(AirworthyError, match="learn the task hover with this vehicle"):
        PpoTraining(vehicle("x500"), TINY)
    assert main(["train", "motor_command", "--trainer", "gradient", "--out", str(tmp_path / "run")]) == 2
    assert "native_ppo" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "conditions", lambda **_: [])
    monkeypatch.setattr(run_module, "_judged", _no_flights)
    monkeypatch.setattr(run_module, "write_hover_report", lambda *a: None)
    words: dict[str, Any] = {"hidden": "16 8", "env-count": 64, "steps": 2048, "seed": 4, "seeds": 2}
    given = [word for name, value in words.items() for word in (f"--{name}", *str(value).split())]
    assert main(["train", "motor_command", "--published", *given, "--out", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["seed"] for row in told["seeds"]] == [4, 5]
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["kind"] == "motor_command seeds"
    assert "--published" in json.loads((tmp_path / "seed_5" / "summary.json").read_text())["command"]


def _no_flights(vehicle: Any, run: Any, protocol: Any, split: Any, command: str, quiet: bool) -> dict[str, Any]:
    """Figures of a summary, without a flight."""
    options = run.training.options
    shown = {"kept_percent": 50.0, "median_error_m": None, "p95_error_m": None, "training_wall_s": 1.0, "training_cpu_s": 1.0}
    rest = {"seed": options.seed, "env_steps": 2048, "iterations": 1, "command": command}
    return {**shown, **rest}
