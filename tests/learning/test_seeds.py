"""Several seeds of a training: their summary, and the folder of one that they do not take the place of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airworthy.core.errors import AirworthyError
from airworthy.learning.seeds import refuse_single_training, write_seeds

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
