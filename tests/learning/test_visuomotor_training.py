"""Whole steps of the visuomotor training in a small place: imitation, a round of its own flights, stopped and gone on with."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from airworthy.learning.visuomotor import training
from airworthy.learning.visuomotor.config import DATA_FOLDER, VisuomotorOptions
from airworthy.learning.visuomotor.dagger import TAKEN_OVER
from airworthy.learning.visuomotor.training import VisuomotorTraining
from airworthy.pilots.svnet.contract import read_policy, write_policy

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "own_place.md"


def written_place(folder: Path) -> tuple[str, str]:
    """Write place and course of the page "your place, your course"."""
    text = PAGE.read_text(encoding="utf-8")
    for name, kind in (("hut.toml", "toml"), ("round.json", "json")):
        (folder / name).write_text(text.split(f"```{kind}\n")[1].split("```")[0], encoding="utf-8")
    return str(folder / "hut.toml"), str(folder / "round.json")


@pytest.mark.slow
@pytest.mark.parametrize("features", ["random", "trained"])
def test_a_round_behind_a_checkpoint_gives_the_same_bits(
    features: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_FIRST_JOINT", "_AGAIN_JOINT"):
        monkeypatch.setattr(training, name, replace(getattr(training, name), minibatches=4))
    place, path = written_place(tmp_path)
    options = VisuomotorOptions(scene=(place,), course=(path,), minutes=1.0, rounds=1, flights=2, features=features)
    first = VisuomotorTraining(options, tmp_path, threads=2)
    first.step()
    assert not first.finished
    again = VisuomotorTraining(options, tmp_path, threads=2)
    again.restore(first.save())
    for work in (first, again):
        work.step()
        assert work.stopped_by == "rounds"
    assert first.weights.keys() == again.weights.keys()
    for name, tensor in first.weights.items():
        np.testing.assert_array_equal(tensor, again.weights[name], err_msg=name)
    row = first.log[-1]
    # Two families, one course: a flight of each; what they left was learnt from, and nothing was lost on the way.
    assert row["flights"] == 2
    assert row["decisions"] - row["dropped"] == row["pairs"] - first.log[0]["pairs"]
    # The expert takes over before the protocol's bound, so nobody is far off for long.
    assert row["tracking_error_m"] < TAKEN_OVER
    write_policy(tmp_path / "policy", first.contract, first.weights)
    contract, _ = read_policy(tmp_path / "policy")
    assert contract.variant == "sv_grid"
    assert contract.training["rounds"] == 1
    assert (tmp_path / DATA_FOLDER / "dataset.json").is_file()
