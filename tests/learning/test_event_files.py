"""Event files of TensorBoard: the numbers of the training log, of every trainer, once each."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.learning import HoverProtocol, PpoOptions
from airworthy.learning.gradient import GradientOptions
from airworthy.learning.gradient import run as run_module
from airworthy.learning.gradient.run import train_hover
from airworthy.learning.native_ppo import PpoTrainingOptions
from airworthy.learning.training_folder import EventFiles
from airworthy.pilots.task_policy.pilot import read_task_policy
from airworthy.vehicles import vehicle

QUICK = HoverProtocol(flights=16, grid_flights=16, mpc_flights=0, flight_s=0.3, steady_s=0.1, film_flights=0)
BY_REWARD = PpoTrainingOptions("motor_command", 64, 1024, ppo=PpoOptions(hidden=(16, 8), rollout=8, seed=3))


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Name -> steps and values, by TensorBoard's own reader."""
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = reader.EventAccumulator(str(folder))
    found.Reload()
    return {name: [(one.step, one.value) for one in found.Scalars(name)] for name in found.Tags()["scalars"]}


@pytest.mark.parametrize("options", [BY_REWARD, GradientOptions(env_count=16, window=20, iterations=3)])
def test_a_training_writes_its_log_as_event_files(tmp_path: Path, options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch.utils.tensorboard")
    monkeypatch.setattr(run_module, "conditions", lambda **_: [])
    done = train_hover(vehicle("tinyprop"), tmp_path, options, QUICK, tensorboard=True)
    rows = [json.loads(line) for line in (done.folder / "metrics.jsonl").read_text().splitlines()]
    found = curves(done.folder / "tensorboard")
    name = "reward" if options is BY_REWARD else "cost"
    assert found[name] == [(row["env_steps"], pytest.approx(row[name], rel=1e-6)) for row in rows]
    if options is BY_REWARD:
        assert found["terms/upright"] == [(r["env_steps"], pytest.approx(r["terms"]["upright"], rel=1e-6)) for r in rows]
        assert {"divergence", "entropy", "explained", "learning_rate", "wall_s"} <= set(found)


def test_a_training_that_goes_on_writes_no_point_twice(tmp_path: Path) -> None:
    pytest.importorskip("torch.utils.tensorboard")

    def scalars(row: Any) -> Any:
        return row["at"], {"x": row["x"]}

    rows = [{"at": k, "x": 0.5 * k} for k in range(4)]
    for count in (2, 3):
        with EventFiles(tmp_path, scalars, rows[:count]) as events:
            events.follow(rows[: count + 1])
            events.follow(rows[: count + 1])
    assert curves(tmp_path) == {"x": [(k, 0.5 * k) for k in range(4)]}


def test_without_its_package_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(AirworthyError, match=r"pip install 'airworthy\[learn\]'"):
        EventFiles(tmp_path, lambda row: (0, {}))


def test_any_task_by_torch_with_event_files(tmp_path: Path) -> None:
    """`airworthy train TASK --trainer ppo --tensorboard`: the folder of a task's policy, which flies."""
    pytest.importorskip("torch.utils.tensorboard")
    small = ["--env-count", "64", "--steps", "4096", "--hidden", "16", "8", "--flights", "16", "--mpc-flights", "0"]
    asked = ["train", "recovery", "--trainer", "ppo", *small, "--tensorboard", "--json", "--out", str(tmp_path)]
    assert main(asked) == 0
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["trainer"], summary["env_steps"]) == ("ppo", 4096)
    assert "torch" in summary["versions"]
    assert "--tensorboard" not in summary["command"]
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [step for step, _ in curves(tmp_path / "tensorboard")["reward"]] == [row["env_steps"] for row in rows]
    assert read_task_policy(tmp_path).contract.training["trainer"] == "ppo"
