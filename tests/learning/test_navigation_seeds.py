"""Several seeds of learning to navigate: folders of their own, one summary, gone on with, and the table that is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.learning.seeds import train_each
from airworthy.learning.timed_training import Trained

pytest.importorskip("torch")

from airworthy.learning.navigation import run
from airworthy.learning.navigation.options import NavigationOptions

# As few decisions as there can be: two updates of sixteen flights.
WORDS = ["--steps", "256", "--env-count", "16", "--rollout", "8", "--minibatches", "2", "--hidden", "8", "--recurrent", "0"]
WORDS += ["--flights", "2", "--levels", "15"]


def files_of(folder: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names}


def test_seeds_from_the_command_line_are_those_alone_and_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Stopped within the first; then both, to the bits of each alone; asked for again, nothing is learnt."""
    words = ["train", "depth_navigation", *WORDS, "--out", str(tmp_path / "both"), "--seeds", "2"]
    assert main([*words, "--minutes", "1e-9"]) == 0
    said = capsys.readouterr().out
    assert said == "Stopped after the minutes it was given, at iteration 1; the same command goes on from there.\n"
    assert not (tmp_path / "both" / "summary.json").exists()
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "depth_navigation, judged in the simulator" in said
    assert "success at 15 [%]" in said
    for seed in (0, 1):
        assert f"--pilot navigation:{tmp_path / 'both' / f'seed_{seed}'}; report: " in said
        alone = ["train", "depth_navigation", *WORDS, "--out", str(tmp_path / f"{seed}"), "--seed", str(seed), "--json"]
        assert main(alone) == 0
        capsys.readouterr()
        weights = ("weights.safetensors",)
        assert files_of(tmp_path / "both" / f"seed_{seed}", weights) == files_of(tmp_path / f"{seed}", weights)
    found = json.loads((tmp_path / "both" / "summary.json").read_text())
    assert (found["kind"], found["vehicle"]) == ("depth_navigation seeds", "lmf2")
    assert [row["seed"] for row in found["seeds"]] == [0, 1]
    kept = ("seed_0/summary.json", "seed_1/summary.json", "summary.json")
    before = files_of(tmp_path / "both", kept)
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["seed"] for row in told["seeds"]] == [0, 1]
    assert files_of(tmp_path / "both", kept) == before
    command = json.loads(before["seed_1/summary.json"])["command"]
    assert "--seed 1 " in command
    assert "--seeds" not in command


def fake_figures(seed: int, reached: int, simulator: dict[int, float], finished: bool = True) -> dict[str, Any]:
    """Return figures of a training that reached a level; in the launch it succeeds a point more often."""
    rows = [{"level": level, "flights": 100, "success_percent": rate} for level, rate in simulator.items()]
    launch = [{**row, "success_percent": row["success_percent"] + 1.0} for row in rows]
    base = {"seed": seed, "training_wall_s": 60.0 + seed, "training_cpu_s": 30.0, "env_steps": 256, "level": reached}
    return {**base, "launch": launch, "simulator": rows} if finished else {}


FOUND = {
    3: fake_figures(3, 39, {15: 90.0, 30: 75.0, 39: 61.0, 50: 60.0}),
    4: fake_figures(4, 43, {15: 94.0, 30: 83.0, 43: 70.0, 50: 69.0}),
    5: fake_figures(5, 30, {15: 88.0, 30: 71.0, 50: 66.0}),
}


def test_the_summary_has_levels_that_all_were_judged_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int, str, dict[str, Any]]] = []

    def trained(out: Path, options: NavigationOptions, *, command: str, **told: Any) -> Trained:
        asked.append((out.name, options.seed, command, told))
        return Trained(out, True, FOUND[options.seed], 2)

    monkeypatch.setattr(run, "train_navigation", trained)
    made = run.train_navigation_seeds(tmp_path, NavigationOptions(seed=3), 3, commands=["a", "b", "c"], quiet=True)
    assert asked == [(f"seed_{k}", k, word, {"quiet": True}) for k, word in zip((3, 4, 5), "abc", strict=True)]
    assert run.shared_levels(made) == [15, 30, 50]
    found = json.loads((tmp_path / "summary.json").read_text())
    assert found["median"] == {
        "training_wall_s": 64.0, "training_cpu_s": 30.0, "env_steps": 256.0, "level": 39.0,
        "launch_level_15_success_percent": 91.0, "launch_level_30_success_percent": 76.0,
        "launch_level_50_success_percent": 67.0, "simulator_level_15_success_percent": 90.0,
        "simulator_level_30_success_percent": 75.0, "simulator_level_50_success_percent": 66.0,
    }  # fmt: skip


def test_a_seed_that_is_stopped_ends_the_others_and_writes_no_summary(tmp_path: Path) -> None:
    made: list[int] = []

    def train(seed: int, folder: Path, command: str) -> Trained:
        made.append(seed)
        return Trained(folder, seed != 4, {}, 1)

    assert [item.finished for item in train_each(tmp_path, range(3, 9), train)] == [True, False]
    assert made == [3, 4]
    for count in (0, 101):
        with pytest.raises(AirworthyError, match=f"^{count} seeds are to be trained; expected 1 to 100"):
            train_each(tmp_path, range(count), train)


def test_several_seeds_do_not_take_the_place_of_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "training.json").write_text("{}")
    assert main(["train", "lidar_navigation", "--seeds", "2", "--out", str(tmp_path)]) == 2
    assert "holds a single training; several seeds need a folder of their own" in capsys.readouterr().err
    assert main(["train", "depth_navigation", "--seeds", "0", "--out", str(tmp_path / "a")]) == 2
    assert "--seeds is 0; expected 1 to 100" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_curves_are_written_as_event_files_where_they_are_asked_for(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    assert main(["train", "depth_navigation", *WORDS, "--out", str(tmp_path / "a"), "--tensorboard", "--json"]) == 0
    (events,) = (tmp_path / "a" / "tensorboard").iterdir()
    held = events.read_bytes()
    # A number of the log, of a term of the reward, and no text.
    assert all(name in held for name in (b"level", b"reward", b"terms/"))
    few = ["--iterations", "2", "--batch", "2", "--channels", "1", "--latent", "2"]
    assert main(["train", "dce", *few, "--out", str(tmp_path / "dce"), "--tensorboard", "--json"]) == 0
    (events,) = (tmp_path / "dce" / "tensorboard").iterdir()
    assert b"squared_error" in events.read_bytes()
