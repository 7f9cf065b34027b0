"""Trainings that cannot go on as they were: flights that leave the numbers, files of a folder that are gone or damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.learning.gradient.run import train_hover
from airworthy.learning.gradient.trainer import GradientOptions, GradientTraining
from airworthy.pilots.network_files import write_network_files
from airworthy.vehicles import vehicle

QUICK = ["--flights", "16", "--grid-flights", "4", "--mpc-flights", "0", "--film-flights", "0"]


def test_a_training_that_diverges_stops_and_keeps_no_checkpoint_of_it(tmp_path: Path) -> None:
    """A body of next to no inertia turns faster than float32 tells: one sentence instead of a policy of no numbers."""
    feather = replace(vehicle("cf2x_L250"), name="feather", inertia=(1e-9, 1e-9, 1e-9, 0.0, 0.0, 0.0))
    with pytest.raises(AirworthyError, match=r"The training diverged at gradient step [\d,]+: .* of 'feather', or learn with"):
        train_hover(feather, tmp_path / "run", GradientOptions(hidden=16, env_count=16, window=20, iterations=40))
    assert not (tmp_path / "run" / "summary.json").exists()


def test_weights_that_are_no_numbers_stop_at_once() -> None:
    training = GradientTraining(vehicle("cf2x_L250"), GradientOptions(hidden=16, env_count=16, window=4, iterations=4))
    training.step()
    training.weights[0][0, 0] = np.nan
    with pytest.raises(AirworthyError, match="The training diverged at gradient step 2"):
        training.step()
    assert training.iteration == 1


def test_a_folder_in_the_contracts_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "contract.json").mkdir()
    with pytest.raises(AirworthyError, match=r"^Could not replace '.*contract\.json': .*; remove it, and go on\.$"):
        write_network_files(tmp_path, b"", dict)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    """Words of a finished training, and its summary."""
    out = tmp_path_factory.mktemp("hover") / "run"
    words = ["train", "hover", "--vehicle", "cf2x_L250", "--hidden", "16", "--env-count", "16", "--window", "20"]
    words += ["--iterations", "4", *QUICK, "--out", str(out)]
    assert main(words) == 0
    return words, out / "summary.json"


@pytest.mark.parametrize("name", ["kept_percent", "baselines", "training_wall_s", "env_steps_per_s", "iterations"])
@pytest.mark.parametrize("deleted", [True, False])
def test_figures_that_are_not_there_are_told_in_a_sentence(
    name: str, deleted: bool, finished: tuple[list[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    words, path = finished
    whole = path.read_text()
    found = json.loads(whole)
    found = {key: x for key, x in found.items() if key != name} if deleted else {**found, name: None}
    path.write_text(json.dumps(found))
    try:
        code = main(words)
        said = capsys.readouterr()
    finally:
        path.write_text(whole)
    # A share that is null is shown as what it is: not known.
    if name in ("kept_percent", "training_wall_s", "iterations") and not deleted:
        assert code == 0
        return
    assert code == 2
    assert "summary.json' does not hold the figures of a training" in said.err
    assert said.err.count("\n") <= 2


@pytest.mark.slow
def test_a_part_of_a_replay_that_is_gone_costs_one_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Stopped twice; the newest part goes; what comes of it is what one run gives."""
    words = ["train", "hover", "--trainer", "sac", "--vehicle", "cf2x_L250", "--hidden", "8", "--env-count", "16"]
    words += ["--steps", "4800", *QUICK]
    place = ["--out", str(tmp_path / "stopped")]
    for _ in range(2):
        assert main([*words, *place, "--minutes", "1e-9"]) == 0
    parts = sorted((tmp_path / "stopped" / "replay").glob("part_*"))
    assert len(parts) == 2
    parts[-1].unlink()
    capsys.readouterr()
    assert main([*words, *place]) == 0
    said = capsys.readouterr().err
    assert "what was flown is lost; delete the folder and begin anew); the one before it is taken." in said
    assert main([*words, "--out", str(tmp_path / "whole")]) == 0
    weights = [(tmp_path / name / "weights.safetensors").read_bytes() for name in ("stopped", "whole")]
    assert weights[0] == weights[1]
