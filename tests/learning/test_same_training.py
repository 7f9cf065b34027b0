"""A training asked for again, with the options that its folder gives back from JSON, is the same training."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import airworthy as aw
from airworthy.core.errors import AirworthyError
from airworthy.core.files import json_text
from airworthy.learning import TaskConfig, learning_tasks
from airworthy.learning.avoid import AvoidOptions
from airworthy.learning.distill import DistillOptions
from airworthy.learning.gradient.config import HoverConfig
from airworthy.learning.machine import TrainingOptions
from airworthy.learning.navigation.encoder_options import EncoderOptions
from airworthy.learning.navigation.options import NavigationOptions
from airworthy.learning.svnet.options import SvNetOptions
from airworthy.learning.task_training.config import TASK_TRAINERS

OTHERS = (AvoidOptions(), DistillOptions(), EncoderOptions(), NavigationOptions(), SvNetOptions(), HoverConfig().options(0))


def kept(options: Any) -> dict[str, Any]:
    """What `training.json` gives back."""
    found: dict[str, Any] = json.loads(json_text(asdict(options)))
    return found


def all_options(name: str) -> list[Any]:
    found = []
    for trainer in TASK_TRAINERS:
        try:
            found.append(TaskConfig(trainer=trainer).training(name, 0))
        except AirworthyError:
            continue  # this trainer does not take the task
    return found


@pytest.mark.parametrize("name", list(learning_tasks()))
def test_of_every_task_and_trainer(name: str) -> None:
    found = all_options(name)
    assert len(found) >= 3
    for options in found:
        assert options.differences(kept(options)) == [], type(options).__name__


@pytest.mark.parametrize("options", OTHERS, ids=lambda options: type(options).__name__)
def test_of_every_other_training(options: TrainingOptions) -> None:
    assert options.differences(kept(options)) == []
    name = next(item.name for item in fields(options) if item.name == "seed")
    assert replace(options, **{name: 5}).differences(kept(options)) == ["seed was 0, not 5"]  # type: ignore[arg-type]


def test_tuples_that_differ_are_told_alike() -> None:
    (options,) = [item for item in all_options("motor_track") if "hidden" in {field.name for field in fields(item)}][:1]
    held = kept(options)
    assert replace(options, hidden=(16, 16)).differences(held) == ["hidden was (64, 64), not (16, 16)"]


@pytest.mark.parametrize("kind", ["hover", "motor_command", "distill", "svnet", "boundary", "depth_navigation"])
def test_what_is_no_folder_and_no_data_is_one_sentence(kind: str, tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="`out` is the folder of the training"):
        aw.train(kind, "runs/none", out=5)  # type: ignore[arg-type]
    for data in (7, {"a": 1}, np.zeros(3)):
        with pytest.raises(AirworthyError):
            aw.train(kind, data, tmp_path / "out")
    assert not (tmp_path / "out").exists()
