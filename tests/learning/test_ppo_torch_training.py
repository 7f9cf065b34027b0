"""`--trainer ppo`: the folder of a training by torch, stopping it, its command, and devices."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import airworthy as aw
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.learning import HoverConfig, HoverProtocol, timed_training
from airworthy.learning.environments import VectorTask
from airworthy.learning.environments.tasks import MotorCommand
from airworthy.learning.gradient import run as run_module
from airworthy.learning.gradient.run import train_hover
from airworthy.learning.native_ppo import PpoOptions, PpoTraining, PpoTrainingOptions
from airworthy.learning.native_ppo.config import MotorCommandConfig
from airworthy.pilots import motor_observation, read_motor_policy
from airworthy.vehicles import vehicle

pytest.importorskip("torch")

from airworthy.learning.ppo import TorchPpo, TorchPpoOptions

PPO = TorchPpoOptions(hidden=(16, 8), rollout=8, seed=3, normalize_observation=True)
TINY = PpoTrainingOptions("motor_command", env_count=64, steps=4 * 512, ppo=PPO, trainer="ppo")
QUICK = HoverProtocol(flights=16, grid_flights=16, mpc_flights=0, flight_s=0.3, steady_s=0.1, film_flights=0)


@pytest.fixture(autouse=True)
def _no_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "conditions", lambda **_: [])  # tested with the trainer by gradient


def test_a_training_that_is_killed_and_goes_on_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder tells all; stopped in the middle it holds a policy that flies, and goes on to the same bits."""
    whole = train_hover(vehicle("tinyprop"), tmp_path / "whole", TINY, QUICK)
    found = json.loads((whole.folder / "summary.json").read_text())
    assert (found["kind"], found["trainer"], found["env_steps"]) == ("motor_command", "ppo", 4 * 512)
    assert "torch" in found["versions"]
    rows = [json.loads(line) for line in (whole.folder / "metrics.jsonl").read_text().splitlines()]
    wanted = {"divergence", "entropy", "explained", "gradient_norm", "learning_rate", "success", "passes", "wall_s", "cpu_s"}
    for row in rows:
        assert wanted <= set(row)
        assert sum(row["terms"].values()) == pytest.approx(row["reward"], abs=1e-5)
    assert "in torch" in whole.report.read_text()

    step = PpoTraining.step

    def dies(self: PpoTraining) -> float:
        if self.iteration == 2:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(timed_training, "_SAID_EVERY_S", 0.0)
    monkeypatch.setattr(PpoTraining, "step", dies)
    with pytest.raises(KeyboardInterrupt):
        train_hover(vehicle("tinyprop"), tmp_path / "part", TINY, QUICK)
    assert read_motor_policy(tmp_path / "part").contract.training["iterations"] == 2
    monkeypatch.setattr(PpoTraining, "step", step)
    native = replace(TINY, ppo=PpoOptions(hidden=(16, 8), rollout=8, seed=3), trainer="native_ppo")
    with pytest.raises(AirworthyError, match="trainer was ppo, not native_ppo"):
        train_hover(vehicle("tinyprop"), tmp_path / "part", native, QUICK)
    part = train_hover(vehicle("tinyprop"), tmp_path / "part", TINY, QUICK)
    for name in ("weights.safetensors",):
        assert (part.folder / name).read_bytes() == (whole.folder / name).read_bytes()
    assert part.figures["median_error_m"] == whole.figures["median_error_m"]


def test_the_folder_holds_the_same_function_with_what_it_normalises_by() -> None:
    training = PpoTraining(vehicle("tinyprop"), TINY)
    while not training.finished:
        training.step()
    from airworthy.learning.gradient.policy import contract_of_training
    from airworthy.pilots.motor_policy.pilot import MotorPolicy

    policy = MotorPolicy(contract_of_training(training), tuple(training.weights))
    flights = VectorTask(MotorCommand(noise=False), 64, seed=5)
    state = flights.state.astype(float)
    seen = motor_observation(state[:3].T, state[3:6].T, state[6:10].T, state[10:13].T, np.zeros(64))
    expected = training.ppo.action(flights.observation.astype(float))
    np.testing.assert_allclose(policy.action(seen), expected, rtol=0.0, atol=1e-5)
    # Not what it would be without: the mean and deviation that were learnt are in it.
    assert np.abs(np.asarray(training.weights[0])[:, :3]).max() > 1.5 * np.abs(_first(training)[:, :3]).max()


def _first(training: PpoTraining) -> Any:
    assert isinstance(training.ppo, TorchPpo)
    return training.ppo.model.actor.layers[0].weight.detach().numpy()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words: dict[str, Any] = {"trainer": "ppo", "hidden": 16, "env-count": 64, "steps": 8192, "seed": 4, "flights": 16}
    words |= {"grid-flights": 16, "mpc-flights": 0, "film-flights": 0}
    given = [word for name, value in words.items() for word in (f"--{name}", str(value))]
    assert main(["train", "hover", *given, "--out", str(tmp_path / "run"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["trainer"], told["env_steps"]) == ("ppo", 8192)
    assert read_motor_policy(tmp_path / "run").contract.hidden == (16, 16)
    given[given.index("ppo")] = "native_ppo"
    assert main(["train", "hover", *given, "--device", "cuda", "--out", str(tmp_path / "other")]) == 2
    assert "--device cuda changes nothing for the trainer gradient or native_ppo" in capsys.readouterr().err


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="torch sees 0 GPUs here; use --device cpu"):
        _no_gpu(tmp_path)
    with pytest.raises(AirworthyError, match="The trainer ppo got PpoOptions; expected TorchPpoOptions"):
        PpoTrainingOptions(trainer="ppo")
    with pytest.raises(AirworthyError, match="no memory or image"):
        replace(TINY, ppo=replace(PPO, recurrent=8))
    with pytest.raises(AirworthyError, match=r"layers of up to 256; got \[300\]"):
        replace(TINY, ppo=replace(PPO, hidden=(300,)))
    with pytest.raises(
        AirworthyError,
        match="--steps 5 changes nothing for the trainer gradient, which counts",
    ):
        HoverConfig(steps=5)
    with pytest.raises(AirworthyError, match="--device cuda changes nothing for the trainer native_ppo"):
        MotorCommandConfig(device="cuda")


def _no_gpu(folder: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    train_hover(vehicle("tinyprop"), folder / "gpu", TINY, QUICK, device="cuda:3")


def test_a_minibatch_taken_whole_as_a_gpu_does_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way of other devices on a CPU: one part, on one thread; sums round otherwise."""
    made = [TorchPpo(VectorTask("motor_command", 512, seed=1), TorchPpoOptions(rollout=16, seed=1), 1) for _ in range(2)]
    made[1]._part = 10**9
    for _ in range(2):
        for one in made:
            one.update()
    parts, whole = ([x.detach().numpy() for x in one.model.ordered_parameters()] for one in made)
    for a, b in zip(parts, whole, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_from_python(tmp_path: Path) -> None:
    few = {"steps": 4096, "env_count": 64, "flights": 16, "grid_flights": 16, "mpc_flights": 0, "film_flights": 0}
    done = aw.train("motor_command", out=tmp_path / "motors", hidden=(16, 8), trainer="ppo", **few)
    assert done.summary["trainer"] == "ppo"
    assert done.summary["rate"] == 250.0
    assert len(done.frame()) == 2
    with pytest.raises(AirworthyError, match="motor_command is learnt on tinyprop"):
        aw.train("motor_command", "x500", out=tmp_path / "other", **few)
    with pytest.raises(AirworthyError, match="needs its second argument, `data`, of hover the vehicle"):
        aw.train("hover", out=tmp_path / "other")
