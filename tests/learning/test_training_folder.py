"""The folder of a training, without a network: what is refused, where it is saved, how it goes on. Needs no torch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.learning.machine import TrainingOptions, TrainingRunOptions
from airworthy.learning.training_folder import (
    FIGURES_FILE,
    IDENTITY_FILE,
    TrainingFolder,
    TrainingNames,
    _refuse_changed,
    refuse_other_training,
    write_training_log,
)

NAMED = TrainingNames("a thing", "its data were others", "its version was another", "step")
IDENTITY = {"schema_version": 1, "network": "counter", "options": {"steps": 5, "word": ""}, "data": "abc"}
ALWAYS = TrainingRunOptions(checkpoint_minutes=0.0)


@dataclass(frozen=True)
class Options(TrainingOptions):
    steps: int = 5
    word: str = ""


@dataclass(frozen=True)
class Machine:
    device: str = "cpu"

    def differences(self, before: Mapping[str, Any]) -> list[str]:
        return [] if before.get("device") == self.device else [f"device {before.get('device')}, now {self.device}"]


class Counter:
    """Work that counts to a number."""

    def __init__(self, last: int = 5):
        self.at, self.last = 0, last

    @property
    def finished(self) -> bool:
        return self.at == self.last

    def steps(self, stopped: Callable[[], bool]) -> Iterator[int]:
        while not self.finished:
            self.at += 1
            yield self.at

    def save(self) -> Checkpoint:
        return Checkpoint(self.at, {"at": np.array([self.at])}, {})

    def restore(self, checkpoint: Checkpoint) -> None:
        self.at = int(checkpoint.arrays["at"][0])


def opened(folder: Path, options: Options | None = None, **changes: Any) -> TrainingFolder:
    chosen = options or Options()
    given_options = {"steps": chosen.steps, "word": chosen.word}
    return TrainingFolder(folder, {**IDENTITY, "options": given_options, **changes}, chosen, NAMED, quiet=True)


def begun(folder: Path) -> None:
    opened(folder).begin(Counter(), Machine())  # type: ignore[arg-type]


def test_it_learns_saves_and_goes_on(tmp_path: Path) -> None:
    folder, work, events = opened(tmp_path), Counter(), list[str]()
    assert not folder.done
    assert folder.machine is None
    assert not folder.begin(work, Machine())  # type: ignore[arg-type]
    late = TrainingRunOptions(minutes=1e-9)
    step, save = (lambda: events.append("step")), (lambda: events.append("save"))
    assert not folder.learn(work, work.steps, 5, late, stepped=step, saved=save)
    assert (work.at, events) == (1, ["step", "save"])
    again, work = opened(tmp_path), Counter()
    assert again.machine == {"device": "cpu"}
    assert again.begin(work, Machine())  # type: ignore[arg-type]
    assert work.at == 1
    assert again.learn(work, work.steps, 4, ALWAYS, saved=save)
    assert events[2:] == ["save"] * 4
    assert again.about == {"machine": {"device": "cpu"}, **IDENTITY}
    again.clear()
    assert not list(tmp_path.glob("checkpoints/*"))


def test_the_last_step_is_saved_however_seldom_it_is(tmp_path: Path) -> None:
    folder, work, saved = opened(tmp_path), Counter(), list[int]()
    folder.begin(work, Machine())  # type: ignore[arg-type]
    assert folder.learn(work, work.steps, 5, TrainingRunOptions(checkpoint_minutes=60.0), saved=lambda: saved.append(work.at))
    assert saved == [5]


def test_another_machine_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begun(tmp_path)
    folder = TrainingFolder(tmp_path, IDENTITY, Options(), NAMED, quiet=False)
    folder.begin(Counter(), Machine("cuda:0"))  # type: ignore[arg-type]
    assert "It began on another machine (device cpu, now cuda:0): it goes on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "changes", "said"),
    [
        (Options(steps=6), {}, "another training (steps was 5, not 6): choose another folder, or ask for the same."),
        (Options(word="x"), {"data": "other"}, "another training (word was none, not x; its data were others)"),
        (None, {"schema_version": 2}, "another training (its version was another)"),
        (None, {"network": "other"}, "holds the training of another network: choose another folder."),
    ],
)
def test_another_training_is_refused(tmp_path: Path, options: Options | None, changes: dict[str, Any], said: str) -> None:
    begun(tmp_path)
    with pytest.raises(AirworthyError) as caught:
        opened(tmp_path, options, **changes)
    assert said in str(caught.value)


def test_what_is_no_training_is_refused(tmp_path: Path) -> None:
    (tmp_path / IDENTITY_FILE).write_text("[]")
    with pytest.raises(AirworthyError, match="does not describe a training"):
        opened(tmp_path)
    (tmp_path / IDENTITY_FILE).unlink()
    (tmp_path / "contract.json").write_text("{}")
    with pytest.raises(AirworthyError, match=r"holds a thing but no training\.json"):
        opened(tmp_path)


def test_a_folder_of_another_kind_says_what_it_holds(tmp_path: Path) -> None:
    """A benchmark has a summary.json, too, and was taken for a policy that lacks its training.json."""
    (tmp_path / "race_bench.json").write_text("{}")
    (tmp_path / FIGURES_FILE).write_text("{}")
    for refused in (lambda: opened(tmp_path), lambda: refuse_other_training(tmp_path, Options(), "x")):
        with pytest.raises(AirworthyError, match="holds a race benchmark, over which nothing is learnt: choose another folder"):
            refused()
    with pytest.raises(AirworthyError, match="is a file; --out names a folder"):
        refuse_other_training(tmp_path / FIGURES_FILE, Options(), "x")


def test_a_finished_training_is_read_or_said_to_be_damaged(tmp_path: Path) -> None:
    begun(tmp_path)
    (tmp_path / FIGURES_FILE).write_text('{"epochs": 3}')
    folder = opened(tmp_path)
    assert folder.done
    assert folder.outcome(lambda where: None, lambda where, figures: figures["epochs"]) == 3
    with pytest.raises(
        AssetError, match=r"does not hold the figures of a training \('none' is missing\)\. This training was fin"
    ):
        folder.outcome(lambda where: None, lambda where, figures: figures["none"])

    def damaged(where: Path) -> None:
        raise AssetError("Its weights are damaged.")

    with pytest.raises(AssetError, match=r"weights are damaged\. This training was finished and is not whole any more"):
        folder.outcome(damaged, lambda where, figures: figures)


def test_the_journal_is_written_whole(tmp_path: Path) -> None:
    rows = [{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": float("nan")}]
    for _ in range(2):
        write_training_log(tmp_path, rows)
    lines = (tmp_path / "training.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": None}]


@pytest.mark.parametrize("values", [{"threads": -1}, {"minutes": float("inf")}, {"checkpoint_minutes": -1.0}])
def test_where_it_runs_is_checked(values: dict[str, Any]) -> None:
    with pytest.raises(AirworthyError, match=rf"{next(iter(values))}.*; expected"):
        TrainingRunOptions(**values)


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ({"kind": "hover"}, {"kind": "task recovery"}, r"holds a training of hover, not of recovery: choose another folder\.$"),
        ({"trainer": "sac"}, {"trainer": "td3"}, r"holds a training by sac, not by td3: choose another folder\.$"),
        (
            {"options": dict.fromkeys("abcdefg", 1)},
            {},
            r"another trainer or version \(which had a, b, c, d, and 3 more\): choose another folder, or ask for the same",
        ),
    ],
)
def test_what_is_another_thing_is_told_before_options_that_mean_something_else(
    before: dict[str, Any], now: dict[str, Any], said: str, tmp_path: Path
) -> None:
    (tmp_path / IDENTITY_FILE).write_text(json.dumps({**IDENTITY, **before}))
    with pytest.raises(AirworthyError, match=said):
        opened(tmp_path, Options(steps=7), **now)


@dataclass(frozen=True)
class Inner:
    share: float = 0.5


@dataclass(frozen=True)
class Many(TrainingOptions):
    a: int = 0
    b: int = 0
    c: int = 0
    d: int = 0
    e: int = 0
    f: int = 0
    inner: Inner = Inner()


def test_many_differences_are_counted_behind_the_first() -> None:
    changed = Many(*range(1, 7)).differences({})
    with pytest.raises(AirworthyError, match=r"\(a was 0, not 1; b was 0, not 2; c was 0, not 3; d was 0, not 4; and 2 more\)"):
        _refuse_changed("'x'", changed)


def test_a_record_that_an_earlier_training_did_not_have_was_at_its_default() -> None:
    assert Many().differences({"a": 0}) == []
    assert Many(inner=Inner(0.25)).differences({}) == ["inner was share=0.5, not share=0.25"]
