"""Several seeds of a training: their summary, and the folder of one that they do not take the place of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.learning.seeds import refuse_judged_seed, refuse_single_training, write_seeds

ROWS: list[dict[str, Any]] = [
    {"seed": 0, "error_m": 0.5, "kept": 3},
    {"seed": 1, "error_m": None, "kept": 1},
    {"seed": 2, "error_m": 0.25, "kept": 8},
]


def test_every_seed_and_the_median_of_each_figure_are_written(tmp_path: Path) -> None:
    write_seeds(tmp_path, {"task": "hover"}, ROWS)
    found = json.loads((tmp_path / "summary.json").read_text())
    # A seed without an error is infinitely far: the median of 0.5, none and 0.25 is the half.
    assert found == {"schema_version": 1, "task": "hover", "median": {"error_m": 0.5, "kept": 3.0}, "seeds": ROWS}


def test_where_half_of_the_seeds_have_no_figure_the_median_has_none(tmp_path: Path) -> None:
    write_seeds(tmp_path, {}, ROWS[:2])
    assert json.loads((tmp_path / "summary.json").read_text())["median"] == {"error_m": None, "kept": 2.0}


@pytest.mark.parametrize("name", ["training.json", "contract.json"])
def test_the_folder_of_one_training_is_refused(name: str, tmp_path: Path) -> None:
    refuse_single_training(tmp_path)
    (tmp_path / "summary.json").write_text("{}")  # of several seeds
    refuse_single_training(str(tmp_path))
    (tmp_path / name).write_text("{}")
    with pytest.raises(AirworthyError) as caught:
        refuse_single_training(tmp_path)
    said = "holds a single training; several seeds need a folder of their own: choose another."
    assert str(caught.value) == f"{str(tmp_path)!r} {said}"


def test_one_seed_is_its_own_median(tmp_path: Path) -> None:
    write_seeds(tmp_path, {}, ROWS[2:])
    assert json.loads((tmp_path / "summary.json").read_text())["median"] == {"error_m": 0.25, "kept": 8.0}


def test_the_seed_of_the_judgement_is_refused_among_several() -> None:
    refuse_judged_seed(range(7919), 7919)
    refuse_judged_seed([7920, 7918], 7919)
    with pytest.raises(AirworthyError, match=r"^The seed 7919 is that of the starts on which policies are judged: choose anot"):
        refuse_judged_seed(range(7917, 7920), 7919)
    with pytest.raises(AirworthyError, match="The seed 5 is that of the forests: choose another"):
        refuse_judged_seed([5], 5, "forests")


@pytest.mark.parametrize(
    "words",
    [
        ["motor_command"], ["hover"], ["hover", "--trainer", "native_ppo"], ["hover", "--trainer", "sac"], ["foundation"],
        ["recovery"], ["depth_navigation"], ["lidar_navigation"], ["dce"], ["avoid"],
    ],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("first", [7919, 7918])
def test_no_training_has_the_seed_of_its_judgement(
    words: list[str], first: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refused before anything is learnt or made, also where only the second of several seeds is that one."""
    if words[0] in ("depth_navigation", "lidar_navigation", "dce", "avoid"):
        pytest.importorskip("torch")
    if first != 7919 and words[0] in ("foundation", "dce", "avoid"):
        pytest.skip("learns one seed at a time")
    several = [] if first == 7919 else ["--seeds", "2"]
    assert main(["train", *words, "--seed", str(first), *several, "--out", str(tmp_path / "run")]) == 2
    assert "The seed 7919 is that of the" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
